//! Resync and rebuild: a background stream of one array with md's speed control.
//!
//! Requests of [`UNIT`] go out in order, a bounded number at a time. Below the *front*, the first
//! request that has not ended, everything agrees. The control is that of `md.c:md_do_sync`: before
//! each 128 KiB the speed since a mark of up to half a minute ago is looked at. Above the most, half a
//! second of sleep; above the least, way is given to others when they were heard, since Linux 6.16 with enough in flight alone.
mod driven;
#[cfg(test)]
mod tests;

use super::core::Heard;
use super::node::Common;
use super::spec::{ArraySpec, Checkpoints, Courtesy, Era};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use raidlab_experiment::kernel::TICK;
use std::collections::VecDeque;

/// Sectors of one request: 64 KiB (`RESYNC_BLOCK_SIZE` of raid1 and raid10).
pub(super) const UNIT: u64 = 128;
/// Most sectors of one request, and which part of those in flight it is at most, while a pace is looked for. Fitted on the pace of
/// requests of [`UNIT`]: the initial sync of a RAID6 on twelve disks of 24 TB keeps it to 0.4 % in an hour and a half with up to 256 KiB, a
/// sixteenth of its stripe cache, and goes on a quarter faster with 512 KiB. Those of mirrors keep it to the last digit. Fitted with
/// requests to members of 1280 KiB; [`coarse`] keeps to what those come to.
const COARSE: (u64, u64) = (512, 16);
/// Requests in flight of raid1 and of raid10 (`RESYNC_DEPTH`: 32, and 32 MiB, memory permitting).
pub(super) const DEPTH: usize = 32;
pub(super) const DEPTH_RAID10: usize = 512;
/// Sectors between looks at the speed: 32 pages.
const LOOK: u64 = 256;
/// Time between marks, and how many are kept (`SYNC_MARK_STEP`, `SYNC_MARKS`).
const MARK_STEP: Span = Span::from_secs(3);
const MARKS: usize = 10;
/// Sleep of one that is too fast or in others' way.
const SLEEP: Span = Span::from_millis(500);
/// Sleep of one that others wait for, on kernels that sleep so long.
const COURTESY: Span = Span::from_secs(1);
/// What the superblocks say of a resync is at most so old (`UPDATE_FREQUENCY`), and lacks at most such a part of the whole.
const CHECK_TIME: Span = Span::from_secs(300);
const CHECK_PART: u64 = 16;

/// Sectors of one request while the resync has the array for itself and its pace is looked for ([`Resync::limit`]), `in_flight` of
/// them at the most: requests of neighbouring sectors are joined in the members' queues in any case, so that fewer and larger ones
/// do the same with less work. Members take `request` sectors of single pages, if that is limited: as large ones are to come of them.
fn coarse(in_flight: u64, chunk: u64, request: Option<u64>) -> u64 {
    let most = COARSE.0.min(chunk).max(UNIT);
    let part = (in_flight / COARSE.1).clamp(UNIT, most);
    let mut unit = 1 << part.ilog2();
    while unit > UNIT && request.is_some_and(|most| most / unit * unit < most / UNIT * UNIT) {
        unit /= 2;
    }
    unit
}

/// What a stripe cache has room for, in sectors of each member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In all.
    pub(super) all: u64,
    /// In a request to a member, where that is limited.
    pub(super) request: Option<u64>,
}

/// The resync or rebuild of one array.
#[derive(Clone, Debug)]
pub(super) struct Resync {
    pub(super) end: u64,
    /// Requests in flight at most, and sectors of one.
    depth: usize,
    unit: u64,
    next: u64,
    /// Ends of the requests in flight, with whether each has ended; and the number of the first.
    window: VecDeque<(u64, bool)>,
    first: u64,
    /// Sectors asked for so far (not skipped), and of those in flight.
    issued: u64,
    active: u64,
    /// KiB a second.
    least: u64,
    most: u64,
    brief: bool,
    unheard: u64,
    /// Sectors in flight with fewer of which it gives way to nobody; 0: before Linux 6.16.
    lets: u64,
    marks: VecDeque<(Instant, u64)>,
    looked: u64,
    sleeps: Option<Instant>,
    /// It has, and has not looked at the speed since.
    slept: bool,
    drains: bool,
    /// The stripe cache had no room: it waits until a quarter is free, and then until `naps`.
    short: bool,
    naps: Option<Instant>,
    late_timers: bool,
    /// What it does for those that wait for it, whether it has for the next request, and the speed it saw last, KiB a second.
    courtesy: Courtesy,
    courteous: bool,
    speed: u64,
    checkpoints: Checkpoints,
    /// Where and when it was noted last how far it is.
    checked: (u64, Instant),
    /// It is to be written into the superblocks.
    notes: bool,
    started: bool,
    paused: bool,
}

impl Resync {
    /// With so many requests of so many sectors, as md counts them, in flight.
    pub(super) fn new(end: u64, depth: usize, each: u64, spec: &ArraySpec, era: &Era) -> Self {
        Self {
            end,
            depth,
            unit: UNIT,
            next: 0,
            window: VecDeque::new(),
            first: 0,
            issued: 0,
            active: 0,
            least: spec.sync_speed_min >> 10,
            most: spec.sync_speed_max >> 10,
            brief: era.resync_yields_briefly,
            unheard: era.unheard,
            lets: era.resync_depth * each,
            marks: VecDeque::from([(Instant::ZERO, 0)]),
            looked: 0,
            sleeps: None,
            slept: false,
            drains: false,
            short: false,
            naps: None,
            late_timers: era.late_timers,
            courtesy: era.resync_courtesy,
            courteous: false,
            speed: 0,
            checkpoints: era.checkpoints,
            checked: (0, Instant::ZERO),
            notes: false,
            started: false,
            paused: false,
        }
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        if !self.started && !self.paused {
            return Some(Instant::ZERO);
        }
        self.naps.or(self.sleeps).filter(|_| !self.paused)
    }

    /// Whether the next request may go out now.
    fn may(&mut self, now: Instant, heard: &mut [Heard]) -> bool {
        self.started = true;
        self.wakes(now);
        let full = self.window.len() >= self.depth;
        // md looks when it has sent a request, and then waits for room for the next. What is in flight then has counted since
        // 6.16; before, the look may as well be at the end of that wait.
        if self.paused || self.next >= self.end || full && self.lets == 0 {
            return false;
        }
        if !self.check(now) {
            return false;
        }
        if self.sleeps.is_some() {
            return false;
        }
        let mut look = std::mem::take(&mut self.slept) || self.issued - self.looked >= LOOK;
        if self.drains {
            if self.active > 0 {
                return false;
            }
            self.drains = false;
            self.looked = self.issued;
            look = false;
        }
        (!look || self.look(now, heard)) && !full
    }

    /// Of a sleep that is over nothing is left, whatever else it has to wait for.
    fn wakes(&mut self, now: Instant) {
        self.still_naps(now);
        if self.sleeps.is_some_and(|until| until <= now) {
            (self.sleeps, self.slept) = (None, true);
        }
    }

    /// Notes how far it is when that is due, for which all that is in flight has to end first; whether it may go on.
    fn check(&mut self, now: Instant) -> bool {
        let (at, since) = self.checked;
        let far = self.next - at > self.end / CHECK_PART || now.since(since) >= CHECK_TIME;
        if self.checkpoints != Checkpoints::Sixteenths || !far {
            return true;
        }
        if self.active > 0 {
            return false;
        }
        self.checked = (self.next, now);
        self.notes = true;
        true
    }

    /// How far others may take it for done.
    const fn known(&self, common: &Common) -> u64 {
        match self.checkpoints {
            Checkpoints::Sixteenths => self.checked.0,
            Checkpoints::AtTheEnd if !common.filling.is_empty() => 0,
            Checkpoints::AtTheEnd => common.front,
            #[cfg(test)]
            Checkpoints::AtOnce => common.front,
        }
    }

    /// Looks at the speed and for others.
    fn look(&mut self, now: Instant, heard: &mut [Heard]) -> bool {
        self.looked = self.issued;
        let synced = self.issued - self.active;
        if now.since(self.marks.back().map_or(now, |mark| mark.0)) >= MARK_STEP {
            if self.marks.len() == MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((now, synced));
        }
        let (since, before) = self.marks.front().copied().unwrap_or((now, synced));
        let speed = (synced - before) / 2 / (now.since(since).0 / 1_000_000_000 + 1) + 1;
        self.speed = speed;
        if speed <= self.least {
            return true;
        }
        if speed > self.most {
            self.sleeps = Some(now + SLEEP);
            return false;
        }
        if self.active < self.lets || !self.hears(heard) {
            return true;
        }
        if self.brief {
            self.drains = self.active > 0;
            return !self.drains;
        }
        self.sleeps = Some(now + SLEEP);
        false
    }

    /// Whether others are there (`md.c:is_mddev_idle`). Since 6.16 it goes by the requests to the array; here by those to its
    /// members, among which those are not that wait for a stripe or for the resync to pass.
    fn hears(&self, heard: &mut [Heard]) -> bool {
        let mut some = false;
        for heard in heard {
            let (ended, hidden, under_way) = match self.lets {
                0 => (heard.events, self.unheard as i64, false),
                _ => (heard.others, 0, heard.under_way > 0),
            };
            if ended - heard.last > hidden {
                (heard.last, some) = (ended, true);
            }
            some |= under_way;
        }
        some
    }

    /// The stripe cache had no room (`raid5.c:raid5_sync_request`).
    const fn runs_short(&mut self) {
        self.short = true;
    }

    /// Whether it may go on as far as the stripe cache is concerned, for whose room it waits or not. When it has waited and
    /// got one stripe, it sleeps for a tick before it asks for what is in it, so that others find room.
    fn has_room(&mut self, now: Instant, waits: bool) -> bool {
        if self.short && !waits {
            (self.naps, self.short) = (Some(self.tick(now)), false);
        }
        !self.short && !self.still_naps(now)
    }

    /// Whether it may go on to the next request of a mirror, for which others wait or not.
    fn lets_pass(&mut self, now: Instant, others: bool) -> bool {
        if !self.courteous {
            self.courteous = true;
            self.naps = match self.courtesy {
                Courtesy::Ticks if others => Some(self.tick(now)),
                Courtesy::Seconds if others && self.speed >= self.least => Some(now + COURTESY),
                _ => None,
            };
        }
        !self.still_naps(now)
    }

    /// When a timer of one tick goes off: at the next one, since 4.8 at the one after it.
    const fn tick(&self, now: Instant) -> Instant {
        Instant((now.0 / TICK.0 + 1 + self.late_timers as u64) * TICK.0)
    }

    fn still_naps(&mut self, now: Instant) -> bool {
        self.naps = self.naps.filter(|until| *until > now);
        self.naps.is_some()
    }

    /// The number of the next request, and where it begins and ends.
    fn piece(&self) -> (u64, u64, u64) {
        let end = (self.next / self.unit + 1) * self.unit;
        let number = self.first + self.window.len() as u64;
        (number, self.next, end.min(self.end))
    }

    fn went(&mut self, to: u64) {
        let sectors = to - self.next;
        self.window.push_back((to, false));
        (self.issued, self.active) = (self.issued + sectors, self.active + sectors);
        (self.next, self.courteous) = (to, false);
    }

    /// Goes at most so fast from now on, bytes a second; what was before is not looked back at. Without a limit it is alone, and asks for
    /// more at a time, `chunk` sectors at the most; `room` is that of a stripe cache, if it has one.
    pub(super) fn limit(
        &mut self,
        now: Instant,
        most: Option<u64>,
        chunk: u64,
        room: Option<Room>,
    ) {
        let in_flight = room.map_or_else(|| self.depth as u64 * self.unit, |room| room.all);
        self.ask_for(match most {
            None => coarse(in_flight, chunk, room.and_then(|room| room.request)),
            Some(_) => UNIT,
        });
        self.most = most.unwrap_or(u64::MAX) >> 10;
        self.marks.clear();
        self.marks.push_back((now, self.issued - self.active));
    }

    /// Asks for so many sectors at a time from now on, with as many as before in flight in all.
    fn ask_for(&mut self, unit: u64) {
        if self.depth != usize::MAX {
            self.depth = (self.depth as u64 * self.unit / unit) as usize;
        }
        self.unit = unit;
    }

    pub(super) const fn naps(&self) -> bool {
        self.naps.is_some()
    }

    /// Sectors that are through, those behind one that is still in flight as well.
    pub(super) const fn through(&self) -> u64 {
        self.next - self.active
    }

    pub(super) const fn skipping(&self) -> bool {
        self.paused && self.active == 0
    }
}

/// What md's speed control makes of a resync that would go at `rate` by itself and may go at `most`,
/// both in bytes a second: its mean rate over ten minutes, after one in which it has settled. The
/// control runs as it is, on a resync of one request at a time that takes its time and nothing else.
#[must_use]
pub fn controlled(rate: u64, most: u64) -> u64 {
    if rate <= most {
        return rate;
    }
    let (settled, end) = (Instant(60_000_000_000), Instant(660_000_000_000));
    let mut spec = ArraySpec::new(super::ArrayKind::Single(raidlab_core::units::Sectors(0)));
    (spec.sync_speed_min, spec.sync_speed_max) = (0, most);
    let mut resync = Resync::new(u64::MAX, 1, UNIT, &spec, &spec.era);
    let piece = Span((u128::from(UNIT * SECTOR) * 1_000_000_000 / u128::from(rate)) as u64);
    let (mut now, mut before) = (Instant::ZERO, 0);
    while now < end {
        if now < settled {
            before = resync.issued;
        }
        if resync.may(now, &mut []) {
            let to = resync.next + UNIT;
            resync.went(to);
            // It ends at once for the control, and the next one is asked for when it has.
            resync.window.clear();
            (resync.first, resync.active) = (resync.first + 1, 0);
            now += piece;
        } else {
            now = resync.sleeps.unwrap_or(now + piece);
        }
    }
    let bytes = (resync.issued - before) * SECTOR;
    (u128::from(bytes) * 1_000_000_000 / u128::from(end.since(settled).0)) as u64
}

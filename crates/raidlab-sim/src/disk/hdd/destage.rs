//! The write-back buffer: taking writes, and bringing them to the media.
use super::{Blocked, Done, Hdd, Run};
use raidlab_core::time::Instant;

/// Runs near the arm among which the nearest in time is destaged.
const CANDIDATES: usize = 16;

/// Sectors of a run from which on it counts as a stream, whose end is likely to be gone on with. Assumed: 64 KiB.
const STREAM: u64 = 128;
/// How long a part of a physical sector at the end of a written stream waits for the write that
/// completes it, in nanoseconds. Assumed: longer than the gap between two writes of a stream, shorter
/// than anything a user notices.
const HOLD: u64 = 25_000_000;

impl Hdd {
    /// Takes blocked writes into the buffer in their order, as far as there is room at time `t`, and
    /// ends flushes whose turn has come.
    pub(super) fn admit(&mut self, t: u64) {
        while let Some(blocked) = self.blocked.front().copied() {
            let fits = if blocked.flush {
                self.flushing = true;
                self.dirty.is_empty() && !self.destage_active
            } else {
                self.has_room(&blocked.run)
            };
            if !fits {
                return;
            }
            self.blocked.pop_front();
            if blocked.flush {
                self.flushing = false;
                // A write past the buffer may still be under way; the media end with it.
                let at = t.max(blocked.run.ready).max(self.flush_floor());
                self.end_now(blocked.id, at, Ok(()));
            } else {
                self.take(&blocked, t);
            }
        }
    }

    /// Flushes wait for the arm only when it writes.
    fn flush_floor(&self) -> u64 {
        if self.stream.active { 0 } else { self.free_at }
    }

    fn has_room(&self, run: &Run) -> bool {
        let cache = &self.model.spec.cache;
        let held = self.dirty.sectors();
        // What is replaced is only looked for when all of it would not fit.
        let fits = held + run.sectors <= cache.write_sectors
            || held + self.dirty.missing(run) <= cache.write_sectors;
        fits && self.dirty.has_room(run, cache.write_runs as usize)
    }

    /// When a write has found room in full: what is on its way to the media makes room sector by sector, and the write
    /// comes in as it does. What is replaced wants none.
    fn roomy(&self, run: &Run) -> u64 {
        let (held, most) = (self.unwritten(), self.model.spec.cache.write_sectors);
        if held + run.sectors <= most {
            return 0;
        }
        let new = self.dirty.missing(run);
        match (held + new).checked_sub(most) {
            None | Some(0) => 0,
            Some(_) if new == 0 => 0,
            Some(over) => {
                let later = self.destaging.saturating_sub(over) * self.sector_nanos;
                self.free_at.saturating_sub(later)
            }
        }
    }

    fn take(&mut self, blocked: &Blocked, t: u64) {
        let mut run = blocked.run;
        // It is in the buffer from now on, however long it has waited for room: else all that many have waited would be overdue.
        run.since = self.destaged;
        let roomy = self.roomy(&run);
        let (begin, end) = self.transfer(t.max(run.ready), run.sectors);
        let end = end.max(roomy);
        run.ready = begin + self.model.link_nanos(1);
        let held = self.dirty.sectors();
        self.dirty.insert(run);
        self.counters.sectors_replaced += held + run.sectors - self.dirty.sectors();
        self.counters.write_hits += 1;
        let cache = &self.model.spec.cache;
        if self.unwritten() * 100 >= cache.write_sectors * u64::from(cache.high)
            || self.dirty.runs().len() * 100 >= cache.write_runs as usize * cache.high as usize
        {
            self.pressing = true;
        }
        self.ready.push(Done {
            id: blocked.id,
            at: Instant(end),
            first: Instant(end),
            result: Ok(()),
            hit: true,
        });
    }

    /// Whether destaging takes turns with reads instead of waiting for idle time.
    pub(super) fn urgent(&self) -> bool {
        self.pressing || self.flushing || !self.blocked.is_empty()
    }

    /// When destaging may begin, if nothing else is to do.
    pub(super) fn destage_from(&self) -> u64 {
        if self.urgent() {
            return 0;
        }
        let quiet = if self.counters.reads == 0 {
            0
        } else {
            self.last_read.saturating_add(self.model.spec.cache.quiet.0)
        };
        match self.leftover {
            Some((lba, until)) if self.only_leftover(lba) => quiet.max(until),
            _ => quiet,
        }
    }

    fn only_leftover(&self, lba: u64) -> bool {
        matches!(self.dirty.runs(), [run] if self.is_leftover(run, lba))
    }

    fn is_leftover(&self, run: &Run, lba: u64) -> bool {
        run.lba == lba && run.sectors < u64::from(self.model.spec.physical)
    }

    /// Brings the run that the arm reaches soonest to the media, or one that was passed over for too long; at most about a
    /// track of it, so that a read does not wait long.
    pub(super) fn destage(&mut self, t: u64) {
        self.stop_stream(t);
        let Some(run) = self.overdue().or_else(|| self.nearest(t)) else {
            return;
        };
        let geometry = &self.model.geometry;
        let most = u64::from(geometry.per_track(run.lba)).max(256);
        let mut sectors = run.sectors.min(most);
        let physical = u64::from(self.model.spec.physical);
        let end = run.lba + sectors;
        let whole = end & !(physical - 1);
        self.leftover = None;
        // Where a run is cut is the drive's own choice, and never within a physical sector, which would then be read
        // before it is written, twice. A stream's last part of one is kept back for the write that completes it.
        let cut = sectors < run.sectors;
        if whole != end && whole > run.lba + STREAM && (cut || !self.flushing) {
            sectors = whole - run.lba;
            if whole + physical > run.end() {
                self.leftover = Some((whole, t + HOLD));
            }
        }
        self.dirty.remove(run.lba, sectors);
        let cache = &self.model.spec.cache;
        self.destaged += sectors.max(cache.write_sectors / u64::from(cache.write_runs.max(1)));
        self.dirty.renew(run.lba + sectors, self.destaged);
        self.destaging = sectors;
        self.destage_active = true;
        self.counters.destages += 1;
        self.counters.sectors_destaged += sectors;
        self.sector_nanos = self.spindle.revolution() / u64::from(geometry.per_track(run.lba));
        let ready = run.ready.max(t + self.set_up(run.lba));
        self.free_at = self.write_media(run.lba, sectors, t, ready);
        if !self.blocked.is_empty() {
            self.admit(t);
        }
    }

    /// The drive's processor sets up writing anew, while the arm moves, unless it goes on where the arm
    /// is: behind a gap of a few sectors that may cost a turn. Assumed: as long as for a read from the
    /// media. Drives that take several commands at a time set up the next while the arm is busy with this one, as they do with
    /// what waits in their queue: without that, blocks that lie close together took three times as long through the buffer
    /// as past it.
    fn set_up(&self, lba: u64) -> u64 {
        if self.model.spec.queue.tags > 1 || self.widen(lba, 1).0 == self.position {
            0
        } else {
            self.model.spec.overhead.read_miss.0
        }
    }

    /// The oldest run, when as much as the buffer holds was destaged [so many times](crate::disk::spec::CacheSpec::rounds)
    /// since it came. Counted so, and not in time, most runs are never overdue, however fast they come: the mean age of all is
    /// what the buffer holds, whichever are taken first.
    fn overdue(&mut self) -> Option<Run> {
        let cache = &self.model.spec.cache;
        let most = u64::from(cache.rounds) * cache.write_sectors;
        if self.destaged - self.oldest <= most {
            return None;
        }
        let oldest = *self.dirty.oldest()?;
        self.oldest = oldest.since;
        (self.destaged - oldest.since > most).then_some(oldest)
    }

    /// The run near the arm that is reached soonest; what is kept back comes last.
    fn nearest(&self, t: u64) -> Option<Run> {
        let mut best: Option<(bool, u64, Run)> = None;
        for run in self.dirty.near(self.position, CANDIDATES) {
            let held = self
                .leftover
                .is_some_and(|(lba, _)| self.is_leftover(run, lba));
            let place = self.model.geometry.locate(self.widen(run.lba, 1).0);
            let moved = self.move_nanos((place.cylinder, place.head), true);
            let (begin, _) =
                self.spindle
                    .meet(t + moved.max(self.set_up(run.lba)), place.x, place.angle);
            if best.is_none_or(|(h, b, _)| (held, begin) < (h, b)) {
                best = Some((held, begin, *run));
            }
        }
        best.map(|(_, _, run)| run)
    }

    /// What was destaged is on the media at time `t`: there is room again.
    pub(super) fn finish_destage(&mut self, t: u64) {
        (self.destaging, self.destage_active) = (0, false);
        self.admit(t);
        let cache = &self.model.spec.cache;
        if self.dirty.is_empty()
            || (self.dirty.sectors() * 100 < cache.write_sectors * u64::from(cache.low)
                && self.dirty.runs().len() * 100 < cache.write_runs as usize * cache.low as usize)
        {
            self.pressing = false;
        }
    }
}

//! Throttled write-back (`block/blk-wbt.c`, `blk-rq-qos.c`; Linux since 4.10 on blk-mq, off with bfq): of writes only a few requests are
//! in a disk's queue at a time, fewer while others read, and fewer still when reads take too long.
//!
//! All writes count but those with both `REQ_SYNC` and `REQ_IDLE` (`wbt_should_throttle`): direct ones, the log of XFS since 5.7, that of
//! jbd2 since 6.8. md's mirrors and parity arrays keep `REQ_SYNC` alone of what they pass on, so that all that they ask of their members
//! counts. How many there may be (`get_limit`): all of the depth of what `fsync` writes and of metadata, a quarter of what the flusher
//! marks as its own, else half, and a quarter beside reads; all for those who write on while they are held back for what is dirty.
//!
//! A process that may have no more sleeps with what it has yet to submit. The window's timer is looked at with the next request that
//! comes or ends. Left out: what a resync or rebuild writes (the kernel counts it as write-back that is not marked), flushes (counted as
//! what `fsync` writes, if they are not part of the log's write), the data that a commit of ext4 writes for other files (`REQ_SYNC`),
//! that the thread of a parity array does nothing else while it sleeps, and that a sleeper is not there to write to the other members.
mod held;

use super::spec::Policy;
use super::starved::Starved;
use crate::block::{Bio, Marked, RESYNC};
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;

/// Since when.
const SINCE: Kernel = Kernel::Linux(4, 10, 0);
/// Requests at a time to begin with (`RWB_DEF_DEPTH`).
const DEPTH: u32 = 16;
/// How long reads and writes are watched before the depth is changed (`RWB_WINDOW_NSEC`).
const WINDOW: Span = Span::from_millis(100);
/// Reads have been there until so long ago (`close_io`: a tenth of a second).
pub(super) const CLOSE: Span = Span::from_millis(100);
/// A writer that was held back so long ago still counts (`wb_recent_wait`: a second).
const RECENT: Span = Span::from_secs(1);
/// Writes in a window that tell something (`RWB_MIN_WRITE_SAMPLES`).
const WRITES: u32 = 3;
/// Windows that tell nothing before the depth goes back to where it was (`RWB_UNKNOWN_BUMP`).
const UNKNOWN: u32 = 5;

/// How write-back is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The fastest read of a window may take so long (`wbt_lat_usec`): 75 ms where there is an arm, else 2.
    pub latency: Span,
    /// The device has a cache of writes: it takes the next ones when all are in it.
    pub write_cache: bool,
}

impl Tunables {
    /// Of a kernel's queues; `None` of those that have none.
    pub(super) fn of(kernel: Kernel, policy: Policy, rotational: bool) -> Option<Self> {
        let has = matches!(
            policy,
            Policy::None | Policy::Deadline(_) | Policy::Kyber(_)
        );
        (kernel >= SINCE && kernel != Kernel::Windows2000 && has).then_some(Self {
            latency: Span::from_millis(if rotational { 75 } else { 2 }),
            write_cache: true,
        })
    }
}

/// What has ended in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    reads: u32,
    fastest: Span,
    writes: u32,
}

/// The throttle of one queue.
#[derive(Clone, Debug)]
pub(super) struct Wbt {
    with: Tunables,
    /// Requests that the device takes at a time.
    depth: u32,
    in_flight: u32,
    waiting: Starved,
    /// Halvings of the depth; below 0 doublings.
    step: i32,
    is_most: bool,
    most: u32,
    unknown: u32,
    window: Span,
    /// When the window ends; `None`: nobody watches.
    ends: Option<Instant>,
    seen: Seen,
    /// A read that the device has, and since when.
    reading: Option<(u32, Instant)>,
    slept: Option<Instant>,
}

impl Wbt {
    pub(super) fn new(with: Tunables, depth: u32) -> Self {
        let mut wbt = Self {
            with,
            depth,
            in_flight: 0,
            waiting: Starved::default(),
            step: 0,
            is_most: false,
            most: 0,
            unknown: 0,
            window: WINDOW,
            ends: None,
            seen: Seen::default(),
            reading: None,
            slept: None,
        };
        wbt.set_most();
        wbt
    }

    /// Whether a bio is held back (`wbt_should_throttle`): all writes but those that somebody waits for who will ask for more
    /// (`REQ_SYNC` with `REQ_IDLE`: direct ones).
    pub(super) const fn tracks(bio: &Bio) -> bool {
        let origin = &bio.origin;
        matches!(bio.kind, BlockKind::Write)
            && (!origin.sync || origin.last)
            && origin.task != RESYNC
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a request may be made of a bio that is tracked; if not it waits here.
    pub(super) fn takes(&mut self, now: Instant, bio: &Bio, read_until: Instant) -> bool {
        let taken = self.waiting.is_empty() && self.may(now, bio, read_until);
        if taken {
            self.in_flight += 1;
        } else {
            self.waiting.push(*bio);
        }
        if self.ends.is_none() {
            self.watch(now);
        }
        taken
    }

    /// The device is given a request.
    pub(super) fn given(&mut self, now: Instant, slot: u32, kind: BlockKind) {
        if kind == BlockKind::Read && self.reading.is_none() {
            self.reading = Some((slot, now));
        }
    }

    /// The device has ended a request that it was given at `started`.
    pub(super) fn ended(&mut self, now: Instant, slot: u32, kind: BlockKind, started: Instant) {
        match kind {
            BlockKind::Read => {
                let took = now.since(started);
                self.seen.fastest = match self.seen.reads {
                    0 => took,
                    _ => self.seen.fastest.min(took),
                };
                self.seen.reads += 1;
                if self.reading.is_some_and(|(reading, _)| reading == slot) {
                    self.reading = None;
                }
            }
            BlockKind::Write => self.seen.writes += 1,
            BlockKind::Flush | BlockKind::FlushData => {}
        }
    }

    /// A tracked request has ended. True when those that wait may be looked at (`wbt_rqw_done`).
    pub(super) fn leaves(&mut self, now: Instant) -> bool {
        self.in_flight -= 1;
        let limit = match self.with.write_cache && !self.recently_held(now) {
            true => 0,
            false => self.normal(),
        };
        if self.in_flight > 0 && self.in_flight >= limit {
            return false;
        }
        self.in_flight == 0 || limit - self.in_flight >= self.background() / 2
    }

    /// One that was counted is part of another request now. Those that wait are looked at when the next one ends.
    pub(super) fn joined(&mut self) {
        self.in_flight -= 1;
    }

    fn recently_held(&self, now: Instant) -> bool {
        self.slept.is_some_and(|at| now.since(at) < RECENT)
    }

    fn normal(&self) -> u32 {
        match self.most {
            few @ 0..=2 => few,
            most => most.div_ceil(2),
        }
    }

    fn background(&self) -> u32 {
        match self.most {
            0..=2 => 1,
            most => most.div_ceil(4),
        }
    }

    /// Requests that there may be with one made of a bio (`get_limit`).
    fn limit(&self, now: Instant, bio: &Bio, read_until: Instant) -> u32 {
        let marked = bio.origin.marked;
        // `REQ_HIPRIO` is any of `REQ_SYNC`, `REQ_META` and `REQ_PRIO`.
        if bio.origin.sync || marked == Marked::Metadata || self.recently_held(now) {
            self.most
        } else if marked == Marked::Background || now < read_until {
            self.background()
        } else {
            self.normal()
        }
    }

    fn may(&self, now: Instant, bio: &Bio, read_until: Instant) -> bool {
        self.in_flight < self.limit(now, bio, read_until)
    }

    fn watch(&mut self, now: Instant) {
        // Shorter by the root of the halvings and one (`rwb_arm_timer`).
        self.window = match self.step {
            step @ 1.. => Span((WINDOW.0 << 4) / u64::from(((step as u32 + 1) << 8).isqrt())),
            _ => WINDOW,
        };
        self.ends = Some(now + self.window);
        self.seen = Seen::default();
    }

    /// Looks at the windows that have ended by now. True when the depth has grown, so that those that wait may go.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        let mut grown = false;
        while let Some(end) = self.ends.filter(|end| *end <= now) {
            grown |= self.look_at(end);
            self.ends = None;
            if self.step != 0 || self.in_flight > 0 {
                self.watch(end);
            }
        }
        grown
    }

    /// `wb_timer_fn` and `latency_exceeded`.
    fn look_at(&mut self, end: Instant) -> bool {
        let Seen {
            reads,
            fastest,
            writes,
        } = self.seen;
        let pending = self.reading.map_or(Span::ZERO, |(_, at)| end.since(at));
        let (much, target) = (self.window, self.with.latency);
        if pending > much || (pending > target && reads == 0) {
            self.scale_down(true);
            return false;
        }
        if reads == 0 || writes < WRITES {
            if writes > 0 || self.recently_held(end) || self.in_flight > 0 {
                return self.scale_up();
            }
            self.unknown += 1;
            if self.unknown < UNKNOWN {
                return false;
            }
            return match self.step {
                1.. => self.scale_up(),
                0 => false,
                _ => {
                    self.scale_down(false);
                    false
                }
            };
        }
        if fastest > target {
            self.scale_down(true);
            return false;
        }
        self.scale_up()
    }

    fn scale_up(&mut self) -> bool {
        if self.is_most {
            return false;
        }
        self.step -= 1;
        self.is_most = self.set_most();
        self.unknown = 0;
        true
    }

    fn scale_down(&mut self, hard: bool) {
        if self.most == 1 {
            return;
        }
        self.step = match self.step {
            ..0 if hard => 0,
            step => step + 1,
        };
        self.is_most = false;
        self.set_most();
        self.unknown = 0;
    }

    /// `rq_depth_calc_max_depth`; true when there can be no more.
    fn set_most(&mut self) -> bool {
        if self.depth == 1 {
            self.most = if self.step > 0 { 1 } else { 2 };
            return self.step <= 0;
        }
        let least = DEPTH.min(self.depth) - 1;
        let shift = self.step.unsigned_abs().min(31);
        if self.step >= 0 {
            self.most = 1 + (least >> shift);
            return false;
        }
        let all = 3 * self.depth / 4;
        let wanted = 1 + (u64::from(least) << shift);
        self.most = wanted.min(u64::from(all)) as u32;
        wanted > u64::from(all)
    }
}

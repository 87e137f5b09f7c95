//! bfq: a queue for each process, served in turn by budgets of sectors in the order of B-WF2Q+, so
//! that throughput is shared by weight. A process that reads in order keeps the disk until its budget
//! or its time is used up. `block/bfq-iosched.c`, since 4.12, as it is since 5.12 but where told.
//!
//! Left out: groups and priorities, queues that are joined because processes read side by side, processes that wake others,
//! soft real-time processes, and the bursts of processes that are not raised.
mod inject;
mod joined;
mod kept;
mod raised;
mod rate;
mod shares;
mod task;
mod turn;

use super::history::{ASYNC, Tasks, nearest};
use super::store::{NIL, Rq, Store};
use crate::block::Bio;
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;
use rate::{Rate, Tags};
use shares::Shares;
use task::TaskQueue;
use turn::{Reason, Turn};

/// `bfq_slice_idle`.
const SLICE_IDLE: Span = Span::from_millis(8);
/// `bfq_timeout` HZ/8: the longest time for a budget.
const TIMEOUT: Span = Span::from_millis(125);
/// `bfq_fifo_expire`: asynchronous, synchronous.
const FIFO_EXPIRE: [Span; 2] = [Span::from_millis(250), Span::from_millis(125)];
/// `bfq_async_charge_factor`: an asynchronous sector counts as three.
const ASYNC_CHARGE: u64 = 3;
/// `bfq_back_max` 16 MiB, in sectors.
const BACK: u64 = 32 * 1024;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// How long the disk is kept idle for a process.
    pub slice_idle: Span,
    /// The longest time for a budget.
    pub timeout: Span,
    /// Raise the weight of processes that have just begun.
    pub low_latency: bool,
    /// While the disk is kept for a process that has no requests, it takes some of others (`bfq_select_queue`, since 5.2).
    pub injects: bool,
    /// A process that is alone is kept on, one that need not be kept gives way at once to another that comes, and half of
    /// [`slice_idle`](Self::slice_idle) is a long time to think (since 5.12).
    pub gives_way: bool,
    /// Processes that begin at the same time share a queue (`bfq_do_or_sched_stable_merge`, since 5.13).
    pub joins: bool,
}

impl Tunables {
    /// As `kernel` has them.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        Self {
            slice_idle: SLICE_IDLE,
            timeout: TIMEOUT,
            low_latency: true,
            injects: kernel >= Kernel::Linux(5, 2, 0),
            gives_way: kernel >= Kernel::Linux(5, 12, 0),
            joins: kernel >= Kernel::Linux(5, 13, 0),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bfq {
    with: Tunables,
    rotational: bool,
    depth: u32,
    queues: Tasks<TaskQueue>,
    shares: Shares,
    turn: Turn,
    rate: Rate,
    tags: Tags,
    sampling: inject::Sampling,
    /// The queue that those of processes which begin soon after may be joined to.
    first: Option<u16>,
    in_device: u32,
    /// Queues that have requests or are served, and those of them whose weight is raised.
    busy: u32,
    raised: u32,
}

impl Bfq {
    pub(super) fn new(with: Tunables, rotational: bool, depth: u32) -> Self {
        let rate = Rate::new(rotational, with.timeout);
        let mut shares = Shares::default();
        shares.grow(1);
        Self {
            with,
            rotational,
            depth,
            queues: Tasks::new(TaskQueue::new(false, 0, rate.max_budget())),
            shares,
            turn: Turn::default(),
            rate,
            tags: Tags::default(),
            sampling: inject::Sampling::default(),
            first: None,
            in_device: 0,
            busy: 0,
            raised: 0,
        }
    }

    pub(super) fn class(&mut self, now: Instant, bio: &Bio) -> u16 {
        let (max, known) = (self.rate.budgets().0, self.shares.len());
        let class = self.queues.class(bio, || TaskQueue::new(true, now.0, max));
        if usize::from(class) == known {
            self.shares.grow(known + 1);
        }
        if class == ASYNC || !self.with.joins {
            return class;
        }
        if usize::from(class) == known {
            self.may_join(class);
        }
        self.joined(now.0, class, bio)
    }

    /// Sectors that a request counts as.
    fn charge(&self, rq: &Rq) -> u64 {
        let sectors = u64::from(rq.sectors);
        if rq.class == ASYNC && !self.is_raised(ASYNC) {
            sectors * ASYNC_CHARGE
        } else {
            sectors
        }
    }

    /// A request has come in.
    pub(super) fn added(&mut self, store: &Store, now: Instant, rq: &Rq) {
        let (now, class, sync) = (now.0, rq.class, rq.class != ASYNC);
        self.look_at_clock(store, now);
        let (idle, half) = (self.with.slice_idle.0, self.with.gives_way);
        if sync {
            self.queues[class].learn(now, rq, idle, half, self.rotational);
            self.sample(now, class);
        }
        self.queues[class].queued += 1;
        let before = self.is_raised(class);
        let mut begins = false;
        if !self.queues[class].busy {
            begins = self.awake(store, now, class, self.charge(rq));
        } else if self.with.low_latency && !before && !sync {
            let long_ago = now > self.queues[class].raised_at + raised::RAISED_ASYNC.0;
            if long_ago {
                // What it was served while raised before counts on.
                self.raise(class);
                self.raised += 1;
            }
        }
        if self.with.low_latency && (!before || !self.is_raised(class) || begins) {
            self.queues[class].raised_at = now;
        }
        if self.shares.serving() == Some(class) && self.turn.kept.take().is_some() {
            let over = now >= self.turn.ends;
            if over {
                self.expire(store, now, Reason::Timeout);
            }
        }
    }

    /// A request that waits is about to be part of another of its class.
    pub(super) fn leaves(&mut self, rq: &Rq) {
        self.queues[rq.class].queued -= 1;
    }

    /// The request to be given out now; [`NIL`] when none is to be.
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        self.look_at_clock(store, now.0);
        let slot = self.select(store, now.0);
        if slot != NIL {
            self.give(now.0, store.get(slot), slot);
            // The kernel asks for more until there is none: a queue that has none now learns of it.
            if store.waiting() == 1 && self.in_device < self.depth {
                self.select(store, now.0);
            }
        }
        slot
    }

    fn select(&mut self, store: &Store, now: u64) -> u32 {
        loop {
            let Some(class) = self.shares.serving().or_else(|| self.begin_turn(now)) else {
                return NIL;
            };
            let queue = &self.queues[class];
            let (empty, in_device) = (queue.queued == 0, queue.in_device);
            let keeps = empty && self.better_kept(class);
            if self.time_is_up(now, class) && !keeps {
                self.expire(store, now, Reason::Timeout);
            } else if !empty {
                let slot = self.next(store, now, class);
                if self.charge(store.get(slot)) <= self.shares[class].left() {
                    self.turn.kept = None;
                    return slot;
                }
                self.expire(store, now, Reason::Exhausted);
            } else if self.turn.kept.is_some() || in_device > 0 && keeps {
                return self.injected(store, class);
            } else {
                self.expire(store, now, Reason::Empty);
            }
        }
    }

    fn next(&mut self, store: &Store, now: u64, class: u16) -> u32 {
        let oldest = store.oldest(class);
        let limit = FIFO_EXPIRE[usize::from(class != ASYNC)].0;
        if !self.turn.checked && now > store.get(oldest).since + limit {
            self.turn.checked = true;
            return oldest;
        }
        nearest(store, class, self.rate.position, BACK)
    }

    fn give(&mut self, now: u64, rq: &Rq, slot: u32) {
        let (class, charge) = (rq.class, self.charge(rq));
        self.shares.served(class, charge);
        if self.is_raised(class) {
            self.queues[class].raised_served += charge;
        }
        let serving = self.shares.serving() == Some(class);
        if serving {
            self.sampling.given(slot);
        }
        self.rate.given(now, rq, self.in_device);
        self.in_device += 1;
        let queue = &mut self.queues[class];
        queue.in_device += 1;
        queue.queued -= 1;
        if serving {
            self.end_raising(now, class);
        } else if queue.queued == 0 {
            // All that it had was given out while another is served.
            self.asleep(class, false);
            let share = &mut self.shares[class];
            (share.budget, share.service) = (0, 0);
        }
    }

    /// The device has ended a request.
    pub(super) fn ended(&mut self, store: &Store, now: Instant, rq: &Rq, slot: u32) {
        let (class, now) = (rq.class, now.0);
        self.look_at_clock(store, now);
        self.measure(now, class, slot);
        let few = self.shares.serving().is_some_and(|serving| {
            let queue = &self.queues[serving];
            queue.quick && queue.in_device + queue.queued < rate::FEW
        });
        let waiting = store.waiting() as u32;
        self.tags.ended(self.in_device, waiting, few);
        self.in_device -= 1;
        self.rate.ended(now);
        let queue = &mut self.queues[class];
        queue.in_device -= 1;
        queue.last_end = Some(now);
        if queue.in_device == 0 && !queue.busy {
            queue.idle_since = Some(now);
        }
        if self.shares.serving() != Some(class) {
            return;
        }
        let (empty, in_device) = (queue.queued == 0, queue.in_device);
        let keeps = empty && self.better_kept(class);
        if keeps {
            if in_device == 0 {
                self.keep(now, class);
            }
        } else if self.time_is_up(now, class) {
            self.expire(store, now, Reason::Timeout);
        } else if empty {
            self.expire(store, now, Reason::Empty);
        }
    }

    /// When the disk is no longer kept for a process.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.turn.kept.map(|(_, until)| Instant(until))
    }
}

//! bfq: a queue for each process, served in turn by budgets of sectors in the order of B-WF2Q+, so
//! that throughput is shared by weight. A process that reads in order keeps the disk until its budget
//! or its time is used up. `block/bfq-iosched.c`, since 4.12, as it is since 5.12 but where told.
//!
//! Left out: groups and priorities, queues that are joined because processes read side by side, processes that wake others,
//! soft real-time processes, and the bursts of processes that are not raised.
mod inject;
mod joined;
mod rate;
mod shares;
mod task;

use super::history::{ASYNC, Tasks, nearest};
use super::store::{NIL, Rq, Store};
use crate::block::Bio;
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;
use rate::{Rate, Tags};
use shares::Shares;
use task::TaskQueue;

/// `bfq_slice_idle` 8 ms; `BFQ_MIN_TT` 2 ms for a process that seeks, 20 ms for one whose weight is raised.
const SLICE_IDLE: Span = Span::from_millis(8);
const SEEKY_IDLE: Span = Span::from_millis(2);
const RAISED_IDLE: Span = Span::from_millis(20);
/// A process that asks within so many times [`SLICE_IDLE`] after an end has not been idle.
const IN_TIME: u64 = 3;
/// `bfq_timeout` HZ/8: the longest time for a budget.
const TIMEOUT: Span = Span::from_millis(125);
/// `bfq_fifo_expire`: asynchronous, synchronous.
const FIFO_EXPIRE: [Span; 2] = [Span::from_millis(250), Span::from_millis(125)];
/// `bfq_async_charge_factor`: an asynchronous sector counts as three.
const ASYNC_CHARGE: u64 = 3;
/// `bfq_back_max` 16 MiB, in sectors.
const BACK: u64 = 32 * 1024;
/// A rate is taken from turns of more than 20 ms; those of less than 1 ms count as one seek of 8 ms, or 2 ms without an arm.
const LONG_TURN: Span = Span::from_millis(20);
const SHORT_TURN: Span = Span::from_millis(1);
/// `bfq_wr_coeff`: how much more a process weighs that has just begun or has been idle for
/// `bfq_wr_min_idle_time`, until it has had so many sectors (`max_service_from_wr`) or [`Rate::raised_for`] is over.
const RAISED: u64 = 30;
const RAISED_AFTER: Span = Span::from_secs(2);
const RAISED_SECTORS: u64 = 120_000;
/// `bfq_wr_min_inter_arr_async`: writes that nobody waits for are raised when none came for so long.
const RAISED_ASYNC: Span = Span::from_millis(500);

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

/// Why a queue's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Idle,
    Timeout,
    Exhausted,
    Empty,
    Preempted,
}

/// The turn of the queue that is served.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    began: u64,
    ends: u64,
    /// It has been looked whether its oldest request has waited too long.
    checked: bool,
    /// The disk is kept for it: since when, and until when.
    kept: Option<(u64, u64)>,
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
        let rate = Rate::new(rotational);
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

    /// The weight of a process is raised: others get fewer requests.
    pub(super) fn raises(&self) -> bool {
        self.raised > 0
    }

    fn is_raised(&self, class: u16) -> bool {
        self.shares.coefficient(class) > 1
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
            let long_ago = now > self.queues[class].raised_at + RAISED_ASYNC.0;
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

    fn raise(&mut self, class: u16) {
        self.shares.set_coefficient(class, RAISED);
        self.queues[class].raised_for = self.rate.raised_for();
    }

    /// A queue without requests has one, of `charge` sectors: whether its process has just begun to ask.
    fn awake(&mut self, store: &Store, now: u64, class: u16, charge: u64) -> bool {
        let (sync, before) = (class != ASYNC, self.is_raised(class));
        let in_time = IN_TIME * self.with.slice_idle.0;
        let queue = &mut self.queues[class];
        let long_ago = |since: u64| now > since + RAISED_AFTER.0;
        let begins = queue.in_device == 0 && queue.idle_since.is_none_or(long_ago);
        let in_time = queue.last_end.is_none_or(|end| now <= end + in_time);
        let share = &mut self.shares[class];
        // What it would have gone on with, had it not been left.
        let goes_on = queue.waited && in_time && share.left() > 0;
        queue.waited = goes_on;
        share.budget = if goes_on {
            share.left().min(queue.budget)
        } else {
            queue.budget.max(charge)
        };
        share.service = 0;
        if self.with.low_latency && begins && (sync || before) {
            self.raise(class);
            if !before {
                self.queues[class].raised_served = 0;
                let least = 2 * self.rate.budgets().1;
                let share = &mut self.shares[class];
                share.budget = share.budget.min(least.max(charge));
            }
        }
        let queue = &mut self.queues[class];
        queue.busy = true;
        let waited = std::mem::take(&mut queue.waited);
        self.busy += 1;
        self.raised += u32::from(self.is_raised(class));
        self.shares.activate(class, waited);
        if let Some(serving) = self.shares.serving() {
            let (mine, other) = (
                self.shares.coefficient(class),
                self.shares.coefficient(serving),
            );
            let gives_way = self.with.gives_way && !self.better_kept(serving);
            if goes_on && mine >= other || mine > other || gives_way {
                self.expire(store, now, Reason::Preempted);
            }
        }
        begins
    }

    /// The disk has been kept for a process for long enough.
    fn look_at_clock(&mut self, store: &Store, now: u64) {
        let Some((_, until)) = self.turn.kept else {
            return;
        };
        if now >= until {
            let reason = if now >= self.turn.ends {
                Reason::Timeout
            } else {
                Reason::Idle
            };
            self.expire(store, now, reason);
        }
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

    fn begin_turn(&mut self, now: u64) -> Option<u16> {
        let class = self.shares.take()?;
        self.rate.budget_given();
        self.turn = Turn {
            began: now,
            ends: now + self.with.timeout.0 * self.shares.coefficient(class),
            checked: false,
            kept: None,
        };
        Some(class)
    }

    /// Its time is used up, and it is not being waited for or is slow.
    fn time_is_up(&self, now: u64, class: u16) -> bool {
        let share = &self.shares[class];
        let slow = share.left() >= share.budget / 3;
        now >= self.turn.ends && (self.turn.kept.is_none() || slow)
    }

    /// The turn of the queue that is served is over.
    fn expire(&mut self, store: &Store, now: u64, reason: Reason) {
        let Some(class) = self.shares.serving() else {
            return;
        };
        let kept = self.turn.kept.take();
        let (slow, took) = self.slowness(now, class, kept);
        let share = &self.shares[class];
        let unused = reason == Reason::Timeout && share.left() >= share.budget / 3;
        if !self.is_raised(class) && (slow || unused) {
            self.charge_time(class, took);
        }
        if self.with.low_latency && !self.is_raised(class) {
            self.queues[class].raised_at = now;
        }
        self.sampling = inject::Sampling::default();
        self.next_budget(store, class, reason);
        let queue = &self.queues[class];
        let in_device = queue.in_device;
        let kept_on = reason == Reason::Preempted && self.guarantees(class);
        if queue.queued == 0 && !kept_on {
            if in_device == 0 {
                self.queues[class].idle_since = Some(now);
            }
            self.asleep(class, true);
        } else {
            self.shares.requeue(class);
        }
        let queue = &mut self.queues[class];
        if !queue.busy && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            queue.waited = true;
        } else {
            self.shares[class].service = 0;
        }
    }

    /// A queue has no requests any more.
    fn asleep(&mut self, class: u16, turn_over: bool) {
        self.busy -= 1;
        self.raised -= u32::from(self.is_raised(class));
        self.queues[class].busy = false;
        self.shares.deactivate(class, turn_over);
    }

    /// Whether the turn of a process was slow, and the time to charge it for (`bfq_bfqq_is_slow`).
    fn slowness(&self, now: u64, class: u16, kept: Option<(u64, u64)>) -> (bool, u64) {
        let over = kept.filter(|(_, until)| now >= *until);
        let took = over.map_or(now, |(since, _)| since) - self.turn.began;
        let slow = class != ASYNC && self.queues[class].seeky();
        if took < SHORT_TURN.0 {
            let least = if self.rotational {
                self.with.slice_idle
            } else {
                SEEKY_IDLE
            };
            (slow, least.0)
        } else if class != ASYNC && took > LONG_TURN.0 {
            let half = self.rate.max_budget() / 2;
            (self.shares[class].service < half, took)
        } else {
            (slow, took)
        }
    }

    /// Charges a queue for the time that it took, as if it had gone at full rate (`bfq_bfqq_charge_time`).
    fn charge_time(&mut self, class: u16, took: u64) {
        let timeout = self.with.timeout.0;
        let sectors = self.rate.max_budget() * took.min(timeout) / timeout;
        let share = &mut self.shares[class];
        let more = sectors.saturating_sub(share.service);
        share.budget = share.budget.max(sectors);
        self.shares.served(class, more);
    }

    /// What a queue is given next time (`__bfq_bfqq_recalc_budget`).
    fn next_budget(&mut self, store: &Store, class: u16, reason: Reason) {
        let (_, min) = self.rate.budgets();
        let (max, sync, raised) = (
            self.rate.max_budget(),
            class != ASYNC,
            self.is_raised(class),
        );
        let queue = &self.queues[class];
        let budget = match reason {
            _ if !sync => max,
            _ if raised => 2 * min,
            Reason::Idle if queue.in_device > 0 => max.min(queue.budget * 2),
            Reason::Idle if queue.budget > 5 * min => queue.budget - 4 * min,
            Reason::Idle => min,
            Reason::Timeout => max.min(queue.budget * 2),
            Reason::Exhausted => max.min(queue.budget * 4),
            Reason::Empty => self.shares[class].service.max(min),
            Reason::Preempted => return,
        };
        let budget = if self.rate.settled() {
            budget.min(max)
        } else {
            budget
        };
        self.queues[class].budget = budget;
        if self.queues[class].queued > 0 {
            let next = nearest(store, class, self.rate.position, BACK);
            self.shares[class].budget = budget.max(self.charge(store.get(next)));
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

    fn end_raising(&mut self, now: u64, class: u16) {
        let queue = &mut self.queues[class];
        let over = now > queue.raised_at + queue.raised_for || queue.raised_served > RAISED_SECTORS;
        if over && self.shares.coefficient(class) > 1 {
            queue.raised_at = now;
            self.shares.set_coefficient(class, 1);
            self.raised -= 1;
        }
    }

    /// The disk is faster when it is kept idle for a process that asks again soon: always when it takes one request at a time
    /// and has an arm, else when the process reads in order (`idling_boosts_thr_without_issues`).
    fn faster_kept(&self, class: u16) -> bool {
        let queue = &self.queues[class];
        let one = self.tags.queues == Some(false);
        let in_order = !queue.seeky() && queue.bound && queue.quick;
        let faster = self.rotational && one || (self.rotational || one) && in_order;
        faster && self.raised == 0
    }

    /// A process gets its share only when the disk is kept for it (`idling_needed_for_service_guarantees`).
    fn guarantees(&self, class: u16) -> bool {
        let others = self.in_device >= self.queues[class].in_device + 4;
        let raised = self.is_raised(class) && (self.raised < self.busy || others);
        raised || self.with.gives_way && self.busy == 1
    }

    /// Whether the disk is kept for a queue that has no requests (`bfq_better_to_idle`).
    fn better_kept(&self, class: u16) -> bool {
        let never = class == ASYNC || self.with.slice_idle == Span::ZERO;
        !never && (self.faster_kept(class) || self.guarantees(class))
    }

    fn keep(&mut self, now: u64, class: u16) {
        let idle = self.with.slice_idle;
        let span = if self.is_raised(class) {
            idle.max(RAISED_IDLE)
        } else if self.queues[class].seeky() {
            idle.min(SEEKY_IDLE)
        } else {
            idle
        };
        self.turn.kept = Some((now, now + span.0));
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

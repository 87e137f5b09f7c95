//! bfq: a queue for each process, served in turn by budgets of sectors in the order of B-WF2Q+, so
//! that throughput is shared by weight. A process that reads in order keeps the disk until its budget
//! or its time is used up. `block/bfq-iosched.c`, since 4.12.
//!
//! Left out: groups and priorities, merging of processes' queues, injection but of a process's own writes, the bursts of processes
//! that are not raised, and the adapting of the largest budget to the device's rate.
use super::history::{ASYNC, History, Tasks, nearest};
use super::store::{NIL, Rq, Store};
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;

/// `bfq_slice_idle` 8 ms; `BFQ_MIN_TT` 2 ms for a process that seeks.
const SLICE_IDLE: Span = Span::from_millis(8);
const SEEKY_IDLE: Span = Span::from_millis(2);
/// `bfq_default_max_budget`, in sectors; the smallest is a 32nd of it (`bfq_min_budget`).
const MAX_BUDGET: u64 = 16 * 1024;
const MIN_BUDGET: u64 = MAX_BUDGET / 32;
/// `bfq_timeout` HZ/8: the longest time for a budget.
const TIMEOUT: Span = Span::from_millis(125);
/// `bfq_fifo_expire`: asynchronous, synchronous.
const FIFO_EXPIRE: [Span; 2] = [Span::from_millis(250), Span::from_millis(125)];
/// `bfq_async_charge_factor`: an asynchronous sector counts as three.
const ASYNC_CHARGE: u64 = 3;
/// `bfq_back_max` 16 MiB, in sectors.
const BACK: u64 = 32 * 1024;
/// `BFQQ_SEEKY`: more than 19 of the last 32 distances are far.
const SEEKY_OF_32: u32 = 19;
/// `BFQ_HW_QUEUE_THRESHOLD` 3: a device that takes more queues by itself.
const DEVICE_QUEUES: u32 = 4;
/// `bfq_wr_coeff`: how much more a process weighs that has just begun or has been idle for
/// `bfq_wr_min_idle_time`, for so long (`ref_wr_duration`, solid-state and rotating) or until it has
/// had so many sectors (`max_service_from_wr`).
const RAISED: u64 = 30;
const RAISED_AFTER: Span = Span::from_secs(2);
const RAISED_FOR: [Span; 2] = [Span::from_millis(2500), Span::from_secs(7)];
const RAISED_SECTORS: u64 = 120_000;
/// Virtual time of a sector at weight 1: divisible by [`RAISED`].
const SCALE: u64 = RAISED << 10;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// How long the disk is kept idle for a process.
    pub slice_idle: Span,
    /// Most sectors that a process is served in a row.
    pub max_budget: u64,
    /// The longest time for them.
    pub timeout: Span,
    /// Raise the weight of processes that have just begun.
    pub low_latency: bool,
    /// While the disk is kept for a process that has no requests, it takes what the same process wrote and nobody waits for
    /// (`bfq_select_queue`, since 5.2).
    pub own_writes: bool,
}

impl Tunables {
    /// As `kernel` has them.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        Self {
            slice_idle: SLICE_IDLE,
            max_budget: MAX_BUDGET,
            timeout: TIMEOUT,
            low_latency: true,
            own_writes: kernel >= Kernel::Linux(5, 2, 0),
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
}

#[derive(Clone, Copy, Debug)]
struct TaskQueue {
    history: History,
    in_device: u32,
    idles: bool,
    /// It has requests or is being served.
    busy: bool,
    budget: u64,
    /// Sectors charged in this turn.
    served: u64,
    start: u64,
    finish: u64,
    raised_until: u64,
    raised_served: u64,
    idle_since: Option<u64>,
}

impl TaskQueue {
    fn new(sync: bool, max: u64) -> Self {
        Self {
            history: History::default(),
            in_device: 0,
            idles: sync,
            busy: false,
            // A new process begins with two thirds.
            budget: if sync { max * 2 / 3 } else { max },
            served: 0,
            start: 0,
            finish: 0,
            raised_until: 0,
            raised_served: 0,
            idle_since: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bfq {
    with: Tunables,
    rotational: bool,
    tagged: bool,
    queues: Tasks<TaskQueue>,
    /// System virtual time.
    time: u64,
    active: Option<u16>,
    turn_began: u64,
    turn_ends: u64,
    checked: bool,
    idle_until: Option<u64>,
    position: u64,
}

impl Bfq {
    pub(super) fn new(with: Tunables, rotational: bool, depth: u32) -> Self {
        Self {
            with,
            rotational,
            tagged: depth >= DEVICE_QUEUES,
            queues: Tasks::new(TaskQueue::new(false, with.max_budget)),
            time: 0,
            active: None,
            turn_began: 0,
            turn_ends: 0,
            checked: false,
            idle_until: None,
            position: 0,
        }
    }

    pub(super) fn class(&mut self, bio: &crate::block::Bio) -> u16 {
        let max = self.with.max_budget;
        self.queues.class(bio, || TaskQueue::new(true, max))
    }

    fn seeky(&self, class: u16) -> bool {
        self.queues[class].history.far.count_ones() > SEEKY_OF_32
    }

    fn weight(&self, class: u16, now: Instant) -> u64 {
        let queue = &self.queues[class];
        if now.0 < queue.raised_until && queue.raised_served < RAISED_SECTORS {
            RAISED
        } else {
            1
        }
    }

    /// A request has come in.
    pub(super) fn added(&mut self, now: Instant, rq: &Rq) {
        let class = rq.class;
        if class != ASYNC {
            let longest = 2 * self.with.slice_idle.0;
            let idle = self.with.slice_idle.0;
            let history = &mut self.queues[class].history;
            let thought = history.last_end.map_or(0, |end| now.0 - end).min(longest);
            history.request(rq.lba, rq.end(), Some(thought));
            let think = history.think;
            if think.valid() {
                self.queues[class].idles = think.mean <= idle;
            }
        }
        if self.active == Some(class) {
            self.idle_until = None;
        }
        if !self.queues[class].busy {
            self.activate(now, class);
        }
    }

    /// A queue without requests has some again.
    fn activate(&mut self, now: Instant, class: u16) {
        let long = |since: u64| now.0 - since > RAISED_AFTER.0;
        let fresh = self.queues[class].idle_since.is_none_or(long);
        if class != ASYNC && self.with.low_latency && fresh {
            let span = RAISED_FOR[usize::from(self.rotational)];
            let queue = &mut self.queues[class];
            (queue.raised_until, queue.raised_served) = (now.0 + span.0, 0);
        }
        let time = self.time;
        let queue = &mut self.queues[class];
        queue.busy = true;
        queue.start = time.max(queue.finish);
        self.stamp(now, class);
    }

    /// Works out when a queue's budget would be used up, in virtual time.
    fn stamp(&mut self, now: Instant, class: u16) {
        let share = SCALE / self.weight(class, now);
        let queue = &mut self.queues[class];
        queue.served = 0;
        queue.finish = queue.start + queue.budget * share;
    }

    /// The busy queue whose budget ends first, among those whose turn has begun.
    fn choose(&mut self, store: &Store, now: Instant) -> bool {
        let waiting = |class: u16| store.oldest(class) != NIL;
        let classes = self.queues.classes();
        let busy = classes.filter(|&class| waiting(class));
        let Some(first) = busy.clone().map(|class| self.queues[class].start).min() else {
            return false;
        };
        self.time = self.time.max(first);
        let eligible = busy.filter(|&class| self.queues[class].start <= self.time);
        let Some(class) = eligible.min_by_key(|&class| (self.queues[class].finish, class)) else {
            return false;
        };
        self.active = Some(class);
        self.turn_began = now.0;
        self.turn_ends = now.0 + self.with.timeout.0 * self.weight(class, now);
        self.checked = false;
        // A budget is at least one request.
        let least = charge(store.get(store.oldest(class)));
        let queue = &mut self.queues[class];
        queue.budget = queue.budget.max(least);
        true
    }

    /// The turn of the active queue is over.
    fn expire(&mut self, store: &Store, now: Instant, reason: Reason) {
        self.idle_until = None;
        let Some(class) = self.active.take() else {
            return;
        };
        let (max, timeout) = (self.with.max_budget, self.with.timeout.0);
        let share = SCALE / self.weight(class, now);
        let took = now.0 - self.turn_began;
        let queue = &mut self.queues[class];
        let mut charged = queue.served;
        if reason == Reason::Timeout && queue.budget.saturating_sub(charged) >= queue.budget / 3 {
            // It was slow: it pays for the time.
            charged = charged.max(max * took.min(timeout) / timeout);
        }
        queue.finish = queue.start + charged * share;
        queue.budget = match reason {
            _ if class == ASYNC => max,
            Reason::Idle if queue.in_device > 0 => queue.budget * 2,
            Reason::Idle if queue.budget > 5 * MIN_BUDGET => queue.budget - 4 * MIN_BUDGET,
            Reason::Idle => MIN_BUDGET,
            Reason::Timeout => queue.budget * 2,
            Reason::Exhausted => queue.budget * 4,
            Reason::Empty => charged,
        }
        .clamp(MIN_BUDGET.min(max), max);
        let goes_on = store.oldest(class) != NIL;
        self.time += charged * SCALE / self.weights(now, class);
        let queue = &mut self.queues[class];
        if goes_on {
            queue.start = queue.finish;
            self.stamp(now, class);
        } else {
            (queue.busy, queue.served, queue.idle_since) = (false, 0, Some(now.0));
        }
    }

    /// Weights of all queues that have requests, and of that of `class`.
    fn weights(&self, now: Instant, class: u16) -> u64 {
        let classes = self.queues.classes();
        let busy = classes.filter(|&other| other == class || self.queues[other].busy);
        busy.map(|other| self.weight(other, now)).sum()
    }

    /// The request to be given out now; [`NIL`] when none is to be.
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        loop {
            let Some(class) = self.active else {
                if self.choose(store, now) {
                    continue;
                }
                return NIL;
            };
            if now.0 > self.turn_ends {
                self.expire(store, now, Reason::Timeout);
                continue;
            }
            if store.oldest(class) == NIL {
                let idle = self.queues[class].in_device == 0;
                if self.waits(now, class) {
                    return self.own_write(store, now, class);
                }
                let idled = idle && self.idle_until.is_some();
                let reason = if idled { Reason::Idle } else { Reason::Empty };
                self.expire(store, now, reason);
                continue;
            }
            let slot = self.next(store, now, class);
            let rq = store.get(slot);
            let queue = &self.queues[class];
            if queue.served > 0 && queue.served + charge(rq) > queue.budget {
                self.expire(store, now, Reason::Exhausted);
                continue;
            }
            self.give(rq);
            return slot;
        }
    }

    /// What the process of `class`, which the disk is kept for, has written and nobody waits for: its next request, if the
    /// budget of such writes has room for it. The disk is kept for the process all the same.
    fn own_write(&mut self, store: &Store, now: Instant, class: u16) -> u32 {
        if !self.with.own_writes || store.oldest(ASYNC) == NIL {
            return NIL;
        }
        let slot = nearest(store, ASYNC, self.position, BACK);
        let rq = store.get(slot);
        let queue = &self.queues[ASYNC];
        let own = self.queues.of_process(&rq.origin) == Some(class);
        if !own || queue.served + charge(rq) > queue.budget {
            return NIL;
        }
        let kept = self.idle_until;
        self.give(rq);
        self.idle_until = kept;
        self.time += charge(rq) * SCALE / self.weights(now, ASYNC);
        if store.lowest(ASYNC) == slot && store.after(slot) == NIL {
            let queue = &mut self.queues[ASYNC];
            (queue.busy, queue.served, queue.idle_since) = (false, 0, Some(now.0));
        }
        slot
    }

    fn next(&mut self, store: &Store, now: Instant, class: u16) -> u32 {
        let oldest = store.oldest(class);
        let limit = FIFO_EXPIRE[usize::from(class != ASYNC)].0;
        if !self.checked && now.0 > store.get(oldest).since + limit {
            self.checked = true;
            return oldest;
        }
        nearest(store, class, self.position, BACK)
    }

    fn give(&mut self, rq: &Rq) {
        self.position = rq.end();
        self.idle_until = None;
        let queue = &mut self.queues[rq.class];
        queue.in_device += 1;
        queue.served += charge(rq);
        queue.raised_served += charge(rq);
    }

    /// Whether the disk is kept for an active queue that has no requests.
    fn waits(&mut self, now: Instant, class: u16) -> bool {
        if !self.should_idle(class, now) {
            return false;
        }
        if self.queues[class].in_device > 0 {
            return true;
        }
        let until = match self.idle_until {
            Some(until) => until,
            None => self.start_idling(now, class),
        };
        now.0 < until
    }

    /// Idling makes the disk faster when it has an arm (or does not queue) and the process reads in
    /// order; it keeps the shares when weights differ.
    fn should_idle(&self, class: u16, now: Instant) -> bool {
        if class == ASYNC || !self.queues[class].idles {
            return false;
        }
        let plain = self.rotational && !self.tagged;
        let boosts = plain || ((self.rotational || !self.tagged) && !self.seeky(class));
        boosts || self.uneven(class, now)
    }

    fn uneven(&self, class: u16, now: Instant) -> bool {
        let weight = self.weight(class, now);
        self.queues
            .classes()
            .any(|other| self.queues[other].busy && self.weight(other, now) != weight)
    }

    fn start_idling(&mut self, now: Instant, class: u16) -> u64 {
        let mut span = self.with.slice_idle.0;
        if self.seeky(class) && self.weight(class, now) == 1 && !self.uneven(class, now) {
            span = span.min(SEEKY_IDLE.0);
        }
        let until = now.0 + span;
        self.idle_until = Some(until);
        until
    }

    /// The device has ended a request.
    pub(super) fn ended(&mut self, store: &Store, now: Instant, rq: &Rq) {
        let class = rq.class;
        self.queues[class].in_device -= 1;
        if class != ASYNC {
            self.queues[class].history.last_end = Some(now.0);
        }
        let idle = store.oldest(class) == NIL && self.queues[class].in_device == 0;
        if self.active == Some(class) && idle && self.should_idle(class, now) {
            self.start_idling(now, class);
        }
    }

    /// When idling ends by itself.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.idle_until.map(Instant)
    }
}

/// Sectors that a request counts as.
fn charge(rq: &Rq) -> u64 {
    let sectors = u64::from(rq.sectors);
    if rq.class == ASYNC {
        sectors * ASYNC_CHARGE
    } else {
        sectors
    }
}

//! CFQ: a queue for each process that waits for its requests and one for write-back; each has the
//! disk for a slice of time, in turn. A process that reads in order keeps the disk, idle if need be,
//! until its slice is over. `block/cfq-iosched.c`, 2.6.18 to 4.20.
//!
//! Left out: priorities and groups, cooperating processes, and the flag for seeking processes with
//! many requests ("deep").
use super::history::{ASYNC, History, Tasks, nearest};
use super::store::{NIL, Rq, Store};
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;
use std::collections::VecDeque;

/// `cfq_slice_idle` HZ/125; `cfq_slice_sync` HZ/10; `cfq_slice_async` HZ/25.
const SLICE_IDLE: Span = Span::from_millis(8);
const SLICE: [Span; 2] = [Span::from_millis(40), Span::from_millis(100)];
/// `cfq_fifo_expire`: HZ/4 asynchronous, HZ/8 synchronous.
const FIFO_EXPIRE: [Span; 2] = [Span::from_millis(250), Span::from_millis(125)];
/// `cfq_quantum`: 4, and 8 since 2.6.33.
const QUANTUM: [u32; 2] = [4, 8];
/// Asynchronous requests in a slice: `cfq_prio_to_maxrq` with `cfq_slice_async_rq` 2 at the usual
/// priority of 4: 2 x (2 + 2 x (8 - 1 - 4)).
const ASYNC_REQUESTS: u32 = 16;
/// `cfq_back_max` 16 MiB, in sectors.
const BACK: u64 = 32 * 1024;
/// `CFQ_MIN_TT` 2 ms: how long a process that seeks is waited for, to 2.6.32.
const SEEKY_IDLE: Span = Span::from_millis(2);
/// `CIC_SEEKY`: mean distance in sectors; 128 Ki to 2.6.27, 8 Ki to 2.6.32. Since 2.6.33 more than 4
/// of the last 32 distances are far (`CFQQ_SEEKY`).
const SEEKY: [u64; 2] = [128 * 1024, 8 * 1024];
const SEEKY_OF_32: u32 = 4;
/// `cfq_target_latency`: what all slices together should last at most.
const TARGET_LATENCY: Span = Span::from_millis(300);
/// `CFQ_HW_QUEUE_MIN`: a device that takes this many requests queues by itself.
const DEVICE_QUEUES: u32 = 5;

/// Which of its ways a version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// To 2.6.21: a slice runs from the first request on, and a process that is not waited for gives
    /// way after a quantum.
    First,
    /// To 2.6.27: a slice runs from the first end.
    Sliced,
    /// To 2.6.31: a lower limit for what counts as seeking; no idling on solid-state disks.
    Selective,
    /// 2.6.32: asynchronous requests wait for synchronous ones in the device and begin slowly
    /// (`low_latency`).
    Latency,
    /// Since 2.6.33: slices shrink with the number of processes, and processes that seek share the
    /// idling at the end of their turn.
    Trees,
}

/// What it makes of a request that says that nothing will follow it nearby ([`Origin::last`](crate::block::Origin::last)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// Nothing: there is no such mark (to 2.6.29).
    Nothing,
    /// The disk is not kept idle when it has ended (`cfq_completed_request` to 2.6.32).
    End,
    /// The same for processes that seek; the others are waited for (to 2.6.36, `noidle_tree_requires_idle`).
    EndOfSeeking,
    /// Its process counts as one that seeks, for which alone the disk is not kept ("cfq: improve fsync performance for small
    /// files", 2.6.37).
    Process,
}

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Its ways.
    pub version: Version,
    /// And those with what is written for `fsync`.
    pub last: Last,
    /// How long the disk is kept idle for a process.
    pub slice_idle: Span,
    /// Length of an asynchronous and a synchronous slice.
    pub slice: [Span; 2],
    /// Age from which an asynchronous and a synchronous request is preferred.
    pub fifo_expire: [Span; 2],
    /// Requests of a process in the device while others wait.
    pub quantum: u32,
}

impl Tunables {
    /// As a kernel has them.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let version = match kernel {
            old if old < Kernel::Linux(2, 6, 22) => Version::First,
            old if old < Kernel::Linux(2, 6, 28) => Version::Sliced,
            old if old < Kernel::Linux(2, 6, 32) => Version::Selective,
            old if old < Kernel::Linux(2, 6, 33) => Version::Latency,
            _ => Version::Trees,
        };
        let last = match kernel {
            old if old < Kernel::Linux(2, 6, 30) => Last::Nothing,
            old if old < Kernel::Linux(2, 6, 33) => Last::End,
            old if old < Kernel::Linux(2, 6, 37) => Last::EndOfSeeking,
            _ => Last::Process,
        };
        Self {
            version,
            last,
            slice_idle: SLICE_IDLE,
            slice: SLICE,
            fifo_expire: FIFO_EXPIRE,
            quantum: QUANTUM[usize::from(version == Version::Trees)],
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct TaskQueue {
    history: History,
    in_device: u32,
    /// Waiting for its next request is worth while.
    idles: bool,
    /// The request that ended last said that nothing will follow it.
    last: bool,
    /// In line for a slice.
    queued: bool,
}

impl TaskQueue {
    fn new(idles: bool) -> Self {
        Self {
            history: History::default(),
            in_device: 0,
            idles,
            last: false,
            queued: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cfq {
    with: Tunables,
    rotational: bool,
    /// The device queues by itself.
    tagged: bool,
    /// By class.
    queues: Tasks<TaskQueue>,
    line: VecDeque<u16>,
    active: Option<u16>,
    /// End of the slice, once it runs.
    slice_end: Option<u64>,
    /// Requests given out in the slice.
    given: u32,
    /// The age of the oldest was looked at in this slice.
    checked: bool,
    idle_until: Option<u64>,
    position: u64,
    /// Asynchronous and synchronous requests in the device.
    in_device: [u32; 2],
    /// When a synchronous request ended last that had waited too long.
    last_delayed: u64,
}

impl Cfq {
    pub(super) fn new(with: Tunables, rotational: bool, depth: u32) -> Self {
        Self {
            with,
            rotational,
            tagged: depth >= DEVICE_QUEUES,
            queues: Tasks::new(TaskQueue::new(false)),
            line: VecDeque::new(),
            active: None,
            slice_end: None,
            given: 0,
            checked: false,
            idle_until: None,
            position: 0,
            in_device: [0; 2],
            last_delayed: 0,
        }
    }

    pub(super) fn class(&mut self, bio: &crate::block::Bio) -> u16 {
        self.queues.class(bio, || TaskQueue::new(true))
    }

    /// Whether a process's requests are far apart.
    fn seeky(&self, class: u16) -> bool {
        let history = &self.queues[class].history;
        let version = self.with.version;
        if version == Version::Trees {
            return history.far.count_ones() > SEEKY_OF_32;
        }
        let limit = SEEKY[usize::from(version >= Version::Selective)];
        history.seek.valid() && history.seek.mean > limit
    }

    /// A request has come in.
    pub(super) fn added(&mut self, now: Instant, rq: &Rq) {
        let class = rq.class;
        if class != ASYNC {
            self.remember(now, rq);
        }
        if self.active == Some(class) {
            self.idle_until = None;
            return;
        }
        if !self.queues[class].queued {
            self.queues[class].queued = true;
            self.line.push_back(class);
        }
        if class != ASYNC && self.active == Some(ASYNC) {
            // Whoever waits for a request cuts a slice of write-back short.
            self.line.retain(|&other| other != class);
            self.line.push_front(class);
            self.expire();
        }
    }

    fn remember(&mut self, now: Instant, rq: &Rq) {
        let longest = 2 * self.with.slice_idle.0;
        let history = &mut self.queues[rq.class].history;
        let thought = history.last_end.map_or(0, |end| now.0 - end).min(longest);
        history.request(rq.lba, rq.end(), Some(thought));
        let think = history.think;
        let stops = self.tagged || self.with.version == Version::Trees;
        let last = rq.origin.last && self.with.last == Last::Process;
        if last || (stops && self.seeky(rq.class)) {
            self.queues[rq.class].idles = false;
        } else if think.valid() {
            self.queues[rq.class].idles = think.mean <= self.with.slice_idle.0;
        }
    }

    /// The slice is over. A queue that has requests lines up again when the next one is chosen.
    fn expire(&mut self) {
        let ended = self.active.take();
        if let Some(class) = ended.filter(|&class| !self.queues[class].queued) {
            self.queues[class].queued = true;
            self.line.push_back(class);
        }
        self.slice_end = None;
        self.idle_until = None;
    }

    /// The next queue with requests.
    fn choose(&mut self, store: &Store) -> bool {
        while let Some(class) = self.line.pop_front() {
            self.queues[class].queued = false;
            if store.oldest(class) != NIL {
                self.active = Some(class);
                (self.given, self.checked) = (0, false);
                return true;
            }
        }
        false
    }

    /// The request to be given out now; [`NIL`] when none is to be.
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        loop {
            let Some(class) = self.active else {
                if self.choose(store) {
                    continue;
                }
                return NIL;
            };
            if self.slice_end.is_some_and(|end| now.0 > end) {
                self.expire();
                continue;
            }
            if store.oldest(class) != NIL {
                if self.may_give(store, now, class) {
                    return self.give(store, now, class);
                }
                return NIL;
            }
            if self.waits(store, now, class) {
                return NIL;
            }
            self.expire();
        }
    }

    /// Whether the disk is kept for an active queue that has no requests.
    fn waits(&mut self, store: &Store, now: Instant, class: u16) -> bool {
        if class == ASYNC || !self.should_idle(store, class) {
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

    fn start_idling(&mut self, now: Instant, class: u16) -> u64 {
        let mut span = self.with.slice_idle.0;
        if self.with.version < Version::Trees && self.seeky(class) {
            span = span.min(SEEKY_IDLE.0);
        }
        let until = now.0 + span;
        self.idle_until = Some(until);
        until
    }

    fn should_idle(&self, store: &Store, class: u16) -> bool {
        let version = self.with.version;
        if version >= Version::Selective && !self.rotational && self.tagged {
            return false;
        }
        let TaskQueue { idles, last, .. } = self.queues[class];
        let unexpected = match self.with.last {
            Last::End => last,
            Last::EndOfSeeking => last && !idles,
            Last::Nothing | Last::Process => false,
        };
        if unexpected {
            return false;
        }
        if idles {
            return true;
        }
        // Processes that are not waited for one by one share the wait of the last of them.
        let shares = |&other: &u16| {
            other != ASYNC && !self.queues[other].idles && store.oldest(other) != NIL
        };
        version == Version::Trees && !self.line.iter().any(shares)
    }

    /// Whether another queue has requests.
    fn others(&self, store: &Store) -> bool {
        self.line.iter().any(|&other| store.oldest(other) != NIL)
    }

    /// Whether the active queue may have another request in the device.
    fn may_give(&self, store: &Store, now: Instant, class: u16) -> bool {
        let version = self.with.version;
        if version == Version::First {
            return true;
        }
        let queue = &self.queues[class];
        if version >= Version::Latency {
            let [behind, sync] = self.in_device;
            if class == ASYNC {
                // Write-back begins slowly after a read that had to wait long.
                let calm = (now.0 - self.last_delayed) / self.with.slice[1].0;
                if sync > 0 || u64::from(queue.in_device) >= calm.max(1) {
                    return false;
                }
            } else if behind > 0 && queue.idles {
                return false;
            }
        }
        queue.in_device < self.with.quantum || !self.others(store)
    }

    fn give(&mut self, store: &Store, now: Instant, class: u16) -> u32 {
        let sync = usize::from(class != ASYNC);
        let oldest = store.oldest(class);
        let limit = self.with.fifo_expire[sync].0;
        let late = !self.checked && now.0 > store.get(oldest).since + limit;
        let slot = if late {
            self.checked = true;
            oldest
        } else {
            nearest(store, class, self.position, BACK)
        };
        self.position = store.get(slot).end();
        self.idle_until = None;
        self.queues[class].in_device += 1;
        self.in_device[sync] += 1;
        self.given += 1;
        if self.slice_end.is_none() && self.with.version == Version::First {
            self.start_slice(store, now, class);
        }
        let passes = self.with.version == Version::First
            && !self.queues[class].idles
            && self.given >= self.with.quantum;
        if passes || (class == ASYNC && self.given >= ASYNC_REQUESTS) {
            self.expire();
        }
        slot
    }

    fn start_slice(&mut self, store: &Store, now: Instant, class: u16) {
        let mut slice = self.with.slice[usize::from(class != ASYNC)].0;
        if self.with.version == Version::Trees && class != ASYNC {
            let busy = |&&other: &&u16| other != ASYNC && store.oldest(other) != NIL;
            let processes = 1 + self.line.iter().filter(busy).count() as u64;
            let fair = TARGET_LATENCY.0 / processes;
            slice = slice.min(fair.max(2 * self.with.slice_idle.0));
        }
        self.slice_end = Some(now.0 + slice);
    }

    /// The device has ended a request.
    pub(super) fn ended(&mut self, store: &Store, now: Instant, rq: &Rq) {
        let class = rq.class;
        let sync = usize::from(class != ASYNC);
        self.in_device[sync] -= 1;
        self.queues[class].in_device -= 1;
        if class != ASYNC {
            self.queues[class].history.last_end = Some(now.0);
            self.queues[class].last = rq.origin.last;
            if now.0 > rq.since + self.with.fifo_expire[1].0 {
                self.last_delayed = now.0;
            }
        }
        if self.active != Some(class) {
            return;
        }
        if self.slice_end.is_none() {
            self.start_slice(store, now, class);
        }
        let idle = store.oldest(class) == NIL && self.queues[class].in_device == 0;
        if class != ASYNC && idle && self.should_idle(store, class) {
            self.start_idling(now, class);
        }
    }

    /// When idling ends by itself.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.idle_until.map(Instant)
    }
}

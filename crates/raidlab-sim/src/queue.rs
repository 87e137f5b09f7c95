//! The kernel's request queue of one device: merging, plugging, I/O schedulers.
//!
//! A [`Queue`] is given bios, joins neighbours into requests, holds them back a little for more to
//! come, and gives out one request at a time when asked. It does not own the device: its owner calls
//! [`dispatch`](Queue::dispatch) until nothing comes after every submission, unplugging and end, and
//! at [`next_event`](Queue::next_event), and tells it by [`ended`](Queue::ended) what the device has
//! done. No time given may be earlier than one given before.
//!
//! Left out: I/O priorities and control groups, zoned devices, and the partial success of a request:
//! when a request fails, all bios in it fail.
mod deadline;
mod spec;
mod store;

pub use deadline::Tunables as DeadlineTunables;
pub use spec::{Plugging, Policy, QueueSpec, Requests};

use crate::block::{Bio, Ended};
use crate::disk::DiskError;
use deadline::Deadline;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;
use store::{NIL, Store};

/// Youngest requests that a bio may join without a scheduler (`blk_bio_list_merge`, `blk-merge.c`).
const NONE_LOOKS_BACK: usize = 8;
/// A process hands over what it has collected at the moment it submitted it.
const TASK_DELAY: Span = Span(1);

/// What orders the requests, with its state.
#[derive(Clone, Debug)]
enum Order {
    /// The first sector from here on is next.
    Elevator(u64),
    Fifo,
    Deadline(Deadline),
}

/// The request queue of one device.
#[derive(Clone, Debug)]
pub struct Queue {
    spec: QueueSpec,
    store: Store,
    order: Order,
    in_device: u32,
    /// Requests there are, waiting or in the device, by group.
    used: [u32; 2],
    /// Bios that wait for a request, by group.
    starved: [VecDeque<Bio>; 2],
    /// The barrier that all others wait for, and what came after it.
    behind: VecDeque<Bio>,
    barrier: bool,
    /// Bios that wait for the next flush, and those that wait for the one under way.
    flushes: Vec<u64>,
    flushing: Vec<u64>,
    /// Waiting requests are held back until then.
    plugged: Option<Instant>,
    /// Requests since the queue was plugged.
    collected: u32,
    /// The request that was last joined or made.
    last: u32,
    merges: u64,
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(spec: QueueSpec) -> Self {
        let order = match spec.policy {
            Policy::Elevator => Order::Elevator(0),
            Policy::Noop | Policy::None => Order::Fifo,
            Policy::Deadline(with) => Order::Deadline(Deadline::new(with)),
        };
        Self {
            spec,
            store: Store::new(),
            order,
            in_device: 0,
            used: [0; 2],
            starved: [VecDeque::new(), VecDeque::new()],
            behind: VecDeque::new(),
            barrier: false,
            flushes: Vec::new(),
            flushing: Vec::new(),
            plugged: None,
            collected: 0,
            last: NIL,
            merges: 0,
        }
    }

    /// As it was made.
    #[must_use]
    pub fn spec(&self) -> &QueueSpec {
        &self.spec
    }

    /// What waits and is not in the device: requests, and bios that are not part of one yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let bios = self.starved[0].len() + self.starved[1].len() + self.behind.len();
        self.store.waiting() + bios + self.flushes.len()
    }

    /// Requests in the device.
    #[must_use]
    pub fn in_device(&self) -> u32 {
        self.in_device
    }

    /// Bios that were joined to others so far.
    #[must_use]
    pub fn merges(&self) -> u64 {
        self.merges
    }

    /// Whether a submitter who does not want to wait should stop: nearly all requests of the group
    /// are in use (`queue_congestion_on_threshold`: seven eighths).
    #[must_use]
    pub fn congested(&self, kind: BlockKind, sync: bool) -> bool {
        let group = self.group(kind, sync);
        let limit = self.spec.requests.each[group];
        let used = self.used[group] + self.starved[group].len() as u32;
        used > limit - limit / 8
    }

    #[inline]
    fn group(&self, kind: BlockKind, sync: bool) -> usize {
        let first = if self.spec.requests.by_sync {
            sync || kind == BlockKind::Read
        } else {
            kind == BlockKind::Read
        };
        usize::from(!first)
    }

    /// Takes a bio at `now`: joined to a neighbour where the kernel would, else a request of its own.
    #[inline]
    pub fn submit(&mut self, now: Instant, bio: Bio) {
        let special = bio.kind == BlockKind::Flush || bio.fua;
        if special || !self.behind.is_empty() {
            self.submit_special(now, bio);
        } else {
            self.take_in(now, bio);
        }
    }

    fn submit_special(&mut self, now: Instant, bio: Bio) {
        let ordered = bio.kind == BlockKind::Flush || (bio.fua && bio.kind == BlockKind::Write);
        if !self.behind.is_empty() {
            self.behind.push_back(bio);
        } else if ordered && self.spec.barriers {
            self.behind.push_back(bio);
            self.unplug(now);
        } else if bio.kind == BlockKind::Flush {
            self.flushes.push(bio.id);
        } else {
            self.take_in(now, bio);
        }
    }

    /// Joins a bio to a request, makes one of it, or lets it wait for a free one.
    #[inline]
    fn take_in(&mut self, now: Instant, bio: Bio) {
        let class = self.class(&bio);
        if self.store.waiting() > 0 && !bio.fua && self.merge(&bio, class) {
            self.merges += 1;
            return;
        }
        let group = self.group(bio.kind, bio.origin.sync);
        if !self.starved[group].is_empty() || !self.room(group) {
            self.starved[group].push_back(bio);
            // Whoever waits for a request lets those there are go.
            self.unplug(now);
            return;
        }
        self.make(now, &bio, class, group);
    }

    #[inline]
    fn room(&self, group: usize) -> bool {
        let limits = &self.spec.requests;
        self.used[group] < limits.each[group] && self.used[0] + self.used[1] < limits.total
    }

    /// Makes a request of a bio and plugs the queue.
    #[inline]
    fn make(&mut self, now: Instant, bio: &Bio, class: u16, group: usize) {
        let idle = self.store.waiting() == 0;
        self.used[group] += 1;
        self.last = self.store.insert(now, bio, class, group as u8);
        match self.spec.plugging {
            Plugging::Off => {}
            Plugging::Queue { threshold, delay } => {
                if idle {
                    self.plugged = Some(now + delay);
                }
                if self.store.waiting() >= threshold as usize {
                    self.plugged = None;
                }
            }
            Plugging::Task { threshold } => {
                if self.plugged.is_none() {
                    self.collected = 0;
                }
                self.collected += 1;
                self.plugged = (self.collected < threshold).then(|| now + TASK_DELAY);
            }
        }
    }

    #[inline]
    fn class(&self, bio: &Bio) -> u16 {
        match &self.order {
            Order::Elevator(_) | Order::Fifo => 0,
            Order::Deadline(_) => Deadline::class(bio.kind),
        }
    }

    /// Whether a bio may be part of a request.
    #[inline]
    fn fits(&self, slot: u32, bio: &Bio) -> bool {
        let rq = self.store.get(slot);
        rq.kind == bio.kind && !rq.fua && rq.sectors + bio.sectors <= self.spec.max_sectors
    }

    /// Joins a bio to a waiting request that it lies next to.
    fn merge(&mut self, bio: &Bio, class: u16) -> bool {
        if self.last != NIL && self.store.get(self.last).class == class {
            // Most bios follow the one before.
            let rq = self.store.get(self.last);
            if rq.end() == bio.lba.0 && self.fits(self.last, bio) {
                self.merge_back(self.last, bio);
                return true;
            }
            if rq.lba == bio.end() && self.fits(self.last, bio) {
                self.merge_front(self.last, bio);
                return true;
            }
        }
        let (back, front) = match self.spec.policy {
            Policy::None => self.recent(bio),
            // Only those that keep requests sorted find one by its beginning.
            Policy::Noop => (self.store.ending_at(class, bio.lba.0), NIL),
            _ => (
                self.store.ending_at(class, bio.lba.0),
                self.store.beginning_at(class, bio.end()),
            ),
        };
        if back != NIL && self.fits(back, bio) {
            self.merge_back(back, bio);
            true
        } else if front != NIL && self.fits(front, bio) {
            self.merge_front(front, bio);
            true
        } else {
            false
        }
    }

    /// Neighbours of a bio among the last few requests: ending where it begins, beginning where it
    /// ends.
    fn recent(&self, bio: &Bio) -> (u32, u32) {
        for slot in self.store.youngest_first(0).take(NONE_LOOKS_BACK) {
            let rq = self.store.get(slot);
            if rq.end() == bio.lba.0 {
                return (slot, NIL);
            }
            if rq.lba == bio.end() {
                return (NIL, slot);
            }
        }
        (NIL, NIL)
    }

    fn merge_back(&mut self, slot: u32, bio: &Bio) {
        self.store.merge_back(slot, bio);
        self.last = slot;
        let next = self.store.after(slot);
        if next != NIL {
            self.join(slot, next);
        }
    }

    fn merge_front(&mut self, slot: u32, bio: &Bio) {
        self.store.merge_front(slot, bio);
        self.last = slot;
        let rq = self.store.get(slot);
        let before = self.store.ending_at(rq.class, rq.lba);
        if before != NIL {
            self.join(before, slot);
        }
    }

    /// Joins two requests when the gap between them has been filled.
    fn join(&mut self, slot: u32, next: u32) {
        let (rq, tail) = (self.store.get(slot), self.store.get(next));
        let fits = rq.sectors + tail.sectors <= self.spec.max_sectors;
        if rq.end() != tail.lba || rq.kind != tail.kind || rq.fua || tail.fua || !fits {
            return;
        }
        self.used[usize::from(tail.group)] -= 1;
        if let Order::Deadline(deadline) = &mut self.order {
            deadline.leaves(&self.store, next);
        }
        self.store.join(slot, next);
        self.last = slot;
    }

    /// The submitter waits, or has submitted all it wanted to: nothing is held back any more.
    #[inline]
    pub fn unplug(&mut self, _now: Instant) {
        self.plugged = None;
    }

    /// The next request for the device, its number the queue's own; `None` when there is none to be
    /// given now: nothing waits, the device has all it takes, or the queue holds back.
    #[inline]
    pub fn dispatch(&mut self, now: Instant) -> Option<Bio> {
        if self.in_device >= self.spec.depth {
            return None;
        }
        if !self.flushes.is_empty() && self.flushing.is_empty() {
            return Some(self.flush(now));
        }
        if self.store.waiting() == 0 {
            return self.barrier(now);
        }
        if let Some(until) = self.plugged {
            if now < until {
                return None;
            }
            self.plugged = None;
        }
        let slot = self.pick(now);
        if slot == NIL {
            return None;
        }
        self.store.remove(slot);
        if self.last == slot {
            self.last = NIL;
        }
        Some(self.give(now, slot))
    }

    #[inline]
    fn give(&mut self, now: Instant, slot: u32) -> Bio {
        self.store.start(slot, now);
        self.in_device += 1;
        let mut bio = self.store.get(slot).bio(slot);
        bio.fua &= self.spec.fua;
        bio
    }

    #[inline]
    fn pick(&mut self, now: Instant) -> u32 {
        match &mut self.order {
            Order::Fifo => self.store.oldest(0),
            Order::Elevator(position) => {
                let (_, after) = self.store.around(0, *position);
                let slot = if after == NIL {
                    self.store.lowest(0)
                } else {
                    after
                };
                *position = self.store.get(slot).end();
                slot
            }
            Order::Deadline(deadline) => deadline.pick(&self.store, now),
        }
    }

    /// One flush for all who wait for one.
    fn flush(&mut self, now: Instant) -> Bio {
        std::mem::swap(&mut self.flushes, &mut self.flushing);
        let bio = Bio {
            id: self.flushing[0],
            kind: BlockKind::Flush,
            lba: raidlab_core::units::Lba(0),
            sectors: 0,
            fua: false,
            origin: crate::block::Origin::default(),
        };
        let slot = self.store.alloc(now, &bio, 0, 0);
        self.used[0] += 1;
        self.give(now, slot)
    }

    /// The barrier, once all before it has ended.
    fn barrier(&mut self, now: Instant) -> Option<Bio> {
        if self.barrier || self.in_device > 0 || !self.flushing.is_empty() {
            return None;
        }
        let bio = *self.behind.front()?;
        let group = self.group(bio.kind, bio.origin.sync);
        let slot = self.store.alloc(now, &bio, 0, group as u8);
        self.used[group] += 1;
        self.barrier = true;
        Some(self.give(now, slot))
    }

    /// The device has ended the request `id` at `now`. The ends of its bios are added to `done`, in
    /// the order of their addresses.
    #[inline]
    pub fn ended(
        &mut self,
        now: Instant,
        id: u64,
        result: Result<(), DiskError>,
        done: &mut Vec<Ended>,
    ) {
        let slot = id as u32;
        let rq = *self.store.get(slot);
        self.in_device -= 1;
        self.used[usize::from(rq.group)] -= 1;
        if matches!(self.spec.plugging, Plugging::Queue { .. }) {
            // A driver that ends a request looks for the next.
            self.plugged = None;
        }
        if rq.kind == BlockKind::Flush || rq.fua {
            self.special_ended(now, slot, result, done);
        } else {
            self.store.end(slot, now, result, done);
        }
        if !self.starved[0].is_empty() || !self.starved[1].is_empty() {
            self.admit(now);
        }
    }

    fn special_ended(
        &mut self,
        now: Instant,
        slot: u32,
        result: Result<(), DiskError>,
        done: &mut Vec<Ended>,
    ) {
        let rq = *self.store.get(slot);
        if rq.kind == BlockKind::Flush && !self.flushing.is_empty() {
            let ids = self.flushing.drain(..);
            done.extend(ids.map(|id| Ended {
                id,
                at: now,
                result,
            }));
            self.store.forget(slot);
        } else if rq.fua && rq.kind == BlockKind::Write && !self.spec.fua && result.is_ok() {
            // The device may still have it in its buffer: it ends with a flush.
            self.flushes.push(self.store.first_bio(slot));
            self.store.forget(slot);
            return;
        } else {
            self.store.end(slot, now, result, done);
        }
        if std::mem::take(&mut self.barrier) {
            self.pass_barrier(now);
        }
    }

    /// The barrier has ended: what came after it goes on, up to the next one.
    fn pass_barrier(&mut self, now: Instant) {
        self.behind.pop_front();
        while let Some(&bio) = self.behind.front() {
            if bio.kind == BlockKind::Flush || (bio.fua && bio.kind == BlockKind::Write) {
                break;
            }
            self.behind.pop_front();
            self.take_in(now, bio);
        }
        self.unplug(now);
    }

    /// Makes requests of bios that waited for one.
    fn admit(&mut self, now: Instant) {
        for group in 0..2 {
            while self.room(group) {
                let Some(bio) = self.starved[group].pop_front() else {
                    break;
                };
                let class = self.class(&bio);
                if self.store.waiting() > 0 && !bio.fua && self.merge(&bio, class) {
                    self.merges += 1;
                } else {
                    self.make(now, &bio, class, group);
                }
            }
        }
        // They have waited long enough.
        self.unplug(now);
    }

    /// When [`dispatch`](Self::dispatch) may give something by itself; `None` when only a submission,
    /// an unplugging or an end can change what it gives.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        if self.store.waiting() == 0 || self.in_device >= self.spec.depth {
            return None;
        }
        self.plugged
    }
}

#[cfg(test)]
mod tests;

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
mod anticipatory;
mod bfq;
mod cfq;
mod deadline;
mod elevator;
mod history;
mod kyber;
mod merge;
mod order;
mod pass;
mod spec;
mod special;
mod starved;
mod store;
mod vdev;
mod wbt;

pub use anticipatory::Tunables as AnticipatoryTunables;
pub use bfq::Tunables as BfqTunables;
pub use cfq::{Tunables as CfqTunables, Version as CfqVersion};
pub use deadline::Tunables as DeadlineTunables;
pub use elevator::Tunables as ElevatorTunables;
pub use kyber::Tunables as KyberTunables;
pub use spec::{Admits, Plugging, Policy, QueueSpec, Requests};
pub use vdev::Tunables as VdevTunables;
pub use wbt::Tunables as WbtTunables;

use crate::block::{Bio, Ended};
use crate::disk::DiskError;
use order::Order;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use starved::Starved;
use std::collections::VecDeque;
use store::{NIL, Store, TRACKED};
use wbt::Wbt;

/// Sectors of a request that lets what was collected go (`BLK_PLUG_FLUSH_SIZE`).
const LARGE: u32 = 256;

/// A process hands over what it has collected at the moment it submitted it.
const TASK_DELAY: Span = Span(1);

/// The request queue of one device.
#[derive(Clone, Debug)]
pub struct Queue {
    spec: QueueSpec,
    store: Store,
    order: Order,
    in_device: u32,
    /// Requests there are, waiting or in the device, by group.
    used: [u32; 2],
    /// Those who wait for a request, by group.
    starved: [Starved; 2],
    /// Holds back write-back that nobody waits for.
    wbt: Option<Box<Wbt>>,
    /// A list for those who are let go, empty between.
    woken: Vec<starved::Waiter>,
    /// It has something to look at: else nothing of what comes and ends is told to it.
    watches: bool,
    /// Others read until a moment before.
    read_until: Instant,
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
        Self {
            order: Order::new(&spec),
            wbt: spec.wbt.map(|with| Box::new(Wbt::new(with, spec.depth))),
            woken: Vec::new(),
            watches: false,
            read_until: Instant::ZERO,
            spec,
            store: Store::new(),
            in_device: 0,
            used: [0; 2],
            starved: [Starved::default(), Starved::default()],
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
        let held = self.wbt.as_ref().map_or(0, |wbt| wbt.waiting());
        let bios = self.starved[0].len() + self.starved[1].len() + self.behind.len() + held;
        self.store.waiting() + bios + self.flushes.len()
    }

    /// Whether nothing waits: then there is nothing to dispatch, and will not be by itself.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.store.waiting() == 0 && self.behind.is_empty() && self.flushes.is_empty()
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
        let first = (kind == BlockKind::Read) | (sync & self.spec.requests.by_sync);
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

    /// Joins a bio to a request, makes one of it, or lets it wait for a free one.
    #[inline(always)]
    fn take_in(&mut self, now: Instant, bio: Bio) {
        let class = self.order.class(now, &bio);
        if self.store.waiting() > 0 && !bio.fua && self.merge(&bio, class) {
            self.merges += 1;
            return;
        }
        if bio.kind == BlockKind::Read {
            self.read_until = now + wbt::CLOSE;
        } else if Wbt::tracks(&bio) && self.wbt.is_some() && self.holds(now, &bio) {
            return;
        }
        self.find_room(now, bio, class);
    }

    #[inline]
    fn room(&self, group: usize) -> bool {
        let limits = &self.spec.requests;
        let mut each = limits.each[group];
        if group == 1 && self.order.favours() {
            each = limits.beside_favoured;
        }
        self.used[group] < each && self.used[0] + self.used[1] < limits.total
    }

    /// Makes a request of a bio and plugs the queue.
    #[inline(always)]
    fn make(&mut self, now: Instant, bio: &Bio, class: u16, group: usize) {
        let idle = self.store.waiting() == 0;
        self.used[group] += 1;
        let tracked = Wbt::tracks(bio) && self.wbt.is_some();
        let mark = if tracked { TRACKED } else { 0 };
        self.last = self.store.insert(now, bio, class, group as u8 | mark);
        self.order
            .added(&self.store, now, self.store.get(self.last));
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

    /// Whether a bio lies next to the request that was joined or made last.
    pub(crate) fn follows(&self, bio: &Bio) -> bool {
        let next_to = |rq: &store::Rq| rq.end() == bio.lba.0 || rq.lba == bio.end();
        self.latest()
            .is_some_and(|slot| next_to(self.store.get(slot)) && self.fits(slot, bio))
    }

    /// Whether the request that was joined or made last waits and is as large as one that goes off by itself.
    pub(crate) fn has_large(&self) -> bool {
        self.latest()
            .is_some_and(|slot| self.store.get(slot).sectors >= LARGE)
    }

    fn latest(&self) -> Option<u32> {
        (self.last != NIL && self.store.waiting() > 0).then_some(self.last)
    }

    /// The submitter waits, or has submitted all it wanted to: nothing is held back any more.
    #[inline]
    pub fn unplug(&mut self, _now: Instant) {
        self.plugged = None;
    }

    /// The next request for the device, its number the queue's own; `None` when there is none to be
    /// given now: nothing waits, the device has all it takes, or the queue holds back.
    #[inline(always)]
    pub fn dispatch(&mut self, now: Instant) -> Option<Bio> {
        let slot = self.next_slot(now)?;
        Some(self.give(now, slot))
    }

    /// Takes out the next request for the device.
    #[inline(always)]
    fn next_slot(&mut self, now: Instant) -> Option<u32> {
        if self.in_device >= self.spec.depth {
            return None;
        }
        if !self.flushes.is_empty() && self.flushing.is_empty() {
            return Some(self.flush(now));
        }
        if self.store.waiting() == 0 {
            return if self.behind.is_empty() {
                None
            } else {
                self.barrier(now)
            };
        }
        if let Some(until) = self.plugged {
            if now < until {
                return None;
            }
            self.plugged = None;
        }
        let slot = self.order.pick(&self.store, now);
        if slot == NIL {
            return None;
        }
        let slot = if matches!(self.spec.policy, Policy::Vdev(_)) {
            self.take_along(slot)
        } else {
            self.store.remove(slot);
            slot
        };
        if self.last == slot {
            self.last = NIL;
        }
        Some(slot)
    }

    /// Takes a request that ZFS gives out from those that wait, with its neighbours. It counts as one of its class.
    #[inline(never)]
    fn take_along(&mut self, slot: u32) -> u32 {
        let class = self.store.get(slot).class;
        let slot = self.gather(slot);
        // What was joined may be the one that the next bio would have been compared with.
        self.last = NIL;
        self.store.remove(slot);
        self.store.becomes(slot, class);
        self.order.given(self.store.get(slot));
        slot
    }

    #[inline]
    fn give(&mut self, now: Instant, slot: u32) -> Bio {
        self.store.start(slot, now);
        self.in_device += 1;
        if self.watches {
            self.watched_start(now, slot);
        }
        let mut bio = self.store.get(slot).bio(slot);
        bio.fua &= self.spec.fua;
        bio
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
        self.each_end(now, id, result, |end| done.push(end));
    }

    /// The same, handing over the ends one by one.
    #[inline(always)]
    pub(crate) fn each_end(
        &mut self,
        now: Instant,
        id: u64,
        result: Result<(), DiskError>,
        mut each: impl FnMut(Ended),
    ) {
        if Self::has_passed(id) {
            let (id, at) = (self.passed_ended(now, id), now);
            return each(Ended { id, at, result });
        }
        self.in_device -= 1;
        self.driver_looks();
        let slot = id as u32;
        let let_go = self.watches && self.watched_end(now, slot);
        let rq = self.store.get(slot);
        if rq.kind == BlockKind::Read {
            self.read_until = now + wbt::CLOSE;
        }
        self.used[rq.group()] -= 1;
        // Flushes and barriers go past the scheduler.
        if rq.kind != BlockKind::Flush && !self.barrier {
            self.order.ended(&self.store, now, slot);
        }
        let bios = if rq.kind == BlockKind::Flush || rq.fua {
            self.special_ended(now, slot, result)
        } else {
            Some(self.store.take(slot))
        };
        let (mut left, at) = (bios, now);
        while let Some(bios) = left {
            let id = bios.first;
            each(Ended { id, at, result });
            left = self.store.next_of(bios);
        }
        if !self.starved[0].is_empty() || !self.starved[1].is_empty() {
            self.admit(now);
        }
        if let_go {
            self.let_go(now);
        }
    }

    /// A driver that ends a request looks for the next.
    #[inline]
    fn driver_looks(&mut self) {
        if matches!(self.spec.plugging, Plugging::Queue { .. }) {
            self.plugged = None;
        }
    }

    /// When [`dispatch`](Self::dispatch) may give something by itself; `None` when only a submission,
    /// an unplugging or an end can change what it gives.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        if self.store.waiting() == 0 || self.in_device >= self.spec.depth {
            return None;
        }
        self.plugged.or_else(|| self.order.wake())
    }

    /// The same, later than anything when nothing is given by itself.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.next_event().unwrap_or(Instant(u64::MAX))
    }
}

#[cfg(test)]
mod tests;

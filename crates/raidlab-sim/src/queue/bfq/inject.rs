//! Requests of others while the disk is kept for a process (`bfq_choose_bfqq_for_injection`): its own that it does not wait
//! for, and as many as do not make its requests much slower.
use super::{ASYNC, BACK, Bfq};
use crate::queue::history::nearest;
use crate::queue::store::{NIL, Store};

/// `BFQQ_SECT_THR_NONROT`: of larger ones a solid-state disk is given one.
const LARGE: u32 = 64;

/// How long a request of the queue that is served takes, from when it comes to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampling {
    /// Others were let through.
    injected: bool,
    /// The next request given out is the one that is measured.
    waits: bool,
    measured: Option<u32>,
    since: u64,
}

impl Sampling {
    pub(super) fn given(&mut self, slot: u32) {
        if std::mem::take(&mut self.waits) {
            self.measured = Some(slot);
        }
    }
}

impl Bfq {
    /// A request comes to a queue that somebody waits for: it is measured when nothing is in the device, or what was let
    /// through.
    pub(super) fn sample(&mut self, now: u64, class: u16) {
        let queue = &mut self.queues[class];
        if !self.with.injects || queue.queued > 0 {
            return;
        }
        queue.renew_limit(now);
        let none = self.in_device == 0;
        let tells = none || queue.inject.alone > 0 && self.sampling.injected;
        if self.shares.serving() == Some(class) && tells && queue.inject.may_measure(now) {
            self.sampling.since = now;
            self.sampling.waits = true;
            self.sampling.injected &= !none;
        }
    }

    /// The request that was measured has ended.
    pub(super) fn measure(&mut self, now: u64, class: u16, slot: u32) {
        if self.sampling.measured != Some(slot) {
            return;
        }
        let took = now - self.sampling.since;
        let (injected, most) = (self.sampling.injected, self.tags.most);
        let inject = &mut self.queues[class].inject;
        inject.measured(now, took, injected, self.in_device, most);
        self.sampling.measured = None;
        self.sampling.injected = false;
    }

    /// The request of another to be given out while the disk is kept for `class`, or [`NIL`].
    pub(super) fn injected(&mut self, store: &Store, class: u16) -> u32 {
        if !self.with.injects {
            return NIL;
        }
        let own = self.own_write(store, class);
        if own != NIL {
            return own;
        }
        let quick = self.queues[class].quick;
        let always = !self.is_raised(class) || !quick;
        if self.faster_kept(class) || !(always || self.raised > 1) {
            return NIL;
        }
        let limit = self.queues[class].inject.limit;
        if self.in_device >= limit {
            return NIL;
        }
        for other in self.queues.classes() {
            if other == class || self.queues[other].queued == 0 {
                continue;
            }
            let slot = nearest(store, other, self.rate.position, BACK);
            let rq = store.get(slot);
            let fits = self.charge(rq) <= self.shares[other].left();
            let large = !self.rotational && rq.sectors >= LARGE;
            let limit = if large { limit.min(1) } else { limit };
            if fits && (always || self.is_raised(other)) && self.in_device < limit {
                self.sampling.injected = true;
                return slot;
            }
        }
        NIL
    }

    /// What the process of `class` has written and nobody waits for: its next request, if the budget of such writes has room
    /// for it.
    fn own_write(&self, store: &Store, class: u16) -> u32 {
        if self.queues[ASYNC].queued == 0 {
            return NIL;
        }
        let slot = nearest(store, ASYNC, self.rate.position, BACK);
        let rq = store.get(slot);
        let own = self.queues.of_process(&rq.origin) == Some(class);
        if own && self.charge(rq) <= self.shares[ASYNC].left() {
            slot
        } else {
            NIL
        }
    }
}

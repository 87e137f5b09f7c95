//! What the queue tells its throttle, and who sleeps there.
use super::super::Queue;
use super::super::starved::{Starved, Waiter};
use super::Wbt;
use crate::block::Bio;
use raidlab_core::time::Instant;

impl Queue {
    /// Whether a bio that is tracked has to wait until less of its kind is there.
    #[inline(never)]
    pub(in super::super) fn holds(&mut self, now: Instant, bio: &Bio) -> bool {
        if self.wbt.as_mut().is_some_and(|wbt| wbt.look(now)) {
            self.let_go(now);
        }
        let until = self.read_until;
        let taken = self.wbt.as_mut().map(|wbt| wbt.takes(now, bio, until));
        self.watches = true;
        let holds = taken == Some(false);
        if holds {
            // Whoever sleeps lets those there are go.
            self.unplug(now);
        }
        holds
    }

    /// Notes that the device was given a request.
    #[inline(never)]
    pub(in super::super) fn watched_start(&mut self, now: Instant, slot: u32) {
        let kind = self.store.get(slot).kind;
        if let Some(wbt) = &mut self.wbt {
            wbt.given(now, slot, kind);
        }
    }

    /// Notes the end of a request that the device had; true when those that wait may be looked at.
    #[inline(never)]
    pub(in super::super) fn watched_end(&mut self, now: Instant, slot: u32) -> bool {
        let rq = self.store.get(slot);
        let (kind, started, tracked) = (rq.kind, Instant(rq.started), rq.is_tracked());
        let Some(wbt) = &mut self.wbt else {
            return false;
        };
        let grown = wbt.look(now);
        wbt.ended(now, slot, kind, started);
        // The last one may have become part of one that is not tracked, which has ended by now.
        let fewer = (tracked && wbt.leaves(now)) || wbt.in_flight == 0;
        self.watches = wbt.in_flight > 0 || wbt.ends.is_some() || wbt.waiting() > 0;
        if !self.watches {
            wbt.reading = None;
        }
        (grown || fewer) && wbt.waiting() > 0
    }

    /// Wakes who sleeps (`rq_qos_wake_function`): each in turn is given one request, until one may have none yet. Those go on then, and
    /// sleep again behind the others where there may be no more.
    #[inline(never)]
    pub(in super::super) fn let_go(&mut self, now: Instant) {
        let mut woken = std::mem::take(&mut self.woken);
        while let Some(bio) = self.held().and_then(|held| held.front().copied()) {
            if !self.makes_of_held(now, bio) {
                break;
            }
            let waiter = self.held().and_then(Starved::pop);
            woken.extend(waiter.map(|mut waiter| {
                waiter.bios.pop_front();
                waiter
            }));
        }
        for mut waiter in woken.drain(..) {
            self.goes_on(now, &mut waiter);
            if let Some(held) = self.held() {
                held.put_back(waiter);
            }
        }
        self.woken = woken;
        // They have waited long enough.
        self.unplug(now);
    }

    fn held(&mut self) -> Option<&mut Starved> {
        self.wbt.as_mut().map(|wbt| &mut wbt.waiting)
    }

    /// Whoever has slept submits what it still has as far as it may.
    fn goes_on(&mut self, now: Instant, waiter: &mut Waiter) {
        while let Some(&bio) = waiter.bios.front() {
            let sleeps = self.held().is_some_and(|held| !held.is_empty());
            if sleeps || !self.makes_of_held(now, bio) {
                break;
            }
            waiter.bios.pop_front();
        }
    }

    /// Joins a bio that was held back to another, or makes a request of it if there may be one more.
    fn makes_of_held(&mut self, now: Instant, bio: Bio) -> bool {
        let class = self.order.class(now, &bio);
        if self.store.waiting() > 0 && !bio.fua && self.merge(&bio, class) {
            self.merges += 1;
            return true;
        }
        let until = self.read_until;
        let Some(wbt) = self.wbt.as_mut().filter(|wbt| wbt.may(now, &bio, until)) else {
            return false;
        };
        wbt.in_flight += 1;
        self.find_room(now, bio, class);
        true
    }

    /// Whether a bio may pass by all that is counted here.
    pub(in super::super) fn lets_pass(&self, bio: &Bio) -> bool {
        !self.watches && !Wbt::tracks(bio)
    }

    /// A writer is held back for how much is dirty on this device itself.
    pub(crate) fn writer_sleeps(&mut self, now: Instant) {
        if let Some(wbt) = &mut self.wbt {
            wbt.slept = Some(now);
        }
    }
}

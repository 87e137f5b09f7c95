//! The way past a queue in which nothing waits: the device is given a bio at once, and nothing is kept of it.
use super::store::NIL;
use super::{Order, Queue};
use crate::block::Bio;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;

/// In the number of a request that the device was given by [`Queue::pass`]: nothing is kept of it, and its number is that
/// of its bio with this and, for the second group, [`SECOND`].
const PASSED: u64 = 1 << 63;
const SECOND: u64 = 1 << 62;

impl Queue {
    /// Whether a bio that is submitted now and sent off at once would be dispatched at once: nothing waits here, the
    /// device has room, and nobody orders. See [`pass`](Self::pass).
    #[inline]
    pub(crate) fn passes(&self, bio: &Bio) -> bool {
        let group = self.group(bio.kind, bio.origin.sync);
        if self.wbt.is_some() && !self.lets_pass(bio) {
            return false;
        }
        let plain = bio.kind != BlockKind::Flush && !bio.fua && matches!(self.order, Order::Fifo);
        let room = self.in_device < self.spec.depth && self.room(group) && !self.fills(group);
        plain && room && self.is_empty() && self.starved[group].is_empty() && bio.id < SECOND
    }

    /// Submits a bio that [passes](Self::passes), unplugs, and dispatches it, without what these three do for those that
    /// wait; `None` when it does not. Nobody can join it by then, nor does anybody order, so that its number and group are
    /// all that its end needs.
    #[inline]
    pub(crate) fn pass(&mut self, bio: &Bio) -> Option<Bio> {
        if !self.passes(bio) {
            return None;
        }
        let group = self.group(bio.kind, bio.origin.sync);
        self.used[group] += 1;
        self.in_device += 1;
        (self.plugged, self.last) = (None, NIL);
        Some(Bio {
            id: bio.id | PASSED | (group as u64 * SECOND),
            ..*bio
        })
    }

    /// Whether the request `id` has [passed](Self::pass), so that it has one bio, and its end is told by
    /// [`passed_ended`](Self::passed_ended).
    #[inline]
    pub(crate) const fn has_passed(id: u64) -> bool {
        id & PASSED != 0
    }

    /// The device has ended the request `id`, which has [passed](Self::pass), at `now`; the number of its bio.
    #[inline]
    pub(crate) fn passed_ended(&mut self, now: Instant, id: u64) -> u64 {
        self.in_device -= 1;
        self.used[usize::from(id & SECOND != 0)] -= 1;
        self.driver_looks();
        if !self.starved[0].is_empty() || !self.starved[1].is_empty() {
            self.admit(now);
        }
        id & (SECOND - 1)
    }
}

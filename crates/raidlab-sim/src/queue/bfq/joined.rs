//! Queues of processes that began at the same time are taken to work on one thing, and joined (`bfq_do_or_sched_stable_merge`):
//! with a disk that has an arm after a while, unless the disk is faster when it is kept for one of them by then. They are not
//! separated again.
use super::Bfq;
use super::raised::RAISED;
use crate::block::Bio;

/// A process that begins later than this after the first is the next first (`bfq_activation_stable_merging`); one that begins
/// within `bfq_burst_interval` of it is joined with it.
const NEW: u64 = 600_000_000;
const TOGETHER: u64 = 180_000_000;
/// A queue is joined when it has been there for so long (`bfq_late_stable_merging`).
const JOINED_AFTER: u64 = 600_000_000;

impl Bfq {
    /// A process has asked for the first time.
    pub(super) fn may_join(&mut self, class: u16) {
        let created = self.queues[class].created;
        let Some(first) = self.first else {
            self.first = Some(class);
            return;
        };
        let after = created - self.queues[first].created;
        if after > NEW {
            self.first = Some(class);
        } else if after <= TOGETHER {
            self.queues[class].joins = Some(first);
        }
    }

    /// The queue of a process of `class`: that which its own is to be joined to, when it is time.
    pub(super) fn joined(&mut self, now: u64, class: u16, bio: &Bio) -> u16 {
        let queue = &self.queues[class];
        let Some(other) = queue.joins else {
            return class;
        };
        // A solid-state disk that queues, or whose queueing is not known yet, is never faster when kept for one.
        let at_once = !self.rotational && self.tags.queues != Some(false);
        if !at_once && now <= queue.created + JOINED_AFTER {
            return class;
        }
        self.queues[class].joins = None;
        if !at_once && self.faster_kept(class) {
            return class;
        }
        self.queues.moves(&bio.origin, other);
        let from = self.queues[class];
        self.queues[other].bound |= from.bound;
        if self.is_raised(class) {
            self.shares.set_coefficient(class, 1);
            self.raised -= u32::from(from.busy);
            if !self.is_raised(other) {
                let queue = &mut self.queues[other];
                (queue.raised_at, queue.raised_for) = (from.raised_at, from.raised_for);
                self.raised += u32::from(queue.busy);
                self.shares.set_coefficient(other, RAISED);
            }
        }
        other
    }
}

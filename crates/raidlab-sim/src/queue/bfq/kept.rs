//! Whether the disk is kept idle for a process that has no request, and for how long.
use super::{ASYNC, Bfq};
use raidlab_core::time::Span;

/// A process that seeks is waited for no longer than `BFQ_MIN_TT`, 2 ms, and one whose weight is raised for 20 ms.
pub(super) const SEEKY_IDLE: Span = Span::from_millis(2);
const RAISED_IDLE: Span = Span::from_millis(20);

impl Bfq {
    /// The disk is faster when it is kept idle for a process that asks again soon: always when it takes one request at a time
    /// and has an arm, else when the process reads in order (`idling_boosts_thr_without_issues`).
    pub(super) fn faster_kept(&self, class: u16) -> bool {
        let queue = &self.queues[class];
        let one = self.tags.queues == Some(false);
        let in_order = !queue.seeky() && queue.bound && queue.quick;
        let faster = self.rotational && one || (self.rotational || one) && in_order;
        faster && self.raised == 0
    }

    /// A process gets its share only when the disk is kept for it (`idling_needed_for_service_guarantees`).
    pub(super) fn guarantees(&self, class: u16) -> bool {
        let others = self.in_device >= self.queues[class].in_device + 4;
        let raised = self.is_raised(class) && (self.raised < self.busy || others);
        raised || self.with.gives_way && self.busy == 1
    }

    /// Whether the disk is kept for a queue that has no requests (`bfq_better_to_idle`).
    pub(super) fn better_kept(&self, class: u16) -> bool {
        let never = class == ASYNC || self.with.slice_idle == Span::ZERO;
        !never && (self.faster_kept(class) || self.guarantees(class))
    }

    pub(super) fn keep(&mut self, now: u64, class: u16) {
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
}

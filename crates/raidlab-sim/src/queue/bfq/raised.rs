//! Processes that have just begun: their weight is raised. And what else comes of a queue that has requests again.
use super::{ASYNC, Bfq, Reason};
use crate::queue::store::Store;
use raidlab_core::time::Span;

/// A process that asks within so many times `slice_idle` after an end has not been idle.
const IN_TIME: u64 = 3;
/// `bfq_wr_coeff`: how much more a process weighs that has just begun or has been idle for
/// `bfq_wr_min_idle_time`, until it has had so many sectors (`max_service_from_wr`) or the time of `Rate::raised_for` is over.
pub(super) const RAISED: u64 = 30;
const RAISED_AFTER: Span = Span::from_secs(2);
const RAISED_SECTORS: u64 = 120_000;
/// `bfq_wr_min_inter_arr_async`: writes that nobody waits for are raised when none came for so long.
pub(super) const RAISED_ASYNC: Span = Span::from_millis(500);

impl Bfq {
    /// The weight of a process is raised: others get fewer requests.
    pub(in crate::queue) fn raises(&self) -> bool {
        self.raised > 0
    }

    pub(super) fn is_raised(&self, class: u16) -> bool {
        self.shares.coefficient(class) > 1
    }

    pub(super) fn raise(&mut self, class: u16) {
        self.shares.set_coefficient(class, RAISED);
        self.queues[class].raised_for = self.rate.raised_for();
    }

    /// A queue without requests has one, of `charge` sectors: whether its process has just begun to ask.
    pub(super) fn awake(&mut self, store: &Store, now: u64, class: u16, charge: u64) -> bool {
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
            let [mine, other] = [class, serving].map(|class| self.shares.coefficient(class));
            let gives_way = self.with.gives_way && !self.better_kept(serving);
            if goes_on && mine >= other || mine > other || gives_way {
                self.expire(store, now, Reason::Preempted);
            }
        }
        begins
    }

    pub(super) fn end_raising(&mut self, now: u64, class: u16) {
        let queue = &mut self.queues[class];
        let over = now > queue.raised_at + queue.raised_for || queue.raised_served > RAISED_SECTORS;
        if over && self.shares.coefficient(class) > 1 {
            queue.raised_at = now;
            self.shares.set_coefficient(class, 1);
            self.raised -= 1;
        }
    }
}

//! Turns: when one is over, what it is charged for, and what the queue is given next time.
use super::kept::SEEKY_IDLE;
use super::{ASYNC, BACK, Bfq, inject};
use crate::queue::history::nearest;
use crate::queue::store::Store;
use raidlab_core::time::Span;

/// A rate is taken from turns of more than 20 ms; those of less than 1 ms count as one seek of 8 ms, or 2 ms without an arm.
const LONG_TURN: Span = Span::from_millis(20);
const SHORT_TURN: Span = Span::from_millis(1);

/// Why a queue's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Idle,
    Timeout,
    Exhausted,
    Empty,
    Preempted,
}

/// The turn of the queue that is served.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub(super) began: u64,
    pub(super) ends: u64,
    /// It has been looked whether its oldest request has waited too long.
    pub(super) checked: bool,
    /// The disk is kept for it: since when, and until when.
    pub(super) kept: Option<(u64, u64)>,
}

impl Bfq {
    pub(super) fn begin_turn(&mut self, now: u64) -> Option<u16> {
        let class = self.shares.take()?;
        self.rate.budget_given();
        self.turn = Turn {
            began: now,
            ends: now + self.with.timeout.0 * self.shares.coefficient(class),
            checked: false,
            kept: None,
        };
        Some(class)
    }

    /// Its time is used up, and it is not being waited for or is slow.
    pub(super) fn time_is_up(&self, now: u64, class: u16) -> bool {
        let share = &self.shares[class];
        let slow = share.left() >= share.budget / 3;
        now >= self.turn.ends && (self.turn.kept.is_none() || slow)
    }

    /// The turn of the queue that is served is over.
    pub(super) fn expire(&mut self, store: &Store, now: u64, reason: Reason) {
        let Some(class) = self.shares.serving() else {
            return;
        };
        let kept = self.turn.kept.take();
        let (slow, took) = self.slowness(now, class, kept);
        let share = &self.shares[class];
        let unused = reason == Reason::Timeout && share.left() >= share.budget / 3;
        if !self.is_raised(class) && (slow || unused) {
            self.charge_time(class, took);
        }
        if self.with.low_latency && !self.is_raised(class) {
            self.queues[class].raised_at = now;
        }
        self.sampling = inject::Sampling::default();
        self.next_budget(store, class, reason);
        let queue = &self.queues[class];
        let in_device = queue.in_device;
        let kept_on = reason == Reason::Preempted && self.guarantees(class);
        if queue.queued == 0 && !kept_on {
            if in_device == 0 {
                self.queues[class].idle_since = Some(now);
            }
            self.asleep(class, true);
        } else {
            self.shares.requeue(class);
        }
        let queue = &mut self.queues[class];
        if !queue.busy && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            queue.waited = true;
        } else {
            self.shares[class].service = 0;
        }
    }

    /// A queue has no requests any more.
    pub(super) fn asleep(&mut self, class: u16, turn_over: bool) {
        self.busy -= 1;
        self.raised -= u32::from(self.is_raised(class));
        self.queues[class].busy = false;
        self.shares.deactivate(class, turn_over);
    }

    /// Whether the turn of a process was slow, and the time to charge it for (`bfq_bfqq_is_slow`).
    fn slowness(&self, now: u64, class: u16, kept: Option<(u64, u64)>) -> (bool, u64) {
        let over = kept.filter(|(_, until)| now >= *until);
        let took = over.map_or(now, |(since, _)| since) - self.turn.began;
        let slow = class != ASYNC && self.queues[class].seeky();
        if took < SHORT_TURN.0 {
            let least = if self.rotational {
                self.with.slice_idle
            } else {
                SEEKY_IDLE
            };
            (slow, least.0)
        } else if class != ASYNC && took > LONG_TURN.0 {
            let half = self.rate.max_budget() / 2;
            (self.shares[class].service < half, took)
        } else {
            (slow, took)
        }
    }

    /// Charges a queue for the time that it took, as if it had gone at full rate (`bfq_bfqq_charge_time`).
    fn charge_time(&mut self, class: u16, took: u64) {
        let timeout = self.with.timeout.0;
        let sectors = self.rate.max_budget() * took.min(timeout) / timeout;
        let share = &mut self.shares[class];
        let more = sectors.saturating_sub(share.service);
        share.budget = share.budget.max(sectors);
        self.shares.served(class, more);
    }

    /// What a queue is given next time (`__bfq_bfqq_recalc_budget`).
    fn next_budget(&mut self, store: &Store, class: u16, reason: Reason) {
        let (_, min) = self.rate.budgets();
        let (max, sync, raised) = (
            self.rate.max_budget(),
            class != ASYNC,
            self.is_raised(class),
        );
        let queue = &self.queues[class];
        let budget = match reason {
            _ if !sync => max,
            _ if raised => 2 * min,
            Reason::Idle if queue.in_device > 0 => max.min(queue.budget * 2),
            Reason::Idle if queue.budget > 5 * min => queue.budget - 4 * min,
            Reason::Idle => min,
            Reason::Timeout => max.min(queue.budget * 2),
            Reason::Exhausted => max.min(queue.budget * 4),
            Reason::Empty => self.shares[class].service.max(min),
            Reason::Preempted => return,
        };
        let budget = if self.rate.settled() {
            budget.min(max)
        } else {
            budget
        };
        self.queues[class].budget = budget;
        if self.queues[class].queued > 0 {
            // Enough for whichever is next.
            let next = nearest(store, class, self.rate.position, BACK);
            let charges = [next, store.oldest(class)].map(|slot| self.charge(store.get(slot)));
            self.shares[class].budget = budget.max(charges[0]).max(charges[1]);
        }
    }

    /// The disk has been kept for a process for long enough.
    pub(super) fn look_at_clock(&mut self, store: &Store, now: u64) {
        let Some((_, until)) = self.turn.kept else {
            return;
        };
        if now >= until {
            let reason = if now >= self.turn.ends {
                Reason::Timeout
            } else {
                Reason::Idle
            };
            self.expire(store, now, reason);
        }
    }
}

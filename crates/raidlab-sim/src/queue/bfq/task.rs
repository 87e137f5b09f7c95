//! What bfq knows of one process.
use super::rate;
use crate::queue::history::Mean;
use crate::queue::store::Rq;

/// `BFQQ_SEEKY`: more than 19 of the last 32 distances are far.
const SEEKY_OF_32: u32 = 19;
/// What is remembered of how busy a process keeps the disk: 200 ms (`bfq_update_io_intensity`).
const REMEMBERED: u64 = 200_000_000;
/// The limit of injected requests is found anew after so long, and measured no more often than that.
const INJECT_ANEW: u64 = 1_000_000_000;
const INJECT_AGAIN: u64 = 10_000_000;
/// A change of how long the process thinks is no reason to find it anew before that.
const INJECT_KEPT: u64 = 100_000_000;

/// A queue of requests: a process's, or that of all that nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskQueue {
    pub(super) created: u64,
    /// It may be joined to this one.
    pub(super) joins: Option<u16>,
    pub(super) queued: u32,
    pub(super) in_device: u32,
    /// It has requests, is being served, or is kept for when it has.
    pub(super) busy: bool,
    /// Sectors that it is given next time (`bfqq->max_budget`).
    pub(super) budget: u64,
    /// It had to be left because it had no request, and might have one soon.
    pub(super) waited: bool,
    /// Since when it has neither requests nor any in the device; `None`: it never had.
    pub(super) idle_since: Option<u64>,
    pub(super) last_end: Option<u64>,
    /// When its weight was raised, or when it last did anything while it is not.
    pub(super) raised_at: u64,
    pub(super) raised_for: u64,
    pub(super) raised_served: u64,
    think: Mean,
    /// It asks again soon after an end.
    pub(super) quick: bool,
    /// The last 32 distances, a bit each: set when far. The first is taken as far.
    far: u32,
    position: u64,
    /// It asks for more nearly all the time.
    pub(super) bound: bool,
    watched_since: Option<u64>,
    idle: u64,
    pub(super) inject: Inject,
}

/// How many requests of others a device may have while it is kept for this one (`bfq_update_inject_limit`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inject {
    pub(super) limit: u32,
    /// What a request takes with none of others; 0 where that is unknown.
    pub(super) alone: u64,
    changed: u64,
}

impl Inject {
    fn reset(&mut self, now: u64, quick: bool) {
        *self = Self {
            limit: u32::from(!quick),
            alone: 0,
            changed: now,
        };
    }

    pub(super) fn may_measure(&self, now: u64) -> bool {
        now >= self.changed + INJECT_AGAIN
    }

    fn changed_long_ago(&self, now: u64) -> bool {
        now >= self.changed + INJECT_ANEW
    }

    /// A request took `took`, with some of others or without; the device had `in_device` with it, and `most` ever.
    pub(super) fn measured(
        &mut self,
        now: u64,
        took: u64,
        injected: bool,
        in_device: u32,
        most: u32,
    ) {
        let before = self.limit;
        if self.alone > 0 && injected {
            let slow = took >= self.alone * 3 / 2;
            if slow && before > 0 {
                self.limit -= 1;
                self.changed = now;
            } else if !slow && before <= most {
                self.limit += 1;
            }
        }
        let none_else = in_device == 1;
        if self.alone == 0 && none_else {
            self.limit = before.max(1);
            self.alone = took;
        } else if took < self.alone || !injected && none_else {
            self.alone = took;
        }
    }
}

impl TaskQueue {
    pub(super) fn new(sync: bool, now: u64, max_budget: u64) -> Self {
        Self {
            created: now,
            joins: None,
            queued: 0,
            in_device: 0,
            busy: false,
            budget: max_budget * 2 / 3,
            waited: false,
            idle_since: None,
            last_end: None,
            raised_at: 0,
            raised_for: 0,
            raised_served: 0,
            think: Mean::default(),
            quick: sync,
            far: 1,
            position: 0,
            bound: true,
            watched_since: None,
            idle: 0,
            inject: Inject::default(),
        }
    }

    pub(super) fn seeky(&self) -> bool {
        self.far.count_ones() > SEEKY_OF_32
    }

    /// A request that somebody waits for has come. `idle`: the longest time for which a disk is kept idle; `half`: half of it
    /// counts as long.
    pub(super) fn learn(&mut self, now: u64, rq: &Rq, idle: u64, half: bool, rotational: bool) {
        if self.in_device == 0 && !self.busy {
            let thought = self.last_end.map_or(0, |end| now - end);
            self.think.add(thought.min(2 * idle));
        }
        let long = if half { idle / 2 } else { idle };
        let quick = !self.think.valid() || self.think.mean <= long;
        let changed = quick != std::mem::replace(&mut self.quick, quick);
        if changed && self.inject.alone == 0 && (!quick || now >= self.inject.changed + INJECT_KEPT)
        {
            self.inject.reset(now, quick);
        }
        self.far = self.far << 1 | u32::from(rate::seeks(self.position, rq, rotational));
        self.position = rq.end();
        self.watch(now);
    }

    /// Finds the limit of injected requests anew when it is old.
    pub(super) fn renew_limit(&mut self, now: u64) {
        if self.inject.changed_long_ago(now) {
            self.inject.reset(now, self.quick);
        }
    }

    /// Whether it is idle for no more than a fifth of the time.
    fn watch(&mut self, now: u64) {
        let Some(since) = self.watched_since else {
            self.watched_since = Some(now);
            return;
        };
        if self.queued == 0 && self.in_device == 0 {
            self.idle += self.last_end.map_or(0, |end| now - end);
        }
        let span = now - since;
        self.bound = self.idle * 5 <= span;
        if span > REMEMBERED {
            self.watched_since = Some(now - span / 2);
            self.idle /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_let_through_as_long_as_it_harms_little() {
        let (ms, second) = (1_000_000, 1_000_000_000);
        let mut queue = TaskQueue::new(true, 0, 16_384);
        queue.renew_limit(second);
        assert_eq!(queue.inject.limit, 0, "it asks again soon");
        // What a request takes alone has to be known first; then one is tried, and more as long as it is not half as slow again.
        queue.inject.measured(second, 10 * ms, false, 1, 8);
        assert_eq!((queue.inject.limit, queue.inject.alone), (1, 10 * ms));
        for limit in 2..=4 {
            queue.inject.measured(second, 14 * ms, true, 2, 8);
            assert_eq!(queue.inject.limit, limit);
        }
        queue.inject.measured(second + 5 * ms, 15 * ms, true, 2, 8);
        assert_eq!(queue.inject.limit, 3);
        assert!(!queue.inject.may_measure(second + 14 * ms));
        assert!(queue.inject.may_measure(second + 15 * ms));
        // Never more than the device ever had, and one.
        for _ in 0..20 {
            queue.inject.measured(second + 20 * ms, 10 * ms, true, 2, 4);
        }
        assert_eq!(queue.inject.limit, 5);
        queue.renew_limit(2 * second);
        assert_eq!(queue.inject.limit, 5, "changed less than a second ago");
        queue.renew_limit(2 * second + 5 * ms);
        assert_eq!((queue.inject.limit, queue.inject.alone), (0, 0));
    }
}

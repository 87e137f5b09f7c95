//! What bfq finds out about the device: how fast it is at its best, which sets the largest budget and how long a weight is
//! raised, and whether it queues by itself.
use crate::queue::history::FAR;
use crate::queue::store::Rq;
use raidlab_core::time::Span;

/// `BFQ_RATE_SHIFT`: rates are in sectors a microsecond, times 2 to this.
const SHIFT: u32 = 16;
/// `ref_rate`, and `ref_wr_duration` in ns: rotating, solid-state.
const REFERENCE: [u64; 2] = [14_000, 33_000];
const RAISED_FOR: [u64; 2] = [7_000_000_000, 2_500_000_000];
/// The longest and shortest time for which a weight is raised (`bfq_wr_duration`).
const RAISED_LIMITS: [u64; 2] = [3_000_000_000, 25_000_000_000];
/// `BFQ_RATE_MIN_SAMPLES`, `BFQ_RATE_MIN_INTERVAL`, `BFQ_RATE_REF_INTERVAL`.
const MIN_SAMPLES: u64 = 32;
const MIN_INTERVAL: u64 = 300_000_000;
const INTERVAL: u64 = 1_000_000_000;
/// A device that has been given nothing for so long and has nothing to do was idle.
const LONG: u64 = 100_000_000;
/// `BFQ_MIN_TT`: shorter than this is at once.
const AT_ONCE: u64 = 2_000_000;
/// `BFQQ_SECT_THR_NONROT`: with a solid-state disk only smaller requests are seeks.
const SMALL: u32 = 64;
/// `bfq_default_max_budget`, until so many budgets have been given out (`bfq_stats_min_budgets`, a decaying count).
const MAX_BUDGET: u64 = 16 * 1024;
const BUDGETS: u64 = 194;
/// `BFQ_HW_QUEUE_THRESHOLD` and `BFQ_HW_QUEUE_SAMPLES`.
const QUEUES: u32 = 3;
const QUEUE_SAMPLES: u32 = 32;

/// Whether a request is far from `position`, where the last one ended.
pub(super) fn seeks(position: u64, rq: &Rq, rotational: bool) -> bool {
    position != 0 && position.abs_diff(rq.lba) > FAR && (rotational || rq.sectors < SMALL)
}

/// How fast the device is at its best.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    rotational: bool,
    /// The longest time for a budget, in ms: the largest is what the device transfers in that time.
    timeout_ms: u64,
    peak: u64,
    max_budget: u64,
    budgets: u64,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first: u64,
    span: u64,
    last_given: u64,
    pub(super) last_end: u64,
    pub(super) position: u64,
}

impl Rate {
    pub(super) fn new(rotational: bool, timeout: Span) -> Self {
        Self {
            rotational,
            timeout_ms: timeout.0 / 1_000_000,
            peak: REFERENCE[usize::from(!rotational)] * 2 / 3,
            max_budget: MAX_BUDGET,
            budgets: 0,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first: 0,
            span: 0,
            last_given: 0,
            last_end: 0,
            position: 0,
        }
    }

    /// For how long the weight of a process that has just begun is raised, in ns.
    pub(super) fn raised_for(&self) -> u64 {
        let kind = usize::from(!self.rotational);
        let span = REFERENCE[kind] * RAISED_FOR[kind] / self.peak;
        span.clamp(RAISED_LIMITS[0], RAISED_LIMITS[1])
    }

    /// The largest budget, in sectors, as it is by the rate.
    pub(super) fn max_budget(&self) -> u64 {
        self.max_budget
    }

    /// The same, and the smallest budget, as they are once enough budgets have been given out.
    pub(super) fn budgets(&self) -> (u64, u64) {
        let max = if self.settled() {
            self.max_budget
        } else {
            MAX_BUDGET
        };
        (max, max / 32)
    }

    /// Enough budgets have been given out.
    pub(super) fn settled(&self) -> bool {
        self.budgets >= BUDGETS
    }

    pub(super) fn budget_given(&mut self) {
        self.budgets = (self.budgets * 7 + 256) / 8;
    }

    /// The device is given a request while it has `in_device` others (`bfq_update_peak_rate`).
    pub(super) fn given(&mut self, now: u64, rq: &Rq, in_device: u32) {
        if self.samples == 0 {
            self.begin(now, rq);
        } else if now - self.last_given > LONG && in_device == 0 {
            self.close();
            self.begin(now, rq);
        } else {
            self.samples += 1;
            let busy = in_device > 0 || now - self.last_end < AT_ONCE;
            if busy && !seeks(self.position, rq, self.rotational) {
                self.sequential += 1;
            }
            let sectors = u64::from(rq.sectors);
            self.sectors += sectors;
            self.largest = if self.samples.is_multiple_of(32) {
                sectors
            } else {
                self.largest.max(sectors)
            };
            self.span = now - self.first;
            if self.span >= INTERVAL {
                self.close();
                self.begin(now, rq);
            }
        }
        self.position = rq.end();
        self.last_given = now;
    }

    /// The device has ended a request: one that took so long says nothing of its best.
    pub(super) fn ended(&mut self, now: u64) {
        let took = (now - self.last_end) / 1000;
        if took > AT_ONCE / 1000 && (self.largest << SHIFT) / took < 1 << (SHIFT - 10) {
            self.close();
            self.samples = 0;
        }
        self.last_end = now;
    }

    fn begin(&mut self, now: u64, rq: &Rq) {
        let sectors = u64::from(rq.sectors);
        (self.samples, self.sequential, self.first) = (1, 0, now);
        (self.sectors, self.largest, self.span) = (sectors, sectors, 0);
    }

    /// Takes in the rate of an interval (`bfq_update_rate_reset`).
    fn close(&mut self) {
        if self.samples < MIN_SAMPLES || self.span < MIN_INTERVAL {
            return;
        }
        let span = self.span.max(self.last_end.saturating_sub(self.first));
        let rate = (self.sectors << SHIFT) / (span / 1000);
        let mixed = self.sequential < 3 * self.samples / 4;
        if mixed && rate <= self.peak || rate > 20 << SHIFT {
            return;
        }
        let weight = 9 * self.sequential / self.samples;
        let divisor = 10 - (weight * span / INTERVAL).min(8);
        self.peak = (self.peak * (divisor - 1) / divisor + rate / divisor).max(1);
        self.max_budget = (self.peak * 1000 * self.timeout_ms) >> SHIFT;
    }
}

/// Whether the device takes several requests at a time (`bfq_update_hw_tag`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tags {
    /// Unknown at first.
    pub(super) queues: Option<bool>,
    pub(super) most: u32,
    samples: u32,
}

impl Tags {
    /// A request has ended, of `in_device` with it; `waiting` wait. `few`: the queue that is served cannot have more there.
    pub(super) fn ended(&mut self, in_device: u32, waiting: u32, few: bool) {
        self.most = self.most.max(in_device);
        if self.queues == Some(true) || in_device + waiting <= QUEUES {
            return;
        }
        if few && in_device < QUEUES {
            return;
        }
        self.samples += 1;
        if self.samples <= QUEUE_SAMPLES {
            return;
        }
        *self = Self {
            queues: Some(self.most > QUEUES),
            most: 0,
            samples: 0,
        };
    }
}

/// `BFQ_HW_QUEUE_THRESHOLD`: a queue with fewer requests than this says nothing of the device.
pub(super) const FEW: u32 = QUEUES;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Bio;
    use crate::queue::store::Store;
    use crate::queue::tests::{ms, write};

    /// A disk that is given requests of 1 MiB in order, or far from each other, one every `each` ms.
    fn after(rate: &mut Rate, from: u64, each: u64, step: u64) {
        let mut store = Store::new();
        for n in 0..1000 {
            let bio: Bio = write(n, (1 + n) * step, 2048);
            let slot = store.alloc(ms(0), &bio, 0, 0);
            let now = from + n * each * 1_000_000;
            rate.given(now, store.get(slot), 1);
            rate.ended(now);
        }
    }

    #[test]
    fn the_rate_is_that_of_requests_in_order() {
        let mut rate = Rate::new(true, Span::from_millis(125));
        let (first, long) = (rate.max_budget(), rate.raised_for());
        assert_eq!((first, long / 1_000_000), (16_384, 10_500));
        // 100 MiB/s, and one request more than its second holds: 125 ms of it are 25600 sectors, and the reference disk had 109 MB/s.
        after(&mut rate, 0, 10, 2048);
        assert!((25_500..=25_900).contains(&rate.max_budget()));
        assert!((7_200..7_390).contains(&(rate.raised_for() / 1_000_000)));
        // Slower ones far from each other say nothing.
        let before = rate.max_budget();
        after(&mut rate, 10_000_000_000, 20, 1 << 20);
        assert!(rate.max_budget().abs_diff(before) * 1000 < before);
        // Slower ones in order do.
        after(&mut rate, 40_000_000_000, 20, 2048);
        assert!((12_700..=13_100).contains(&rate.max_budget()));
    }

    #[test]
    fn a_device_queues_when_it_had_more_than_three() {
        let mut tags = Tags::default();
        for _ in 0..32 {
            tags.ended(1, 8, false);
        }
        assert_eq!(tags.queues, None);
        tags.ended(1, 8, false);
        assert_eq!(tags.queues, Some(false));
        for _ in 0..33 {
            tags.ended(4, 8, false);
        }
        assert_eq!(tags.queues, Some(true));
        // What few requests say is not counted.
        let mut tags = Tags::default();
        for _ in 0..100 {
            tags.ended(1, 2, false);
            tags.ended(2, 8, true);
        }
        assert_eq!(tags.queues, None);
    }
}

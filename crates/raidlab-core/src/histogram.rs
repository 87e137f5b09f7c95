//! Latency histograms that merge: percentiles of several runs come from the merged histogram, never
//! from an average of percentiles.
mod buckets;

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Longest latency told apart, one hour; longer ones are counted there (the maximum stays exact).
pub const LONGEST: Span = Span::from_secs(3600);

/// Counts of latencies, within 1 % of each value, from 1 ns to one hour; the count, sum and maximum
/// are exact. About 36 KiB whatever the number of latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    counts: Box<[u64]>,
    /// Their sum.
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: vec![0; buckets::COUNT].into(),
            count: 0,
            sum: 0,
            max: 0,
        }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Span) {
        self.record_n(latency, 1);
    }

    /// Counts `n` equal latencies.
    #[inline]
    pub fn record_n(&mut self, latency: Span, n: u64) {
        self.add(buckets::of(latency.0, LONGEST.0), n);
        self.sum += u128::from(latency.0) * u128::from(n);
        self.max = self.max.max(latency.0);
    }

    #[inline]
    fn add(&mut self, bucket: usize, n: u64) {
        let counted = &mut self.counts[bucket];
        *counted = counted.saturating_add(n);
        self.count = self.count.saturating_add(n);
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, &n) in other.counts.iter().enumerate() {
            self.add(bucket, n);
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Adds `times` over what was counted between `earlier` and `later`, two states of one histogram.
    pub fn add_between(&mut self, earlier: Option<&Self>, later: &Self, times: u64) {
        for (bucket, &counted) in later.counts.iter().enumerate() {
            let before = earlier.map_or(0, |e| e.counts[bucket]);
            let more = counted.saturating_sub(before);
            self.add(bucket, more.saturating_mul(times));
        }
        let sum = later.sum.saturating_sub(earlier.map_or(0, |e| e.sum));
        self.sum += sum * u128::from(times);
        self.max = self.max.max(later.max);
    }

    /// How many latencies were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True when nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The exact mean; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (!self.is_empty()).then(|| Span((self.sum / u128::from(self.count())) as u64))
    }

    /// The exact maximum; `None` when empty.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (!self.is_empty()).then_some(Span(self.max))
    }

    /// The latency that `percent` per cent of the operations did not exceed; `None` when empty.
    ///
    /// It is the upper end of the bucket, or the maximum: no less than the latency, and less than 1/128 (0.8 %) more. Between
    /// the ends nothing is guessed: simulated latencies are often all the same, and would seem to be spread.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Span> {
        // The first operation, or so many that part of the next is wanted.
        let share = percent.clamp(0.0, 100.0) / 100.0;
        let wanted = libm::ceil(share * self.count as f64).max(1.0) as u64;
        let mut counted = 0_u64;
        let reached = self.counts.iter().position(|&n| {
            counted = counted.saturating_add(n);
            counted >= wanted
        });
        reached.map(|bucket| {
            let (lowest, highest) = buckets::bounds(bucket);
            let value = if share == 0.0 { lowest } else { highest };
            Span(value.min(self.max))
        })
    }

    /// The [percentile](Self::percentile) for whoever shows it: `None` where not even one operation was slower than it, so that it
    /// would be the maximum under another name. The 99th needs 100 operations, the 99.9th 1000.
    #[must_use]
    pub fn told_percentile(&self, percent: f64) -> Option<Span> {
        let known = is_told(self.count as f64, percent);
        self.percentile(percent).filter(|_| known)
    }

    /// Whether the maximum is one that the counted latencies can have: what is read back may say anything.
    #[must_use]
    pub fn has_possible_max(&self) -> bool {
        let highest = self.counts.iter().rposition(|n| *n > 0);
        highest.is_none_or(|bucket| buckets::bounds(bucket).0 <= self.max)
    }

    /// The share (0 to 1) of latencies above `limit`, to the histogram's resolution; 0 when empty.
    #[must_use]
    pub fn share_above(&self, limit: Span) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let above: u64 = self
            .buckets()
            .filter(|(highest, _)| *highest > limit.0)
            .map(|(_, count)| count)
            .sum();
        above as f64 / self.count() as f64
    }

    /// The filled buckets as (highest latency in ns, count), ascending: the stored form and the
    /// points of a distribution chart.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, n)| **n > 0)
            .map(|(bucket, &n)| (buckets::bounds(bucket).1, n))
    }

    /// The exact sum of all latencies in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }
}

/// The stored form: exact sum and maximum, and the filled buckets.
#[derive(Serialize, Deserialize)]
struct Stored {
    sum_ns: u128,
    max_ns: u64,
    buckets: Vec<(u64, u64)>,
}

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored {
            sum_ns: self.sum,
            max_ns: self.max,
            buckets: self.buckets().collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut latencies = Self::new();
        for (value, count) in stored.buckets {
            latencies.add(buckets::of(value, LONGEST.0), count);
        }
        (latencies.sum, latencies.max) = (stored.sum_ns, stored.max_ns);
        Ok(latencies)
    }
}

/// Whether a percentile of `count` operations has at least one beyond it.
#[must_use]
pub fn is_told(count: f64, percent: f64) -> bool {
    // A rounding error must not ask for another one.
    count * (1.0 - percent / 100.0) + 1e-6 >= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Latencies::new();
        assert_eq!(
            (empty.mean(), empty.max(), empty.percentile(50.0)),
            (None, None, None)
        );
        assert_eq!(empty.share_above(Span::ZERO).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn a_percentile_is_told_where_an_operation_is_beyond_it() {
        let of = |count: u64, percent: f64| {
            let mut latencies = Latencies::new();
            (1..=count).for_each(|n| latencies.record(Span(1000 * n)));
            latencies.told_percentile(percent)
        };
        for (percent, from) in [(50.0, 2), (99.0, 100), (99.9, 1000), (99.99, 10_000)] {
            assert_eq!(of(from - 1, percent), None, "{percent}");
            assert!(of(from, percent).is_some(), "{percent}");
        }
    }

    #[test]
    fn a_maximum_below_what_was_counted_is_impossible() {
        let mut latencies = Latencies::new();
        assert!(latencies.has_possible_max());
        latencies.record(Span::from_millis(5));
        latencies.record(Span::from_secs(7200));
        assert!(latencies.has_possible_max());
        let text = r#"{"sum_ns":5000000,"max_ns":1000,"buckets":[[5000000,1]]}"#;
        let read: Latencies = serde_json::from_str(text).unwrap();
        assert!(!read.has_possible_max());
    }

    #[test]
    fn shares_above_a_limit_are_those_of_tiobench() {
        let mut latencies = Latencies::new();
        latencies.record_n(Span::from_millis(5), 98);
        latencies.record(Span::from_secs(3));
        latencies.record(Span::from_secs(12));
        assert!((latencies.share_above(Span::from_secs(2)) - 0.02).abs() < 1e-12);
        assert!((latencies.share_above(Span::from_secs(10)) - 0.01).abs() < 1e-12);
        assert_eq!(latencies.max(), Some(Span::from_secs(12)));
    }

    proptest! {
        #[test]
        fn merging_is_recording_both(a in prop::collection::vec(0_u64..10_000_000_000, 0..50),
                                     b in prop::collection::vec(0_u64..10_000_000_000, 0..50)) {
            let of = |values: &[u64]| {
                let mut h = Latencies::new();
                values.iter().for_each(|&v| h.record(Span(v)));
                h
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both = of(&[a, b].concat());
            prop_assert_eq!(&merged, &both);
            let stored = serde_json::to_string(&both).unwrap();
            prop_assert_eq!(serde_json::from_str::<Latencies>(&stored).unwrap(), both);
        }

        #[test]
        fn what_is_added_between_two_states_is_what_was_recorded_there(
            a in prop::collection::vec(0_u64..10_000_000_000, 0..30),
            b in prop::collection::vec(0_u64..10_000_000_000, 0..30), times in 0_u64..5) {
            let mut earlier = Latencies::new();
            a.iter().for_each(|&v| earlier.record(Span(v)));
            let mut later = earlier.clone();
            b.iter().for_each(|&v| later.record(Span(v)));
            let mut repeated = later.clone();
            repeated.add_between(Some(&earlier), &later, times);
            let mut expected = later.clone();
            b.iter().for_each(|&v| expected.record_n(Span(v), times));
            prop_assert_eq!(repeated, expected);
        }

        /// The library whose buckets they are, told the same.
        #[test]
        fn the_buckets_are_those_of_an_hdr_histogram(
            values in prop::collection::vec((0_u64..=64).prop_flat_map(|bits| 0..=u64::MAX >> (64 - bits).min(63)), 0..60),
            edges in prop::collection::vec((0_u32..64, 0_u64..3), 0..20), percent in 0.0..=100.0_f64) {
            let mut latencies = Latencies::new();
            let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LONGEST.0, 2).unwrap();
            let edges = edges.iter().map(|(bit, near)| (1_u64 << bit).wrapping_add(*near).wrapping_sub(1));
            for (value, n) in values.into_iter().chain(edges).zip(1..) {
                latencies.record_n(Span(value), n);
                other.saturating_record_n(value, n);
            }
            let theirs: Vec<(u64, u64)> =
                other.iter_recorded().map(|b| (b.value_iterated_to(), b.count_at_value())).collect();
            prop_assert_eq!(latencies.buckets().collect::<Vec<_>>(), theirs);
            prop_assert_eq!(latencies.count(), other.len());
            for percent in [0.0, 50.0, 99.9, 100.0, percent] {
                let told = latencies.max().map(|max| Span(other.value_at_percentile(percent).min(max.0)));
                prop_assert_eq!(latencies.percentile(percent), told);
            }
        }

        #[test]
        fn a_percentile_is_within_one_per_cent(mut values in prop::collection::vec(1_u64..1_000_000_000, 1..200)) {
            let mut h = Latencies::new();
            values.iter().for_each(|&v| h.record(Span(v)));
            values.sort_unstable();
            let exact = values[(values.len() - 1) / 2] as f64;
            let told = h.percentile(50.0).unwrap().0 as f64;
            prop_assert!((told - exact).abs() <= exact * 0.01 + 1.0, "{} for {}", told, exact);
        }
    }
}

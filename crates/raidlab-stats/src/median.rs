//! Medians and quantiles with exact order-statistic intervals.

use crate::error::StatsError;
use crate::estimate::{Confidence, Estimate, Flag, Method};
use crate::sample::Sample;
use crate::special::binomial_cdf;

/// The order statistics (ranks from 1) that enclose the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRanks {
    /// Rank of the lower end.
    pub lo: u64,
    /// Rank of the upper end, n + 1 − lo.
    pub hi: u64,
    /// True confidence 1 − 2 F(lo − 1; n, ½).
    pub confidence: f64,
}

/// The narrowest symmetric pair of ranks whose confidence reaches the level, else the widest pair.
///
/// `None` for n < 2, where no interval exists. With n = 5 the widest pair gives only 93.75 %:
/// compare `confidence` with what was asked for.
#[must_use]
pub fn median_ci_ranks(n: u64, confidence: Confidence) -> Option<MedianRanks> {
    if n < 2 {
        return None;
    }
    let of = |lo: u64| 1.0 - 2.0 * binomial_cdf(lo - 1, n, 0.5);
    let lo = largest_rank(n / 2, |lo| of(lo) >= confidence.level()).unwrap_or(1);
    Some(MedianRanks {
        lo,
        hi: n + 1 - lo,
        confidence: of(lo),
    })
}

/// The order statistics (ranks from 1) that enclose a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileRanks {
    /// Rank of the lower end; `None` when the sample has no value surely low enough.
    pub lo: Option<u64>,
    /// Rank of the upper end; `None` when the sample has no value surely high enough.
    pub hi: Option<u64>,
    /// Coverage of the interval, an absent end counting as infinite.
    pub coverage: f64,
}

/// Ranks of a distribution-free interval for the `p` quantile of n independent values:
/// the largest l with F(l − 1; n, p) ≤ α/2 and the smallest u with 1 − F(u − 1; n, p) ≤ α/2.
///
/// # Errors
/// [`StatsError::Empty`] for n = 0, [`StatsError::Parameter`] unless 0 < p < 1.
pub fn quantile_ci_ranks(
    n: u64,
    p: f64,
    confidence: Confidence,
) -> Result<QuantileRanks, StatsError> {
    if n == 0 {
        return Err(StatsError::Empty);
    }
    if !(p > 0.0 && p < 1.0) {
        return Err(StatsError::Parameter {
            name: "quantile",
            value: p,
            allowed: "it must lie strictly between 0 and 1, as 0.99 does",
        });
    }
    let tail = confidence.lower();
    let below = |rank: u64| binomial_cdf(rank - 1, n, p);
    let lo = largest_rank(n, |rank| below(rank) <= tail);
    // By symmetry: P(X ≥ u) for p is P(X ≤ n − u) for 1 − p.
    let at_or_above = |rank: u64| binomial_cdf(n - rank, n, 1.0 - p);
    let hi = largest_rank(n, |mirror| at_or_above(n + 1 - mirror) <= tail).map(|m| n + 1 - m);
    let coverage = 1.0 - lo.map_or(0.0, below) - hi.map_or(0.0, at_or_above);
    Ok(QuantileRanks { lo, hi, coverage })
}

/// Largest rank in 1..=`last` that holds, where holding ends once and for all; by bisection.
fn largest_rank(last: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut good, mut bad) = (0, last.saturating_add(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    (good > 0).then_some(good)
}

/// Median with its exact order-statistic interval and the confidence that interval really has.
///
/// The interval to trust when runs may be contaminated: with 10 % slow outliers at n = 10 it covers
/// the population median in .978 of simulations, where the t interval covers the mean in .718.
#[must_use]
pub fn median_ci(sample: &Sample, confidence: Confidence) -> Estimate {
    let n = sample.len();
    let value = sample.median();
    let Some(ranks) = median_ci_ranks(n as u64, confidence) else {
        return Estimate::single(value, Method::OrderStatistic, n);
    };
    let at = |rank: u64| sample.sorted()[rank as usize - 1];
    let ends = (at(ranks.lo), at(ranks.hi));
    let mut estimate =
        Estimate::with_ends(value, ends, ranks.confidence, Method::OrderStatistic, n);
    if ranks.confidence < confidence.level() {
        estimate.flag(Flag::LowConfidence);
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_runs_state_their_true_confidence() {
        let e = median_ci(
            &Sample::new([5.0, 1.0, 2.0, 4.0, 3.0]).unwrap(),
            Confidence::P95,
        );
        assert_eq!((e.value, e.lo(), e.hi()), (3.0, Some(1.0), Some(5.0)));
        assert_eq!(e.interval.unwrap().confidence, 0.9375);
        assert_eq!(e.flags, [Flag::LowConfidence]);
    }

    #[test]
    fn tiny_and_huge_samples() {
        assert_eq!(median_ci_ranks(0, Confidence::P95), None);
        assert_eq!(median_ci_ranks(1, Confidence::P95), None);
        let two = median_ci_ranks(2, Confidence::P95).unwrap();
        assert_eq!((two.lo, two.hi), (1, 2));
        assert!((two.confidence - 0.5).abs() < 1e-15);
        let huge = median_ci_ranks(100_000_000, Confidence::P95).unwrap();
        // n/2 − 1.96 √n/2, within a rank or two.
        assert!(huge.lo.abs_diff(49_990_200) < 3, "{huge:?}");
    }

    #[test]
    fn quantile_domain() {
        assert!(quantile_ci_ranks(0, 0.5, Confidence::P95).is_err());
        for p in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(quantile_ci_ranks(10, p, Confidence::P95).is_err());
        }
        let one = quantile_ci_ranks(1, 0.5, Confidence::P95).unwrap();
        assert_eq!((one.lo, one.hi, one.coverage), (None, None, 1.0));
    }
}

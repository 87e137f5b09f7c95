//! Mann–Whitney's U test, its effect size, and the Hodges–Lehmann shift.

use crate::error::{StatsError, at_least, at_most};
use crate::estimate::{Confidence, Estimate, Flag, Method};
use crate::ranks::mid_ranks;
use crate::sample::Sample;
use crate::special::{norm_ppf, norm_sf};
use serde::{Deserialize, Serialize};

/// Largest side for which the distribution of U is enumerated.
const EXACT_UP_TO: usize = 25;
/// Fewest runs a side with which a rank verdict is given: 4 + 4 can reach p = .029, 3 + 3 only .10.
pub const RANK_VERDICT_FROM: usize = 4;
/// Largest number of pairwise differences formed.
const MAX_DIFFERENCES: usize = 4_000_000;

/// Result of the U test of the candidate `b` against the baseline `a`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MannWhitney {
    /// U of `b`: pairs with b above a, ties counting half.
    pub u: f64,
    /// Two-sided p.
    pub p: f64,
    /// Probability that a value of `b` exceeds one of `a` (Vargha & Delaney's A₁₂ = U/(n_a n_b)).
    pub a12: f64,
    /// Cliff's δ = 2 A₁₂ − 1.
    pub cliffs_delta: f64,
    /// Whether p is exact (no ties and at most 25 a side) or by the normal approximation with tie
    /// and continuity correction.
    pub exact: bool,
}

/// The U test. For a verdict use [`rank_verdict`], which refuses samples too small to give one.
#[must_use]
pub fn mann_whitney(a: &Sample, b: &Sample) -> MannWhitney {
    let (n_a, n_b) = (a.len(), b.len());
    let pooled: Vec<f64> = a.values().iter().chain(b.values()).copied().collect();
    let (ranks, tie_term) = mid_ranks(&pooled);
    let rank_sum: f64 = ranks[n_a..].iter().sum();
    let u = rank_sum - 0.5 * (n_b as f64) * (n_b as f64 + 1.0);
    let pairs = n_a as f64 * n_b as f64;
    let exact = tie_term == 0.0 && n_a.max(n_b) <= EXACT_UP_TO;
    let p = if exact {
        exact_two_sided(n_a, n_b, u)
    } else {
        approximate_two_sided(n_a, n_b, u, tie_term)
    };
    MannWhitney {
        u,
        p,
        a12: u / pairs,
        cliffs_delta: 2.0 * u / pairs - 1.0,
        exact,
    }
}

/// [`mann_whitney`], refused where no verdict could come of it.
///
/// # Errors
/// [`StatsError::TooFew`] under 4 + 4 runs.
pub fn rank_verdict(a: &Sample, b: &Sample) -> Result<MannWhitney, StatsError> {
    at_least(
        "a rank verdict (on each side)",
        RANK_VERDICT_FROM,
        a.len().min(b.len()),
    )?;
    Ok(mann_whitney(a, b))
}

/// Smallest two-sided p the U test can reach: 2 / C(n_a + n_b, n_a). Without values, 1.
#[must_use]
pub fn min_two_sided_p(n_a: usize, n_b: usize) -> f64 {
    let (small, large) = (n_a.min(n_b), n_a.max(n_b));
    let mut p = 2.0;
    for i in 1..=small {
        p *= i as f64 / (large + i) as f64;
        if p == 0.0 {
            break;
        }
    }
    p.min(1.0)
}

/// Number of arrangements with U = 0, 1, …, n_a n_b: the coefficients of the Gaussian binomial
/// ∏ (1 − q^{n_b + i})/(1 − q^i), i = 1..n_a. Exact: C(50, 25) fits an i64.
fn u_counts(n_a: usize, n_b: usize) -> Vec<i64> {
    let top = n_a * n_b;
    let mut counts = vec![0_i64; top + 1];
    counts[0] = 1;
    for i in 1..=n_a {
        for u in (n_b + i..=top).rev() {
            counts[u] -= counts[u - n_b - i];
        }
        for u in i..=top {
            counts[u] += counts[u - i];
        }
    }
    counts
}

fn exact_two_sided(n_a: usize, n_b: usize, u: f64) -> f64 {
    let counts = u_counts(n_a, n_b);
    let total: i64 = counts.iter().sum();
    // U is symmetric about n_a n_b / 2; without ties it is whole.
    let tail = u.min(n_a as f64 * n_b as f64 - u).max(0.0) as usize;
    let in_tail: i64 = counts[..=tail].iter().sum();
    (2.0 * in_tail as f64 / total as f64).min(1.0)
}

fn approximate_two_sided(n_a: usize, n_b: usize, u: f64, tie_term: f64) -> f64 {
    let (m, n) = (n_a as f64, n_b as f64);
    let all = m + n;
    let ties = if all > 1.0 {
        tie_term / (all * (all - 1.0))
    } else {
        0.0
    };
    let sd = (m * n / 12.0 * (all + 1.0 - ties)).max(0.0).sqrt();
    if sd == 0.0 {
        return 1.0; // all values tied
    }
    let distance = ((u - 0.5 * m * n).abs() - 0.5).max(0.0);
    (2.0 * norm_sf(distance / sd)).min(1.0)
}

/// The shift between two samples and the rank its interval was read at.
#[derive(Debug, Clone, PartialEq)]
pub struct HodgesLehmann {
    /// Median of all differences b − a with its interval and the confidence that really has.
    pub shift: Estimate,
    /// The interval runs from the k-th smallest to the k-th largest difference.
    pub k: usize,
}

/// Hodges–Lehmann shift: the median of all differences b − a, with an order-statistic interval
/// from the distribution of U (exact up to 25 a side, normal approximation above).
///
/// # Errors
/// [`StatsError::TooMany`] when n_a·n_b exceeds four million.
pub fn hodges_lehmann(
    a: &Sample,
    b: &Sample,
    confidence: Confidence,
) -> Result<HodgesLehmann, StatsError> {
    let (n_a, n_b) = (a.len(), b.len());
    let count = n_a.saturating_mul(n_b);
    at_most(
        "a Hodges–Lehmann shift (in pairs of runs)",
        MAX_DIFFERENCES,
        count,
    )?;
    let mut differences: Vec<f64> = b
        .values()
        .iter()
        .flat_map(|&y| a.values().iter().map(move |&x| y - x))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let value = crate::describe::median_sorted(&differences);
    let n = n_a + n_b;
    if count < 2 {
        let shift = Estimate::single(value, Method::HodgesLehmann, n);
        return Ok(HodgesLehmann { shift, k: 1 });
    }
    let (k, reached) = interval_rank(n_a, n_b, confidence);
    let ends = (differences[k - 1], differences[count - k]);
    let mut shift = Estimate::with_ends(value, ends, reached, Method::HodgesLehmann, n);
    if reached < confidence.level() {
        shift.flag(Flag::LowConfidence);
    }
    Ok(HodgesLehmann { shift, k })
}

/// Largest k with 2 P(U ≤ k − 1) ≤ α, at least 1, and the confidence it gives.
fn interval_rank(n_a: usize, n_b: usize, confidence: Confidence) -> (usize, f64) {
    let alpha = 1.0 - confidence.level();
    let pairs = n_a * n_b;
    if n_a.max(n_b) > EXACT_UP_TO {
        let (m, n) = (n_a as f64, n_b as f64);
        let sd = (m * n * (m + n + 1.0) / 12.0).sqrt();
        let k = 0.5 * m * n + norm_ppf(confidence.lower()) * sd;
        return (
            (k.max(1.0) as usize).min(pairs.div_ceil(2)),
            confidence.level(),
        );
    }
    let counts = u_counts(n_a, n_b);
    let total: i64 = counts.iter().sum();
    let mut below = 0;
    let mut best = (1, 1.0 - 2.0 * counts[0] as f64 / total as f64);
    for (u, &count) in counts.iter().enumerate().take(pairs.div_ceil(2)) {
        below += count;
        let outside = 2.0 * below as f64 / total as f64;
        if outside > alpha {
            break;
        }
        best = (u + 1, 1.0 - outside);
    }
    (best.0, best.1.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn u_counts_sum_to_the_binomial() {
        assert_eq!(u_counts(2, 2), [1, 1, 2, 1, 1]);
        assert_eq!(u_counts(25, 25).iter().sum::<i64>(), 126_410_606_437_752);
    }

    #[test]
    fn under_four_and_four_no_verdict() {
        let three = sample(&[1.0, 2.0, 3.0]);
        let four = sample(&[4.0, 5.0, 6.0, 7.0]);
        assert!(matches!(
            rank_verdict(&three, &four),
            Err(StatsError::TooFew {
                needed: 4,
                got: 3,
                ..
            })
        ));
        let p = rank_verdict(&sample(&[0.0, 1.0, 2.0, 3.0]), &four)
            .unwrap()
            .p;
        assert!((p - min_two_sided_p(4, 4)).abs() < 1e-15);
    }

    #[test]
    fn all_tied_is_no_evidence() {
        let r = mann_whitney(&sample(&[1.0; 5]), &sample(&[1.0; 6]));
        assert_eq!((r.p, r.a12, r.exact), (1.0, 0.5, false));
    }

    #[test]
    fn the_exact_and_the_approximate_p_agree_where_they_meet() {
        let a: Vec<f64> = (0..25).map(|i| f64::from(i) * 1.7).collect();
        let b: Vec<f64> = (0..25).map(|i| f64::from(i) * 1.5 + 7.03).collect();
        let r = mann_whitney(&sample(&a), &sample(&b));
        assert!(r.exact);
        let approximate = approximate_two_sided(25, 25, r.u, 0.0);
        assert!((r.p - approximate).abs() < 0.01, "{} {approximate}", r.p);
    }

    /// Above 25 a side: the textbook's k, n_a n_b/2 − 1.96 √(n_a n_b (n_a + n_b + 1)/12).
    #[test]
    fn the_interval_of_a_large_sample_ends_at_its_rank() {
        let of = |n_a, n_b| interval_rank(n_a, n_b, Confidence::P95);
        assert_eq!(of(40, 40), (596, 0.95));
        assert_eq!(of(30, 60), (671, 0.95));
        assert_eq!(of(60, 30), of(30, 60));
        // One more run than the exact distribution is asked of goes on from it.
        let (exact, approximate) = (of(25, 25).0, of(26, 25).0);
        assert!(
            (exact..exact + 14).contains(&approximate),
            "{exact} {approximate}"
        );
    }

    #[test]
    fn shift_of_small_and_of_large_samples() {
        let one = hodges_lehmann(&sample(&[1.0]), &sample(&[3.0]), Confidence::P95).unwrap();
        assert_eq!((one.shift.value, one.shift.interval), (2.0, None));
        let two = hodges_lehmann(&sample(&[1.0, 2.0]), &sample(&[3.0, 9.0]), Confidence::P95);
        assert!(two.unwrap().shift.flags.contains(&Flag::LowConfidence));
        let many: Vec<f64> = (0..40).map(f64::from).collect();
        let moved: Vec<f64> = many.iter().map(|x| x + 5.0).collect();
        let e = hodges_lehmann(&sample(&many), &sample(&moved), Confidence::P95)
            .unwrap()
            .shift;
        assert_eq!(e.value, 5.0);
        assert!(e.interval.unwrap().contains(5.0) && !e.interval.unwrap().contains(20.0));
    }
}

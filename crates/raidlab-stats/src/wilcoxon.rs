//! Wilcoxon's signed-rank test of paired differences.

use crate::ranks::mid_ranks;
use crate::sample::Sample;
use crate::special::norm_sf;
use serde::{Deserialize, Serialize};

/// Largest number of pairs for which the distribution of W is enumerated.
const EXACT_UP_TO: usize = 50;

/// Result of the signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Wilcoxon {
    /// W: the smaller of the rank sums of positive and of negative differences.
    pub w: f64,
    /// Two-sided p: exact without ties up to 50 pairs, else the normal approximation with tie and
    /// continuity correction.
    pub p: f64,
    /// Differences used: zeros are dropped, as Wilcoxon did.
    pub n: usize,
    /// Whether p is exact.
    pub exact: bool,
}

/// Wilcoxon's signed-rank test that the differences lie symmetrically about zero.
#[must_use]
pub fn wilcoxon_signed_rank(differences: &Sample) -> Wilcoxon {
    let used: Vec<f64> = differences
        .values()
        .iter()
        .copied()
        .filter(|&d| d != 0.0)
        .collect();
    let n = used.len();
    let sizes: Vec<f64> = used.iter().map(|d| d.abs()).collect();
    let (ranks, tie_term) = mid_ranks(&sizes);
    let positive: f64 = ranks
        .iter()
        .zip(&used)
        .filter(|(_, d)| **d > 0.0)
        .map(|(r, _)| r)
        .sum();
    let all = 0.5 * n as f64 * (n as f64 + 1.0);
    let w = positive.min(all - positive);
    let exact = tie_term == 0.0 && n <= EXACT_UP_TO;
    let p = if exact {
        exact_p(n, w)
    } else {
        let n = n as f64;
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_term / 48.0;
        let distance = ((w - 0.5 * all).abs() - 0.5).max(0.0);
        (2.0 * norm_sf(distance / variance.sqrt())).min(1.0)
    };
    Wilcoxon { w, p, n, exact }
}

/// 2 P(W ≤ w): the number of subsets of 1..=n by their sum, out of 2ⁿ.
fn exact_p(n: usize, w: f64) -> f64 {
    let top = n * (n + 1) / 2;
    let mut counts = vec![0_u64; top + 1];
    counts[0] = 1;
    for rank in 1..=n {
        for s in (rank..=top).rev() {
            counts[s] += counts[s - rank];
        }
    }
    let in_tail: u64 = counts[..=(w as usize).min(top)].iter().sum();
    (2.0 * in_tail as f64 / (1_u64 << n) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_dropped_and_nothing_left_is_no_evidence() {
        let r = wilcoxon_signed_rank(&Sample::new([0.0, 0.0]).unwrap());
        assert_eq!((r.n, r.w, r.p), (0, 0.0, 1.0));
        let r = wilcoxon_signed_rank(&Sample::new([0.0, 1.0, 2.0, 3.0]).unwrap());
        assert_eq!((r.n, r.p, r.exact), (3, 0.25, true));
    }

    #[test]
    fn ties_use_the_approximation() {
        let r = wilcoxon_signed_rank(&Sample::new([1.0; 12]).unwrap());
        assert!(!r.exact && r.p > 0.0 && r.p < 0.01, "{r:?}");
    }

    #[test]
    fn exact_and_approximate_agree_at_the_seam() {
        let d: Vec<f64> = (1..=50)
            .map(|i| f64::from(i) * if i % 3 == 0 { -1.0 } else { 1.0 })
            .collect();
        let r = wilcoxon_signed_rank(&Sample::new(d).unwrap());
        let n = 50.0_f64;
        let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let z = ((r.w - n * (n + 1.0) / 4.0).abs() - 0.5) / sd;
        assert!((r.p - 2.0 * norm_sf(z)).abs() < 0.002);
    }
}

//! Drift over the order of the runs.

use crate::describe::median_of;
use crate::error::{StatsError, at_least, at_most};
use crate::sample::Sample;
use crate::special::norm_sf;
use serde::{Deserialize, Serialize};

/// Largest number of values for which the distribution of τ is enumerated.
const EXACT_UP_TO: usize = 50;
/// The pairs are formed one by one.
pub(crate) const MAX_VALUES: usize = 2_000;
/// p below which drift is flagged.
const DRIFT_LEVEL: f64 = 0.05;

/// Kendall's test of the values against their order (the Mann–Kendall trend test).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Kendall's τ-b of value against order.
    pub tau: f64,
    /// Two-sided p: exact without ties up to n = 50, else normal with tie and continuity
    /// correction.
    pub p: f64,
    /// Theil–Sen slope: the median of all pairwise slopes, per run.
    pub slope: f64,
    /// The slope in % of the median per run; `None` around a median of zero.
    pub percent_per_run: Option<f64>,
}

impl Drift {
    /// Whether p < 0.05.
    #[must_use]
    pub fn significant(&self) -> bool {
        self.p < DRIFT_LEVEL
    }
}

/// Tests values in run order for drift.
///
/// # Errors
/// [`StatsError::TooFew`] under two values, [`StatsError::TooMany`] above 2000.
pub fn drift(sample: &Sample) -> Result<Drift, StatsError> {
    let values = sample.values();
    let n = values.len();
    at_least("a drift test", 2, n)?;
    at_most("a drift test", MAX_VALUES, n)?;
    let pairs = n * (n - 1) / 2;
    let mut slopes = Vec::with_capacity(pairs);
    let (mut rising, mut falling) = (0_u64, 0_u64);
    for i in 0..n {
        for j in i + 1..n {
            let change = values[j] - values[i];
            rising += u64::from(change > 0.0);
            falling += u64::from(change < 0.0);
            slopes.push(change / (j - i) as f64);
        }
    }
    let slope = median_of(&mut slopes);
    let untied = (rising + falling) as f64;
    let score = rising as f64 - falling as f64;
    // τ-b: the order itself has no ties.
    let tau = if untied > 0.0 {
        score / (untied * pairs as f64).sqrt()
    } else {
        0.0
    };
    let p = if rising + falling == pairs as u64 && n <= EXACT_UP_TO {
        exact_p(n, rising.min(falling) as usize)
    } else {
        approximate_p(sample.sorted(), score)
    };
    let percent = 100.0 * slope / sample.median().abs();
    Ok(Drift {
        tau,
        p,
        slope,
        percent_per_run: percent.is_finite().then_some(percent),
    })
}

/// 2 P(inversions ≤ k) over random orders: the number of inversions is a sum of independent
/// uniforms on 0..=i, i < n.
fn exact_p(n: usize, k: usize) -> f64 {
    let mut chance = vec![0.0; k + 1];
    chance[0] = 1.0;
    for i in 1..n {
        let before = chance.clone();
        let mut window = 0.0;
        for u in 0..=k {
            window += before[u];
            if u > i {
                window -= before[u - i - 1];
            }
            chance[u] = window / (i + 1) as f64;
        }
    }
    (2.0 * chance.iter().sum::<f64>()).min(1.0)
}

fn approximate_p(sorted: &[f64], score: f64) -> f64 {
    let weight = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|g| weight(g.len() as f64))
        .sum();
    let variance = (weight(sorted.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0; // all values tied
    }
    (2.0 * norm_sf((score.abs() - 1.0).max(0.0) / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Drift {
        drift(&Sample::new(values).unwrap()).unwrap()
    }

    #[test]
    fn a_strictly_rising_series_drifts() {
        let r = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((r.tau, r.slope), (1.0, 1.0));
        assert!((r.p - 2.0 / 720.0).abs() < 1e-15 && r.significant());
        assert!((r.percent_per_run.unwrap() - 100.0 / 3.5).abs() < 1e-12);
    }

    #[test]
    fn constants_do_not() {
        let r = of(&[0.0; 5]);
        assert_eq!(
            (r.tau, r.p, r.slope, r.percent_per_run),
            (0.0, 1.0, 0.0, None)
        );
    }

    #[test]
    fn exact_and_approximate_agree_at_the_seam() {
        let values: Vec<f64> = (0..50)
            .map(|i| f64::from((i * 37) % 50) + 0.3 * f64::from(i))
            .collect();
        let r = of(&values);
        let pairs = 50.0 * 49.0 / 2.0;
        let approximate = approximate_p(Sample::new(values).unwrap().sorted(), r.tau * pairs);
        assert!((r.p - approximate).abs() < 0.01, "{} {approximate}", r.p);
    }

    #[test]
    fn limits() {
        assert!(drift(&Sample::new([1.0]).unwrap()).is_err());
        assert!(drift(&Sample::new(vec![1.0; 2001]).unwrap()).is_err());
    }
}

//! Warm-up inside a run: the marginal standard error rule on batches.

use crate::describe::{mean, sum_of_squares};
use crate::error::{StatsError, at_least, at_most};
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// Batch size of MSER-5.
pub const MSER_BATCH: usize = 5;
/// Fewest batches the rule is applied to; with fewer, skip it.
pub const MSER_MIN_BATCHES: usize = 40;
/// Most batches: the search is quadratic in them.
const MAX_BATCHES: usize = 20_000;

/// How much of a series is warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mser {
    /// Whole batches in the series (the tail remainder is not looked at).
    pub batches: usize,
    /// Batches to drop.
    pub drop_batches: usize,
    /// Samples to drop.
    pub drop_samples: usize,
    /// The minimum of Σ(z − z̄)²/(m − d)².
    pub value: f64,
    /// Mean of what is left (of the whole batches).
    pub mean_after: f64,
    /// False when the minimum lies at half the series: "no steady state in this run".
    pub steady: bool,
}

/// Drops the first d batches that minimise Σ_{i>d}(z_i − z̄_d)²/(m − d)², d ≤ m/2 (White 1997; on
/// batches of five, Spratt 1998). The first such d among equals.
///
/// # Errors
/// As [`Sample::new`]; [`StatsError::TooFew`] under 40 batches or for a batch of 0;
/// [`StatsError::TooMany`] above 20 000 batches.
pub fn mser(series: &[f64], batch: usize) -> Result<Mser, StatsError> {
    at_least("an MSER batch", 1, batch)?;
    let checked = Sample::new(series)?;
    let means: Vec<f64> = checked.values().chunks_exact(batch).map(mean).collect();
    let batches = means.len();
    at_least("the MSER rule (in batches)", MSER_MIN_BATCHES, batches)?;
    at_most("the MSER rule (in batches)", MAX_BATCHES, batches)?;
    let of = |d: usize| {
        let left = (batches - d) as f64;
        sum_of_squares(&means[d..]) / (left * left)
    };
    let mut best = (0, of(0));
    for d in 1..=batches / 2 {
        let value = of(d);
        if value < best.1 {
            best = (d, value);
        }
    }
    let (drop_batches, value) = best;
    Ok(Mser {
        batches,
        drop_batches,
        drop_samples: drop_batches * batch,
        value,
        mean_after: mean(&means[drop_batches..]),
        steady: drop_batches < batches / 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_never_settles_is_not_steady() {
        let falling: Vec<f64> = (0..200).map(|i| libm::exp(-f64::from(i) / 40.0)).collect();
        let r = mser(&falling, MSER_BATCH).unwrap();
        assert!(!r.steady && r.drop_batches == 20, "{r:?}");
    }

    #[test]
    fn constants_drop_nothing() {
        let r = mser(&[7.0; 203], MSER_BATCH).unwrap();
        assert_eq!(
            (r.drop_samples, r.value, r.mean_after, r.steady),
            (0, 0.0, 7.0, true)
        );
    }

    #[test]
    fn short_series_are_refused() {
        assert!(mser(&[1.0; 199], MSER_BATCH).is_err());
        assert!(mser(&[1.0; 199], 0).is_err());
        assert!(mser(&[], 5).is_err());
    }
}

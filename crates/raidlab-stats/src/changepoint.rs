//! Change points in the mean: did the cache fill, did the drive throttle?

use crate::describe::{mean, median_of, sum};
use crate::error::{StatsError, at_least, at_most};
use crate::outlier::MAD_TO_SIGMA;
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// Shortest segment unless another is asked for.
pub const MIN_SEGMENT: usize = 5;
/// The programme is quadratic: this many values take well under a second.
const MAX_VALUES: usize = 10_000;
/// Segment means further apart than this share make two phases of a run.
pub(crate) const PHASE_DIFFERENCE: f64 = 0.05;

/// The best division of a series into segments of constant mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangePoints {
    /// Noise σ̂ = median|Δx|/(0.6745 √2).
    pub sigma: f64,
    /// Penalty for each change, 3 σ̂² ln n.
    pub penalty: f64,
    /// Index of the first value of each new segment.
    pub at: Vec<usize>,
    /// Mean of each segment.
    pub segment_means: Vec<f64>,
}

impl ChangePoints {
    /// Whether neighbouring segments differ by more than 5 %: the run is then to be reported as
    /// phases, not as one mean.
    #[must_use]
    pub fn has_phases(&self) -> bool {
        self.segment_means.windows(2).any(|w| {
            let scale = w[0].abs().min(w[1].abs());
            (w[1] - w[0]).abs() > PHASE_DIFFERENCE * scale
        })
    }
}

/// Optimal partitioning with squared-error cost (Jackson et al. 2005), exact.
///
/// σ̂ comes from the differences of neighbours, so that the changes themselves hardly enter it.
/// Where more than half of those are zero it is their root mean square/√2 instead.
///
/// # Errors
/// As [`Sample::new`]; [`StatsError::TooFew`] for a segment length of 0;
/// [`StatsError::TooMany`] above 10 000 values.
pub fn change_points(series: &[f64], min_segment: usize) -> Result<ChangePoints, StatsError> {
    at_least("a segment between change points", 1, min_segment)?;
    at_most("the search for change points", MAX_VALUES, series.len())?;
    let checked = Sample::new(series)?;
    let series = checked.values();
    let sigma = noise(series);
    let penalty = 3.0 * sigma * sigma * libm::log(series.len() as f64);
    // Without noise any partition of a constant costs nothing: there is no change to find.
    let at = if sigma > 0.0 {
        partition(series, min_segment, penalty)
    } else {
        Vec::new()
    };
    let mut starts = vec![0];
    starts.extend(&at);
    let ends = at.iter().copied().chain([series.len()]);
    let segment_means = starts
        .iter()
        .zip(ends)
        .map(|(&from, to)| mean(&series[from..to]))
        .collect();
    Ok(ChangePoints {
        sigma,
        penalty,
        at,
        segment_means,
    })
}

fn noise(series: &[f64]) -> f64 {
    if series.len() < 2 {
        return 0.0;
    }
    let mut steps: Vec<f64> = series.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let mean_square = sum(steps.iter().map(|d| d * d)) / steps.len() as f64;
    let typical = median_of(&mut steps);
    if typical > 0.0 {
        typical / (MAD_TO_SIGMA * core::f64::consts::SQRT_2)
    } else {
        (0.5 * mean_square).sqrt()
    }
}

fn partition(series: &[f64], min_segment: usize, penalty: f64) -> Vec<usize> {
    let n = series.len();
    let centre = mean(series);
    // Prefix sums of centred values, so that the cost below does not cancel.
    let mut first = vec![0.0; n + 1];
    let mut second = vec![0.0; n + 1];
    for (i, x) in series.iter().enumerate() {
        let x = x - centre;
        first[i + 1] = first[i] + x;
        second[i + 1] = second[i] + x * x;
    }
    let cost = |from: usize, to: usize| {
        let total = first[to] - first[from];
        second[to] - second[from] - total * total / (to - from) as f64
    };
    let mut best = vec![f64::INFINITY; n + 1];
    let mut previous = vec![0; n + 1];
    best[0] = -penalty;
    for to in min_segment..=n {
        for from in 0..=to - min_segment {
            if best[from].is_finite() {
                let total = best[from] + cost(from, to) + penalty;
                if total < best[to] {
                    best[to] = total;
                    previous[to] = from;
                }
            }
        }
    }
    let mut at = Vec::new();
    let mut end = n;
    while end > 0 && previous[end] > 0 {
        end = previous[end];
        at.push(end);
    }
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_step_is_found_although_the_median_step_is_zero() {
        let mut series = vec![100.0; 20];
        series.extend([50.0; 20]);
        let r = change_points(&series, MIN_SEGMENT).unwrap();
        assert_eq!(
            (r.at.as_slice(), r.segment_means.as_slice()),
            (&[20][..], &[100.0, 50.0][..])
        );
        assert!(r.has_phases());
    }

    #[test]
    fn constants_and_short_series_have_none() {
        for series in [&[1.0; 50][..], &[1.0], &[1.0, 9.0, 1.0]] {
            let r = change_points(series, MIN_SEGMENT).unwrap();
            assert!(r.at.is_empty() && r.segment_means.len() == 1 && !r.has_phases());
        }
    }

    #[test]
    fn limits_are_checked() {
        assert!(change_points(&[], 5).is_err());
        assert!(change_points(&[1.0], 0).is_err());
        assert!(
            change_points(&[1.0, 2.0], usize::MAX)
                .unwrap()
                .at
                .is_empty()
        );
        assert!(change_points(&vec![1.0; 10_001], 5).is_err());
    }
}

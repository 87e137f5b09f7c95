//! Autocorrelation: how independent are neighbouring values, and what interval is then honest?

use crate::describe::{mean, sum, sum_of_squares, t_ci};
use crate::error::{StatsError, at_least, positive};
use crate::estimate::{Confidence, Estimate, Flag, Method};
use crate::sample::Sample;
use crate::special::chi_squared_sf;
use serde::{Deserialize, Serialize};

/// Autocorrelation r_k = Σ(x_i − x̄)(x_{i+k} − x̄)/Σ(x_i − x̄)² (the biased estimator); `None` for
/// a constant series or a lag that leaves no pair.
#[must_use]
pub fn autocorrelation(values: &Sample, lag: usize) -> Option<f64> {
    correlation(values.values(), lag)
}

fn correlation(values: &[f64], lag: usize) -> Option<f64> {
    if lag >= values.len() {
        return None;
    }
    let squares = sum_of_squares(values);
    if squares == 0.0 {
        return None;
    }
    let centre = mean(values);
    let cross = sum(values
        .iter()
        .zip(&values[lag..])
        .map(|(a, b)| (a - centre) * (b - centre)));
    Some(cross / squares)
}

/// Ljung & Box's portmanteau test of no autocorrelation up to a lag.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LjungBox {
    /// Q = n(n + 2) Σ r_k²/(n − k).
    pub q: f64,
    /// Upper χ² tail with `lags` degrees of freedom.
    pub p: f64,
    /// Number of lags.
    pub lags: usize,
}

/// Ljung–Box Q over the lags 1 to `lags`; `None` for a constant series, no lag, or n ≤ `lags`.
#[must_use]
pub fn ljung_box(values: &Sample, lags: usize) -> Option<LjungBox> {
    let n = values.len();
    if lags == 0 || lags >= n {
        return None;
    }
    let mut total = 0.0;
    for k in 1..=lags {
        let r = autocorrelation(values, k)?;
        total += r * r / (n - k) as f64;
    }
    let q = n as f64 * (n as f64 + 2.0) * total;
    Some(LjungBox {
        q,
        p: chi_squared_sf(q, lags as f64),
        lags,
    })
}

/// Effective sample size n(1 − r₁)/(1 + r₁) of a first-order autoregressive series; n itself when
/// r₁ ≤ 0 or undefined.
#[must_use]
pub fn effective_sample_size(values: &Sample) -> f64 {
    let n = values.len() as f64;
    match autocorrelation(values, 1) {
        Some(r1) if r1 > 0.0 => n * (1.0 - r1) / (1.0 + r1),
        _ => n,
    }
}

/// One step of the subsession rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SubsessionStep {
    /// Neighbours averaged.
    pub q: usize,
    /// Groups.
    pub m: usize,
    /// r₁ of the group means (0 when they are constant).
    pub r1: f64,
}

/// An interval for an autocorrelated series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subsession {
    /// Mean of the groups with a t interval over them; flagged [`Flag::NotIndependent`] when the
    /// groups stayed correlated.
    pub estimate: Estimate,
    /// The interval that takes every value for independent.
    pub naive: Estimate,
    /// The steps taken; the last is the one used.
    pub trace: Vec<SubsessionStep>,
    /// Whether |r₁| came within the limit.
    pub converged: bool,
}

/// Subsession rule of Pilot (Li, Gupta, Miller & Long, MASCOTS 2016): average q = 1, 2, 3, …
/// neighbours (dropping the tail remainder) until |r₁| ≤ `limit` or another step would leave fewer
/// than `min_groups` groups.
///
/// For the samples of *one* run; the interval between runs stays the primary one.
///
/// # Errors
/// [`StatsError::TooFew`] under two values; [`StatsError::Parameter`] for a limit not above zero.
pub fn subsession_ci(
    series: &Sample,
    limit: f64,
    min_groups: usize,
    confidence: Confidence,
) -> Result<Subsession, StatsError> {
    at_least("a subsession interval", 2, series.len())?;
    positive("limit of the autocorrelation", limit)?;
    let n = series.len();
    let min_groups = min_groups.max(2);
    let mut trace = Vec::new();
    let mut q = 1;
    let groups = loop {
        let groups: Vec<f64> = series.values().chunks_exact(q).map(mean).collect();
        let r1 = correlation(&groups, 1).unwrap_or(0.0);
        trace.push(SubsessionStep {
            q,
            m: groups.len(),
            r1,
        });
        if r1.abs() <= limit || n / (q + 1) < min_groups {
            break groups;
        }
        q += 1;
    };
    let converged = trace.last().is_some_and(|step| step.r1.abs() <= limit);
    let mut estimate = t_ci(&Sample::new(groups)?, confidence);
    estimate.method = Method::SubsessionT;
    estimate.n = n;
    if !converged {
        estimate.flag(Flag::NotIndependent);
    }
    Ok(Subsession {
        estimate,
        naive: t_ci(series, confidence),
        trace,
        converged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl Into<Vec<f64>>) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn constants_and_long_lags_have_no_correlation() {
        assert_eq!(autocorrelation(&sample([2.0; 9]), 1), None);
        assert_eq!(autocorrelation(&sample([1.0, 2.0]), 2), None);
        assert_eq!(ljung_box(&sample([2.0; 9]), 3), None);
        assert_eq!(ljung_box(&sample([1.0, 2.0]), 5), None);
        assert_eq!(effective_sample_size(&sample([2.0; 9])), 9.0);
    }

    #[test]
    fn a_ramp_never_converges_and_says_so() {
        let ramp: Vec<f64> = (0..57).map(f64::from).collect();
        let r = subsession_ci(&sample(ramp), 0.1, 10, Confidence::P95).unwrap();
        assert!(!r.converged);
        assert!(r.estimate.flags.contains(&Flag::NotIndependent));
        // 57/5 = 11 groups; 57/6 = 9 would be too few.
        assert_eq!(r.trace.last().map(|s| (s.q, s.m)), Some((5, 11)));
    }

    #[test]
    fn short_and_constant_series() {
        assert!(subsession_ci(&sample([1.0]), 0.1, 10, Confidence::P95).is_err());
        assert!(subsession_ci(&sample([1.0, 2.0]), 0.0, 10, Confidence::P95).is_err());
        let r = subsession_ci(&sample([5.0; 4]), 0.1, 10, Confidence::P95).unwrap();
        assert!(r.converged && r.estimate.value == 5.0);
    }
}

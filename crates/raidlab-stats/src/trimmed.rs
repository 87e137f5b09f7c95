//! The trimmed mean: drop the k best and k worst.

use crate::describe::{mean, sum_of_squares};
use crate::error::{StatsError, at_least};
use crate::estimate::{Confidence, Estimate, Method};
use crate::sample::Sample;
use crate::special::t_ppf;

/// A trimmed mean and what its interval was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Trimmed {
    /// Trimmed mean with its interval.
    pub estimate: Estimate,
    /// Winsorised mean.
    pub winsorised_mean: f64,
    /// Standard deviation of the winsorised values (n − 1).
    pub winsorised_sd: f64,
    /// Standard error s_w / ((h/n) √n).
    pub standard_error: f64,
    /// Degrees of freedom h − 1, where h = n − 2k values are kept.
    pub df: usize,
}

/// Trimmed mean without `k` values at each end, with the t interval of Tukey & McLaughlin (1963).
///
/// The standard error comes from the *winsorised* variance; the standard deviation of the values
/// kept would be too small. Dropping best and worst (k = 1) costs 2 % efficiency on clean normal
/// data and gains 12 to 14 % when each run has a 10 % chance of being an outlier.
///
/// # Errors
/// [`StatsError::TooFew`] unless n − 2k ≥ 2.
pub fn trimmed_mean_ci(
    sample: &Sample,
    k: usize,
    confidence: Confidence,
) -> Result<Trimmed, StatsError> {
    let n = sample.len();
    at_least(
        "a trimmed mean with an interval",
        k.saturating_mul(2).saturating_add(2),
        n,
    )?;
    let sorted = sample.sorted();
    let kept = n - 2 * k;
    let value = mean(&sorted[k..n - k]).clamp(sorted[k], sorted[n - k - 1]);

    let mut winsorised = sorted.to_vec();
    winsorised[..k].fill(sorted[k]);
    winsorised[n - k..].fill(sorted[n - k - 1]);
    let winsorised_sd = (sum_of_squares(&winsorised) / (n - 1) as f64).sqrt();
    let standard_error = winsorised_sd / (kept as f64 / n as f64 * (n as f64).sqrt());

    let half = t_ppf(confidence.upper(), (kept - 1) as f64) * standard_error;
    let ends = (value - half, value + half);
    Ok(Trimmed {
        estimate: Estimate::with_ends(value, ends, confidence.level(), Method::TrimmedT, n),
        winsorised_mean: mean(&winsorised),
        winsorised_sd,
        standard_error,
        df: kept - 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_trim_everything_away() {
        let s = Sample::new([1.0, 2.0, 3.0]).unwrap();
        assert!(matches!(
            trimmed_mean_ci(&s, 1, Confidence::P95),
            Err(StatsError::TooFew {
                needed: 4,
                got: 3,
                ..
            })
        ));
        assert!(trimmed_mean_ci(&s, usize::MAX, Confidence::P95).is_err());
    }

    #[test]
    fn no_trimming_is_the_t_interval() {
        let s = Sample::new([1.0, 2.0, 4.0, 3.5]).unwrap();
        let trimmed = trimmed_mean_ci(&s, 0, Confidence::P95).unwrap().estimate;
        let plain = crate::describe::t_ci(&s, Confidence::P95);
        assert!((trimmed.hi().unwrap() - plain.hi().unwrap()).abs() < 1e-12);
    }

    #[test]
    fn one_outlier_each_side_moves_nothing() {
        let clean = Sample::new([10.0, 11.0, 12.0, 13.0, 14.0]).unwrap();
        let dirty = Sample::new([1.0, 11.0, 12.0, 13.0, 900.0]).unwrap();
        let of = |s| trimmed_mean_ci(s, 1, Confidence::P95).unwrap();
        assert_eq!(of(&clean), of(&dirty));
    }
}

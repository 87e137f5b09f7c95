//! How many runs, and what difference would they show?

use crate::error::{StatsError, positive};
use crate::estimate::Confidence;
use crate::special::t_ppf;

/// Most runs that [`runs_required`] will name.
const MAX_RUNS: f64 = 1e12;
/// Power at which minimum detectable differences are stated.
pub const POWER: f64 = 0.8;

/// Smallest number of runs n ≥ 2 with t·CV/√n ≤ `half_width`: the runs that give a mean to
/// ± `half_width`, when single runs scatter by `cv` (both relative, or both in the same unit).
///
/// # Errors
/// [`StatsError::Parameter`] for a negative or unusable `cv`, a half-width not above zero, or when
/// more than 10¹² runs would be needed.
pub fn runs_required(cv: f64, half_width: f64, confidence: Confidence) -> Result<u64, StatsError> {
    positive("half-width", half_width)?;
    if !cv.is_finite() || cv < 0.0 {
        let allowed = "a coefficient of variation is a finite number, not below zero";
        return Err(StatsError::Parameter {
            name: "cv",
            value: cv,
            allowed,
        });
    }
    let enough = |n: f64| t_ppf(confidence.upper(), n - 1.0) * cv / n.sqrt() <= half_width;
    let (mut low, mut high) = (1.0, 2.0);
    while !enough(high) {
        low = high;
        high *= 2.0;
        if high > MAX_RUNS {
            return Err(StatsError::Parameter {
                name: "half-width",
                value: half_width,
                allowed: "it needs more than 10^12 runs; allow a wider interval",
            });
        }
    }
    // t/√n falls with n, so bisection finds the first n that will do.
    while high - low > 1.0 {
        let middle = (0.5 * (low + high)).floor();
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high as u64)
}

/// Smallest true difference that a two-sided t test would find with 80 % probability:
/// (t_{1−α/2,ν} + t_{0.8,ν})·SE (Bland, *An Introduction to Medical Statistics*, for known ν).
///
/// In the unit of `standard_error`; on the logarithms it is the log of a ratio.
#[must_use]
pub fn minimum_detectable(standard_error: f64, df: f64, confidence: Confidence) -> f64 {
    (t_ppf(confidence.upper(), df) + t_ppf(POWER, df)) * standard_error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_first_that_will_do() {
        for (cv, width) in [(0.031, 0.007), (0.5, 0.01), (0.001, 0.5)] {
            let n = runs_required(cv, width, Confidence::P95).unwrap();
            let half = |n: u64| t_ppf(0.975, (n - 1) as f64) * cv / (n as f64).sqrt();
            assert!(half(n) <= width);
            assert!(n == 2 || half(n - 1) > width);
        }
        assert_eq!(runs_required(0.0, 0.01, Confidence::P95).unwrap(), 2);
    }

    #[test]
    fn nonsense_is_refused() {
        let p = Confidence::P95;
        assert!(runs_required(-1.0, 0.1, p).is_err() && runs_required(f64::NAN, 0.1, p).is_err());
        assert!(runs_required(1.0, 0.0, p).is_err() && runs_required(1.0, 1e-9, p).is_err());
    }

    #[test]
    fn detectable_difference_matches_the_power_simulated_in_the_specification() {
        // n = 10 + 10, CV 2 %, +3 %: simulated power .87, so a little less is detectable at .80.
        let se = 0.02 * (2.0_f64 / 10.0).sqrt();
        let d = minimum_detectable(se, 18.0, Confidence::P95);
        assert!((0.025..0.030).contains(&d), "{d}");
    }
}

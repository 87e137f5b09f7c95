//! What the interval of a ratio follows from, to test other ratios than one.

use crate::special::t_two_sided_p;
use serde::{Deserialize, Serialize};

/// The distribution behind a ratio (candidate over baseline) and its interval: a ratio lies in the interval exactly when
/// its two-sided p is above 1 − confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Student's t of the mean log ratio.
    Logarithms {
        /// Mean log ratio.
        mean: f64,
        /// Its standard error.
        error: f64,
        /// Degrees of freedom.
        df: f64,
    },
    /// Fieller's (1954): Student's t of mean(candidate) − ratio · mean(baseline); all in units of the baseline's mean.
    Means {
        /// Mean of the candidate.
        candidate: f64,
        /// Variance of the baseline's mean.
        baseline_variance: f64,
        /// Variance of the candidate's mean.
        candidate_variance: f64,
        /// Covariance of both means: zero but for pairs.
        covariance: f64,
        /// Degrees of freedom.
        df: f64,
    },
}

impl Law {
    /// How far the data lie from a ratio, in standard errors, and the degrees of freedom. Without any spread that is 0 or
    /// infinite.
    fn statistic(self, ratio: f64) -> (f64, f64) {
        let (distance, error, df) = match self {
            // No logarithm of zero, and no data of such a ratio.
            Self::Logarithms { mean, error, df } => (mean - libm::log(ratio), error, df),
            Self::Means {
                candidate,
                baseline_variance,
                candidate_variance,
                covariance,
                df,
            } => {
                let variance = candidate_variance - 2.0 * ratio * covariance
                    + ratio * ratio * baseline_variance;
                (candidate - ratio, variance.max(0.0).sqrt(), df)
            }
        };
        let t = match (error > 0.0, distance == 0.0) {
            (true, _) => distance / error,
            (false, true) => 0.0,
            (false, false) => f64::INFINITY.copysign(distance),
        };
        (t, df)
    }

    /// Student's t of a ratio; `None` when there is no spread.
    pub(crate) fn t(self, ratio: f64) -> Option<f64> {
        let (t, _) = self.statistic(ratio);
        let spread = match self {
            Self::Logarithms { error, .. } => error > 0.0,
            Self::Means { .. } => t.is_finite() && t != 0.0,
        };
        spread.then_some(t)
    }

    /// Degrees of freedom.
    #[must_use]
    pub fn df(self) -> f64 {
        match self {
            Self::Logarithms { df, .. } | Self::Means { df, .. } => df,
        }
    }

    /// Two-sided p of "the ratio is this one".
    #[must_use]
    pub fn p(self, ratio: f64) -> f64 {
        let (t, df) = self.statistic(ratio);
        match t.is_finite() {
            true => t_two_sided_p(t, df),
            false => 0.0,
        }
    }

    /// One-sided p of "the ratio is this one or more": small when it is surely less.
    #[must_use]
    pub fn p_of_less(self, ratio: f64) -> f64 {
        self.one_sided(ratio, self.statistic(ratio).0 < 0.0)
    }

    /// One-sided p of "the ratio is this one or less": small when it is surely more.
    #[must_use]
    pub fn p_of_more(self, ratio: f64) -> f64 {
        self.one_sided(ratio, self.statistic(ratio).0 > 0.0)
    }

    fn one_sided(self, ratio: f64, speaks_for_it: bool) -> f64 {
        let half = 0.5 * self.p(ratio);
        if speaks_for_it { half } else { 1.0 - half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_a_ratio_share_its_p() {
        let law = Law::Logarithms {
            mean: libm::log(0.9),
            error: 0.02,
            df: 8.0,
        };
        let (less, more) = (law.p_of_less(0.95), law.p_of_more(0.95));
        assert!((less - 0.5 * law.p(0.95)).abs() < 1e-15 && less < 0.05);
        assert!((less + more - 1.0).abs() < 1e-15);
        assert!((law.p_of_less(0.9) - 0.5).abs() < 1e-12);
        assert!(law.p_of_less(0.85) > 0.95);
    }

    #[test]
    fn without_spread_all_is_certain() {
        let law = Law::Means {
            candidate: 0.0,
            baseline_variance: 0.0,
            candidate_variance: 0.0,
            covariance: 0.0,
            df: 8.0,
        };
        assert_eq!((law.p(0.95), law.p_of_less(0.95)), (0.0, 0.0));
        assert_eq!((law.p(0.0), law.t(0.0)), (1.0, None));
    }
}

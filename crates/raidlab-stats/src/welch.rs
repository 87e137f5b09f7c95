//! Welch's t test of two independent means.

use crate::error::{StatsError, at_least};
use crate::estimate::Confidence;
use crate::sample::Sample;
use crate::special::{t_ppf, t_two_sided_p};

/// Result of Welch's t test of mean(a) − mean(b).
#[derive(Debug, Clone, PartialEq)]
pub struct Welch {
    /// mean(a) − mean(b).
    pub difference: f64,
    /// Standard error √(s_a²/n_a + s_b²/n_b).
    pub standard_error: f64,
    /// t; `None` when neither side varies.
    pub t: Option<f64>,
    /// Degrees of freedom of Welch and Satterthwaite (n_a + n_b − 2 when neither side varies).
    pub df: f64,
    /// Two-sided p; with no spread at all, 1 for equal means and 0 otherwise.
    pub p: f64,
    /// Interval of the difference.
    pub ci: (f64, f64),
}

/// Welch's t test: two means, variances not assumed equal.
///
/// # Errors
/// [`StatsError::TooFew`] below two values on a side.
pub fn welch_t(a: &Sample, b: &Sample, confidence: Confidence) -> Result<Welch, StatsError> {
    for side in [a, b] {
        at_least("Welch's t test (on each side)", 2, side.len())?;
    }
    let spread = |s: &Sample| s.variance().unwrap_or(0.0) / s.len() as f64;
    let (v_a, v_b) = (spread(a), spread(b));
    let difference = a.mean() - b.mean();
    let standard_error = (v_a + v_b).sqrt();
    let (free_a, free_b) = ((a.len() - 1) as f64, (b.len() - 1) as f64);
    // Shares of the variance, so that squares neither over- nor underflow.
    let total = v_a + v_b;
    let df = if total > 0.0 {
        let (share_a, share_b) = (v_a / total, v_b / total);
        1.0 / (share_a * share_a / free_a + share_b * share_b / free_b)
    } else {
        free_a + free_b
    };
    let t = (standard_error > 0.0).then(|| difference / standard_error);
    let p = match t {
        Some(t) => t_two_sided_p(t, df),
        None if difference == 0.0 => 1.0,
        None => 0.0,
    };
    let half = t_ppf(confidence.upper(), df) * standard_error;
    Ok(Welch {
        difference,
        standard_error,
        t,
        df,
        p,
        ci: (difference - half, difference + half),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_do_not_divide_by_zero() {
        let (two, three) = (
            Sample::new([2.0; 3]).unwrap(),
            Sample::new([3.0; 4]).unwrap(),
        );
        let same = welch_t(&two, &two, Confidence::P95).unwrap();
        assert_eq!((same.t, same.p, same.ci), (None, 1.0, (0.0, 0.0)));
        let differ = welch_t(&two, &three, Confidence::P95).unwrap();
        assert_eq!((differ.p, differ.df), (0.0, 5.0));
        assert!(welch_t(&Sample::new([1.0]).unwrap(), &two, Confidence::P95).is_err());
    }
}

//! How many times the baseline is the candidate? Ratios with intervals.

use crate::describe::mean;
use crate::error::{StatsError, at_least};
use crate::estimate::{Confidence, Estimate, Flag, Method};
use crate::sample::{Sample, clean};
use crate::special::{t_ppf, t_two_sided_p};
use crate::welch::welch_t;

/// A ratio, candidate over baseline, with the test of its being one.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioTest {
    /// The ratio with its interval.
    pub ratio: Estimate,
    /// Student's t on the logarithms; `None` when their spread is zero or n = 1.
    pub t: Option<f64>,
    /// Degrees of freedom; `None` when n = 1.
    pub df: Option<f64>,
    /// Two-sided p of "the ratio is 1"; `None` when n = 1. With no spread at all it is 1 for equal
    /// sides and 0 otherwise.
    pub p: Option<f64>,
    /// Standard error of the log ratio; `None` when n = 1.
    pub se_log: Option<f64>,
}

/// The logarithms dᵢ = ln(bᵢ/aᵢ) of the rounds.
///
/// # Errors
/// [`StatsError::UnequalLengths`], [`StatsError::NotPositive`].
pub fn log_ratios(baseline: &Sample, candidate: &Sample) -> Result<Sample, StatsError> {
    if baseline.len() != candidate.len() {
        return Err(StatsError::UnequalLengths {
            left: baseline.len(),
            right: candidate.len(),
        });
    }
    // ln b − ln a rather than ln(b/a): antisymmetric to the last bit.
    let (a, b) = (baseline.ln()?, candidate.ln()?);
    let d: Vec<f64> = a
        .values()
        .iter()
        .zip(b.values())
        .map(|(a, b)| clean(b - a))
        .collect();
    Sample::new(d)
}

/// Paired: geometric mean ratio of the rounds, exp(d̄ ± t s_d/√n) with dᵢ = ln(bᵢ/aᵢ).
///
/// The primary comparison of runs made in the same rounds: what is common to a round (drift, other
/// load) cancels.
///
/// # Errors
/// [`StatsError::UnequalLengths`], [`StatsError::NotPositive`].
pub fn paired_log_ratio(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<RatioTest, StatsError> {
    let d = log_ratios(baseline, candidate)?;
    let n = d.len();
    let centre = d.mean();
    let Some(se) = d.sem() else {
        let quotient = candidate.values()[0] / baseline.values()[0];
        return Ok(bare_ratio(quotient, Method::PairedLogT, n));
    };
    Ok(from_log(
        centre,
        se,
        (n - 1) as f64,
        Method::PairedLogT,
        n,
        confidence,
    ))
}

/// Unpaired: ratio of geometric means with Welch's interval on the logarithms.
///
/// # Errors
/// [`StatsError::NotPositive`].
pub fn unpaired_log_ratio(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<RatioTest, StatsError> {
    let (a, b) = (baseline.ln()?, candidate.ln()?);
    let n = a.len() + b.len();
    let centre = b.mean() - a.mean();
    if a.len() < 2 || b.len() < 2 {
        let quotient = candidate.geometric_mean()? / baseline.geometric_mean()?;
        return Ok(bare_ratio(quotient, Method::WelchLog, n));
    }
    let welch = welch_t(&b, &a, confidence)?;
    Ok(from_log(
        centre,
        welch.standard_error,
        welch.df,
        Method::WelchLog,
        n,
        confidence,
    ))
}

fn bare_ratio(value: f64, method: Method, n: usize) -> RatioTest {
    let ratio = Estimate::single(value, method, n);
    RatioTest {
        ratio,
        t: None,
        df: None,
        p: None,
        se_log: None,
    }
}

fn from_log(
    centre: f64,
    se: f64,
    df: f64,
    method: Method,
    n: usize,
    confidence: Confidence,
) -> RatioTest {
    let half = t_ppf(confidence.upper(), df) * se;
    let ends = (libm::exp(centre - half), libm::exp(centre + half));
    let mut ratio = Estimate::with_ends(libm::exp(centre), ends, confidence.level(), method, n);
    if ends.0 == 0.0 {
        // The lower end underflowed: its reciprocal would be infinite, and so is this interval.
        ratio.interval = None;
        ratio.flag(Flag::Unbounded);
    }
    let t = (se > 0.0).then(|| centre / se);
    let p = match t {
        Some(t) => t_two_sided_p(t, df),
        None if centre == 0.0 => 1.0,
        None => 0.0,
    };
    RatioTest {
        ratio,
        t,
        df: Some(df),
        p: Some(p),
        se_log: Some(se),
    }
}

/// Fieller's (1954) interval for mean(candidate)/mean(baseline), independent samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Fieller {
    /// The ratio; [`Flag::Unbounded`] and without interval when g ≥ 1 ("ratio not estimable").
    pub ratio: Estimate,
    /// g = t² v_a / ā²: at 1 and above the baseline's mean is not told apart from zero.
    pub g: f64,
    /// Degrees of freedom n_a + n_b − 2.
    pub df: usize,
}

/// Ratio of arithmetic means with Fieller's interval. Unlike the log ratios it takes zeros and
/// negative values.
///
/// # Errors
/// [`StatsError::TooFew`] below two values on a side; [`StatsError::Parameter`] when the mean of
/// the baseline is zero, so that there is no ratio.
pub fn fieller_ratio(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<Fieller, StatsError> {
    for side in [baseline, candidate] {
        at_least("Fieller's interval (on each side)", 2, side.len())?;
    }
    let q = mean_ratio(baseline, candidate)?;
    let (n_a, n_b) = (baseline.len(), candidate.len());
    let a_mean = baseline.mean();
    let df = n_a + n_b - 2;
    let t = t_ppf(confidence.upper(), df as f64);
    // Relative to ā, so that nothing overflows: v_a/ā² and v_b/ā².
    let relative = |s: &Sample| s.sem().map_or(0.0, |e| (e / a_mean) * (e / a_mean));
    let (v_a, v_b) = (relative(baseline), relative(candidate));
    let g = t * t * v_a;
    let n = n_a + n_b;
    let ratio = if g < 1.0 {
        let root = t * ((1.0 - g) * v_b + q * q * v_a).sqrt();
        let ends = ((q - root) / (1.0 - g), (q + root) / (1.0 - g));
        Estimate::with_ends(q, ends, confidence.level(), Method::Fieller, n)
    } else {
        Estimate::bare(q, Method::Fieller, n, Flag::Unbounded)
    };
    Ok(Fieller { ratio, g, df })
}

/// mean(candidate)/mean(baseline), without an interval.
pub(crate) fn mean_ratio(baseline: &Sample, candidate: &Sample) -> Result<f64, StatsError> {
    let q = mean(candidate.sorted()) / mean(baseline.sorted());
    if q.is_finite() {
        return Ok(q);
    }
    Err(StatsError::Parameter {
        name: "mean of the baseline",
        value: baseline.mean(),
        allowed: "a ratio needs a baseline that differs from zero",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn one_round_is_a_bare_ratio() {
        for method in [paired_log_ratio, unpaired_log_ratio] {
            let r = method(&sample(&[2.0]), &sample(&[3.0]), Confidence::P95).unwrap();
            assert!((r.ratio.value - 1.5).abs() < 1e-15);
            assert_eq!(r.ratio.flags, [Flag::SingleValue]);
            assert_eq!((r.ratio.interval, r.p), (None, None));
        }
    }

    #[test]
    fn rounds_without_spread() {
        let a = sample(&[1.0, 2.0, 4.0]);
        let same = paired_log_ratio(&a, &a, Confidence::P95).unwrap();
        assert_eq!((same.p, same.t), (Some(1.0), None));
        let twice = sample(&[2.0, 4.0, 8.0]);
        let exact = paired_log_ratio(&sample(&[1.0; 3]), &sample(&[2.0; 3]), Confidence::P95);
        assert_eq!(exact.unwrap().p, Some(0.0));
        assert!(
            paired_log_ratio(&a, &twice, Confidence::P95)
                .unwrap()
                .p
                .unwrap()
                < 1e-12
        );
    }

    #[test]
    fn bad_pairs_are_named() {
        let p = Confidence::P95;
        let error = paired_log_ratio(&sample(&[1.0, 2.0]), &sample(&[1.0]), p).unwrap_err();
        assert_eq!(error, StatsError::UnequalLengths { left: 2, right: 1 });
        assert!(matches!(
            paired_log_ratio(&sample(&[1.0, 2.0]), &sample(&[1.0, -2.0]), p),
            Err(StatsError::NotPositive { index: 1, .. })
        ));
    }

    #[test]
    fn an_interval_beyond_the_numbers_is_unbounded() {
        let a = sample(&[1e-130, 1e130]);
        let b = sample(&[1e130, 1e-130]);
        let r = paired_log_ratio(&a, &b, Confidence::P95).unwrap().ratio;
        assert_eq!(r.interval, None);
        assert!(r.flags.contains(&Flag::Unbounded));
    }

    #[test]
    fn fieller_refuses_a_baseline_of_zero() {
        let zero = sample(&[0.0, 0.0]);
        assert!(fieller_ratio(&zero, &sample(&[1.0, 2.0]), Confidence::P95).is_err());
        let mixed = sample(&[-1.0, 1.0]);
        assert!(fieller_ratio(&mixed, &sample(&[1.0, 2.0]), Confidence::P95).is_err());
        assert!(fieller_ratio(&sample(&[1.0]), &sample(&[1.0, 2.0]), Confidence::P95).is_err());
    }
}

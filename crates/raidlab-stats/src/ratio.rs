//! How many times the baseline is the candidate? Ratios with intervals.

use crate::describe::mean;
use crate::error::{StatsError, at_least};
use crate::estimate::{Confidence, Estimate, Flag, Method};
use crate::law::Law;
use crate::sample::{Sample, clean};
use crate::special::t_ppf;
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
    /// What tests other ratios than one; `None` when n = 1.
    pub law: Option<Law>,
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

/// The differences bᵢ − aᵢ of the rounds, for values without logarithms.
pub(crate) fn differences(baseline: &Sample, candidate: &Sample) -> Result<Sample, StatsError> {
    let pairs = baseline.values().iter().zip(candidate.values());
    Sample::new(pairs.map(|(a, b)| clean(b - a)).collect::<Vec<_>>())
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

pub(crate) fn bare_ratio(value: f64, method: Method, n: usize) -> RatioTest {
    let ratio = Estimate::single(value, method, n);
    RatioTest {
        ratio,
        t: None,
        df: None,
        p: None,
        se_log: None,
        law: None,
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
    let law = Law::Logarithms {
        mean: centre,
        error: se,
        df,
    };
    RatioTest {
        ratio,
        t: law.t(1.0),
        df: Some(df),
        p: Some(law.p(1.0)),
        se_log: Some(se),
        law: Some(law),
    }
}

/// Fieller's (1954) interval for mean(candidate)/mean(baseline).
#[derive(Debug, Clone, PartialEq)]
pub struct Fieller {
    /// The ratio; [`Flag::Unbounded`] and without interval when g ≥ 1 ("ratio not estimable").
    pub ratio: Estimate,
    /// g = t² v_a / ā²: at 1 and above the baseline's mean is not told apart from zero.
    pub g: f64,
    /// Degrees of freedom: n_a + n_b − 2, of pairs n − 1.
    pub df: usize,
    /// What tests a ratio.
    pub law: Law,
}

/// Ratio of arithmetic means with Fieller's interval, independent samples. Unlike the log ratios it takes zeros and
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
    let n = baseline.len() + candidate.len();
    Ok(fieller(q, baseline, candidate, 0.0, (n, n - 2), confidence))
}

/// Ratio of arithmetic means of pairs with Fieller's interval: that of the differences bᵢ − ϱ aᵢ.
///
/// # Errors
/// As [`fieller_ratio`], and [`StatsError::UnequalLengths`].
pub fn paired_fieller_ratio(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<Fieller, StatsError> {
    let n = baseline.len();
    if n != candidate.len() {
        return Err(StatsError::UnequalLengths {
            left: n,
            right: candidate.len(),
        });
    }
    at_least("Fieller's interval (in pairs)", 2, n)?;
    let q = mean_ratio(baseline, candidate)?;
    let (a_mean, b_mean) = (baseline.mean(), candidate.mean());
    let pairs = baseline.values().iter().zip(candidate.values());
    let products: Vec<f64> = pairs
        .map(|(a, b)| ((a - a_mean) / a_mean) * ((b - b_mean) / a_mean))
        .collect();
    let covariance = products.iter().sum::<f64>() / ((n - 1) as f64 * n as f64);
    let size = (n, n - 1);
    Ok(fieller(
        q, baseline, candidate, covariance, size, confidence,
    ))
}

/// `covariance` of the means, relative to ā²; `n` values with so many degrees of freedom.
fn fieller(
    q: f64,
    baseline: &Sample,
    candidate: &Sample,
    covariance: f64,
    (n, df): (usize, usize),
    confidence: Confidence,
) -> Fieller {
    let a_mean = baseline.mean();
    let t = t_ppf(confidence.upper(), df as f64);
    // Relative to ā, so that nothing overflows: v_a/ā² and v_b/ā².
    let relative = |s: &Sample| s.sem().map_or(0.0, |e| (e / a_mean) * (e / a_mean));
    let (v_a, v_b) = (relative(baseline), relative(candidate));
    let g = t * t * v_a;
    let ratio = if g < 1.0 {
        let c = t * covariance;
        let under = (1.0 - g) * v_b + q * q * v_a - 2.0 * q * covariance + c * c;
        // Above zero but for rounding: the ratio of the means is always inside.
        let root = t * under.max(0.0).sqrt();
        let centre = q - t * c;
        let ends = ((centre - root) / (1.0 - g), (centre + root) / (1.0 - g));
        Estimate::with_ends(q, ends, confidence.level(), Method::Fieller, n)
    } else {
        Estimate::bare(q, Method::Fieller, n, Flag::Unbounded)
    };
    let law = Law::Means {
        candidate: q,
        baseline_variance: v_a,
        candidate_variance: v_b,
        covariance,
        df: df as f64,
    };
    Fieller { ratio, g, df, law }
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

    /// Of independent sides pairing changes the degrees of freedom alone; what is common to a round cancels.
    #[test]
    fn pairs_cancel_what_is_common_to_a_round() {
        let rounds = [1.0, 2.0, 0.5, 1.5, 3.0, 0.8];
        let a = sample(&rounds.map(|x| 100.0 * x));
        let near = [0.0, 1.0, -1.0, 0.5, -0.5, 0.0];
        let b: Vec<f64> = rounds.iter().zip(near).map(|(x, e)| 80.0 * x + e).collect();
        let b = sample(&b);
        let paired = paired_fieller_ratio(&a, &b, Confidence::P95).unwrap();
        let apart = fieller_ratio(&a, &b, Confidence::P95);
        let interval = paired.ratio.interval.unwrap();
        assert!((paired.ratio.value - 0.8).abs() < 1e-3 && paired.ratio.n == 6);
        assert!(interval.lo > 0.78 && interval.hi < 0.82, "{interval:?}");
        assert!(
            apart
                .unwrap()
                .ratio
                .interval
                .is_none_or(|i| i.half_width() > 0.2)
        );
        // Each end is a ratio whose p is what the interval leaves out.
        for end in [interval.lo, interval.hi] {
            assert!((paired.law.p(end) - 0.05).abs() < 1e-9);
        }
    }

    #[test]
    fn a_candidate_at_zero_is_zero_times_the_baseline() {
        let (a, zero) = (sample(&[9.0, 10.0, 11.0]), sample(&[0.0; 3]));
        for law in [fieller_ratio, paired_fieller_ratio] {
            let r = law(&a, &zero, Confidence::P95).unwrap();
            assert_eq!(
                (r.ratio.value, r.ratio.lo(), r.ratio.hi()),
                (0.0, Some(0.0), Some(0.0))
            );
            assert!(r.law.p_of_less(0.95) < 0.01);
        }
    }
}

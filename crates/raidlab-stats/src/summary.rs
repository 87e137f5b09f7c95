//! The headline: everything a report says about the runs of one cell.

use crate::autocorr::autocorrelation;
use crate::describe::t_ci;
use crate::drift::{Drift, drift};
use crate::error::StatsError;
use crate::estimate::{Confidence, Estimate, Flag};
use crate::median::median_ci;
use crate::outlier::{Outliers, outliers};
use crate::sample::Sample;
use crate::special::norm_ppf;
use crate::trimmed::trimmed_mean_ci;
use crate::two_level::headline_of_sessions;
use serde::{Deserialize, Serialize};

/// Fewest runs for which best and worst are dropped.
const TRIM_FROM: usize = 5;
/// Fewest runs for which r₁ can be flagged.
const R1_FROM: usize = 8;

/// How the values of runs are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Arithmetic: durations, and rates over a fixed time.
    #[default]
    Arithmetic,
    /// Harmonic: rates of a fixed amount of work (bonnie++, dd, hdparm), whose *times* are averaged.
    Harmonic,
    /// Geometric: ratios and indices over different workloads.
    Geometric,
}

impl Aggregate {
    /// The sample on the scale on which this aggregate is an arithmetic mean.
    pub(crate) fn forward(self, sample: &Sample) -> Result<Sample, StatsError> {
        match self {
            Self::Arithmetic => Ok(sample.clone()),
            Self::Harmonic => sample.reciprocals(),
            Self::Geometric => sample.ln(),
        }
    }

    /// An estimate back from that scale.
    pub(crate) fn back(self, estimate: &Estimate) -> Estimate {
        match self {
            Self::Arithmetic => estimate.clone(),
            // An interval of the mean time that reaches zero has no finite rate at that end.
            Self::Harmonic => estimate.mapped(|t| if t > 0.0 { 1.0 / t } else { f64::INFINITY }),
            Self::Geometric => estimate.mapped(libm::exp),
        }
    }
}

/// Which figure is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headline {
    /// The trimmed mean (best and worst dropped) for n ≥ 5, else the median.
    #[default]
    Usual,
    /// The mean of all.
    Mean,
    /// The median.
    Median,
    /// The mean without so many at each end; the median where fewer than two would be left.
    Trimmed(usize),
}

/// Everything about one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of runs.
    pub n: usize,
    /// How they were averaged.
    pub aggregate: Aggregate,
    /// The figure to quote, as [`Headline`] says. Carries all flags of the sample, whichever figure it is.
    pub headline: Estimate,
    /// Median with its exact interval and that interval's true confidence; of the times for a harmonic
    /// aggregate, which matters where it lies between two runs.
    pub median: Estimate,
    /// Untrimmed mean with Student's interval.
    pub mean: Estimate,
    /// Standard deviation of the values; `None` for n = 1.
    pub sd: Option<f64>,
    /// Coefficient of variation; `None` for n = 1 or a mean of zero.
    pub cv: Option<f64>,
    /// Raw median absolute deviation.
    pub mad: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Scores and flagged runs.
    pub outliers: Outliers,
    /// Drift over the order of the runs; `None` for n < 3 or n > 2000.
    pub drift: Option<Drift>,
    /// Autocorrelation of successive runs; `None` for n < 3 or constant values.
    pub r1: Option<f64>,
}

impl Summary {
    /// "heavy tail: median …" when trimmed mean and median are far apart, else `None`.
    #[must_use]
    pub fn heavy_tail_median(&self) -> Option<f64> {
        self.headline
            .flags
            .contains(&Flag::HeavyTail)
            .then_some(self.median.value)
    }
}

/// The headline estimate alone; a trimmed mean is flagged [`Flag::HeavyTail`] when it and the median are more than 1.5
/// standard errors apart.
///
/// # Errors
/// [`StatsError::NotPositive`] for harmonic and geometric means of values ≤ 0.
pub fn headline(
    sample: &Sample,
    aggregate: Aggregate,
    which: Headline,
    confidence: Confidence,
) -> Result<Estimate, StatsError> {
    let scaled = aggregate.forward(sample)?;
    Ok(aggregate.back(&headline_of(&scaled, which, confidence)))
}

/// The headline on the scale on which means are arithmetic.
pub(crate) fn headline_of(scaled: &Sample, which: Headline, confidence: Confidence) -> Estimate {
    let median = || median_ci(scaled, confidence);
    let drop = match which {
        // One run is a bare figure, however it is called.
        _ if scaled.len() == 1 => return median(),
        Headline::Mean => return t_ci(scaled, confidence),
        Headline::Median => return median(),
        Headline::Usual if scaled.len() < TRIM_FROM => return median(),
        Headline::Usual => 1,
        Headline::Trimmed(drop) => drop,
    };
    let Ok(trimmed) = trimmed_mean_ci(scaled, drop, confidence) else {
        return median();
    };
    let gap = (trimmed.estimate.value - scaled.median()).abs();
    let mut estimate = trimmed.estimate;
    // Below rounding nothing is a difference.
    if gap > 1.5 * trimmed.standard_error + 1e-12 * scaled.median().abs() {
        estimate.flag(Flag::HeavyTail);
    }
    estimate
}

/// Summarises the values of runs, in run order, at 95 %.
///
/// # Errors
/// As [`Sample::new`]; [`StatsError::NotPositive`] for harmonic and geometric means of values ≤ 0.
pub fn summarise(values: &[f64], aggregate: Aggregate) -> Result<Summary, StatsError> {
    let sample = Sample::new(values)?;
    summarise_at(&sample, aggregate, Headline::Usual, Confidence::P95)
}

/// [`summarise`] of a checked sample with another headline and confidence.
///
/// # Errors
/// [`StatsError::NotPositive`] for harmonic and geometric means of values ≤ 0.
pub fn summarise_at(
    sample: &Sample,
    aggregate: Aggregate,
    which: Headline,
    confidence: Confidence,
) -> Result<Summary, StatsError> {
    let n = sample.len();
    let outliers = outliers(sample);
    let drift = if n >= 3 { drift(sample).ok() } else { None };
    let r1 = if n >= 3 {
        autocorrelation(sample, 1)
    } else {
        None
    };
    let scaled = aggregate.forward(sample)?;
    let mut summary = Summary {
        n,
        aggregate,
        headline: aggregate.back(&headline_of(&scaled, which, confidence)),
        median: aggregate.back(&median_ci(&scaled, confidence)),
        mean: aggregate.back(&t_ci(&scaled, confidence)),
        sd: sample.sd(),
        cv: sample.cv(),
        mad: sample.mad(),
        min: sample.min(),
        max: sample.max(),
        outliers,
        drift,
        r1,
    };
    summary.flag_headline(sample);
    Ok(summary)
}

/// [`summarise_at`] of runs that were made in several sessions, `session_of` each run. Where sessions differ by more than
/// their runs explain, the headline is that of [`headline_of_sessions`]; where that cannot be known, it is flagged
/// [`Flag::SessionsIgnored`].
///
/// # Errors
/// As [`summarise_at`]; [`StatsError::UnequalLengths`] unless each run has its session.
pub fn summarise_sessions(
    sample: &Sample,
    session_of: &[&str],
    aggregate: Aggregate,
    which: Headline,
    confidence: Confidence,
) -> Result<Summary, StatsError> {
    let mut summary = summarise_at(sample, aggregate, which, confidence)?;
    let sessions = by_session(sample, session_of)?;
    let alone = sessions.iter().filter(|s| s.len() == 1).count();
    match (sessions.len(), alone) {
        // Runs of which each has a session of its own are as far apart as sessions are.
        (0 | 1, _) => {}
        (all, alone) if all == alone => {}
        (_, 0) => {
            let told = headline_of_sessions(&sessions, aggregate, which, confidence)?;
            if let Some(between) = told {
                summary.headline = between;
                summary.flag_headline(sample);
            }
        }
        _ => summary.headline.flag(Flag::SessionsIgnored),
    }
    Ok(summary)
}

/// The runs of each session, in the order in which sessions first come.
fn by_session(sample: &Sample, session_of: &[&str]) -> Result<Vec<Sample>, StatsError> {
    if sample.len() != session_of.len() {
        return Err(StatsError::UnequalLengths {
            left: sample.len(),
            right: session_of.len(),
        });
    }
    let mut sessions: Vec<(&str, Vec<f64>)> = Vec::new();
    for (value, name) in sample.values().iter().zip(session_of) {
        match sessions.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(*value),
            None => sessions.push((name, vec![*value])),
        }
    }
    sessions
        .into_iter()
        .map(|(_, values)| Sample::new(values))
        .collect()
}

impl Summary {
    /// Puts what is to be said of the runs on the headline.
    fn flag_headline(&mut self, sample: &Sample) {
        for flag in sample_flags(sample, &self.outliers, self.drift, self.r1) {
            self.headline.flag(flag);
        }
    }
}

fn sample_flags(
    sample: &Sample,
    outliers: &Outliers,
    drift: Option<Drift>,
    r1: Option<f64>,
) -> Vec<Flag> {
    let n = sample.len();
    let first = sample.values()[0];
    let first_is_extreme = first == sample.min() || first == sample.max();
    // Independent values keep |r₁| below z/√n (Bartlett 1946); only likeness is of interest here.
    let r1_limit = norm_ppf(Confidence::P95.upper()) / (n as f64).sqrt();
    let raised = [
        (Flag::Outliers, !outliers.outliers.is_empty()),
        (Flag::SevereOutliers, !outliers.severe.is_empty()),
        (
            Flag::FirstRunDiffers,
            first_is_extreme && outliers.severe.contains(&0),
        ),
        (Flag::Drift, drift.is_some_and(|d| d.significant())),
        (
            Flag::Autocorrelated,
            n >= R1_FROM && r1.is_some_and(|r| r > r1_limit),
        ),
    ];
    raised
        .into_iter()
        .filter(|(_, yes)| *yes)
        .map(|(flag, _)| flag)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Method;

    #[test]
    fn one_run_is_a_bare_figure() {
        let s = summarise(&[47.0], Aggregate::Arithmetic).unwrap();
        assert_eq!((s.headline.value, s.headline.interval), (47.0, None));
        assert_eq!(s.headline.flags, [Flag::SingleValue]);
        assert_eq!(s.headline.flags[0].to_string(), "n=1, no interval");
        assert_eq!((s.sd, s.drift, s.r1), (None, None, None));
    }

    #[test]
    fn one_run_is_the_same_figure_under_every_headline() {
        let sample = Sample::new([47.0]).unwrap();
        let of = |which| headline(&sample, Aggregate::Harmonic, which, Confidence::P95).unwrap();
        let usual = of(Headline::Usual);
        for which in [Headline::Mean, Headline::Median, Headline::Trimmed(1)] {
            assert_eq!(of(which), usual, "{which:?}");
        }
    }

    #[test]
    fn four_runs_are_a_median_and_five_a_trimmed_mean() {
        let four = summarise(&[1.0, 2.0, 3.0, 4.0], Aggregate::Arithmetic).unwrap();
        assert_eq!(four.headline.method, Method::OrderStatistic);
        assert_eq!(four.headline.interval.unwrap().confidence, 0.875);
        assert!(four.headline.flags.contains(&Flag::LowConfidence));
        let five = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0], Aggregate::Arithmetic).unwrap();
        assert_eq!(five.headline.method, Method::TrimmedT);
    }

    #[test]
    fn a_slow_and_a_cached_run_are_named() {
        let values = [47.1, 46.8, 47.3, 46.9, 47.0, 47.2, 46.5, 47.4, 38.2, 105.0];
        let s = summarise(&values, Aggregate::Arithmetic).unwrap();
        assert_eq!(s.outliers.severe, [8, 9]);
        assert_eq!(s.headline.flags, [Flag::Outliers, Flag::SevereOutliers]);
        assert!((s.headline.value - 47.025).abs() < 1e-12);
        assert_eq!(s.heavy_tail_median(), None);
    }

    #[test]
    fn a_fifth_of_slow_runs_is_a_heavy_tail() {
        let values: Vec<f64> = (0..30)
            .map(|i| if i % 5 == 2 { 50.0 } else { 100.0 } + f64::from(i * 7 % 4) * 0.1)
            .collect();
        let s = summarise(&values, Aggregate::Arithmetic).unwrap();
        assert!(s.headline.value < 95.0, "{}", s.headline.value);
        assert_eq!(s.heavy_tail_median(), Some(s.median.value));
        assert!(s.median.value >= 100.0);
        let clean: Vec<f64> = (0..30)
            .map(|i| 100.0 + f64::from(i * 7 % 4) * 0.1)
            .collect();
        assert_eq!(
            summarise(&clean, Aggregate::Arithmetic)
                .unwrap()
                .heavy_tail_median(),
            None
        );
    }

    #[test]
    fn fixed_work_averages_the_times() {
        let rates = [50.0, 100.0, 50.0, 100.0, 80.0, 60.0];
        let times: Vec<f64> = rates.iter().map(|r| 1.0 / r).collect();
        let by_rate = summarise(&rates, Aggregate::Harmonic).unwrap().headline;
        let by_time = summarise(&times, Aggregate::Arithmetic).unwrap().headline;
        assert!((by_rate.value * by_time.value - 1.0).abs() < 1e-14);
        assert!((by_rate.lo().unwrap() * by_time.hi().unwrap() - 1.0).abs() < 1e-14);
        assert!(by_rate.lo() < by_rate.hi());
        let mean = summarise(&rates, Aggregate::Harmonic).unwrap().mean.value;
        assert!((mean - Sample::new(rates).unwrap().harmonic_mean().unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_mean_time_that_may_be_zero_has_no_interval() {
        let s = summarise(&[1.0, 1000.0, 0.01, 500.0, 1000.0], Aggregate::Harmonic).unwrap();
        assert_eq!(s.mean.interval, None);
        assert!(s.mean.flags.contains(&Flag::Unbounded));
    }

    #[test]
    fn a_cold_first_run_and_drift_are_flagged() {
        let cold = [10.0, 99.0, 100.0, 101.0, 100.5, 99.5, 100.2];
        let flags = summarise(&cold, Aggregate::Arithmetic)
            .unwrap()
            .headline
            .flags;
        assert!(flags.contains(&Flag::FirstRunDiffers));
        let falling: Vec<f64> = (0..12).map(|i| 100.0 - f64::from(i)).collect();
        let s = summarise(&falling, Aggregate::Arithmetic).unwrap();
        assert!(s.headline.flags.contains(&Flag::Drift));
        assert!(s.headline.flags.contains(&Flag::Autocorrelated));
    }

    #[test]
    fn zeros_and_negatives_where_they_cannot_be() {
        assert!(summarise(&[], Aggregate::Arithmetic).is_err());
        assert!(summarise(&[0.0, 1.0], Aggregate::Harmonic).is_err());
        assert!(summarise(&[-1.0, 1.0], Aggregate::Geometric).is_err());
        let zeros = summarise(&[0.0; 10], Aggregate::Arithmetic).unwrap();
        assert_eq!((zeros.headline.value, zeros.cv), (0.0, None));
        assert!(zeros.headline.flags.contains(&Flag::NoWidth));
    }

    #[test]
    fn a_summary_survives_json() {
        let s = summarise(&[1.0, 2.0, 4.0, 3.0, 2.5, 9.0], Aggregate::Geometric).unwrap();
        let json = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), s);
    }

    #[test]
    fn the_median_of_two_rates_is_that_of_their_times() {
        // 3 s and 1 s of the same work: 2 s in the middle, however the rates lie.
        let two = summarise(&[10.0, 30.0], Aggregate::Harmonic).unwrap();
        assert!(
            (two.headline.value - 15.0).abs() < 1e-12,
            "{}",
            two.headline.value
        );
        assert_eq!(two.headline.value, two.median.value);
        let ends = two.median.interval.unwrap();
        assert!((ends.lo - 10.0).abs() < 1e-12 && (ends.hi - 30.0).abs() < 1e-12);
        // An odd number has one in the middle either way.
        let three = summarise(&[10.0, 30.0, 20.0], Aggregate::Harmonic).unwrap();
        assert!((three.headline.value - 20.0).abs() < 1e-12);
    }
}

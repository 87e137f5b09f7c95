//! A figure with its interval, the way it was obtained and what is to be said about it.

use crate::error::StatsError;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A confidence level strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(f64);

impl Confidence {
    /// The level used everywhere unless something else is asked for.
    pub const P95: Self = Self(0.95);

    /// A level such as 0.95.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] unless 0 < `level` < 1.
    pub fn new(level: f64) -> Result<Self, StatsError> {
        if level > 0.0 && level < 1.0 {
            Ok(Self(level))
        } else {
            Err(StatsError::Parameter {
                name: "confidence",
                value: level,
                allowed: "it must lie strictly between 0 and 1, as 0.95 does",
            })
        }
    }

    /// The Bonferroni level 1 − (1 − level)/m for each of `comparisons` intervals in one table.
    /// None or one comparison leaves the level as it is.
    #[must_use]
    pub fn shared_by(self, comparisons: u32) -> Self {
        let shared = 1.0 - (1.0 - self.0) / f64::from(comparisons.max(1));
        // A family so large that the level rounds to 1 keeps the widest usable interval.
        Self(shared.min(1.0 - f64::EPSILON))
    }

    /// The level itself.
    #[must_use]
    pub fn level(self) -> f64 {
        self.0
    }

    /// Probability below the upper end of a two-sided interval: (1 + level)/2.
    #[must_use]
    pub fn upper(self) -> f64 {
        0.5 * (1.0 + self.0)
    }

    /// Probability below the lower end of a two-sided interval: (1 − level)/2.
    #[must_use]
    pub fn lower(self) -> f64 {
        0.5 * (1.0 - self.0)
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

impl TryFrom<f64> for Confidence {
    type Error = StatsError;

    fn try_from(level: f64) -> Result<Self, StatsError> {
        Self::new(level)
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

/// A two-sided confidence interval with the confidence it really has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in the unit of the estimate.
    pub lo: f64,
    /// Upper end, in the unit of the estimate.
    pub hi: f64,
    /// True confidence: for order statistics it differs from the one asked for.
    pub confidence: f64,
}

impl Interval {
    /// Half of the width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        0.5 * (self.hi - self.lo)
    }

    /// Whether `value` lies inside, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }
}

/// How an estimate and its interval were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Mean with Student's t interval.
    StudentT,
    /// Trimmed mean with the Tukey–McLaughlin (winsorised) t interval.
    TrimmedT,
    /// Median or quantile with exact order-statistic interval.
    OrderStatistic,
    /// Bootstrap, bias corrected and accelerated (Efron 1987).
    BootstrapBca,
    /// Mean over subsessions of an autocorrelated series.
    SubsessionT,
    /// Mean over sessions of runs (Kalibera & Jones 2013).
    TwoLevelT,
    /// Geometric mean ratio of rounds, t interval on the logarithms.
    PairedLogT,
    /// Ratio of geometric means, Welch interval on the logarithms.
    WelchLog,
    /// Ratio of arithmetic means, Fieller's interval (1954).
    Fieller,
    /// Ratio of statistics with bootstrap percentile interval.
    BootstrapRatio,
    /// Median of all differences, interval from the distribution of U.
    HodgesLehmann,
}

/// Something a reader of an estimate has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Flag {
    /// One value only.
    SingleValue,
    /// The interval cannot reach the confidence asked for; it states the true one.
    LowConfidence,
    /// The interval has no width: the values are equal, or too coarse to tell apart.
    NoWidth,
    /// No finite interval exists.
    Unbounded,
    /// All bootstrap statistics are the same, or the bias correction is infinite.
    Degenerate,
    /// Trimmed mean and median are more than 1.5 trimmed standard errors apart.
    HeavyTail,
    /// A value beyond the Iglewicz–Hoaglin limit.
    Outliers,
    /// A value beyond ten robust standard deviations.
    SevereOutliers,
    /// The first run is a severe outlier and the extreme value.
    FirstRunDiffers,
    /// The values rise or fall with the order of the runs.
    Drift,
    /// Successive runs resemble each other.
    Autocorrelated,
    /// The baseline's mean is not above zero, or the candidate's is below, so that the ratio does not say which side is better.
    Unordered,
    /// Subsessions stayed correlated: the interval is a lower bound of the uncertainty.
    NotIndependent,
    /// Some of several sessions have one run, so that it cannot be known whether sessions differ.
    SessionsIgnored,
}

impl Flag {
    /// The sentence for a report.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::SingleValue => "n=1, no interval",
            Self::LowConfidence => "too few runs for the confidence asked for",
            Self::NoWidth => "interval of no width: equal or coarse values",
            Self::Unbounded => "no finite interval: not estimable",
            Self::Degenerate => "bootstrap degenerate: no interval",
            Self::HeavyTail => "heavy tail: see the median",
            Self::Outliers => "outliers",
            Self::SevereOutliers => "severe outliers",
            Self::FirstRunDiffers => "the first run differs from all others",
            Self::Drift => "drift over the order of runs",
            Self::Autocorrelated => "successive runs are correlated",
            Self::Unordered => {
                "a mean is below zero, or that of the baseline is zero: the ratio orders nothing"
            }
            Self::NotIndependent => "interval is a lower bound of the uncertainty",
            Self::SessionsIgnored => {
                "some of several sessions have one run: the interval ignores that sessions may differ"
            }
        }
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A figure, its interval (when there is one), how it was obtained and from how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate; always finite.
    pub value: f64,
    /// The interval; `None` with one value or when it has no finite ends (see `flags`).
    pub interval: Option<Interval>,
    /// How it was obtained.
    pub method: Method,
    /// Number of values behind it (of pairs, for a paired ratio; of both sides together, for an
    /// unpaired one).
    pub n: usize,
    /// What a reader has to be told, sorted, without repetition.
    pub flags: Vec<Flag>,
}

impl Estimate {
    /// An estimate whose interval has the given ends. Ends that are not finite give no interval
    /// and [`Flag::Unbounded`]; a point that is not finite is an error of the caller's data.
    pub(crate) fn with_ends(
        value: f64,
        ends: (f64, f64),
        confidence: f64,
        method: Method,
        n: usize,
    ) -> Self {
        let mut estimate = Self {
            value,
            interval: None,
            method,
            n,
            flags: Vec::new(),
        };
        if ends.0.is_finite() && ends.1.is_finite() {
            // Rounding may leave the point an ulp outside an interval of no width.
            estimate.interval = Some(Interval {
                lo: ends.0.min(ends.1).min(value),
                hi: ends.0.max(ends.1).max(value),
                confidence,
            });
            if ends.0 == ends.1 {
                estimate.flag(Flag::NoWidth);
            }
        } else {
            estimate.flag(Flag::Unbounded);
        }
        estimate
    }

    /// A bare figure: one value, "n=1, no interval".
    pub(crate) fn single(value: f64, method: Method, n: usize) -> Self {
        Self {
            value,
            interval: None,
            method,
            n,
            flags: vec![Flag::SingleValue],
        }
    }

    /// A figure without interval for the reason given.
    pub(crate) fn bare(value: f64, method: Method, n: usize, flag: Flag) -> Self {
        Self {
            value,
            interval: None,
            method,
            n,
            flags: vec![flag],
        }
    }

    /// Adds a flag, keeping them sorted and unique.
    pub(crate) fn flag(&mut self, flag: Flag) {
        if let Err(place) = self.flags.binary_search(&flag) {
            self.flags.insert(place, flag);
        }
    }

    /// Lower end of the interval.
    #[must_use]
    pub fn lo(&self) -> Option<f64> {
        self.interval.map(|i| i.lo)
    }

    /// Upper end of the interval.
    #[must_use]
    pub fn hi(&self) -> Option<f64> {
        self.interval.map(|i| i.hi)
    }

    /// Half-width of the interval relative to the estimate (0.02 is ±2 %); `None` without an
    /// interval or around zero.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        let half = self.interval?.half_width();
        let relative = half / self.value.abs();
        relative.is_finite().then_some(relative)
    }

    /// The estimate and interval under a monotone map, ends in the right order again.
    pub(crate) fn mapped(&self, map: impl Fn(f64) -> f64) -> Self {
        let value = map(self.value);
        let mut out = match self.interval {
            Some(i) => Self::with_ends(
                value,
                (map(i.lo), map(i.hi)),
                i.confidence,
                self.method,
                self.n,
            ),
            None => Self {
                value,
                ..self.clone()
            },
        };
        for &flag in &self.flags {
            out.flag(flag);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_checked_also_from_json() {
        assert!(Confidence::new(0.0).is_err() && Confidence::new(1.0).is_err());
        assert!(Confidence::new(f64::NAN).is_err());
        assert!(serde_json::from_str::<Confidence>("95").is_err());
        assert_eq!(Confidence::P95.shared_by(5).level(), 0.99);
        assert!(Confidence::P95.shared_by(u32::MAX).level() < 1.0);
        assert_eq!(Confidence::P95.shared_by(0), Confidence::P95);
    }

    #[test]
    fn infinite_ends_leave_no_interval() {
        let e = Estimate::with_ends(1.0, (0.0, f64::INFINITY), 0.95, Method::WelchLog, 2);
        assert_eq!(e.interval, None);
        assert_eq!(e.flags, [Flag::Unbounded]);
        let json = serde_json::to_string(&e).unwrap();
        assert_eq!(serde_json::from_str::<Estimate>(&json).unwrap(), e);
    }

    #[test]
    fn a_falling_map_turns_the_interval_round() {
        let e = Estimate::with_ends(2.0, (1.0, 4.0), 0.95, Method::StudentT, 3);
        let m = e.mapped(|x| 1.0 / x);
        assert_eq!((m.lo(), m.hi()), (Some(0.25), Some(1.0)));
        assert_eq!(m.relative_half_width(), Some(0.75));
    }
}

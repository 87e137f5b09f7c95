//! The percentiles of response times that are judged.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A percentile that has verdicts: the middle, and how bad it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Percentile {
    /// The median.
    #[serde(rename = "p50")]
    P50,
    /// One operation in a hundred is slower.
    #[serde(rename = "p99")]
    P99,
    /// One in a thousand is slower.
    #[serde(rename = "p99.9")]
    P999,
}

impl Percentile {
    /// All that are judged, the middle first.
    pub const ALL: [Self; 3] = [Self::P50, Self::P99, Self::P999];

    /// How many of a hundred operations are no slower.
    #[must_use]
    pub const fn percent(self) -> f64 {
        match self {
            Self::P50 => 50.0,
            Self::P99 => 99.0,
            Self::P999 => 99.9,
        }
    }

    /// `p50`, `p99`, `p99.9`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The percentile, of a hundred, that a figure is by its name: `latency-p99.9` is one of 99.9.
pub(crate) fn percentile_of(figure: &str) -> Option<f64> {
    figure.strip_prefix("latency-p")?.parse().ok()
}

/// A name of no percentile that is judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no percentile that is judged: p50, p99 and p99.9 are")]
pub struct ParsePercentileError(pub String);

impl FromStr for Percentile {
    type Err = ParsePercentileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|known| known.name() == text);
        known.ok_or_else(|| ParsePercentileError(text.to_owned()))
    }
}

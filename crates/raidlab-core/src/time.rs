//! Time in integer nanoseconds: [`Instant`] is a point on a target's own axis, [`Span`] a length.
//!
//! Integers, so that the same run gives the same figures on every machine (floats are for reports).
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time on the axis of one target, in nanoseconds since that target's own zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Instant {
    /// The target's own zero.
    pub const ZERO: Self = Self(0);

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A length of `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// A length of `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// A length of `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// The length in seconds, for reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length in milliseconds, for reports.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The length for the standard library's sleeping and waiting calls.
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl From<std::time::Duration> for Span {
    /// [`MAX`](Self::MAX) for what is longer.
    fn from(time: std::time::Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, rhs: Span) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Display for Span {
    /// Three significant figures with the unit that suits: `1.50 ms`, `2 min 05 s`, `6 d 22 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        // Nobody knows what 1650 hours are.
        if ns >= 48 * 3_600_000_000_000 {
            let hours = ns / 3_600_000_000_000;
            write!(f, "{} d {:02} h", hours / 24, hours % 24)
        } else if ns >= 3_600_000_000_000 {
            let minutes = ns / 60_000_000_000;
            write!(f, "{} h {:02} min", minutes / 60, minutes % 60)
        } else if ns >= 60_000_000_000 {
            let seconds = ns / 1_000_000_000;
            write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
        } else {
            let (value, unit) = match ns {
                0..1_000 => return write!(f, "{ns} ns"),
                1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
                1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
                _ => (ns as f64 / 1e9, "s"),
            };
            let decimals = if value < 10.0 {
                2
            } else {
                usize::from(value < 100.0)
            };
            write!(f, "{value:.decimals$} {unit}")
        }
    }
}

/// Why a text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSpanError {
    /// A number without a unit: seconds and milliseconds are both in use.
    #[error(
        "'{0}' has no unit: write '{0}s' for seconds, '{0}ms' for milliseconds or '{0}m' for minutes"
    )]
    NoUnit(String),
    /// Not a number followed by a known unit.
    #[error(
        "'{0}' is not a length of time: write a number with ns, us, ms, s, m or h, such as '30s'"
    )]
    Malformed(String),
    /// Longer than 584 years.
    #[error("'{0}' is too long to count in nanoseconds")]
    TooLong(String),
}

impl std::str::FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let malformed = || ParseSpanError::Malformed(text.to_owned());
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim_start());
        let value: f64 = number.parse().map_err(|_| malformed())?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "" => return Err(ParseSpanError::NoUnit(text.to_owned())),
            _ => return Err(malformed()),
        };
        let nanoseconds = value * scale;
        if nanoseconds >= u64::MAX as f64 {
            return Err(ParseSpanError::TooLong(text.to_owned()));
        }
        Ok(Self(nanoseconds.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_with_the_unit_that_suits() {
        let shown: Vec<String> = [
            7,
            1_500,
            12_340_000,
            1_000_000_000,
            125_000_000_000,
            7_500_000_000_000,
            172_799_000_000_000,
            172_800_000_000_000,
            5_943_600_000_000_000,
        ]
        .map(|ns| Span(ns).to_string())
        .to_vec();
        assert_eq!(
            shown,
            [
                "7 ns",
                "1.50 µs",
                "12.3 ms",
                "1.00 s",
                "2 min 05 s",
                "2 h 05 min",
                "47 h 59 min",
                "2 d 00 h",
                "68 d 19 h"
            ]
        );
    }

    #[test]
    fn spans_are_read_with_a_unit_only() {
        assert_eq!("30s".parse(), Ok(Span::from_secs(30)));
        assert_eq!("1.5 ms".parse(), Ok(Span::from_micros(1500)));
        assert_eq!("2m".parse(), Ok(Span::from_secs(120)));
        assert_eq!(
            "30".parse::<Span>(),
            Err(ParseSpanError::NoUnit("30".into()))
        );
        assert_eq!(
            "-1s".parse::<Span>(),
            Err(ParseSpanError::Malformed("-1s".into()))
        );
        assert_eq!(
            "5 parsecs".parse::<Span>(),
            Err(ParseSpanError::Malformed("5 parsecs".into()))
        );
        assert!(matches!(
            "99999999999999h".parse::<Span>(),
            Err(ParseSpanError::TooLong(_))
        ));
    }
}

//! How much written data a system keeps in memory, and for how long: `vm.dirty_*` of Linux.
use crate::kernel::Kernel;
use crate::words::by_text;
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, ParseBytesError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A share of the memory that can hold files, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// Per cent, up to 100 (`dirty_ratio`, `dirty_background_ratio`).
    Percent(u8),
    /// Bytes (`dirty_bytes`, `dirty_background_bytes`; Linux since 2.6.29).
    Size(Bytes),
}

impl Dirty {
    /// Two pages: the kernel takes no smaller limit (`dirty_bytes_min`).
    pub const LEAST: Bytes = Bytes(8192);
}

impl fmt::Display for Dirty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Size(size) => write!(f, "{}B", size.0),
        }
    }
}

/// Why a text is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDirtyError {
    /// A share that is none.
    #[error("'{0}' is no share of the memory: write a whole number from 0% to 100%")]
    Share(String),
    /// Not a size.
    #[error(transparent)]
    Size(#[from] ParseBytesError),
}

impl FromStr for Dirty {
    type Err = ParseDirtyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(number) = text.trim().strip_suffix('%') else {
            return Ok(Self::Size(text.parse()?));
        };
        match number.trim_end().parse() {
            Ok(percent @ 0..=100) => Ok(Self::Percent(percent)),
            _ => Err(ParseDirtyError::Share(text.to_owned())),
        }
    }
}
by_text!(Dirty);

/// What is set of it; `None`: what the system sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteBack {
    /// As much may be dirty or on its way before writers are held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Dirty>,
    /// From so much on it is written out beside the writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Dirty>,
    /// What has been dirty for so long is written out however little it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<Span>,
    /// How often it is looked at; zero: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Span>,
}

impl WriteBack {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The settings under `/proc/sys/vm` and their values, in the order in which they are set. Setting a size there takes back
    /// a share, and the other way round.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let one = |dirty: Dirty, names: [&'static str; 2]| match dirty {
            Dirty::Percent(percent) => (names[0], percent.to_string()),
            Dirty::Size(size) => (names[1], size.0.to_string()),
        };
        let time = |span: Span| (span.0 / CENTISECOND.0).to_string();
        let background = ["dirty_background_ratio", "dirty_background_bytes"];
        [
            self.limit.map(|d| one(d, ["dirty_ratio", "dirty_bytes"])),
            self.background.map(|d| one(d, background)),
            self.expire.map(|s| ("dirty_expire_centisecs", time(s))),
            self.wake.map(|s| ("dirty_writeback_centisecs", time(s))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// In which the kernel counts the times.
pub(crate) const CENTISECOND: Span = Span::from_millis(10);

/// The longest time of them: the kernel makes 32 bits of milliseconds of it, 49 days.
pub(crate) const LONGEST: Span = Span::from_secs(40 * 24 * 3600);

/// Since when what has been dirty can be limited by a size (`dirty_bytes`).
pub(crate) const SIZES: Kernel = Kernel::Linux(2, 6, 29);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sizes_are_read_and_written() {
        let read = |text: &str| text.parse::<Dirty>();
        assert_eq!(read("20%"), Ok(Dirty::Percent(20)));
        assert_eq!(read(" 5 % "), Ok(Dirty::Percent(5)));
        assert_eq!(read("64MiB"), Ok(Dirty::Size(Bytes::mib(64))));
        for wrong in ["101%", "-1%", "2.5%", "%", "64M"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for dirty in [Dirty::Percent(0), Dirty::Size(Bytes(8193))] {
            assert_eq!(dirty.to_string().parse(), Ok(dirty));
        }
    }

    #[test]
    fn settings_are_the_kernels_own() {
        let set = WriteBack {
            limit: Some(Dirty::Size(Bytes::mib(64))),
            background: Some(Dirty::Percent(1)),
            expire: Some(Span::from_secs(3)),
            wake: Some(Span::ZERO),
        };
        let settings = set.settings();
        let lines: Vec<String> = settings.iter().map(|(n, v)| format!("{n} {v}")).collect();
        assert_eq!(
            lines,
            [
                "dirty_bytes 67108864",
                "dirty_background_ratio 1",
                "dirty_expire_centisecs 300",
                "dirty_writeback_centisecs 0"
            ]
        );
        assert!(WriteBack::default().settings().is_empty());
    }
}

//! States of arrays, as experiments write them.
use crate::words::by_text;
use raidlab_core::suggest;
use std::fmt;
use std::str::FromStr;

/// What has happened to the array before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArrayState {
    /// All members present and in agreement.
    Clean,
    /// So many members have failed and are gone.
    Degraded(u16),
    /// As `mdadm --create` leaves it over members with unlike contents, before its first sync has ended: copies or parity
    /// agree nowhere and are written, or the last member of a raid4 or raid5 is being filled.
    InitialSync,
    /// Copies or parity are being made to agree after an unclean stop: nearly all do.
    Resyncing,
    /// So many failed members have been replaced and are being filled.
    Rebuilding(u16),
}

impl ArrayState {
    /// Members that have failed.
    #[must_use]
    pub const fn failures(self) -> u16 {
        match self {
            Self::Clean | Self::InitialSync | Self::Resyncing => 0,
            Self::Degraded(n) | Self::Rebuilding(n) => n,
        }
    }

    /// Whether members are read and written beside what is measured: a resync, or a rebuild.
    #[must_use]
    pub const fn syncs(self) -> bool {
        matches!(
            self,
            Self::InitialSync | Self::Resyncing | Self::Rebuilding(_)
        )
    }

    /// Whether all members are there, and copies or parity are not taken to agree.
    #[must_use]
    pub const fn is_unsynced(self) -> bool {
        matches!(self, Self::InitialSync | Self::Resyncing)
    }
}

impl fmt::Display for ArrayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Degraded(n) => write!(f, "degraded {n}"),
            Self::InitialSync => f.write_str("initial-sync"),
            Self::Resyncing => f.write_str("resyncing"),
            Self::Rebuilding(n) => write!(f, "rebuilding {n}"),
        }
    }
}

/// A text that is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no state of an array{near}: write clean, initial-sync, resyncing, or degraded or rebuilding with the number of failed members, such as 'degraded 1'",
    near = nearest_state(.0)
)]
pub struct ParseStateError(String);

/// The state that was most likely meant, as a remark, by the first word.
fn nearest_state(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let states = [
        "clean",
        "degraded",
        "initial-sync",
        "resyncing",
        "rebuilding",
    ];
    // One that is there is not what is wrong.
    let near = suggest::nearest(word, states).filter(|state| *state != word);
    suggest::meant(near)
}

impl FromStr for ArrayState {
    type Err = ParseStateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseStateError(text.to_owned());
        let mut words = text.split_whitespace();
        let word = words.next().ok_or_else(wrong)?;
        let number = words
            .next()
            .map(|n| n.parse::<u16>().ok().filter(|n| *n > 0));
        let number = match number {
            Some(None) => return Err(wrong()),
            Some(given) => given,
            None => None,
        };
        if words.next().is_some() {
            return Err(wrong());
        }
        match (word, number) {
            ("clean", None) => Ok(Self::Clean),
            ("initial-sync", None) => Ok(Self::InitialSync),
            ("resyncing", None) => Ok(Self::Resyncing),
            ("degraded", n) => Ok(Self::Degraded(n.unwrap_or(1))),
            ("rebuilding", n) => Ok(Self::Rebuilding(n.unwrap_or(1))),
            _ => Err(wrong()),
        }
    }
}
by_text!(ArrayState);

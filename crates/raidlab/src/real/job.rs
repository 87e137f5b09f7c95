//! What a guest is asked to do.
use serde::{Deserialize, Serialize};

/// One job of a guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum Job {
    /// Say hello, and end.
    Greet,
    /// Measure modelled disks.
    Disks(super::disks::Order),
    /// Go wrong, so that it can be seen that this is noticed.
    Misbehave {
        /// In which way.
        how: Wrong,
    },
}

/// Ways to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wrong {
    /// The kernel panics.
    Panic,
    /// Nothing more is said.
    Hang,
    /// All memory is used up.
    Memory,
}

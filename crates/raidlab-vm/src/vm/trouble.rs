//! Why a guest came to nothing.
use crate::channel::{FrameError, VERSION};
use std::io;
use std::time::Duration;

/// Why a guest came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It ended without having said that it was done.
    #[error("the guest ended before it was done: {how}{}", evidence(console))]
    Ended {
        /// Panic, out of memory, or how QEMU ended.
        how: String,
        /// The end of its console.
        console: String,
    },
    /// It gave no sign of life.
    #[error("the guest gave no sign of life for {} s{}", silent.as_secs(), evidence(console))]
    Silent {
        /// For how long.
        silent: Duration,
        /// The end of its console.
        console: String,
    },
    /// It took longer than it may.
    #[error("the guest was not done after {} s{}", after.as_secs(), evidence(console))]
    Late {
        /// What it was given.
        after: Duration,
        /// The end of its console.
        console: String,
    },
    /// It sent something that is no message.
    #[error("the guest does not speak raidlab's language: {0}")]
    Language(#[from] FrameError),
    /// It is another version.
    #[error("the guest's raidlab speaks version {0} and this one version {VERSION}")]
    Version(u32),
    /// The host's side failed.
    #[error("the guest's channel failed: {0}")]
    Channel(io::Error),
}

fn evidence(console: &str) -> String {
    let console = console.trim();
    if console.is_empty() {
        "; its console is empty".to_owned()
    } else {
        format!("; the end of its console:\n{console}")
    }
}

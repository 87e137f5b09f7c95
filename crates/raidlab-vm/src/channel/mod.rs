//! The channel between host and guest: messages, and what the first of them says.
mod frame;

pub use frame::{Decoder, FrameError, HEAD, MOST, Message, exercise};

use serde::{Deserialize, Serialize};

/// Version of the messages. Host and guest are the same program, so that another one is an accident.
pub const VERSION: u32 = 1;

/// What the guest says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The guest's raidlab.
    pub raidlab: String,
    /// The kernel, as `uname -r` says it.
    pub kernel: String,
    /// The guest's time since its kernel began, in nanoseconds.
    pub uptime_ns: u64,
    /// Memory that the guest's kernel has, in bytes.
    pub memory: u64,
}

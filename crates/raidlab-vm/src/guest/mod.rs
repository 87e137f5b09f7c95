//! The other side: raidlab as the first process of a guest that it booted itself.
//!
//! The first process mounts what a system needs, loads the modules of the channel, starts the *agent*
//! (the same program) and buries whatever dies until the agent ends; then it switches the machine off.
//! The agent speaks with the host ([`Session`]) and does the work. The kernel starts the program a third
//! way when it wants a module: as `modprobe`.
mod init;
mod load;
mod session;

pub use init::{hang, init};
pub use load::{load, modprobe};
pub use session::{Closed, Session};

use std::path::Path;

/// A file that only a guest of raidlab's has.
pub const MARK: &str = "etc/raidlab-guest";
/// Environment variable that makes this program the agent; not for programs that the agent starts, or a raidlab among
/// them would take itself for it.
pub const AGENT: &str = "RAIDLAB_GUEST_AGENT";

/// What this process is in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The first process.
    Init,
    /// The one that does the work.
    Agent,
    /// Loads the modules that are named.
    Modprobe(Vec<String>),
}

/// What this process is; `None` on a machine that is no guest of raidlab's.
#[must_use]
pub fn role() -> Option<Role> {
    if !Path::new("/").join(MARK).exists() {
        return None;
    }
    // Whoever logs in there may type what is no text.
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let name = words.next().unwrap_or_default();
    if Path::new(&name)
        .file_name()
        .is_some_and(|n| n == "modprobe")
    {
        let names = words.filter(|word| !word.starts_with('-'));
        return Some(Role::Modprobe(names.collect()));
    }
    if std::process::id() == 1 {
        return Some(Role::Init);
    }
    std::env::var_os(AGENT).map(|_| Role::Agent)
}

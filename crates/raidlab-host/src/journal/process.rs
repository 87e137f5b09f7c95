//! A process as a journal knows it.
use serde::{Deserialize, Serialize};

/// A process id means nothing without the boot and the time at which it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub start: u64,
    /// The boot.
    pub boot: String,
}

impl Process {
    /// This one.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start: start_of(pid).unwrap_or_default(),
            boot: boot_id(),
        }
    }

    /// Whether it lives.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.boot == boot_id() && start_of(self.pid) == Some(self.start)
    }

    /// Whether the machine has been started anew since: loop devices, mounts, settings are gone then, and device
    /// numbers mean other devices.
    #[must_use]
    pub fn is_of_another_boot(&self) -> bool {
        self.boot != boot_id()
    }
}

/// Field 22 of `/proc/PID/stat`; the second, the name, may hold spaces and brackets.
fn start_of(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = text.rsplit_once(')')?.1;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

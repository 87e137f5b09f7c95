//! Which process is meant by a number that may have been given again.
use crate::error::VmError;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};

/// A process, such that another one with the same number is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks since the machine was.
    pub started: u64,
    /// Which start of the machine.
    pub boot: String,
}

impl Identity {
    /// Of a process that is there.
    ///
    /// # Errors
    /// When it is not.
    pub fn of(pid: u32) -> Result<Self, VmError> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let stat = fs::read_to_string(&path).map_err(VmError::path("read", &path))?;
        let started = started(&stat).ok_or_else(|| {
            VmError::path("understand", &path)(io::Error::from(io::ErrorKind::InvalidData))
        })?;
        Ok(Self {
            pid,
            started,
            boot: boot(),
        })
    }

    /// Whether it still is that process.
    #[must_use]
    pub fn lives(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self) && !is_dead(self.pid)
    }

    /// Kills it, if it still is that process, and waits until it is gone. Whether it was there.
    ///
    /// # Errors
    /// When it cannot be killed or does not go within ten seconds.
    pub fn kill(&self) -> Result<bool, VmError> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(false);
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(false);
        };
        // The handle is of one process for good: looked at afterwards, it is the one.
        if !self.lives() {
            return Ok(false);
        }
        let killed = pidfd_send_signal(&handle, Signal::KILL);
        killed.map_err(|error| VmError::system("kill a process")(error.into()))?;
        let begun = Instant::now();
        while self.lives() {
            if begun.elapsed() > Duration::from_secs(10) {
                let error = io::Error::from(io::ErrorKind::TimedOut);
                return Err(VmError::system("end a process")(error));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }
}

/// The start time: the 22nd field, and the second may have spaces and brackets in it.
fn started(stat: &str) -> Option<u64> {
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Whether it has ended and only waits to be asked how.
fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').map(|at| stat[at + 1..].trim_start());
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}

fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_may_have_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        assert_eq!(started(stat), Some(4242));
        assert_eq!(started("7 (cut"), None);
    }
}

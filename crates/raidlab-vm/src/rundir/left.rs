//! What runs that have gone have left: found, and removed.
use super::{Identity, LOCK, PROCESSES, unlock};
use crate::error::VmError;
use crate::removal::remove_tree;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lock of a run that has gone is free within this time.
const LETS_GO: Duration = Duration::from_secs(2);

/// Takes the lock of a run that has gone. A program that it was just starting has its files, too, until it is another program.
fn take(lock: &File, path: &Path) -> Option<()> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let owner: Option<Identity> = serde_json::from_str(&text).ok();
    let begun = Instant::now();
    while flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        let lives = owner.as_ref().is_none_or(Identity::lives);
        if lives || begun.elapsed() > LETS_GO {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(())
}

/// What a dead run has left. Its lock is held, so that nobody else removes it meanwhile.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    processes: Vec<Identity>,
    lock: File,
}

impl Drop for Leftover {
    fn drop(&mut self) {
        unlock(&self.lock);
    }
}

impl Leftover {
    pub(super) fn of(path: PathBuf) -> Option<Self> {
        // Killed before it had a lock: made anew, and held by whoever is first.
        let lock = File::options()
            .create(true)
            .append(true)
            .open(path.join(LOCK))
            .ok()?;
        take(&lock, &path.join(LOCK))?;
        let text = fs::read_to_string(path.join(PROCESSES)).unwrap_or_default();
        let processes = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Some(Self {
            processes: processes.collect(),
            path,
            lock,
        })
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Processes of it that still run.
    #[must_use]
    pub fn living(&self) -> Vec<&Identity> {
        self.processes.iter().filter(|p| p.lives()).collect()
    }

    /// Kills what still runs and removes the directory; what was done, in words.
    ///
    /// # Errors
    /// When a process does not go, or something cannot be removed.
    pub fn remove(self) -> Result<String, VmError> {
        let mut killed = Vec::new();
        for process in &self.processes {
            if process.kill()? {
                killed.push(process.pid.to_string());
            }
        }
        remove_tree(&self.path).map_err(VmError::path("remove", &self.path))?;
        let path = self.path.display();
        Ok(match killed.len() {
            0 => format!("removed {path}, left by a run that was killed"),
            _ => format!(
                "ended process {} and removed {path}, left by a run that was killed",
                killed.join(", ")
            ),
        })
    }

    /// Its lock, as whoever has the same open file has it.
    #[cfg(test)]
    pub(super) fn kept(&self) -> std::io::Result<File> {
        self.lock.try_clone()
    }
}

//! The kernel's log from a moment on, and what of it voids a trial.
use crate::error::{HostError, Result};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const KMSG: &str = "/dev/kmsg";
const MEMBER: &str = "a member failed";
/// Most lines kept of a trial; the first ones tell the cause.
const MOST: usize = 500;

/// Listens to the kernel's log.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

/// Who may have failed a member of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// Nobody: that one failed is trouble.
    Nobody,
    /// raidlab, for the state that a cell asks for.
    Raidlab,
}

/// What the kernel said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelWords {
    /// Its lines, without times.
    pub lines: Vec<String>,
    /// The line that voids a trial, in words with what it means.
    pub trouble: Option<String>,
}

impl KernelLog {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the log may not be read (that takes root on most systems).
    pub fn from_now() -> Result<Self> {
        let path = Path::new(KMSG);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)
            .map_err(HostError::call("open", path))?;
        rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(HostError::call("read", path))?;
        Ok(Self { file })
    }

    /// What it said since.
    pub fn so_far(&mut self, failing: Failing) -> KernelWords {
        let mut words = KernelWords::default();
        let mut record = [0_u8; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    if let Some(line) = message(&text) {
                        words.hear(line, failing);
                    }
                }
                // The log went on faster than it was read, and old records are gone.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        words
    }
}

impl KernelWords {
    fn hear(&mut self, line: &str, failing: Failing) {
        if self.lines.len() < MOST {
            self.lines.push(line.to_owned());
        }
        if self.trouble.is_none()
            && let Some(what) = trouble(line)
            && !(failing == Failing::Raidlab && what == MEMBER)
        {
            self.trouble = Some(format!("{what}: the kernel said '{line}'"));
        }
    }
}

/// `6,1234,5678,-;text`, then lines of properties that begin with a space.
fn message(record: &str) -> Option<&str> {
    let (_, text) = record.split_once(';')?;
    text.lines().next()
}

/// What a line says went wrong; `None` for all others. The words are those of block/blk-core.c, kernel/hung_task.c,
/// drivers/md, drivers/ata/libata-eh.c and the file systems.
fn trouble(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["blocked for more than"]) {
        return Some("a task hung");
    }
    if has(&[
        "disk failure on",
        "read error not correctable",
        "raid array is not clean",
    ]) {
        return Some(MEMBER);
    }
    if has(&[
        "i/o error",
        "critical medium error",
        "critical target error",
        "buffer i/o error",
    ]) {
        return Some("an I/O error");
    }
    if has(&[
        "ext4-fs error",
        "xfs_force_shutdown",
        "btrfs error",
        "btrfs: error",
        "remounting filesystem read-only",
    ]) {
        return Some("the file system failed");
    }
    if has(&[
        "hard resetting link",
        "failed command:",
        "out of memory: killed",
    ]) {
        return Some("the machine was in trouble");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let record = "6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n";
        assert_eq!(message(record), Some("NET: Registered"));
        assert_eq!(message("nothing"), None);
    }

    #[test]
    fn trouble_is_known_by_its_words() {
        let lines = [
            (
                "I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
                "an I/O error",
            ),
            (
                "INFO: task bonnie++:71 blocked for more than 120 seconds.",
                "a task hung",
            ),
            (
                "md/raid:md0: Disk failure on vdb, disabling device.",
                "a member failed",
            ),
            (
                "EXT4-fs error (device md0): ext4_lookup:1602",
                "the file system failed",
            ),
        ];
        for (line, what) in lines {
            assert_eq!(trouble(line), Some(what), "{line}");
        }
        for line in [
            "md/raid:md0: raid level 5 active with 4 out of 4 devices, algorithm 2",
            "EXT4-fs (md0): mounted filesystem with ordered data mode. Quota mode: none.",
            "md: recovery of RAID array md0",
        ] {
            assert_eq!(trouble(line), None, "{line}");
        }
    }

    #[test]
    fn a_member_that_raidlab_fails_is_no_trouble() {
        let mut words = KernelWords::default();
        words.hear("md/raid:md0: Disk failure on sda", Failing::Raidlab);
        assert_eq!(words.trouble, None);
        words.hear("I/O error, dev sdb, sector 1", Failing::Raidlab);
        assert!(words.trouble.is_some(), "that has nothing to do with it");
    }

    #[test]
    fn only_the_first_trouble_is_the_reason() {
        let mut words = KernelWords::default();
        words.hear("I/O error, dev sda, sector 1", Failing::Nobody);
        words.hear("md/raid:md0: Disk failure on sda", Failing::Nobody);
        assert_eq!(words.lines.len(), 2);
        assert!(words.trouble.expect("trouble").starts_with("an I/O error"));
    }
}

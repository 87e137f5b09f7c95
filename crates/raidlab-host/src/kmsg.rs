//! The kernel's log from a moment on, and what of it voids a trial.
mod related;

pub use related::Related;

use crate::error::{HostError, Result};
use raidlab_core::time::Span;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const KMSG: &str = "/dev/kmsg";
const MEMBER: &str = "a member failed";
const IO: &str = "an I/O error";
/// Most lines kept of a trial; the first ones tell the cause.
const MOST: usize = 500;

/// Listens to the kernel's log.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    /// When it began, in microseconds since the kernel did.
    since: u64,
    /// What trouble has to be about; anything when that is not said.
    related: Option<Related>,
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
    /// What voids a trial: the first of it, but that a member failed comes before the I/O errors that it began with.
    pub trouble: Option<Trouble>,
}

/// What went wrong, by the kernel's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What the line means.
    pub what: &'static str,
    /// The line.
    pub line: String,
    /// How long after the log was begun to be listened to.
    pub after: Span,
}

impl Trouble {
    /// Whether a member of an array failed.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.what == MEMBER
    }

    /// Whether the line has the kernel's name of a device in it, as a word of its own.
    #[must_use]
    pub fn names(&self, device: &str) -> bool {
        let mut words = self.line.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| word == device)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the kernel said '{}'", self.what, self.line)
    }
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
        Ok(Self {
            file,
            since: now(),
            related: None,
        })
    }

    /// Keeps nothing, and takes no trouble for the trial's, that is about other devices of the machine alone.
    #[must_use]
    pub fn about(self, related: Related) -> Self {
        Self {
            related: Some(related),
            ..self
        }
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
                    if let Some((at, lines)) = message(&text) {
                        let after = Span::from_micros(at.saturating_sub(self.since));
                        for line in lines {
                            words.hear(line, after, failing, self.related.as_ref());
                        }
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
    fn hear(&mut self, line: &str, after: Span, failing: Failing, related: Option<&Related>) {
        // What goes on beside the trial is not of it: other runs' loop devices, say.
        if related.is_some_and(|related| related.is_foreign(line)) {
            return;
        }
        if self.lines.len() < MOST {
            self.lines.push(line.to_owned());
        }
        if let Some(what) = trouble(line)
            && !(failing == Failing::Raidlab && what == MEMBER)
        {
            self.take(Trouble {
                what,
                line: line.to_owned(),
                after,
            });
        }
    }

    /// Takes trouble that was heard later.
    fn take(&mut self, later: Trouble) {
        let known = self.trouble.as_ref();
        let cause = |known: &Trouble| known.what == IO && later.is_member();
        if known.is_none_or(cause) {
            self.trouble = Some(later);
        }
    }

    /// Takes what was heard later.
    pub fn add(&mut self, more: Self) {
        let room = MOST.saturating_sub(self.lines.len());
        self.lines.extend(more.lines.into_iter().take(room));
        if let Some(later) = more.trouble {
            self.take(later);
        }
    }
}

/// Microseconds since the kernel began, as it stamps its log.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000
        + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

/// `6,1234,5678,-;text`, then lines of properties that begin with a space: microseconds, and the text, whose own ends of
/// lines are written `\x0a`.
fn message(record: &str) -> Option<(u64, impl Iterator<Item = &str>)> {
    let (head, text) = record.split_once(';')?;
    let at = head.split(',').nth(2)?.parse().ok()?;
    Some((at, text.lines().next()?.split("\\x0a")))
}

/// What a line says went wrong; `None` for all others. The words are those of block/blk-core.c, kernel/hung_task.c,
/// drivers/md, drivers/ata/libata-eh.c and the file systems.
fn trouble(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // EBUSY: someone tried to mount what is held here, which is refused to him. So says btrfs of a file system whose member
    // is missing, too, when its old name (`/dev/loop0`) is now that of another device. A mount of the trial's own that is
    // refused says so itself.
    if has(&["failed to open device for path"]) && lower.ends_with(": -16") {
        return None;
    }
    // What lay on a member that a btrfs is mounted without is read elsewhere when another takes its place, which is told and counted as
    // errors of the one that is not there. How a replacement ended, by undoing it too (-125), is told to whoever has asked for it.
    let made_good = ["bdev <missing disk> errs", "on dev <missing disk>"];
    if has(&["btrfs_scrub_dev("]) || (has(&made_good) && !has(&["unable to fix"])) {
        return None;
    }
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
        return Some(IO);
    }
    if has(&[
        "ext4-fs error",
        "xfs_force_shutdown",
        "btrfs error",
        "btrfs: error",
        "remounting filesystem read-only",
        // zfs_ereport and spl_panic of OpenZFS.
        "encountered an uncorrectable i/o failure",
        "panic at ",
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
        let (at, lines) = message(record).expect("a message");
        assert_eq!(
            (at, lines.collect::<Vec<_>>()),
            (5_140_900, vec!["NET: Registered"])
        );
        let (_, lines) = message("6,1,2,-;md0: Disk failure on sda.\\x0amd0: Operation continuing")
            .expect("a message");
        assert_eq!(
            lines.collect::<Vec<_>>(),
            ["md0: Disk failure on sda.", "md0: Operation continuing"]
        );
        assert!(message("nothing").is_none());
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
            (
                "BTRFS error: failed to open device for path /dev/sda with flags 0x23: -5",
                "the file system failed",
            ),
            (
                "BTRFS error (device loop1): scrub: unable to fixup (regular) error at logical 1 on dev <missing disk> physical 1",
                "the file system failed",
            ),
            (
                "WARNING: Pool 'p' has encountered an uncorrectable I/O failure and has been suspended.",
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
            "zfs: module license 'CDDL' taints kernel.",
            "BTRFS error: failed to open device for path /dev/loop0 with flags 0x21: -16",
            "BTRFS error (device loop1): bdev <missing disk> errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
            "BTRFS error (device loop1): scrub: fixed up error at logical 139591680 on dev <missing disk> physical 139591680",
            "BTRFS error (device loop2): btrfs_scrub_dev(<missing disk>, 2, /dev/loop1) failed -125",
        ] {
            assert_eq!(trouble(line), None, "{line}");
        }
    }

    #[test]
    fn a_member_that_raidlab_fails_is_no_trouble() {
        let mut words = KernelWords::default();
        let after = Span::from_secs(1);
        words.hear(
            "md/raid:md0: Disk failure on sda",
            after,
            Failing::Raidlab,
            None,
        );
        assert_eq!(words.trouble, None);
        words.hear(
            "I/O error, dev sdb, sector 1",
            after,
            Failing::Raidlab,
            None,
        );
        assert!(words.trouble.is_some(), "that has nothing to do with it");
    }

    #[test]
    fn the_first_trouble_is_the_reason_unless_a_member_failed_of_it() {
        let heard = |lines: &[&str]| {
            let mut words = KernelWords::default();
            for (n, line) in lines.iter().enumerate() {
                words.hear(line, Span::from_secs(n as u64), Failing::Nobody, None);
            }
            assert_eq!(words.lines.len(), lines.len());
            words.trouble.expect("trouble")
        };
        let failed = heard(&[
            "I/O error, dev sda, sector 1",
            "md/raid:md0: Disk failure on sda, disabling device.",
            "I/O error, dev sda, sector 9",
        ]);
        assert!(failed.is_member() && failed.names("sda") && !failed.names("sd"));
        assert_eq!(failed.after, Span::from_secs(1));
        assert!(
            failed
                .to_string()
                .starts_with("a member failed: the kernel said 'md/raid")
        );
        let first = heard(&[
            "EXT4-fs error (device md0)",
            "md/raid:md0: Disk failure on sda",
        ]);
        assert_eq!(first.what, "the file system failed");
    }
}

//! Operating systems by era: which I/O schedulers, file systems and defaults they have.
use crate::words::{by_text, words};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// A tick of the kernel's clock: 250 a second, as distributions have it (`CONFIG_HZ`).
pub const TICK: Span = Span::from_millis(4);

words! {
    /// What orders the requests of a disk's queue.
    Scheduler: "I/O scheduler" {
        /// First come, first served, with merging (before blk-mq).
        Noop = "noop",
        /// Sorted, with deadlines (before blk-mq).
        Deadline = "deadline",
        /// Sorted, waits for the next read of the same process.
        Anticipatory = "anticipatory",
        /// Time slices by process.
        Cfq = "cfq",
        /// No scheduler (blk-mq).
        None = "none",
        /// Sorted, with deadlines (blk-mq).
        MqDeadline = "mq-deadline",
        /// Budgets by process (blk-mq).
        Bfq = "bfq",
        /// Limits of requests by latency (blk-mq).
        Kyber = "kyber",
    }
}

words! {
    /// What is on the array.
    FilesystemKind: "file system" {
        /// Nothing: the raw device.
        None = "none",
        /// Without a journal.
        Ext2 = "ext2",
        /// ext2 with a journal.
        Ext3 = "ext3",
        /// Extents, delayed allocation.
        Ext4 = "ext4",
        /// Extents, allocation groups.
        Xfs = "xfs",
        /// Copy on write.
        Btrfs = "btrfs",
        /// Copy on write with its own volumes.
        Zfs = "zfs",
        /// Windows.
        Ntfs = "ntfs",
    }
}

impl FilesystemKind {
    /// Bytes that direct calls are multiples of, whatever the disks take: pages where the file system does not tell less (`statx`).
    /// btrfs puts others through the cache without a word.
    #[must_use]
    pub const fn direct_multiple(self) -> u32 {
        match self {
            Self::Btrfs | Self::Zfs => 4096,
            _ => 512,
        }
    }
}

words! {
    /// What a journal holds and in which order data follows.
    JournalMode: "journal mode" {
        /// Data is written before the metadata that points to it.
        Ordered = "ordered",
        /// Metadata alone, data at any time.
        Writeback = "writeback",
        /// Data too.
        Journal = "journal",
        /// No journal.
        None = "none",
    }
}

/// The system that the arrays are under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Windows 2000 and its like: no Linux schedulers, NTFS.
    Windows2000,
    /// Linux by version.
    Linux(u16, u16, u16),
}

impl Kernel {
    /// The kernel of Debian 12, where nothing is said.
    pub const DEFAULT: Self = Self::Linux(6, 1, 0);

    /// The kernel of the time of ZFS 0.8 (2019), which is taken to be what kernels from it on have.
    pub const ZFS_0_8: Self = Self::Linux(5, 1, 0);

    /// Since then btrfs makes stripes over one member, or over one pair of them ("btrfs: allow degenerate raid0/raid10").
    pub const DEGENERATE_STRIPES: Self = Self::Linux(5, 15, 0);

    /// Since then io_uring asks each file whether it can be read and written without waiting (`FMODE_NOWAIT`, commit caec5ebe77f9).
    /// Before, it took a regular file for such when no block device below says otherwise, ZFS's among them, which wait.
    pub const ASKS_FILES: Self = Self::Linux(6, 5, 0);

    /// The scheduler that it gives a rotating disk by itself; `None` without a choice.
    ///
    /// anticipatory to 2.6.17, CFQ from 2.6.18 (both by `Kconfig.iosched`), mq-deadline from 5.0 on,
    /// when the single-queue path was removed.
    #[must_use]
    pub const fn default_scheduler(self) -> Option<Scheduler> {
        match self {
            Self::Windows2000 => None,
            Self::Linux(..=1, _, _) | Self::Linux(2, ..=5, _) => None,
            Self::Linux(2, 6, ..=17) => Some(Scheduler::Anticipatory),
            Self::Linux(..=4, _, _) => Some(Scheduler::Cfq),
            Self::Linux(..) => Some(Scheduler::MqDeadline),
        }
    }

    /// Why it does not have a scheduler; `None` when it has it.
    #[must_use]
    pub fn lacks(self, scheduler: Scheduler) -> Option<&'static str> {
        let Self::Linux(..) = self else {
            return Some("Windows has no Linux I/O schedulers");
        };
        let old = self < Self::Linux(5, 0, 0);
        let since = |major, minor| self >= Self::Linux(major, minor, 0);
        match scheduler {
            Scheduler::Noop | Scheduler::Deadline | Scheduler::Cfq if !old => {
                Some("it went with the single-queue block layer in 5.0")
            }
            Scheduler::Anticipatory if self >= Self::Linux(2, 6, 33) => {
                Some("it was removed in 2.6.33")
            }
            Scheduler::None if !since(3, 13) => Some("it came with blk-mq in 3.13"),
            Scheduler::MqDeadline if !since(4, 11) => Some("it came with 4.11"),
            Scheduler::Bfq | Scheduler::Kyber if !since(4, 12) => Some("it came with 4.12"),
            Scheduler::Cfq | Scheduler::Anticipatory | Scheduler::Deadline | Scheduler::Noop
                if self < Self::Linux(2, 6, 0) =>
            {
                Some("schedulers to choose from came with 2.6")
            }
            _ => None,
        }
    }

    /// The file system of a user who does not choose: NTFS; ext3 before 2.6.28, when ext4 was
    /// declared stable; ext4.
    #[must_use]
    pub fn default_filesystem(self) -> FilesystemKind {
        match self {
            Self::Windows2000 => FilesystemKind::Ntfs,
            old if old < Self::Linux(2, 6, 28) => FilesystemKind::Ext3,
            _ => FilesystemKind::Ext4,
        }
    }

    /// mdadm's chunk when none is given: 64 KiB, and 512 KiB since mdadm 3.1 (October 2009, the time
    /// of 2.6.32). Windows stripes by 64 KiB.
    #[must_use]
    pub fn default_chunk(self) -> Bytes {
        if self < Self::Linux(2, 6, 32) {
            Bytes::kib(64)
        } else {
            Bytes::kib(512)
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows2000 => f.write_str("windows-2000"),
            Self::Linux(major, minor, 0) if *major > 2 => write!(f, "{major}.{minor}"),
            Self::Linux(major, minor, patch) => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

/// A text that names no system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no kernel: write a version of Linux such as '2.6.16' or '6.1', or 'windows-2000'"
)]
pub struct ParseKernelError(String);

impl FromStr for Kernel {
    type Err = ParseKernelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseKernelError(text.to_owned());
        let text = text.trim();
        if text == "windows-2000" {
            return Ok(Self::Windows2000);
        }
        let version = text.to_ascii_lowercase();
        let version = version.strip_prefix("linux").unwrap_or(&version).trim();
        // A distribution's own number follows a dash: 2.6.32-220.
        let version = version.split('-').next().unwrap_or(version);
        let mut parts = version.split('.').map(str::parse::<u16>);
        let major = parts.next().and_then(Result::ok).ok_or_else(wrong)?;
        let minor = parts.next().and_then(Result::ok).ok_or_else(wrong)?;
        let patch = parts.next().map_or(Ok(0), |p| p.map_err(|_| wrong()))?;
        if parts.next().is_some_and(|more| more.is_err()) || !(2..100).contains(&major) {
            return Err(wrong());
        }
        Ok(Self::Linux(major, minor, patch))
    }
}
by_text!(Kernel);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_versions() {
        assert_eq!("2.6.16".parse(), Ok(Kernel::Linux(2, 6, 16)));
        assert_eq!("Linux 2.6.32-220".parse(), Ok(Kernel::Linux(2, 6, 32)));
        assert_eq!("6.1".parse(), Ok(Kernel::Linux(6, 1, 0)));
        for text in ["", "6", "six", "1.2.3", "2.6.x", "2.6.1.x", "99999.1"] {
            assert!(text.parse::<Kernel>().is_err(), "{text}");
        }
        for kernel in [Kernel::DEFAULT, Kernel::Linux(2, 6, 0), Kernel::Windows2000] {
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
        }
    }

    #[test]
    fn every_default_scheduler_exists() {
        for minor in 0..40 {
            let kernel = Kernel::Linux(2, 6, minor);
            let scheduler = kernel.default_scheduler().expect("2.6 has schedulers");
            assert_eq!(kernel.lacks(scheduler), None, "{kernel}");
        }
        for major in 3..7 {
            let kernel = Kernel::Linux(major, 0, 0);
            let scheduler = kernel.default_scheduler().expect("a scheduler");
            assert_eq!(kernel.lacks(scheduler), None, "{kernel}");
        }
        assert!(Kernel::DEFAULT.lacks(Scheduler::Cfq).is_some());
        assert!(Kernel::Linux(2, 6, 16).lacks(Scheduler::Bfq).is_some());
    }
}

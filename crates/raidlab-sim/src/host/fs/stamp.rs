//! In which transaction a file's inode is, which `fsync` and `fdatasync` wait for.
//!
//! A write that has its place already changes the file's time alone, and that only when the kernel's clock has gone on since
//! (`file_update_time`). `fdatasync` does not wait for a time (`i_datasync_tid` of ext4, `XFS_ILOG_TIMESTAMP` of xfs). Linux 6.18
//! gave a loop device 4.0 KiB and one flush for 4 KiB written over and `fdatasync` on ext3, ext4 and xfs.
use raidlab_core::time::Span;

/// The time as a file system notes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Nanoseconds since the machine began.
    pub now: u64,
    /// Nanoseconds that it tells apart (`s_time_gran`, or a tick).
    pub grain: u64,
}

impl Clock {
    pub(super) const fn new(grain: Span) -> Self {
        Self {
            now: 0,
            grain: grain.0,
        }
    }
}

/// What of a file is in which transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    /// Bytes that it has as its owner sees it.
    pub bytes: u64,
    /// Nanoseconds until a change gives it another time.
    until: u64,
    /// The last transaction with its inode, and the last one with its size or its places.
    any: u64,
    data: u64,
}

impl Stamp {
    /// Of a file that is made in this transaction.
    pub(super) fn made(transaction: u64) -> Self {
        Self {
            any: transaction,
            data: transaction,
            ..Self::default()
        }
    }

    /// A write up to byte `end`.
    #[inline]
    pub(super) const fn write(&mut self, clock: Clock, end: u64, transaction: u64) {
        if end > self.bytes {
            self.bytes = end;
            self.placed(transaction);
        }
        if clock.now >= self.until {
            self.until = (clock.now / clock.grain + 1) * clock.grain;
            self.any = transaction;
        }
    }

    /// Its size or its places change.
    #[inline]
    pub(super) const fn placed(&mut self, transaction: u64) {
        (self.any, self.data) = (transaction, transaction);
    }

    /// Its inode changes otherwise.
    pub(super) const fn touched(&mut self, transaction: u64) {
        self.any = transaction;
    }

    /// The next write gives it another time.
    pub(super) const fn outdate(&mut self) {
        self.until = 0;
    }

    /// Whether a write up to byte `end` changes the inode.
    #[inline]
    pub(super) const fn changes(&self, clock: Clock, end: u64) -> bool {
        end > self.bytes || clock.now >= self.until
    }

    /// Whether `fsync` has to wait for this transaction, and whether for the one before as long as that is being written.
    pub(super) const fn last(&self, data_only: bool, transaction: u64) -> (bool, bool) {
        (
            self.joined(data_only, transaction),
            self.joined(data_only, transaction - 1),
        )
    }

    /// Whether `fsync` has to wait for this transaction, or `fdatasync` with `data_only`.
    #[inline]
    pub(super) const fn joined(&self, data_only: bool, transaction: u64) -> bool {
        let last = if data_only { self.data } else { self.any };
        last == transaction
    }
}

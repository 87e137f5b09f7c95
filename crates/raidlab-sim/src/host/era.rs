//! What the memory management and the write-back of a system do, by its version.
use super::cache::Balance;
use raidlab_core::time::Span;
use raidlab_experiment::dirty::WriteBack;
use raidlab_experiment::kernel::Kernel;

/// How sequential reads are run ahead of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// A current and an ahead window; looked at by every call (Linux to 2.6.22).
    Windows,
    /// On demand: on a page that is missing, or the marked one (Linux since 2.6.23).
    Marked,
}

/// How a process that dirties too much is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Throttle {
    /// It writes out dirty pages itself, 1.5 times as many as it may dirty between two looks.
    Writes,
    /// The same when what is dirty and not on its way is above the limit by itself; else it waits for what is on its way
    /// (Linux since 2.6.31, "mm: prevent balance_dirty_pages() from doing too much work").
    WritesBeyond,
    /// It sleeps as long as the device takes for what it dirtied (Linux since 3.2).
    Sleeps,
    /// Each call asks whether it may dirty pages, and waits while the flusher writes when it may not (`CcCanIWrite`,
    /// `CcDeferWrite` of Windows).
    Waits,
}

/// How much is written of one file before another one has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// Pages are written in the order in which they became dirty, whosesoever they are (`fs/buffer.c:write_some_buffers`, Linux
    /// 2.4): of several files that grow side by side a little of each in turn. Later kernels go by files.
    Oldest,
    /// 4 MiB.
    Few,
    /// What the device writes in half a second ("writeback: scale IO chunk size up to half device bandwidth", Linux 3.1).
    ByRate,
}

/// The constants of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Era {
    pub(super) ahead: Ahead,
    /// Read-ahead of a plain device in bytes.
    pub(super) read_ahead: u64,
    /// Whoever comes to the marked page asks for the next window before he waits for that page to come, so that two
    /// windows are on their way (`filemap_get_pages`; on demand on Linux).
    pub(super) ahead_before_wait: bool,
    /// A call that wants more than the largest window has as much as the device says (`bdi->io_pages`, Linux since 4.10).
    pub(super) ahead_by_request: bool,
    /// A first window that the call uses up and the one after it are together no larger than the largest
    /// (Linux since 4.19); before, they were two of them.
    pub(super) ahead_fits: bool,
    /// A window is no smaller than the one before ("mm/readahead: fix large folio support in async readahead": Linux 6.13, and 6.1.124,
    /// 6.6.70 and 6.12.9 of those that are maintained for long, which are meant where no third number is given).
    pub(super) ahead_keeps: bool,
    /// The default of disks that turn, and of arrays of them that have no stripes, is two of their largest requests: seen on 6.18; that
    /// it came with 6.17, as the larger requests did, is from memory.
    pub(super) ahead_of_disks: bool,
    /// Read-ahead is sent off before the reader waits, when the page it wants is there.
    pub(super) unplug_ahead: bool,
    /// A process sends off what it has submitted at the end of each batch (plug lists by process).
    pub(super) unplug_batch: bool,
    /// A direct call on a device that is one request collects nothing: what the layers below make of it is
    /// handed over piece by piece (`block/fops.c:__blkdev_direct_IO_async`, Linux since 5.16).
    pub(super) bare_direct: bool,
    /// Nor does such a write; until then `blkdev_write_iter` collects around all that it does (commit 712c7364655f, Linux 6.5).
    pub(super) bare_writes: bool,
    /// What `fsync` and the journal write is marked as waited for (`WRITE_SYNC` for `WB_SYNC_ALL` and in jbd, Linux since 2.6.30);
    /// before, schedulers take it for write-back. Left out: of single buffers, a commit's last block among them, it is since 2.6.27.
    pub(super) marks_durable: bool,
    /// Of a process that has several calls under way, those that read through the cache are carried out by workers of the
    /// kernel (io_uring since Linux 5.1), and not since 5.9 by the process, which waits for pages of all of them
    /// (`FMODE_BUF_RASYNC`: ext4, XFS and block devices; ZFS see `submitter`). Before io_uring it waits for each itself.
    pub(super) workers_read: bool,
    /// The same of those that write to a block device through the cache, still in 6.1. Those that write to one file are carried out
    /// by one worker after the other (`io_wq_hash_work`).
    pub(super) workers_write: bool,
    /// The same of those that make durable, whatever they make so. Left out: what there was before io_uring.
    pub(super) workers_sync: bool,
    /// io_uring asks a file whether it can be read and written without waiting (`FMODE_NOWAIT`, since 6.5), see `submitter`.
    pub(super) asks_files: bool,
    pub(super) balance: Balance,
    /// A page that is written counts as used, so that a file that is read and rewritten stays in memory before
    /// others (Linux before 4.7, "mm: filemap: only do access activations on reads").
    pub(super) writes_use: bool,
    /// Shares are of all memory and not of what can hold files (Linux to 2.6.21).
    pub(super) dirties_of_all: bool,
    /// A share that is set counts as one within these: at least 5 % (to 2.6.36, "writeback: remove the internal 5% low bound on
    /// dirty_ratio"), at most half of what no process has mapped (`unmapped_ratio`; taken to be nothing, and to have gone with
    /// 2.6.29).
    pub(super) dirty_bounds: (u64, u64),
    /// Dirty share of memory in per cent above which writers are held back.
    pub(super) dirty_percent: u64,
    /// Above which the flusher writes.
    pub(super) background_percent: u64,
    pub(super) throttle: Throttle,
    /// The flusher wakes so often; zero: never.
    pub(super) wake: Span,
    /// It writes files that have been dirty for so long.
    pub(super) expire: Span,
    pub(super) chunks: Chunks,
    /// It writes this part of all dirty pages at each waking, 1 in so many; 0: the expired files.
    pub(super) lazy: u64,
}

/// Linux before 2.6.22: `vm_dirty_ratio` 40 and `dirty_background_ratio` 10 (mm/page-writeback.c),
/// 5 s and 30 s, `VM_MAX_READAHEAD` 128 KiB (include/linux/mm.h).
const LINUX: Era = Era {
    ahead: Ahead::Windows,
    read_ahead: 128 << 10,
    ahead_before_wait: false,
    ahead_by_request: false,
    ahead_fits: false,
    ahead_keeps: false,
    ahead_of_disks: false,
    unplug_ahead: false,
    unplug_batch: false,
    bare_direct: false,
    bare_writes: false,
    marks_durable: false,
    workers_read: false,
    workers_write: false,
    workers_sync: false,
    asks_files: false,
    balance: Balance::Proportional,
    writes_use: true,
    dirties_of_all: true,
    dirty_bounds: (5, 50),
    dirty_percent: 40,
    background_percent: 10,
    throttle: Throttle::Writes,
    wake: Span::from_secs(5),
    expire: Span::from_secs(30),
    chunks: Chunks::Few,
    lazy: 0,
};

/// Windows 2000: the lazy writer wakes every second and writes an eighth of the dirty pages; writers
/// are held back by `CcDirtyPageThreshold`, on a server three eighths of the pages (Russinovich and
/// Solomon, Inside Windows 2000, chapter 11). Read-ahead of 64 KiB steps, two of them, by a worker
/// thread that starts at once.
const WINDOWS: Era = Era {
    ahead: Ahead::Marked,
    read_ahead: 128 << 10,
    ahead_before_wait: false,
    ahead_by_request: false,
    ahead_fits: false,
    ahead_keeps: false,
    ahead_of_disks: false,
    unplug_ahead: true,
    unplug_batch: true,
    bare_direct: false,
    bare_writes: false,
    marks_durable: true,
    workers_read: false,
    workers_write: false,
    workers_sync: false,
    asks_files: false,
    balance: Balance::Half,
    writes_use: true,
    dirties_of_all: false,
    dirty_bounds: (0, 100),
    dirty_percent: 37,
    background_percent: 37,
    throttle: Throttle::Waits,
    wake: Span::from_secs(1),
    expire: Span::from_secs(30),
    chunks: Chunks::Few,
    lazy: 8,
};

impl Era {
    pub(super) fn of(kernel: Kernel) -> Self {
        if kernel == Kernel::Windows2000 {
            return WINDOWS;
        }
        let since = |a, b, c| kernel >= Kernel::Linux(a, b, c);
        let mut era = LINUX;
        era.chunks = match () {
            () if since(3, 1, 0) => Chunks::ByRate,
            () if since(2, 6, 0) => Chunks::Few,
            () => Chunks::Oldest,
        };
        if since(2, 6, 22) {
            // 10/5 with 2.6.22, doubled again with 2.6.30.
            (era.dirty_percent, era.background_percent) = (10, 5);
            era.dirties_of_all = false;
        }
        if since(2, 6, 23) {
            (era.ahead, era.ahead_before_wait) = (Ahead::Marked, true);
        }
        if since(2, 6, 28) {
            era.balance = Balance::Half;
        }
        if since(2, 6, 30) {
            (era.dirty_percent, era.background_percent) = (20, 10);
        }
        if since(2, 6, 31) {
            era.throttle = Throttle::WritesBeyond;
        }
        if since(2, 6, 29) {
            era.dirty_bounds.1 = 100;
        }
        if since(2, 6, 37) {
            era.dirty_bounds.0 = 0;
        }
        era.writes_use = !since(4, 7, 0);
        era.ahead_by_request = since(4, 10, 0);
        era.ahead_fits = since(4, 19, 0);
        era.ahead_keeps = match kernel {
            Kernel::Linux(6, 1, patch) => patch == 0 || patch >= 124,
            Kernel::Linux(6, 6, patch) => patch == 0 || patch >= 70,
            Kernel::Linux(6, 12, patch) => patch == 0 || patch >= 9,
            _ => since(6, 13, 0),
        };
        era.ahead_of_disks = since(6, 17, 0);
        era.unplug_ahead = since(2, 6, 33);
        era.unplug_batch = since(2, 6, 39);
        era.bare_direct = since(5, 16, 0);
        era.bare_writes = since(6, 5, 0);
        era.marks_durable = since(2, 6, 30);
        era.workers_read = since(5, 1, 0) && !since(5, 9, 0);
        era.workers_write = since(5, 1, 0);
        era.workers_sync = since(5, 1, 0);
        era.asks_files = kernel >= Kernel::ASKS_FILES;
        if since(3, 2, 0) {
            era.throttle = Throttle::Sleeps;
        }
        era
    }

    /// With the times that are set.
    pub(super) fn set(self, set: &WriteBack) -> Self {
        Self {
            wake: set.wake.unwrap_or(self.wake),
            expire: set.expire.unwrap_or(self.expire),
            ..self
        }
    }

    /// Of a file system with a cache and a prefetch of its own: nothing of what the page cache learned since
    /// 2.6.23 is in them.
    pub(super) fn of_own_cache(self) -> Self {
        Self {
            ahead_before_wait: LINUX.ahead_before_wait,
            ahead_by_request: LINUX.ahead_by_request,
            ahead_fits: LINUX.ahead_fits,
            ahead_keeps: LINUX.ahead_keeps,
            ahead_of_disks: LINUX.ahead_of_disks,
            marks_durable: true,
            writes_use: LINUX.writes_use,
            workers_read: self.asks_files,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eras_change_where_the_kernels_did() {
        let of = |minor| Era::of(Kernel::Linux(2, 6, minor));
        assert_eq!(of(16), LINUX);
        assert_eq!((of(21).dirty_percent, of(22).dirty_percent), (40, 10));
        assert!(of(21).dirties_of_all && !of(22).dirties_of_all);
        assert_eq!(of(28).dirty_bounds, (5, 50));
        assert_eq!(of(36).dirty_bounds, (5, 100));
        assert_eq!(of(37).dirty_bounds, (0, 100));
        assert_eq!((of(29).dirty_percent, of(30).dirty_percent), (10, 20));
        assert_eq!(
            (of(30).throttle, of(31).throttle),
            (Throttle::Writes, Throttle::WritesBeyond)
        );
        assert_eq!(
            (of(22).ahead, of(23).ahead),
            (Ahead::Windows, Ahead::Marked)
        );
        assert!(!of(38).unplug_batch && of(39).unplug_batch);
        assert_eq!(Era::of(Kernel::Linux(3, 0, 0)).chunks, Chunks::Few);
        assert_eq!(Era::of(Kernel::Linux(3, 1, 0)).chunks, Chunks::ByRate);
        assert_eq!(Era::of(Kernel::DEFAULT).throttle, Throttle::Sleeps);
        assert_eq!(Era::of(Kernel::Linux(2, 6, 0)), LINUX);
        let old = Era::of(Kernel::Linux(2, 4, 20));
        assert_eq!(
            old,
            Era {
                chunks: Chunks::Oldest,
                ..LINUX
            }
        );
    }

    #[test]
    fn a_cache_of_its_own_is_as_it_was() {
        let new = Era::of(Kernel::DEFAULT);
        assert!(new.ahead_before_wait && new.ahead_by_request && new.ahead_fits && !new.writes_use);
        let own = new.of_own_cache();
        assert!(!own.ahead_before_wait && !own.ahead_by_request && !own.ahead_fits);
        assert!(own.writes_use && !own.workers_read && !new.workers_read);
        assert!(Era::of(Kernel::Linux(6, 5, 0)).of_own_cache().workers_read);
        assert_eq!(own.throttle, new.throttle);
    }
}

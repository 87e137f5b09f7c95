//! The answers of a file system.
use raidlab_core::time::Span;
use raidlab_core::units::{Lba, SECTOR};

/// The processor that [`Charge::cpu`] is counted on: a core of 2006 at 2000 MHz (Athlon 64). A host
/// scales by clock, and by what its core does in a clock against that one.
pub const REFERENCE_MHZ: u32 = 2000;

/// Bytes of a file at a place on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte in the file.
    pub offset: u64,
    /// First sector on the device.
    pub lba: Lba,
    /// Sectors.
    pub sectors: u32,
}

impl Piece {
    /// Bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.sectors as u64 * SECTOR
    }
}

/// A run of sectors of metadata or of a small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// First sector on the device.
    pub lba: Lba,
    /// Sectors.
    pub sectors: u32,
}

/// What a call costs beside the data of a data file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Charge {
    /// Processor time of the file system's code on the reference processor, see [`REFERENCE_MHZ`].
    pub cpu: Span,
    /// What must be in memory before the call goes on, one after the other in this order: each tells
    /// where the next is. The host's cache knows which are there already.
    pub reads: Vec<Place>,
    /// Metadata made by the call: in memory from now on without having been read.
    pub made: Vec<Place>,
    /// Data of small files that is dirty in the cache now, at its place on the device.
    pub written: Vec<Place>,
    /// Data of small files that is no longer wanted: dirty or not, the cache forgets it.
    pub dropped: Vec<Place>,
    /// Metadata that has its place by this call and goes to the device with the data; the transaction that is being
    /// committed waits for it as for the data.
    pub along: Vec<Place>,
    /// Metadata blocks that joined the running transaction by this call.
    pub dirtied: u32,
    /// Bytes that the call counts for as freed, see [`Traits::frees_most`].
    pub frees: u64,
    /// The call is not done before what it changed is durable: see
    /// [`FileSystem::sync`](super::FileSystem::sync).
    pub commit_needed: bool,
}

/// One step of a commit. Its writes may go together; the next step waits for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The drive's cache is to be emptied before the writes.
    pub flush_before: bool,
    /// What is written.
    pub writes: Vec<Place>,
    /// The writes must be on the media before they end (`FUA`, or a flush after them).
    pub durable: bool,
    /// Blocks written home to make room in the journal: only those are written that are still dirty
    /// since an earlier commit gave them out as [`Commit::later`].
    pub checkpoint: bool,
    /// New members are filled before, see [`Traits::fill_times`].
    pub fills_before: bool,
}

/// What ending a transaction writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Dirty data of the files that the transaction changed goes first and is waited for.
    pub data_first: bool,
    /// The steps, in order.
    pub stages: Vec<Stage>,
    /// Metadata that is dirty in memory from now on, to be written home by the flusher like any
    /// dirty page. Sorted, without repeats.
    pub later: Vec<Place>,
    /// There is no room in the log for much more: [`later`](Self::later) of earlier transactions goes home at once.
    pub home: bool,
    /// Processor time of the thread that commits, on the reference processor.
    pub cpu: Span,
}

/// How near the running transaction is to the size it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// Nothing is to be done.
    None,
    /// It is to be committed.
    Some,
    /// And who would add to it waits until it is closed, when the one before is still being written.
    Full,
    /// And who would add to it waits until it is closed.
    Wait,
}

/// What `fsync` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Its own data, then the transaction if the file is in it (btrfs: a log of trees instead).
    OwnData,
    /// The transaction with the data of every file in it (ext3 `ordered`).
    EverythingOrdered,
    /// A record in an intent log (ZFS).
    Log,
}

/// What one `fsync` must do, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Write the file's dirty data in place and wait for it.
    pub data: bool,
    /// Then commit the running transaction with [`FileSystem::commit`](super::FileSystem::commit)
    /// and wait for it.
    pub commit: bool,
    /// Or, with all others who do so, write the log with [`FileSystem::write_log`](super::FileSystem::write_log).
    pub log: bool,
    /// Or wait for the transaction before, while that is being written.
    pub under_way: bool,
    /// Then these writes (an intent log, or an inode written in place).
    pub stages: Vec<Stage>,
    /// Then empty the drive's cache.
    pub flush: bool,
    /// And do so after a commit that another call has asked for (`xfs_file_fsync`: only who sends the log's write off is told that
    /// it does, by `log_flushed`).
    pub flush_shared: bool,
    /// Processor time of the call on the reference processor.
    pub cpu: Span,
}

/// Which writes a process that has several calls under way leaves to a worker of the kernel, because it would
/// have to wait itself (`IOCB_NOWAIT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Punts {
    /// None: it begins each itself.
    #[default]
    None,
    /// Those that change the inode, be it the file's time alone (XFS, `kiocb_modified` since 6.0), and those that find it held.
    Changing {
        /// To workers of which one at a time writes to a file, as any call that writes (to 6.3: `FMODE_DIO_PARALLEL_WRITE`).
        in_turn: bool,
    },
    /// All (btrfs, which gives them new places, `btrfs_write_check`; through the cache where a file system is without
    /// `FMODE_BUF_WASYNC`).
    All,
}

/// How long a commit lets the device fill its new members, between its data and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillTimes {
    /// For more than this in any case, unless it is done sooner.
    pub least: Span,
    /// Then until somebody waits for the commit, or there is more dirty data than this share of what may be, in per cent.
    pub dirty_percent: Option<u32>,
    /// And no longer than this.
    pub most: Span,
    /// That is counted from when the commit began, and not from when the filling did.
    pub of_commit: bool,
}

/// What decides how the host treats the files of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Bytes of the unit that is cached and written as a whole: a page, or a record of ZFS. A
    /// partial write of a unit that is on the device and not in memory must read it.
    pub unit: u32,
    /// Bytes of the smallest thing that has a place of its own.
    pub block: u32,
    /// Places are chosen at write-back.
    pub delayed: bool,
    /// Overwriting goes to new places.
    pub copy_on_write: bool,
    /// A commit waits for the data of the files in its transaction.
    pub ordered: bool,
    /// Data goes through the journal: [`Commit::stages`] holds it, and write-back home follows.
    pub data_journal: bool,
    /// The running transaction is committed so often; `None`: nothing commits by itself.
    pub commit_interval: Option<Span>,
    /// Metadata goes home by itself so often, and neither with what is dirty nor by `sync`; `None`: as any dirty page.
    pub home_every: Option<Span>,
    /// Dirty data beyond this starts a commit at once (ZFS): a share of memory in 1/1024, and bytes,
    /// whichever is less. `None`: the host's own limits alone.
    pub dirty_limit: Option<(u32, u64)>,
    /// A writer waits while there is more dirty data than this share of memory in 1/1024.
    pub dirty_most: Option<u32>,
    /// What one transaction may free, in per cent of [`dirty_most`](Self::dirty_most): when that is reached, who would free
    /// more waits for the next one; `None`: no such limit.
    pub frees_most: Option<u32>,
    /// A commit is begun early, so that it takes about this long at the rate that the device wrote
    /// the last ones (the write throttle of ZFS before 0.6.3); `None`: no such aim.
    pub commit_time: Option<Span>,
    /// New members are filled while a commit waits; `None`: whenever they can be.
    pub fill_times: Option<FillTimes>,
    /// Write-back of a file goes on to the end of a run of dirty pages, of so many at most, although less was asked for.
    pub whole_run: Option<u64>,
    /// The least read-ahead in bytes of a file system that has its own instead of that of its device; 0: of none.
    pub read_ahead: u64,
    /// What `fsync` waits for.
    pub fsync: Fsync,
    /// Read-ahead of its own, past the host's: bytes of the largest window, `None` for the host's.
    pub prefetch: Option<u64>,
    /// Data goes through the host's page cache (ZFS has its own, the ARC).
    pub page_cache: bool,
    /// Direct calls go past memory. ZFS before 2.3 (2025) takes `O_DIRECT` and goes through the ARC all the same.
    pub direct: bool,
    /// `fsync` keeps a file's inode from being changed while it waits for the log, see `inode`.
    pub fsync_holds: bool,
    /// Which direct writes are left to workers.
    pub punts: Punts,
    /// And which of those through the page cache.
    pub punts_cached: Punts,
    /// Direct reads of more bytes than these are left to one, too; `None`: none are.
    pub punts_reads: Option<u64>,
    /// A read past what was written in a preallocated file fills with zeros (NTFS valid data length).
    pub zero_fill: bool,
    /// What the flusher writes of files is marked as its (`wbc_to_write_flags` on `REQ_BACKGROUND`).
    pub says_flusher: bool,
    /// The log's writes are marked as those of somebody who will ask for more (`REQ_SYNC` with `REQ_IDLE`), which keeps them from being
    /// held back as write-back is.
    pub free_log: bool,
}

//! What differs between xfs, btrfs and NTFS.
use super::super::plan::{Fsync, Punts, Traits};
use super::super::spec::FsSpec;
use super::cow;
use super::logged::Logged;
use super::small::CHUNK;
use super::tree_log::{ENTRY, HEADER, INODE};
use raidlab_core::time::Span;
use raidlab_core::units::{GIB, KIB, MIB, SECTOR};
use raidlab_experiment::kernel::{FilesystemKind, Kernel, TICK};

/// What is kept for a file that grows beyond what is written of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Whenever blocks get places, so many at first, twice as many each time, up to a most.
    Windows(u64, u64),
    /// As the file grows in memory, a power of two: as much as the file has (xfs, Linux 2.6.38 to 3.9), or twice the
    /// extent before (since 3.10, `xfs_iomap_prealloc_size`); of 64 KiB and more. All of it gets places with the first block.
    Size,
    /// See [`Self::Size`].
    Extent,
    /// Nothing, and what gets places goes whole to the first one that has room for it after the blocks before, 128 MiB at a time
    /// (btrfs: `find_free_space`, `BTRFS_MAX_EXTENT_SIZE`); half as much where none has (`btrfs_reserve_extent`).
    Whole,
}

/// Facts of a kind. Sizes in blocks unless they say bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Bytes of a block.
    pub block: u64,
    /// Blocks of an allocation group.
    pub group: u64,
    /// Blocks of the stripe unit that the ends of files begin at (xfs on an array with chunks), 0 without.
    pub unit: u64,
    /// Blocks at the start of each group that describe it.
    pub head: u64,
    /// Blocks of the log, or of the chunk that holds metadata, and where it begins.
    pub log: u64,
    pub log_at: u64,
    /// Bytes that the log is written in multiples of.
    pub log_unit: u64,
    /// Where file records begin, and the blocks kept for them there (the MFT zone).
    pub zone_at: u64,
    pub zone: u64,
    /// Files whose records are in one block.
    pub records: u64,
    /// Blocks of records that are read at once.
    pub cluster: u64,
    /// Names in a block of a directory.
    pub names: u64,
    /// Bytes that a file's record holds of its data.
    pub resident: u64,
    /// What is kept for a file beyond what is written.
    pub ahead: Ahead,
    /// What goes into the log.
    pub logged: Logged,
    /// Flush before a log write and `FUA` on it.
    pub barriers: bool,
    /// How finely files have their times.
    pub grain: Span,
    /// New places for what is overwritten.
    pub cow: bool,
    /// Blocks of a metadata node (btrfs).
    pub node: u64,
    /// How often each node is written here: twice on one device. What several devices do with a node is their array's to say.
    pub copies: u64,
    /// Bytes of addresses of a chunk of data, and what devices have for so many bytes of them.
    pub data_chunk: u64,
    pub raw: (u64, u64),
    /// Processor time of a write call, of a run allocated, of a name changed, in nanoseconds on the
    /// reference processor. Assumed.
    pub cpu: [u64; 3],
    /// The same of a call with a name, and what is more of one that makes a file, and of one that removes it. Of XFS and btrfs fitted
    /// to making and removing 16384 empty files on Linux 6.18 beside `stat` of them (docs/validation/prediction.md).
    pub names_cpu: [u64; 3],
}

impl Kind {
    pub(super) fn new(spec: &FsSpec) -> Self {
        let block = u64::from(if spec.block == 0 { 4096 } else { spec.block });
        match spec.kind {
            FilesystemKind::Xfs => Self::xfs(spec, block),
            FilesystemKind::Btrfs => Self::btrfs(spec, block),
            _ => Self::ntfs(spec, block),
        }
    }

    /// Allocation groups: see [`Self::xfs_groups`]. A log of 1/2048 of the device, from
    /// 10 MiB to 128 MiB once and from 64 MiB to 2 GiB since mkfs 5.15, in the middle group;
    /// barriers since 2.6.17. Inodes of 256 bytes (512 since mkfs 3.2.3, 2015). Known, not re-read.
    fn xfs(spec: &FsSpec, block: u64) -> Self {
        let bytes = spec.device_bytes();
        let (groups, group, unit) = Self::xfs_groups(spec, block);
        let modern = spec.kernel >= Kernel::Linux(5, 15, 0);
        let (least, most) = if modern {
            (64 * MIB, 2 * GIB)
        } else {
            (10 * MIB, 128 * MIB)
        };
        // It lies in one group.
        let given = (bytes / 2048).clamp(least, most).min(group / 8 * 7 * block);
        let log = if spec.journal > 0 {
            spec.journal
        } else {
            given
        };
        let inode = if spec.kernel >= Kernel::Linux(4, 0, 0) {
            512
        } else {
            256
        };
        Self {
            block,
            group,
            unit,
            head: 8,
            log: log / block,
            log_at: groups / 2 * group + 8,
            log_unit: log_unit(spec, block),
            zone_at: 0,
            zone: 0,
            records: block / inode,
            // `XFS_INODE_BIG_CLUSTER_SIZE`: 8 KiB of inodes of 256 bytes, as many of larger ones.
            cluster: (32 * inode / block).max(1),
            names: block / 32,
            resident: 0,
            ahead: match spec.kernel {
                kernel if kernel >= Kernel::Linux(3, 10, 0) => Ahead::Extent,
                kernel if kernel >= Kernel::Linux(2, 6, 38) => Ahead::Size,
                _ => Ahead::Windows(16, 16),
            },
            logged: Logged::xfs(spec.kernel, log),
            barriers: spec
                .barriers
                .unwrap_or(spec.kernel >= Kernel::Linux(2, 6, 17)),
            grain: TICK,
            cow: false,
            node: 0,
            copies: 1,
            data_chunk: 0,
            raw: (1, 1),
            cpu: [900, 8_000, 16_000],
            names_cpu: [3_000, 25_500, 12_000],
        }
    }

    /// Allocation groups, blocks of one, and of the stripe unit. Four groups below 4 TiB and one a TiB above; on an array with stripes
    /// 8 up to 8 GiB, 16 up to 512 GiB and 32 up to 32 TiB, of whole stripe units and not of whole stripes of several, or all would
    /// begin on the same member (`mkfs/xfs_mkfs.c:calc_default_ag_geometry`, `align_ag_geometry`; up to 8 GiB as mkfs 6.1 made them, the
    /// other numbers are from memory).
    fn xfs_groups(spec: &FsSpec, block: u64) -> (u64, u64, u64) {
        let (bytes, blocks) = (spec.device_bytes(), spec.device_bytes() / block);
        let (unit, stripe) = (spec.chunk / block, spec.stripe / block);
        // Chunks of which the smallest group would not hold some are not regarded (assumed).
        let striped = unit > 0 && stripe > 0 && blocks / 32 >= 2 * unit;
        let groups = match bytes / GIB {
            gib if gib >= if striped { 32_768 } else { 4096 } => bytes.div_ceil(1024 * GIB),
            _ if !striped => 4,
            0..8 => 8,
            8..512 => 16,
            _ => 32,
        };
        if !striped {
            return (groups, blocks.div_ceil(groups), 0);
        }
        let group = blocks / groups / unit * unit;
        let all_begin_alike = stripe > unit && group.is_multiple_of(stripe);
        (groups, group - if all_begin_alike { unit } else { 0 }, unit)
    }

    /// Nodes of 4 KiB, of 16 KiB since 3.12, and never smaller than a block (`mkfs/main.c`); metadata twice (`DUP`) in
    /// [one chunk](cow::metadata_chunk) for each copy from 1 MiB on, on several devices once in one of the array's; data after it.
    fn btrfs(spec: &FsSpec, block: u64) -> Self {
        let node = if spec.kernel >= Kernel::Linux(3, 12, 0) {
            16 * KIB
        } else {
            4 * KIB
        };
        let node = node.max(block);
        let device = spec.device_bytes();
        let (log, copies, data_chunk) = match &spec.spread {
            None => (2 * cow::metadata_chunk(device), 2, cow::data_chunk(device)),
            // Inodes lie in the chunk of metadata, too.
            Some(spread) => (spread.metadata - CHUNK * block, 1, spread.chunk),
        };
        Self {
            block,
            // On one device 1 GiB, also where that is so small that its chunks are smaller.
            group: spec.spread.as_ref().map_or(GIB, |spread| spread.chunk) / block,
            unit: 0,
            head: 0,
            log: log / block,
            log_at: MIB / block,
            log_unit: block,
            zone_at: MIB / block,
            zone: 0,
            // Leaves filled in order: an inode and its reference. A name has an item by number and one by hash, whose leaves are
            // filled in any order, to ln 2.
            records: ((node - HEADER) / INODE).div_ceil(node / block),
            cluster: node / block,
            names: ((node - HEADER) / (ENTRY + ENTRY * 1000 / 693)).div_ceil(node / block),
            resident: 2048,
            ahead: Ahead::Whole,
            logged: Logged::each(0, 0),
            barriers: spec.barriers.unwrap_or(true),
            grain: TICK,
            cow: true,
            node: node / block,
            copies,
            data_chunk,
            raw: spec.spread.as_ref().map_or((1, 1), |spread| spread.raw),
            cpu: [1_500, 20_000, 30_000],
            names_cpu: [3_400, 10_000, 27_000],
        }
    }

    /// As Windows 2000 makes it: clusters of 4 KiB; the MFT with records of 1 KiB right after the boot sectors, with the first
    /// eighth of the volume kept for it to grow and data from there on (what Linux's driver of the time, `ntfs_setup_allocators`,
    /// takes for an unmodified volume; Windows XP moved the MFT to 3 GiB); the log file of 64 MiB in the middle, after the MFT's
    /// mirror; index buffers of 4 KiB with names of
    /// about 100 bytes, three quarters full; up to about 700 bytes of data in the record. Known, not re-read.
    fn ntfs(spec: &FsSpec, block: u64) -> Self {
        let bytes = spec.device_bytes();
        let log = if spec.journal > 0 {
            spec.journal
        } else {
            (bytes / 100).clamp(2 * MIB, 64 * MIB)
        };
        Self {
            block,
            group: bytes / block,
            unit: 0,
            head: 16 * KIB / block + 1,
            log: log / block,
            log_at: bytes / 2 / block + 1,
            log_unit: block,
            zone_at: 0,
            zone: bytes / 8 / block,
            records: (block / 1024).max(1),
            cluster: 1,
            names: (block * 3 / 4 / 100).max(1),
            resident: 700,
            ahead: Ahead::Windows(16, 16_384),
            logged: Logged::each(600, 300),
            barriers: false,
            // Of 100 ns, and not that of a tick.
            grain: Span(100),
            cow: false,
            node: 0,
            copies: 1,
            data_chunk: 0,
            raw: (1, 1),
            cpu: [1_500, 6_000, 20_000],
            names_cpu: [5_000, 0, 0],
        }
    }

    pub(super) fn traits(&self, spec: &FsSpec) -> Traits {
        let ntfs = spec.kind == FilesystemKind::Ntfs;
        let btrfs = spec.kind == FilesystemKind::Btrfs;
        Traits {
            unit: 4096,
            block: self.block as u32,
            delayed: !ntfs,
            copy_on_write: self.cow,
            // btrfs: a tree points to data only once that is on the device.
            ordered: btrfs,
            data_journal: false,
            commit_interval: Some(Span::from_secs(if ntfs { 5 } else { 30 })),
            // `xfs_log_worker` has all of it written every `xfssyncd_centisecs`; `sync` only writes the log.
            home_every: (spec.kind == FilesystemKind::Xfs).then_some(Span::from_secs(30)),
            dirty_limit: None,
            dirty_most: None,
            frees_most: None,
            commit_time: None,
            fill_times: None,
            whole_run: None,
            // The `bdi` of btrfs (`open_ctree`): 4 MiB whatever `read_ahead_kb` of the device is, as seen on Linux 6.18.
            read_ahead: u64::from(btrfs) * 4 * MIB,
            // btrfs: the log of trees points to data at its place.
            fsync: Fsync::OwnData,
            prefetch: None,
            page_cache: true,
            direct: true,
            fsync_holds: spec.kind == FilesystemKind::Xfs
                && (Kernel::Linux(4, 4, 0)..Kernel::Linux(6, 18, 0)).contains(&spec.kernel),
            punts: match spec.kind {
                FilesystemKind::Btrfs => Punts::All,
                FilesystemKind::Xfs if spec.kernel >= Kernel::Linux(6, 0, 0) => Punts::Changing {
                    in_turn: spec.kernel < Kernel::Linux(6, 4, 0),
                },
                _ => Punts::None,
            },
            punts_cached: match (spec.kind, spec.kernel) {
                (FilesystemKind::Xfs, kernel) if kernel >= Kernel::Linux(6, 0, 0) => {
                    Punts::Changing { in_turn: true }
                }
                (FilesystemKind::Btrfs, kernel) if kernel >= Kernel::Linux(6, 1, 0) => Punts::None,
                _ => Punts::All,
            },
            // "btrfs: don't allow large NOWAIT direct reads": of more than a page. Seen of 6.1.
            punts_reads: (btrfs && spec.kernel >= Kernel::Linux(6, 0, 0)).then_some(4096),
            zero_fill: ntfs,
            says_flusher: !ntfs,
            // "xfs: don't allow log IO to be throttled".
            free_log: spec.kind == FilesystemKind::Xfs && spec.kernel >= Kernel::Linux(5, 7, 0),
        }
    }
}

/// What mkfs.xfs makes the log's writes multiples of: its sectors, which are the disk's physical ones where blocks are as large (since 2012, the time of 3.4); on a
/// striped array its stripe unit, which is the chunk, or 32 KiB where that is above 256 KiB. Measured with mkfs 6.1 (`-s size`,
/// `-d su`); that version 2 of the log, which has such a unit, is the default since 2008, the time of 2.6.24, and when sectors came are known, not re-read.
fn log_unit(spec: &FsSpec, block: u64) -> u64 {
    let sector = match u64::from(spec.sector) {
        sector if spec.kernel >= Kernel::Linux(3, 4, 0) && sector <= block => sector,
        _ => SECTOR,
    };
    match spec.chunk {
        chunk if chunk < block || spec.kernel < Kernel::Linux(2, 6, 24) => sector,
        chunk if chunk > 256 * KIB => 32 * KIB,
        chunk => chunk / block * block,
    }
}

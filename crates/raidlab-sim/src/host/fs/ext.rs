//! ext2, ext3 and ext4: block groups, indirect blocks or extents, a journal.
mod cost;
mod data;
mod geometry;
mod homes;
mod inodes;
mod journal;
mod names;
mod tree;

use super::FsError;
use super::plan::{Charge, Commit, Fsync, Pressure, Punts, Stage, Synced, Traits};
use super::runs::Runs;
use super::space::{Run, Space};
use super::spec::FsSpec;
use super::stamp::{Clock, Stamp};
use geometry::Geometry;
use journal::{Journal, gather};
use names::Names;
use raidlab_core::op::{FileId, OpenMode};
use raidlab_core::time::Span;
use raidlab_experiment::kernel::{FilesystemKind, JournalMode, Kernel, TICK};
use std::collections::{BTreeMap, BTreeSet};
use tree::Tree;

/// A data file.
#[derive(Clone, Debug, Default)]
struct File {
    inode: u64,
    /// Places of its slots, see [`Tree`].
    runs: Runs,
    /// Blocks that have been written to and have no place yet (delayed allocation); the device
    /// address is the block itself.
    pending: Runs,
    /// All data blocks before this have a place or are pending.
    whole: u64,
    /// The indirect blocks above the data blocks before this, down from the last allocation, exist.
    path_end: u64,
    /// The last of those.
    above: Option<u64>,
    /// Blocks kept for it from the free space: its reservation window or preallocation.
    lease: Option<Run>,
    /// Size of the next lease in blocks, but with ext4's driver.
    window: u64,
    /// Blocks that it has as its owner sees it: of delayed ones, too.
    size: u64,
    /// Blocks of its extent tree outside the inode.
    leaves: Vec<u64>,
    /// The transactions that have its inode.
    stamp: Stamp,
}

/// The file system.
#[derive(Clone, Debug)]
pub(super) struct Ext {
    traits: Traits,
    tree: Tree,
    geometry: Geometry,
    space: Space<Geometry>,
    journal: Journal,
    files: BTreeMap<FileId, File>,
    /// Number of the running transaction.
    transaction: u64,
    pub(super) clock: Clock,
    /// Metadata blocks in it.
    running: BTreeSet<u64>,
    /// Of those, the ones that joined last.
    recent: [u64; 4],
    /// Blocks of data in it (`data=journal`).
    journalled_data: u64,
    /// Blocks freed by it: free for others once it is committed.
    freed: Vec<Run>,
    /// Pending blocks of all files.
    pending: u64,
    names: Names,
    /// Reading changes the inode.
    atime: bool,
    /// Largest and first reservation window in blocks.
    windows: (u64, u64),
    /// ext4's driver has it.
    mballoc: bool,
    /// ext3 whose driver is ext4's.
    by_ext4: bool,
    /// What ext4's driver keeps for small files.
    for_small: Option<Run>,
    /// Without a journal `fsync` empties the drive's cache.
    flushes: bool,
}

impl Ext {
    pub(super) fn new(spec: &FsSpec) -> Result<Self, FsError> {
        let kind = spec.kind;
        let size = |what, given| FsError::Size { kind, what, given };
        if spec.block != 0
            && (!spec.block.is_power_of_two() || !(1024..=65_536).contains(&spec.block))
        {
            return Err(size("block", u64::from(spec.block)));
        }
        let geometry = Geometry::new(spec);
        if !geometry.numbers_all(spec) {
            let sectors = spec.device_sectors;
            return Err(FsError::DeviceTooLarge { sectors, kind });
        }
        let mut space = Space::new(geometry, geometry.blocks, geometry.per_group);
        let too_small = FsError::DeviceTooSmall {
            sectors: spec.device_sectors,
            kind,
        };
        if geometry.blocks < 1024 || space.free() < 512 {
            return Err(too_small);
        }
        let journal = Journal::new(spec, &geometry, &mut space)?;
        let ext4 = kind == FilesystemKind::Ext4;
        let journalled = journal.exists();
        let mode = match spec.mode {
            _ if !journalled => JournalMode::None,
            None => JournalMode::Ordered,
            Some(mode) => mode,
        };
        let delayed = ext4 && mode != JournalMode::Journal;
        Ok(Self {
            traits: Traits {
                unit: 4096,
                block: geometry.block,
                delayed,
                copy_on_write: false,
                ordered: mode == JournalMode::Ordered,
                data_journal: mode == JournalMode::Journal,
                // jbd's commit interval; ext2 has its superblock and inodes written as often.
                commit_interval: Some(Span::from_secs(5)),
                home_every: None,
                dirty_limit: None,
                dirty_most: None,
                frees_most: None,
                commit_time: None,
                fill_times: None,
                whole_run: (delayed && runs_whole(spec.kernel)).then_some(RUN),
                read_ahead: 0,
                fsync: if kind == FilesystemKind::Ext3 && mode == JournalMode::Ordered {
                    Fsync::EverythingOrdered
                } else {
                    Fsync::OwnData
                },
                prefetch: None,
                page_cache: true,
                direct: true,
                fsync_holds: false,
                punts: Punts::None,
                punts_cached: Punts::All,
                punts_reads: None,
                zero_fill: false,
                // `ext4_io_submit` sets `REQ_SYNC` at most.
                says_flusher: false,
                free_log: frees_log(spec.kernel),
            },
            tree: if ext4 {
                Tree::EXTENTS
            } else {
                Tree::indirect(geometry.block)
            },
            geometry,
            space,
            journal,
            files: BTreeMap::new(),
            transaction: 1,
            clock: Clock::new(grain(spec)),
            running: BTreeSet::new(),
            recent: [u64::MAX; 4],
            journalled_data: 0,
            freed: Vec::new(),
            pending: 0,
            names: Names::new(spec, &geometry),
            atime: spec.atime,
            windows: windows(spec),
            mballoc: ext4 || by_ext4(spec),
            by_ext4: by_ext4(spec),
            for_small: None,
            flushes: flushes(spec),
        })
    }

    pub(super) const fn traits(&self) -> &Traits {
        &self.traits
    }

    /// Puts a block into the running transaction.
    fn join(&mut self, block: u64, charge: &mut Charge) {
        if self.recent.contains(&block) {
            return;
        }
        charge.dirtied += u32::from(self.running.insert(block));
        self.recent.rotate_right(1);
        self.recent[0] = block;
    }

    pub(super) fn open(&mut self, file: FileId, mode: OpenMode) -> Result<Charge, FsError> {
        let mut charge = Charge {
            cpu: Span(cost::HANDLE),
            ..Charge::default()
        };
        match (mode, self.files.contains_key(&file)) {
            (OpenMode::Create, true) => return Ok(self.truncate(file, 0)),
            (OpenMode::Create, false) => {}
            (_, true) => {
                let block = self.geometry.inode_block(self.files[&file].inode);
                charge.reads.push(self.geometry.place(block, 1));
                return Ok(charge);
            }
            (_, false) => return Err(FsError::NoFile),
        }
        // Data files are in the root directory, which is in the first group.
        let inode = self.take_inode(0, &mut charge)?;
        let new = File {
            inode,
            window: self.windows.1,
            stamp: Stamp::made(self.transaction),
            ..File::default()
        };
        self.files.insert(file, new);
        Ok(charge)
    }

    pub(super) fn provide(&mut self, file: FileId, bytes: u64) -> Result<(), FsError> {
        let _ = self.open(file, OpenMode::Create)?;
        let _ = self.reserve(file, 0, bytes)?;
        let mut pieces = Vec::new();
        let placed = self.place(file, 0, bytes, &mut pieces);
        self.forget_transaction();
        placed.map(|_| ())
    }

    pub(super) fn sync(&mut self, file: Option<FileId>, data_only: bool, _: u64) -> Synced {
        let known = file.and_then(|f| self.files.get(&f));
        let (joined, left) = match known {
            Some(file) => file.stamp.last(data_only, self.transaction),
            None => (!self.running.is_empty(), false),
        };
        let mut synced = Synced {
            data: file.is_some(),
            commit: joined,
            log: false,
            under_way: left && self.journal.exists(),
            stages: Vec::new(),
            flush: if self.journal.exists() {
                self.journal.barriers() && !joined
            } else {
                file.is_some() && self.flushes
            },
            flush_shared: false,
            cpu: Span(cost::HANDLE),
        };
        if !self.journal.exists() && joined {
            // ext2 writes changed metadata home; here all of it, not that of the one file alone.
            let homes: Vec<u64> = self.running.iter().copied().collect();
            synced.commit = false;
            synced.stages.push(Stage {
                writes: gather(&self.geometry, &homes),
                ..Stage::default()
            });
            self.forget_transaction();
        }
        synced
    }

    /// jbd: a transaction has a quarter of the journal at the most; who would add more has it committed and waits
    /// (`start_this_handle`).
    #[inline]
    pub(super) fn pressure(&self) -> Pressure {
        let blocks = self.running.len() as u64 + self.journalled_data;
        if self.journal.exists() && blocks >= self.journal.most() {
            Pressure::Full
        } else {
            Pressure::None
        }
    }

    pub(super) fn frees_at_commit(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Frees a run: from the next commit on, as recovery would bring back what pointed to it; at once without a journal.
    fn release(&mut self, run: Run, charge: &mut Charge) {
        for group in self.space.group_of(run.start)..=self.space.group_of(run.end() - 1) {
            let bitmap = self.geometry.block_bitmap(group);
            charge.reads.push(self.geometry.place(bitmap, 1));
            self.join(bitmap, charge);
            self.join(self.geometry.descriptor(group), charge);
        }
        charge.cpu += Span(cost::MAP * run.len.div_ceil(64));
        if self.journal.exists() {
            self.freed.push(run);
        } else {
            self.space.give(run);
        }
    }

    fn forget_transaction(&mut self) {
        self.running.clear();
        self.recent = [u64::MAX; 4];
        self.journalled_data = 0;
        self.transaction += 1;
        for run in self.freed.drain(..) {
            self.space.give(run);
        }
    }

    pub(super) fn commit(&mut self) -> Option<Commit> {
        if self.running.is_empty() && self.journalled_data == 0 && self.freed.is_empty() {
            return None;
        }
        let homes: Vec<u64> = self.running.iter().copied().collect();
        let mut commit = self.journal.commit(
            &self.geometry,
            &homes,
            self.journalled_data,
            !self.freed.is_empty(),
        );
        commit.data_first = self.traits.ordered;
        commit.cpu = Span(cost::COMMIT + cost::COMMIT_BLOCK * homes.len() as u64);
        self.forget_transaction();
        Some(commit)
    }
}

/// From here on there is no driver of ext3's own.
const ALONE: Kernel = Kernel::Linux(4, 3, 0);

/// Whether ext4's driver has it although it is an ext3: there is no other since 4.3, and it allocates in its own way
/// (`mballoc`), but not late (`ext4_fill_super` leaves `delalloc` off for what is mounted as ext3).
fn by_ext4(spec: &FsSpec) -> bool {
    spec.kind == FilesystemKind::Ext3 && spec.kernel >= ALONE
}

/// How finely files have their times: ext4's driver notes ticks of the clock, where inodes have 256 bytes, and the older ones
/// whole seconds (`s_time_gran`). That distributions have no driver of ext2's own when there is none of ext3's is assumed.
fn grain(spec: &FsSpec) -> Span {
    match spec.kind {
        FilesystemKind::Ext2 if spec.kernel < ALONE => Span::from_secs(1),
        FilesystemKind::Ext3 if !by_ext4(spec) => Span::from_secs(1),
        _ => TICK,
    }
}

/// Whether `fsync` ends with a flush where there is no journal: in ext2 since 3.16 (`generic_file_fsync` and its
/// `blkdev_issue_flush`), whatever it was mounted with. ext4 asks for barriers; that it does not flush was seen in 3.6 and 3.10,
/// that it does in 4.4 (`ext4_sync_file`, `issue_flush`), and 3.16 is assumed. `sync` of all flushes in neither.
fn flushes(spec: &FsSpec) -> bool {
    let barriers = spec.kind == FilesystemKind::Ext2 || spec.barriers.unwrap_or(true);
    barriers && spec.kernel >= Kernel::Linux(3, 16, 0)
}

/// Pages of the longest run that ext4 writes whole where it does (`s_max_writeback_mb_bump`: 128 MiB).
const RUN: u64 = 32_768;

/// Whether ext4 writes on to the end of a run of dirty pages: from 2.6.32 ("ext4: Adjust ext4_da_writepages() to write out larger
/// contiguous chunks") to 3.10 ("ext4: restructure writeback path" is of 3.11).
fn runs_whole(kernel: Kernel) -> bool {
    (Kernel::Linux(2, 6, 32)..Kernel::Linux(3, 11, 0)).contains(&kernel)
}

/// Since when jbd2 has its writes kept from being held back ("jbd2: increase the journal IO's priority": Linux 6.8, and 6.1.74 and
/// 6.6.13 of those that are maintained for long, which are meant where no third number is given).
fn frees_log(kernel: Kernel) -> bool {
    match kernel {
        Kernel::Linux(6, 1, patch) => patch == 0 || patch >= 74,
        Kernel::Linux(6, 6, patch) => patch == 0 || patch >= 13,
        _ => kernel >= Kernel::Linux(6, 8, 0) && kernel != Kernel::Windows2000,
    }
}

/// Largest and first window in blocks; ext4's driver has none (`data::lease`).
///
/// ext3: windows of 8 to 1027 blocks since 2.6.10 (`EXT3_DEFAULT_RESERVE_BLOCKS`,
/// `EXT3_MAX_RESERVE_BLOCKS`); ext2: 8 blocks (`EXT2_DEFAULT_PREALLOC_BLOCKS`), windows since 2.6.24.
fn windows(spec: &FsSpec) -> (u64, u64) {
    let since = match spec.kind {
        FilesystemKind::Ext3 => Kernel::Linux(2, 6, 10),
        _ => Kernel::Linux(2, 6, 24),
    };
    match spec.kernel {
        kernel if kernel >= since => (1027, 8),
        _ if spec.kind == FilesystemKind::Ext3 => (1, 1),
        _ => (8, 8),
    }
}

#[cfg(test)]
mod tests;

//! ZFS: records, copy on write, transaction groups, on one vdev or several.
//!
//! What makes `ashift` matter is all here, and each as ZFS does it: blocks take whole units of
//! 2^ashift; metadata is compressed to any number of sectors; since 2.0 the allocator puts a block
//! where the one before ended. So with ashift 9 small metadata covers physical sectors in part, the
//! four uberblocks of 1 KiB do so in every transaction group, and since 2.0 one block of metadata of
//! an odd number of sectors moves every record after it off the disk's 4 KiB sectors (before, records
//! begin at multiples of their size); with ashift 12 nothing ever does. What a partly covered sector
//! costs is the disk's matter. Reading changes the time of access, so transaction groups go on under a
//! reader, too.
//!
//! Left out: compression of data, gang blocks, snapshots, space maps that grow, vdevs of different kinds,
//! the log's own vdev, the ARC (the host's cache takes its part). With RAID-Z each record is remembered by itself, which
//! takes memory in proportion to what is written.
mod place;
mod pool;
mod size;
mod small;
mod tree;
mod txg;

use super::FsError;
use super::lent::{back, lend};
use super::plan::{Charge, FillTimes, Fsync, Piece, Place, Punts, Synced, Traits};
use super::raw::push_sectors;
use super::runs::{Mapped, Runs};
use super::space::Run;
use super::spec::FsSpec;
use crate::block::Watch;
use pool::Pool;
use raidlab_core::op::{FileId, OpenMode};
use raidlab_core::time::Span;
use raidlab_core::units::{KIB, MIB, SECTOR};
use raidlab_experiment::kernel::Kernel;
use small::Small;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use txg::Group;

/// A call into the DMU: a transaction assigned, a buffer held and released. Assumed.
const CALL: u64 = 4_000;
/// ZFS on Linux 0.6.3 (2014) is of the time of this kernel.
pub(crate) const NEW: Kernel = Kernel::Linux(3, 12, 0);
/// A record through the pipeline: zio stages, taskqs, allocation. Assumed.
const RECORD: u64 = 80_000;
/// The same before 0.6.3, whose buffers are mapped page by page (`vmalloc`), of a record of 128 KiB. Fitted on the write of 'ashift 12'
/// of zfs-ashift; that what is more than now goes by the bytes of the record is assumed.
const RECORD_OLD: u64 = 623_000;
/// A KiB through fletcher4, one word of 32 bits at a time: 1.2 GB/s. Assumed.
const CHECKSUM_KIB: u64 = 850;
/// A KiB of data into P, Q and R: sums of bytes, doubled before each addition for Q and for R twice, of words of 64 bits.
/// Assumed: P runs as memory is read, at 2.5 GB/s, Q and R take twice as long each.
const PARITY_KIB: [u64; 3] = [400, 800, 800];
/// Writes up to this go into the log with their data (`zfs_immediate_write_sz`).
const IMMEDIATE: u64 = 32 * KIB;

/// A data file.
#[derive(Clone, Debug, Default)]
struct File {
    /// Number of its dnode.
    object: u64,
    /// Bytes.
    size: u64,
    /// Records, in sectors of the file: each takes whole sectors.
    runs: Runs,
    /// Records that have been written to and have no place yet, by number.
    pending: Runs,
    /// Two copies of the indirect blocks of each level, from level 1; block `i` is at `i` times the
    /// sectors of a full one.
    indirect: Vec<[Runs; 2]>,
    /// The record that was placed last.
    last: Option<u64>,
}

/// The file system.
#[derive(Clone, Debug)]
pub(super) struct Zfs {
    traits: Traits,
    record: u64,
    fan: u64,
    atime: bool,
    pool: Pool,
    files: BTreeMap<FileId, File>,
    next_object: u64,
    /// Sectors of records that wait for a place.
    pending: u64,
    /// Processor time of writing a record beside that of its bytes, in all and for each 128 KiB.
    pipeline: (u64, u64),
    /// Processor time of the parities of a KiB.
    parity: u64,
    small: Small,
    group: Group,
}

impl Zfs {
    pub(super) fn new(spec: &FsSpec) -> Result<Self, FsError> {
        let record = u64::from(spec.record);
        // Records below the unit of allocation are possible, and nothing that anybody would choose.
        let unit = 1_u64 << spec.ashift.clamp(9, 16);
        if !record.is_power_of_two() || !(SECTOR..=16 * MIB).contains(&record) {
            return Err(FsError::Size {
                kind: spec.kind,
                what: "record",
                given: record,
            });
        }
        if record < unit {
            return Err(FsError::SmallRecord { record, unit });
        }
        let pool = Pool::new(spec)?;
        Ok(Self {
            traits: traits(spec),
            record,
            fan: size::fan(spec.kernel),
            pipeline: match spec.kernel < NEW {
                true => (RECORD, RECORD_OLD - RECORD),
                false => (RECORD, 0),
            },
            atime: spec.atime,
            parity: PARITY_KIB[..pool.parities()].iter().sum(),
            pool,
            files: BTreeMap::new(),
            next_object: 8,
            pending: 0,
            small: Small::default(),
            group: Group::default(),
        })
    }

    pub(super) const fn traits(&self) -> &Traits {
        &self.traits
    }

    /// Bytes of a record of a file: the full record, or what the file has when that is less.
    fn bytes_of(&self, size: u64) -> u64 {
        size.min(self.record).max(1).next_multiple_of(SECTOR)
    }

    /// Sectors of a full indirect block: the unit in which they are remembered.
    fn unit(&self) -> u64 {
        self.pool.sectors(size::indirect(self.fan))
    }

    #[inline]
    pub(super) fn reserve(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<Charge, FsError> {
        let end = offset + len;
        let sectors = self.pool.takes(self.bytes_of(end));
        let f = self.files.get_mut(&file).ok_or(FsError::NoFile)?;
        let (mut at, records) = (offset / self.record, end.div_ceil(self.record));
        while at < records {
            let next = f.pending.from(at);
            if let Some(run) = next.filter(|run| run.at == at) {
                at += run.len;
                continue;
            }
            let n = next.map_or(records, |run| run.at.min(records)) - at;
            if !self.pool.has(self.pending + n * sectors) {
                return Err(FsError::NoSpace);
            }
            f.pending.insert(Mapped {
                at,
                dev: at,
                len: n,
            });
            self.pending += n * sectors;
            at += n;
        }
        f.size = f.size.max(end);
        self.group.dnode(f.object);
        self.group.log += len;
        Ok(Charge {
            cpu: Span(CALL),
            ..Charge::default()
        })
    }

    #[inline]
    pub(super) fn find(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Charge {
        let mut charge = Charge {
            cpu: Span(CALL),
            ..Charge::default()
        };
        let Some(mut f) = lend(&mut self.files, file) else {
            return charge;
        };
        if self.atime {
            self.group.dnode(f.object);
        }
        let unit = self.record / SECTOR;
        let end = (offset + len).min(f.size).div_ceil(self.record);
        let mut above = None;
        for record in offset / self.record..end {
            if above != Some(record / self.fan) {
                above = Some(record / self.fan);
                self.path(&mut f, record, &mut charge.reads);
            }
            let (mut at, last) = (record * unit, (record + 1) * unit);
            while let Some(run) = f.runs.from(at).filter(|run| run.at < last) {
                let len = run.len.min(last - run.at);
                let lba = Pool::place(Run {
                    start: run.dev,
                    len,
                });
                push_sectors(out, run.at * SECTOR, lba.lba.0, len);
                charge.cpu += Span(RECORD / 4 + CHECKSUM_KIB * (len * SECTOR / KIB));
                at = run.at + len;
            }
        }
        back(&mut self.files, file, f);
        charge
    }

    /// The indirect blocks above a record, from the dnode down.
    fn path(&self, f: &mut File, record: u64, reads: &mut Vec<Place>) {
        let unit = self.unit();
        for level in (0..f.indirect.len()).rev() {
            let index = record / self.fan.saturating_pow(level as u32 + 1);
            reads.extend(self.pool.read(&mut f.indirect[level], index, unit));
        }
    }

    pub(super) fn open(&mut self, file: FileId, mode: OpenMode) -> Result<Charge, FsError> {
        match (mode, self.files.contains_key(&file)) {
            (OpenMode::Create, true) => return Ok(self.truncate(file, 0)),
            (OpenMode::Create, false) => {}
            (_, true) => return Ok(Charge::default()),
            (_, false) => return Err(FsError::NoFile),
        }
        if !self.pool.has(1) {
            return Err(FsError::NoSpace);
        }
        let object = self.next_object;
        self.next_object += 1;
        self.group.dnode(object);
        self.files.insert(
            file,
            File {
                object,
                ..File::default()
            },
        );
        Ok(Charge {
            cpu: Span(CALL),
            dirtied: 1,
            ..Charge::default()
        })
    }

    /// Record by record, which takes seconds for each TiB: `watch` is asked now and then, and may end it.
    pub(super) fn provide(
        &mut self,
        file: FileId,
        bytes: u64,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, FsError> {
        let _ = self.open(file, OpenMode::Create)?;
        let step = 64 * MIB;
        let mut pieces = Vec::new();
        for at in (0..bytes).step_by(step as usize) {
            let len = step.min(bytes - at);
            let _ = self.reserve(file, at, len)?;
            let _ = self.place(file, at, len, &mut pieces)?;
            pieces.clear();
            if watch().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let _ = self.commit();
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn truncate(&mut self, file: FileId, bytes: u64) -> Charge {
        let Some(f) = self.files.get_mut(&file) else {
            return Charge::default();
        };
        let keep = bytes.div_ceil(self.record);
        let mut freed = Vec::new();
        f.pending.carve(keep, u64::MAX, &mut freed);
        let unit = self.pool.takes(f.size.min(self.record).max(1));
        let waiting: u64 = freed.drain(..).map(|run| run.len * unit).sum();
        self.pending -= waiting.min(self.pending);
        f.runs
            .carve(keep * (self.record / SECTOR), u64::MAX, &mut freed);
        let mut below = keep;
        let step = self.pool.sectors(size::indirect(self.fan));
        for level in &mut f.indirect {
            below = below.div_ceil(self.fan);
            for copy in level {
                copy.carve(below * step, u64::MAX, &mut freed);
            }
        }
        let runs = freed.len() as u64;
        freed.drain(..).for_each(|run| self.pool.free(run));
        let was = f.size;
        f.size = was.min(bytes);
        f.last = None;
        self.group.dnode(f.object);
        self.group.forget(file, keep, self.fan);
        let above = was.div_ceil(self.record).div_ceil(self.fan) - keep / self.fan;
        Charge {
            cpu: Span(CALL + 100 * runs),
            dirtied: 1,
            frees: if was > bytes {
                above * size::indirect_raw(self.fan)
            } else {
                0
            },
            ..Charge::default()
        }
    }

    pub(super) fn remove(&mut self, file: FileId) -> Charge {
        let mut charge = self.truncate(file, 0);
        if self.files.remove(&file).is_some() {
            // An object has at least one block, and that block is taken to have one above it.
            charge.frees = charge.frees.max(size::indirect_raw(self.fan));
        }
        charge
    }

    pub(super) fn sync(&mut self, file: Option<FileId>, _: bool, dirty: u64) -> Synced {
        let (data, names) = (self.group.log, self.group.log_names);
        if data + names == 0 {
            return Synced::default();
        }
        self.group.log = if file.is_some() {
            data.saturating_sub(dirty)
        } else {
            0
        };
        self.group.log_names = 0;
        // Small writes go into the log whole; large ones to their place, and the log points there.
        let inline = file.is_some() && dirty <= IMMEDIATE;
        let bytes = names + if inline { dirty } else { SECTOR };
        Synced {
            data: file.is_some() && !inline,
            // The disks empty their buffers once for all blocks (`zil_commit_writer`).
            stages: self.log(bytes),
            flush: true,
            cpu: Span(2 * CALL + CHECKSUM_KIB * bytes.div_ceil(KIB)),
            ..Synced::default()
        }
    }
}

/// The eras: the write throttle that aims at a second for a group gave way in 0.6.3 (2014, the time
/// of 3.12) to fixed amounts; prefetch reaches 256 records ahead (`zfetch_block_cap`), since 0.7 (2017, 4.13)
/// 8 MiB (`zfetch_max_distance`). That since 2.1.6 it begins with 4 MiB and comes to 64 while records come too
/// late is left out (docs/validation/zfs.md, "Reading as ZFS does, tried"). Of the releases before 0.6.3 it is
/// taken to be of no use (fitted on both rows of zfs-ashift: read at half the rate of one disk, which leaves
/// no room for a second record on its way).
fn traits(spec: &FsSpec) -> Traits {
    let old = spec.kernel < NEW;
    let far = spec.kernel < Kernel::Linux(4, 13, 0);
    Traits {
        unit: spec.record,
        block: 1 << spec.ashift,
        delayed: true,
        copy_on_write: true,
        ordered: true,
        data_journal: false,
        commit_interval: Some(Span::from_secs(5)),
        home_every: None,
        // zfs_write_limit_shift 3; zfs_dirty_data_max 10 %, of which zfs_dirty_data_sync is 64 MiB and, since 0.8 (2019, the
        // time of 5.1), zfs_dirty_data_sync_percent 20 %.
        dirty_limit: Some(if old {
            (128, u64::MAX)
        } else if spec.kernel < Kernel::ZFS_0_8 {
            (102, 64 * MIB)
        } else {
            (20, u64::MAX)
        }),
        dirty_most: Some(if old { 128 } else { 102 }),
        frees_most: size::frees_most(spec.kernel),
        commit_time: old.then_some(Span::from_secs(1)),
        fill_times: Some(FillTimes {
            // `zfs_resilver_min_time_ms`.
            least: Span::from_secs(3),
            // `zfs_vdev_async_write_active_min_dirty_percent`, of the time of 0.6.3 (that it counted from then on is from memory).
            dirty_percent: (!old).then_some(30),
            // `zfs_txg_timeout`, for `dsl_scan_check_suspend` of 0.7 and, since 0.8, `scan_io_queue_check_suspend`.
            most: Span::from_secs(5),
            of_commit: spec.kernel >= Kernel::ZFS_0_8,
        }),
        whole_run: None,
        read_ahead: 0,
        fsync: Fsync::Log,
        prefetch: Some(if old {
            0
        } else if far {
            256 * u64::from(spec.record)
        } else {
            8 * MIB
        }),
        page_cache: false,
        direct: false,
        fsync_holds: false,
        punts: Punts::None,
        punts_cached: Punts::None,
        punts_reads: None,
        zero_fill: false,
        says_flusher: false,
        free_log: true,
    }
}

/// Indirect blocks to be written: file, level, index.
type Dirty = BTreeSet<(FileId, u8, u64)>;

#[cfg(test)]
mod tests;

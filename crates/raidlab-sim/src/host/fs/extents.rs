//! xfs, btrfs and NTFS in a simple form: extents from allocation groups, and a log or copied trees.
//!
//! Modelled: where data goes and how long its runs are, delayed allocation and preallocation, a log
//! that is written round and round with flushes (xfs, NTFS), copy on write with duplicated metadata
//! and superblocks (btrfs), records of files and blocks of directories with the blocks that a call
//! touches. Left out: the shape of the trees (a directory is blocks of names, found by hash; of those
//! of extents and checksums only the leaves count), free space trees beyond one block a group, nodes
//! that are written before their transaction ends and then again, growing metadata chunks, checksums'
//! own reads but after it was mounted anew ([cold]), compression, snapshots, reflinks, real-time volumes, NTFS compression, sparse files and
//! short names, and that each new directory of xfs goes to the next group, with its files
//! (`xfs_ialloc_next_ag`): here all are in the first. btrfs nodes are read at a fixed place of the metadata chunk although they move.
mod cold;
mod commit;
mod cow;
mod files;
mod held;
mod kind;
mod lease;
mod leaves;
mod logged;
mod small;
mod tree_log;
mod used;

use super::FsError;
use super::lent::{back, lend};
use super::plan::{Charge, Piece, Place, Pressure, Traits};
use super::raw::push_sectors;
use super::runs::{Mapped, Runs};
use super::space::{Run, Shape, Space};
use super::spec::FsSpec;
use super::stamp::{Clock, Stamp};
use cold::Cold;
use commit::Log;
pub(crate) use cow::metadata_chunk;
use cow::{Reserve, Spots};
use held::Held;
use kind::Kind;
use lease::Kept;
use logged::Logged;
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::{Lba, MIB, SECTOR};
use small::Small;
use std::collections::{BTreeMap, BTreeSet};
use tree_log::{Fresh, TreeLog};
use used::Closed;

/// Blocks at the start of a group.
#[derive(Clone, Copy, Debug)]
struct Heads(u64);

impl Shape for Heads {
    fn prefix(&self, _: u64) -> u64 {
        self.0
    }
}

/// A data file.
#[derive(Clone, Debug, Default)]
struct File {
    /// Number of its record.
    record: u64,
    runs: Runs,
    /// Blocks written to that have no place yet.
    pending: Runs,
    kept: Kept,
    /// The transactions that have its record.
    stamp: Stamp,
    /// What was written in the running transaction and is in no log of btrfs yet.
    fresh: Fresh,
    spots: Spots,
}

/// The file system.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    traits: Traits,
    kind: Kind,
    space: Space<Heads>,
    files: BTreeMap<FileId, File>,
    small: Small,
    log: Log,
    /// btrfs: where its superblocks are.
    supers: Vec<Place>,
    /// Number of the running transaction, and the blocks in it.
    transaction: u64,
    pub(super) clock: Clock,
    running: BTreeSet<u64>,
    /// What goes into the log.
    logged: Logged,
    /// What `fsync` of btrfs has written since the transaction began.
    tree: TreeLog,
    /// Blocks of data placed in this transaction.
    placed: u64,
    /// And the extents they are; items of files that were added side by side for them.
    extents: u64,
    items: u64,
    /// Data files of btrfs whose extents the transaction changed.
    spotted: Vec<FileId>,
    held: Held,
    freed: Vec<Run>,
    closed: Closed,
    cold: Cold,
    pending: u64,
    reserve: Reserve,
}

impl Extents {
    pub(super) fn new(spec: &FsSpec) -> Result<Self, FsError> {
        let size = |what, given| FsError::Size {
            kind: spec.kind,
            what,
            given,
        };
        if spec.block != 0
            && (!spec.block.is_power_of_two() || !(512..=65_536).contains(&spec.block))
        {
            return Err(size("block", u64::from(spec.block)));
        }
        if spec.device_bytes() < 300 * MIB {
            return Err(FsError::DeviceTooSmall {
                sectors: spec.device_sectors,
                kind: spec.kind,
            });
        }
        let kind = Kind::new(spec);
        let blocks = spec.device_bytes() / kind.block;
        if spec.journal > 0 && (kind.log < 16 || kind.log > blocks / 4) {
            return Err(size("journal", spec.journal));
        }
        let mut space = match &spec.spread {
            Some(spread) if kind.cow => {
                // Superblocks and metadata are in front of the first chunk of data.
                let of = |(at, row): &(u64, u64)| (at / kind.block, row / kind.block);
                let chunks = spread.chunks.iter().map(of);
                Space::uneven(
                    Heads(0),
                    blocks,
                    [(0, 0)].into_iter().chain(chunks).collect(),
                )
            }
            _ => Space::new(Heads(kind.head), blocks, kind.group),
        };
        let too_small = FsError::DeviceTooSmall {
            sectors: spec.device_sectors,
            kind: spec.kind,
        };
        let log = Log::new(&kind, &mut space).ok_or(too_small)?;
        let small = Small::new(&kind, &mut space);
        let mut made = Self {
            traits: kind.traits(spec),
            kind,
            space,
            files: BTreeMap::new(),
            small,
            log,
            supers: commit::supers(spec),
            transaction: 1,
            clock: Clock::new(kind.grain),
            running: BTreeSet::new(),
            logged: kind.logged,
            tree: TreeLog::default(),
            placed: 0,
            extents: 0,
            items: 0,
            spotted: Vec::new(),
            held: Held::new(kind.block, kind.node_bytes()),
            freed: Vec::new(),
            closed: Closed::default(),
            cold: Cold::default(),
            pending: 0,
            reserve: Reserve::default(),
        };
        made.set_reserve();
        Ok(made)
    }

    pub(super) const fn traits(&self) -> &Traits {
        &self.traits
    }

    const fn at(&self, run: Run) -> Place {
        let per = self.kind.block / SECTOR;
        Place {
            lba: Lba(run.start * per),
            sectors: (run.len * per) as u32,
        }
    }

    fn join(&mut self, block: u64, charge: &mut Charge) {
        charge.dirtied += u32::from(self.running.insert(block));
    }

    /// The group's free space changed: one block of its head.
    fn join_group(&mut self, block: u64, charge: &mut Charge) {
        let head = self.space.start_of(self.space.group_of(block)) + 1;
        self.join(head, charge);
        self.logged.run();
    }

    pub(super) fn outdate(&mut self, file: FileId) {
        if let Some(file) = self.files.get_mut(&file) {
            file.stamp.outdate();
        }
    }

    pub(super) fn changes(&self, file: FileId, end: u64) -> bool {
        let known = self.files.get(&file);
        known.is_some_and(|file| file.stamp.changes(self.clock, end))
    }

    #[inline]
    pub(super) fn reserve(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<Charge, FsError> {
        self.promise(file, offset, len, false)
    }

    /// The same, also for a write past the page cache (`direct`).
    #[inline]
    pub(super) fn promise(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        direct: bool,
    ) -> Result<Charge, FsError> {
        let (first, end) = (
            offset / self.kind.block,
            (offset + len).div_ceil(self.kind.block),
        );
        let mut charge = Charge {
            cpu: Span(self.kind.cpu[0]),
            ..Charge::default()
        };
        let f = self.files.get_mut(&file).ok_or(FsError::NoFile)?;
        let (record, joined) = (f.record, f.stamp.joined(false, self.transaction));
        f.stamp.write(self.clock, offset + len, self.transaction);
        if self.kind.cow {
            f.stamp.placed(self.transaction);
        }
        if !joined && f.stamp.joined(false, self.transaction) {
            f.fresh = Fresh::default();
            let block = self.small.record(&self.kind, record);
            self.join(block, &mut charge);
            self.logged.file();
        }
        match direct {
            true => self.keep_no_more(file, end),
            false => self.keep_ahead(file, first, end),
        }
        let delayed = self.delay(file, first, end);
        if delayed == Err(FsError::NoSpace) && self.give_up_leases() {
            self.delay(file, first, end)?;
        } else {
            delayed?;
        }
        if !self.traits.delayed {
            self.allocate(file, first, end, &mut charge)?;
        }
        Ok(charge)
    }

    /// Remembers which blocks are to get places: those without one, or all when overwriting goes to
    /// new places.
    fn delay(&mut self, file: FileId, first: u64, end: u64) -> Result<(), FsError> {
        let Some(f) = self.files.get_mut(&file) else {
            return Err(FsError::NoFile);
        };
        let mut at = first;
        while at < end {
            let placed = f.runs.from(at).filter(|_| !self.kind.cow);
            let pending = f.pending.from(at);
            let both = [placed, pending];
            if let Some(run) = both.iter().flatten().find(|run| run.at == at) {
                at += run.len;
                continue;
            }
            let next = both.iter().flatten().map(|run| run.at).min();
            let to = next.map_or(end, |next| next.min(end));
            if self.pending + (to - at) > self.space.free() {
                return Err(FsError::NoSpace);
            }
            self.pending += to - at;
            if self.kind.cow {
                let before = at.checked_sub(1).and_then(|at| f.pending.holding(at));
                let replaces = before.is_none() && f.runs.holding(at).is_some();
                f.fresh.extents += u64::from(replaces);
                f.fresh.blocks += to - at;
            }
            let runs = f.pending.len();
            f.pending.insert(Mapped {
                at,
                dev: at,
                len: to - at,
            });
            self.reserve.change(runs, f.pending.len());
            at = to;
        }
        Ok(())
    }

    /// Gives places to the pending blocks of a stretch, and where btrfs has rows to all that follow these side by side.
    fn allocate(
        &mut self,
        id: FileId,
        first: u64,
        end: u64,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let Some(mut f) = lend(&mut self.files, id) else {
            return Err(FsError::NoFile);
        };
        let mut done = Ok(());
        while let Some(run) = f.pending.from(first).filter(|run| run.at < end) {
            // All that waits side by side gets places at once (`find_lock_delalloc_range`), or each part would begin a row of its own.
            // Without rows parts follow each other, and it is left at that: with all at once the space that overwriting needs was
            // further from what was seen.
            let want = match self.space.has_rows() {
                true => run.len,
                false => run.len.min(end - run.at),
            };
            let Some(got) = self.extend(&mut f, run.at, want, charge) else {
                done = Err(FsError::NoSpace);
                break;
            };
            let (mut old, runs) = (Vec::new(), f.pending.len());
            f.pending.carve(run.at, run.at + got.len, &mut old);
            self.reserve.change(runs, f.pending.len());
            old.clear();
            f.runs.carve(run.at, run.at + got.len, &mut old);
            for run in old {
                self.release(run, charge);
            }
            f.runs.insert(Mapped {
                at: run.at,
                dev: got.start,
                len: got.len,
            });
            self.pending -= got.len;
            self.placed_in(id, &mut f, run.at, got);
            if !f.stamp.joined(false, self.transaction) {
                let block = self.small.record(&self.kind, f.record);
                self.join(block, charge);
                self.logged.file();
            }
            f.stamp.placed(self.transaction);
        }
        back(&mut self.files, id, f);
        done
    }

    #[inline]
    pub(super) const fn pressure(&self) -> Pressure {
        if self.reserve.is_full() {
            return Pressure::Wait;
        }
        self.logged.pressure()
    }

    /// What overwrites and has no place yet frees what it replaces, too.
    pub(super) fn frees_at_commit(&self) -> bool {
        !self.freed.is_empty() || (self.kind.cow && self.pending > 0)
    }

    /// Frees a run from the next commit on.
    fn release(&mut self, run: Run, charge: &mut Charge) {
        self.join_group(run.start, charge);
        match self.kind.cow {
            true => self.held.release(run, self.transaction, &mut self.freed),
            false => self.freed.push(run),
        }
    }

    #[inline]
    pub(super) fn place(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Result<Charge, FsError> {
        let mut charge = Charge::default();
        if self.traits.delayed {
            let (first, end) = (
                offset / self.kind.block,
                (offset + len).div_ceil(self.kind.block),
            );
            self.allocate(file, first, end, &mut charge)?;
        }
        let found = self.find(file, offset, len, out);
        charge.cpu += found.cpu;
        Ok(charge)
    }

    #[inline]
    pub(super) fn find(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Charge {
        let Some(f) = self.files.get_mut(&file) else {
            return Charge::default();
        };
        let before = out.len();
        let per = self.kind.block / SECTOR;
        let (from, until) = (offset / SECTOR, (offset + len).div_ceil(SECTOR));
        let (mut at, end) = (
            offset / self.kind.block,
            (offset + len).div_ceil(self.kind.block),
        );
        while let Some(run) = f.runs.from(at).filter(|run| run.at < end) {
            let first = run.at * per;
            let (head, tail) = (first.max(from), (first + run.len * per).min(until));
            if head < tail {
                push_sectors(
                    out,
                    head * SECTOR,
                    run.dev * per + head - first,
                    tail - head,
                );
            }
            at = run.at + run.len;
        }
        let mut charge = Charge {
            cpu: Span(self.kind.cpu[0] / 4),
            ..Charge::default()
        };
        if !self.cold.is_empty() {
            self.checksums_of(&out[before..], &mut charge.reads);
        }
        charge
    }
}

#[cfg(test)]
mod tests;

//! Transaction groups: what one rewrites, in which order.
use super::super::lent::{back, lend};
use super::super::plan::{Commit, Place, Stage};
use super::super::runs::{Mapped, Runs};
use super::super::space::Run;
use super::pool::{Pool, owner};
use super::{CALL, CHECKSUM_KIB, Dirty, RECORD, Zfs, size};
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::{KIB, SECTOR};
use std::collections::BTreeSet;

/// Passes over the pool's own objects until nothing changes any more (`spa_sync`): the space maps
/// that the first pass changed are written by the second, and what that changed by the third, both
/// in place (`SYNC_PASS_REWRITE`). Assumed; three to five are seen.
const PASSES: usize = 3;
/// Copies of what the pool itself owns.
const POOL_COPIES: usize = 3;
/// Largest block of the intent log (`SPA_MAXBLOCKSIZE` of its time), and the smallest.
const LOG_BLOCK: (u64, u64) = (4 * KIB, 128 * KIB);
/// Adjacent writes become one up to this (`zfs_vdev_aggregation_limit`).
const AGGREGATE: u64 = 128 * KIB / SECTOR;

/// Numbers of objects that are not files, for their allocators: directories from the first on, the intent log, the pool's own
/// objects, space maps.
const DIRECTORIES: u64 = 1 << 40;
const LOG: u64 = 1 << 41;
const POOL: u64 = 1 << 42;
const MAPS: u64 = 1 << 43;

/// The open transaction group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    number: u64,
    /// Indirect blocks of data files.
    pub dirty: Dirty,
    /// Blocks of dnodes.
    dnodes: BTreeSet<u64>,
    /// Leaves of directories.
    pub leaves: BTreeSet<(u32, u64)>,
    /// Small files whose data has no place yet, with their bytes.
    pub contents: Vec<(u32, u64)>,
    /// Metadata that got its place already.
    pub writes: Vec<Place>,
    /// Bytes of calls that an intent log would have to hold: of data, and of names.
    pub log: u64,
    pub log_names: u64,
    /// Blocks of the log: free when the group is on the device.
    log_blocks: Vec<Run>,
    /// Two copies of the blocks of dnodes, as those of indirect blocks.
    places: [Runs; 2],
    /// What every group rewrites of the pool's own objects: free as soon as the next one has.
    fixed: Vec<Run>,
    /// And what every one does that changes a file, above the dnodes.
    above: Vec<Run>,
    /// The pool's own objects change, whatever else does.
    own: bool,
}

impl Group {
    /// A dnode changes.
    #[inline]
    pub(super) fn dnode(&mut self, object: u64) {
        self.dnodes.insert(object / size::DNODES);
    }

    /// Indirect blocks past the first `keep` records of a file are gone.
    pub(super) fn forget(&mut self, file: FileId, keep: u64, fan: u64) {
        self.dirty.retain(|&(id, level, index)| {
            id != file || index * fan.saturating_pow(u32::from(level)) < keep
        });
    }

    /// Where what the pool itself owns lies, and both copies of the blocks of dnodes.
    pub(super) fn all(&self) -> (impl Iterator<Item = &Run>, &[Runs; 2]) {
        (self.above.iter().chain(&self.fixed), &self.places)
    }

    /// Both copies of the blocks of dnodes.
    pub(super) const fn dnode_places(&mut self) -> &mut [Runs; 2] {
        &mut self.places
    }
}

impl Zfs {
    /// Ends the group: what is to be written after the data, which was placed before.
    pub(in super::super) fn commit(&mut self) -> Option<Commit> {
        let changed = !(self.group.dnodes.is_empty() && self.group.leaves.is_empty());
        if !changed && !self.group.own {
            return None;
        }
        self.group.own = false;
        self.file_metadata();
        self.contents();
        self.directories();
        self.dnode_blocks();
        for run in std::mem::take(&mut self.group.log_blocks) {
            self.pool.free(run);
        }
        let mut before = Vec::new();
        if changed {
            before = std::mem::take(&mut self.group.above);
        }
        before.append(&mut self.group.fixed);
        if changed {
            self.many(owner(0, 2), size::above_dnodes(), 2);
            self.group.above = std::mem::take(&mut self.group.fixed);
        }
        let mut stages = vec![stage(std::mem::take(&mut self.group.writes))];
        self.many(owner(POOL, 0), size::pool(), POOL_COPIES);
        before.into_iter().for_each(|run| self.pool.free(run));
        let own = std::mem::take(&mut self.group.writes);
        let maps = self.pool.touched();
        self.many(
            owner(MAPS, 0),
            (0..maps).map(|_| size::SPACE_MAP),
            POOL_COPIES,
        );
        let again: Vec<Place> = own.iter().chain(&self.group.writes).copied().collect();
        self.group.writes.clear();
        stages.push(stage(own));
        // New blocks of the pool's own objects are written by the first pass, which resilvers at its end (`dsl_pool_sync`,
        // `dsl_scan_sync`).
        stages.extend((1..PASSES).map(|pass| Stage {
            fills_before: pass == 1,
            ..stage(again.clone())
        }));
        self.group.number += 1;
        stages.push(Stage {
            flush_before: true,
            writes: self.pool.uberblocks(self.group.number),
            durable: true,
            ..Stage::default()
        });
        self.pool.end();
        self.group.dnodes.clear();
        self.group.leaves.clear();
        (self.group.log, self.group.log_names) = (0, 0);
        let sectors = |s: &Stage| s.writes.iter().map(|p| u64::from(p.sectors)).sum::<u64>();
        let kib: u64 = stages.iter().map(sectors).sum::<u64>() * SECTOR / KIB;
        let writes = stages.iter().map(|s| s.writes.len() as u64).sum::<u64>();
        Some(Commit {
            data_first: true,
            cpu: Span(CALL * 10 + RECORD * writes + CHECKSUM_KIB * kib),
            stages,
            later: Vec::new(),
            home: false,
        })
    }

    /// A resilver goes on: groups write the pool's own objects though nothing else has changed. Seen of 2.1.11: some 60 writes and 280 KiB on
    /// each disk of a mirror; which object changes was not looked at.
    pub(in super::super) const fn resilvers(&mut self) {
        self.group.own = true;
    }

    /// Indirect blocks of data files that have no new place yet, level by level.
    fn file_metadata(&mut self) {
        while let Some((id, level, index)) = self.group.dirty.pop_first() {
            let Some(mut f) = lend(&mut self.files, id) else {
                continue;
            };
            // The slop keeps room for metadata; without any the old place stays.
            let _ = self.indirect(id, &mut f, level, index);
            f.last = None;
            back(&mut self.files, id, f);
        }
    }

    /// Data of small files.
    fn contents(&mut self) {
        for (index, bytes) in std::mem::take(&mut self.group.contents) {
            let mut left = bytes;
            while left > 0 {
                let n = left.min(self.record);
                left -= n;
                if let Some(run) =
                    self.pool
                        .allocate(owner(u64::from(index), 0), n.next_multiple_of(SECTOR), 0)
                    && self.small.lies(index, run)
                {
                    self.group.writes.push(Pool::place(run));
                }
            }
        }
    }

    fn directories(&mut self) {
        let leaves = std::mem::take(&mut self.group.leaves);
        for (directory, leaf) in &leaves {
            let Some((bytes, unit)) = self.small.leaf_bytes(*directory) else {
                continue;
            };
            let unit = self.pool.sectors(unit);
            for copy in 0..2 {
                let run =
                    self.pool
                        .allocate(owner(DIRECTORIES + u64::from(*directory), 0), bytes, copy);
                let old = self.small.leaf_moves(*directory, *leaf, unit, copy, run);
                old.into_iter().for_each(|run| self.pool.free(run));
                self.group.writes.extend(run.map(Pool::place));
            }
        }
        self.group.leaves = leaves;
    }

    /// Blocks of dnodes and the first indirect level above them.
    fn dnode_blocks(&mut self) {
        let unit = self.pool.sectors(size::dnodes(size::DNODES));
        let blocks = std::mem::take(&mut self.group.dnodes);
        for block in &blocks {
            let used = (self.next_object - (block * size::DNODES).min(self.next_object))
                .clamp(1, size::DNODES);
            for copy in 0..2 {
                let mut old = Vec::new();
                let places = &mut self.group.places[copy];
                places.carve(block * unit, (block + 1) * unit, &mut old);
                if let Some(run) = self.pool.allocate(owner(0, 0), size::dnodes(used), copy) {
                    places.insert(Mapped {
                        at: block * unit,
                        dev: run.start,
                        len: run.len,
                    });
                    self.group.writes.push(Pool::place(run));
                }
                old.into_iter().for_each(|run| self.pool.free(run));
            }
        }
        let above: BTreeSet<u64> = blocks.iter().map(|block| block / self.fan).collect();
        let used = (self.next_object / size::DNODES + 1).min(self.fan);
        self.many(owner(0, 1), above.iter().map(|_| size::indirect(used)), 2);
        self.group.dnodes = blocks;
    }

    /// Writes blocks that every group rewrites, each of another object or level.
    fn many(&mut self, first: u64, sizes: impl Iterator<Item = u64>, copies: usize) {
        for (number, bytes) in (0..).zip(sizes) {
            for copy in 0..copies {
                if let Some(run) = self.pool.allocate(first + number, bytes, copy) {
                    self.group.fixed.push(run);
                    self.group.writes.push(Pool::place(run));
                }
            }
        }
    }

    /// Writes so many bytes into the intent log.
    pub(super) fn log(&mut self, mut bytes: u64) -> Vec<Stage> {
        let mut writes = Vec::new();
        while bytes > 0 {
            // The header and the pointer to the next block.
            let n = (bytes + 192)
                .next_power_of_two()
                .clamp(LOG_BLOCK.0, LOG_BLOCK.1);
            bytes = bytes.saturating_sub(n - 192);
            let Some(run) = self.pool.allocate(owner(LOG, 0), n, 0) else {
                break;
            };
            self.group.log_blocks.push(run);
            writes.push(Pool::place(run));
        }
        vec![stage(writes)]
    }
}

/// Writes that may go together; adjacent ones as one.
fn stage(mut writes: Vec<Place>) -> Stage {
    writes.sort_unstable();
    let mut joined: Vec<Place> = Vec::with_capacity(writes.len());
    for place in writes {
        match joined.last_mut() {
            Some(last)
                if last.lba.0 + u64::from(last.sectors) == place.lba.0
                    && u64::from(last.sectors + place.sectors) <= AGGREGATE =>
            {
                last.sectors += place.sectors;
            }
            _ => joined.push(place),
        }
    }
    Stage {
        writes: joined,
        ..Stage::default()
    }
}

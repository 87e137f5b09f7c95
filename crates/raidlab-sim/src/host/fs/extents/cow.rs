//! What copy on write makes of changes to files: which leaves a transaction of btrfs copies, and how much may wait for a place.
use super::held::{self, IN_TREE};
use super::kind::Kind;
use super::tree_log::{CHECKSUM, EXTENT, HEADER};
use super::{Extents, File};
use crate::host::fs::space::Run;
use raidlab_core::op::FileId;
use raidlab_core::units::{GIB, MIB};
pub(crate) use raidlab_layout::btrfs::metadata_chunk;

/// Levels that a tree may have (`BTRFS_MAX_LEVEL`); a change may split the node of each (`btrfs_calc_insert_metadata_size`).
const LEVELS: u64 = 8;
/// What is kept back of the room for metadata at the least (`btrfs_update_global_block_rsv`), as seen on Linux 6.18.
const GLOBAL: u64 = 11 * MIB / 2;
/// Part of the space without a use that may be promised to metadata beyond its own (`can_overcommit`, for whoever can wait).
const PROMISED: u64 = 8;

/// Where the running transaction changed the extents of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spots {
    transaction: u64,
    /// Places that do not follow each other in the file, and where the last one ends.
    places: u64,
    end: u64,
}

/// Stretches of data that wait for a place. Room for the nodes that each may change is kept until it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reserve {
    /// How many wait, and how many of these did when the last transaction ended.
    runs: u64,
    left: u64,
    /// How many more than those may; 0: any number.
    most: u64,
}

impl Reserve {
    /// Of one file they were so many, and are so many.
    pub(super) fn change(&mut self, before: usize, after: usize) {
        self.runs = self.runs + after as u64 - before as u64;
        self.left = self.left.min(self.runs);
    }

    /// There is no room for more before the transaction has ended, and all that waited when it was to end has a place.
    pub(super) const fn is_full(&self) -> bool {
        self.most > 0 && self.runs - self.left >= self.most
    }
}

/// Bytes of a chunk of data: 1 GiB, and no more than a tenth of the device.
pub(super) fn data_chunk(device: u64) -> u64 {
    GIB.min(device / 10)
}

impl Kind {
    /// Bytes of a node.
    pub(super) const fn node_bytes(&self) -> u64 {
        self.node * self.block
    }
}

impl Extents {
    /// Blocks of a file from `at` on have a place.
    pub(super) fn placed_in(&mut self, id: FileId, f: &mut File, at: u64, run: Run) {
        self.placed += run.len;
        self.extents += 1;
        if !self.kind.cow {
            return;
        }
        self.held.add(run);
        if f.spots.transaction != self.transaction {
            f.spots = Spots {
                transaction: self.transaction,
                ..Spots::default()
            };
            self.spotted.push(id);
        }
        if f.spots.places > 0 && f.spots.end == at {
            self.items += 1;
        } else {
            f.spots.places += 1;
        }
        f.spots.end = at + run.len;
    }

    /// Leaves that the running transaction copies for data: items and checksums that are new lie side by side, others anywhere.
    pub(super) fn leaves_of_data(&self) -> u64 {
        let (node, block) = (self.kind.node_bytes(), self.kind.block);
        let room = node - HEADER;
        let sums = (self.placed * CHECKSUM * block / 4096).div_ceil(room);
        let added = (self.extents * IN_TREE + self.items * EXTENT).div_ceil(room);
        let files = self.spotted.iter().filter_map(|id| self.files.get(id));
        let changed = files.map(|f| {
            let leaves = held::leaves(f.runs.len() as u64 * EXTENT, node);
            held::touched(leaves, f.spots.places)
        });
        sums + added + changed.sum::<u64>() + self.held.touched(node)
    }

    /// How many stretches may wait for a place in the next transaction (`btrfs_reserve_metadata_bytes`): each has room kept for the
    /// nodes of a path, all of them split, of what metadata has to itself and may be promised of the rest.
    pub(super) fn set_reserve(&mut self) {
        if self.kind.node == 0 {
            return;
        }
        let (node, block) = (self.kind.node_bytes(), self.kind.block);
        let device = self.space.blocks() * block;
        let chunk = self.kind.log / self.kind.copies * block;
        let runs = self
            .files
            .values()
            .map(|f| f.runs.len() as u64)
            .sum::<u64>();
        let trees = self.held.leaves(node, block);
        let used = (libm::ceil(held::leaves(runs * EXTENT, node)) as u64 + trees) * node;
        let data = (self.space.blocks() - self.space.free() - self.kind.log) * block;
        // What is left of the disks, and not of addresses.
        let data = data.next_multiple_of(self.kind.data_chunk);
        let (raw, of) = self.kind.raw;
        let rest = device.saturating_sub(data + self.kind.log * block) * raw / of;
        // What is promised would be written twice.
        let room = chunk.saturating_sub(used + GLOBAL.max(trees * node)) + rest / 2 / PROMISED;
        self.reserve.most = (room / (2 * LEVELS * node)).max(1);
        self.reserve.left = self.reserve.runs;
    }
}

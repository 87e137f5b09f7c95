//! Checksums of btrfs that are not in memory, for the file system has been mounted anew since their data was written.
//!
//! Whoever reads data needs the leaf of the tree of checksums that has those of it first (`file-item.c:btrfs_lookup_bio_sums`), and waits
//! for it. What is written meanwhile has its checksums in memory.
//!
//! Left out: the nodes above, and trees other than that of checksums.
use super::Extents;
use super::tree_log::CHECKSUM;
use crate::block::joined;
use crate::host::fs::plan::{Piece, Place};
use crate::host::fs::space::Run;
use raidlab_core::units::{KIB, SECTOR};

/// Reads of more sectors than these (`PAGE_SIZE * 8`) have so many bytes of leaves that follow read with the one that they need
/// (`reada_for_search`).
const LARGE: u32 = (32 * KIB / SECTOR) as u32;
const AHEAD: u64 = 64 * KIB;
/// Bytes of a node beside items (`btrfs_header`), and of the item that checksums are in (`btrfs_item`).
const BESIDE: u64 = 101 + 25;

/// What lay there when it was mounted anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Cold {
    /// Sectors of data, each from its first to the one after its last; ascending and apart.
    old: Vec<(u64, u64)>,
    /// Leaves of its trees.
    leaves: u64,
}

impl Cold {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    fn has(&self, sector: u64) -> bool {
        let after = self.old.partition_point(|old| old.1 <= sector);
        self.old.get(after).is_some_and(|old| old.0 <= sector)
    }
}

impl Extents {
    /// It is mounted anew: nothing of what lies there is in memory. Whether that has checksums.
    pub(in super::super) fn mount_anew(&mut self) -> bool {
        if !self.kind.cow {
            return false;
        }
        let per = self.kind.block / SECTOR;
        let runs = self.files.values().flat_map(|file| file.runs.iter());
        let old = runs.map(|run| (run.dev * per, (run.dev + run.len) * per));
        self.cold = Cold {
            old: joined(old.collect()),
            leaves: self.nodes().max(1),
        };
        !self.cold.is_empty()
    }

    /// Adds the leaves that have the checksums of what lies in these pieces.
    pub(super) fn checksums_of(&self, pieces: &[Piece], reads: &mut Vec<Place>) {
        let Some(trees) = self.log.first() else {
            return;
        };
        let node = self.kind.node_bytes();
        let covers = (node - BESIDE) / CHECKSUM * (self.kind.block / SECTOR);
        let room = (trees.len / self.kind.node).clamp(1, self.cold.leaves);
        for piece in pieces {
            let (from, end) = (piece.lba.0, piece.lba.0 + u64::from(piece.sectors));
            for leaf in from / covers..=(end - 1) / covers {
                if !self.cold.has(from.max(leaf * covers)) {
                    continue;
                }
                let which = leaf % room;
                let ahead = match piece.sectors > LARGE {
                    true => (AHEAD / node).min(room - 1 - which),
                    false => 0,
                };
                let place = self.at(Run {
                    start: trees.start + which * self.kind.node,
                    len: (1 + ahead) * self.kind.node,
                });
                if reads.last() != Some(&place) {
                    reads.push(place);
                }
            }
        }
    }
}

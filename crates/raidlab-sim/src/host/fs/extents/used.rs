//! What of the addresses of btrfs is in use, as whoever replaces a member sees it.
use super::Extents;
use super::held::leaves;
use super::tree_log::EXTENT;
use crate::block::{Extent, Watch};
use crate::host::fs::space::Run;
use raidlab_core::units::SECTOR;

impl Extents {
    /// Nodes of the trees that data files have: items of their extents, and what says that these are in use, with checksums.
    pub(super) fn nodes(&self) -> u64 {
        let (node, block) = (self.kind.node_bytes(), self.kind.block);
        let runs = self
            .files
            .values()
            .map(|f| f.runs.len() as u64)
            .sum::<u64>();
        libm::ceil(leaves(runs * EXTENT, node)) as u64 + self.held.leaves(node, block)
    }

    /// See [`FileSystem::blocks`](super::super::FileSystem::blocks). Nodes are told as if they lay side by side.
    pub(in super::super) fn blocks(&self, watch: Watch<'_>) -> Option<Vec<Extent>> {
        if !self.kind.cow {
            return Some(Vec::new());
        }
        let per = self.kind.block / SECTOR;
        let extent = |start: u64, len: u64| Extent {
            start: start * per,
            len: len * per,
            unit: per as u32,
            walked: false,
        };
        let trees = self.log.first().map(|run| {
            let blocks = self.nodes() * self.kind.node;
            extent(run.start, blocks.min(run.len))
        });
        let mut out: Vec<Extent> = trees.into_iter().collect();
        for file in self.files.values() {
            if watch().is_break() {
                return None;
            }
            out.extend(file.runs.iter().map(|run| extent(run.dev, run.len)));
        }
        Some(out)
    }

    /// See [`FileSystem::close`](super::super::FileSystem::close).
    pub(in super::super) fn close(&mut self, sectors: Option<(u64, u64)>) {
        let per = self.kind.block / SECTOR;
        let blocks = sectors.map(|(from, end)| (from / per, (end / per).min(self.space.blocks())));
        if self.closed.blocks == blocks {
            return;
        }
        for run in self.closed.runs.drain(..) {
            self.space.give(run);
        }
        self.closed.blocks = blocks;
        let Some((from, end)) = blocks.filter(|(from, end)| from < end) else {
            return;
        };
        for group in self.space.group_of(from)..=self.space.group_of(end - 1) {
            let last = self.space.start_of(group + 1).min(end);
            while let Some(run) =
                self.space
                    .take_in(group, from.max(self.space.start_of(group)), u64::MAX)
            {
                let within = last.saturating_sub(run.start).min(run.len);
                if within < run.len {
                    self.space.give(Run {
                        start: run.start + within,
                        len: run.len - within,
                    });
                }
                if within == 0 {
                    break;
                }
                let len = within;
                self.closed.runs.push(Run { len, ..run });
            }
        }
    }

    /// Blocks that nobody has any more are free, or will be when they lie in no chunk that is being copied.
    pub(super) fn give(&mut self, run: Run) {
        match self.closed.blocks {
            Some((from, end)) if (from..end).contains(&run.start) => self.closed.runs.push(run),
            _ => self.space.give(run),
        }
    }
}

/// Where nothing new is put for now: blocks from the first to the one after the last, and what of them is free.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    blocks: Option<(u64, u64)>,
    pub(super) runs: Vec<Run>,
}

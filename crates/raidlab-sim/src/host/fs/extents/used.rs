//! What of the addresses of btrfs is in use, as whoever replaces a member sees it.
use super::Extents;
use super::held::leaves;
use super::tree_log::EXTENT;
use crate::block::{Extent, Watch};
use raidlab_core::units::{Lba, SECTOR};

impl Extents {
    /// Nodes of the trees that data files have: items of their extents, and what says that these are in use, with checksums.
    fn nodes(&self) -> u64 {
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

    /// See [`FileSystem::seal`](super::super::FileSystem::seal).
    pub(in super::super) fn seal(&mut self, end: Lba) {
        let end = (end.0 * SECTOR / self.kind.block).min(self.space.blocks());
        let groups = self.space.group_of(end.saturating_sub(1));
        for group in 0..=groups {
            let start = self.space.start_of(group);
            while let Some(mut run) = self.space.take_in(group, start, u64::MAX) {
                let ends = run.end() > end;
                if ends {
                    let cut = end.saturating_sub(run.start);
                    run.start += cut;
                    run.len -= cut;
                    self.space.give(run);
                    break;
                }
            }
        }
        self.set_reserve();
    }
}

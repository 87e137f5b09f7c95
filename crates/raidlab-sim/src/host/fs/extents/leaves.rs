//! Where names get room, and leaves of btrfs that directories share or that have nothing left in them.
use super::super::space::Run;
use super::Extents;

impl Extents {
    /// Room for more names: a block, or a node of btrfs, where a directory begins in what others have left of one.
    pub(super) fn name_blocks(&mut self, first: bool) -> Option<Run> {
        let blocks = self.kind.node.max(1);
        let shares = first && self.kind.cow;
        let held = |run: &Run| self.small.held.get(&run.start).copied().unwrap_or(0);
        if let Some(run) = self.small.begun.filter(|_| shares)
            && held(&run) < self.kind.names * blocks
        {
            return Some(run);
        }
        let empty = if shares {
            self.small.empty.pop_first()
        } else {
            None
        };
        let new = match empty {
            Some(run) => run,
            None => self.space.take(0, blocks)?,
        };
        let new = match new.len == blocks {
            true => new,
            false => self.one_run(new, blocks)?,
        };
        if shares {
            self.small.begun = Some(new);
        }
        Some(new)
    }

    /// The number of names in the first node of a directory of btrfs.
    pub(super) fn first_node(&mut self, directory: u32) -> Option<&mut u64> {
        let d = self.small.directories.get(&directory)?;
        let first = d.blocks.first().filter(|_| self.kind.cow)?;
        Some(self.small.held.entry(*first).or_default())
    }

    /// A leaf of btrfs with nothing in it is freed and not written: that of a record, and those of names when none is left.
    pub(super) fn drop_leaves(&mut self, block: u64, record: u64, directory: u32) {
        let records = self.kind.records.max(1);
        if self
            .small
            .records
            .taken(record / records * records, records)
            == 0
        {
            self.running.remove(&block);
        }
        let node = self.kind.node as usize;
        let none_here = self.first_node(directory).is_some_and(|held| {
            *held = held.saturating_sub(1);
            *held == 0
        });
        let Some(d) = self.small.directories.get(&directory) else {
            return;
        };
        let none_of_it = d.entries == 0;
        for block in d.blocks.iter().skip(node).filter(|_| none_of_it) {
            self.running.remove(block);
        }
        let first = Run {
            start: d.blocks.first().copied().unwrap_or(0),
            len: node as u64,
        };
        if none_here {
            self.small.held.remove(&first.start);
            (first.start..first.end()).for_each(|block| {
                self.running.remove(&block);
            });
            if self.small.begun != Some(first) {
                self.small.empty.insert(first);
            }
        }
    }
}

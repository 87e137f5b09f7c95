//! Where the blocks of a file are found, and files that become shorter or go.
use super::super::super::FsError;
use super::super::super::plan::{Charge, Piece};
use super::super::super::raw::push_sectors;
use super::super::super::space::Run;
use super::super::tree::Path;
use super::super::{Ext, cost};
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;

impl Ext {
    #[inline]
    pub(in super::super::super) fn place(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Result<Charge, FsError> {
        if !self.traits.delayed {
            return Ok(self.locate(file, offset, len, out));
        }
        let block = u64::from(self.geometry.block);
        let (mut at, end) = (offset / block, (offset + len).div_ceil(block));
        let mut charge = Charge::default();
        let mut full = None;
        while let Some(f) = self.files.get_mut(&file) {
            let Some(run) = f.pending.from(at).filter(|run| run.at < end) else {
                break;
            };
            let to = (run.at + run.len).min(end);
            let mut carved = Vec::new();
            f.pending.carve(run.at, to, &mut carved);
            self.pending -= to - run.at;
            if let Err(error) = self.allocate(file, run.at, to, &mut charge) {
                full = Some(error);
                break;
            }
            at = to;
        }
        let found = self.locate(file, offset, len, out);
        charge.cpu += found.cpu;
        full.map_or(Ok(charge), Err)
    }

    #[inline]
    pub(in super::super::super) fn find(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Charge {
        let mut charge = self.locate(file, offset, len, out);
        if self.atime
            && let Some(f) = self.files.get_mut(&file)
            && !f.stamp.joined(false, self.transaction)
        {
            f.stamp.touched(self.transaction);
            let inode = self.geometry.inode_block(f.inode);
            charge.dirtied += u32::from(self.running.insert(inode));
        }
        charge
    }

    /// Where bytes lie, for whoever does not read them.
    #[inline]
    fn locate(&mut self, file: FileId, offset: u64, len: u64, out: &mut Vec<Piece>) -> Charge {
        let mut charge = Charge {
            cpu: Span(cost::MAP),
            ..Charge::default()
        };
        let Some(f) = self.files.get_mut(&file) else {
            return charge;
        };
        let block = u64::from(self.geometry.block);
        let per_block = block / SECTOR;
        let (from, until) = (offset / SECTOR, (offset + len).div_ceil(SECTOR));
        let (mut at, end) = (offset / block, (offset + len).div_ceil(block));
        if let Some(&leaf) = f.leaves.last() {
            charge.reads.push(self.geometry.place(leaf, 1));
        }
        let mut before = Path::default();
        while at < end {
            let path = self.tree.path(at);
            for slot in path.slots() {
                if !before.slots().contains(slot)
                    && let Some(dev) = f.runs.get(*slot)
                {
                    charge.reads.push(self.geometry.place(dev, 1));
                }
            }
            before = path;
            let to = end.min(path.end);
            let (begin, last) = (self.tree.slot(at), self.tree.slot(to - 1) + 1);
            let mut slot = begin;
            while let Some(run) = f.runs.from(slot).filter(|run| run.at < last) {
                let len = run.len.min(last - run.at);
                let first = (at + run.at - begin) * per_block;
                let (head, tail) = (first.max(from), (first + len * per_block).min(until));
                if head < tail {
                    let lba = run.dev * per_block + (head - first);
                    push_sectors(out, head * SECTOR, lba, tail - head);
                }
                slot = run.at + len;
            }
            at = to;
        }
        charge
    }

    pub(in super::super::super) fn truncate(&mut self, file: FileId, bytes: u64) -> Charge {
        let keep = bytes.div_ceil(u64::from(self.geometry.block));
        let mut charge = Charge {
            cpu: Span(cost::HANDLE),
            ..Charge::default()
        };
        let Some(mut f) = self.files.remove(&file) else {
            return charge;
        };
        let slots = if keep == 0 {
            0
        } else {
            self.tree.slot(keep - 1) + 1
        };
        let mut freed = Vec::new();
        f.runs.carve(slots, u64::MAX, &mut freed);
        let mut dropped = Vec::new();
        f.pending.carve(keep, u64::MAX, &mut dropped);
        self.pending -= dropped.iter().map(|run| run.len).sum::<u64>();
        if let Some(lease) = f.lease.take() {
            self.space.give(lease);
        }
        if keep == 0 {
            let leaves = f.leaves.drain(..);
            freed.extend(leaves.map(|start| Run { start, len: 1 }));
        }
        f.whole = f.whole.min(keep);
        f.size = f.size.min(keep);
        f.path_end = 0;
        f.window = self.windows.1;
        for run in freed {
            self.release(run, &mut charge);
        }
        self.join(self.geometry.inode_block(f.inode), &mut charge);
        f.stamp.placed(self.transaction);
        f.stamp.bytes = f.stamp.bytes.min(bytes);
        self.files.insert(file, f);
        charge
    }

    pub(in super::super::super) fn remove(&mut self, file: FileId) -> Charge {
        let mut charge = self.truncate(file, 0);
        if let Some(f) = self.files.remove(&file) {
            self.give_inode(f.inode, &mut charge);
        }
        charge
    }
}

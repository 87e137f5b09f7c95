//! Data of files: where blocks are put.
mod found;
mod lease;

use super::super::FsError;
use super::super::lent::{back, lend};
use super::super::plan::Charge;
use super::super::runs::Mapped;
use super::super::space::Run;
use super::{Ext, File, cost};
use lease::Wanted;
use raidlab_core::op::FileId;
use raidlab_core::time::Span;

/// Extents that fit into an inode, and into a leaf of 4 KiB (12 bytes each after a header of 12).
const EXTENTS_IN_INODE: u64 = 4;
/// Blocks of the longest extent.
const LONGEST_EXTENT: u64 = 32_768;

impl Ext {
    #[inline]
    pub(in super::super) fn reserve(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<Charge, FsError> {
        let block = u64::from(self.geometry.block);
        let (first, end) = (offset / block, (offset + len).div_ceil(block));
        if end > self.tree.limit() {
            return Err(FsError::TooLarge);
        }
        let transaction = self.transaction;
        let f = self.files.get_mut(&file).ok_or(FsError::NoFile)?;
        let mut charge = Charge {
            cpu: Span(cost::HANDLE),
            ..Charge::default()
        };
        let (whole, inode, joined) = (f.whole, f.inode, f.stamp.joined(false, transaction));
        f.stamp.write(self.clock, offset + len, transaction);
        let joins = !joined && f.stamp.joined(false, transaction);
        if self.traits.delayed {
            f.size = f.size.max(end);
        }
        if joins {
            let block = self.geometry.inode_block(inode);
            self.join(block, &mut charge);
        }
        if end <= whole {
            // All of it has its places.
        } else if self.traits.delayed {
            let delayed = self.delay(file, first, end, &mut charge);
            if delayed == Err(FsError::NoSpace) && self.give_up_leases() {
                self.delay(file, first, end, &mut charge)?;
            } else {
                delayed?;
            }
        } else {
            self.allocate(file, first, end, &mut charge)?;
            // Of what is allocated at once the size changes behind it.
            if let Some(f) = self.files.get_mut(&file) {
                f.size = f.size.max(end);
            }
        }
        if self.traits.data_journal {
            self.journalled_data += end - first;
        }
        Ok(charge)
    }

    /// Remembers that blocks are to get places.
    fn delay(
        &mut self,
        file: FileId,
        first: u64,
        end: u64,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let Some(f) = self.files.get_mut(&file) else {
            return Err(FsError::NoFile);
        };
        let mut at = first.max(f.whole);
        while at < end {
            let placed = f.runs.from(at);
            let pending = f.pending.from(at);
            if let Some(run) = [placed, pending]
                .into_iter()
                .flatten()
                .find(|run| run.at == at)
            {
                at += run.len;
                continue;
            }
            let next = |run: Option<Mapped>| run.map_or(u64::MAX, |run| run.at);
            let to = end.min(next(placed)).min(next(pending));
            let len = to - at;
            if self.pending + len > self.space.free() {
                return Err(FsError::NoSpace);
            }
            self.pending += len;
            f.pending.insert(Mapped { at, dev: at, len });
            charge.cpu += Span(cost::DELAY_BLOCK * len);
            at = to;
        }
        if first <= f.whole {
            f.whole = f.whole.max(end);
        }
        Ok(())
    }

    /// Gives places to the data blocks `[first, end)` that have none, and to what points to them.
    fn allocate(
        &mut self,
        file: FileId,
        first: u64,
        end: u64,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let Some(mut f) = lend(&mut self.files, file) else {
            return Err(FsError::NoFile);
        };
        let joined = f.stamp.joined(false, self.transaction);
        let done = self.allocate_in(file, &mut f, first, end, charge);
        if !joined && f.stamp.joined(false, self.transaction) {
            self.join(self.geometry.inode_block(f.inode), charge);
        }
        back(&mut self.files, file, f);
        done
    }

    fn allocate_in(
        &mut self,
        id: FileId,
        f: &mut File,
        first: u64,
        end: u64,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let mut at = first;
        while at < end {
            if !self.tree.shares(at, f.path_end) {
                let path = self.tree.path(at);
                if path.end != f.path_end {
                    self.indirect(id, f, path.slots(), charge)?;
                    f.path_end = path.end;
                    f.above = path.slots().last().and_then(|s| f.runs.get(*s));
                }
            }
            let to = end.min(f.path_end);
            let (mut slot, last) = (self.tree.slot(at), self.tree.slot(to - 1) + 1);
            let begin = slot;
            while slot < last {
                match f.runs.from(slot).filter(|run| run.at < last) {
                    Some(run) if run.at == slot => slot += run.len,
                    next => {
                        let gap = next.map_or(last, |run| run.at) - slot;
                        let wanted = Wanted {
                            slot,
                            at: at + (slot - begin),
                            len: gap,
                        };
                        slot += self.extend(id, f, wanted, charge)?;
                        f.stamp.placed(self.transaction);
                    }
                }
                // What is there stays when the device is full in the middle.
                if at <= f.whole {
                    f.whole = f.whole.max(at + slot.min(last) - begin);
                }
            }
            if let Some(above) = f.above {
                self.join(above, charge);
            }
            at = to;
        }
        self.leaves(f, charge)
    }

    /// Makes the missing indirect blocks of a path.
    fn indirect(
        &mut self,
        id: FileId,
        f: &mut File,
        slots: &[u64],
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let mut above = None;
        for &slot in slots {
            if let Some(dev) = f.runs.get(slot) {
                charge.reads.push(self.geometry.place(dev, 1));
                above = Some(dev);
                continue;
            }
            if self.by_ext4 {
                self.apart(f, slot, charge)?;
            } else {
                let wanted = Wanted {
                    slot,
                    at: 0,
                    len: 1,
                };
                self.extend(id, f, wanted, charge)?;
            }
            if let Some(dev) = f.runs.get(slot) {
                charge.made.push(self.geometry.place(dev, 1));
                self.join(dev, charge);
            }
            if let Some(dev) = above {
                self.join(dev, charge);
            }
            above = f.runs.get(slot);
        }
        Ok(())
    }

    /// Gives a place to an indirect block as ext4's driver does: not in what is preallocated for data, but in the
    /// first room of the group that the data is in (`ext4_alloc_branch`, `ext4_new_meta_blocks`: a request of one
    /// block is no power of two to `ext4_mb_regular_allocator`, so that `ext4_mb_complex_scan_group` looks from the
    /// group's beginning on). That is the odd end behind the inode table, which is no buddy of 8 MiB, and data stays
    /// in one piece.
    fn apart(&mut self, f: &mut File, slot: u64, charge: &mut Charge) -> Result<(), FsError> {
        let before = slot.checked_sub(1).and_then(|before| f.runs.get(before));
        let group = match before {
            Some(dev) => self.space.group_of(dev),
            None => f.inode / self.geometry.inodes,
        };
        let goal = self.space.start_of(group);
        let run = self.space.take(goal, 1).or_else(|| self.steal(goal, 1));
        let run = run.ok_or(FsError::NoSpace)?;
        let (at, dev, len) = (slot, run.start, 1);
        f.runs.insert(Mapped { at, dev, len });
        self.charge_for(run.start, charge);
        charge.cpu += Span(cost::ALLOCATE_BLOCK);
        Ok(())
    }

    /// The bitmap and the descriptor of a block's group change.
    fn charge_for(&mut self, block: u64, charge: &mut Charge) {
        let group = self.space.group_of(block);
        self.join(self.geometry.block_bitmap(group), charge);
        self.join(self.geometry.descriptor(group), charge);
    }

    /// Gives a place to slots from the first that is wanted on; how many it was.
    fn extend(
        &mut self,
        id: FileId,
        f: &mut File,
        wanted: Wanted,
        charge: &mut Charge,
    ) -> Result<u64, FsError> {
        let lease = match f.lease.take() {
            Some(lease) => lease,
            None => self.lease(id, f, wanted, charge)?,
        };
        let len = wanted.len.min(lease.len);
        f.runs.insert(Mapped {
            at: wanted.slot,
            dev: lease.start,
            len,
        });
        self.charge_for(lease.start, charge);
        charge.cpu += if self.traits.delayed {
            Span(cost::ALLOCATE_RUN)
        } else {
            Span(cost::ALLOCATE_BLOCK * len)
        };
        f.lease = (len < lease.len).then_some(Run {
            start: lease.start + len,
            len: lease.len - len,
        });
        Ok(len)
    }

    /// Blocks of the extent tree, when the extents outgrow the inode.
    fn leaves(&mut self, f: &mut File, charge: &mut Charge) -> Result<(), FsError> {
        if !self.tree.extents() {
            return Ok(());
        }
        let extents = f.runs.len() as u64 + f.whole / LONGEST_EXTENT;
        let in_leaf = (u64::from(self.geometry.block) - 12) / 12;
        let wanted = if extents <= EXTENTS_IN_INODE {
            0
        } else {
            extents.div_ceil(in_leaf)
        };
        while (f.leaves.len() as u64) < wanted {
            let last = self.tree.slot(f.whole.max(1) - 1);
            let goal = f.runs.get(last).map_or(0, |dev| dev + 1);
            let run = self.space.take(goal, 1).or_else(|| self.steal(goal, 1));
            let run = run.ok_or(FsError::NoSpace)?;
            f.leaves.push(run.start);
            charge.made.push(self.geometry.place(run.start, 1));
        }
        if let Some(&leaf) = f.leaves.last() {
            self.join(leaf, charge);
        }
        Ok(())
    }
}

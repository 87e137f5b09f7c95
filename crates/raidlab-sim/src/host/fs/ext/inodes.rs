//! Inodes: taken, given back, and what of their tables is read.
use super::super::FsError;
use super::super::plan::{Charge, Place};
use super::super::space::{Run, Shape};
use super::Ext;

/// Inodes that are the file system's own (`EXT2_GOOD_OLD_FIRST_INO` less one).
const OWN: u64 = 10;

/// Blocks of an inode table that are read at once (`EXT4_DEF_INODE_READAHEAD_BLKS`).
const READ_AHEAD: u64 = 32;

/// Inodes of groups, as a space to take from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inodes;

impl Shape for Inodes {
    fn prefix(&self, group: u64) -> u64 {
        if group == 0 { OWN } else { 0 }
    }
}

impl Ext {
    /// Takes an inode in or after a group and changes what says so.
    pub(super) fn take_inode(&mut self, group: u64, charge: &mut Charge) -> Result<u64, FsError> {
        let goal = group * self.geometry.inodes;
        let run = self.names.inodes.take(goal, 1).ok_or(FsError::NoSpace)?;
        let group = run.start / self.geometry.inodes;
        let table = self.geometry.inode_block(run.start);
        let bitmap = self.geometry.inode_bitmap(group);
        charge.reads.push(self.geometry.place(bitmap, 1));
        // `__ext4_get_inode_loc`, and that of ext3: nothing of a block is wanted when no other inode of it is in use. ext2 reads it.
        let wide = self.geometry.inodes_in_block;
        if self.names.skips && self.names.inodes.taken(run.start / wide * wide, wide) == 1 {
            charge.made.push(self.geometry.place(table, 1));
        } else {
            charge.reads.push(self.geometry.place(table, 1));
        }
        for block in [bitmap, self.geometry.descriptor(group), table] {
            self.join(block, charge);
        }
        let (used, end) = (self.names.used.entry(group).or_default(), run.start + 1);
        *used = end.max(*used);
        Ok(run.start)
    }

    /// What is read when the block of an inode is not in memory: ext4's driver reads an aligned stretch of the table
    /// ([`READ_AHEAD`]), to the last block that ever had an inode (`itable_unused`; ext3's, without that, is read further).
    pub(super) fn inode_window(&self, inode: u64) -> Place {
        let geometry = &self.geometry;
        let (block, group) = (geometry.inode_block(inode), inode / geometry.inodes);
        if !self.names.ahead {
            return geometry.place(block, 1);
        }
        let table = geometry.inode_table(group);
        let used = self.names.used.get(&group).map_or(0, |used| used - 1);
        let window = block / READ_AHEAD * READ_AHEAD;
        let end = geometry.inode_block(used.max(inode)) + 1;
        let first = window.max(table);
        geometry.place(first, end.min(window + READ_AHEAD) - first)
    }

    pub(super) fn give_inode(&mut self, inode: u64, charge: &mut Charge) {
        let group = inode / self.geometry.inodes;
        let bitmap = self.geometry.inode_bitmap(group);
        charge.reads.push(self.geometry.place(bitmap, 1));
        let table = self.geometry.inode_block(inode);
        for block in [bitmap, self.geometry.descriptor(group), table] {
            self.join(block, charge);
        }
        self.names.inodes.give(Run {
            start: inode,
            len: 1,
        });
    }
}

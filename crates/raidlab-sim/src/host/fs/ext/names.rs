//! Small files and directories: directory blocks, inodes, bitmaps, the data of small files.
//!
//! Simplified: names of one length; a file of data that is not in one run keeps all its runs; delayed
//! allocation of ext4 gives small files their place at once; directories have no indirect blocks;
//! names are in the dentry cache once they were used, so a `stat` does not search the directory.
use super::super::FsError;
use super::super::plan::Charge;
use super::super::runs::{Mapped, Runs};
use super::super::space::{Run, Space};
use super::super::spec::FsSpec;
use super::geometry::Geometry;
use super::homes::Homes;
use super::inodes::Inodes;
use super::{Ext, by_ext4, cost};
use raidlab_core::op::{Entry, FileOp};
use raidlab_core::rng::mix;
use raidlab_core::time::Span;
use raidlab_experiment::kernel::{FilesystemKind, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a directory entry: a header of 8 and a name of 13 to 16 characters, as bonnie++ makes.
const ENTRY: u64 = 24;
/// A directory.
#[derive(Clone, Debug, Default)]
struct Directory {
    inode: u64,
    /// Its blocks by number.
    blocks: Runs,
    count: u64,
    entries: u64,
    /// Slots that were used at some time, and those of them that are free.
    slots: u32,
    free: BTreeSet<u32>,
}

/// A small file.
#[derive(Clone, Copy, Debug, Default)]
struct Small {
    /// Inode and one; 0: there is none.
    inode: u32,
    /// Its place in the directory.
    slot: u32,
    /// Its first block, and how many follow it.
    start: u64,
    len: u32,
}

/// All names.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub inodes: Space<Inodes>,
    directories: BTreeMap<u32, Directory>,
    files: Vec<Small>,
    /// Further runs of files that did not fit into one.
    scattered: BTreeMap<u32, Vec<Run>>,
    /// Directories have a hash tree.
    hashed: bool,
    /// Entries of a block.
    per_block: u64,
    /// A block of inodes none of which is in use is not read.
    pub skips: bool,
    /// Blocks of inodes are read in stretches.
    pub ahead: bool,
    /// Inode after the last that was ever used, by group.
    pub used: BTreeMap<u64, u64>,
    /// Where directories are.
    pub homes: Homes,
}

impl Names {
    /// Hash trees are the default since e2fsprogs 1.39 (2006, the time of 2.6.18). Inode tables are read ahead by ext4's driver,
    /// since 2.6.28, which has ext3 since 4.3.
    pub(super) fn new(spec: &FsSpec, geometry: &Geometry) -> Self {
        let default = spec.kind != FilesystemKind::Ext2 && spec.kernel >= Kernel::Linux(2, 6, 18);
        Self {
            inodes: Space::new(Inodes, geometry.inodes * geometry.groups(), geometry.inodes),
            directories: BTreeMap::new(),
            files: Vec::new(),
            scattered: BTreeMap::new(),
            hashed: spec.dir_index.unwrap_or(default),
            per_block: u64::from(geometry.block) / ENTRY,
            skips: spec.kind != FilesystemKind::Ext2,
            ahead: spec.kind == FilesystemKind::Ext4 || by_ext4(spec),
            used: BTreeMap::new(),
            homes: Homes::new(spec, geometry),
        }
    }

    #[cfg(test)]
    pub(super) fn inodes_of_directories(&self) -> impl Iterator<Item = u64> {
        self.directories.values().map(|d| d.inode)
    }

    fn file(&self, index: u32) -> Result<Small, FsError> {
        let small = self.files.get(index as usize).filter(|s| s.inode > 0);
        small.copied().ok_or(FsError::NoFile)
    }

    /// The block of a directory that holds (or would hold) an entry.
    fn leaf(&self, d: &Directory, index: u32, slot: u32) -> u64 {
        if !self.hashed {
            return u64::from(slot) / self.per_block;
        }
        // Block 0 is the root of the tree once there is more than one leaf.
        match d.count {
            0 | 1 => 0,
            n => 1 + mix(u64::from(index)) % (n - 1),
        }
    }

    /// Blocks that a directory needs for its entries: leaves of a hash tree are three quarters full.
    fn blocks_for(&self, d: &Directory) -> u64 {
        if !self.hashed {
            return u64::from(d.slots).div_ceil(self.per_block).max(1);
        }
        let leaves = d.entries.div_ceil(self.per_block * 3 / 4).max(1);
        if leaves == 1 && d.entries <= self.per_block {
            1
        } else {
            leaves.max(2) + 1
        }
    }
}

impl Ext {
    pub(in super::super) fn small(&mut self, op: &FileOp) -> Result<Charge, FsError> {
        let mut charge = Charge {
            cpu: Span(cost::NAME),
            ..Charge::default()
        };
        match *op {
            FileOp::Create { entry, size, sync } => {
                self.create(entry, u64::from(size), &mut charge)?;
                charge.commit_needed = sync;
            }
            FileOp::Stat { entry, size } => self.stat(entry, size, &mut charge)?,
            FileOp::Unlink { entry } => self.unlink(entry, &mut charge)?,
            FileOp::MakeDirectory { directory } => self.make_directory(directory, &mut charge)?,
            FileOp::RemoveDirectory { directory } => {
                self.remove_directory(directory, &mut charge)?;
            }
            FileOp::SyncDirectory { .. } | FileOp::SyncAll => {
                charge.commit_needed = !self.running.is_empty();
            }
            _ => return Ok(Charge::default()),
        }
        Ok(charge)
    }

    /// Takes blocks near a goal, in as few runs as there are.
    fn take_blocks(
        &mut self,
        mut goal: u64,
        blocks: u64,
        charge: &mut Charge,
    ) -> Result<Vec<Run>, FsError> {
        let (mut runs, mut left) = (Vec::new(), blocks);
        while left > 0 {
            let run = self
                .space
                .take(goal, left)
                .or_else(|| self.steal(goal, left));
            let Some(run) = run else {
                runs.into_iter().for_each(|run| self.space.give(run));
                return Err(FsError::NoSpace);
            };
            (goal, left) = (run.end(), left - run.len);
            runs.push(run);
        }
        for run in &runs {
            let group = self.space.group_of(run.start);
            let bitmap = self.geometry.block_bitmap(group);
            charge.reads.push(self.geometry.place(bitmap, 1));
            self.join(bitmap, charge);
            self.join(self.geometry.descriptor(group), charge);
        }
        Ok(runs)
    }

    /// Files go where their directory is.
    fn make_directory(&mut self, directory: u32, charge: &mut Charge) -> Result<(), FsError> {
        if self.names.directories.contains_key(&directory) {
            return Ok(());
        }
        let group = self.group_of_directory(directory);
        let inode = self.take_inode(group, charge)?;
        self.names.homes.took(inode / self.geometry.inodes);
        let mut d = Directory {
            inode,
            ..Directory::default()
        };
        self.grow(&mut d, 1, charge)?;
        self.names.directories.insert(directory, d);
        charge.cpu += Span(cost::MAKE);
        Ok(())
    }

    /// Lets a directory have so many blocks.
    fn grow(&mut self, d: &mut Directory, blocks: u64, charge: &mut Charge) -> Result<(), FsError> {
        while d.count < blocks {
            let before = d.count.checked_sub(1).and_then(|last| d.blocks.get(last));
            let group = d.inode / self.geometry.inodes;
            let goal = before.map_or(self.space.start_of(group), |dev| dev + 1);
            for run in self.take_blocks(goal, 1, charge)? {
                d.blocks.insert(Mapped {
                    at: d.count,
                    dev: run.start,
                    len: 1,
                });
                charge.made.push(self.geometry.place(run.start, 1));
                self.join(run.start, charge);
            }
            d.count += 1;
        }
        Ok(())
    }

    /// The block of an entry must be in memory, and the root of a hash tree before it; it changes
    /// together with the inode of the directory.
    fn entry(
        &mut self,
        d: &mut Directory,
        entry: Entry,
        slot: u32,
        changes: bool,
        charge: &mut Charge,
    ) {
        let leaf = self.names.leaf(d, entry.index, slot);
        let root = (self.names.hashed && leaf > 0).then_some(0);
        for block in root.into_iter().chain([leaf]) {
            charge
                .reads
                .extend(d.blocks.get(block).map(|dev| self.geometry.place(dev, 1)));
        }
        if changes {
            if let Some(dev) = d.blocks.get(leaf) {
                self.join(dev, charge);
            }
            self.join(self.geometry.inode_block(d.inode), charge);
        }
    }

    /// Without a hash tree all entries up to the one sought are compared.
    fn search(&self, entries: u64) -> Span {
        Span(if self.names.hashed {
            cost::HASHED
        } else {
            entries * cost::COMPARE
        })
    }

    fn create(&mut self, entry: Entry, size: u64, charge: &mut Charge) -> Result<(), FsError> {
        self.make_directory(entry.directory, charge)?;
        let Some(mut d) = self.names.directories.remove(&entry.directory) else {
            return Err(FsError::NoFile);
        };
        let done = self.create_in(&mut d, entry, size, charge);
        self.names.directories.insert(entry.directory, d);
        done
    }

    fn create_in(
        &mut self,
        d: &mut Directory,
        entry: Entry,
        size: u64,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        // To see that the name is new, and to find room for it.
        charge.cpu += self.search(2 * d.entries) + Span(cost::MAKE);
        let inode = self.take_inode(d.inode / self.geometry.inodes, charge)?;
        self.names.homes.filled(inode / self.geometry.inodes);
        let mut runs = Vec::new();
        let blocks = size.div_ceil(u64::from(self.geometry.block));
        if blocks > 0 {
            let goal = self.space.start_of(inode / self.geometry.inodes);
            let slots = self.tree.slot(blocks - 1) + 1;
            match self.take_blocks(goal, slots, charge) {
                Ok(taken) => runs = taken,
                Err(error) => {
                    self.give_inode(inode, charge);
                    return Err(error);
                }
            }
            charge.cpu += Span(cost::ALLOCATE_BLOCK * slots);
            let written = runs
                .iter()
                .map(|run| self.geometry.place(run.start, run.len));
            charge.written.extend(written);
            if self.traits.data_journal {
                self.journalled_data += slots;
            }
        }
        let slot = d.free.pop_first().unwrap_or_else(|| {
            d.slots += 1;
            d.slots - 1
        });
        d.entries += 1;
        let wanted = self.names.blocks_for(d);
        self.grow(d, wanted, charge)?;
        self.entry(d, entry, slot, true, charge);
        let index = entry.index as usize;
        if self.names.files.len() <= index {
            self.names.files.resize(index + 1, Small::default());
        }
        let first = runs.first().copied();
        self.names.files[index] = Small {
            inode: inode as u32 + 1,
            slot,
            start: first.map_or(0, |run| run.start),
            len: first.map_or(0, |run| run.len as u32),
        };
        if runs.len() > 1 {
            self.names.scattered.insert(entry.index, runs.split_off(1));
        }
        Ok(())
    }

    fn stat(&mut self, entry: Entry, size: u32, charge: &mut Charge) -> Result<(), FsError> {
        let small = self.names.file(entry.index)?;
        if let Some(mut d) = self.names.directories.remove(&entry.directory) {
            self.entry(&mut d, entry, small.slot, false, charge);
            self.names.directories.insert(entry.directory, d);
        }
        let inode = self.geometry.inode_block(u64::from(small.inode) - 1);
        charge
            .reads
            .push(self.inode_window(u64::from(small.inode) - 1));
        if size > 0 {
            let runs = self.runs_of(entry.index, small);
            charge.reads.extend(
                runs.iter()
                    .map(|run| self.geometry.place(run.start, run.len)),
            );
            if self.atime {
                self.join(inode, charge);
            }
        }
        Ok(())
    }

    fn runs_of(&self, index: u32, small: Small) -> Vec<Run> {
        let first = (small.len > 0).then_some(Run {
            start: small.start,
            len: u64::from(small.len),
        });
        let more = self.names.scattered.get(&index).into_iter().flatten();
        first.into_iter().chain(more.copied()).collect()
    }

    fn unlink(&mut self, entry: Entry, charge: &mut Charge) -> Result<(), FsError> {
        let small = self.names.file(entry.index)?;
        let Some(mut d) = self.names.directories.remove(&entry.directory) else {
            return Err(FsError::NoFile);
        };
        charge.cpu += self.search(u64::from(small.slot)) + Span(cost::FREE);
        self.entry(&mut d, entry, small.slot, true, charge);
        d.free.insert(small.slot);
        d.entries = d.entries.saturating_sub(1);
        self.names.directories.insert(entry.directory, d);
        let inode = u64::from(small.inode) - 1;
        charge.reads.push(self.inode_window(inode));
        self.give_inode(inode, charge);
        for run in self.runs_of(entry.index, small) {
            charge.dropped.push(self.geometry.place(run.start, run.len));
            self.release(run, charge);
        }
        self.names.scattered.remove(&entry.index);
        self.names.files[entry.index as usize] = Small::default();
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32, charge: &mut Charge) -> Result<(), FsError> {
        let Some(mut d) = self.names.directories.remove(&directory) else {
            return Err(FsError::NoFile);
        };
        let mut runs = Vec::new();
        d.blocks.carve(0, u64::MAX, &mut runs);
        for run in runs {
            self.release(run, charge);
        }
        self.give_inode(d.inode, charge);
        self.names.homes.gave(d.inode / self.geometry.inodes);
        charge.cpu += Span(cost::FREE);
        Ok(())
    }
}

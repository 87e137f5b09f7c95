//! Small files and directories of ZFS: dnodes, and ZAPs with their leaves.
use super::super::FsError;
use super::super::plan::Charge;
use super::super::runs::{Mapped, Runs};
use super::super::space::Run;
use super::pool::Pool;
use super::{CALL, Zfs, size};
use raidlab_core::op::{Entry, FileOp};
use raidlab_core::rng::mix;
use raidlab_core::time::Span;
use std::collections::BTreeMap;

/// A name looked up or changed in a ZAP: hash, leaf, chunk. Assumed.
const NAME: u64 = 6_000;
/// A dnode made or freed: bonus buffer, znode, attributes.
/// Fitted on 'ashift 9' of zfs-ashift: 13073 created and 14567 deleted in order a second, at 99 % of
/// the processor.
const OBJECT: u64 = 56_000;
/// A block that is not the one that the name before was in, of a directory or of dnodes: it is found,
/// held, and copied for the group. Fitted on 'ashift 9' of zfs-ashift: out of order 7688 files are
/// created a second, which takes another leaf of the directory each, and 5378 deleted, which takes
/// another block of dnodes as well.
const OTHER: u64 = 55_000;
/// Bytes of a call in the intent log: the record with the name.
const LOGGED: u64 = 320;

/// A directory.
#[derive(Clone, Debug, Default)]
struct Directory {
    object: u64,
    entries: u64,
    /// Two copies of its leaves.
    leaves: [Runs; 2],
}

impl Directory {
    /// The leaf of a name. A ZAP that has outgrown one block stays divided.
    fn leaf(&self, index: u32) -> u64 {
        match self.leaf_count() {
            1 => 0,
            n => mix(u64::from(index)) % n,
        }
    }

    const fn leaf_count(&self) -> u64 {
        if self.entries <= size::MICRO {
            1
        } else {
            self.entries.div_ceil(size::LEAF)
        }
    }
}

/// All small files.
#[derive(Clone, Debug, Default)]
pub(super) struct Small {
    directories: BTreeMap<u32, Directory>,
    /// Number of the dnode by number of the file; 0: none.
    objects: Vec<u32>,
    /// Where those lie that are not empty.
    contents: BTreeMap<u32, Vec<Run>>,
}

impl Small {
    fn object(&self, index: u32) -> Option<u64> {
        let object = *self.objects.get(index as usize)?;
        (object > 0).then_some(u64::from(object))
    }

    /// Notes where data of a file lies; false when it is gone.
    pub(super) fn lies(&mut self, index: u32, run: Run) -> bool {
        self.contents.entry(index).or_default().push(run);
        self.object(index).is_some()
    }

    /// Bytes of a leaf now, and of a full one.
    pub(super) fn leaf_bytes(&self, directory: u32) -> Option<(u64, u64)> {
        let d = self.directories.get(&directory)?;
        let full = if d.leaf_count() == 1 {
            size::MICRO
        } else {
            size::LEAF
        };
        let used = (d.entries / d.leaf_count()).clamp(1, full);
        Some((size::entries(used), size::entries(size::MICRO)))
    }

    /// Where both copies of all leaves of directories lie, and then the files that are not empty.
    pub(super) fn all(&self) -> (impl Iterator<Item = &[Runs; 2]>, impl Iterator<Item = &Run>) {
        let leaves = self.directories.values().map(|directory| &directory.leaves);
        (leaves, self.contents.values().flatten())
    }

    /// A leaf gets a new place; where it was.
    pub(super) fn leaf_moves(
        &mut self,
        directory: u32,
        leaf: u64,
        unit: u64,
        copy: usize,
        run: Option<Run>,
    ) -> Vec<Run> {
        let mut old = Vec::new();
        if let Some(d) = self.directories.get_mut(&directory) {
            let leaves = &mut d.leaves[copy];
            leaves.carve(leaf * unit, (leaf + 1) * unit, &mut old);
            if let Some(run) = run {
                leaves.insert(Mapped {
                    at: leaf * unit,
                    dev: run.start,
                    len: run.len,
                });
            }
        }
        old
    }
}

impl Zfs {
    pub(in super::super) fn small(&mut self, op: &FileOp) -> Result<Charge, FsError> {
        let mut charge = Charge::default();
        match *op {
            FileOp::Create { entry, size, sync } => self.create(entry, size, sync, &mut charge)?,
            FileOp::Stat { entry, size } => self.stat(entry, size, &mut charge)?,
            FileOp::Unlink { entry } => self.unlink(entry, &mut charge)?,
            FileOp::MakeDirectory { directory } => {
                self.directory(directory);
                charge.dirtied = 2;
                charge.cpu = Span(CALL + NAME + OBJECT);
                self.group.log_names += LOGGED;
            }
            FileOp::RemoveDirectory { directory } => {
                self.remove_directory(directory, &mut charge)?;
            }
            FileOp::SyncDirectory { .. } | FileOp::SyncAll => {
                let waits = self.traits.commit_time.is_none() || !matches!(op, FileOp::SyncAll);
                charge.commit_needed = waits && self.group.log + self.group.log_names > 0;
                charge.cpu = Span(CALL);
            }
            _ => {}
        }
        Ok(charge)
    }

    /// A directory, made when it is not there.
    fn directory(&mut self, directory: u32) {
        if self.small.directories.contains_key(&directory) {
            return;
        }
        let object = self.next_object;
        self.next_object += 1;
        self.group.dnode(object);
        self.group.leaves.insert((directory, 0));
        let new = Directory {
            object,
            ..Directory::default()
        };
        self.small.directories.insert(directory, new);
    }

    /// Looks a name up: the leaf must be in memory.
    fn look_up(&mut self, entry: Entry, charge: &mut Charge) -> u64 {
        let unit = self
            .small
            .leaf_bytes(entry.directory)
            .map_or(1, |(_, full)| full);
        let unit = self.pool.sectors(unit);
        charge.cpu += Span(CALL + NAME);
        let Some(d) = self.small.directories.get_mut(&entry.directory) else {
            return 0;
        };
        let leaf = d.leaf(entry.index);
        charge
            .reads
            .extend(self.pool.read(&mut d.leaves, leaf, unit));
        leaf
    }

    fn dnode_read(&mut self, object: u64, charge: &mut Charge) {
        let unit = self.pool.sectors(size::dnodes(size::DNODES));
        let block = object / size::DNODES;
        let places = self.group.dnode_places();
        charge.reads.extend(self.pool.read(places, block, unit));
    }

    /// A name and its dnode change.
    fn change(&mut self, entry: Entry, leaf: u64, object: u64, charge: &mut Charge) {
        self.group.leaves.insert((entry.directory, leaf));
        self.group.dnode(object);
        if let Some(d) = self.small.directories.get(&entry.directory) {
            self.group.dnode(d.object);
        }
        self.group.log_names += LOGGED;
        charge.cpu += Span(OBJECT);
        if !entry.ordered {
            charge.cpu += Span(OTHER);
        }
        charge.dirtied += 2;
    }

    fn create(
        &mut self,
        entry: Entry,
        size: u32,
        sync: bool,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        if !self.pool.has(self.pool.takes(u64::from(size)) + 1) {
            return Err(FsError::NoSpace);
        }
        self.directory(entry.directory);
        let leaf = self.look_up(entry, charge);
        let object = self.next_object;
        self.next_object += 1;
        let index = entry.index as usize;
        if self.small.objects.len() <= index {
            self.small.objects.resize(index + 1, 0);
        }
        self.small.objects[index] = object as u32;
        if let Some(d) = self.small.directories.get_mut(&entry.directory) {
            d.entries += 1;
        }
        self.change(entry, leaf, object, charge);
        if size > 0 {
            self.group.contents.push((entry.index, u64::from(size)));
            self.group.log += u64::from(size);
        }
        charge.commit_needed = sync;
        Ok(())
    }

    fn stat(&mut self, entry: Entry, size: u32, charge: &mut Charge) -> Result<(), FsError> {
        let object = self.small.object(entry.index).ok_or(FsError::NoFile)?;
        self.look_up(entry, charge);
        self.dnode_read(object, charge);
        if size > 0 {
            if self.atime {
                self.group.dnode(object);
            }
            let lies = self.small.contents.get(&entry.index).into_iter().flatten();
            charge.reads.extend(lies.map(|run| Pool::place(*run)));
        }
        Ok(())
    }

    fn unlink(&mut self, entry: Entry, charge: &mut Charge) -> Result<(), FsError> {
        let object = self.small.object(entry.index).ok_or(FsError::NoFile)?;
        let leaf = self.look_up(entry, charge);
        self.dnode_read(object, charge);
        self.change(entry, leaf, object, charge);
        charge.frees = size::indirect_raw(self.fan);
        if !entry.ordered {
            charge.cpu += Span(OTHER);
        }
        if let Some(d) = self.small.directories.get_mut(&entry.directory) {
            d.entries = d.entries.saturating_sub(1);
        }
        self.small.objects[entry.index as usize] = 0;
        self.group
            .contents
            .retain(|(index, _)| *index != entry.index);
        for run in self
            .small
            .contents
            .remove(&entry.index)
            .into_iter()
            .flatten()
        {
            charge.dropped.push(Pool::place(run));
            self.pool.free(run);
        }
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32, charge: &mut Charge) -> Result<(), FsError> {
        let mut d = self
            .small
            .directories
            .remove(&directory)
            .ok_or(FsError::NoFile)?;
        self.group.dnode(d.object);
        self.group.leaves.retain(|(of, _)| *of != directory);
        let mut old = Vec::new();
        for copy in &mut d.leaves {
            copy.carve(0, u64::MAX, &mut old);
        }
        old.into_iter().for_each(|run| self.pool.free(run));
        self.group.log_names += LOGGED;
        charge.dirtied = 2;
        charge.cpu = Span(CALL + NAME + OBJECT);
        Ok(())
    }
}

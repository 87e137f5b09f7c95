//! Small files and directories: records of files, blocks of names.
use super::super::FsError;
use super::super::plan::Charge;
use super::super::space::{Bare, Run, Space};
use super::kind::Kind;
use super::{Extents, Heads};
use raidlab_core::op::{Entry, FileOp};
use raidlab_core::rng::mix;
use raidlab_core::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of records taken at once where no zone is kept for them (64 inodes of xfs).
pub(super) const CHUNK: u64 = 16;

/// A directory: the blocks of its names.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    record: u64,
    pub entries: u64,
    pub blocks: Vec<u64>,
}

/// A small file.
#[derive(Clone, Copy, Debug, Default)]
struct SmallFile {
    /// Its record and one; 0: there is none.
    record: u64,
    /// Its only run; empty when its data is in the record.
    start: u64,
    len: u64,
    /// The transaction that made it.
    joined: u64,
}

/// What becomes of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Made,
    Removed,
}

/// Records and names.
#[derive(Clone, Debug)]
pub(super) struct Small {
    /// Numbers of records.
    pub records: Space<Bare>,
    /// First blocks of the chunks that hold them.
    chunks: Vec<u64>,
    /// Blocks of a chunk.
    chunk: u64,
    pub directories: BTreeMap<u32, Directory>,
    files: Vec<SmallFile>,
    /// btrfs: names of directories whose first node of names it is, by its first block; the node that the next directory
    /// begins in, and nodes without names.
    pub held: BTreeMap<u64, u64>,
    pub begun: Option<Run>,
    pub empty: BTreeSet<Run>,
}

impl Small {
    pub(super) fn new(kind: &Kind, space: &mut Space<Heads>) -> Self {
        let zone = space.take(kind.zone_at, kind.zone.max(CHUNK));
        let chunk = zone.map_or(CHUNK, |run| run.len);
        let all = 1 << 40;
        let mut records = Space::new(Bare, all, all);
        // The file system's own: the root directory and others.
        let _ = records.take(0, 16);
        Self {
            records,
            chunks: zone.iter().map(|run| run.start).collect(),
            chunk,
            directories: BTreeMap::new(),
            files: Vec::new(),
            held: BTreeMap::new(),
            begun: None,
            empty: BTreeSet::new(),
        }
    }

    /// The block of a record.
    pub(super) fn record(&self, kind: &Kind, record: u64) -> u64 {
        let block = record / kind.records.max(1);
        let chunk = (block / self.chunk) as usize;
        let last = self.chunks.last().copied().unwrap_or(0);
        self.chunks
            .get(chunk)
            .map_or(last, |at| at + block % self.chunk)
    }

    /// The blocks that are read for a record: a cluster of inodes of xfs, a node of btrfs.
    fn cluster(&self, kind: &Kind, record: u64) -> Run {
        let within = record / kind.records.max(1) % self.chunk;
        let first = within / kind.cluster * kind.cluster;
        Run {
            start: self.record(kind, record) - (within - first),
            len: kind.cluster.min(self.chunk - first),
        }
    }

    /// Where data of a file is to begin: xfs and NTFS from the start of the group of its record,
    /// which is the first for files of the root directory.
    pub(super) const fn near(&self, _record: u64) -> u64 {
        0
    }

    pub(super) fn free_record(&mut self, record: u64) {
        self.records.give(Run {
            start: record,
            len: 1,
        });
    }

    /// Blocks of chunks beyond the first.
    #[cfg(test)]
    pub(super) fn chunk_blocks(&self) -> u64 {
        (self.chunks.len() as u64 - 1) * self.chunk + self.shared_blocks()
    }

    /// Blocks of nodes that directories of btrfs share, which stay as well.
    #[cfg(test)]
    fn shared_blocks(&self) -> u64 {
        let of = |run: &Run| run.len;
        let empty: u64 = self.empty.iter().map(of).sum();
        empty + self.begun.as_ref().map_or(0, of)
    }

    fn file(&self, index: u32) -> Result<SmallFile, FsError> {
        let small = self.files.get(index as usize).filter(|f| f.record > 0);
        small.copied().ok_or(FsError::NoFile)
    }
}

impl Extents {
    pub(in super::super) fn small(&mut self, op: &FileOp) -> Result<Charge, FsError> {
        let mut charge = Charge {
            cpu: Span(self.kind.names_cpu[0]),
            ..Charge::default()
        };
        match *op {
            FileOp::Create { entry, size, sync } => {
                self.create(entry, u64::from(size), &mut charge)?;
                charge.cpu += Span(self.kind.names_cpu[1]);
                charge.commit_needed = sync;
                if self.kind.cow {
                    let own = u64::from(size) > self.kind.resident;
                    self.tree.name();
                    if sync {
                        self.tree.small(u64::from(size) * u64::from(own));
                    }
                }
            }
            FileOp::Stat { entry, size } => {
                let small = self.small.file(entry.index)?;
                self.name(entry, Change::None, &mut charge);
                self.read_record(small.record - 1, &mut charge);
                if size > 0 && small.len > 0 {
                    charge.reads.push(self.at(Run {
                        start: small.start,
                        len: small.len,
                    }));
                }
            }
            FileOp::Unlink { entry } => {
                self.unlink(entry, &mut charge)?;
                charge.cpu += Span(self.kind.names_cpu[2]);
            }
            FileOp::MakeDirectory { directory } => self.make_directory(directory, &mut charge)?,
            FileOp::RemoveDirectory { directory } => {
                let d = self.small.directories.remove(&directory);
                let d = d.ok_or(FsError::NoFile)?;
                // The first node of btrfs is shared.
                for start in d.blocks.into_iter().skip(self.kind.node as usize) {
                    self.release(Run { start, len: 1 }, &mut charge);
                }
                let block = self.small.record(&self.kind, d.record);
                self.join(block, &mut charge);
                self.small.free_record(d.record);
                if self.kind.cow {
                    self.drop_leaves(block, d.record, directory);
                }
                self.logged.record(true);
            }
            FileOp::SyncDirectory { .. } => {
                charge.commit_needed = !self.running.is_empty();
                self.tree.directory();
            }
            FileOp::SyncAll => charge.commit_needed = !self.running.is_empty(),
            _ => return Ok(Charge::default()),
        }
        Ok(charge)
    }

    /// A record for a new file, with its block.
    pub(super) fn new_record(&mut self, near: u64, charge: &mut Charge) -> Result<u64, FsError> {
        let record = self
            .small
            .records
            .take(near, 1)
            .ok_or(FsError::NoSpace)?
            .start;
        let wanted = record / self.kind.records.max(1) / self.small.chunk;
        while self.small.chunks.len() as u64 <= wanted {
            let goal = self.small.chunks.last().map_or(0, |at| at + CHUNK);
            let Some(run) = self.space.take(goal, self.small.chunk) else {
                self.small.free_record(record);
                return Err(FsError::NoSpace);
            };
            // A chunk is one run: what is left of a shorter one is lost.
            self.small.chunks.push(run.start);
            charge.made.push(self.at(run));
            self.join_group(run.start, charge);
        }
        self.read_record(record, charge);
        let block = self.small.record(&self.kind, record);
        self.join(block, charge);
        self.logged.record(true);
        Ok(record)
    }

    fn read_record(&self, record: u64, charge: &mut Charge) {
        let run = self.small.cluster(&self.kind, record);
        charge.reads.push(self.at(run));
    }

    fn make_directory(&mut self, directory: u32, charge: &mut Charge) -> Result<(), FsError> {
        if self.small.directories.contains_key(&directory) {
            return Ok(());
        }
        let record = self.new_record(0, charge)?;
        let new = Directory {
            record,
            ..Directory::default()
        };
        self.small.directories.insert(directory, new);
        Ok(())
    }

    /// The block of a name must be in memory; it changes together with the directory's record.
    fn name(&mut self, entry: Entry, change: Change, charge: &mut Charge) {
        let Some(d) = self.small.directories.get(&entry.directory) else {
            return;
        };
        let n = d.blocks.len() as u64;
        if n == 0 {
            return;
        }
        // Names in order fill one block after the other; shuffled ones hit any.
        let block = if entry.ordered {
            (u64::from(entry.index) / self.kind.names.max(1)).min(n - 1)
        } else {
            mix(u64::from(entry.index)) % n
        };
        // A node of btrfs is read as a whole.
        let node = self.kind.node.max(1);
        let first = d.blocks[(block / node * node) as usize];
        charge.reads.push(self.at(Run {
            start: first,
            len: node,
        }));
        let (block, record) = (d.blocks[block as usize], d.record);
        if change != Change::None {
            self.join(block, charge);
            let record = self.small.record(&self.kind, record);
            self.join(record, charge);
            self.logged.name(change == Change::Made);
            charge.cpu += Span(self.kind.cpu[2]);
        }
    }

    fn create(&mut self, entry: Entry, size: u64, charge: &mut Charge) -> Result<(), FsError> {
        self.make_directory(entry.directory, charge)?;
        let mut run = None;
        if size > self.kind.resident {
            let blocks = size.div_ceil(self.kind.block);
            let first = self.space.take(0, blocks).ok_or(FsError::NoSpace)?;
            let whole = (first.len == blocks).then_some(first);
            let Some(whole) = whole.or_else(|| self.one_run(first, blocks)) else {
                return Err(FsError::NoSpace);
            };
            self.join_group(whole.start, charge);
            self.placed += blocks;
            (self.extents, self.items) = (self.extents + 1, self.items + 1);
            charge.cpu += Span(self.kind.cpu[1]);
            charge.written.push(self.at(whole));
            run = Some(whole);
        }
        let record = match self.new_record(0, charge) {
            Ok(record) => record,
            Err(error) => {
                run.into_iter().for_each(|run| self.space.give(run));
                return Err(error);
            }
        };
        let names = self.kind.names.max(1);
        let wanted = self.small.directories.get_mut(&entry.directory).map(|d| {
            d.entries += 1;
            (d.entries.div_ceil(names) > d.blocks.len() as u64).then_some(d.blocks.is_empty())
        });
        if let Some(Some(first)) = wanted
            && let Some(new) = self.name_blocks(first)
        {
            charge.made.push(self.at(new));
            self.join(new.start, charge);
            if let Some(d) = self.small.directories.get_mut(&entry.directory) {
                d.blocks.extend(new.start..new.end());
            }
        }
        if let Some(held) = self.first_node(entry.directory) {
            *held += 1;
        }
        self.name(entry, Change::Made, charge);
        let index = entry.index as usize;
        if self.small.files.len() <= index {
            self.small.files.resize(index + 1, SmallFile::default());
        }
        self.small.files[index] = SmallFile {
            record: record + 1,
            start: run.map_or(0, |run| run.start),
            len: run.map_or(0, |run| run.len),
            joined: self.transaction,
        };
        Ok(())
    }

    /// Instead of a run that is too short, one that is long enough, group by group.
    pub(super) fn one_run(&mut self, short: Run, blocks: u64) -> Option<Run> {
        self.space.give(short);
        let groups = 0..self.space.groups();
        groups.into_iter().find_map(|group| {
            let from = self.space.start_of(group);
            self.space.take_exact(group, from, blocks, 1)
        })
    }

    fn unlink(&mut self, entry: Entry, charge: &mut Charge) -> Result<(), FsError> {
        let small = self.small.file(entry.index)?;
        self.name(entry, Change::Removed, charge);
        self.read_record(small.record - 1, charge);
        let block = self.small.record(&self.kind, small.record - 1);
        self.join(block, charge);
        self.logged.record(small.joined != self.transaction);
        if small.len > 0 {
            let run = Run {
                start: small.start,
                len: small.len,
            };
            charge.dropped.push(self.at(run));
            self.release(run, charge);
        }
        self.small.free_record(small.record - 1);
        self.small.files[entry.index as usize] = SmallFile::default();
        if let Some(d) = self.small.directories.get_mut(&entry.directory) {
            d.entries = d.entries.saturating_sub(1);
        }
        if self.kind.cow {
            self.drop_leaves(block, small.record - 1, entry.directory);
        }
        Ok(())
    }
}

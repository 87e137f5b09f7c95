//! The log of xfs and NTFS, and the trees that btrfs copies.
use super::super::plan::{Commit, Place, Stage, Synced};
use super::super::space::{Run, Space};
use super::super::spec::FsSpec;
use super::kind::Kind;
use super::tree_log::TreeLog;
use super::{Extents, Heads};
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::{Lba, MIB, SECTOR};
use raidlab_layout::Btrfs;
use raidlab_layout::btrfs::{SUPER, SUPERS};

/// Nodes that every commit of btrfs copies: the paths of the file, extent, checksum and root trees,
/// each of two levels. Assumed.
const PATHS: u64 = 8;
/// Places of the superblocks of btrfs: on one device those that it has room for, on several what stands for them on all.
pub(super) fn supers(spec: &FsSpec) -> Vec<Place> {
    let at = |number: usize| match spec.spread {
        None => Lba(SUPERS[number].0 / SECTOR),
        Some(_) => Btrfs::super_at(number),
    };
    let fits = |place: &Place| place.lba.0 + MIB / SECTOR < spec.device_sectors;
    let place = |number| Place {
        lba: at(number),
        sectors: (SUPER.0 / SECTOR) as u32,
    };
    (0..SUPERS.len()).map(place).filter(fits).collect()
}

/// A stretch that is written round and round: a log, or one copy of the metadata of btrfs.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// One run of blocks where there was room.
    runs: Vec<Run>,
    /// Sectors of a block, and those that every write is a multiple of.
    per: u64,
    unit: u64,
    /// Sectors of one round: half of it when all is written twice.
    round: u64,
    head: u64,
    /// Sectors written since metadata last went home for want of room.
    used: u64,
}

impl Log {
    pub(super) fn new(kind: &Kind, space: &mut Space<Heads>) -> Option<Self> {
        let (mut goal, mut left, mut runs) = (kind.log_at, kind.log, Vec::new());
        while left > 0 {
            let run = space.take(goal, left)?;
            (goal, left) = (run.end(), left - run.len);
            runs.push(run);
        }
        let (per, unit) = (kind.block / SECTOR, kind.log_unit / SECTOR);
        Some(Self {
            runs,
            per,
            unit,
            round: (kind.log / kind.copies * per / unit * unit).max(unit),
            head: 0,
            used: 0,
        })
    }

    /// Where it begins.
    pub(super) fn first(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// Where it lies.
    #[cfg(test)]
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Sectors that so many bytes take.
    const fn sectors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(SECTOR).next_multiple_of(self.unit)
    }

    /// The next sectors, round the end, `copy` rounds further on.
    fn next(&self, sectors: u64, copy: u64) -> Vec<Place> {
        let (mut out, mut at, mut left) = (Vec::new(), self.head, sectors.min(self.round));
        while left > 0 {
            let n = left.min(self.round - at);
            let (mut skip, mut want) = (at + copy * self.round, n);
            for run in &self.runs {
                let (start, len) = (run.start * self.per, run.len * self.per);
                if skip < len && want > 0 {
                    let here = want.min(len - skip);
                    out.push(Place {
                        lba: Lba(start + skip),
                        sectors: here as u32,
                    });
                    (skip, want) = (0, want - here);
                } else {
                    skip = skip.saturating_sub(len);
                }
            }
            (at, left) = ((at + n) % self.round, left - n);
        }
        out
    }

    /// Whether less than a quarter is left (`xlog_grant_push_ail`), as nothing went home by itself: true once.
    const fn is_short(&mut self) -> bool {
        let short = self.used > self.round / 4 * 3;
        if short {
            self.used = 0;
        }
        short
    }

    fn advance(&mut self, sectors: u64) {
        self.head = (self.head + sectors) % self.round;
        self.used += sectors;
    }
}

impl Extents {
    /// Ends the transaction and takes nothing along.
    pub(super) fn end(&mut self) {
        self.running.clear();
        self.logged.end();
        self.tree = TreeLog::default();
        (self.placed, self.extents, self.items) = (0, 0, 0);
        self.spotted.clear();
        self.held.end();
        self.transaction += 1;
        for run in std::mem::take(&mut self.freed) {
            self.give(run);
        }
        self.set_reserve();
    }

    pub(in super::super) fn commit(&mut self) -> Option<Commit> {
        if self.running.is_empty() && self.placed == 0 && self.logged.is_empty() {
            return None;
        }
        let commit = if self.kind.node > 0 {
            self.copy_trees()
        } else {
            let homes: Vec<u64> = self.running.iter().copied().collect();
            Commit {
                data_first: false,
                stages: self.write_log(self.logged.bytes()),
                later: self.gather(&homes),
                home: self.log.is_short(),
                cpu: Span(20_000 + 1_000 * homes.len() as u64),
            }
        };
        self.end();
        Some(commit)
    }

    /// Sorted blocks as runs.
    fn gather(&self, blocks: &[u64]) -> Vec<Place> {
        let mut runs: Vec<Run> = Vec::new();
        for &start in blocks {
            match runs.last_mut() {
                Some(run) if run.end() == start => run.len += 1,
                _ => runs.push(Run { start, len: 1 }),
            }
        }
        runs.into_iter().map(|run| self.at(run)).collect()
    }

    /// So many bytes into the log, the last sectors filled up: at once, or each log buffer with a flush of its own.
    fn write_log(&mut self, bytes: u64) -> Vec<Stage> {
        let mut left = self.log.sectors(bytes.max(1));
        let part = match self.logged.part {
            part if part > 0 && self.kind.barriers => self.log.sectors(part),
            _ => left,
        };
        let mut stages = Vec::new();
        while left > 0 {
            let sectors = left.min(part);
            let writes = self.log.next(sectors, 0);
            self.log.advance(sectors);
            left -= sectors;
            stages.push(Stage {
                flush_before: self.kind.barriers,
                writes,
                durable: self.kind.barriers,
                ..Stage::default()
            });
        }
        stages
    }

    /// Copies of what changed go to new places, twice; then the superblocks.
    fn copy_trees(&mut self) -> Commit {
        let nodes =
            self.running.len() as u64 / self.kind.node.max(1) + self.leaves_of_data() + PATHS;
        Commit {
            data_first: true,
            stages: self.write_nodes(nodes, SUPERS.len()),
            later: Vec::new(),
            home: false,
            cpu: Span(100_000 + 15_000 * nodes),
        }
    }

    /// So many nodes to new places, and then so many superblocks, as far as there is room for them.
    fn write_nodes(&mut self, nodes: u64, supers: usize) -> Vec<Stage> {
        let sectors = self.log.sectors(nodes * self.kind.node_bytes());
        let copies = (0..self.kind.copies).map(|copy| self.log.next(sectors, copy));
        let nodes = copies.flatten().collect();
        self.log.advance(sectors);
        let supers = self.supers.iter().take(supers).copied();
        vec![
            Stage {
                writes: nodes,
                ..Stage::default()
            },
            Stage {
                flush_before: self.kind.barriers,
                writes: supers.collect(),
                durable: self.kind.barriers,
                ..Stage::default()
            },
        ]
    }

    pub(in super::super) fn sync(
        &mut self,
        file: Option<FileId>,
        data_only: bool,
        _: u64,
    ) -> Synced {
        let (joined, left) = match file.and_then(|f| self.files.get(&f)) {
            Some(file) => file.stamp.last(data_only, self.transaction),
            None => (!self.running.is_empty(), false),
        };
        let mut synced = Synced {
            data: file.is_some(),
            flush: self.kind.barriers && !joined,
            cpu: Span(self.kind.cpu[2]),
            ..Synced::default()
        };
        if self.kind.node == 0 {
            (synced.commit, synced.under_way) = (joined, left);
            synced.flush_shared = self.kind.barriers;
        } else if joined {
            // The running transaction goes on.
            if let Some(file) = file.and_then(|f| self.files.get_mut(&f)) {
                let fresh = std::mem::take(&mut file.fresh);
                self.tree.file(fresh, self.kind.block);
            }
            synced.log = true;
        }
        synced
    }

    /// The log of trees with all that was added to it.
    pub(in super::super) fn write_tree_log(&mut self) -> Vec<Stage> {
        let nodes = self.tree.write(self.kind.node_bytes());
        // `write_all_supers` with one mirror.
        self.write_nodes(nodes, 1)
    }
}

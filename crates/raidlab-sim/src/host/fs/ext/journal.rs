//! The journal: a run of blocks that is written round and round.
use super::super::FsError;
use super::super::plan::{Commit, Place, Stage};
use super::super::space::{Run, Space};
use super::super::spec::FsSpec;
use super::geometry::Geometry;
use raidlab_experiment::kernel::{FilesystemKind, JournalMode, Kernel};
use std::collections::VecDeque;

/// A transaction in the journal whose blocks may not be home yet.
#[derive(Clone, Debug)]
struct Logged {
    /// Blocks of the journal.
    blocks: u64,
    /// Where they belong.
    homes: Vec<u64>,
}

/// The journal (jbd, jbd2); without one, metadata is written home.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// Where it lies: one run where there was room.
    runs: Vec<Run>,
    /// Blocks, the superblock of the journal included.
    blocks: u64,
    /// Next block to write, from 1: 0 is its superblock.
    head: u64,
    /// Transactions not known to be home, oldest first.
    logged: VecDeque<Logged>,
    /// Blocks they take.
    used: u64,
    barriers: bool,
    /// Blocks that a descriptor block names.
    tags: u64,
}

impl Journal {
    /// Takes its room from the free space as mke2fs does: from the start of the device, from its
    /// middle since ext4's time.
    pub(super) fn new(
        spec: &FsSpec,
        geometry: &Geometry,
        space: &mut Space<Geometry>,
    ) -> Result<Self, FsError> {
        let block = u64::from(geometry.block);
        let ext4 = spec.kind == FilesystemKind::Ext4;
        let without = spec.kind == FilesystemKind::Ext2 || spec.mode == Some(JournalMode::None);
        let blocks = match spec.journal {
            _ if without => 0,
            0 => default_blocks(geometry.blocks, spec.kernel),
            // JFS_MIN_JOURNAL_BLOCKS.
            given if given / block < 1024 || given / block > geometry.blocks / 2 => {
                return Err(FsError::Size {
                    kind: spec.kind,
                    what: "journal",
                    given,
                });
            }
            given => given / block,
        };
        let middle = spec.kernel >= Kernel::Linux(2, 6, 28);
        let mut goal = if middle {
            geometry.groups() / 2 * geometry.per_group
        } else {
            0
        };
        let (mut runs, mut left) = (Vec::new(), blocks);
        while left > 0 {
            let run = space.take(goal, left).ok_or(FsError::DeviceTooSmall {
                sectors: spec.device_sectors,
                kind: spec.kind,
            })?;
            (goal, left) = (run.end(), left - run.len);
            runs.push(run);
        }
        Ok(Self {
            runs,
            blocks,
            head: 1,
            logged: VecDeque::new(),
            used: 0,
            // On by default in ext4; in ext3 from 3.1 on.
            barriers: spec
                .barriers
                .unwrap_or(ext4 || spec.kernel >= Kernel::Linux(3, 1, 0)),
            // Tags of 8 bytes, of 16 with 64-bit numbers and checksums; a header of 12, a UUID of 16.
            tags: (block - 28) / if ext4 { 16 } else { 8 },
        })
    }

    pub(super) const fn exists(&self) -> bool {
        self.blocks > 0
    }

    pub(super) const fn barriers(&self) -> bool {
        self.barriers && self.blocks > 0
    }

    /// Where it lies.
    #[cfg(test)]
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Most blocks of one transaction (`j_max_transaction_buffers`).
    pub(super) const fn most(&self) -> u64 {
        self.blocks / 4
    }

    /// Writes a transaction.
    pub(super) fn commit(
        &mut self,
        geometry: &Geometry,
        homes: &[u64],
        data: u64,
        revokes: bool,
    ) -> Commit {
        let home = |blocks: &[u64]| gather(geometry, blocks);
        if !self.exists() {
            // ext2: changed metadata is a dirty page like any other.
            return Commit {
                later: home(homes),
                ..Commit::default()
            };
        }
        let logged = homes.len() as u64 + data;
        let blocks = logged + logged.div_ceil(self.tags) + u64::from(revokes);
        let mut stages = Vec::new();
        // jbd waits for room for a largest transaction, a quarter of the journal.
        if self.used + blocks + self.most() > self.blocks - 1 {
            stages.push(self.checkpoint(geometry));
        }
        let ring = self.blocks - 1;
        let blocks = blocks.min(ring - 1);
        let writes = self.advance(geometry, blocks);
        stages.push(Stage {
            writes,
            ..Stage::default()
        });
        let writes = self.advance(geometry, 1);
        stages.push(Stage {
            flush_before: self.barriers,
            writes,
            durable: self.barriers,
            ..Stage::default()
        });
        self.used += blocks + 1;
        self.logged.push_back(Logged {
            blocks: blocks + 1,
            homes: homes.to_vec(),
        });
        Commit {
            stages,
            later: home(homes),
            ..Commit::default()
        }
    }

    /// Frees at least half of the journal, oldest transactions first.
    fn checkpoint(&mut self, geometry: &Geometry) -> Stage {
        let mut homes = Vec::new();
        while self.used > self.blocks / 2
            && let Some(logged) = self.logged.pop_front()
        {
            self.used -= logged.blocks;
            homes.extend(logged.homes);
        }
        homes.sort_unstable();
        homes.dedup();
        Stage {
            writes: gather(geometry, &homes),
            durable: self.barriers,
            checkpoint: true,
            ..Stage::default()
        }
    }

    /// The next blocks of the journal, round its end.
    fn advance(&mut self, geometry: &Geometry, mut blocks: u64) -> Vec<Place> {
        let mut writes = Vec::new();
        while blocks > 0 {
            let (mut skip, mut here) = (self.head, None);
            for run in &self.runs {
                if skip < run.len {
                    here = Some((run.start + skip, run.len - skip));
                    break;
                }
                skip -= run.len;
            }
            let Some((start, room)) = here else {
                self.head = 1;
                continue;
            };
            let n = room.min(blocks);
            writes.push(geometry.place(start, n));
            self.head += n;
            blocks -= n;
        }
        writes
    }
}

/// Sorted blocks as runs.
pub(super) fn gather(geometry: &Geometry, blocks: &[u64]) -> Vec<Place> {
    let mut runs: Vec<Run> = Vec::new();
    for &start in blocks {
        match runs.last_mut() {
            Some(run) if run.end() == start => run.len += 1,
            _ => runs.push(Run { start, len: 1 }),
        }
    }
    runs.iter()
        .map(|run| geometry.place(run.start, run.len))
        .collect()
}

/// `ext2fs_default_journal_size` (known, not re-read): up to 128 MiB with 4 KiB blocks; up to 1 GiB since e2fsprogs
/// 1.43.2 (2016, the time of 4.7).
fn default_blocks(blocks: u64, kernel: Kernel) -> u64 {
    const K: u64 = 1024;
    let old = match blocks {
        _ if blocks < 32 * K => 1024,
        _ if blocks < 256 * K => 4096,
        _ if blocks < 512 * K => 8192,
        _ if blocks < 1024 * K => 16_384,
        _ => 32_768,
    };
    if kernel < Kernel::Linux(4, 7, 0) {
        return old;
    }
    match blocks {
        _ if blocks < 512 * K => old,
        _ if blocks < 4096 * K => 16_384,
        _ if blocks < 8192 * K => 32_768,
        _ if blocks < 16_384 * K => 65_536,
        _ if blocks < 32_768 * K => 131_072,
        _ => 262_144,
    }
}

//! The allocator: metaslabs, their cursors, copies far from each other, deferred frees.
use super::super::FsError;
use super::super::plan::Place;
use super::super::space::{Bare, Run, Space};
use super::super::spec::FsSpec;
use raidlab_core::units::{Bytes, KIB, Lba, MIB, SECTOR};
use raidlab_layout::ZfsMirror;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Labels and boot block before the first metaslab (`VDEV_LABEL_START_SIZE`).
const START: u64 = 4 * MIB / SECTOR;
/// Bytes of a label.
const LABEL: u64 = 256 * KIB;
/// Metaslabs that a vdev is cut into, about.
const METASLABS: u64 = 200;
/// Transaction groups that freed space waits (`TXG_DEFER_SIZE`).
const DEFER: usize = 2;
/// Most copies of a block.
const COPIES: usize = 3;

/// Free space of a vdev. Runs are in sectors after [`START`].
#[derive(Clone, Debug)]
pub(super) struct Pool {
    mirror: ZfsMirror,
    space: Space<Bare>,
    /// Sectors of a metaslab.
    metaslab: u64,
    /// Where the next block goes in a metaslab, by the largest power of two that divides its size.
    cursors: BTreeMap<u64, [u64; 20]>,
    /// The metaslab that copies are put in.
    active: [Option<u64>; COPIES],
    /// Metaslabs that changed in this transaction group: their space maps are written.
    touched: BTreeSet<u64>,
    /// Freed by this group, and by the ones before that still wait.
    freed: Vec<Run>,
    deferred: VecDeque<Vec<Run>>,
    /// Sectors that are never given to files.
    slop: u64,
    /// Sectors of the device, in whole labels.
    device: u64,
}

impl Pool {
    pub(super) fn new(spec: &FsSpec) -> Result<Self, FsError> {
        let bytes = Bytes(spec.device_bytes());
        let too_small = FsError::DeviceTooSmall {
            sectors: spec.device_sectors,
            kind: spec.kind,
        };
        // The rules of a mirror's child hold for any vdev without parity.
        let mirror = ZfsMirror::new(&[bytes, bytes], spec.ashift).map_err(|_| too_small)?;
        let room = mirror.allocatable().0;
        // vdev_metaslab_set_size: the power of two above a 200th, at least a largest block of its time.
        let metaslab = (room / METASLABS + 1).next_power_of_two().max(16 * MIB);
        let metaslab = metaslab.min(room) / SECTOR;
        let whole = room / SECTOR / metaslab * metaslab;
        let slop = (whole / 32).max(MIB / SECTOR);
        Ok(Self {
            mirror,
            space: Space::new(Bare, whole, metaslab),
            metaslab,
            cursors: BTreeMap::new(),
            active: [None; COPIES],
            touched: BTreeSet::new(),
            freed: Vec::new(),
            deferred: VecDeque::new(),
            slop,
            device: bytes.0 / LABEL * LABEL / SECTOR,
        })
    }

    /// Sectors that a block of so many bytes takes.
    pub(super) const fn sectors(&self, bytes: u64) -> u64 {
        self.mirror.allocated(Bytes(bytes)).0 / SECTOR
    }

    /// Whether files may take so many more sectors.
    pub(super) const fn has(&self, sectors: u64) -> bool {
        self.space.free() >= self.slop + sectors
    }

    pub(super) const fn place(run: Run) -> Place {
        Place {
            lba: Lba(START + run.start),
            sectors: run.len as u32,
        }
    }

    /// Puts one copy of a block of so many bytes: copy 0 where files go on, the others far from it.
    pub(super) fn allocate(&mut self, bytes: u64, copy: usize) -> Option<Run> {
        let len = self.sectors(bytes);
        if let Some(metaslab) = self.active[copy]
            && let Some(run) = self.take(metaslab, len)
        {
            return Some(run);
        }
        let mut left = self.candidates(copy);
        // The one with the most weight first; all of them before giving up.
        while let Some(best) = best(&left) {
            let (metaslab, _) = left.swap_remove(best);
            if let Some(run) = self.take(metaslab, len) {
                self.active[copy] = Some(metaslab);
                return Some(run);
            }
        }
        // No room far away: copies may lie together.
        (copy > 0).then(|| self.allocate(bytes, 0)).flatten()
    }

    /// Metaslabs for a copy with their weight: free space, up to twice as much for low addresses,
    /// which are outer tracks.
    fn candidates(&self, copy: usize) -> Vec<(u64, u128)> {
        let count = self.space.groups();
        // An eighth of the vdev apart, half as much again as long as the metaslab is untouched.
        let apart = count / 8 + count / 16;
        let far = |m: u64| {
            let others = self.active[..copy].iter().flatten();
            others.into_iter().all(|o| m.abs_diff(*o) > apart)
        };
        (0..count)
            .filter(|m| far(*m))
            .map(|m| {
                (
                    m,
                    u128::from(self.space.free_in(m)) * u128::from(2 * count - m),
                )
            })
            .filter(|(_, weight)| *weight > 0)
            .collect()
    }

    /// Dynamic fit while there is room (`metaslab_df_alloc`): first fit from the cursor of this
    /// size's alignment, without regard to alignment of the place. Best fit when little is left is
    /// not modelled.
    fn take(&mut self, metaslab: u64, len: u64) -> Option<Run> {
        let first = metaslab * self.metaslab;
        let cursors = self.cursors.entry(metaslab).or_insert([first; 20]);
        let cursor = &mut cursors[(len.trailing_zeros() as usize).min(19)];
        let run = self.space.take_exact(metaslab, *cursor, len).or_else(|| {
            *cursor = first;
            self.space.take_exact(metaslab, first, len)
        })?;
        *cursor = run.end();
        self.touched.insert(metaslab);
        Some(run)
    }

    /// Frees a run: it can be taken again some groups later.
    pub(super) fn free(&mut self, run: Run) {
        self.freed.push(run);
    }

    /// Metaslabs that changed in this group, those with freed space included.
    pub(super) fn touched(&mut self) -> u64 {
        for run in &self.freed {
            self.touched.insert(run.start / self.metaslab);
        }
        self.touched.len() as u64
    }

    /// Ends the group.
    pub(super) fn end(&mut self) {
        self.touched.clear();
        self.deferred.push_back(std::mem::take(&mut self.freed));
        if self.deferred.len() > DEFER {
            for run in self.deferred.pop_front().into_iter().flatten() {
                self.space.give(run);
            }
        }
    }

    /// Where the uberblock of a group goes: in all four labels, in a ring of 128 KiB of slots of
    /// 1 KiB or, if that is more, 2^ashift.
    pub(super) fn uberblocks(&self, group: u64) -> Vec<Place> {
        let slot = (1_u64 << self.mirror.ashift()).max(KIB);
        let at = LABEL / 2 + group % (LABEL / 2 / slot) * slot;
        let label = LABEL / SECTOR;
        [0, label, self.device - 2 * label, self.device - label]
            .map(|label| Place {
                lba: Lba(label + at / SECTOR),
                sectors: (slot / SECTOR) as u32,
            })
            .to_vec()
    }
}

/// Index of the heaviest; of equals the first.
fn best(weights: &[(u64, u128)]) -> Option<usize> {
    let rank = |i: &usize| (weights[*i].1, std::cmp::Reverse(weights[*i].0));
    (0..weights.len()).max_by_key(rank)
}

//! The allocator: vdevs in turn, metaslabs, their cursors, copies far from each other, deferred frees.
use super::super::FsError;
use super::super::plan::Place;
use super::super::runs::Runs;
use super::super::space::{Bare, Run, Space};
use super::super::spec::FsSpec;
use raidlab_core::rng::mix;
use raidlab_core::units::{Bytes, KIB, Lba, MIB, SECTOR};
use raidlab_experiment::kernel::Kernel;
use raidlab_layout::zfs::{END, LABEL, metaslab};
use raidlab_layout::{Vdev, ZfsMirror};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Labels and boot block before the first metaslab (`VDEV_LABEL_START_SIZE`).
const START: u64 = raidlab_layout::zfs::START / SECTOR;
/// Bytes for each child that are given of a vdev before the next has its turn (`metaslab_aliquot`, 512 KiB).
const ALIQUOT: u64 = 512 * KIB;
/// Transaction groups that freed space waits (`TXG_DEFER_SIZE`).
const DEFER: usize = 2;
/// Most copies of a block.
const COPIES: usize = 3;
/// ZFS 2.0 (2020, the time of 5.9) puts blocks anywhere (openzfs 8877: "looping in metaslab_block_picker").
const UNALIGNED: Kernel = Kernel::Linux(5, 9, 0);
/// Allocators of a pool since 0.8 (2019, the time of 5.1): each puts its blocks in metaslabs of its own
/// (`spa_allocators`).
const ALLOCATORS: usize = 4;

/// Free space of all vdevs. Runs are in sectors after [`START`] of the first; they are as long as what a block has to be
/// written, which of RAID-Z is less than it takes.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    vdevs: Vec<VdevSpace>,
    /// Whose turn it is, and bytes that were given since that began.
    rotor: usize,
    given: u64,
    /// The vdev of the block or copy that was placed last.
    last: usize,
    /// Freed by this group, and by the ones before that still wait.
    freed: Vec<Run>,
    deferred: VecDeque<Vec<Run>>,
    /// Sectors that are never given to files.
    slop: u64,
    /// Allocators: [`ALLOCATORS`], or one before there were several.
    allocators: u64,
}

/// Free space of a vdev, in sectors of its own.
#[derive(Clone, Debug)]
struct VdevSpace {
    vdev: Vdev,
    /// Sectors of the vdevs before.
    base: u64,
    space: Space<Bare>,
    /// Sectors of a metaslab.
    metaslab: u64,
    /// Where the next block goes in a metaslab, by the largest power of two that divides its size.
    cursors: BTreeMap<u64, [u64; 20]>,
    /// The metaslab that copies are put in, by allocator.
    active: [[Option<u64>; COPIES]; ALLOCATORS],
    /// Metaslabs that changed in this transaction group: their space maps are written.
    touched: BTreeSet<u64>,
    /// Sectors with labels, in whole labels.
    device: u64,
    /// Blocks begin at multiples of the largest power of two that divides their size.
    aligns: bool,
}

impl Pool {
    pub(super) fn new(spec: &FsSpec) -> Result<Self, FsError> {
        let bytes = Bytes(spec.device_bytes());
        let too_small = FsError::DeviceTooSmall {
            sectors: spec.device_sectors,
            kind: spec.kind,
        };
        let mut vdevs = Vec::new();
        if spec.vdevs.is_empty() {
            // The rules of a mirror's child hold for any vdev without parity.
            let mirror = ZfsMirror::new(&[bytes, bytes], spec.ashift).map_err(|_| too_small)?;
            let device = bytes.0 / LABEL * LABEL / SECTOR;
            vdevs.push(VdevSpace::new(Vdev::Mirror(mirror), 0, device, spec.kernel));
        }
        let mut base = 0;
        for vdev in &spec.vdevs {
            let device = (START * SECTOR + vdev.allocatable().0 + END) / SECTOR;
            vdevs.push(VdevSpace::new(vdev.clone(), base, device, spec.kernel));
            base += device;
        }
        let whole: u64 = vdevs.iter().map(|vdev| vdev.space.free()).sum();
        Ok(Self {
            slop: (whole / 32).max(MIB / SECTOR),
            vdevs,
            rotor: 0,
            given: 0,
            last: 0,
            freed: Vec::new(),
            deferred: VecDeque::new(),
            allocators: if spec.kernel >= Kernel::ZFS_0_8 {
                ALLOCATORS as u64
            } else {
                1
            },
        })
    }

    /// Sectors that a block of so many bytes has: what is read and written of it beside parity.
    pub(super) fn sectors(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(1 << self.vdevs[0].vdev.ashift()) / SECTOR
    }

    /// Sectors that it takes of the pool: parity, and what RAID-Z fills up with, included.
    pub(super) fn takes(&self, bytes: u64) -> u64 {
        let of = |vdev: &VdevSpace| vdev.vdev.allocated(Bytes(bytes)).0 / SECTOR;
        self.vdevs.iter().map(of).max().unwrap_or(0)
    }

    /// Parities that writing a block computes.
    pub(super) fn parities(&self) -> usize {
        match &self.vdevs[0].vdev {
            Vdev::Mirror(_) => 0,
            Vdev::Raidz(raidz) => raidz.parity(),
        }
    }

    /// Whether files may take so many more sectors.
    pub(super) fn has(&self, sectors: u64) -> bool {
        let free: u64 = self.vdevs.iter().map(|vdev| vdev.space.free()).sum();
        free >= self.slop + sectors
    }

    /// Where a block of metadata is read, of which this is the place of each copy; it is number `index` of blocks of so many sectors.
    pub(super) fn read(&self, copies: &mut [Runs; 2], index: u64, unit: u64) -> Option<Place> {
        let at = index * unit;
        let mut found = copies.iter_mut().map(|runs| {
            let run = runs.from(at).filter(|run| run.at == at)?;
            Some(Run {
                start: run.dev,
                len: run.len.min(unit),
            })
        });
        let first = found.next().flatten()?;
        Some(Self::place(self.read_of(first, found.next().flatten())))
    }

    pub(super) const fn place(run: Run) -> Place {
        Place {
            lba: Lba(START + run.start),
            sectors: run.len as u32,
        }
    }

    /// Puts one copy of a block of an [`owner`] and so many bytes: copy 0 on the vdev whose turn it is, where files go on, the others on the
    /// next vdev, or far from it when there is one alone. A vdev has its turn for [`ALIQUOT`] a child
    /// (`metaslab_alloc_dva`, without its bias to vdevs that are emptier).
    pub(super) fn allocate(&mut self, owner: u64, bytes: u64, copy: usize) -> Option<Run> {
        let count = self.vdevs.len();
        let allocator = (mix(owner) % self.allocators) as usize;
        let first = match copy {
            0 => self.rotor,
            _ => (self.last + 1) % count,
        };
        for turn in 0..count {
            let number = (first + turn) % count;
            let Some(run) = self.vdevs[number].allocate(allocator, bytes, copy) else {
                continue;
            };
            self.last = number;
            self.given += self.vdevs[number].vdev.allocated(Bytes(bytes)).0;
            if self.given >= ALIQUOT * self.vdevs[number].vdev.children() as u64 {
                (self.rotor, self.given) = ((number + 1) % count, 0);
            }
            return Some(run);
        }
        None
    }

    /// Which of two copies of a block is read. The root of a pool is a mirror to ZFS, whose children are the vdevs with a copy: one is
    /// drawn, and if one before it lies on the same vdev, that one is read (`vdev_mirror_map_alloc` with `spa_get_random` up to 0.6.5,
    /// `vdev_mirror_dva_select` since 0.7; the loads of vdevs are not looked at, `vdev_mirror_load`). ZFS draws for each read and
    /// knows the block in its cache by the first copy; here each place is drawn once, which comes to the same.
    pub(super) fn read_of(&self, first: Run, second: Option<Run>) -> Run {
        match second {
            Some(second) if self.number_of(&second) != self.number_of(&first) => {
                // Neighbours are drawn by themselves.
                [first, second][(mix(mix(first.start) ^ second.start) & 1) as usize]
            }
            _ => first,
        }
    }

    /// Frees a run, one block of RAID-Z or any run of others: it can be taken again some groups later.
    pub(super) fn free(&mut self, run: Run) {
        self.freed.push(run);
    }

    fn number_of(&self, run: &Run) -> usize {
        let after = self.vdevs.partition_point(|vdev| vdev.base <= run.start);
        after.saturating_sub(1)
    }

    fn vdev_of(&mut self, run: &Run) -> &mut VdevSpace {
        let number = self.number_of(run);
        &mut self.vdevs[number]
    }

    /// Metaslabs that changed in this group, those with freed space included.
    pub(super) fn touched(&mut self) -> u64 {
        for run in std::mem::take(&mut self.freed) {
            let vdev = self.vdev_of(&run);
            let metaslab = (run.start - vdev.base) / vdev.metaslab;
            vdev.touched.insert(metaslab);
            self.freed.push(run);
        }
        let touched = self.vdevs.iter().map(|vdev| vdev.touched.len() as u64);
        touched.sum()
    }

    /// Ends the group.
    pub(super) fn end(&mut self) {
        self.vdevs.iter_mut().for_each(|vdev| vdev.touched.clear());
        self.deferred.push_back(std::mem::take(&mut self.freed));
        if self.deferred.len() > DEFER {
            for run in self.deferred.pop_front().into_iter().flatten() {
                self.vdev_of(&run).give(run);
            }
        }
    }

    /// Where the uberblock of a group goes: in all four labels of each vdev, of three in turn when there are more.
    pub(super) fn uberblocks(&self, group: u64) -> Vec<Place> {
        let count = self.vdevs.len();
        let first = (group % count as u64) as usize;
        let numbers = (0..count.min(COPIES)).map(|turn| (first + turn) % count);
        let vdevs = numbers.map(|number| &self.vdevs[number]);
        vdevs.flat_map(|vdev| vdev.uberblocks(group)).collect()
    }
}

impl VdevSpace {
    fn new(vdev: Vdev, base: u64, device: u64, kernel: Kernel) -> Self {
        let room = vdev.allocatable().0;
        let metaslab = metaslab(Bytes(room), kernel >= Kernel::ZFS_0_8).0.min(room) / SECTOR;
        let whole = room / SECTOR / metaslab * metaslab;
        Self {
            vdev,
            base,
            space: Space::new(Bare, whole, metaslab),
            metaslab,
            cursors: BTreeMap::new(),
            active: [[None; COPIES]; ALLOCATORS],
            touched: BTreeSet::new(),
            device,
            aligns: kernel < UNALIGNED,
        }
    }

    fn allocate(&mut self, allocator: usize, bytes: u64, copy: usize) -> Option<Run> {
        let len = self.vdev.allocated(Bytes(bytes)).0 / SECTOR;
        let run = self.allocate_sectors(allocator, len, copy)?;
        Some(Run {
            start: self.base + run.start,
            len: bytes.next_multiple_of(1 << self.vdev.ashift()) / SECTOR,
        })
    }

    fn allocate_sectors(&mut self, allocator: usize, len: u64, copy: usize) -> Option<Run> {
        if let Some(metaslab) = self.active[allocator][copy]
            && let Some(run) = self.take(metaslab, len)
        {
            return Some(run);
        }
        let mut left = self.candidates(allocator, copy);
        // The one with the most weight first; all of them before giving up.
        while let Some(best) = best(&left) {
            let (metaslab, _) = left.swap_remove(best);
            if let Some(run) = self.take(metaslab, len) {
                self.active[allocator][copy] = Some(metaslab);
                return Some(run);
            }
        }
        // No room far away: copies may lie together.
        if copy > 0 {
            return self.allocate_sectors(allocator, len, 0);
        }
        // Nor in a metaslab that is not another allocator's: any of theirs then. One with room enough may have it in
        // pieces.
        let theirs = self.active;
        let mut theirs = theirs.iter().flatten().flatten();
        theirs.find_map(|metaslab| self.take(*metaslab, len))
    }

    /// Metaslabs for a copy with their weight: free space, up to twice as much for low addresses,
    /// which are outer tracks. Those that another allocator has are not among them (`metaslab_group_alloc_normal`).
    fn candidates(&self, allocator: usize, copy: usize) -> Vec<(u64, u128)> {
        let count = self.space.groups();
        // An eighth of the vdev apart, half as much again as long as the metaslab is untouched.
        let apart = count / 8 + count / 16;
        let far = |m: u64| {
            let copies = self.active[allocator][..copy].iter().flatten();
            let others = (0..ALLOCATORS).filter(|other| *other != allocator);
            let mut theirs = others.flat_map(|other| self.active[other]).flatten();
            copies.into_iter().all(|o| m.abs_diff(*o) > apart) && !theirs.any(|their| their == m)
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

    /// Dynamic fit while there is room (`metaslab_df_alloc`): first fit from the cursor of this size's alignment, the
    /// largest power of two that divides it. Before 2.0 the place has that alignment, too (`P2ROUNDUP` in
    /// `metaslab_block_picker`). Best fit when little is left is not modelled.
    fn take(&mut self, metaslab: u64, len: u64) -> Option<Run> {
        let first = metaslab * self.metaslab;
        let cursors = self.cursors.entry(metaslab).or_insert([first; 20]);
        let power = len.trailing_zeros().min(19);
        let align = if self.aligns { 1 << power } else { 1 };
        let cursor = &mut cursors[power as usize];
        let run = self.space.take_exact(metaslab, *cursor, len, align);
        let run = run.or_else(|| {
            *cursor = first;
            self.space.take_exact(metaslab, first, len, align)
        })?;
        *cursor = run.end();
        self.touched.insert(metaslab);
        Some(run)
    }

    /// Takes back what a run, in sectors of the pool, has taken here.
    fn give(&mut self, run: Run) {
        self.space.give(Run {
            start: run.start - self.base,
            len: self.vdev.allocated(Bytes(run.len * SECTOR)).0 / SECTOR,
        });
    }

    /// In all four labels, in a ring of 128 KiB of slots of 1 KiB or, if that is more, 2^ashift.
    fn uberblocks(&self, group: u64) -> [Place; 4] {
        let slot = (1_u64 << self.vdev.ashift()).max(KIB);
        let at = LABEL / 2 + group % (LABEL / 2 / slot) * slot;
        let label = LABEL / SECTOR;
        [0, label, self.device - 2 * label, self.device - label].map(|label| Place {
            lba: Lba(self.base + label + at / SECTOR),
            sectors: (slot / SECTOR) as u32,
        })
    }
}

/// Whose a block is, an object's and of which level: those of one are put together, by one allocator. ZFS hashes the two with the
/// object set and 2^20 blocks of the object (`zio_dva_throttle`); its hash is another one, so that only how many fall
/// together is alike.
pub(super) fn owner(object: u64, level: u64) -> u64 {
    object << 8 | level
}

/// Index of the heaviest; of equals the first.
fn best(weights: &[(u64, u128)]) -> Option<usize> {
    let rank = |i: &usize| (weights[*i].1, std::cmp::Reverse(weights[*i].0));
    (0..weights.len()).max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::units::GIB;
    use raidlab_experiment::kernel::FilesystemKind;

    #[test]
    fn room_in_one_piece_is_found_in_a_metaslab_of_another_allocator() {
        let mut spec = FsSpec::new(FilesystemKind::Zfs, Kernel::DEFAULT, GIB / SECTOR);
        spec.ashift = 12;
        let mut pool = Pool::new(&spec).unwrap();
        // An owner for each allocator; each but the first begins a metaslab.
        let owner_of = |number: u64| (0..).find(|o| mix(*o) % pool.allocators == number).unwrap();
        let owners: Vec<u64> = (0..ALLOCATORS as u64).map(owner_of).collect();
        for owner in &owners[1..] {
            pool.allocate(*owner, 64 * KIB, 0).unwrap();
        }
        // The first fills all the others, and every second block is free again: room, but in small pieces.
        let mut runs = Vec::new();
        let untouched = 3 * 60 * MIB / SECTOR;
        while pool.has(untouched) {
            runs.push(pool.allocate(owners[0], 64 * KIB, 0).unwrap());
        }
        runs.into_iter().step_by(2).for_each(|run| pool.free(run));
        (0..=DEFER).for_each(|_| pool.end());
        for _ in 0..1000 {
            assert!(pool.allocate(owners[0], 128 * KIB, 0).is_some());
        }
    }
}

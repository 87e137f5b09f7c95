//! Groups that directories go to: all are made in one directory, the working directory of a run, which is of the top level.
use super::super::spec::FsSpec;
use super::Ext;
use super::geometry::Geometry;
use raidlab_core::rng::mix;
use raidlab_experiment::kernel::{FilesystemKind, Kernel};
use std::collections::BTreeMap;

/// Directories that mke2fs makes: the root and `lost+found`.
const OWN: u64 = 2;

/// What a directory counts for at least, in blocks and in inodes (`BLOCK_COST`, `INODE_COST`, `fs/ext2/ialloc.c`).
const COST: (u64, u64) = (256, 64);

/// How the kernel chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The group with most free blocks: each to another one, here by a hash of its number (`find_group_dir`, before 2.5.46, known
    /// and not re-read).
    Emptiest,
    /// Orlov's: the parent's group, or the first after it that has not too many (`find_group_orlov`).
    Parents,
    /// So does ext2, whose groups may not have taken too many directories without files either (`s_debts`).
    InDebt,
}

/// Where directories are.
#[derive(Clone, Debug)]
pub(super) struct Homes {
    choice: Choice,
    /// Groups that are asked as one (`flex_bg`).
    together: u64,
    /// Directories that those may have more than the mean has.
    most: u64,
    /// Directories of those.
    of: BTreeMap<u64, u64>,
    /// Directories of all.
    all: u64,
    /// Directories less files that were made in a group since it was mounted, but never below zero.
    debts: BTreeMap<u64, u64>,
}

impl Homes {
    pub(super) fn new(spec: &FsSpec, geometry: &Geometry) -> Self {
        let choice = match spec.kind {
            _ if spec.kernel < Kernel::Linux(2, 6, 0) => Choice::Emptiest,
            FilesystemKind::Ext2 => Choice::InDebt,
            _ => Choice::Parents,
        };
        // "ext4: make directory inode spreading reflect flexbg size", 6.0.
        let of_each = spec.kernel >= Kernel::Linux(6, 0, 0);
        let wide = if of_each { geometry.flex } else { 1 };
        let home = home(geometry);
        Self {
            choice,
            together: geometry.flex,
            most: geometry.inodes * wide / 16,
            of: BTreeMap::from([(home / geometry.flex, 1)]),
            all: OWN + 1,
            debts: BTreeMap::from([(home, 1)]),
        }
    }

    /// A group has a directory more.
    pub(super) fn took(&mut self, group: u64) {
        *self.of.entry(group / self.together).or_default() += 1;
        *self.debts.entry(group).or_default() += 1;
        self.all += 1;
    }

    /// It has one less.
    pub(super) fn gave(&mut self, group: u64) {
        if let Some(count) = self.of.get_mut(&(group / self.together)) {
            *count = count.saturating_sub(1);
        }
        self.all -= 1;
    }

    /// A file was made there.
    pub(super) fn filled(&mut self, group: u64) {
        if let Some(debt) = self.debts.get_mut(&group) {
            *debt = debt.saturating_sub(1);
        }
    }

    /// Whether a group may take one more, with so many groups asked as one and a debt that is too much.
    fn may_take(&self, group: u64, units: u64, debt: u64) -> bool {
        let of = |map: &BTreeMap<u64, u64>, at| map.get(&at).copied().unwrap_or(0);
        of(&self.of, group / self.together) < self.all / units + self.most
            && (self.choice != Choice::InDebt || of(&self.debts, group) < debt)
    }
}

/// Group of the working directory: those of the top level are spread by chance.
fn home(geometry: &Geometry) -> u64 {
    mix(1) % geometry.groups()
}

impl Ext {
    /// The group that a new directory goes to. That a group is full of files is not looked at: directories are made first.
    pub(super) fn group_of_directory(&self, directory: u32) -> u64 {
        let (geometry, homes) = (&self.geometry, &self.names.homes);
        let groups = geometry.groups();
        if homes.choice == Choice::Emptiest {
            return mix(u64::from(directory) + 1) % groups;
        }
        let used = geometry.blocks.saturating_sub(self.space.free());
        let each = (used / homes.all).max(COST.0);
        let debt = (geometry.per_group / each)
            .min(geometry.inodes / COST.1)
            .clamp(1, 255);
        let (home, units) = (home(geometry), groups.div_ceil(geometry.flex));
        let first = home / geometry.flex;
        let others = (1..units).map(|step| (first + step) % units * geometry.flex);
        std::iter::once(home)
            .chain(others)
            .find(|group| homes.may_take(*group, units, debt))
            .unwrap_or(home)
    }
}

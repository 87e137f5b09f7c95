//! ZFS mirrors: what a record occupies on each child.
//!
//! ZFS has no fixed map from a logical address to a sector: the allocator puts each block where it
//! finds room, at the same offset on every child of a mirror. So this answers how much a block
//! takes, not where it is.
use crate::error::LayoutError;
use crate::survival::Survival;
use crate::types::{MAX_MEMBERS, Member, MemberSet};
use raidlab_core::units::{Bytes, KIB, MIB};

/// Bytes of a vdev label; two are at the start of a child and two at its end (`vdev_impl.h`).
pub const LABEL: u64 = 256 * KIB;
/// Bytes of labels and boot block at the start of a child (`VDEV_LABEL_START_SIZE`).
pub const START: u64 = 2 * LABEL + 3 * MIB + 512 * KIB;
/// Bytes of labels at its end (`VDEV_LABEL_END_SIZE`).
pub const END: u64 = 2 * LABEL;

/// Metaslabs that a vdev is cut into, about.
const METASLABS: u64 = 200;
/// Bytes of a metaslab, and how many there are at the least, since 0.8 (`zfs_vdev_default_ms_shift`, `zfs_vdev_min_ms_count`).
const LEAST_METASLAB: u64 = 512 * MIB;
const LEAST_COUNT: u64 = 16;

/// Bytes of a metaslab of a vdev that can allocate `room` bytes (`vdev_metaslab_set_size`): the power of two above a 200th of
/// it, at least a largest block. Since 0.8 512 MiB at the least, but for vdevs that would have fewer than 16 then. A vdev
/// offers whole metaslabs only.
#[must_use]
pub const fn metaslab(room: Bytes, since_08: bool) -> Bytes {
    let count = match room.0 / LEAST_METASLAB {
        _ if !since_08 => METASLABS,
        ..LEAST_COUNT => LEAST_COUNT,
        LEAST_COUNT..=METASLABS => return Bytes(LEAST_METASLAB),
        _ => METASLABS,
    };
    let part = (room.0 / count + 1).next_power_of_two();
    Bytes(if part < 16 * MIB { 16 * MIB } else { part })
}

/// The smallest child, of children that a vdev can have.
///
/// # Errors
/// One below 64 MiB, or an ashift outside 9 to 16.
pub(crate) fn smallest(level: &str, sizes: &[Bytes], ashift: u32) -> Result<u64, LayoutError> {
    if !(9..=16).contains(&ashift) {
        return Err(LayoutError::Ashift(ashift));
    }
    // ZFS refuses devices below SPA_MINDEVSIZE, 64 MiB.
    if let Some(member) = sizes.iter().position(|size| size.0 < 64 * MIB) {
        return Err(LayoutError::MemberTooSmall {
            level: level.into(),
            member,
            size: sizes[member].to_sectors(),
            least: Bytes::mib(64).to_sectors(),
            remedy: "use a larger member",
        });
    }
    Ok(sizes.iter().map(|size| size.0).min().unwrap_or(0))
}

/// Whether a vdev may have so many children.
///
/// # Errors
/// Fewer than the `least` (with what there is `instead`), or more than [`MAX_MEMBERS`].
pub(crate) fn count(
    level: &str,
    given: usize,
    least: usize,
    instead: Option<&'static str>,
) -> Result<(), LayoutError> {
    if given < least {
        return Err(LayoutError::TooFewMembers {
            level: level.into(),
            least,
            given,
            instead,
        });
    }
    if given > MAX_MEMBERS {
        return Err(LayoutError::TooManyMembers { given });
    }
    Ok(())
}

/// A mirror vdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZfsMirror {
    children: usize,
    ashift: u32,
    smallest: u64,
}

impl ZfsMirror {
    /// A mirror of children of these sizes; blocks are padded to 2^`ashift` bytes.
    ///
    /// # Errors
    /// Fewer than two children, more than [`MAX_MEMBERS`], one that holds no more than its labels,
    /// or an ashift outside 9 to 16.
    pub fn new(sizes: &[Bytes], ashift: u32) -> Result<Self, LayoutError> {
        let (level, given) = ("a ZFS mirror", sizes.len());
        let instead = (given == 1).then_some("zfs-stripe, disks without copies");
        count(level, given, 2, instead)?;
        let smallest = smallest(level, sizes, ashift)?;
        Ok(Self {
            children: given,
            ashift,
            smallest,
        })
    }

    /// A disk alone, which a block is put on as on a mirror's only child.
    ///
    /// # Errors
    /// Another number of children than one, one that holds no more than its labels, or an ashift outside 9 to 16.
    pub(crate) fn of_one(sizes: &[Bytes], ashift: u32) -> Result<Self, LayoutError> {
        count("a disk of a ZFS pool", sizes.len(), 1, None)?;
        Ok(Self {
            children: 1,
            ashift,
            smallest: smallest("a ZFS stripe", sizes, ashift)?,
        })
    }

    /// Number of children.
    #[must_use]
    pub const fn children(&self) -> usize {
        self.children
    }

    /// log2 of the unit of allocation in bytes.
    #[must_use]
    pub const fn ashift(&self) -> u32 {
        self.ashift
    }

    /// Bytes that a block of `psize` bytes (after compression) occupies, and that are written, on
    /// each child: rounded up to 2^ashift (`vdev_default_asize`; a mirror adds nothing).
    #[must_use]
    pub const fn allocated(&self, psize: Bytes) -> Bytes {
        Bytes(psize.0.next_multiple_of(1 << self.ashift))
    }

    /// Of [`Self::allocated`], what is padding.
    #[must_use]
    pub const fn padding(&self, psize: Bytes) -> Bytes {
        Bytes(self.allocated(psize).0 - psize.0)
    }

    /// Can a write of some block cover a physical sector of this size in part, so that the disk
    /// must read before it writes? Blocks start and end at multiples of 2^ashift, so this is
    /// ashift 9 on disks of 4 KiB sectors, whatever the size of the block.
    #[must_use]
    pub const fn splits_physical_sectors(&self, physical: Bytes) -> bool {
        !(1_u64 << self.ashift).is_multiple_of(physical.0)
    }

    /// Bytes of a child that can be allocated at most: without the labels and the boot block. The
    /// pool offers less: whole metaslabs only, and a slop of 1/32 is kept back.
    #[must_use]
    pub const fn allocatable(&self) -> Bytes {
        Bytes(self.smallest / LABEL * LABEL - START - END)
    }

    /// Where that begins on every child: after two labels and the boot block.
    #[must_use]
    pub const fn data_start(&self) -> Bytes {
        Bytes(START)
    }

    /// What is left with these children failed.
    #[must_use]
    pub const fn survives(&self, failed: MemberSet) -> Survival {
        let failed = failed.intersection(MemberSet::first(self.children));
        if failed.is_empty() {
            Survival::Intact
        } else if failed.len() < self.children {
            Survival::Degraded
        } else {
            Survival::Lost
        }
    }

    /// The children that a write goes to: all that have not failed. A read goes to one of them.
    pub fn writes_to(&self, failed: MemberSet) -> impl Iterator<Item = Member> {
        MemberSet::first(self.children).without(failed).iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(ashift: u32) -> ZfsMirror {
        ZfsMirror::new(&[Bytes::gib(1), Bytes::gib(2)], ashift).unwrap()
    }

    #[test]
    fn a_block_is_padded_to_the_allocation_unit() {
        let sizes = |ashift| {
            [1, 512, 513, 4096, 4097, 131_072].map(|n| mirror(ashift).allocated(Bytes(n)).0)
        };
        assert_eq!(sizes(9), [512, 512, 1024, 4096, 4608, 131_072]);
        assert_eq!(sizes(12), [4096, 4096, 4096, 4096, 8192, 131_072]);
        assert_eq!(mirror(12).padding(Bytes(4608)), Bytes(3584));
    }

    #[test]
    fn a_small_ashift_splits_physical_sectors() {
        assert!(mirror(9).splits_physical_sectors(Bytes(4096)));
        assert!(!mirror(12).splits_physical_sectors(Bytes(4096)));
        assert!(!mirror(12).splits_physical_sectors(Bytes(512)));
    }

    #[test]
    fn one_child_suffices() {
        let all = MemberSet::first(2);
        let one = MemberSet::one(Member(1));
        assert_eq!(mirror(12).survives(one), Survival::Degraded);
        assert_eq!(mirror(12).survives(all), Survival::Lost);
        assert_eq!(mirror(12).writes_to(one).collect::<Vec<_>>(), [Member(0)]);
        assert_eq!(
            mirror(12).allocatable(),
            Bytes(Bytes::gib(1).0 - 4 * MIB - 512 * KIB)
        );
    }

    #[test]
    fn what_no_pool_can_have_is_refused() {
        let say = |sizes: &[Bytes], ashift| ZfsMirror::new(sizes, ashift).unwrap_err().to_string();
        let gib = Bytes::gib(1);
        insta::assert_snapshot!(say(&[gib], 12), @"a ZFS mirror needs at least 2 members and was given 1: add members or use zfs-stripe, disks without copies");
        insta::assert_snapshot!(say(&[gib, gib], 8), @"ashift 8 is outside 9 to 16 (512 B to 64 KiB): use 12 for disks with 4 KiB physical sectors");
        insta::assert_snapshot!(say(&[gib, Bytes::mib(63)], 12), @"member 1 has 63 MiB, less than the 64 MiB that a ZFS mirror needs of every member: use a larger member");
    }
}

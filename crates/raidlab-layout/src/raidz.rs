//! RAID-Z: what a block occupies, and which columns of it are on which children.
//!
//! A block of RAID-Z is a stripe of its own: its parity comes first, its data follow, column by column over the
//! children, beginning wherever the block before it ended. So there are no rows of fixed width, no chunk, and no
//! place that is known beforehand; but once it is known where a block begins, all else follows
//! (`vdev_raidz_asize` and `vdev_raidz_map_alloc` of OpenZFS 2.1, `module/zfs/vdev_raidz.c`).
use crate::error::LayoutError;
use crate::survival::Survival;
use crate::types::{Member, MemberSet};
use crate::zfs::{self, END, LABEL, START};
use raidlab_core::units::Bytes;

/// What ZFS tells capacities by: blocks of 128 KiB (`vdev_set_deflate_ratio`).
const TOLD_BY: Bytes = Bytes::kib(128);
/// Single parity takes turns with the first column of data at this offset, 1 MiB: else blocks of full width would
/// have all parity on the same child.
const TURN: u64 = 1 << 20;

/// A RAID-Z vdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raidz {
    children: usize,
    parity: usize,
    ashift: u32,
    smallest: u64,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnKind {
    /// Parity: 0 is P, 1 is Q, 2 is R.
    Parity(usize),
    /// Data, counted from 0 in the order of the block's bytes.
    Data(usize),
}

/// A part of a block on one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it holds.
    pub kind: ColumnKind,
    /// The child.
    pub child: Member,
    /// Where on the child it begins, in bytes from the child's own beginning, labels included.
    pub at: Bytes,
    /// Its length.
    pub size: Bytes,
}

impl Raidz {
    /// A vdev with this many parities (1 to 3) on children of these sizes; blocks are padded to 2^`ashift` bytes.
    ///
    /// # Errors
    /// No more children than parities, more than [`MAX_MEMBERS`](crate::types::MAX_MEMBERS), a child below 64 MiB, an ashift outside 9 to 16, or
    /// another number of parities.
    pub fn new(sizes: &[Bytes], parity: usize, ashift: u32) -> Result<Self, LayoutError> {
        if !(1..=3).contains(&parity) {
            return Err(LayoutError::Raidz(parity));
        }
        let level = format!("raidz{parity}");
        let given = sizes.len();
        zfs::count(&level, given, parity + 1, None)?;
        let smallest = zfs::smallest(&level, sizes, ashift)?;
        Ok(Self {
            children: given,
            parity,
            ashift,
            smallest,
        })
    }

    /// Number of children.
    #[must_use]
    pub const fn children(&self) -> usize {
        self.children
    }

    /// Number of parities.
    #[must_use]
    pub const fn parity(&self) -> usize {
        self.parity
    }

    /// log2 of the unit of allocation in bytes.
    #[must_use]
    pub const fn ashift(&self) -> u32 {
        self.ashift
    }

    /// Bytes that a block of `psize` bytes (after compression) takes of all children together: its data, a parity for
    /// each row of it, and what fills it up to a multiple of parities + 1 units, so that no gap is left that is too
    /// small for any block.
    #[must_use]
    pub const fn allocated(&self, psize: Bytes) -> Bytes {
        let data = psize.0.div_ceil(1 << self.ashift);
        let rows = data.div_ceil((self.children - self.parity) as u64);
        let units = data + self.parity as u64 * rows;
        Bytes(units.next_multiple_of(self.parity as u64 + 1) << self.ashift)
    }

    /// Bytes that writing it writes: without what only fills up.
    #[must_use]
    pub const fn written(&self, psize: Bytes) -> Bytes {
        let data = psize.0.div_ceil(1 << self.ashift);
        let rows = data.div_ceil((self.children - self.parity) as u64);
        Bytes((data + self.parity as u64 * rows) << self.ashift)
    }

    /// The columns of a block of `psize` bytes at `offset`, which is what ZFS calls the offset of its DVA: parities
    /// first, then data in order. The last columns of data are a unit shorter when the rows are not full.
    #[must_use]
    pub fn columns(&self, offset: Bytes, psize: Bytes) -> Vec<Column> {
        let (unit, children) = (1_u64 << self.ashift, self.children as u64);
        let first = offset.0 >> self.ashift;
        let units = psize.0.div_ceil(unit);
        let width = children - self.parity as u64;
        let (rows, rest) = (units / width, units % width);
        // Columns that are a unit longer than the others; of a block below one row, all there are.
        let longer = if rest == 0 {
            0
        } else {
            rest + self.parity as u64
        };
        let columns = if rows == 0 { longer } else { children };
        let column = |number: u64| {
            let place = first % children + number;
            let row = first / children + place / children;
            let size = rows + u64::from(number < longer);
            let kind = match (number as usize).checked_sub(self.parity) {
                None => ColumnKind::Parity(number as usize),
                Some(data) => ColumnKind::Data(data),
            };
            Column {
                kind,
                child: Member::new((place % children) as usize),
                at: Bytes(START + row * unit),
                size: Bytes(size * unit),
            }
        };
        let mut all: Vec<Column> = (0..columns).map(column).collect();
        if self.parity == 1 && offset.0 & TURN != 0 && all.len() > 1 {
            let (parity, data) = (all[0], all[1]);
            (all[0].child, all[0].at) = (data.child, data.at);
            (all[1].child, all[1].at) = (parity.child, parity.at);
        }
        all
    }

    /// Blocks of the same size at offsets of the same number have columns of the same sizes on the same children.
    #[must_use]
    pub const fn turn(&self, offset: Bytes) -> u64 {
        let child = (offset.0 >> self.ashift) % self.children as u64;
        2 * child + (offset.0 & TURN != 0) as u64
    }

    /// The units that only fill a block of `psize` bytes at `offset` up ([`allocated`](Self::allocated)), child and byte on it:
    /// they follow its last one. ZFS has nothing to put there, and writes them all the same when that joins what lies before
    /// and behind (`vdev_raidz_io_start_write`: optional, without data).
    pub fn filling(&self, offset: Bytes, psize: Bytes) -> impl Iterator<Item = (Member, Bytes)> {
        let (unit, children) = (1_u64 << self.ashift, self.children as u64);
        let first = (offset.0 >> self.ashift) + (self.written(psize).0 >> self.ashift);
        let end = (offset.0 >> self.ashift) + (self.allocated(psize).0 >> self.ashift);
        (first..end).map(move |place| {
            let child = Member::new((place % children) as usize);
            (child, Bytes(START + place / children * unit))
        })
    }

    /// Bytes of all children together that can be allocated at most, parity included. The pool offers less: whole
    /// metaslabs only, and a slop of 1/32 is kept back.
    #[must_use]
    pub const fn allocatable(&self) -> Bytes {
        Bytes((self.smallest / LABEL * LABEL - START - END) * self.children as u64)
    }

    /// Of so many bytes of a child, what holds data when all blocks have 128 KiB, over all children: by this ZFS
    /// tells what is free.
    #[must_use]
    pub const fn usable(&self, of_each: Bytes) -> Bytes {
        let all = of_each.0 as u128 * self.children as u128;
        Bytes((all * TOLD_BY.0 as u128 / self.allocated(TOLD_BY).0 as u128) as u64)
    }

    /// What is left with these children failed.
    #[must_use]
    pub const fn survives(&self, failed: MemberSet) -> Survival {
        let failed = failed.intersection(MemberSet::first(self.children));
        if failed.is_empty() {
            Survival::Intact
        } else if failed.len() <= self.parity {
            Survival::Degraded
        } else {
            Survival::Lost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn raidz(children: usize, parity: usize, ashift: u32) -> Raidz {
        Raidz::new(&vec![Bytes::gib(1); children], parity, ashift).unwrap()
    }

    /// Figures of `vdev_raidz_asize`, worked out by hand.
    #[test]
    fn a_block_takes_its_parity_and_is_filled_up() {
        let units = |children, parity, data: u64| {
            raidz(children, parity, 12).allocated(Bytes(data << 12)).0 >> 12
        };
        // One unit and its parity: a mirror in all but name.
        assert_eq!(units(5, 1, 1), 2);
        // Two and one make three, which is filled up to four.
        assert_eq!(units(5, 1, 2), 4);
        // 128 KiB on 4 + 1: 32 + 8 = 40.
        assert_eq!(units(5, 1, 32), 40);
        // On 3 + 1: 32 + 11 = 43, filled up to 44.
        assert_eq!(units(4, 1, 32), 44);
        // Two parities on 4 + 2: 32 + 16 = 48; of one unit, 3.
        assert_eq!((units(6, 2, 32), units(6, 2, 1)), (48, 3));
        // Three on 5 + 3: 32 + 3 * 7 = 53, filled up to 56.
        assert_eq!(units(8, 3, 32), 56);
        assert_eq!(raidz(4, 1, 12).written(Bytes::kib(128)), Bytes(43 << 12));
    }

    #[test]
    fn blocks_of_a_turn_have_as_much_on_the_same_children() {
        for (children, parity, ashift) in [(3, 1, 12), (4, 1, 9), (6, 2, 12), (7, 3, 12)] {
            let raidz = raidz(children, parity, ashift);
            let mut known = BTreeMap::new();
            for place in 0..3000_u64 {
                let offset = Bytes(place << ashift);
                for size in [1 << ashift, 20 << ashift, (1 << ashift) * children as u64] {
                    let sizes = |c: &Column| (c.child, c.size);
                    let mut here: Vec<(Member, Bytes)> = raidz
                        .columns(offset, Bytes(size))
                        .iter()
                        .map(sizes)
                        .collect();
                    here.sort();
                    let first = known
                        .entry((raidz.turn(offset), size))
                        .or_insert_with(|| here.clone());
                    assert_eq!(*first, here, "{children} {parity} {ashift}: {place}");
                }
            }
        }
    }

    #[test]
    fn columns_go_on_where_the_block_before_ended() {
        let vdev = raidz(4, 1, 12);
        let told = |offset: u64, psize: u64| -> Vec<String> {
            let columns = vdev.columns(Bytes(offset), Bytes(psize));
            let one = |c: Column| {
                let row = (c.at.0 - START) >> 12;
                format!("{:?} {} row {row} x{}", c.kind, c.child, c.size.0 >> 12)
            };
            columns.into_iter().map(one).collect()
        };
        assert_eq!(
            told(6 << 12, 2 << 12),
            [
                "Parity(0) m2 row 1 x1",
                "Data(0) m3 row 1 x1",
                "Data(1) m0 row 2 x1"
            ]
        );
        assert_eq!(
            told(0, 4 << 12),
            [
                "Parity(0) m0 row 0 x2",
                "Data(0) m1 row 0 x2",
                "Data(1) m2 row 0 x1",
                "Data(2) m3 row 0 x1"
            ]
        );
        // In every second MiB the parity changes places with the first data.
        assert_eq!(
            told(1 << 20, 1 << 12),
            ["Parity(0) m1 row 64 x1", "Data(0) m0 row 64 x1"]
        );
    }

    #[test]
    fn as_many_children_as_parities_may_fail() {
        let vdev = raidz(6, 2, 12);
        assert_eq!(vdev.survives(MemberSet::first(2)), Survival::Degraded);
        assert_eq!(vdev.survives(MemberSet::first(3)), Survival::Lost);
        assert_eq!(vdev.survives(MemberSet::EMPTY), Survival::Intact);
        let child = Bytes::gib(1).0 - 4 * (1 << 20) - 512 * 1024;
        assert_eq!(vdev.allocatable(), Bytes(6 * child));
        assert_eq!(vdev.usable(Bytes::mib(48)), Bytes::mib(192));
    }

    #[test]
    fn what_no_pool_can_have_is_refused() {
        let say = |n: usize, parity, ashift, size| {
            let made = Raidz::new(&vec![Bytes::mib(size); n], parity, ashift);
            made.unwrap_err().to_string()
        };
        insta::assert_snapshot!(say(2, 2, 12, 100), @"raidz2 needs at least 3 members and was given 2: add members");
        insta::assert_snapshot!(say(5, 4, 12, 100), @"raidz has 1, 2 or 3 parities and not 4: use raidz1, raidz2 or raidz3");
        insta::assert_snapshot!(say(3, 1, 8, 100), @"ashift 8 is outside 9 to 16 (512 B to 64 KiB): use 12 for disks with 4 KiB physical sectors");
        insta::assert_snapshot!(say(3, 1, 12, 63), @"member 0 has 63 MiB, less than the 64 MiB that raidz1 needs of every member: use a larger member");
    }

    proptest! {
        /// Blocks one after the other, with what fills them up, take each unit of all children once, and each has all its data
        /// and a parity for each row.
        #[test]
        fn blocks_fill_the_children_without_overlap(
            parity in 1_usize..=3, more in 1_usize..8, ashift in prop::sample::select(vec![9_u32, 12, 13]),
            start in 0_u64..10_000, sizes in proptest::collection::vec(1_u64..300, 1..12),
        ) {
            let vdev = raidz(parity + more, parity, ashift);
            // What is allocated begins at a multiple of parities + 1.
            let mut offset = (start * (parity as u64 + 1)) << ashift;
            let mut taken = BTreeSet::new();
            for units in sizes {
                let psize = Bytes(units << ashift);
                let columns = vdev.columns(Bytes(offset), psize);
                let sum = |data: bool| columns.iter().filter(|c| matches!(c.kind, ColumnKind::Data(_)) == data)
                    .map(|c| c.size.0).sum::<u64>();
                prop_assert_eq!(sum(true), psize.0);
                prop_assert_eq!(sum(true) + sum(false), vdev.written(psize).0);
                prop_assert!(vdev.written(psize) <= vdev.allocated(psize));
                let rows = units.div_ceil(more as u64);
                let mut children = MemberSet::EMPTY;
                for column in &columns {
                    prop_assert!(!children.contains(column.child), "two columns on {}", column.child);
                    children.insert(column.child);
                    if let ColumnKind::Parity(_) = column.kind {
                        prop_assert_eq!(column.size.0, rows << ashift);
                    }
                    for unit in 0..column.size.0 >> ashift {
                        prop_assert!(taken.insert((column.child, column.at.0 + (unit << ashift))));
                    }
                }
                for (child, at) in vdev.filling(Bytes(offset), psize) {
                    prop_assert!(taken.insert((child, at.0)));
                }
                offset += vdev.allocated(psize).0;
            }
            // What fills blocks up leaves no gap on any child.
            let mut last: BTreeMap<Member, u64> = BTreeMap::new();
            for (child, at) in taken {
                let before = last.insert(child, at);
                prop_assert!(before.is_none_or(|before| before + (1 << ashift) == at), "{child}: {before:?}, {at}");
            }
        }

        /// Whatever fails, as long as it is no more than the parities, leaves enough columns of every block.
        #[test]
        fn enough_of_a_block_is_left(
            parity in 1_usize..=3, more in 1_usize..6, offset in 0_u64..5000, units in 1_u64..200, bits in any::<u32>(),
        ) {
            let vdev = raidz(parity + more, parity, 12);
            let failed: MemberSet = (0..parity + more).filter(|m| bits >> m & 1 == 1).map(Member::new).collect();
            let columns = vdev.columns(Bytes(offset << 12), Bytes(units << 12));
            let lost = columns.iter().filter(|c| failed.contains(c.child)).count();
            if vdev.survives(failed) != Survival::Lost {
                prop_assert!(lost <= parity);
            }
        }
    }
}

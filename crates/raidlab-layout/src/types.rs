//! Members, sets of members, places and runs of sectors.
use raidlab_core::units::{Extent, Lba, SECTOR, Sectors};
use smallvec::SmallVec;
use std::fmt;

/// The most members an array may have here: the width of a [`MemberSet`].
pub const MAX_MEMBERS: usize = 128;

/// A member of an array, by its role number (md: slot, `raid_disk`), counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u16);

impl Member {
    /// From a position in a list of members.
    ///
    /// # Panics
    /// When `index` is not below [`MAX_MEMBERS`]: no layout has such a member.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        assert!(index < MAX_MEMBERS, "no layout has this many members");
        Self(index as u16)
    }

    /// The position in a list of members.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// A set of members, as bits: copied freely, ordered, no allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberSet(u128);

impl MemberSet {
    /// No member.
    pub const EMPTY: Self = Self(0);

    /// The members `0..n` (`n` beyond [`MAX_MEMBERS`] counts as that).
    #[must_use]
    pub const fn first(n: usize) -> Self {
        // One word is shifted where that is enough, as in `one`.
        if n < 64 {
            Self(((1_u64 << n) - 1) as u128)
        } else if n >= MAX_MEMBERS {
            Self(u128::MAX)
        } else {
            Self((1 << n) - 1)
        }
    }

    /// One member.
    #[must_use]
    pub const fn one(member: Member) -> Self {
        // Nearly all arrays have few members: then one word is shifted, not two.
        if member.index() < 64 {
            Self((1_u64 << member.0) as u128)
        } else if member.index() < MAX_MEMBERS {
            Self(1 << member.0)
        } else {
            Self(0)
        }
    }

    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u128 {
        self.0
    }

    /// With one more member.
    pub const fn insert(&mut self, member: Member) {
        self.0 |= Self::one(member).0;
    }

    /// With one member less.
    pub const fn remove(&mut self, member: Member) {
        self.0 &= !Self::one(member).0;
    }

    /// Is `member` in the set?
    #[must_use]
    pub const fn contains(self, member: Member) -> bool {
        let (index, low, high) = (member.index(), self.0 as u64, (self.0 >> 64) as u64);
        let word = if index < 64 { low } else { high };
        index < MAX_MEMBERS && (word >> (index % 64)) & 1 == 1
    }

    /// Number of members in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        // Counting bits is a loop of its own where the processor's instruction may not be used.
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        if high == 0 {
            low.count_ones() as usize
        } else {
            (low.count_ones() + high.count_ones()) as usize
        }
    }

    /// No member in the set?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Members in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Members in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// This set when something holds, else the empty one; without a branch.
    #[must_use]
    pub const fn only_if(self, when: bool) -> Self {
        Self(self.0 & (when as u128).wrapping_neg())
    }

    /// Members of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Are all members of `other` in this set?
    #[must_use]
    pub const fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The `n` members from `base` on, renumbered from 0: the view of an inner array.
    #[must_use]
    pub const fn slice(self, base: usize, n: usize) -> Self {
        if base >= MAX_MEMBERS {
            Self(0)
        } else {
            Self((self.0 >> base) & Self::first(n).0)
        }
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Member> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let next = (bits != 0).then(|| Member(bits.trailing_zeros() as u16));
            bits &= bits.wrapping_sub(1);
            next
        })
    }
}

impl FromIterator<Member> for MemberSet {
    fn from_iter<I: IntoIterator<Item = Member>>(members: I) -> Self {
        let mut set = Self::EMPTY;
        for member in members {
            set.insert(member);
        }
        set
    }
}

impl fmt::Display for MemberSet {
    /// `m0+m3`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "none");
        }
        for (i, member) in self.iter().enumerate() {
            write!(f, "{}{member}", if i == 0 { "" } else { "+" })?;
        }
        Ok(())
    }
}

/// One sector of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which member.
    pub member: Member,
    /// Which sector of the member's data area.
    pub sector: Lba,
}

/// All places that hold one array sector: one, or one per copy.
pub type Places = SmallVec<[Place; 4]>;

/// A run of sectors, of the array or of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// First sector.
    pub start: Lba,
    /// Number of sectors.
    pub len: Sectors,
}

impl Run {
    /// From the first sector and the number of sectors.
    #[must_use]
    pub const fn new(start: u64, len: u64) -> Self {
        Self {
            start: Lba(start),
            len: Sectors(len),
        }
    }

    /// The sector after the last one; saturates, so that a run past any array is refused and not
    /// wrapped.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.start.0.saturating_add(self.len.0)
    }

    /// The smallest run of sectors that covers a run of bytes.
    #[must_use]
    pub const fn covering(extent: Extent) -> Self {
        let start = extent.start.0 / SECTOR;
        let end = extent.start.0.saturating_add(extent.len.0).div_ceil(SECTOR);
        if extent.len.0 == 0 {
            Self::new(start, 0)
        } else {
            Self::new(start, end - start)
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start.0, self.len.0)
    }
}

/// Which of the two parities. P is the XOR of the data; Q the sum of g^i * D_i in GF(2^8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParityKind {
    /// XOR parity.
    P,
    /// Reed-Solomon syndrome of RAID6.
    Q,
}

/// What one sector of one member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// This array sector.
    Data(Lba),
    /// Parity of a stripe.
    Parity {
        /// Stripe number, counted in the array that computes the parity (in a nested layout, that
        /// is one of the inner arrays or the outer one).
        stripe: u64,
        /// P or Q.
        kind: ParityKind,
    },
    /// Nothing: beyond what the layout uses of this member.
    Unused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_its_members_in_order() {
        let set: MemberSet = [5, 0, 127].into_iter().map(Member::new).collect();
        assert_eq!(
            set.iter().map(Member::index).collect::<Vec<_>>(),
            [0, 5, 127]
        );
        assert_eq!((set.len(), set.to_string().as_str()), (3, "m0+m5+m127"));
        assert_eq!(set.slice(5, 3), MemberSet::one(Member(0)));
        assert_eq!(set.slice(120, 8), MemberSet::one(Member(7)));
        assert_eq!(MemberSet::first(128).len(), 128);
        assert!(!set.contains(Member(500)));
    }

    #[test]
    fn bytes_are_covered_by_whole_sectors() {
        assert_eq!(Run::covering(Extent::new(1000, 100)), Run::new(1, 2));
        assert_eq!(Run::covering(Extent::new(1024, 512)), Run::new(2, 1));
        assert_eq!(Run::covering(Extent::new(1024, 0)), Run::new(2, 0));
        assert_eq!(Run::new(u64::MAX, 9).end(), u64::MAX);
    }
}

//! [`Layout`]: the one type for all levels, its constructors and questions. Its reads and writes are
//! in [`crate::io`].
use crate::error::LayoutError;
use crate::mirror::{Copies, Raid1, Raid10};
use crate::nested::Nested;
use crate::parity::{Parity, ParityAlgorithm, ParityLevel};
use crate::stripe::{Linear, Raid0, Raid0Order};
use crate::survival::{Survival, Tolerance};
use crate::types::{Content, Member, MemberSet, Places};
use raidlab_core::units::{Lba, Sectors};

/// Which member sector holds which array sector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Members one after the other.
    Linear(Linear),
    /// Striping without redundancy.
    Raid0(Raid0),
    /// The same on every member.
    Raid1(Raid1),
    /// Raid4, raid5 and raid6.
    Parity(Parity),
    /// md's raid10: near, far, offset copies.
    Raid10(Raid10),
    /// An array of arrays.
    Nested(Box<Nested>),
}

impl Layout {
    /// Members one after the other, each rounded down to `rounding` (md: chunk; none by default).
    ///
    /// # Errors
    /// No member, or one smaller than the rounding.
    pub fn linear(sizes: &[Sectors], rounding: Option<Sectors>) -> Result<Self, LayoutError> {
        Linear::new(sizes, rounding).map(Self::Linear)
    }

    /// Raid0; any chunk that is not 0, members of any sizes, each rounded down to chunks.
    ///
    /// # Errors
    /// No member, chunk 0, or a member smaller than a chunk.
    pub fn raid0(
        sizes: &[Sectors],
        chunk: Sectors,
        order: Raid0Order,
    ) -> Result<Self, LayoutError> {
        Raid0::new(sizes, chunk, order).map(Self::Raid0)
    }

    /// Raid1: the size of the smallest member, not rounded.
    ///
    /// # Errors
    /// Fewer than two members, or an empty one.
    pub fn raid1(sizes: &[Sectors]) -> Result<Self, LayoutError> {
        Raid1::new(sizes).map(Self::Raid1)
    }

    /// Raid4: parity on the last member.
    ///
    /// # Errors
    /// As [`Self::raid5`].
    pub fn raid4(sizes: &[Sectors], chunk: Sectors) -> Result<Self, LayoutError> {
        let algorithm = ParityAlgorithm::ParityLast;
        Parity::new(ParityLevel::Raid4, sizes, chunk, algorithm).map(Self::Parity)
    }

    /// Raid5.
    ///
    /// # Errors
    /// Fewer than two members, a chunk that is no power of two of at least 4 KiB, a member smaller
    /// than a chunk, or a rotation that only raid6 has.
    pub fn raid5(
        sizes: &[Sectors],
        chunk: Sectors,
        algorithm: ParityAlgorithm,
    ) -> Result<Self, LayoutError> {
        Parity::new(ParityLevel::Raid5, sizes, chunk, algorithm).map(Self::Parity)
    }

    /// Raid6.
    ///
    /// # Errors
    /// Fewer than four members, or as [`Self::raid5`].
    pub fn raid6(
        sizes: &[Sectors],
        chunk: Sectors,
        algorithm: ParityAlgorithm,
    ) -> Result<Self, LayoutError> {
        Parity::new(ParityLevel::Raid6, sizes, chunk, algorithm).map(Self::Parity)
    }

    /// md's raid10.
    ///
    /// # Errors
    /// Fewer than two members or copies, more copies than members, a chunk that is no power of two
    /// of at least 4 KiB, or a member smaller than a chunk per far copy.
    pub fn raid10(sizes: &[Sectors], chunk: Sectors, copies: Copies) -> Result<Self, LayoutError> {
        Raid10::new(sizes, chunk, copies).map(Self::Raid10)
    }

    /// An array of arrays: `outer` makes the outer layout from the capacities of `inner`.
    ///
    /// # Errors
    /// What `outer` refuses; an outer layout for other members than the inner arrays; more than
    /// [`crate::MAX_MEMBERS`] members.
    pub fn nested(
        inner: Vec<Self>,
        outer: impl FnOnce(&[Sectors]) -> Result<Self, LayoutError>,
    ) -> Result<Self, LayoutError> {
        let capacities: Vec<Sectors> = inner.iter().map(Self::capacity).collect();
        let outer = outer(&capacities)?;
        Nested::new(outer, inner).map(Box::new).map(Self::Nested)
    }

    /// Number of members; of a nested layout, of all inner arrays.
    #[must_use]
    pub fn members(&self) -> usize {
        match self {
            Self::Linear(l) => l.members(),
            Self::Raid0(l) => l.members(),
            Self::Raid1(l) => l.members(),
            Self::Parity(l) => l.members(),
            Self::Raid10(l) => l.members(),
            Self::Nested(l) => l.members(),
        }
    }

    /// Sectors of the array.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        Sectors(match self {
            Self::Linear(l) => l.capacity(),
            Self::Raid0(l) => l.capacity(),
            Self::Raid1(l) => l.capacity(),
            Self::Parity(l) => l.capacity(),
            Self::Raid10(l) => l.capacity(),
            Self::Nested(l) => return l.outer().capacity(),
        })
    }

    /// Unit of striping; of a nested layout, the smaller of the outer's and the inner's. `None`
    /// for linear and raid1.
    #[must_use]
    pub fn chunk(&self) -> Option<Sectors> {
        match self {
            Self::Linear(_) | Self::Raid1(_) => None,
            Self::Raid0(l) => Some(l.chunk()),
            Self::Parity(l) => Some(l.chunk()),
            Self::Raid10(l) => Some(l.chunk()),
            Self::Nested(l) => l
                .inner()
                .iter()
                .chain([l.outer()])
                .filter_map(Self::chunk)
                .min(),
        }
    }

    /// Sectors of `member` that the layout reaches; all beyond are [`Content::Unused`] (some
    /// before may be). 0 for a member that the layout does not have.
    #[must_use]
    pub fn used(&self, member: Member) -> Sectors {
        let member = member.index();
        if member >= self.members() {
            return Sectors(0);
        }
        Sectors(match self {
            Self::Linear(l) => l.used(member),
            Self::Raid0(l) => l.used(member),
            Self::Raid1(l) => l.capacity(),
            Self::Parity(l) => l.used(),
            Self::Raid10(l) => l.used(),
            Self::Nested(l) => return l.used(member),
        })
    }

    /// Every place that holds array sector `lba`; `None` beyond the end.
    #[must_use]
    pub fn locate(&self, lba: Lba) -> Option<Places> {
        let mut places = Places::new();
        (lba.0 < self.capacity().0).then(|| {
            self.places_into(lba.0, &mut places);
            places
        })
    }

    /// What `sector` of `member` holds; [`Content::Unused`] where the layout has nothing.
    #[must_use]
    pub fn content(&self, member: Member, sector: Lba) -> Content {
        let (member, sector) = (member.index(), sector.0);
        if member >= self.members() {
            return Content::Unused;
        }
        match self {
            Self::Linear(l) => l.content(member, sector),
            Self::Raid0(l) => l.content(member, sector),
            Self::Raid1(l) => l.content(sector),
            Self::Parity(l) => l.content(member, sector),
            Self::Raid10(l) => l.content(member, sector),
            Self::Nested(l) => l.content(member, sector),
        }
    }

    /// What is left with these members failed. Members that the layout does not have are ignored.
    #[must_use]
    pub fn survives(&self, failed: MemberSet) -> Survival {
        let failed = failed.intersection(MemberSet::first(self.members()));
        if failed.is_empty() {
            return Survival::Intact;
        }
        let lost = match self {
            Self::Linear(_) | Self::Raid0(_) => true,
            Self::Raid1(l) => failed.len() == l.members(),
            Self::Parity(l) => failed.len() > l.level().parities(),
            Self::Raid10(l) => l.is_lost(failed),
            Self::Nested(l) => l.is_lost(failed),
        };
        if lost {
            Survival::Lost
        } else {
            Survival::Degraded
        }
    }

    /// How many failures are survived, over all patterns.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        Tolerance::of(self)
    }

    /// The places of a sector that exists.
    pub(crate) fn places_into(&self, lba: u64, places: &mut Places) {
        places.clear();
        match self {
            Self::Linear(l) => places.push(l.place(lba).0),
            Self::Raid0(l) => places.push(l.place(lba).0),
            Self::Raid1(l) => *places = l.places(lba),
            Self::Parity(l) => places.push(l.place(lba).0),
            Self::Raid10(l) => {
                l.places(lba, places);
            }
            Self::Nested(l) => l.places(lba, places),
        }
    }
}

//! Raid4, raid5 and raid6: where parity and data of a stripe are.
use crate::error::LayoutError;
use crate::stripe::{check_chunk, check_least, check_members};
use crate::types::{Content, Member, MemberSet, ParityKind, Place};
use raidlab_core::units::{Lba, Sectors};

/// Raid4, raid5 or raid6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParityLevel {
    /// One parity on the last member.
    Raid4,
    /// One rotating parity.
    Raid5,
    /// Two parities.
    Raid6,
}

impl ParityLevel {
    /// `raid4`, `raid5`, `raid6`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raid4 => "raid4",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        }
    }

    /// Parities of a stripe, and so the failures survived.
    #[must_use]
    pub const fn parities(self) -> usize {
        match self {
            Self::Raid4 | Self::Raid5 => 1,
            Self::Raid6 => 2,
        }
    }

    /// Least members: md runs raid4 and raid5 on two, raid6 on four (`raid5.c:setup_conf`).
    #[must_use]
    pub const fn least_members(self) -> usize {
        match self {
            Self::Raid4 | Self::Raid5 => 2,
            Self::Raid6 => 4,
        }
    }
}

/// How parity moves from stripe to stripe, and how data is ordered around it. The numbers are
/// md's `ALGORITHM_*` (`raid5.h`), as seen in the superblock and in `/sys/block/md*/md/layout`.
///
/// Raid5 has the first six; raid6 has all. md's default for both is [`Self::LeftSymmetric`]. The
/// `*6` forms (a raid5 on all members but the last, Q on the last) are what a raid5 becomes when
/// it is grown to raid6 without a restripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ParityAlgorithm {
    /// Parity from the last member leftwards; data in member order, skipping parity.
    LeftAsymmetric = 0,
    /// Parity from the first member rightwards; data in member order, skipping parity.
    RightAsymmetric = 1,
    /// Parity from the last member leftwards; data starts after parity and wraps. The default.
    #[default]
    LeftSymmetric = 2,
    /// Parity from the first member rightwards; data starts after parity and wraps.
    RightSymmetric = 3,
    /// Parity always on the first member (or two).
    ParityFirst = 4,
    /// Parity always on the last member (or two).
    ParityLast = 5,
    /// DDF raid6 "0 restart" (PRL 6, RLQ 1): as right-asymmetric; Q counts members differently.
    RotatingZeroRestart = 8,
    /// DDF raid6 "N restart" (PRL 6, RLQ 2): as left-asymmetric, one stripe further on.
    RotatingNRestart = 9,
    /// DDF raid6 "N continue" (PRL 6, RLQ 3): as left-symmetric, with Q before P.
    RotatingNContinue = 10,
    /// Raid5 left-asymmetric on all but the last member, which has Q.
    LeftAsymmetric6 = 16,
    /// Raid5 right-asymmetric on all but the last member, which has Q.
    RightAsymmetric6 = 17,
    /// Raid5 left-symmetric on all but the last member, which has Q.
    LeftSymmetric6 = 18,
    /// Raid5 right-symmetric on all but the last member, which has Q.
    RightSymmetric6 = 19,
    /// P on the first member, Q on the last.
    ParityFirst6 = 20,
}

impl ParityAlgorithm {
    /// Every algorithm, in md's numbering.
    pub const ALL: [Self; 14] = [
        Self::LeftAsymmetric,
        Self::RightAsymmetric,
        Self::LeftSymmetric,
        Self::RightSymmetric,
        Self::ParityFirst,
        Self::ParityLast,
        Self::RotatingZeroRestart,
        Self::RotatingNRestart,
        Self::RotatingNContinue,
        Self::LeftAsymmetric6,
        Self::RightAsymmetric6,
        Self::LeftSymmetric6,
        Self::RightSymmetric6,
        Self::ParityFirst6,
    ];

    /// mdadm's name for it (`mdadm --layout`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftAsymmetric => "left-asymmetric",
            Self::RightAsymmetric => "right-asymmetric",
            Self::LeftSymmetric => "left-symmetric",
            Self::RightSymmetric => "right-symmetric",
            Self::ParityFirst => "parity-first",
            Self::ParityLast => "parity-last",
            Self::RotatingZeroRestart => "ddf-zero-restart",
            Self::RotatingNRestart => "ddf-N-restart",
            Self::RotatingNContinue => "ddf-N-continue",
            Self::LeftAsymmetric6 => "left-asymmetric-6",
            Self::RightAsymmetric6 => "right-asymmetric-6",
            Self::LeftSymmetric6 => "left-symmetric-6",
            Self::RightSymmetric6 => "right-symmetric-6",
            Self::ParityFirst6 => "parity-first-6",
        }
    }

    /// Can a raid5 rotate so? (Raid6 can rotate in every way.)
    #[must_use]
    pub const fn is_raid5(self) -> bool {
        (self as u8) < 6
    }

    /// Is Q summed in DDF's order (by member number) instead of md's (starting after Q)?
    #[must_use]
    pub const fn is_ddf(self) -> bool {
        matches!(
            self,
            Self::RotatingZeroRestart | Self::RotatingNRestart | Self::RotatingNContinue
        )
    }

    /// Does data start after parity and wrap, and around how many of `n` members?
    const fn ring(self, n: usize) -> Option<usize> {
        match self {
            Self::LeftSymmetric | Self::RightSymmetric | Self::RotatingNContinue => Some(n),
            Self::LeftSymmetric6 | Self::RightSymmetric6 => Some(n - 1),
            _ => None,
        }
    }
}

/// Raid4, raid5 or raid6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    level: ParityLevel,
    algorithm: ParityAlgorithm,
    members: usize,
    shift: u32,
    stripes: u64,
}

/// The roles of one stripe: who has parity, and so where its data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// The member with P.
    pub p: usize,
    /// The member with Q, which only raid6 has.
    pub q: Option<usize>,
    /// Data wraps around this many members, starting at `first`; `None`: ascending, skipping
    /// parity.
    ring: Option<usize>,
    first: usize,
}

impl Roles {
    /// The member of the `index`-th data chunk.
    #[must_use]
    #[inline]
    pub fn member(&self, index: usize) -> usize {
        if let Some(ring) = self.ring {
            let member = self.first + index;
            return if member >= ring {
                member - ring
            } else {
                member
            };
        }
        let q = self.q.unwrap_or(usize::MAX);
        let (low, high) = if self.p < q { (self.p, q) } else { (q, self.p) };
        let member = index + usize::from(index >= low);
        member + usize::from(member >= high)
    }

    /// Which data chunk `member` has; `None` for parity.
    #[must_use]
    pub fn index(&self, member: usize) -> Option<usize> {
        if member == self.p || Some(member) == self.q {
            return None;
        }
        if let Some(ring) = self.ring {
            return Some((member + ring - self.first) % ring);
        }
        Some(
            member - usize::from(member > self.p) - usize::from(self.q.is_some_and(|q| member > q)),
        )
    }

    /// The members with parity.
    #[must_use]
    #[inline]
    pub fn parity(&self) -> MemberSet {
        let mut set = MemberSet::one(Member::new(self.p));
        if let Some(q) = self.q {
            set.insert(Member::new(q));
        }
        set
    }
}

impl Parity {
    pub(crate) fn new(
        level: ParityLevel,
        sizes: &[Sectors],
        chunk: Sectors,
        algorithm: ParityAlgorithm,
    ) -> Result<Self, LayoutError> {
        let instead = match (level, sizes.len()) {
            (ParityLevel::Raid6, 3) => Some("raid5, raid1 or raid10"),
            (ParityLevel::Raid6, 2) => Some("raid1"),
            _ => Some("raid0 or linear, which survive nothing"),
        };
        let name = level.name();
        check_members(name, sizes, level.least_members(), instead)?;
        let room = sizes.iter().copied().min().unwrap_or_default();
        check_chunk(name, chunk, room)?;
        check_least(name, sizes, chunk.0)?;
        if level != ParityLevel::Raid6 && !algorithm.is_raid5() {
            let known = ParityAlgorithm::ALL
                .iter()
                .filter(|a| a.is_raid5())
                .map(|a| a.name());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(LayoutError::Algorithm {
                level: name,
                algorithm: algorithm.name(),
                known,
            });
        }
        // Raid4 is md's raid5 with the parity on the last member.
        let raid4 = level == ParityLevel::Raid4;
        let algorithm = if raid4 {
            ParityAlgorithm::ParityLast
        } else {
            algorithm
        };
        let size = sizes.iter().map(|size| size.0).min().unwrap_or(0);
        let shift = chunk.0.trailing_zeros();
        Ok(Self {
            level,
            algorithm,
            members: sizes.len(),
            shift,
            stripes: size >> shift,
        })
    }

    /// Raid4, raid5 or raid6.
    #[must_use]
    pub const fn level(&self) -> ParityLevel {
        self.level
    }

    /// How parity moves; raid4's is [`ParityAlgorithm::ParityLast`].
    #[must_use]
    pub const fn algorithm(&self) -> ParityAlgorithm {
        self.algorithm
    }

    /// Unit of striping.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        Sectors(1 << self.shift)
    }

    /// Data chunks of a stripe.
    #[must_use]
    pub const fn data_members(&self) -> usize {
        self.members - self.level.parities()
    }

    /// Stripes of the array.
    #[must_use]
    pub const fn stripes(&self) -> u64 {
        self.stripes
    }

    /// The exponent i of the generator g = 2 in Q = sum of g^i * D_i, in GF(2^8) with polynomial
    /// 0x11d, for the data that `member` has in `stripe`; `None` when it has parity, or when the
    /// level has no Q. md counts the data members from the one after Q on, so that the order is
    /// not that of the array for asymmetric rotations (`raid5.c:raid6_d0`, `set_syndrome_sources`);
    /// DDF takes the member's number.
    #[must_use]
    pub fn q_exponent(&self, stripe: u64, member: Member) -> Option<u32> {
        let roles = self.roles(stripe);
        let (q, member) = (roles.q?, member.index());
        roles.index(member)?;
        if self.algorithm.is_ddf() {
            return Some(member as u32);
        }
        let from = |m: usize| (m + self.members - (q + 1) % self.members) % self.members;
        Some((from(member) - usize::from(from(roles.p) < from(member))) as u32)
    }

    /// The number of stripes after which their roles repeat.
    #[must_use]
    pub const fn period(&self) -> usize {
        use ParityAlgorithm as A;
        match self.algorithm {
            A::LeftAsymmetric6 | A::RightAsymmetric6 | A::LeftSymmetric6 | A::RightSymmetric6 => {
                self.members - 1
            }
            A::ParityFirst | A::ParityFirst6 | A::ParityLast => 1,
            _ => self.members,
        }
    }

    pub(crate) const fn members(&self) -> usize {
        self.members
    }

    pub(crate) const fn shift(&self) -> u32 {
        self.shift
    }

    pub(crate) const fn capacity(&self) -> u64 {
        (self.stripes * self.data_members() as u64) << self.shift
    }

    pub(crate) const fn used(&self) -> u64 {
        self.stripes << self.shift
    }

    /// Who has what in a stripe (`raid5.c:raid5_compute_sector`).
    #[must_use]
    pub fn roles(&self, stripe: u64) -> Roles {
        use ParityAlgorithm as A;
        let n = self.members;
        let turn = |of: usize| (stripe % of as u64) as usize;
        let p = match self.algorithm {
            A::LeftAsymmetric | A::LeftSymmetric | A::RotatingNContinue => n - 1 - turn(n),
            A::RightAsymmetric | A::RightSymmetric | A::RotatingZeroRestart => turn(n),
            A::RotatingNRestart => n - 1 - (turn(n) + 1) % n,
            A::LeftAsymmetric6 | A::LeftSymmetric6 => n - 2 - turn(n - 1),
            A::RightAsymmetric6 | A::RightSymmetric6 => turn(n - 1),
            A::ParityFirst | A::ParityFirst6 => 0,
            A::ParityLast => self.data_members(),
        };
        let q = (self.level == ParityLevel::Raid6).then_some(match self.algorithm {
            A::RotatingNContinue => (p + n - 1) % n,
            A::LeftAsymmetric6
            | A::RightAsymmetric6
            | A::LeftSymmetric6
            | A::RightSymmetric6
            | A::ParityFirst6 => n - 1,
            _ => (p + 1) % n,
        });
        let ring = self.algorithm.ring(n);
        // Data starts after the parities that rotate together: P, or P and Q with Q after P.
        let both = ring == Some(n) && q.is_some_and(|q| q == (p + 1) % n);
        let (first, round) = (p + if both { 2 } else { 1 }, ring.unwrap_or(n));
        // Less than two rounds: no division.
        let first = if first < round { first } else { first - round };
        Roles { p, q, ring, first }
    }

    /// The place of `lba` and how many sectors follow there contiguously.
    pub(crate) fn place(&self, lba: u64) -> (Place, u64) {
        let (number, offset) = (lba >> self.shift, lba & (self.chunk().0 - 1));
        let data = self.data_members() as u64;
        let (stripe, index) = (number / data, number % data);
        let member = Member(self.roles(stripe).member(index as usize) as u16);
        let sector = Lba((stripe << self.shift) + offset);
        (Place { member, sector }, self.chunk().0 - offset)
    }

    pub(crate) fn content(&self, member: usize, sector: u64) -> Content {
        let (stripe, offset) = (sector >> self.shift, sector & (self.chunk().0 - 1));
        if stripe >= self.stripes {
            return Content::Unused;
        }
        let roles = self.roles(stripe);
        match roles.index(member) {
            Some(index) => {
                let number = stripe * self.data_members() as u64 + index as u64;
                Content::Data(Lba((number << self.shift) + offset))
            }
            None if member == roles.p => Content::Parity {
                stripe,
                kind: ParityKind::P,
            },
            None => Content::Parity {
                stripe,
                kind: ParityKind::Q,
            },
        }
    }
}

//! Arrays of btrfs: chunks of the members that have the most room.
//!
//! btrfs has no rows from one end of its members to the other. Its space of addresses is cut into chunks, and each lies on
//! members of its own: those with the most room left when it was made (`fs/btrfs/volumes.c:btrfs_alloc_chunk`). A new
//! file system gets one chunk of metadata and then those of data one after the other, as they are needed. They are laid out
//! here as far as the members have room.
//!
//! The first MiB of the addresses is nobody's chunk: the superblocks are there, each of which is on every member.
//!
//! Left out: further chunks of metadata, and that superblocks leave holes in chunks (64 MiB and 256 GiB from each member's
//! beginning).
mod deal;
mod dealt;
mod rounds;
mod row;
mod share;
#[cfg(test)]
mod tests;
mod told;

pub use dealt::{Dealt, Group};
pub use row::Row;
pub use share::{Held, Share};

use crate::error::LayoutError;
use crate::types::{MAX_MEMBERS, Member, MemberSet, Place};
use raidlab_core::units::{Bytes, GIB, KIB, Lba, MIB, SECTOR, Sectors};
use smallvec::SmallVec;

/// Of each member what its first chunk begins after (`BTRFS_DEVICE_RANGE_RESERVED`), and of the addresses.
pub const RESERVED: Sectors = Sectors(MIB / SECTOR);
/// Superblocks of a member, from its beginning (`btrfs_sb_offset`).
pub const SUPERS: [Bytes; 3] = [Bytes(64 * KIB), Bytes(64 * MIB), Bytes(256 * GIB)];
/// Bytes of one (`BTRFS_SUPER_INFO_SIZE`).
pub const SUPER: Bytes = Bytes(4 * KIB);

/// Sectors of a striped chunk on one member before the next has its turn (`BTRFS_STRIPE_LEN`).
pub const STRIPE: u64 = 64 * KIB / SECTOR;
/// How a profile takes room (`btrfs_raid_array`): each chunk lies on as many members as still have some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// No fewer members than these.
    pub least: usize,
    /// No more than these, where there is a limit.
    pub most: Option<usize>,
    /// A multiple of these.
    pub multiple: usize,
    /// Copies of each byte.
    pub copies: usize,
    /// Members of each chunk whose room is parity's.
    pub parities: usize,
}

impl Takes {
    /// Of a layout by its name, or nothing of one that btrfs has not. `degenerate`: stripes may be over one member or one pair, as
    /// since Linux 5.15.
    #[must_use]
    pub fn of(layout: &str, degenerate: bool) -> Option<Self> {
        let all = |least, multiple, copies, parities| Self {
            least,
            most: None,
            multiple,
            copies,
            parities,
        };
        let most = |most, copies| Self {
            most: Some(most),
            ..all(most, 1, copies, 0)
        };
        Some(match layout {
            "single" | "linear" => most(1, 1),
            "raid0" => all(if degenerate { 1 } else { 2 }, 1, 1, 0),
            "raid1" => most(2, 2),
            "raid1c3" => most(3, 3),
            "raid1c4" => most(4, 4),
            "raid10" | "raid10-n2" => all(if degenerate { 2 } else { 4 }, 2, 2, 0),
            "raid5" => all(2, 1, 1, 1),
            "raid6" => all(3, 1, 1, 2),
            _ => return None,
        })
    }

    /// How many of so many members that have room a chunk takes; nothing where those are too few.
    #[must_use]
    pub fn wide(&self, having: usize) -> Option<usize> {
        let wide = having.min(self.most.unwrap_or(having)) / self.multiple * self.multiple;
        (wide >= self.least).then_some(wide)
    }

    /// Pieces of data of a chunk on so many members: each of its pieces has one of the copies of one, or parity.
    #[must_use]
    pub const fn data(&self, wide: usize) -> usize {
        wide.saturating_sub(self.parities) / self.copies
    }
}

/// How the chunks of data keep what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BtrfsProfile {
    /// Once, on one member.
    Single,
    /// Once, in stripes over all members that have room.
    Raid0,
    /// Twice, on two members.
    Raid1,
    /// Three times, on three members.
    Raid1c3,
    /// Four times, on four members.
    Raid1c4,
    /// In stripes over pairs of members, each of which has it twice.
    Raid10,
    /// In stripes with a parity.
    Raid5,
    /// In stripes with two parities.
    Raid6,
}

impl BtrfsProfile {
    /// All of them, as `mkfs` lists them.
    pub const ALL: [Self; 8] = [
        Self::Single,
        Self::Raid0,
        Self::Raid1,
        Self::Raid1c3,
        Self::Raid1c4,
        Self::Raid10,
        Self::Raid5,
        Self::Raid6,
    ];

    /// Of a layout as experiments write it; nothing of one that btrfs has not.
    #[must_use]
    pub fn of(layout: &str) -> Option<Self> {
        Self::named(match layout {
            "linear" => "single",
            "raid10-n2" => "raid10",
            other => other,
        })
    }

    /// Any of them, by the name that `mkfs` has for it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Copies of each byte.
    #[must_use]
    pub const fn copies(self) -> usize {
        match self {
            Self::Single | Self::Raid0 | Self::Raid5 | Self::Raid6 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid1c3 => 3,
            Self::Raid1c4 => 4,
        }
    }

    /// Any so many members may fail.
    #[must_use]
    pub const fn survives(self) -> usize {
        match self {
            Self::Single | Self::Raid0 => 0,
            Self::Raid1 | Self::Raid10 | Self::Raid5 => 1,
            Self::Raid1c3 | Self::Raid6 => 2,
            Self::Raid1c4 => 3,
        }
    }

    /// How it takes room; `degenerate` as in [`Takes::of`].
    #[must_use]
    pub fn takes(self, degenerate: bool) -> Takes {
        Takes::of(self.name(), degenerate).expect("each profile has a name of these")
    }

    /// How metadata is kept beside such data: as that, but twice where data is on one member alone, and in copies that survive as
    /// much where data has parity, as btrfs(5) wants it.
    #[must_use]
    pub const fn of_metadata(self) -> Self {
        match self {
            Self::Single | Self::Raid5 => Self::Raid1,
            Self::Raid6 => Self::Raid1c3,
            other => other,
        }
    }

    /// Members of each chunk whose room is parity's.
    #[must_use]
    pub fn parities(self) -> usize {
        self.takes(true).parities
    }

    /// As `mkfs` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid1c3 => "raid1c3",
            Self::Raid1c4 => "raid1c4",
            Self::Raid10 => "raid10",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        }
    }
}

impl BtrfsProfile {
    /// Whether `mkfs` takes members of these sizes.
    fn check(self, sizes: &[Sectors], degenerate: bool) -> Result<(), LayoutError> {
        if sizes.len() > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { given: sizes.len() });
        }
        let least = self.takes(degenerate).least.max(2);
        if sizes.len() < least {
            return Err(LayoutError::TooFewMembers {
                level: format!("{} of btrfs", self.name()),
                least,
                given: sizes.len(),
                instead: None,
            });
        }
        // Each has room for what mkfs makes on the first.
        match sizes.iter().position(|size| size.0 < deal::LEAST) {
            Some(member) => Err(self.too_small(member, sizes[member], Sectors(deal::LEAST))),
            None => Ok(()),
        }
    }

    /// No chunk of data has room beside that of metadata.
    fn no_room(self, sizes: &[u64], metadata: Bytes) -> LayoutError {
        let smallest = (0..sizes.len()).min_by_key(|member| sizes[*member]);
        let smallest = smallest.unwrap_or(0);
        let least = RESERVED.0 + metadata.to_sectors().0 + STRIPE;
        self.too_small(smallest, Sectors(sizes[smallest]), Sectors(least))
    }

    fn too_small(self, member: usize, size: Sectors, least: Sectors) -> LayoutError {
        LayoutError::MemberTooSmall {
            level: format!("{} of btrfs", self.name()),
            member,
            size,
            least,
            remedy: "use a larger member",
        }
    }
}

/// Bytes of a chunk of metadata, each copy: 1 GiB above 50 GiB, and 256 MiB below (`init_alloc_chunk_ctl_policy_regular`); what
/// mkfs 6.1 makes on smaller devices, as seen.
#[must_use]
pub const fn metadata_chunk(device: u64) -> u64 {
    match device {
        device if device > 50 * GIB => GIB,
        device if device > 2 * GIB => 256 * MIB,
        device if device / 20 > 32 * MIB => device / 20,
        _ => 32 * MIB,
    }
}

/// A stretch of addresses and the members that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    begin: u64,
    end: u64,
    copies: usize,
    /// Members whose room is parity's; which ones changes from stripe to stripe.
    parities: usize,
    /// Where it begins on each of its members; copies are side by side.
    pieces: SmallVec<[(u16, u64); 4]>,
}

/// The members that a sector is on, one for each copy.
pub type CopiesOf = SmallVec<[Place; 2]>;

/// An array of btrfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Btrfs {
    profile: BtrfsProfile,
    sizes: Vec<u64>,
    missing: MemberSet,
    /// The first has the metadata.
    chunks: Vec<Chunk>,
}

impl Btrfs {
    /// A file system over members of these sizes, whose first chunk has so many bytes of metadata, which are kept as
    /// [`BtrfsProfile::of_metadata`] says. `degenerate` as in [`Takes::of`].
    ///
    /// # Errors
    /// [`LayoutError`]: too few or too many members, or no room for a chunk of data beside that of metadata.
    pub fn new(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        metadata: Bytes,
        degenerate: bool,
    ) -> Result<Self, LayoutError> {
        Self::degraded(profile, sizes, metadata, degenerate, MemberSet::EMPTY)
    }

    /// The same of a file system that was made whole, had data written to it at addresses up to this one, and is mounted without some of
    /// its members (`-o degraded`) from then on, as [`Self::degraded`] is from the beginning.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn degraded_later(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        metadata: Bytes,
        degenerate: bool,
        (missing, written): (MemberSet, Lba),
    ) -> Result<Self, LayoutError> {
        profile.check(sizes, degenerate)?;
        let sizes: Vec<u64> = sizes.iter().map(|size| size.0).collect();
        let metadata_sectors = metadata.to_sectors().0;
        let of = (&sizes[..], missing, written.0);
        let chunks = deal::chunks(profile, of, metadata_sectors, degenerate);
        if chunks.len() < 2 {
            return Err(profile.no_room(&sizes, metadata));
        }
        Ok(Self {
            profile,
            sizes,
            missing,
            chunks,
        })
    }

    /// The same of a file system that was made whole and is mounted without some of its members (`-o degraded`) before anything is
    /// written. What `mkfs` has made stays in use, also where a copy of it is on a member that is missing; the kernel's chunks are on
    /// those that are there, and where these are too few for the profile, it keeps what is new once (`btrfs_reduce_alloc_profile`).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn degraded(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        metadata: Bytes,
        degenerate: bool,
        missing: MemberSet,
    ) -> Result<Self, LayoutError> {
        let later = (missing, Lba(0));
        Self::degraded_later(profile, sizes, metadata, degenerate, later)
    }

    /// How data is kept.
    #[must_use]
    pub const fn profile(&self) -> BtrfsProfile {
        self.profile
    }

    /// What members have for so many bytes of data in the chunks that the kernel makes: those of the profile, or of one copy where too
    /// few members are there.
    #[must_use]
    pub fn raw(&self) -> (u64, u64) {
        let of = |chunk: &Chunk| {
            let pieces = chunk.pieces.len();
            (
                pieces as u64,
                ((pieces - chunk.parities) / chunk.copies) as u64,
            )
        };
        self.chunks.last().map_or((1, 1), of)
    }

    /// Members that it is mounted without.
    #[must_use]
    pub const fn missing(&self) -> MemberSet {
        self.missing
    }

    /// What of each chunk is on a member, in the order of the places there.
    #[must_use]
    pub fn on(&self, member: Member) -> Vec<Share> {
        let of = |chunk: &Chunk| chunk.on(member.0);
        let mut shares: Vec<Share> = self.chunks.iter().filter_map(of).collect();
        shares.sort_by_key(|share| share.place);
        shares
    }

    /// Members.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.sizes.len()
    }

    /// Sectors of a member.
    #[must_use]
    pub fn size(&self, member: Member) -> Sectors {
        Sectors(self.sizes.get(member.index()).copied().unwrap_or(0))
    }

    /// Sectors of addresses: superblocks, metadata and data.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        Sectors(self.chunks.last().map_or(0, |chunk| chunk.end))
    }

    /// The sectors of addresses that the chunk of metadata has.
    #[must_use]
    pub fn metadata(&self) -> Sectors {
        Sectors(self.chunks[0].end - self.chunks[0].begin)
    }

    /// The first address of each chunk of data.
    pub fn begins(&self) -> impl Iterator<Item = Lba> {
        self.chunks[1..].iter().map(|chunk| Lba(chunk.begin))
    }

    /// Sectors of addresses of the largest chunk of data.
    #[must_use]
    pub fn chunk(&self) -> Sectors {
        let data = self.chunks[1..].iter();
        Sectors(data.map(|chunk| chunk.end - chunk.begin).max().unwrap_or(0))
    }

    fn chunk_of(&self, at: Lba) -> Option<&Chunk> {
        let chunk = &self.chunks[self.chunks.partition_point(|chunk| chunk.end <= at.0)..];
        chunk.first().filter(|chunk| chunk.begin <= at.0)
    }

    /// Where the copies of an address are, and how many sectors follow there; `None` before the first chunk and after the last.
    #[must_use]
    pub fn locate(&self, at: Lba) -> Option<(CopiesOf, u64)> {
        let chunk = self.chunk_of(at)?;
        let inside = at.0 - chunk.begin;
        let wide = chunk.pieces.len() / chunk.copies;
        let data = (wide - chunk.parities) as u64;
        let (first, sector, run) = match wide {
            1 => (0, inside, chunk.end - at.0),
            _ => {
                let (stripe, within) = (inside / STRIPE, inside % STRIPE);
                let (row, turn) = (stripe / data, (stripe % data) as usize);
                let first = match chunk.parities {
                    0 => turn * chunk.copies,
                    _ => row::piece(row, turn, wide),
                };
                (first, row * STRIPE + within, STRIPE - within)
            }
        };
        let copies = &chunk.pieces[first..first + chunk.copies];
        let place = |(member, begin): &(u16, u64)| Place {
            member: Member(*member),
            sector: Lba(begin + sector),
        };
        Some((copies.iter().map(place).collect(), run))
    }

    /// The address of a superblock, by its number.
    #[must_use]
    pub const fn super_at(number: usize) -> Lba {
        Lba((SUPERS[0].0 + number as u64 * SUPER.0) / SECTOR)
    }

    /// Where a superblock is on each member, if the address is that of one, and which members have room for it.
    #[must_use]
    pub fn super_of(&self, at: Lba) -> Option<(Lba, Vec<Member>)> {
        let number = (0..SUPERS.len()).find(|number| Self::super_at(*number) == at)?;
        let sector = SUPERS[number].0 / SECTOR;
        let has = |member: &Member| self.size(*member).0 >= sector + SUPER.0 / SECTOR;
        let members = (0..self.members()).map(Member::new).filter(has).collect();
        Some((Lba(sector), members))
    }
}

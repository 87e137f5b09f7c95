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
mod profile;
mod rounds;
mod row;
mod share;
#[cfg(test)]
mod tests;
mod told;

pub use dealt::{Dealt, Group};
pub use profile::{BtrfsProfile, Takes};
pub use row::Row;
pub use share::{Held, Share};

use crate::error::LayoutError;
use crate::types::{Member, MemberSet, Place};
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

//! Arrays of btrfs: chunks of the members that have the most room.
//!
//! btrfs has no rows from one end of its members to the other. Its space of addresses is cut into chunks, and each lies on
//! members of its own: those with the most room left when it was made (`fs/btrfs/volumes.c:btrfs_alloc_chunk`). A new
//! file system gets one chunk of metadata and then those of data one after the other, as they are needed. They are laid out
//! here as far as the members have room.
//!
//! The first MiB of the addresses is nobody's chunk: the superblocks are there, each of which is on every member.
//!
//! `mkfs` makes the first chunks, of which that of data is smaller on small members, and has the last members, by number. The kernel's have
//! those first that have the most room, and of members with the same the first one last: so its `sort` leaves what is equal to 6.10.
//! Of two copies the first is then on another member than in the first chunk. Seen on Linux 6.1 in guests, and on 6.18 with mkfs 6.2
//! (`btrfs inspect-internal dump-tree -t chunk`), whose sort leaves equal ones in another order yet.
//!
//! Left out: further chunks of metadata, and that superblocks leave holes in chunks (64 MiB and 256 GiB from each member's
//! beginning).
use crate::error::LayoutError;
use crate::types::{MAX_MEMBERS, Member, Place};
use raidlab_core::units::{Bytes, GIB, KIB, Lba, MIB, SECTOR, Sectors};
use smallvec::SmallVec;

/// Of each member what its first chunk begins after (`BTRFS_DEVICE_RANGE_RESERVED`), and of the addresses.
pub const RESERVED: Sectors = Sectors(MIB / SECTOR);
/// Where chunks begin on the first member: before it are those that `mkfs` makes first and removes.
const FIRST: u64 = 21 * MIB / SECTOR;
/// Chunks of the system that `mkfs` makes: of a pair on each, of stripes together. They hold nothing that is asked for here.
const SYSTEM: (u64, u64) = (8 * MIB / SECTOR, 16 * MIB / SECTOR);
/// The chunk of data that `mkfs` leaves on it where data is kept once on one member, and its sectors.
const LEFT: (u64, u64) = (13 * MIB / SECTOR, 8 * MIB / SECTOR);
/// Superblocks of a member, from its beginning (`btrfs_sb_offset`).
pub const SUPERS: [Bytes; 3] = [Bytes(64 * KIB), Bytes(64 * MIB), Bytes(256 * GIB)];
/// Bytes of one (`BTRFS_SUPER_INFO_SIZE`).
pub const SUPER: Bytes = Bytes(4 * KIB);

/// What of a striped chunk lies on one member before the next has its turn (`BTRFS_STRIPE_LEN`).
const STRIPE: u64 = 64 * KIB / SECTOR;
/// Of a member no more than this goes into one chunk (`init_alloc_chunk_ctl_policy_regular`).
const PIECE: u64 = GIB / SECTOR;
/// Data of a chunk (`BTRFS_MAX_DATA_CHUNK_SIZE`), and no more than a tenth of all members.
const CHUNK: u64 = 10 * GIB / SECTOR;
/// What a chunk that would be too large is made of multiples of.
const ROUND: u64 = 16 * MIB / SECTOR;

/// How the chunks of data keep what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BtrfsProfile {
    /// Once, on one member.
    Single,
    /// Once, in stripes over all members that have room.
    Raid0,
    /// Twice, on two members.
    Raid1,
    /// In stripes over pairs of members, each of which has it twice.
    Raid10,
}

impl BtrfsProfile {
    /// Copies of each byte.
    #[must_use]
    pub const fn copies(self) -> usize {
        match self {
            Self::Single | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 => 2,
        }
    }

    /// Fewest members of a chunk, most, and what they are a multiple of (`btrfs_raid_array`). Since Linux 5.15 stripes may be
    /// `degenerate`: over one member, or over one pair.
    fn members(self, degenerate: bool) -> (usize, usize, usize) {
        let least = |few, more| if degenerate { few } else { more };
        match self {
            Self::Single => (1, 1, 1),
            Self::Raid0 => (least(1, 2), MAX_MEMBERS, 1),
            Self::Raid1 => (2, 2, 1),
            Self::Raid10 => (least(2, 4), MAX_MEMBERS, 2),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid10 => "raid10",
        }
    }
}

/// A stretch of addresses and the members that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    begin: u64,
    end: u64,
    copies: usize,
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
    /// The first has the metadata.
    chunks: Vec<Chunk>,
}

/// What is left of the members while chunks are made.
struct Room<'a> {
    sizes: &'a [u64],
    degenerate: bool,
    next: Vec<u64>,
    /// What chunks have of each.
    used: Vec<u64>,
}

impl Room<'_> {
    /// The place of a member among those that have as much room.
    fn turn(&self, member: u16) -> usize {
        (usize::from(member) + self.sizes.len() - 1) % self.sizes.len()
    }

    fn of(&self, member: u16) -> u64 {
        let member = usize::from(member);
        self.sizes[member].saturating_sub(self.next[member])
    }

    /// The members that a chunk has, with what each has for it at the most: those with the most room first.
    fn members(&self, profile: BtrfsProfile, piece: u64) -> Option<Vec<(u64, u16)>> {
        let (least, widest, multiple) = profile.members(self.degenerate);
        let mut having: Vec<(u64, u64, u16)> = (0..self.sizes.len() as u16)
            .map(|member| {
                let index = usize::from(member);
                (
                    self.of(member).min(piece),
                    self.sizes[index] - self.used[index].min(self.sizes[index]),
                    member,
                )
            })
            .filter(|(most, ..)| *most >= STRIPE)
            .collect();
        having.sort_by_key(|(most, all, member)| {
            (u64::MAX - most, u64::MAX - all, self.turn(*member))
        });
        let wide = having.len().min(widest) / multiple * multiple;
        having.truncate(wide);
        (wide >= least).then(|| {
            having
                .iter()
                .map(|(most, _, member)| (*most, *member))
                .collect()
        })
    }

    /// A chunk of the kernel's, of no more than `most` sectors of addresses.
    fn chunk(&mut self, profile: BtrfsProfile, begin: u64, most: u64) -> Option<Chunk> {
        let members = self.members(profile, PIECE)?;
        let data = (members.len() / profile.copies()) as u64;
        let mut each = members.last()?.0;
        if each * data > most {
            each = most.div_ceil(data).next_multiple_of(ROUND).min(each);
        }
        Some(self.taken(profile, begin, members, each))
    }

    /// A chunk of `mkfs`'s: the last members have it, all together no more than `most`, those of a pair each so much.
    fn made(&mut self, profile: BtrfsProfile, begin: u64, most: u64) -> Option<Chunk> {
        let mut members = self.members(profile, PIECE)?;
        let wide = members.len();
        let having =
            (0..self.sizes.len() as u16).map(|member| (self.of(member).min(PIECE), member));
        members = having.filter(|(most, _)| *most >= STRIPE).collect();
        members.drain(..members.len() - wide);
        let shares = match profile {
            BtrfsProfile::Single | BtrfsProfile::Raid1 => 1,
            BtrfsProfile::Raid0 | BtrfsProfile::Raid10 => members.len() as u64,
        };
        let least = members.iter().map(|(most, _)| *most).min()?;
        Some(self.taken(profile, begin, members, least.min(most / shares)))
    }

    fn taken(
        &mut self,
        profile: BtrfsProfile,
        begin: u64,
        members: Vec<(u64, u16)>,
        each: u64,
    ) -> Chunk {
        let each = each / STRIPE * STRIPE;
        let data = (members.len() / profile.copies()) as u64;
        let pieces = members.iter().map(|(_, member)| {
            let next = &mut self.next[usize::from(*member)];
            *next += each;
            self.used[usize::from(*member)] += each;
            (*member, *next - each)
        });
        Chunk {
            begin,
            copies: profile.copies(),
            pieces: pieces.collect(),
            end: begin + each * data,
        }
    }
}

impl Btrfs {
    /// A file system over members of these sizes, whose first chunk has so many bytes of metadata. Metadata is kept as data is,
    /// and twice where that lies on one member. `degenerate`: as since Linux 5.15, stripes may be over one member or one pair.
    ///
    /// # Errors
    /// [`LayoutError`]: too few or too many members, or no room for a chunk of data beside that of metadata.
    pub fn new(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        metadata: Bytes,
        degenerate: bool,
    ) -> Result<Self, LayoutError> {
        let level = || format!("{} of btrfs", profile.name());
        let of_metadata = match profile {
            BtrfsProfile::Single => BtrfsProfile::Raid1,
            other => other,
        };
        let least = of_metadata.members(degenerate).0.max(2);
        if sizes.len() < least {
            return Err(LayoutError::TooFewMembers {
                level: level(),
                least,
                given: sizes.len(),
                instead: None,
            });
        }
        if sizes.len() > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { given: sizes.len() });
        }
        let sizes: Vec<u64> = sizes.iter().map(|size| size.0).collect();
        let too_small = |member: usize, least: u64| LayoutError::MemberTooSmall {
            level: level(),
            member,
            size: Sectors(sizes[member]),
            least: Sectors(least),
            remedy: "use a larger member",
        };
        // Each has room for what mkfs makes on the first.
        if let Some(member) = sizes.iter().position(|size| *size < FIRST + STRIPE) {
            return Err(too_small(member, FIRST + STRIPE));
        }
        let mut room = Room {
            next: vec![RESERVED.0; sizes.len()],
            used: vec![0; sizes.len()],
            sizes: &sizes,
            degenerate,
        };
        room.next[0] = FIRST;
        let system = if profile.copies() == 2 || profile == BtrfsProfile::Single {
            SYSTEM.0
        } else {
            SYSTEM.1
        };
        room.made(of_metadata, RESERVED.0, system);
        let most = CHUNK.min(sizes.iter().sum::<u64>() / 10);
        let first = room.made(of_metadata, RESERVED.0, metadata.0 / SECTOR);
        let mut chunks: Vec<Chunk> = first.into_iter().collect();
        if let Some(begin) = chunks.last().map(|chunk| chunk.end) {
            // What mkfs makes for data of several members has a tenth of what they have together, each copy and all stripes.
            let of_mkfs = match profile {
                BtrfsProfile::Single => Some(Chunk {
                    begin,
                    end: begin + LEFT.1,
                    copies: 1,
                    pieces: SmallVec::from_slice(&[(0, LEFT.0)]),
                }),
                BtrfsProfile::Raid1 => room.made(profile, begin, most / 2),
                BtrfsProfile::Raid0 | BtrfsProfile::Raid10 => room.made(profile, begin, most),
            };
            chunks.extend(of_mkfs.filter(|chunk| chunk.end > chunk.begin));
        }
        if profile == BtrfsProfile::Single {
            room.used[0] += LEFT.1;
        }
        while let Some(begin) = chunks.last().map(|chunk| chunk.end)
            && let Some(chunk) = room.chunk(profile, begin, most)
            && chunk.end > chunk.begin
        {
            chunks.push(chunk);
        }
        if chunks.len() < 2 {
            let smallest = (0..sizes.len()).min_by_key(|member| sizes[*member]);
            let least = RESERVED.0 + metadata.0 / SECTOR + STRIPE;
            return Err(too_small(smallest.unwrap_or(0), least));
        }
        Ok(Self {
            profile,
            sizes,
            chunks,
        })
    }

    /// How data is kept.
    #[must_use]
    pub const fn profile(&self) -> BtrfsProfile {
        self.profile
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

    /// Sectors of addresses of the largest chunk of data.
    #[must_use]
    pub fn chunk(&self) -> Sectors {
        let data = self.chunks[1..].iter();
        Sectors(data.map(|chunk| chunk.end - chunk.begin).max().unwrap_or(0))
    }

    /// Where the copies of an address are, and how many sectors follow there; `None` before the first chunk and after the last.
    #[must_use]
    pub fn locate(&self, at: Lba) -> Option<(CopiesOf, u64)> {
        let chunk = &self.chunks[self.chunks.partition_point(|chunk| chunk.end <= at.0)..];
        let chunk = chunk.first().filter(|chunk| chunk.begin <= at.0)?;
        let inside = at.0 - chunk.begin;
        let wide = (chunk.pieces.len() / chunk.copies) as u64;
        let (first, sector, run) = match wide {
            1 => (0, inside, chunk.end - at.0),
            _ => {
                let (stripe, within) = (inside / STRIPE, inside % STRIPE);
                let first = (stripe % wide) as usize * chunk.copies;
                (first, stripe / wide * STRIPE + within, STRIPE - within)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const META: Bytes = Bytes(256 * MIB);
    const ALL: [BtrfsProfile; 4] = [
        BtrfsProfile::Single,
        BtrfsProfile::Raid0,
        BtrfsProfile::Raid1,
        BtrfsProfile::Raid10,
    ];

    fn made(profile: BtrfsProfile, gib: &[u64]) -> Btrfs {
        let sizes: Vec<Sectors> = gib
            .iter()
            .map(|gib| Bytes(gib * GIB).to_sectors())
            .collect();
        let large = gib.iter().sum::<u64>() > 50;
        let metadata = if large { Bytes::gib(1) } else { META };
        Btrfs::new(profile, &sizes, metadata, true).expect("an array")
    }

    /// The members of each chunk of data, in their order.
    fn dealt(array: &Btrfs) -> Vec<Vec<u16>> {
        let members = |chunk: &Chunk| chunk.pieces.iter().map(|piece| piece.0).collect();
        array.chunks[1..].iter().map(members).collect()
    }

    /// MiB that a chunk of data has of each member, and where on the first one of its.
    fn sizes(array: &Btrfs) -> Vec<f64> {
        let of = |chunk: &Chunk| {
            let data = (chunk.pieces.len() / chunk.copies) as u64;
            (chunk.end - chunk.begin) as f64 / data as f64 / 2048.0
        };
        array.chunks[1..].iter().map(of).collect()
    }

    /// As Linux 6.18 and mkfs 6.2 dealt out files of several GiB on loop devices.
    #[test]
    fn chunks_are_those_of_a_real_file_system() {
        let array = made(BtrfsProfile::Raid1, &[3; 2]);
        assert_eq!(sizes(&array)[..3], [307.1875, 624.0, 624.0]);
        assert_eq!(dealt(&array)[..3], [[0, 1], [1, 0], [1, 0]].map(Vec::from));
        let array = made(BtrfsProfile::Raid1, &[100; 2]);
        assert_eq!(sizes(&array)[..2], [1024.0; 2]);
        let array = made(BtrfsProfile::Raid1, &[100; 3]);
        let expected = [[1, 2], [0, 1], [0, 2], [0, 1], [0, 2], [0, 1]];
        assert_eq!(dealt(&array)[..6], expected.map(Vec::from));
        let array = made(BtrfsProfile::Raid10, &[3; 4]);
        assert_eq!(sizes(&array)[..3], [307.1875, 624.0, 624.0]);
        assert_eq!(
            dealt(&array)[..2],
            [[0, 1, 2, 3], [1, 2, 3, 0]].map(Vec::from)
        );
        let array = made(BtrfsProfile::Single, &[3; 2]);
        assert_eq!(sizes(&array)[..3], [8.0, 624.0, 624.0]);
        assert_eq!(dealt(&array)[..5], [[0], [1], [0], [1], [0]].map(Vec::from));
        let array = made(BtrfsProfile::Single, &[100; 3]);
        assert_eq!(dealt(&array)[..2], [[0], [0]].map(Vec::from));
        let array = made(BtrfsProfile::Raid0, &[100; 4]);
        assert_eq!(sizes(&array)[..2], [1024.0; 2]);
        // Ten GiB over twelve members, rounded down by mkfs and up by the kernel.
        let array = made(BtrfsProfile::Raid0, &[1024; 12]);
        assert_eq!(sizes(&array)[..2], [853.3125, 864.0]);
        assert_eq!(array.chunk(), Bytes(12 * 864 * MIB).to_sectors());
    }

    #[test]
    fn chunks_go_to_the_members_with_the_most_room() {
        // Four members of which one is small: pairs of all four while that has room, and then of two.
        let array = made(BtrfsProfile::Raid10, &[40, 40, 40, 12]);
        let widths: BTreeSet<usize> = dealt(&array).iter().map(Vec::len).collect();
        assert_eq!(widths, BTreeSet::from([2, 4]));
        // They find no room for four as Linux before 5.15 wants them.
        let sizes = [40, 40, 40, 12].map(|gib| Bytes(gib * GIB).to_sectors());
        let old = Btrfs::new(BtrfsProfile::Raid10, &sizes, META, false).expect("an array");
        assert!(dealt(&old).iter().all(|on| on.len() == 4));
    }

    #[test]
    fn stripes_and_copies_are_where_the_kernel_maps_them() {
        let array = made(BtrfsProfile::Raid10, &[40; 4]);
        let begin = array.chunks[1].begin;
        let at = |sector: u64| {
            let (copies, run) = array.locate(Lba(begin + sector)).expect("a place");
            let members: Vec<u16> = copies.iter().map(|place| place.member.0).collect();
            let first = |piece: &&(u16, u64)| piece.0 == copies[0].member.0;
            let piece = array.chunks[1].pieces.iter().find(first).expect("a piece");
            let inside = copies[0].sector.0 - piece.1;
            (members, inside, run)
        };
        assert_eq!(at(0), (vec![0, 1], 0, 128));
        assert_eq!(at(130), (vec![2, 3], 2, 126));
        assert_eq!(at(256), (vec![0, 1], 128, 128));
        let single = made(BtrfsProfile::Single, &[40; 2]);
        let second = single.chunks[2].begin;
        let (copies, run) = single.locate(Lba(second + 5)).expect("a place");
        assert_eq!((copies.len(), run), (1, PIECE - 5));
    }

    #[test]
    fn superblocks_are_on_all_members_that_have_room() {
        let array = made(BtrfsProfile::Raid0, &[300, 300, 200]);
        let of = |number| {
            array
                .super_of(Btrfs::super_at(number))
                .map(|(at, on)| (at.0, on.len()))
        };
        assert_eq!(of(0), Some((128, 3)));
        assert_eq!(of(1), Some((64 * 2048, 3)));
        assert_eq!(of(2), Some((256 << 21, 2)));
        assert_eq!(array.super_of(Lba(0)), None);
        assert_eq!(array.locate(Btrfs::super_at(0)), None);
    }

    #[test]
    fn too_little_is_refused() {
        let of = |profile, sizes: &[u64]| {
            let sizes: Vec<Sectors> = sizes.iter().map(|size| Sectors(*size)).collect();
            Btrfs::new(profile, &sizes, META, true)
                .expect_err("no array")
                .to_string()
        };
        assert!(of(BtrfsProfile::Raid1, &[1 << 30]).contains("at least 2"));
        assert!(
            of(BtrfsProfile::Single, &[3, 3])
                .contains("member 0 has 1.5 KiB, less than the 21.1 MiB")
        );
        // What mkfs leaves on the first would be beyond its end.
        assert!(of(BtrfsProfile::Single, &[20_000, 1 << 24, 1 << 24]).contains("member 0"));
        assert!(of(BtrfsProfile::Raid1, &[1 << 24, 60_000]).contains("member 1"));
        assert!(of(BtrfsProfile::Raid0, &[1 << 30; 200]).contains("200 members"));
    }

    proptest! {
        /// No sector of a member is in two places, none is beyond its end, and copies are on different members.
        #[test]
        fn no_sector_is_given_out_twice(
            profile in prop::sample::select(&ALL[..]),
            gib in prop::collection::vec(2_u64..20, 2..7),
        ) {
            let array = made(profile, &gib);
            let mut taken: Vec<Vec<(u64, u64)>> = vec![Vec::new(); gib.len()];
            for chunk in &array.chunks {
                let on: BTreeSet<u16> = chunk.pieces.iter().map(|piece| piece.0).collect();
                prop_assert_eq!(on.len(), chunk.pieces.len());
                let each = (chunk.end - chunk.begin) / (chunk.pieces.len() / chunk.copies) as u64;
                for (member, begin) in &chunk.pieces {
                    taken[usize::from(*member)].push((*begin, begin + each));
                }
            }
            for (member, mut runs) in taken.into_iter().enumerate() {
                runs.sort_unstable();
                prop_assert!(runs.first().is_none_or(|run| run.0 >= RESERVED.0), "{runs:?}");
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                let end = runs.last().map_or(0, |run| run.1);
                prop_assert!(end <= array.size(Member::new(member)).0);
            }
            prop_assert!(array.chunks.windows(2).all(|pair| pair[0].end == pair[1].begin));
        }

        /// A run of addresses is a run on each of its members.
        #[test]
        fn a_run_lies_together(
            profile in prop::sample::select(&ALL[..]),
            gib in prop::collection::vec(2_u64..20, 2..7),
            spot in 0_u64..1 << 20,
        ) {
            let array = made(profile, &gib);
            let data = array.capacity().0 - RESERVED.0;
            let at = RESERVED.0 + spot * (data / (1 << 20));
            let (first, run) = array.locate(Lba(at)).expect("a place");
            prop_assert!(run > 0 && at + run <= array.capacity().0);
            let (last, rest) = array.locate(Lba(at + run - 1)).expect("a place");
            prop_assert_eq!(rest, 1);
            for (first, last) in first.iter().zip(&last) {
                prop_assert_eq!(first.member, last.member);
                prop_assert_eq!(first.sector.0 + run - 1, last.sector.0);
            }
        }
    }
}

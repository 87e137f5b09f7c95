//! Which members each chunk gets.
//!
//! `mkfs` makes the first chunks, which have the last members, by number, and of which that of data is smaller on small members. The
//! kernel's have those first that have the most room, and of members with the same the first one last, as heapsort leaves what is
//! equal (`lib/sort.c` to about 6.10, from memory). Of two copies the first is then on another member than in the first chunk. Looked
//! at on Linux 6.18 with mkfs 6.2 (`btrfs inspect-internal dump-tree -t chunk`), whose sort leaves what is equal in another order yet;
//! that the first chunk of a mirror has the other order on 6.1, too, is how its reads in guests go.
use super::{BtrfsProfile, Chunk, RESERVED, STRIPE, Takes};
use crate::types::{Member, MemberSet};
use raidlab_core::units::{GIB, MIB, SECTOR};
use smallvec::SmallVec;

/// Where chunks begin on the first member: before it are those that `mkfs` makes first and removes.
const FIRST: u64 = 21 * MIB / SECTOR;
/// The chunk of the system that `mkfs` makes: on each of a pair, and of stripes on all together. It holds nothing that is asked for
/// here.
const SYSTEM: (u64, u64) = (8 * MIB / SECTOR, 16 * MIB / SECTOR);
/// The chunk of data that `mkfs` leaves on it where data is kept once on one member, and its sectors.
const LEFT: (u64, u64) = (13 * MIB / SECTOR, 8 * MIB / SECTOR);
/// Of a member no more than this goes into one chunk (`init_alloc_chunk_ctl_policy_regular`).
const PIECE: u64 = GIB / SECTOR;
/// Data of a chunk (`BTRFS_MAX_DATA_CHUNK_SIZE`), and no more than a tenth of all members.
const CHUNK: u64 = 10 * GIB / SECTOR;
/// What a chunk that would be too large is made of multiples of.
const ROUND: u64 = 16 * MIB / SECTOR;

/// Fewest sectors of a member: room for what `mkfs` makes on the first.
pub(super) const LEAST: u64 = FIRST + STRIPE;

/// All chunks, as far as the members have room: that of metadata, of so many sectors, and those of data. What `mkfs` makes is on all
/// members, and what the kernel makes on those that are not missing.
pub(super) fn chunks(
    profile: BtrfsProfile,
    (sizes, missing): (&[u64], MemberSet),
    metadata: u64,
    degenerate: bool,
) -> Vec<Chunk> {
    let of_metadata = match profile {
        BtrfsProfile::Single => BtrfsProfile::Raid1,
        other => other,
    };
    let takes = |profile: BtrfsProfile| Takes::of(profile.name(), degenerate);
    let (Some(data_takes), Some(metadata_takes)) = (takes(profile), takes(of_metadata)) else {
        return Vec::new();
    };
    let mut room = Room {
        next: vec![RESERVED.0; sizes.len()],
        used: vec![0; sizes.len()],
        missing: MemberSet::EMPTY,
        sizes,
    };
    room.next[0] = FIRST;
    let striped = matches!(profile, BtrfsProfile::Raid0 | BtrfsProfile::Raid10);
    let system = if striped { SYSTEM.1 } else { SYSTEM.0 };
    room.made(&metadata_takes, RESERVED.0, system);
    let Some(first) = room.made(&metadata_takes, RESERVED.0, metadata) else {
        return Vec::new();
    };
    let (most, begin) = (CHUNK.min(sizes.iter().sum::<u64>() / 10), first.end);
    let of_mkfs = match profile {
        BtrfsProfile::Single => {
            room.used[0] += LEFT.1;
            Some(Chunk {
                begin,
                end: begin + LEFT.1,
                copies: 1,
                pieces: SmallVec::from_slice(&[(0, LEFT.0)]),
            })
        }
        // It may be a tenth of what the members have together, with its copies.
        BtrfsProfile::Raid1 => room.made(&data_takes, begin, most / 2),
        BtrfsProfile::Raid0 | BtrfsProfile::Raid10 => room.made(&data_takes, begin, most),
    };
    let mut chunks = vec![first];
    chunks.extend(of_mkfs.filter(|chunk| chunk.end > chunk.begin));
    room.missing = missing;
    let there = room.there();
    let most = CHUNK.min(there.iter().sum::<u64>() / 10);
    let kept = Some(data_takes).filter(|takes| takes.wide(there.len()).is_some());
    let Some(data_takes) = kept.or_else(|| takes(BtrfsProfile::Single)) else {
        return chunks;
    };
    while let Some(begin) = chunks.last().map(|chunk| chunk.end)
        && let Some(chunk) = room.chunk(&data_takes, begin, most)
        && chunk.end > chunk.begin
    {
        chunks.push(chunk);
    }
    chunks
}

/// What is left of the members while chunks are made.
struct Room<'a> {
    sizes: &'a [u64],
    /// Where the next piece begins on each.
    next: Vec<u64>,
    /// What chunks have of each.
    used: Vec<u64>,
    /// Members that get no more of them.
    missing: MemberSet,
}

impl Room<'_> {
    /// The place of a member among those that have as much room.
    fn turn(&self, member: u16) -> usize {
        (usize::from(member) + self.sizes.len() - 1) % self.sizes.len()
    }

    /// Sectors behind the last piece.
    fn of(&self, member: u16) -> u64 {
        let member = usize::from(member);
        self.sizes[member].saturating_sub(self.next[member])
    }

    /// The sizes of the members that get chunks.
    fn there(&self) -> Vec<u64> {
        let there = (0..self.sizes.len()).filter(|m| !self.missing.contains(Member::new(*m)));
        there.map(|member| self.sizes[member]).collect()
    }

    /// Members with room for a piece, and how much of it at the most, by number.
    fn having(&self) -> Vec<(u64, u16)> {
        let members = (0..self.sizes.len() as u16).filter(|m| !self.missing.contains(Member(*m)));
        let room = members.map(|member| (self.of(member).min(PIECE), member));
        room.filter(|(most, _)| *most >= STRIPE).collect()
    }

    /// A chunk of the kernel's, of no more than `most` sectors of addresses: on the members with the most room.
    fn chunk(&mut self, takes: &Takes, begin: u64, most: u64) -> Option<Chunk> {
        let mut members = self.having();
        members.sort_by_key(|(most, member)| {
            let index = usize::from(*member);
            let left = self.sizes[index].saturating_sub(self.used[index]);
            (u64::MAX - most, u64::MAX - left, self.turn(*member))
        });
        members.truncate(takes.wide(members.len())?);
        let data = (members.len() / takes.copies) as u64;
        let mut each = members.last()?.0;
        if each * data > most {
            each = most.div_ceil(data).next_multiple_of(ROUND).min(each);
        }
        Some(self.taken(takes, begin, members, each))
    }

    /// A chunk of `mkfs`'s, on the last members: on each of one or two of them no more than `most`, on all of more together.
    fn made(&mut self, takes: &Takes, begin: u64, most: u64) -> Option<Chunk> {
        let mut members = self.having();
        let wide = takes.wide(members.len())?;
        members.drain(..members.len() - wide);
        let shares = takes.most.map_or(wide as u64, |_| 1);
        let least = members.iter().map(|(most, _)| *most).min()?;
        Some(self.taken(takes, begin, members, least.min(most / shares)))
    }

    fn taken(&mut self, takes: &Takes, begin: u64, members: Vec<(u64, u16)>, each: u64) -> Chunk {
        let each = each / STRIPE * STRIPE;
        let data = (members.len() / takes.copies) as u64;
        let pieces = members.iter().map(|(_, member)| {
            let index = usize::from(*member);
            let begin = self.next[index];
            self.next[index] += each;
            self.used[index] += each;
            (*member, begin)
        });
        Chunk {
            begin,
            copies: takes.copies,
            pieces: pieces.collect(),
            end: begin + each * data,
        }
    }
}

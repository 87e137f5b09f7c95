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
/// The chunk of the system that `mkfs` makes: on each of a pair, of stripes on all together, and on each at the least. It
/// holds nothing that is asked for here.
const SYSTEM: (u64, u64, u64) = (8 * MIB / SECTOR, 16 * MIB / SECTOR, MIB / SECTOR);
/// The chunk of data that `mkfs` leaves on it where data is kept once on one member, and its sectors.
const LEFT: (u64, u64) = (13 * MIB / SECTOR, 8 * MIB / SECTOR);
/// Of a member no more than this goes into one chunk (`init_alloc_chunk_ctl_policy_regular`).
pub(super) const PIECE: u64 = GIB / SECTOR;
/// Data of a chunk (`BTRFS_MAX_DATA_CHUNK_SIZE`), and no more than a tenth of all members.
const CHUNK: u64 = 10 * GIB / SECTOR;
/// The least pieces of `mkfs`'s: of metadata, and of data.
const LEAST_METADATA: u64 = 32 * MIB / SECTOR;
const LEAST_DATA: u64 = 64 * MIB / SECTOR;
/// What a chunk that would be too large is made of multiples of.
const ROUND: u64 = 16 * MIB / SECTOR;

/// Fewest sectors of a member: room for what `mkfs` makes on the first.
pub(super) const LEAST: u64 = FIRST + STRIPE;

/// All chunks, as far as the members have room: that of metadata, of so many sectors, and those of data. What `mkfs` makes is on
/// all members, and so are those of the kernel that were needed for what lies before the address `written`; the others are on the
/// members that are not missing.
pub(super) fn chunks(
    profile: BtrfsProfile,
    (sizes, missing, written): (&[u64], MemberSet, u64),
    metadata: u64,
    degenerate: bool,
) -> Vec<Chunk> {
    let Some((mut chunks, mut deal)) = of_mkfs(profile, sizes, metadata, degenerate) else {
        return Vec::new();
    };
    let mut is_whole = true;
    while let Some(begin) = chunks.last().map(|chunk| chunk.end) {
        if is_whole && begin >= written {
            deal.without(missing, degenerate);
            is_whole = false;
        }
        let Some(chunk) = deal.next(begin) else {
            break;
        };
        chunks.push(chunk);
    }
    chunks
}

/// The chunks that `mkfs` makes, that of metadata first, and what the kernel deals on from.
pub(super) fn of_mkfs(
    profile: BtrfsProfile,
    sizes: &[u64],
    metadata: u64,
    degenerate: bool,
) -> Option<(Vec<Chunk>, Deal<'_>)> {
    let takes = profile.takes(degenerate);
    let of_metadata = profile.of_metadata().takes(degenerate);
    let mut room = Room {
        next: vec![RESERVED.0; sizes.len()],
        used: vec![0; sizes.len()],
        missing: MemberSet::EMPTY,
        hole: (0, 0),
        sizes,
    };
    room.next[0] = FIRST;
    let cut = |each, most, least| Cut { each, most, least };
    room.made(&of_metadata, RESERVED.0, cut(SYSTEM.0, SYSTEM.1, SYSTEM.2));
    let least = LEAST_METADATA.min(metadata);
    let first = room.made(&of_metadata, RESERVED.0, cut(metadata, metadata, least))?;
    let (most, begin) = (CHUNK.min(sizes.iter().sum::<u64>() / 10), first.end);
    let of_data = match profile {
        BtrfsProfile::Single => {
            room.used[0] += LEFT.1;
            Some(Chunk {
                begin,
                end: begin + LEFT.1,
                copies: 1,
                parities: 0,
                pieces: SmallVec::from_slice(&[(0, LEFT.0)]),
            })
        }
        _ => room.made(&takes, begin, cut(PIECE, most, LEAST_DATA)),
    };
    let mut chunks = vec![first];
    chunks.extend(of_data.filter(|chunk| chunk.end > chunk.begin));
    room.with_beginning(profile);
    Some((chunks, Deal { room, takes, most }))
}

/// How large `mkfs` makes the pieces of a chunk (`decide_stripe_size_regular` of its own).
#[derive(Clone, Copy)]
struct Cut {
    /// So many sectors each, where all data together are no more than `most`; else that in as many parts as there are pieces.
    each: u64,
    most: u64,
    /// And never less.
    least: u64,
}

impl Cut {
    fn piece(&self, takes: &Takes, wide: usize) -> u64 {
        let cut = self.each.saturating_mul(takes.data(wide) as u64) > self.most;
        let each = if cut {
            self.most / wide as u64
        } else {
            self.each
        };
        each.max(self.least)
    }
}

/// The chunks of data that the kernel makes, one after the other.
#[derive(Clone)]
pub(super) struct Deal<'a> {
    pub(super) room: Room<'a>,
    takes: Takes,
    /// Sectors of data of one.
    most: u64,
}

impl Deal<'_> {
    /// The file system is mounted without these members from here on.
    fn without(&mut self, missing: MemberSet, degenerate: bool) {
        self.room.missing = missing;
        let there = self.room.there();
        self.most = CHUNK.min(there.iter().sum::<u64>() / 10);
        if self.takes.wide(there.len()).is_none() {
            self.takes = BtrfsProfile::Single.takes(degenerate);
        }
    }

    /// The next one, or nothing where too few members have room.
    pub(super) fn next(&mut self, begin: u64) -> Option<Chunk> {
        let chunk = self.room.chunk(&self.takes, begin, self.most)?;
        (chunk.end > chunk.begin).then_some(chunk)
    }
}

/// What is left of the members while chunks are made.
#[derive(Clone)]
pub(super) struct Room<'a> {
    pub(super) sizes: &'a [u64],
    /// Where the next piece begins on each.
    pub(super) next: Vec<u64>,
    /// What chunks have of each.
    pub(super) used: Vec<u64>,
    /// Members that get no more of them.
    missing: MemberSet,
    /// Where a stretch of the first member before its pieces begins and ends that is free.
    hole: (u64, u64),
}

impl Room<'_> {
    /// The place of a member among those that have as much room.
    fn turn(&self, member: u16) -> usize {
        (usize::from(member) + self.sizes.len() - 1) % self.sizes.len()
    }

    /// Sectors that one piece could have: behind the last one, or before the first.
    pub(super) fn of(&self, member: u16) -> u64 {
        let behind = self.behind(usize::from(member));
        if member == 0 {
            behind.max(self.hole.1 - self.hole.0)
        } else {
            behind
        }
    }

    fn behind(&self, member: usize) -> u64 {
        self.sizes[member].saturating_sub(self.next[member])
    }

    /// The sizes of the members that get chunks.
    fn there(&self) -> Vec<u64> {
        let there = (0..self.sizes.len()).filter(|m| !self.missing.contains(Member::new(*m)));
        there.map(|member| self.sizes[member]).collect()
    }

    /// What `mkfs` makes first on the first member and removes is free, too.
    fn with_beginning(&mut self, profile: BtrfsProfile) {
        if profile == BtrfsProfile::Single {
            self.hole = (RESERVED.0, LEFT.0);
        } else if self.next[0] == FIRST {
            self.next[0] = RESERVED.0;
        } else {
            self.hole = (RESERVED.0, FIRST);
        }
    }

    /// Sectors that no chunk has, wherever they are.
    pub(super) fn left(&self, member: usize) -> u64 {
        self.sizes[member].saturating_sub(self.used[member])
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
            let left = self.left(usize::from(*member));
            (u64::MAX - most, u64::MAX - left, self.turn(*member))
        });
        members.truncate(takes.wide(members.len())?);
        let data = takes.data(members.len()) as u64;
        let mut each = members.last()?.0;
        if each * data > most {
            each = most.div_ceil(data).next_multiple_of(ROUND).min(each);
        }
        Some(self.taken(takes, begin, members, each))
    }

    /// A chunk of `mkfs`'s, on the last members.
    fn made(&mut self, takes: &Takes, begin: u64, cut: Cut) -> Option<Chunk> {
        let mut members = self.having();
        let wide = takes.wide(members.len())?;
        members.drain(..members.len() - wide);
        let least = members.iter().map(|(most, _)| *most).min()?;
        let each = least.min(cut.piece(takes, wide));
        Some(self.taken(takes, begin, members, each))
    }

    fn taken(&mut self, takes: &Takes, begin: u64, members: Vec<(u64, u16)>, each: u64) -> Chunk {
        let each = each / STRIPE * STRIPE;
        let data = takes.data(members.len()) as u64;
        let pieces = members.iter().map(|(_, member)| {
            let index = usize::from(*member);
            let before = index == 0 && self.behind(0) < self.hole.1 - self.hole.0;
            let next = if before {
                &mut self.hole.0
            } else {
                &mut self.next[index]
            };
            let begin = *next;
            *next += each;
            self.used[index] += each;
            (*member, begin)
        });
        Chunk {
            begin,
            copies: takes.copies,
            parities: takes.parities,
            pieces: pieces.collect(),
            end: begin + each * data,
        }
    }
}

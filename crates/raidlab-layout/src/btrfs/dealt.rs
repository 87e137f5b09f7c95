//! What a full file system is: its chunks by the members that they are on, what finds no room, what is lost with which members.
use super::{BtrfsProfile, Chunk, deal, metadata_chunk, rounds};
use crate::error::LayoutError;
use crate::rebuild::{Rebuild, of_both};
use crate::survival::binomial;
use crate::types::{Member, MemberSet};
use raidlab_core::units::{Bytes, SECTOR, Sectors};
use std::collections::{BTreeMap, BTreeSet};

/// Chunks that are on the same members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// By number; of copies those of the same data side by side.
    pub members: Vec<Member>,
    /// Copies of each byte.
    pub copies: usize,
    /// How many chunks.
    pub chunks: u64,
    /// What they have together of each member.
    pub each: Sectors,
    /// What they hold.
    pub data: Sectors,
}

impl Group {
    /// The members that have the same data, for each data; of parity each by itself.
    pub fn sets(&self) -> impl Iterator<Item = &[Member]> {
        self.members.chunks(self.copies)
    }

    fn of(chunk: &Chunk, times: u64) -> Self {
        let data = chunk.end - chunk.begin;
        let pieces = (chunk.pieces.len() - chunk.parities) / chunk.copies;
        Self {
            members: members(chunk),
            copies: chunk.copies,
            chunks: times,
            each: Sectors(data / pieces as u64 * times),
            data: Sectors(data * times),
        }
    }

    fn all(&self) -> MemberSet {
        self.members.iter().copied().collect()
    }

    pub(super) fn by_number(&self) -> Vec<Member> {
        self.all().iter().collect()
    }
}

/// The members of a chunk in the order of [`Group::members`].
fn members(chunk: &Chunk) -> Vec<Member> {
    let on: Vec<Member> = chunk.pieces.iter().map(|piece| Member(piece.0)).collect();
    let mut sets: Vec<Vec<Member>> = on.chunks(chunk.copies).map(<[Member]>::to_vec).collect();
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets.sort_unstable();
    sets.concat()
}

/// The chunk of metadata that `mkfs` makes on members of these sizes, each copy.
fn metadata(
    profile: BtrfsProfile,
    sizes: &[Sectors],
    degenerate: bool,
) -> Result<Bytes, LayoutError> {
    profile.check(sizes, degenerate)?;
    let sum = |sum: u64, size: &Sectors| sum.checked_add(size.0);
    let all = sizes.iter().try_fold(0, sum);
    let all = all.filter(|all| *all <= i64::MAX as u64 / SECTOR);
    Ok(Bytes(metadata_chunk(
        all.ok_or(LayoutError::TooLarge)? * SECTOR,
    )))
}

/// All chunks of a full file system over members of any sizes, as many as there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    profile: BtrfsProfile,
    pub(super) sizes: Vec<u64>,
    /// The chunk of metadata that `mkfs` makes.
    metadata: Group,
    groups: Vec<Group>,
    left: Vec<u64>,
}

impl Dealt {
    /// As [`Btrfs::new`](super::Btrfs::new) lays them out, with metadata as `mkfs` makes it on members of these sizes.
    ///
    /// # Errors
    /// [`LayoutError`] as of that, and of members that have more than 8 EiB together.
    pub fn new(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        degenerate: bool,
    ) -> Result<Self, LayoutError> {
        let metadata = metadata(profile, sizes, degenerate)?;
        let sizes: Vec<u64> = sizes.iter().map(|size| size.0).collect();
        let made = deal::of_mkfs(profile, &sizes, metadata.to_sectors().0, degenerate);
        let no_room = || profile.no_room(&sizes, metadata);
        let (first, mut deal) = made.ok_or_else(no_room)?;
        let (mut groups, mut places) = (Vec::<Group>::new(), BTreeMap::new());
        let mut tell = |chunk: &Chunk, times: u64| {
            let group = Group::of(chunk, times);
            let place = *places.entry(group.members.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(known) => {
                    known.chunks += group.chunks;
                    known.each.0 += group.each.0;
                    known.data.0 += group.data.0;
                }
                None => groups.push(group),
            }
        };
        first[1..].iter().for_each(|chunk| tell(chunk, 1));
        rounds::all(&mut deal, tell);
        if groups.is_empty() {
            return Err(no_room());
        }
        let left = (0..sizes.len()).map(|member| deal.room.of(member as u16));
        Ok(Self {
            profile,
            metadata: Group::of(&first[0], 1),
            groups,
            left: left.collect(),
            sizes,
        })
    }

    /// The members that the first files of a new file system over members of these sizes lie on; none where [`new`](Self::new) fails.
    #[must_use]
    pub fn with_first_files(
        profile: BtrfsProfile,
        sizes: &[Sectors],
        degenerate: bool,
    ) -> MemberSet {
        let Ok(metadata) = metadata(profile, sizes, degenerate) else {
            return MemberSet::EMPTY;
        };
        let sizes: Vec<u64> = sizes.iter().map(|size| size.0).collect();
        let made = deal::of_mkfs(profile, &sizes, metadata.to_sectors().0, degenerate);
        let first = made.and_then(|(chunks, _)| chunks.into_iter().nth(1));
        let group = first.map(|chunk| Group::of(&chunk, 1));
        group.map_or(MemberSet::EMPTY, |group| group.all())
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

    /// What the members have together.
    #[must_use]
    pub fn raw(&self) -> Sectors {
        Sectors(self.sizes.iter().sum())
    }

    /// What chunks of data hold.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        Sectors(self.groups.iter().map(|group| group.data.0).sum())
    }

    /// The one chunk of metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Group {
        &self.metadata
    }

    /// Those of data, in the order in which the first of each is made.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// What of a member is behind its last chunk.
    #[must_use]
    pub fn left(&self, member: Member) -> Sectors {
        Sectors(self.left.get(member.index()).copied().unwrap_or(0))
    }

    /// What of a member its chunks have; that of the system is left out.
    #[must_use]
    pub fn held(&self, member: Member) -> Sectors {
        Sectors(self.of(member).map(|group| group.each.0).sum())
    }

    fn every(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.metadata).chain(&self.groups)
    }

    fn of(&self, member: Member) -> impl Iterator<Item = &Group> {
        let on = move |group: &&Group| group.members.contains(&member);
        self.every().filter(on)
    }

    /// With which members something is lost, of patterns of one more than [any that is survived](BtrfsProfile::survives).
    #[must_use]
    pub fn fatal(&self) -> Vec<MemberSet> {
        let failures = self.profile.survives() + 1;
        let mut fatal = BTreeSet::new();
        if self.profile.takes(true).parities == 0 {
            for group in self.every().filter(|group| group.copies == failures) {
                fatal.extend(group.sets().map(<[Member]>::to_vec));
            }
        } else {
            // Any so many that share a chunk.
            let alike: BTreeSet<MemberSet> = self.every().map(Group::all).collect();
            let mut picked = Vec::new();
            let within = |on: &MemberSet| {
                let larger = |other: &&MemberSet| **other != *on && other.contains_all(*on);
                alike.iter().any(|other| larger(&other))
            };
            for on in alike.iter().filter(|on| !within(on)) {
                let on: Vec<Member> = on.iter().collect();
                pick(&on, failures, &mut picked, &mut fatal);
            }
        }
        let set = |members: Vec<Member>| members.into_iter().collect();
        fatal.into_iter().map(set).collect()
    }

    /// All patterns of so many failed members, of no more than four.
    #[must_use]
    pub fn patterns(&self, failures: usize) -> u64 {
        binomial(self.members(), failures) as u64
    }

    /// What is read to fill the member that holds most, as [`crate::rebuild::rebuilds`] tells of other arrays; none without
    /// redundancy.
    #[must_use]
    pub fn rebuilds(&self) -> Vec<Rebuild> {
        let parities = self.profile.takes(true).parities;
        let of_group = |group: &Group, failed: usize| match parities {
            0 => group.each.0,
            // What is left of each stripe: the data, and parity where data or the other one is made from it.
            _ => group.each.0 * (group.members.len() - failed.min(parities)) as u64,
        };
        of_both(self.profile.survives(), |failed| {
            let reads = |member| {
                let groups = self.of(Member::new(member));
                groups.map(|group| of_group(group, failed)).sum::<u64>()
            };
            let most = (0..self.members()).map(reads).max()?;
            Some(Sectors(most).to_bytes())
        })
    }
}

/// All choices of so many of these, in addition to what is picked already.
fn pick(of: &[Member], more: usize, picked: &mut Vec<Member>, found: &mut BTreeSet<Vec<Member>>) {
    if more == 0 {
        found.insert(picked.clone());
        return;
    }
    for (index, member) in of.iter().enumerate() {
        picked.push(*member);
        pick(&of[index + 1..], more - 1, picked, found);
        picked.pop();
    }
}

#[cfg(test)]
mod tests;

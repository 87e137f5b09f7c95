//! An array over members that remember who wrote what.
use super::*;
use crate::block::RESYNC;
use raidlab_core::rng::Stream;
use raidlab_layout::{Content, Layout, Member, ParityKind};
use std::collections::BTreeMap;

/// What a member sector holds: the tag of the last writer of the data, or for a parity the tags that
/// it was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Data(u64),
    Parity(Vec<u64>),
}

/// One member request as it was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) member: u16,
    pub(super) bio: Bio,
}

/// An array over members that end each request after some time, in an order by chance.
pub(super) struct Toy {
    pub(super) array: Array,
    pub(super) layout: Layout,
    pub(super) now: Instant,
    pub(super) log: Vec<Asked>,
    pub(super) ended: Vec<Ended>,
    pub(super) cells: BTreeMap<(u16, u64), Cell>,
    /// Last writer by array sector.
    pub(super) tags: BTreeMap<u64, u64>,
    /// Members that answer every request with a failure.
    pub(super) broken: Vec<u16>,
    /// Sectors of members that cannot be read.
    pub(super) unreadable: Vec<(u16, u64)>,
    flight: Vec<(Instant, u64, Asked)>,
    given: u64,
    stream: Stream,
    wanted: Vec<MemberBio>,
}

impl Toy {
    pub(super) fn new(spec: &ArraySpec, seed: u64) -> Self {
        let ArrayKind::Md(layout) = &spec.kind else {
            panic!("a toy is of an md array");
        };
        Self {
            array: Array::new(spec).unwrap(),
            layout: layout.clone(),
            now: Instant::ZERO,
            log: Vec::new(),
            ended: Vec::new(),
            cells: BTreeMap::new(),
            tags: BTreeMap::new(),
            broken: Vec::new(),
            unreadable: Vec::new(),
            flight: Vec::new(),
            given: 0,
            stream: Stream::new(seed),
            wanted: Vec::new(),
        }
    }

    /// Everything was written before, by writer 0; members `without` have nothing.
    pub(super) fn fill(&mut self, without: &[u16]) {
        for member in (0..self.layout.members() as u16).filter(|m| !without.contains(m)) {
            for sector in 0..self.layout.used(Member(member)).0 {
                if let Some(cell) = self.expected(member, sector) {
                    self.cells.insert((member, sector), cell);
                }
            }
        }
        self.tags = (0..self.array.sectors())
            .map(|sector| (sector, 0))
            .collect();
    }

    pub(super) fn submit(&mut self, bio: Bio) {
        if bio.kind == BlockKind::Write {
            for sector in bio.lba.0..bio.end() {
                self.tags.insert(sector, bio.id + 1);
            }
        }
        self.array.submit(self.now, bio);
        self.take();
    }

    pub(super) fn unplug(&mut self) {
        self.array.unplug(self.now);
        self.take();
    }

    /// Between 50 and 250 µs; 100 µs each for seed 0.
    fn latency(&mut self) -> u64 {
        if self.stream == Stream::new(0) {
            return 100_000;
        }
        50_000 + self.stream.below(self.given, 200_000)
    }

    fn take(&mut self) {
        self.array.take(&mut self.wanted);
        for MemberBio { member, bio } in std::mem::take(&mut self.wanted) {
            let asked = Asked {
                at: self.now,
                member,
                bio,
            };
            self.log.push(asked);
            if bio.kind == BlockKind::Write {
                self.write(member, bio);
            }
            if bio.origin.task == RESYNC {
                self.array.sent_by_resync(self.now, member);
            }
            self.given += 1;
            let end = Instant(self.now.0 + self.latency());
            self.flight.push((end, self.given, asked));
        }
    }

    /// What is written is the newest that the array was given.
    fn write(&mut self, member: u16, bio: Bio) {
        for sector in bio.lba.0..bio.end() {
            if let Some(cell) = self.expected(member, sector) {
                self.cells.insert((member, sector), cell);
            }
        }
    }

    /// Sectors of each member that the resync asked for, in order.
    pub(super) fn resynced(&self, kind: BlockKind) -> Vec<(u16, u64)> {
        let background = |a: &&Asked| a.bio.origin.background && a.bio.kind == kind;
        let mut all: Vec<(u16, u64)> = self
            .log
            .iter()
            .filter(background)
            .flat_map(|a| (a.bio.lba.0..a.bio.end()).map(|s| (a.member, s)))
            .collect();
        all.sort_unstable();
        all
    }

    /// What a member sector holds when it agrees with the last writers.
    pub(super) fn expected(&self, member: u16, sector: u64) -> Option<Cell> {
        let tag = |lba: u64| self.tags.get(&lba).copied().unwrap_or(0);
        match self.layout.content(Member(member), Lba(sector)) {
            Content::Data(lba) => Some(Cell::Data(tag(lba.0))),
            // Which data it is of is not told by the members of a nested layout.
            Content::Parity { .. } if matches!(self.layout, Layout::Nested(_)) => None,
            Content::Parity { kind, .. } => {
                let data = (0..self.layout.members() as u16)
                    .filter_map(|m| match self.layout.content(Member(m), Lba(sector)) {
                        Content::Data(lba) => Some(tag(lba.0)),
                        _ => None,
                    })
                    .chain([u64::from(kind == ParityKind::Q)])
                    .collect();
                Some(Cell::Parity(data))
            }
            Content::Unused => None,
        }
    }

    /// When the next thing happens.
    pub(super) fn next(&self) -> Option<Instant> {
        let members = self.flight.iter().map(|f| f.0);
        members.chain(self.array.next_event()).min()
    }

    /// Until then.
    pub(super) fn run_to(&mut self, until: Instant) {
        while self.next().is_some_and(|at| at <= until) && self.step() {}
        self.now = until;
    }

    /// The next thing that happens; false when nothing does.
    pub(super) fn step(&mut self) -> bool {
        let member = self.flight.iter().map(|f| (f.0, f.1)).min();
        let Some(at) = self.next() else {
            return false;
        };
        self.now = self.now.max(at);
        if let Some((end, number)) = member.filter(|m| m.0 <= self.now) {
            let index = self.flight.iter().position(|f| (f.0, f.1) == (end, number));
            let (_, _, asked) = self.flight.swap_remove(index.unwrap());
            let result = if self.broken.contains(&asked.member) {
                Err(DiskError::Failed)
            } else if asked.bio.kind == BlockKind::Read
                && (self.unreadable.iter()).any(|(m, s)| {
                    *m == asked.member && (asked.bio.lba.0..asked.bio.end()).contains(s)
                })
            {
                Err(DiskError::Unreadable)
            } else {
                Ok(())
            };
            self.array
                .member_ended(self.now, asked.member, asked.bio.id, result);
            self.take();
        }
        self.array.advance(self.now, &mut self.ended);
        self.take();
        true
    }

    /// Until nothing happens any more.
    pub(super) fn settle(&mut self) {
        self.unplug();
        let mut steps = 0_u32;
        while self.step() {
            steps += 1;
            assert!(steps < 1_000_000, "the array does not come to rest");
        }
        assert_eq!(self.array.in_flight(), 0, "requests that never end");
    }

    /// Every written sector is on all its places (members left out excepted), parity too.
    pub(super) fn check(&self, without: &[u16]) -> Result<(), String> {
        for (&(member, sector), cell) in &self.cells {
            if !without.contains(&member) && self.expected(member, sector).as_ref() != Some(cell) {
                return Err(format!("member {member} sector {sector} is old"));
            }
        }
        for &lba in self.tags.keys() {
            for place in self.layout.locate(Lba(lba)).unwrap() {
                let at = (place.member.0, place.sector.0);
                if !without.contains(&at.0) && !self.cells.contains_key(&at) {
                    return Err(format!("array sector {lba} is not on member {}", at.0));
                }
            }
        }
        Ok(())
    }

    /// Sectors that a resync has written to members, as far as that has ended.
    pub(super) fn filled(&self) -> u32 {
        let written = |a: &&Asked| a.bio.origin.background && a.bio.kind == BlockKind::Write;
        let sum = |all: &mut dyn Iterator<Item = &Asked>| {
            all.filter(written).map(|a| a.bio.sectors).sum::<u32>()
        };
        sum(&mut self.log.iter()) - sum(&mut self.flight.iter().map(|f| &f.2))
    }

    /// Member requests of a kind since the start.
    pub(super) fn count(&self, kind: BlockKind) -> usize {
        self.log
            .iter()
            .filter(|asked| asked.bio.kind == kind)
            .count()
    }
}

//! What goes to a row of btrfs together.
use crate::block::{Bio, Origin, joined};
use raidlab_core::op::BlockKind;
use raidlab_layout::btrfs::{Row, STRIPE};

/// What is done to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::array) enum What {
    /// Data is written, and parity with it.
    Write,
    /// What a member that is missing would have is read.
    Recover,
    /// Parity is put on a new member.
    Parity {
        /// Which piece of the row it is.
        piece: usize,
        /// Sectors of the piece, from each first one to the one after the last; ascending and apart.
        height: Vec<(u64, u64)>,
        /// The data is at hand.
        known: bool,
    },
}

/// Requests of one row that are answered together.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Sectors of data that are written from the beginning of the row: from each first one to the one after the last; ascending and apart.
    covers: Vec<(u64, u64)>,
    /// Requests that wait for it.
    pub(super) parents: Vec<u32>,
    pub(super) fua: bool,
    /// Whose request it is.
    pub(super) origin: Origin,
    /// What it does.
    pub(super) what: What,
    /// Part of the replacement of a member that waits for it, by its number.
    pub(super) job: Option<u32>,
}

/// Sectors of one piece of a row, from the piece's beginning.
pub(super) type Part = (usize, u64, u64);

impl Turn {
    /// Of a part of a request, `at..at + len` in this row.
    pub(super) fn new(row: &Row, parent: u32, bio: &Bio, at: u64, len: u64) -> Self {
        let from = at - row.begin.0;
        Self {
            covers: vec![(from, from + len)],
            parents: vec![parent],
            fua: bio.fua,
            origin: bio.origin,
            what: match bio.kind {
                BlockKind::Read => What::Recover,
                _ => What::Write,
            },
            job: None,
        }
    }

    /// Of a member that is replaced.
    pub(super) fn of_job(job: u32, what: What) -> Self {
        Self {
            covers: Vec::new(),
            parents: Vec::new(),
            fua: false,
            origin: Origin::default(),
            what,
            job: Some(job),
        }
    }

    /// Whether it writes data.
    pub(super) const fn writes(&self) -> bool {
        matches!(self.what, What::Write)
    }

    /// Whether it reads what a missing member would have.
    pub(super) const fn recovers(&self) -> bool {
        matches!(self.what, What::Recover)
    }

    /// Whether both go as one: they write.
    pub(super) const fn joins(&self, other: &Self) -> bool {
        self.writes() && other.writes()
    }

    /// Takes another one with it.
    pub(super) fn join(&mut self, other: Self) {
        self.parents.extend(other.parents);
        self.fua |= other.fua;
        for (from, end) in other.covers {
            let first = self.covers.partition_point(|cover| cover.1 < from);
            let after = self.covers.partition_point(|cover| cover.0 <= end);
            let (mut from, mut end) = (from, end);
            if first < after {
                from = from.min(self.covers[first].0);
                end = end.max(self.covers[after - 1].1);
            }
            self.covers.drain(first..after);
            self.covers.insert(first, (from, end));
        }
    }

    /// Whether all data of the row is written.
    pub(super) fn is_full(&self, row: &Row) -> bool {
        self.covers[..] == [(0, row.sectors())]
    }

    /// The first sector.
    pub(super) fn first(&self) -> u64 {
        self.covers[0].0
    }

    /// Sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.covers.iter().map(|(from, end)| end - from).sum()
    }

    /// What is covered of each piece of data.
    pub(super) fn covered(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for &(from, end) in &self.covers {
            let mut at = from;
            while at < end {
                let piece = at / STRIPE;
                let to = end.min((piece + 1) * STRIPE);
                let begin = piece * STRIPE;
                parts.push((piece as usize, at - begin, to - begin));
                at = to;
            }
        }
        parts
    }

    /// What is not.
    pub(super) fn open(&self, row: &Row) -> Vec<Part> {
        let mut parts = Vec::new();
        let covered = self.covered();
        let mut covered = covered.iter().peekable();
        for piece in 0..row.data() {
            let mut at = 0;
            while let Some((_, from, end)) = covered.next_if(|part| part.0 == piece) {
                if *from > at {
                    parts.push((piece, at, *from));
                }
                at = *end;
            }
            if at < STRIPE {
                parts.push((piece, at, STRIPE));
            }
        }
        parts
    }

    /// The sectors of a piece in which some piece of data is written, and so parity, or all of those of a piece that is recovered.
    pub(super) fn height(&self) -> Vec<(u64, u64)> {
        match &self.what {
            What::Write => joined(self.covered().iter().map(|p| (p.1, p.2)).collect()),
            What::Recover => vec![(0, STRIPE)],
            What::Parity { height, .. } => height.clone(),
        }
    }
}

//! Completions of a blkparse text and the requests that they end.
use super::Record;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stretches of sectors, first and the one after the last, that have nothing in common.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// `sectors` from `lba` on.
    fn of(lba: u64, sectors: u32) -> Self {
        let end = lba.saturating_add(u64::from(sectors));
        Self(if end > lba {
            vec![(lba, end)]
        } else {
            Vec::new()
        })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What both have.
    fn common<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = (u64, u64)> + 's {
        let pairs = self
            .0
            .iter()
            .flat_map(|a| other.0.iter().map(|b| (a.0.max(b.0), a.1.min(b.1))));
        pairs.filter(|(from, to)| from < to)
    }

    fn meets(&self, other: &Self) -> bool {
        self.common(other).next().is_some()
    }

    /// Takes what both have out of both.
    fn settle(&mut self, other: &mut Self) {
        let common: Vec<(u64, u64)> = self.common(other).collect();
        for stretch in common {
            self.remove(stretch);
            other.remove(stretch);
        }
    }

    /// Takes a stretch out that is whole within one of them.
    fn remove(&mut self, (from, to): (u64, u64)) {
        let Some(at) = self.0.iter().position(|s| s.0 <= from && to <= s.1) else {
            return;
        };
        let (begin, end) = self.0.swap_remove(at);
        let rest = [(begin, from), (to, end)];
        self.0.extend(rest.into_iter().filter(|(a, b)| a < b));
    }
}

/// What a completion says has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// When, in nanoseconds.
    pub(super) at: u64,
    /// Number of the device.
    pub(super) device: u32,
    pub(super) kind: BlockKind,
    /// First sector of 512 bytes.
    pub(super) lba: u64,
    /// 0 of a flush.
    pub(super) sectors: u32,
    /// It ended with an error.
    pub(super) failed: bool,
}

/// A request that came, in nanoseconds of the trace.
struct Open {
    record: Record,
    /// Sectors whose completion was not read yet.
    left: Stretches,
    /// Whether all of it has ended.
    known: bool,
    /// Whether some of it ended with an error.
    failed: bool,
}

/// Whose completions a request may have: those of its device that do the same.
type Like = (u32, u8);

fn like(device: u32, kind: BlockKind) -> Like {
    let kind = match kind {
        BlockKind::Read => 0,
        BlockKind::Write => 1,
        BlockKind::Flush | BlockKind::FlushData => 2,
    };
    (device, kind)
}

/// Requests that were not given out, in the order in which they came.
#[derive(Default)]
pub(super) struct Waiting {
    all: VecDeque<Open>,
    /// Requests that were given out, which is the number of the first of `all`.
    given: u64,
    /// Those that have not ended, by first sector and number. A device that has no completions at all leaves very many, and
    /// to look through them at each completion of another would take hours.
    unended: BTreeMap<Like, BTreeSet<(u64, u64)>>,
    /// Sectors of the largest so far.
    longest: u64,
}

impl Waiting {
    /// Takes a request that came.
    pub(super) fn push(&mut self, record: Record) {
        let number = self.given + self.all.len() as u64;
        let of_its_like = self.unended.entry(like(record.device, record.kind));
        of_its_like.or_default().insert((record.lba, number));
        self.longest = self.longest.max(u64::from(record.sectors));
        self.all.push_back(Open {
            record,
            left: Stretches::of(record.lba, record.sectors),
            known: false,
            failed: false,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Gives up all of them.
    pub(super) fn clear(&mut self) {
        self.given += self.all.len() as u64;
        self.all.clear();
        self.unended.clear();
    }

    /// The oldest request, when it has ended or `over` says that its completion is not waited for any more.
    pub(super) fn pop(&mut self, over: bool) -> Option<Record> {
        self.all.front().filter(|open| open.known || over)?;
        let open = self.all.pop_front()?;
        if !open.known {
            self.forget(&open.record, self.given);
        }
        self.given += 1;
        Some(open.record)
    }

    /// Takes a request out of those that have not ended.
    fn forget(&mut self, record: &Record, number: u64) {
        if let Some(places) = self.unended.get_mut(&like(record.device, record.kind)) {
            places.remove(&(record.lba, number));
        }
    }

    /// Ends the requests that a completion is of; how many of them it makes failed ones.
    ///
    /// Most requests have a completion of their own: the oldest of its very sectors ends. Another one covers the requests
    /// that were merged into it, or a part of one that was split, which ends with the last of its parts. What one request
    /// has had of a completion is not had by another. A flush has no sectors, so that the oldest one ends.
    pub(super) fn complete(&mut self, ended: &Completion) -> u64 {
        let mut rest = Stretches::of(ended.lba, ended.sectors);
        let near = self.near(ended);
        let own = near.iter().find(|number| self.open(**number).left == rest);
        if let Some(own) = own.copied() {
            return self.end(own, ended);
        }
        let mut failed = 0;
        for number in near {
            let open = self.open_mut(number);
            if !open.left.meets(&rest) {
                continue;
            }
            open.left.settle(&mut rest);
            let is_whole = open.left.is_empty();
            failed += match is_whole {
                true => self.end(number, ended),
                false => self.note(number, ended),
            };
        }
        failed
    }

    /// Numbers of the requests that may have sectors of a completion, the oldest first.
    fn near(&self, ended: &Completion) -> Vec<u64> {
        let Some(places) = self.unended.get(&like(ended.device, ended.kind)) else {
            return Vec::new();
        };
        if ended.sectors == 0 {
            // All flushes are at one place, and the oldest one is it.
            return places
                .first()
                .map(|(_, number)| *number)
                .into_iter()
                .collect();
        }
        let from = ended.lba.saturating_sub(self.longest);
        let end = ended.lba.saturating_add(u64::from(ended.sectors));
        let places = places.range((from, 0)..(end, 0));
        let mut numbers: Vec<u64> = places.map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    fn open(&self, number: u64) -> &Open {
        &self.all[(number - self.given) as usize]
    }

    fn open_mut(&mut self, number: u64) -> &mut Open {
        &mut self.all[(number - self.given) as usize]
    }

    /// Whether a request, by a part of it, has become a failed one: 1 or 0.
    fn note(&mut self, number: u64, ended: &Completion) -> u64 {
        let open = self.open_mut(number);
        let newly = ended.failed && !open.failed;
        open.failed |= newly;
        u64::from(newly)
    }

    /// How long a request took that failed is no time of what it asked for.
    fn end(&mut self, number: u64, ended: &Completion) -> u64 {
        let failed = self.note(number, ended);
        let open = self.open_mut(number);
        let took = Span(ended.at.saturating_sub(open.record.at.0));
        open.record.response = Some(took).filter(|_| !open.failed);
        open.known = true;
        let record = open.record;
        self.forget(&record, number);
        failed
    }
}

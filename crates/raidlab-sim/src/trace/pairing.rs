//! Completions of a blkparse text and the requests that they end.
use super::Record;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use std::collections::VecDeque;

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
}

/// A request that came, in nanoseconds of the trace.
pub(super) struct Open {
    record: Record,
    /// Sectors whose completion was not read yet.
    left: Stretches,
    /// Whether all of it has ended.
    pub(super) known: bool,
}

impl Open {
    pub(super) fn new(record: Record) -> Self {
        Self {
            record,
            left: Stretches::of(record.lba, record.sectors),
            known: false,
        }
    }

    pub(super) fn record(&self) -> Record {
        self.record
    }

    fn is_like(&self, ended: &Completion) -> bool {
        !self.known && self.record.device == ended.device && self.record.kind == ended.kind
    }

    fn end(&mut self, at: u64) {
        self.record.response = Some(Span(at.saturating_sub(self.record.at.0)));
        self.known = true;
    }
}

/// Ends the requests that a completion is of; `open` in the order in which they came.
///
/// Most requests have a completion of their own: the oldest of its very sectors ends. Another one covers the requests
/// that were merged into it, or a part of one that was split, which ends with the last of its parts. What one request
/// has had of a completion is not had by another. A flush has no sectors, so that the oldest one ends.
pub(super) fn complete(open: &mut VecDeque<Open>, ended: &Completion) {
    let mut rest = Stretches::of(ended.lba, ended.sectors);
    let own = |open: &&mut Open| open.is_like(ended) && open.left == rest;
    if let Some(own) = open.iter_mut().find(own) {
        return own.end(ended.at);
    }
    for open in open.iter_mut().filter(|open| open.is_like(ended)) {
        if !open.left.meets(&rest) {
            continue;
        }
        open.left.settle(&mut rest);
        if open.left.is_empty() {
            open.end(ended.at);
        }
    }
}

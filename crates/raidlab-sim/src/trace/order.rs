//! Requests in the order of their times: traces that several processors wrote, or that were joined, have some
//! of them a little out of order.
use super::Record;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// So many records are looked at together: one that comes later in the trace than this many younger ones is
/// out of place for good.
const WINDOW: usize = 65_536;

/// A record with what orders it: time, then place in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    at: u64,
    number: u64,
    record: Record,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Puts records into the order of their times.
#[derive(Default)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<Waiting>>,
    taken: u64,
    /// Latest time so far.
    latest: u64,
    /// Records that came after a younger one.
    late: u64,
    /// Time of the first and of the last record that was given out.
    given: Option<(u64, u64)>,
}

/// A record that is too far from its place.
pub(super) struct TooLate {
    /// Line of the trace, from 1.
    pub(super) line: usize,
}

impl Order {
    /// Takes the next record of the trace, whose time is the trace's own.
    pub(super) fn take(&mut self, record: Record) {
        let at = record.at.0;
        self.late += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
        self.waiting.push(Reverse(Waiting {
            at,
            number: self.taken,
            record,
        }));
        self.taken += 1;
    }

    /// The oldest record, when no older one is to be expected; its time counts from the first one.
    pub(super) fn give(&mut self, ended: bool) -> Option<Result<Record, TooLate>> {
        if !ended && !self.is_full() {
            return None;
        }
        let Reverse(oldest) = self.waiting.pop()?;
        let (first, last) = self.given.unwrap_or((oldest.at, oldest.at));
        if oldest.at < last {
            return Some(Err(TooLate {
                line: oldest.record.line,
            }));
        }
        self.given = Some((first, oldest.at));
        let mut record = oldest.record;
        record.at.0 = oldest.at - first;
        Some(Ok(record))
    }

    /// Whether so many wait that the oldest one can be given out.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > WINDOW
    }

    /// Records that came after a younger one.
    pub(super) fn late(&self) -> u64 {
        self.late
    }
}

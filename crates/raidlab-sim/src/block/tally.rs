//! How far whatever fills new members by what is in use has come.
use super::Progress;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use std::collections::VecDeque;

/// Time between marks for the rate, and how many are kept: half a minute, as of md.
const MARK_STEP: Span = Span::from_secs(3);
const MARKS: usize = 10;

/// Sectors for all new members together.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// What has come to them.
    done: u64,
    /// And in all.
    total: u64,
    /// New members at the beginning.
    members: u64,
    marks: VecDeque<(Instant, u64)>,
}

impl Tally {
    pub(crate) fn new(total: u64, members: u64, now: Instant) -> Self {
        Self {
            done: 0,
            total,
            members: members.max(1),
            marks: VecDeque::from([(now, 0)]),
        }
    }

    pub(crate) fn note(&mut self, now: Instant, sectors: u64) {
        self.done += sectors;
        if now.since(self.marks.back().map_or(now, |mark| mark.0)) >= MARK_STEP {
            if self.marks.len() == MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((now, self.done));
        }
    }

    /// Sectors of each member that are done.
    pub(crate) const fn done(&self) -> u64 {
        self.done / self.members
    }

    /// As of md, of each new member.
    pub(crate) fn progress(&self, now: Instant) -> Progress {
        let (since, before) = self.marks.front().copied().unwrap_or((now, self.done));
        let bytes = u128::from((self.done - before) / self.members * SECTOR) * 1_000_000_000;
        Progress {
            done: self.done(),
            total: self.total / self.members,
            rate: (bytes / u128::from(now.since(since).0.max(1))) as u64,
        }
    }
}

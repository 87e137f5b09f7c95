//! The thread of a parity array: one computation after the other.
use crate::array::NEVER;
use crate::array::spec::ParityCost;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use std::collections::VecDeque;

/// What is to be computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    /// Sectors on each member.
    pub(super) sectors: u32,
    /// Blocks that are summed, and whether for both parities.
    pub(super) sums: u32,
    pub(super) syndrome: bool,
    /// Blocks that are copied from or to a request.
    pub(super) copies: u32,
    /// The thread comes to the stripes once more before it is through with them, by [`Thread::leave`].
    pub(super) comes_again: bool,
}

/// What the thread does with a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// It comes to see what is to be done.
    Look,
    /// It computes.
    Compute,
    /// It sends what it has asked for.
    Send,
}

/// The thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    cost: ParityCost,
    free_of_cost: bool,
    /// What it has to do, with the ends, ascending, and the time that each takes.
    jobs: VecDeque<(Instant, u32, Work, Span)>,
    /// Time that all of them take.
    left: Span,
    free: Instant,
    /// Time spent: summing, copying, handling.
    pub(super) spent: [Span; 3],
}

fn time(bytes: u64, rate: u64) -> Span {
    if rate == 0 {
        return Span::ZERO;
    }
    Span((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64)
}

impl Thread {
    pub(super) fn new(cost: ParityCost) -> Self {
        Self {
            cost,
            free_of_cost: cost == ParityCost::default(),
            jobs: VecDeque::new(),
            left: Span::ZERO,
            free: Instant::ZERO,
            spent: [Span::ZERO; 3],
        }
    }

    /// Whether nothing costs anything, so that there is nothing to wait for.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.free_of_cost
    }

    /// Takes a job.
    pub(super) fn run(&mut self, now: Instant, band: u32, job: Job) {
        let block = u64::from(job.sectors) * SECTOR;
        let rate = if job.syndrome {
            self.cost.syndrome
        } else {
            self.cost.xor
        };
        let sum = time(block * u64::from(job.sums), rate);
        let copy = time(block * u64::from(job.copies), self.cost.copy);
        let again = if job.comes_again {
            self.leaving(job.sectors)
        } else {
            Span::ZERO
        };
        let handle = self.handling(job.sectors) - again;
        for (spent, more) in self.spent.iter_mut().zip([sum, copy, handle]) {
            *spent += more;
        }
        self.give(now, band, Work::Compute, sum + copy + handle);
    }

    fn handling(&self, sectors: u32) -> Span {
        Span(self.cost.stripe * u64::from(sectors.div_ceil(super::cache::ROW)))
    }

    /// Of three times that it comes to a stripe that is read: when it asks for the blocks, when they have come, and
    /// when they have been handed over.
    fn leaving(&self, sectors: u32) -> Span {
        Span(self.handling(sectors).0 / 3)
    }

    /// It comes to a band a last time, after all that it has to do before.
    pub(super) fn leave(&mut self, now: Instant, band: u32, sectors: u32) {
        let time = self.leaving(sectors);
        self.spent[2] += time;
        self.give(now, band, Work::Look, time);
    }

    fn give(&mut self, now: Instant, band: u32, work: Work, time: Span) {
        self.free = self.free.max(now) + time;
        self.left += time;
        self.jobs.push_back((self.free, band, work, time));
    }

    /// It has sent a request to a member, which takes it from all else for a while.
    pub(super) fn send(&mut self, now: Instant) {
        let time = Span(self.cost.submit);
        self.spent[2] += time;
        let Some(first) = self.jobs.front_mut() else {
            return self.give(now, super::cache::NONE, Work::Send, time);
        };
        first.3 += time;
        self.left += time;
        self.free += time;
        self.jobs.iter_mut().for_each(|job| job.0 += time);
    }

    /// It has no core for so long.
    pub(super) fn wait(&mut self, now: Instant, time: Span) {
        for job in &mut self.jobs {
            job.0 += time;
        }
        if !self.jobs.is_empty() {
            self.free = self.free.max(now) + time;
        }
    }

    /// It is to look at a band when it has come that far.
    pub(super) fn look(&mut self, now: Instant, band: u32) {
        self.give(now, band, Work::Look, Span::ZERO);
    }

    /// Whether it has not come to the end of what it was given.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.jobs.front().map_or(NEVER, |job| job.0)
    }

    /// A band whose computation has ended, or that it has come to.
    pub(super) fn done(&mut self, now: Instant) -> Option<(u32, Work)> {
        if self.next() > now {
            return None;
        }
        let (_, band, work, time) = self.jobs.pop_front()?;
        self.left = self.left - time;
        Some((band, work))
    }

    /// Work that it was given so far.
    pub(super) fn given(&self) -> Span {
        self.spent.iter().fold(Span::ZERO, |sum, part| sum + *part)
    }

    /// Time in use until `now`: what is booked beyond has not passed yet. Part of that may be waiting for a core.
    pub(super) fn busy(&self, now: Instant) -> Span {
        self.given() - self.free.since(now).min(self.left)
    }
}

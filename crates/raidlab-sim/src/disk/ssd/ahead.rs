//! Reading ahead of runs of reads, each of which begins where the one before ended.
//!
//! The second read of a run makes the drive read the pages behind it, so that those after find their data in the
//! controller. Several runs are told apart (<https://memblaze.com/innovate/technical-articles/698.html>: a context for each
//! run, so that others between its reads do not end it).
//!
//! Whom firmware turns out when there are more runs than contexts is told by nobody. Here a run keeps its context while its reads
//! come about as often as they did (of streams the average time between commands is what US patent 11 294 595, "Adaptive-feedback-based
//! read-look-ahead", tells them by); of the other contexts, whose runs have ended or not begun, a new read takes any. So of
//! more readers some are served as if nothing was read ahead, and what was read for the others is not thrown away. If the context
//! that was used longest ago always made room, readers in turn would find theirs gone each time, from one more than there are
//! contexts on.
//!
//! What is left out: runs downwards and with gaps, and that a drive would let the reads of others go first.
use raidlab_core::rng::Stream as Numbers;
use std::collections::VecDeque;
use std::ops::Range;

/// What the drive knows of runs of reads.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    runs: Box<[Run]>,
    /// Pages in a row of each that have been asked for, and when each is in the controller.
    pages: Box<[VecDeque<(u64, u64)>]>,
    reads: u64,
    numbers: Numbers,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it would go on.
    next: u64,
    /// When it did last, counted in reads.
    used: u64,
    /// Eight times the average of what was between; 0: it has not gone on yet.
    between: u64,
}

impl Run {
    /// It has waited no more than four times as long as it does on average (assumed).
    fn goes_on(&self, reads: u64) -> bool {
        2 * (reads - self.used) <= self.between
    }
}

impl Ahead {
    /// So many runs.
    pub(super) fn new(runs: usize) -> Self {
        let run = Run {
            next: u64::MAX,
            used: 0,
            between: 0,
        };
        Self {
            runs: vec![run; runs].into(),
            pages: vec![VecDeque::new(); runs].into(),
            reads: 0,
            numbers: Numbers::new(0),
        }
    }

    /// The run that a read of `lba..end` carries on; a read that carries on none may begin one.
    pub(super) fn run(&mut self, lba: u64, end: u64) -> Option<usize> {
        self.reads += 1;
        let reads = self.reads;
        if let Some(known) = self.runs.iter().position(|run| run.next == lba) {
            let run = &mut self.runs[known];
            let since = reads - run.used;
            run.between = match run.between {
                0 => 8 * since,
                // An average over about the last eight.
                before => before - before / 8 + since,
            };
            (run.next, run.used) = (end, reads);
            return Some(known);
        }
        let count = self.runs.len();
        let first = self.numbers.below(reads, count as u64) as usize;
        let from_there = (first..count).chain(0..first);
        let mut free = from_there.filter(|run| !self.runs[*run].goes_on(reads));
        if let Some(run) = free.next() {
            self.runs[run] = Run {
                next: end,
                used: reads,
                between: 0,
            };
            self.pages[run].clear();
        }
        None
    }

    /// When a page is in the controller, if it has been asked for; those before it are not wanted any more.
    pub(super) fn there(&mut self, run: usize, page: u64) -> Option<u64> {
        let pages = &mut self.pages[run];
        while pages.front().is_some_and(|(first, _)| *first < page) {
            pages.pop_front();
        }
        pages.front().map(|(_, there)| *there)
    }

    /// The pages of `first..last` that have not been asked for.
    pub(super) fn missing(&self, run: usize, first: u64, last: u64) -> Range<u64> {
        let asked = self.pages[run].back().map_or(0, |(page, _)| page + 1);
        first.max(asked)..last
    }

    /// The page behind those that have been asked for will be there at the time.
    pub(super) fn put(&mut self, run: usize, page: u64, there: u64) {
        self.pages[run].push_back((page, there));
    }

    /// Pages `first` to `last` have new content.
    pub(super) fn written(&mut self, first: u64, last: u64) {
        for pages in &mut self.pages {
            let (Some((from, _)), Some((to, _))) = (pages.front(), pages.back()) else {
                continue;
            };
            if *from <= last && first <= *to {
                pages.clear();
            }
        }
    }
}

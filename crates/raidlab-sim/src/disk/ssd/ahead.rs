//! Reading ahead of runs of reads, each of which begins where the one before ended.
//!
//! The second read of a run makes the drive read the pages behind it, so that those after find their data in the
//! controller. Several runs are told apart (<https://memblaze.com/innovate/technical-articles/698.html>: a context for each
//! run, so that others between its reads do not end it); the one that was used longest ago makes room.
//!
//! What is left out: runs downwards and with gaps, and that a drive would let the reads of others go first.
use std::collections::VecDeque;
use std::ops::Range;

/// What the drive knows of runs of reads.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// Where each run would go on.
    next: Box<[u64]>,
    /// When each was used last, counted in reads.
    used: Box<[u64]>,
    /// Pages in a row that have been asked for, and when each is in the controller.
    pages: Box<[VecDeque<(u64, u64)>]>,
    reads: u64,
}

impl Ahead {
    /// So many runs.
    pub(super) fn new(runs: usize) -> Self {
        Self {
            next: vec![u64::MAX; runs].into(),
            used: vec![0; runs].into(),
            pages: vec![VecDeque::new(); runs].into(),
            reads: 0,
        }
    }

    /// The run that a read of `lba..end` carries on; a read that carries on none may begin one.
    pub(super) fn run(&mut self, lba: u64, end: u64) -> Option<usize> {
        self.reads += 1;
        let known = self.next.iter().position(|next| *next == lba);
        let oldest = || (0..self.used.len()).min_by_key(|run| self.used[*run]);
        let run = known.or_else(oldest)?;
        (self.next[run], self.used[run]) = (end, self.reads);
        if known.is_none() {
            self.pages[run].clear();
        }
        known
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

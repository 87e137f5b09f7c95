//! What keeps requests and the resync of a mirror apart (`raid1.c:raise_barrier`, `wait_barrier`).
//!
//! A resync copies what it has read some time before; a write in between would be lost. So md lets
//! either requests or the resync into a part of the array, in turn. Raid1 has parts of 64 MiB (since
//! 3.13 in another form, since 4.12 in this), raid10 and old raid1 are one part.
use crate::array::core::{Op, Up};
use crate::block::Bio;
use crate::disk::DiskError;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;

/// Parts of an array; a part shares its count with others so many parts away (`BARRIER_BUCKETS_NR`).
const BUCKETS: usize = 1024;
/// log2 of the sectors of a part (`BARRIER_UNIT_SECTOR_BITS`).
const PART: u32 = 17;

/// Requests and resync of one mirror.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    shift: u32,
    /// Requests in flight by part.
    pending: Vec<u32>,
    /// Requests of the resync in flight, and in which part.
    raised: u32,
    part: u64,
    /// The resync waits for the part to empty.
    wants: bool,
    /// It has waited, been let in, and builds its next request until this time.
    builds: Option<Instant>,
    /// What it takes to build its next request and come here again. Whoever waited for the same request as the resync is awake at
    /// the same time, and asks again within it: a guest's raid10 of 6.1 sent 1.2 requests of a rebuild for each read of a process
    /// that reads at random, and 0.7 of a resync, where one that sends all it may at once would have sent its whole window.
    build: Span,
    pub(super) held: VecDeque<(Up, Bio)>,
    /// What the resync has read while the array's thread waits: its copy, the request and how that ended.
    pub(super) read: Vec<(u32, Op, Result<(), DiskError>)>,
}

impl Barrier {
    pub(super) fn new(local: bool, build: Span) -> Self {
        Self {
            shift: if local { PART } else { 63 },
            pending: vec![0; if local { BUCKETS } else { 1 }],
            raised: 0,
            part: 0,
            wants: false,
            builds: None,
            build,
            held: VecDeque::new(),
            read: Vec::new(),
        }
    }

    fn parts(&self, from: u64, end: u64) -> std::ops::RangeInclusive<u64> {
        from >> self.shift..=(end - 1) >> self.shift
    }

    fn count(&mut self, part: u64) -> &mut u32 {
        let buckets = self.pending.len();
        &mut self.pending[part as usize % buckets]
    }

    /// Whether a request may go on; then it counts until [`Self::left`].
    pub(super) fn enter(&mut self, from: u64, end: u64) -> bool {
        let parts = self.parts(from, end);
        if (self.raised > 0 || self.wants) && parts.contains(&self.part) {
            return false;
        }
        for part in parts {
            *self.count(part) += 1;
        }
        true
    }

    pub(super) fn left(&mut self, from: u64, end: u64) {
        for part in self.parts(from, end) {
            *self.count(part) -= 1;
        }
    }

    /// Whether a request of the resync may go out at `now`; then it counts until [`Self::lower`]. Who has waited has to build the
    /// next one first.
    pub(super) fn raise(&mut self, now: Instant, at: u64) -> bool {
        if self.builds.is_some() {
            return false;
        }
        let part = at >> self.shift;
        let waited = self.wants;
        if !self.wants {
            // Whoever waits goes first.
            if !self.held.is_empty() || (self.raised > 0 && self.part != part) {
                return false;
            }
            (self.wants, self.part) = (true, part);
        }
        if *self.count(part) > 0 {
            return false;
        }
        self.wants = false;
        self.raised += 1;
        self.builds = waited.then(|| now + self.build);
        true
    }

    /// When the resync has built its next request.
    pub(super) const fn builds(&self) -> Option<Instant> {
        self.builds
    }

    /// What is built by now is built.
    pub(super) fn built(&mut self, now: Instant) {
        self.builds = self.builds.filter(|until| *until > now);
    }

    /// The resync no longer waits for a part to empty; whether those that are held may go on.
    pub(super) fn calm(&mut self) -> bool {
        self.wants = false;
        self.raised == 0
    }

    /// A request of the resync has ended; whether those that are held may go on.
    pub(super) fn lower(&mut self) -> bool {
        self.raised = self.raised.saturating_sub(1);
        self.raised == 0 && !self.wants
    }
}

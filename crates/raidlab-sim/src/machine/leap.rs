//! What of a machine can be leapt over, and what that adds to its accounts.
//!
//! Nothing inside the machine is moved but what read-ahead knows: a workload that goes on further ahead finds a
//! disk that has to move its arm and a cache that has nothing read ahead, and the drive loop does not count what
//! it takes until both have caught up.
//!
//! Not everything catches up: disks that have found an order among themselves may find another one after a leap,
//! and keep to that at another pace (docs/validation/prediction.md has figures). So a phase is leapt through only
//! when running it would take long.
use super::edges;
use super::repeats::Repeats;
use super::totals::Totals;
use crate::host::Host;
use crate::storage::Storage;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{SECTOR, common_multiple};
use raidlab_core::workload::Stretch;

/// Bytes around an edge that are not leapt to: what is read ahead or waits to be written there.
/// Assumed: larger than the windows and buffers of a machine with much memory.
const MARGIN: u64 = 32 << 20;

/// Bytes that a phase must have before it to be leapt through, unless said otherwise. So many are run in less
/// than a second on most arrays, and in some seconds on any.
pub(super) const LEAST: u64 = 256 << 30;

/// Bytes that the device may have moved more or less than the workload since the pace is looked at, in
/// thousandths. What is written back comes in waves, so that single windows may be off by more.
const BALANCE: u64 = 20;

/// See [`Target::grain`]: whole stripes with the parity of each member once, and whole read-ahead windows, all of
/// them twice, as md's windows are of two stripes.
pub(super) fn grain(host: &Host<Storage>) -> u64 {
    let storage = host.device();
    let members = storage.array().map_or(1, |array| array.members() as u64);
    let stripes = storage.stripe().max(1 << 20) * members.max(1);
    let window = host.read_ahead().max(1);
    2 * common_multiple(stripes, window)
}

/// Whether members are filled or made to agree beside all else, which has a place that goes on.
pub(super) fn refills(host: &Host<Storage>) -> bool {
    host.device().resync().is_some()
}

/// State of the machine where its pace is looked at from.
#[derive(Clone, Debug)]
struct Mark {
    at: Instant,
    offset: u64,
    totals: Totals,
}

/// How far the clock was put forward, and what is known of the pace.
#[derive(Clone, Debug)]
pub(super) struct Leaping {
    pub(super) on: bool,
    /// Bytes that a phase must have before it.
    pub(super) least: u64,
    /// Whether this one has; `None` while that is not known.
    worth: Option<bool>,
    /// Time that was leapt over.
    pub(super) forward: Span,
    /// What it would have added to the accounts.
    pub(super) extra: Totals,
    edges: Vec<u64>,
    /// Some disk has a state that changes as it is written (SSD).
    solid: bool,
    /// A bitmap is written now and then: at other times in what is leapt over than in what was seen.
    noted: bool,
    margin: u64,
    first: Option<Mark>,
    /// The time since then that is repeated, and what it added to the accounts.
    window: Option<(Span, Totals)>,
    /// As much was moved in it as was asked for.
    level: bool,
    pub(super) repeats: Repeats,
}

impl Leaping {
    pub(super) fn new(edges: Vec<u64>, (solid, noted): (bool, bool), stripe: u64) -> Self {
        Self {
            on: true,
            least: LEAST,
            worth: None,
            forward: Span::ZERO,
            extra: Totals::default(),
            edges,
            solid,
            noted,
            margin: (MARGIN + 16 * stripe) / SECTOR,
            first: None,
            window: None,
            level: false,
            repeats: Repeats::default(),
        }
    }

    /// Another phase begins.
    pub(super) fn begin(&mut self, host: &Host<Storage>) {
        (self.worth, self.first, self.window) = (None, None, None);
        self.repeats = Repeats::of(host);
    }

    /// Whether enough is to come that leaps are worth it, when `passed` bytes took so long.
    fn is_enough(&self, now: Instant, stretch: &Stretch, (passed, time): (u64, Span)) -> bool {
        let rest = stretch.pieces.saturating_mul(u64::from(stretch.piece));
        let in_time = stretch.until.map_or(rest, |until| {
            let left = until.since(now + self.forward);
            let bytes = u128::from(passed) * u128::from(left.0) / u128::from(time.0.max(1));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        });
        rest.min(in_time) >= self.least
    }

    /// See [`Target::may_leap`].
    #[inline]
    pub(super) fn may_leap(&self, host: &Host<Storage>) -> bool {
        self.on
            && self.worth != Some(false)
            && host.file_system().is_raw()
            && !self.edges.is_empty()
    }

    /// See [`Target::alike`].
    pub(super) fn alike(&mut self, host: &Host<Storage>, stretch: &Stretch, first: bool) -> u64 {
        self.window = None;
        if !self.may_leap(host) || (stretch.writes && (self.solid || self.noted)) || refills(host) {
            return 0;
        }
        let here = Mark {
            at: host.now(),
            offset: stretch.offset,
            totals: Totals::of(host),
        };
        if first {
            self.first = Some(here);
        } else if !self.look_back(&here, stretch) {
            return 0;
        }
        let margins = (self.margin, self.margin);
        edges::room(&self.edges, stretch.offset / SECTOR, margins) * SECTOR
    }

    /// What has been done since the first mark; false when that is not known, or when leaps are not worth it.
    fn look_back(&mut self, here: &Mark, stretch: &Stretch) -> bool {
        let Some(first) = &self.first else {
            return false;
        };
        let passed = here.offset.saturating_sub(first.offset);
        if passed == 0 {
            return false;
        }
        let time = here.at.since(first.at);
        let window = here.totals.since(&first.totals, (1, 1));
        let balanced = |moved: u64| moved.abs_diff(passed) * 1000 <= passed * BALANCE;
        self.level = (!stretch.reads || balanced(window.device.read))
            && (!stretch.writes || balanced(window.device.written));
        let worth = self
            .worth
            .unwrap_or_else(|| self.is_enough(here.at, stretch, (passed, time)));
        self.worth = Some(worth);
        self.window = Some((time, window));
        worth
    }

    /// Whether a bitmap is written now and then.
    pub(super) const fn is_noted(&self) -> bool {
        self.noted
    }

    /// What the next [pass](Self::pass) repeats: a time, and what it added to the accounts.
    pub(super) fn look_at(&mut self, window: (Span, Totals)) {
        self.window = Some(window);
    }

    /// See [`Target::is_level`].
    pub(super) const fn is_level(&self) -> bool {
        self.level
    }

    /// See [`Target::leap`]. What is repeated is what was last looked back at.
    pub(super) fn leap(&mut self) {
        self.first = None;
    }

    /// See [`Target::pass`].
    pub(super) fn pass(&mut self, time: Span) {
        match self.window.take() {
            Some(window) => self.pass_with(time, &window),
            None => self.forward += time,
        }
    }

    /// Puts the clock forward by `time`, in which all went on as in a window of that length with those
    /// accounts.
    pub(super) fn pass_with(&mut self, time: Span, (length, window): &(Span, Totals)) {
        self.forward += time;
        let more = window.since(&Totals::default(), (time.0, length.0));
        self.extra.add(&more);
    }
}

//! Resync and rebuild by themselves: how long they take, and what limits them.
//!
//! A disk of many terabytes is resynced for days, nearly all of it at the pace of the zone that it is
//! in. So stretches within a zone are leapt over as those of a sequential reader are (see
//! [`raidlab_core::drive`]): when two stretches of time have gone at the same pace, the resync is
//! paused, its position is put ahead to a place before the next zone of any member, and what it does
//! from there until it has its pace again counts as if it had never lost it.
//!
//! The stripe cache of a parity array grows as long as a resync finds it full, which is what one by itself does; there is no pace
//! before it has come to its greatest size.
//!
//! md's speed control has a memory of half a minute and sleeps for half a second, which hides the pace.
//! It is lifted while the pace is looked for, and the control itself then says at what rate it would
//! have let a resync of that pace go on ([`array::controlled`]). Some resyncs are faster with its sleeps than without: there the
//! control stays on ([`control`]). Where the pace is chance from second to second its mean is looked for ([`uneven`]).
mod control;
mod course;
mod pace;
mod uneven;

use super::totals::Totals;
use super::{Load, Machine, Why, edges};
use crate::array::{self, Array};
use crate::block::Progress as Refilled;
use crate::host::Host;
use crate::storage::Storage;
use course::Course;
use pace::Fast;
use raidlab_core::drive::{Pace, Progress, Seen, Steady};
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use std::ops::ControlFlow;
use uneven::Uneven;

/// What windows are compared over. Assumed: more than a hundred requests of any disk.
const WINDOW: Span = Span::from_secs(1);
/// Windows that must fit before the next edge for a leap to be worth looking for the pace.
const WORTH: u64 = 24;
/// Time after a leap until the arms are where they belong. Assumed: many requests of any disk.
const WARM: Span = Span::from_millis(500);
/// Sectors around an edge that are not leapt to, for what is in flight at a time. Assumed: with [`WARM`], more than a grown stripe
/// cache holds of a member, 128 MiB.
const MARGIN: u64 = 32 << 11;
/// Time for which stripe caches must not have grown before the pace is looked for. Assumed: a resync that fills them does so many
/// times a second.
const CALM: Span = Span::from_secs(2);
/// From this share of md's limit on it is the limit that a resync goes at: its control sleeps for half a second at a time, and stays
/// half a per cent below.
const AT_LIMIT: f64 = 0.97;
/// Windows of an uneven pace, so many at least, and the time before it is looked at. Assumed: drives' caches are full or empty by
/// then.
const UNEVEN: (Span, usize, Span) = (Span::from_secs(4), 32, Span::from_secs(10));
/// How often progress is looked at.
const STEP: Span = Span::from_millis(50);

/// What came of a resync or rebuild that had the array for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Resynced {
    /// From the call to its end.
    pub elapsed: Span,
    /// Bytes gone through: of each member, and of the array for the resync of a raid10.
    pub bytes: u64,
    /// It was stopped before its end.
    pub interrupted: bool,
    /// What limited it.
    pub why: Why,
}

impl Resynced {
    /// Bytes a second, counted as [`bytes`](Self::bytes) are; 0 when no time passed.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.elapsed {
            Span::ZERO => 0.0,
            elapsed => self.bytes as f64 / elapsed.as_secs_f64(),
        }
    }
}

/// Looking for the pace, and leaping. Boxed by whoever holds it: it goes from hand to hand with every event of a machine that is looked
/// at closely.
struct Attempt {
    begun: Instant,
    from: u64,
    steady: Steady,
    /// Of the accounts when the first window began.
    before: Totals,
    fast: Fast,
    uneven: Uneven,
    /// The speed control is on.
    under: bool,
    /// The machine when it began, if the control may have held it back then.
    kept: Option<Box<Host<Storage>>>,
    warm: Option<Warm>,
}

/// A leap that has been made.
struct Warm {
    pace: Pace,
    /// Sectors done when it is over, and those leapt over.
    until: u64,
    leapt: u64,
    /// Behind the edge that was leapt to: the next attempt may begin there. A fast array is past it when that is looked at.
    later: u64,
    /// What the windows that the pace is of added to the accounts.
    windows: Totals,
}

impl Machine {
    /// Lets a resync or rebuild run to its end with nothing else going on; `None` when all agrees.
    /// `monitor` is asked now and then, told bytes as [`Resynced::bytes`] counts them, and may end it.
    pub fn run_resync(
        &mut self,
        mut monitor: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Option<Resynced> {
        self.begin_resilver(&mut monitor).ok()?;
        let (first, total) = self.resync().map(|p| (p.done, p.total))?;
        let (before, start) = (self.account(), self.now());
        let far = self.host.device().resync_end().unwrap_or(total);
        let (mut attempt, mut at) = (None, 0);
        // Sizes of the stripe caches, and since when they are so.
        let mut caches = (None, self.now());
        let mut course = Course::default();
        let (mut last, mut interrupted) = (first, false);
        while let Some(done) = self.resync_done() {
            last = done;
            at = self.resync_place();
            let progress = Progress {
                now: self.now(),
                elapsed: self.now().since(start),
                ops: 0,
                bytes: (done - first) * SECTOR,
            };
            if monitor(progress).is_break() {
                interrupted = true;
                break;
            }
            let rows = self.growing_rows();
            if rows != caches.0 {
                caches = (rows, self.host.now());
            }
            let calm = rows.is_none() || self.host.now().since(caches.1) >= CALM;
            attempt = match attempt {
                Some(attempt) => self.look_on(attempt, at, &mut course),
                None if at >= course.later && calm => self.begin(at, &course),
                None => None,
            };
            let since = self.now();
            self.resync_step(attempt.is_some() && rows.is_some());
            if attempt.is_none() && self.is_at_limit() {
                course.held += self.now().since(since);
            }
        }
        let end = if interrupted { last } else { total };
        if let Some(attempt) = attempt {
            self.land(*attempt, if interrupted { at } else { far }, &mut course);
        }
        let why = Why::between(&before, &self.account(), Load::default());
        let mut resynced = Resynced {
            elapsed: self.now().since(start),
            bytes: (end - first) * SECTOR,
            interrupted,
            why,
        };
        self.explain(&mut resynced, course.held);
        pace::explain(&mut resynced, course.tried);
        Some(resynced)
    }

    /// Where the one that is least far is, of several arrays with a resync each. They are alike, and each has a speed
    /// control of its own, so that this is what leaps and paces are counted in. Of one it is what is done.
    fn resync_place(&self) -> u64 {
        self.host.device().resync_position().unwrap_or(0)
    }

    /// Sectors that are done; `None` when nothing is left to do.
    fn resync_done(&self) -> Option<u64> {
        self.host.device().resync_done()
    }

    /// See [`Array::growing_rows`].
    fn growing_rows(&self) -> Option<u64> {
        self.host.device().array().and_then(Array::growing_rows)
    }

    /// Lets a little time pass, but not beyond the end; when it is looked at `closely`, until something happens.
    fn resync_step(&mut self, closely: bool) {
        let near =
            |progress: Refilled| progress.done + progress.rate / SECTOR / 4 >= progress.total;
        let until = match self.host.device().next_event() {
            Some(next) if closely || self.resync().is_some_and(near) => next,
            _ => self.host.now() + STEP,
        };
        self.resync_wait(until);
    }

    fn resync_wait(&mut self, until: Instant) {
        // No call is in flight that could end, or fail.
        let _ = self.host.wait(Some(until), &mut Vec::new());
    }

    pub(super) fn resync_limit(&mut self, most: Option<u64>) {
        let now = self.host.now();
        self.host
            .with_device(|storage| storage.resync_limit(now, most));
    }

    /// Looks for the pace from here on, when there is room for a leap.
    fn begin(&mut self, done: u64, course: &Course) -> Option<Box<Attempt>> {
        let rate = self.host.device().resync_rate()?;
        let room = edges::room(&self.sync_edges, done, (MARGIN, MARGIN));
        let window = rate / SECTOR * WINDOW.0 / 1_000_000_000;
        if !self.leaping.on || window == 0 || room / window < WORTH {
            return None;
        }
        let begun = self.host.now();
        let totals = Totals::of(&self.host);
        let under = course.controlled;
        let (mut kept, mut uneven) = (None, control::UNEVEN);
        if !under {
            kept = self.kept_at_limit(course);
            uneven = UNEVEN;
            self.resync_limit(None);
        }
        let mut steady = Steady::new(WINDOW);
        steady.observe(begun, done);
        Some(Box::new(Attempt {
            begun,
            from: done,
            steady,
            before: totals.clone(),
            fast: Fast::new((begun, done), totals.clone()),
            uneven: Uneven::new(uneven.0, uneven.1, begun + uneven.2, totals),
            under,
            kept,
            warm: None,
        }))
    }

    /// Goes on with an attempt; when it is over, it is noted where the next one may begin.
    fn look_on(
        &mut self,
        mut attempt: Box<Attempt>,
        done: u64,
        course: &mut Course,
    ) -> Option<Box<Attempt>> {
        if let Some(warm) = &attempt.warm {
            if done < warm.until {
                return Some(attempt);
            }
            course.later = warm.later;
            self.land(*attempt, done, course);
            return None;
        }
        // A stripe cache that has grown is filled and emptied some fifty times a second: windows begin and end where it was full.
        let array = self.host.device().array();
        if array.is_some_and(|array| array.growing_rows().is_some() && !array.resync_naps()) {
            return Some(attempt);
        }
        let pace = self.find(&mut attempt, done, course);
        if self.is_taken_back(&mut attempt, done, pace, course) {
            return None;
        }
        if let Some(pace) = pace {
            // All windows lie between the edges that are leapt between.
            let behind = MARGIN + (done - attempt.from);
            let room = edges::room(&self.sync_edges, done, (behind, MARGIN));
            let warm = pace.amount_in(match attempt.under {
                true => control::WARM,
                false => WARM,
            });
            if room > warm + pace.amount {
                let windows = Totals::of(&self.host).since(&attempt.before, (1, 1));
                let later = self.next_edge(done);
                let leapt = self.resync_skip(done + room - warm);
                attempt.warm = Some(Warm {
                    pace,
                    later,
                    until: self.resync_place().max(done) + warm,
                    leapt,
                    windows,
                });
                return Some(attempt);
            }
        }
        // A pace that is not found in many windows is looked for in longer ones, as far as there is room. Whoever gave up here
        // had to go through thousands of seconds of one zone.
        if edges::room(&self.sync_edges, done, (0, MARGIN)) > 0 {
            return Some(attempt);
        }
        course.later = self.next_edge(done);
        self.land(*attempt, done, course);
        None
    }

    /// Looks for the pace by all that it may be known by.
    fn find(&mut self, attempt: &mut Attempt, done: u64, course: &mut Course) -> Option<Pace> {
        let host = &self.host;
        let here = (host.now(), done);
        let end = host.device().resync_end().unwrap_or(done);
        let rest = edges::room(&self.sync_edges, done, (0, MARGIN));
        let share = rest as f64 / end.max(1) as f64;
        let uneven = attempt.uneven.look(here, share, || Totals::of(host));
        if !attempt.under {
            let seen = attempt.steady.observe(here.0, done);
            if seen == Seen::First {
                attempt.before = Totals::of(host);
            }
            let most = self.sync_limit;
            let fast = attempt.fast.look(here, most, || Totals::of(host));
            if let Some(pace) = course.level(seen) {
                if course.tried.is_none() {
                    course.tried = Some(self.tried(pace));
                }
                return Some(pace);
            }
            if fast.is_some() {
                attempt.before = attempt.fast.before.clone();
                return fast;
            }
        }
        if uneven.is_some() {
            attempt.before = attempt.uneven.before.clone();
            course.uneven |= !attempt.under;
        }
        uneven
    }

    fn next_edge(&self, done: u64) -> u64 {
        done + edges::room(&self.sync_edges, done, (0, 0)) + MARGIN
    }

    /// Pauses the resync, puts its position ahead to a sector, and lets it go on; by how many. What was in flight has gone some of
    /// the way, so that a distance would end beyond.
    fn resync_skip(&mut self, target: u64) -> u64 {
        self.resync_drain();
        let now = self.host.now();
        self.host
            .with_device(|storage| storage.resync_skip(now, target))
    }

    /// The resync has its pace again, or has come to its end, or to that of the zone without a pace: all since the attempt began
    /// counts at the rate that the speed control lets it have.
    fn land(&mut self, attempt: Attempt, done: u64, course: &mut Course) {
        if !attempt.under {
            self.resync_limit(Some(self.sync_most));
        }
        let took = self.host.now().since(attempt.begun);
        let bytes = (done - attempt.from) * SECTOR;
        let pace = attempt.warm.as_ref().map_or(
            Pace {
                amount: bytes,
                time: took,
            },
            |warm| Pace {
                amount: warm.pace.amount * SECTOR,
                time: warm.pace.time,
            },
        );
        let rate =
            (u128::from(pace.amount) * 1_000_000_000 / u128::from(pace.time.0.max(1))) as u64;
        // What was found with the control on is what it makes of it.
        let held = match attempt.under {
            true => rate,
            false => array::controlled(rate, self.sync_limit),
        };
        let due = if held < rate {
            Span((u128::from(bytes) * 1_000_000_000 / u128::from(held.max(1))) as u64)
        } else {
            pace.time_for(bytes)
        };
        self.leaping.forward += Span(due.0.saturating_sub(took.0));
        course.slow |= !self.is_limit(rate);
        course.controlled = attempt.under && self.is_limit(rate);
        if held < rate || course.controlled {
            course.held += due.max(took);
        }
        if let Some(warm) = attempt.warm {
            let share = (warm.leapt, warm.pace.amount);
            self.leaping
                .extra
                .add(&warm.windows.since(&Totals::default(), share));
        }
    }
}

//! Fast-forward: a stretch of like operations at a steady pace is not run to its end. Most of it is
//! leapt over, and the pace observed before goes into the tally for it.
//!
//! Only a model can be leapt over ([`Target::LEAPS`]). It is asked how far all is alike, its place is
//! moved there, and it runs on: the first operations after the leap find another state than they would
//! have found (the arm has to move, nothing is read ahead), so that as many as a window holds are run
//! to warm up, and count as if they had kept the pace. So a leap costs no accuracy beyond that of the
//! pace, which [`Steady`] bounds.
//!
//! The model must come to the pace that it had, and not to another one that keeps itself up as well: that of
//! read-ahead windows that lie across stripes where they lay along them, or of calls in another order. So what
//! is in flight ends before the place is moved, to a multiple of the target's [grain](Target::grain), and all
//! begin there at once, as they did in the beginning. Which pace a model comes to may also depend on what cannot
//! be moved, such as the angle of a disk: so when it is not the one that it had, all begins once more. Where it never
//! comes to that, the leap is taken back: all is again as before it, and what was to be leapt over is run.
use super::driver::{Board, KeptBoard, LaneState};
use super::steady::{Pace, Seen, Steady, WINDOW, WINDOW_OF_WRITES};
use super::{Lane, Tally};
use crate::target::Target;
use crate::time::{Instant, Span};
use crate::units::common_multiple;
use crate::workload::{Stretch, Workload};
use std::ops::Range;

/// How much another pace than before differs, in thousandths: more than a window does from the others by
/// chance, less than two ways of going on do that keep themselves up.
const OFF: u64 = 10;
/// How often all begins again when the model does not come to the pace that it had.
const TRIES: u32 = 8;

/// What came of a turn.
pub(super) enum Turn {
    /// It goes on.
    On,
    /// The clock was put forward by so much.
    Forward(Span),
    /// All is again what it was before a leap.
    Back,
}

/// All that there was before a leap.
struct Kept<W> {
    workload: W,
    state: LaneState,
    board: KeptBoard,
}

/// Whether a model has come to the pace that it had.
enum Found {
    Pace,
    /// Not yet; all begins once more.
    Again,
    /// It goes on in another way.
    Another,
}

/// The state at the beginning of a window.
struct Mark {
    tally: Tally,
    issued: u64,
    stretch: Stretch,
    /// Bytes from here on that are alike to the target.
    alike: u64,
}

/// What goes on after a leap was decided on.
#[derive(Clone, Copy)]
enum Stage {
    /// What is in flight ends; then so many pieces are leapt over.
    Draining(u64),
    /// The model warms up until so many operations are counted.
    Warming(u64),
    /// Its pace is looked at from here, with so many operations counted then.
    Checking(Instant, u64),
}

/// A leap, until the model has warmed up.
struct Warm<W> {
    /// What it began with, where that can be kept.
    kept: Option<Kept<W>>,
    /// At the beginning of the windows that are repeated, and at their end, when the leap began.
    windows: (Tally, Tally),
    pace: Pace,
    /// Operations issued in them.
    issued: u64,
    begun: Instant,
    /// How many pieces were leapt over.
    pieces: u64,
    /// Operations of a window.
    window: u64,
    /// The bytes from where the leap was decided on to where all ceases to be alike.
    alike: Range<u64>,
    /// How often its pace may still be found to be another.
    tries: u32,
    stage: Stage,
}

impl<W: Workload> Warm<W> {
    /// Nothing is in flight: the place is moved, and the lane goes on there.
    #[cold]
    fn move_on<T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        target: &mut T,
        pieces: u64,
    ) {
        if let Some(stretch) = lane.workload.stretch() {
            target.leap(&stretch, pieces * u64::from(stretch.piece.max(1)));
            lane.workload.skip(pieces);
            let issued = u128::from(self.issued) * u128::from(pieces);
            state.issued += (issued / u128::from(self.pace.amount.max(1))) as u64;
            self.pieces += pieces;
        }
        state.held = false;
        self.stage = Stage::Warming(state.tally.ops + self.window);
    }

    /// Whether the model has come to the pace that it had, after so many operations in so much time; when
    /// it has not, and there is room, all begins once more a little further on.
    #[cold]
    fn find_pace<T: Target>(
        &mut self,
        lane: &Lane<W>,
        target: &T,
        (ops, time): (u64, Span),
    ) -> Found {
        let due = self.pace.time_for(ops).0;
        if time.0.abs_diff(due) <= due / 1000 * OFF {
            return Found::Pace;
        }
        let Some(here) = lane.workload.stretch().filter(|_| self.tries > 0) else {
            return Found::Another;
        };
        let piece = u64::from(here.piece.max(1));
        let step = common_multiple(piece, target.grain().max(1));
        let next = here.offset.next_multiple_of(step);
        let pieces = next.saturating_sub(here.offset) / piece;
        let needed = pieces + 3 * self.window;
        if needed > here.pieces || here.offset + needed * piece > self.alike.end {
            return Found::Another;
        }
        self.tries -= 1;
        self.stage = Stage::Draining(pieces);
        Found::Again
    }
}

/// The most pieces of the stretch, `most` of them at most, after which the place is a multiple of the grain.
fn whole_grains(stretch: &Stretch, most: u64, grain: u64) -> u64 {
    let (piece, grain) = (u64::from(stretch.piece.max(1)), grain.max(1));
    if !stretch.offset.is_multiple_of(piece) {
        return most;
    }
    let step = common_multiple(piece, grain);
    let end = (stretch.offset + most * piece) / step * step;
    end.saturating_sub(stretch.offset) / piece
}

/// Watches one lane and leaps where it can.
pub(super) struct Leaper<W> {
    steady: Steady,
    mark: Option<Box<Mark>>,
    warm: Option<Box<Warm<W>>>,
    /// Nothing is looked at before.
    asleep: Instant,
    /// The bytes in which a leap was taken back: they are run.
    barred: Range<u64>,
}

impl<W: Workload> Leaper<W> {
    pub(super) fn new(from: Instant) -> Self {
        Self {
            steady: Steady::new(WINDOW),
            mark: None,
            warm: None,
            asleep: from,
            barred: 0..0,
        }
    }

    /// After a turn at time `now`.
    #[inline]
    pub(super) fn turn<T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        board: &mut Board<'_, T>,
        now: Instant,
    ) -> Turn {
        if now < self.asleep {
            return Turn::On;
        }
        let counted = state.tally.ops;
        if self.warm.is_some() {
            return self.after_leap(lane, state, board, now);
        }
        match self.steady.observe(now, counted) {
            Seen::Nothing => {}
            Seen::First => self.begin(lane, state, board.target, now),
            Seen::Mark => {
                self.goes_on(lane, state, board.target, now);
            }
            Seen::Steady(pace) => {
                if let Some(ahead) = self.goes_on(lane, state, board.target, now)
                    && board.target.is_level()
                {
                    self.leap(lane, state, board, ahead, pace, now);
                }
            }
        }
        Turn::On
    }

    /// The first window begins here, when there is a stretch at all.
    #[cold]
    fn begin<T: Target>(
        &mut self,
        lane: &Lane<W>,
        state: &LaneState,
        target: &mut T,
        now: Instant,
    ) {
        self.mark = None;
        let ahead = lane.workload.stretch();
        let Some(stretch) = ahead.filter(|ahead| !self.barred.contains(&ahead.offset)) else {
            self.steady.restart();
            self.asleep = now + self.steady.window();
            return;
        };
        let window = if stretch.writes {
            WINDOW_OF_WRITES
        } else {
            WINDOW
        };
        if self.steady.window() < window {
            self.steady = Steady::new(window);
            self.steady.observe(now, state.tally.ops);
        }
        self.mark = Some(Box::new(Mark {
            tally: state.tally.clone(),
            issued: state.issued,
            stretch,
            alike: target.alike(&stretch, true),
        }));
    }

    /// What comes next, and how much of it is alike, when that has been so since the first window;
    /// otherwise the first one begins here.
    #[cold]
    fn goes_on<T: Target>(
        &mut self,
        lane: &Lane<W>,
        state: &LaneState,
        target: &mut T,
        now: Instant,
    ) -> Option<(Stretch, u64)> {
        let stretch = lane.workload.stretch();
        let alike = stretch
            .as_ref()
            .map_or(0, |stretch| target.alike(stretch, false));
        let same =
            |here: &Stretch, first: &Stretch| first.file == here.file && first.offset < here.offset;
        if let (Some(here), Some(first)) = (stretch, &self.mark)
            && same(&here, &first.stretch)
            && first.stretch.offset + first.alike == here.offset + alike
        {
            return Some((here, alike));
        }
        self.steady.restart();
        self.steady.observe(now, state.tally.ops);
        self.begin(lane, state, target, now);
        None
    }

    /// Begins a leap when there is room for one.
    #[cold]
    fn leap<T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        board: &mut Board<'_, T>,
        (stretch, alike): (Stretch, u64),
        pace: Pace,
        now: Instant,
    ) {
        let piece = u64::from(stretch.piece.max(1));
        let mut room = (alike / piece).min(stretch.pieces);
        if let Some(until) = stretch.until {
            room = room.min(pace.amount_in(until.since(now)));
        }
        let window = pace.amount_in(self.steady.window()).max(1);
        let rest = (room / 3).clamp(2 * window, 2 * u64::from(TRIES) * window);
        let pieces = whole_grains(&stretch, room.saturating_sub(rest), board.target.grain());
        let Some(before) = self.mark.take_if(|_| pieces >= pace.amount) else {
            return;
        };
        let kept = lane.workload.twin().and_then(|workload| {
            Some(Kept {
                workload,
                state: state.clone(),
                board: board.keep()?,
            })
        });
        state.held = true;
        self.warm = Some(Box::new(Warm {
            kept,
            issued: state.issued - before.issued,
            windows: (before.tally, state.tally.clone()),
            pace,
            begun: now,
            pieces: 0,
            window,
            alike: stretch.offset..stretch.offset + room * piece,
            tries: TRIES,
            stage: Stage::Draining(pieces),
        }));
        self.after_leap(lane, state, board, now);
    }

    /// A leap goes on.
    fn after_leap<T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        board: &mut Board<'_, T>,
        now: Instant,
    ) -> Turn {
        let (Some(warm), counted) = (&mut self.warm, state.tally.ops) else {
            return Turn::On;
        };
        match warm.stage {
            Stage::Draining(pieces) => {
                if state.in_flight == 0 {
                    warm.move_on(lane, state, board.target, pieces);
                }
            }
            Stage::Warming(until) => {
                if counted >= until {
                    warm.stage = Stage::Checking(now, counted);
                }
            }
            Stage::Checking(from, ops) => {
                let seen = (counted - ops, now.since(from));
                if seen.0 >= warm.window {
                    return match warm.find_pace(lane, board.target, seen) {
                        Found::Pace => self.warmed(state, board.target, now),
                        Found::Again => {
                            state.held = true;
                            self.after_leap(lane, state, board, now)
                        }
                        Found::Another => self.take_back(lane, state, board, now),
                    };
                }
            }
        }
        Turn::On
    }

    /// The model goes on in another way than before the leap: where that was kept, all is again as it was then, and
    /// no other leap is tried up to where something else is to be expected.
    #[cold]
    fn take_back<T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        board: &mut Board<'_, T>,
        now: Instant,
    ) -> Turn {
        let warm = self.warm.take_if(|warm| warm.kept.is_some());
        let Some((kept, alike)) = warm.and_then(|warm| Some((warm.kept?, warm.alike))) else {
            return self.warmed(state, board.target, now);
        };
        (lane.workload, *state) = (kept.workload, kept.state);
        board.back(kept.board);
        self.barred = alike;
        self.steady.restart();
        Turn::Back
    }

    /// The model has warmed up (or the drive ends before it has): what was leapt over is booked, and
    /// the clock put forward to where the pace would have brought it.
    #[cold]
    pub(super) fn warmed<T: Target>(
        &mut self,
        state: &mut LaneState,
        target: &mut T,
        now: Instant,
    ) -> Turn {
        let Some(warm) = self.warm.take_if(|warm| warm.pieces > 0) else {
            return Turn::On;
        };
        self.steady.restart();
        let (earlier, later) = &warm.windows;
        let run = state.tally.ops - later.ops;
        let due = warm.pace.time_for(warm.pieces + run);
        let forward = Span(due.0.saturating_sub(now.since(warm.begun).0));
        target.pass(forward);
        // What was run to warm up counts as the windows did.
        let (each, mut tally) = (warm.pace.amount.max(1), later.clone());
        let (times, rest) = (warm.pieces / each, warm.pieces % each);
        tally.repeat(earlier, later, times, warm.begun, warm.pace.time);
        tally.repeat_part(earlier, later, rest + run, target.now());
        state.tally = tally;
        Turn::Forward(forward)
    }
}

#[cfg(test)]
mod tests;

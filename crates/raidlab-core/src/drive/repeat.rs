//! Fast-forward of operations by chance: once their pace is known, time passes in which all goes on as it has.
//!
//! What is drawn anew each time depends on nothing that was before, and what it is asked of neither knows nor moves a place, as it does
//! for a [stretch](super::leap): so nothing has to come to an end, to warm up or to be found again. What is in flight stays so, and
//! the clock is put forward by as many times of what was seen as there are until the load's own end is near. A model tells whether it
//! goes on that way, and for how long: a disk whose fast area fills up does not ([`Target::stays`]).
use super::driver::{Board, LaneState};
use super::steady::{Seen, Steady};
use super::{Lane, Tally};
use crate::target::Target;
use crate::time::{Instant, Span};
use crate::workload::{Chance, Workload};

/// The least time that is compared. Assumed: some hundred responses of any device that is fast enough for this.
const WINDOW: Span = Span::from_millis(100);
/// What is repeated begins so long after the load: at first caches are empty, and all comes at once.
const SETTLED: Span = Span::from_millis(400);
/// What is repeated lasted at least so long: what a device does seldom, and a tail of one in a thousand, is in it.
const WATCHED: Span = Span::from_secs(1);
/// It is repeated so often at the most, so that what comes of a longer load is better known, as it is without this.
const TIMES: u64 = 8;

/// A lane where what is to be repeated began.
struct Mark {
    tally: Tally,
    issued: u64,
}

/// Watches all lanes and repeats what they do, where they can.
pub(super) struct Repeater {
    steady: Steady,
    marks: Vec<Mark>,
    /// Nothing is looked at before.
    asleep: Instant,
}

impl Repeater {
    pub(super) fn new(from: Instant) -> Self {
        Self {
            steady: Steady::new(WINDOW),
            marks: Vec::new(),
            asleep: from + SETTLED,
        }
    }

    /// After a turn at time `now`: how far the clock was put forward.
    #[inline]
    pub(super) fn turn<W: Workload, T: Target>(
        &mut self,
        lanes: &mut [Lane<W>],
        states: &mut [LaneState],
        board: &mut Board<'_, T>,
        now: Instant,
    ) -> Option<Span> {
        if now < self.asleep {
            return None;
        }
        let counted = states.iter().map(|state| state.tally.ops).sum();
        match self.steady.observe(now, counted) {
            Seen::Nothing | Seen::Mark => None,
            Seen::First => {
                self.begin(lanes, states, board.target, now);
                None
            }
            Seen::Steady(pace) => self.repeat(lanes, states, board, pace.time),
        }
    }

    /// What may be repeated begins here, when all lanes go by chance.
    #[cold]
    fn begin<W: Workload, T: Target>(
        &mut self,
        lanes: &[Lane<W>],
        states: &[LaneState],
        target: &mut T,
        now: Instant,
    ) {
        self.marks.clear();
        if chance(lanes).is_none_or(|chance| target.stays(&chance, true).is_none()) {
            self.steady.restart();
            self.asleep = now + WINDOW;
            return;
        }
        let mark = |state: &LaneState| Mark {
            tally: state.tally.clone(),
            issued: state.issued,
        };
        self.marks = states.iter().map(mark).collect();
    }

    /// The pace is known: as many times of what was seen pass as there is time for.
    #[cold]
    fn repeat<W: Workload, T: Target>(
        &mut self,
        lanes: &mut [Lane<W>],
        states: &mut [LaneState],
        board: &mut Board<'_, T>,
        time: Span,
    ) -> Option<Span> {
        let now = board.target.now();
        let chance = chance(lanes)?;
        // The end is run: it is not like the rest.
        let rest = Span(chance.until.since(now).0.saturating_sub(WINDOW.0));
        if time < WATCHED || time.0.saturating_mul(TIMES) < rest.0 {
            return None;
        }
        self.steady.restart();
        let room = board.target.stays(&chance, false)?.min(rest);
        let times = room.0 / time.0.max(1);
        if times == 0 {
            // By then it is over, or goes on in another way.
            self.asleep = now + room.max(WINDOW);
            return None;
        }
        let forward = Span(time.0 * times);
        for ((lane, state), mark) in lanes.iter_mut().zip(states).zip(&self.marks) {
            let later = state.tally.clone();
            lane.workload.skip((later.ops - mark.tally.ops) * times);
            state.issued += (state.issued - mark.issued) * times;
            state.tally.repeat(&mark.tally, &later, times, now, time);
        }
        board.target.pass_alike(forward);
        board.flying.put_off(forward);
        Some(forward)
    }
}

/// What all lanes do together; `None` when one of them does not go by chance.
fn chance<W: Workload>(lanes: &[Lane<W>]) -> Option<Chance> {
    let mut all = lanes.iter().map(|lane| lane.workload.chance());
    let first = all.next()??;
    all.try_fold(first, |sum, chance| {
        let chance = chance?;
        Some(Chance {
            until: sum.until.min(chance.until),
            reads: sum.reads || chance.reads,
            writes: sum.writes || chance.writes,
        })
    })
}

#[cfg(test)]
mod tests;

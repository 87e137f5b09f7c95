//! The work of one turn: submitting what is wanted, and recording what has ended.
//!
//! Here a nanosecond an operation shows. What is the same for all operations of a turn is decided
//! once a turn, and the loops over operations hold what they count in registers.
use super::again::Refusals;
use super::leap::{Leaper, Turn};
use super::repeat::Repeater;
use super::slot::{Batch, InFlight, Slots};
use super::tally::Tally;
use super::{DriveError, Lane, Progress};
use crate::op::{BlockOp, Op};
use crate::target::{Completion, Errno, Tag, Target};
use crate::time::{Instant, Span};
use crate::workload::{Next, Ready, Workload};

/// Most operations that are submitted at once.
const AT_ONCE: usize = 64;

#[derive(Clone)]
pub(super) struct LaneState {
    pub(super) done: bool,
    /// Nothing more is submitted for now.
    pub(super) held: bool,
    pub(super) in_flight: u32,
    pub(super) issued: u64,
    pub(super) tally: Tally,
}

impl LaneState {
    /// Time passed as it is.
    #[inline]
    fn pass(&mut self, passed: Span) {
        self.tally.pass(passed, self.in_flight);
        // A lane that is done waits for nothing of its own.
        if self.in_flight == 0 && !self.done {
            self.tally.idle(passed);
        }
    }
}

pub(super) struct Driver<'a, W, T> {
    pub(super) lanes: &'a mut [Lane<W>],
    pub(super) states: Vec<LaneState>,
    pub(super) board: Board<'a, T>,
    pub(super) failure: Option<DriveError>,
    refusals: Refusals,
}

/// What lanes share.
pub(super) struct Board<'a, T> {
    pub(super) target: &'a mut T,
    pub(super) flying: InFlight,
    /// Of free slots; the one used last is the next to be used.
    pub(super) free: Vec<Tag>,
    /// Where operations begin that are submitted at once.
    offsets: [u64; AT_ONCE],
}

impl<'a, W: Workload, T: Target> Driver<'a, W, T> {
    pub(super) fn new(
        lanes: &'a mut [Lane<W>],
        target: &'a mut T,
        start: Instant,
        from: Instant,
    ) -> Self {
        let wanted: u64 = lanes.iter().map(|lane| u64::from(lane.depth.max(1))).sum();
        let count = wanted.min(u64::from(target.limits().max_in_flight.max(1))) as u32;
        let states = lanes
            .iter()
            .map(|_| LaneState {
                done: false,
                held: false,
                in_flight: 0,
                issued: 0,
                tally: Tally::new(start, from),
            })
            .collect();
        Self {
            lanes,
            states,
            board: Board {
                target,
                flying: InFlight::new(count),
                free: (0..count).rev().map(Tag).collect(),
                offsets: [0; AT_ONCE],
            },
            failure: None,
            refusals: Refusals::default(),
        }
    }

    /// Leaps where a lane that runs alone can; true when the clock was put forward or back.
    #[inline]
    pub(super) fn leap(&mut self, leaper: &mut Leaper<W>, now: Instant) -> bool {
        let ([lane], [state]) = (&mut *self.lanes, self.states.as_mut_slice()) else {
            return false;
        };
        match leaper.turn(lane, state, &mut self.board, now) {
            Turn::On => false,
            Turn::Forward(time) => {
                self.board.flying.put_off(time);
                true
            }
            Turn::Back => true,
        }
    }

    /// Passes over what is repeated; true when the clock was put forward.
    #[inline]
    pub(super) fn repeat(&mut self, repeater: &mut Repeater, now: Instant) -> bool {
        let (states, board) = (&mut self.states, &mut self.board);
        repeater.turn(self.lanes, states, board, now).is_some()
    }

    /// Most operations in flight.
    pub(super) fn slots(&self) -> usize {
        self.board.flying.slots.count()
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        (self.board.flying.slots.count() - self.board.free.len()) as u32
    }

    pub(super) fn all_done(&self) -> bool {
        self.states.iter().all(|state| state.done)
    }

    pub(super) fn progress(&self, now: Instant, start: Instant) -> Progress {
        Progress {
            now,
            elapsed: now.since(start),
            ops: self.states.iter().map(|state| state.tally.ops).sum(),
            bytes: self.states.iter().map(|state| state.tally.bytes).sum(),
        }
    }

    /// Submits all that is wanted and allowed; returns when a lane wants to be asked again.
    #[inline]
    pub(super) fn fill(&mut self, now: Instant) -> Result<Option<Instant>, DriveError> {
        let mut wake: Option<Instant> = None;
        let lanes = self.lanes.iter_mut().zip(&mut self.states);
        for (number, (lane, state)) in (0..).zip(lanes) {
            if state.done || state.held {
                continue;
            }
            let free = self.board.free.len() as u32;
            let mut room = free.min(lane.depth.max(1).saturating_sub(state.in_flight));
            if room > 0 {
                self.board.target.asked_by(number);
            }
            while room > 0 {
                let most = room.min(AT_ONCE as u32);
                let workload = &mut lane.workload;
                if let Some(ready) = workload.ready(now, most) {
                    if ready.count == 1 {
                        self.board.issue_one(number, workload, state, ready, now)?;
                    } else {
                        self.board
                            .issue_ready(number, workload, state, ready, now)?;
                    }
                    room = room.saturating_sub(ready.count);
                } else if self
                    .board
                    .issue_next(number, workload, state, now, &mut wake)?
                {
                    room -= 1;
                } else {
                    break;
                }
            }
        }
        Ok(wake)
    }

    #[inline]
    pub(super) fn account(&mut self, passed: Span) {
        if let [state] = self.states.as_mut_slice() {
            // As mostly: without a loop.
            return state.pass(passed);
        }
        for state in &mut self.states {
            state.pass(passed);
        }
    }

    /// Lanes that came to their own end last until their next operation would have been due.
    pub(super) fn last(&mut self) {
        for (lane, state) in self.lanes.iter().zip(&mut self.states) {
            if let (true, Some(end)) = (state.done, lane.workload.lasts()) {
                state.tally.last_until(end);
            }
        }
    }

    /// Records what has ended.
    #[inline]
    pub(super) fn complete(&mut self, done: &mut Vec<Completion>) {
        if let [only] = done.as_slice() {
            self.complete_one(only);
            return done.clear();
        }
        let mut rest = done.as_slice();
        while let Some(first) = rest.first() {
            let batch = self.board.flying.slots.batch(first.tag);
            // A tag that is not in flight would be a target's fault; the conformance suite checks it.
            let mut ended = 1;
            if batch != Slots::FREE {
                ended = self.complete_of(batch, first.at, rest);
                if ended == 0 {
                    self.complete_otherwise(batch, first);
                    ended = 1;
                }
            }
            rest = &rest[ended..];
        }
        done.clear();
    }

    /// Records an operation that ended by itself, as many do: without the loops.
    #[inline]
    fn complete_one(&mut self, completion: &Completion) {
        let number = self.board.flying.slots.batch(completion.tag);
        if number == Slots::FREE {
            return;
        }
        let batch = self.board.flying.batch(number);
        if completion.result != Ok(batch.bytes) {
            return self.complete_otherwise(number, completion);
        }
        self.board.flying.slots.free(completion.tag);
        let batch = self.board.flying.batch(number);
        let own = self.board.flying.own(number, completion.tag);
        let state = &mut self.states[batch.lane as usize];
        let workload = &mut self.lanes[batch.lane as usize].workload;
        workload.completed(&batch.record(own, completion));
        let bytes = u64::from(batch.bytes).into();
        state.tally.add_some(batch.kind(), completion.at, 1, bytes);
        self.board.free.push(completion.tag);
        state.in_flight -= 1;
        self.board.flying.end(number, 1);
    }

    /// What did not end as it should is submitted again, or recorded as it ended.
    // By itself, so that what ends as it should is recorded in the loop over turns.
    #[cold]
    #[inline(never)]
    fn complete_otherwise(&mut self, number: u32, completion: &Completion) {
        if self.again(number, completion) {
            return;
        }
        let flying = &mut self.board.flying;
        flying.slots.free(completion.tag);
        let (batch, own) = (flying.batch(number), flying.own(number, completion.tag));
        let state = &mut self.states[batch.lane as usize];
        let workload = &mut self.lanes[batch.lane as usize].workload;
        workload.completed(&batch.record(own, completion));
        let (kind, result) = (batch.kind(), completion.result);
        state
            .tally
            .add_unexpected(kind, completion.at, result, batch.bytes);
        if self.failure.is_none() {
            self.failure = Some(batch.failure(own, completion));
        }
        self.board.free.push(completion.tag);
        state.in_flight -= 1;
        self.board.flying.end(number, 1);
    }

    /// Submits an operation again that the target would not take at first; false when it is to be recorded as it ended.
    fn again(&mut self, number: u32, completion: &Completion) -> bool {
        if completion.result != Err(Errno::AGAIN) || self.failure.is_some() {
            return false;
        }
        let (tag, flying) = (completion.tag, &self.board.flying);
        let (batch, own) = (flying.batch(number), flying.own(number, tag));
        let (lane, record) = (batch.lane, batch.record(own, completion));
        let again = match self.refusals.count(tag, lane, &record) {
            Ok(()) => self.board.target.again(tag, record.op).map_err(Into::into),
            Err(too_often) => Err(too_often),
        };
        match again {
            Ok(taken) => {
                self.states[lane as usize].tally.again += u64::from(taken);
                taken
            }
            Err(error) => {
                self.failure = Some(error);
                false
            }
        }
    }

    /// Records the operations with which `done` begins that were submitted in one batch and ended at
    /// one time; returns how many. One that the target would not take yet ends the row.
    // By itself, so that its loop has the registers for itself.
    #[inline(never)]
    fn complete_of(&mut self, number: u32, at: Instant, done: &[Completion]) -> usize {
        let batch = *self.board.flying.batch(number);
        let lane = &mut self.lanes[batch.lane as usize];
        let state = &mut self.states[batch.lane as usize];
        let flying = &mut self.board.flying;
        let (mut ended, mut unexpected) = (0, 0);
        for completion in done {
            if flying.slots.batch(completion.tag) != number || completion.at != at {
                break;
            }
            let own = flying.own(number, completion.tag);
            if completion.result != Ok(batch.bytes) {
                if completion.result == Err(Errno::AGAIN) {
                    break;
                }
                unexpected += 1;
                let (result, tally) = (completion.result, &mut state.tally);
                tally.add_unexpected(batch.kind(), at, result, batch.bytes);
                if self.failure.is_none() {
                    self.failure = Some(batch.failure(own, completion));
                }
            }
            flying.slots.free(completion.tag);
            ended += 1;
            lane.workload.completed(&batch.record(own, completion));
        }
        let ops = ended as u64 - unexpected;
        let bytes = ops * u64::from(batch.bytes);
        state.tally.add(batch.kind(), at, ops, bytes.into());
        self.board
            .free
            .extend(done[..ended].iter().map(|completion| completion.tag));
        state.in_flight -= ended as u32;
        self.board.flying.end(number, ended as u32);
        ended
    }
}

/// What lanes share, as it was once.
pub(super) struct KeptBoard {
    flying: InFlight,
    free: Vec<Tag>,
}

impl<T: Target> Board<'_, T> {
    /// All that is in flight, and all that the target is; `None` when that cannot keep it.
    pub(super) fn keep(&mut self) -> Option<KeptBoard> {
        self.target.keep().then(|| KeptBoard {
            flying: self.flying.clone(),
            free: self.free.clone(),
        })
    }

    /// Is again what it last kept.
    pub(super) fn back(&mut self, kept: KeptBoard) {
        self.target.back();
        (self.flying, self.free) = (kept.flying, kept.free);
    }

    /// Submits the operations that the lane's workload has ready; there are as many free slots.
    #[inline(always)]
    fn issue_ready<W: Workload>(
        &mut self,
        lane: u32,
        workload: &mut W,
        state: &mut LaneState,
        ready: Ready,
        now: Instant,
    ) -> Result<(), DriveError> {
        let offsets = &mut self.offsets[..ready.count as usize];
        workload.issue(offsets);
        let rest = self.free.len() - offsets.len();
        let tags = &self.free[rest..];
        let (kind, len) = (ready.kind, ready.len);
        let op = Op::Block(BlockOp {
            kind,
            len,
            offset: 0,
        });
        let batch = self.flying.add(Batch {
            lane,
            first: state.issued,
            left: ready.count,
            ..Batch::of(op, now, now, true)
        });
        self.flying.begin(tags, offsets, batch);
        self.target.submit_alike(kind, len, tags, offsets)?;
        self.free.truncate(rest);
        state.issued += u64::from(ready.count);
        state.in_flight += ready.count;
        Ok(())
    }

    /// The same for a single operation, as there are many: without the loops.
    #[inline(always)]
    fn issue_one<W: Workload>(
        &mut self,
        lane: u32,
        workload: &mut W,
        state: &mut LaneState,
        ready: Ready,
        now: Instant,
    ) -> Result<(), DriveError> {
        let Some(tag) = self.free.pop() else {
            return Ok(());
        };
        let mut offsets = [0];
        workload.issue(&mut offsets);
        let op = Op::Block(BlockOp {
            kind: ready.kind,
            len: ready.len,
            offset: offsets[0],
        });
        let batch = Batch {
            lane,
            first: state.issued,
            ..Batch::of(op, now, now, true)
        };
        self.flying.put(tag, batch);
        state.issued += 1;
        state.in_flight += 1;
        Ok(self.target.submit(tag, op)?)
    }

    /// Asks the lane's workload and submits what it wants; false when it wants nothing now.
    fn issue_next<W: Workload>(
        &mut self,
        lane: u32,
        workload: &mut W,
        state: &mut LaneState,
        now: Instant,
        wake: &mut Option<Instant>,
    ) -> Result<bool, DriveError> {
        let Some(&tag) = self.free.last() else {
            return Ok(false);
        };
        match workload.next(now) {
            Next::Issue {
                op,
                intended,
                counted,
            } => {
                let intended = intended.unwrap_or(now).min(now);
                let batch = Batch {
                    lane,
                    first: state.issued,
                    ..Batch::of(op, intended, now, counted)
                };
                self.flying.put(tag, batch);
                self.target.submit(tag, op)?;
                self.free.pop();
                state.issued += 1;
                state.in_flight += 1;
                return Ok(true);
            }
            Next::Idle { until } => {
                *wake = match (*wake, until) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            Next::Done => state.done = true,
        }
        Ok(false)
    }
}

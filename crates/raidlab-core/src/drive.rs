//! The one loop that joins workloads to a target, in virtual or in wall time.
//!
//! The clock is read once a turn, not once an operation. A turn submits all that the workloads want
//! and the slots allow, then waits for at least one completion: never for the full depth, which
//! would drain the queue, and never before the queue is full, which would make the real depth the
//! batch size.
mod leap;
mod steady;
mod tally;

pub use steady::{Pace, Seen, Steady, WINDOW, WINDOW_OF_WRITES};
pub use tally::{Series, Tally, Window};

use crate::op::{BlockKind, BlockOp, Op, OpClass};
use crate::target::{Completion, Errno, Tag, Target, TargetError};
use crate::time::{Instant, Span};
use crate::workload::{Next, OpRecord, Workload};
use leap::Leaper;
use std::ops::ControlFlow;

/// One workload and the number of its operations that may be in flight.
#[derive(Debug)]
pub struct Lane<W> {
    /// What it asks for.
    pub workload: W,
    /// Queue depth; at least 1.
    pub depth: u32,
}

/// How to drive.
#[derive(Clone, Copy, Debug)]
pub struct DriveOptions {
    /// Operations that end within this time from the start are not counted.
    pub ramp: Span,
    /// How long nothing may end while something is in flight before the run is called stalled.
    pub stall: Span,
    /// How often the monitor is asked.
    pub poll: Span,
}

impl Default for DriveOptions {
    /// No ramp, a stall after 60 s, the monitor asked twenty times a second.
    fn default() -> Self {
        Self {
            ramp: Span::ZERO,
            stall: Span::from_secs(60),
            poll: Span::from_millis(50),
        }
    }
}

/// What a monitor is told.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The present.
    pub now: Instant,
    /// Since the start of the drive.
    pub elapsed: Span,
    /// Counted operations so far, all lanes.
    pub ops: u64,
    /// Counted bytes so far, all lanes.
    pub bytes: u64,
}

/// Watches a drive and may end it early.
pub trait Monitor {
    /// Asked every [`DriveOptions::poll`]; `Break` ends the run after what is in flight.
    fn poll(&mut self, progress: Progress) -> ControlFlow<()>;
}

impl Monitor for () {
    fn poll(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(Progress) -> ControlFlow<()>> Monitor for F {
    fn poll(&mut self, progress: Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// What came of a drive: a tally for each lane.
#[derive(Debug)]
pub struct Driven {
    /// One for each lane, in the order of the lanes.
    pub tallies: Vec<Tally>,
    /// The monitor ended the run before the workloads did.
    pub interrupted: bool,
}

/// Why a drive failed.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// An operation failed.
    #[error("operation {index} failed with error {}: {op:?}", errno.0)]
    Op {
        /// Its number within its workload.
        index: u64,
        /// What was asked.
        op: Op,
        /// The system call's error.
        errno: Errno,
    },
    /// Fewer bytes moved than asked for.
    #[error("operation {index} moved {moved} of {} bytes: {op:?}", op.bytes())]
    Short {
        /// Its number within its workload.
        index: u64,
        /// What was asked.
        op: Op,
        /// Bytes moved.
        moved: u32,
    },
    /// Nothing ended for too long.
    #[error("no operation ended for {waited} with {in_flight} in flight")]
    Stalled {
        /// How long nothing ended.
        waited: Span,
        /// How many operations were waiting.
        in_flight: u32,
    },
    /// The workloads wait for something that cannot come.
    #[error("the workload waits for a completion although nothing is in flight")]
    Deadlock,
    /// The target broke.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// A place for one operation in flight: one line of the cache. Large transfers drive all of this out
/// of the nearest cache between submission and completion, so that each line counts.
#[repr(align(64))]
struct Slot {
    index: u64,
    op: Op,
    intended: Instant,
    submitted: Instant,
    lane: u32,
    /// What the operation moves when it succeeds.
    bytes: u32,
    class: OpClass,
    counted: bool,
    busy: bool,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    const FREE: Self = Self {
        index: 0,
        op: Op::Block(BlockOp {
            kind: BlockKind::Flush,
            len: 0,
            offset: 0,
        }),
        intended: Instant::ZERO,
        submitted: Instant::ZERO,
        lane: 0,
        bytes: 0,
        class: OpClass::Sync,
        counted: false,
        busy: false,
    };

    /// The operation as it ended. Inlined, so that a workload that does not look at it costs nothing.
    #[inline(always)]
    fn record(&self, completion: &Completion) -> OpRecord {
        OpRecord {
            index: self.index,
            op: self.op,
            intended: self.intended,
            submitted: self.submitted,
            completed: completion.at,
            result: completion.result,
            counted: self.counted,
        }
    }

    fn expect(&mut self, op: Op, intended: Instant, counted: bool) {
        (self.bytes, self.class) = (op.bytes(), op.class());
        self.op = op;
        self.intended = intended;
        self.counted = counted;
    }

    /// The same for what [`Workload::next_block`] gives.
    #[inline(always)]
    fn expect_block(&mut self, block: BlockOp, now: Instant) {
        self.bytes = block.len;
        self.class = if block.kind == BlockKind::Read {
            OpClass::Read
        } else {
            OpClass::Write
        };
        self.op = Op::Block(block);
        self.intended = now;
        self.counted = true;
    }
}

struct LaneState {
    done: bool,
    in_flight: u32,
    issued: u64,
    tally: Tally,
}

struct Driver<'a, W, T> {
    lanes: &'a mut [Lane<W>],
    states: Vec<LaneState>,
    target: &'a mut T,
    slots: Vec<Slot>,
    free: Vec<u32>,
    failure: Option<DriveError>,
}

/// Drives the lanes against the target until all are done, the monitor ends it, or it fails.
///
/// # Errors
/// The first operation that fails or moves too few bytes ends the run (what is in flight is waited
/// for first); so does a broken target and a stall.
pub fn drive<W: Workload, T: Target>(
    lanes: &mut [Lane<W>],
    target: &mut T,
    options: &DriveOptions,
    monitor: &mut impl Monitor,
) -> Result<Driven, DriveError> {
    let start = target.now();
    let mut driver = Driver::new(lanes, target, start, start + options.ramp);
    let mut done = Vec::with_capacity(driver.free.len());
    let (mut now, mut next_poll, mut last_end) = (start, start + options.poll, start);
    let mut interrupted = false;
    let mut leaper = Leaper::new(start + options.ramp);
    loop {
        let wake = if interrupted || driver.failure.is_some() {
            None
        } else {
            driver.fill(now)?
        };
        let in_flight = driver.in_flight();
        if in_flight == 0 && (interrupted || driver.failure.is_some() || driver.all_done()) {
            break;
        }
        if in_flight == 0 && wake.is_none() {
            return Err(DriveError::Deadlock);
        }
        // While something is in flight a stall is looked for; the monitor is asked either way.
        let until = wake.map_or(next_poll, |w| w.min(next_poll));
        driver.target.wait(Some(until), &mut done)?;
        let before = now;
        now = driver.target.now();
        driver.account(now.since(before));
        if done.is_empty() {
            let waited = now.since(last_end);
            if in_flight > 0 && waited >= options.stall {
                return Err(DriveError::Stalled { waited, in_flight });
            }
        } else {
            last_end = now;
        }
        driver.complete(&mut done);
        if in_flight == 0 {
            last_end = now;
        }
        if T::LEAPS && driver.leap(&mut leaper, now) {
            now = driver.target.now();
            last_end = now;
        }
        if now >= next_poll {
            next_poll = now + options.poll;
            interrupted |= monitor.poll(driver.progress(now, start)).is_break();
        }
    }
    if let Some(failure) = driver.failure {
        return Err(failure);
    }
    if let ([state], true) = (driver.states.as_mut_slice(), T::LEAPS) {
        leaper.warmed(state, driver.target, now);
    }
    let settled = |mut state: LaneState| {
        state.tally.settle();
        state.tally
    };
    let tallies = driver.states.into_iter().map(settled).collect();
    Ok(Driven {
        tallies,
        interrupted,
    })
}

impl<'a, W: Workload, T: Target> Driver<'a, W, T> {
    fn new(lanes: &'a mut [Lane<W>], target: &'a mut T, start: Instant, from: Instant) -> Self {
        let wanted: u64 = lanes.iter().map(|lane| u64::from(lane.depth.max(1))).sum();
        let count = wanted.min(u64::from(target.limits().max_in_flight.max(1))) as u32;
        let states = lanes
            .iter()
            .map(|_| LaneState {
                done: false,
                in_flight: 0,
                issued: 0,
                tally: Tally::new(start, from),
            })
            .collect();
        Self {
            lanes,
            states,
            target,
            slots: (0..count).map(|_| Slot::FREE).collect(),
            free: (0..count).rev().collect(),
            failure: None,
        }
    }

    /// Leaps where a lane that runs alone can; true when the clock was put forward.
    #[inline]
    fn leap(&mut self, leaper: &mut Leaper, now: Instant) -> bool {
        let ([lane], [state]) = (&mut *self.lanes, self.states.as_mut_slice()) else {
            return false;
        };
        let forward = leaper.turn(lane, state, self.target, now);
        if forward == Span::ZERO {
            return false;
        }
        // What is in flight was submitted so much later.
        for slot in self.slots.iter_mut().filter(|slot| slot.busy) {
            slot.intended += forward;
            slot.submitted += forward;
        }
        true
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    fn all_done(&self) -> bool {
        self.states.iter().all(|state| state.done)
    }

    fn progress(&mut self, now: Instant, start: Instant) -> Progress {
        self.states
            .iter_mut()
            .for_each(|state| state.tally.settle());
        Progress {
            now,
            elapsed: now.since(start),
            ops: self.states.iter().map(|state| state.tally.ops).sum(),
            bytes: self.states.iter().map(|state| state.tally.bytes).sum(),
        }
    }

    /// Submits all that is wanted and allowed; returns when a lane wants to be asked again.
    #[inline]
    fn fill(&mut self, now: Instant) -> Result<Option<Instant>, DriveError> {
        let mut wake: Option<Instant> = None;
        for (number, (lane, state)) in self.lanes.iter_mut().zip(&mut self.states).enumerate() {
            if state.done {
                continue;
            }
            let room = lane.depth.max(1).saturating_sub(state.in_flight) as usize;
            let first = self.free.len().saturating_sub(room);
            // Counted here and added once: the loop is the hot path.
            let mut taken = 0;
            for &slot in self.free[first..].iter().rev() {
                let place = &mut self.slots[slot as usize];
                (place.lane, place.busy) = (number as u32, true);
                place.index = state.issued + u64::from(taken);
                place.submitted = now;
                taken += 1;
                if let Some(block) = lane.workload.next_block(now) {
                    place.expect_block(block, now);
                    self.target.submit(Tag(slot), Op::Block(block))?;
                    continue;
                }
                match lane.workload.next(now) {
                    Next::Issue {
                        op,
                        intended,
                        counted,
                    } => {
                        place.expect(op, intended.unwrap_or(now).min(now), counted);
                        self.target.submit(Tag(slot), op)?;
                        continue;
                    }
                    Next::Idle { until } => {
                        wake = match (wake, until) {
                            (Some(a), Some(b)) => Some(a.min(b)),
                            (a, b) => a.or(b),
                        };
                    }
                    Next::Done => state.done = true,
                }
                (place.busy, taken) = (false, taken - 1);
                break;
            }
            self.free.truncate(self.free.len() - taken as usize);
            state.issued += u64::from(taken);
            state.in_flight += taken;
        }
        Ok(wake)
    }

    #[inline]
    fn account(&mut self, passed: Span) {
        for state in &mut self.states {
            state.tally.pass(passed, state.in_flight);
        }
    }

    #[inline]
    fn complete(&mut self, done: &mut Vec<Completion>) {
        for completion in done.drain(..) {
            // A tag that is not in flight would be a target's fault; the conformance suite checks it.
            let slot = &mut self.slots[completion.tag.0 as usize];
            if !std::mem::take(&mut slot.busy) {
                continue;
            }
            self.free.push(completion.tag.0);
            let state = &mut self.states[slot.lane as usize];
            state.in_flight -= 1;
            let record = slot.record(&completion);
            state.tally.record(&record, slot.class, slot.bytes);
            self.lanes[slot.lane as usize].workload.completed(&record);
            if completion.result != Ok(slot.bytes) && self.failure.is_none() {
                self.failure = Some(failure_of(slot, &completion));
            }
        }
    }
}

/// Of an operation that failed or moved too few bytes.
#[cold]
#[inline(never)]
fn failure_of(slot: &Slot, completion: &Completion) -> DriveError {
    let (index, op) = (slot.index, slot.op);
    match completion.result {
        Ok(moved) => DriveError::Short { index, op, moved },
        Err(errno) => DriveError::Op { index, op, errno },
    }
}

#[cfg(test)]
mod tests;

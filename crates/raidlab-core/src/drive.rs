//! The one loop that joins workloads to a target, in virtual or in wall time.
//!
//! The clock is read once a turn, not once an operation. A turn submits all that the workloads want
//! and the slots allow, then waits for at least one completion: never for the full depth, which
//! would drain the queue, and never before the queue is full, which would make the real depth the
//! batch size.
mod again;
mod driver;
mod leap;
mod repeat;
mod row;
mod slot;
mod steady;
mod tally;

pub use steady::{Pace, Seen, Steady, WINDOW, WINDOW_OF_WRITES};
pub use tally::{Series, Tally, Window};

use crate::op::Op;
use crate::target::{Errno, Target, TargetError};
use crate::time::{Instant, Span};
use crate::workload::Workload;
use driver::Driver;
use leap::Leaper;
use repeat::Repeater;
use row::Clock;
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
    #[error("operation {index} ({op}) failed with error {errno}")]
    Op {
        /// Its number within its workload.
        index: u64,
        /// What was asked.
        op: Op,
        /// The system call's error.
        errno: Errno,
    },
    /// Fewer bytes moved than asked for.
    #[error("operation {index} ({op}) moved {moved} of {} bytes", op.bytes())]
    Short {
        /// Its number within its workload.
        index: u64,
        /// What was asked.
        op: Op,
        /// Bytes moved.
        moved: u32,
    },
    /// The target would not take an operation, however often it was asked to wait.
    #[error("operation {index} ({op}) was refused {times} times (EAGAIN)")]
    Refused {
        /// Its number within its workload.
        index: u64,
        /// What was asked.
        op: Op,
        /// How often it was refused.
        times: u32,
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

/// Drives the lanes against the target until all are done, the monitor ends it, or it fails.
///
/// An operation that the target would not take at first ([`Errno::AGAIN`]) is submitted
/// [again](Target::again); its response time is that from when it was due to when it ended at last.
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
    let mut done = Vec::with_capacity(driver.slots());
    let mut next_poll = start + options.poll;
    let mut clock = Clock {
        now: start,
        last_end: start,
    };
    let (mut interrupted, in_rows) = (false, driver.is_row());
    let mut leaper = Leaper::new(start + options.ramp);
    let mut repeater = Repeater::new(start + options.ramp);
    loop {
        let wake = if interrupted || driver.failure.is_some() {
            None
        } else {
            driver.fill(clock.now)?
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
        driver.board.target.wait(Some(until), &mut done)?;
        let before = clock.now;
        clock.now = driver.board.target.now();
        driver.account(clock.now.since(before));
        if done.is_empty() {
            let waited = clock.now.since(clock.last_end);
            if in_flight > 0 && waited >= options.stall {
                return Err(DriveError::Stalled { waited, in_flight });
            }
        } else {
            clock.last_end = clock.now;
        }
        driver.complete(&mut done);
        if in_flight == 0 {
            clock.last_end = clock.now;
        }
        if T::LEAPS
            && (driver.leap(&mut leaper, clock.now) || driver.repeat(&mut repeater, clock.now))
        {
            clock.now = driver.board.target.now();
            clock.last_end = clock.now;
            next_poll = next_poll.min(clock.now + options.poll);
        }
        if in_rows && !interrupted && driver.failure.is_none() {
            driver.row(&mut clock, next_poll, &mut done)?;
        }
        if clock.now >= next_poll {
            next_poll = clock.now + options.poll;
            let progress = driver.progress(clock.now, start);
            interrupted |= monitor.poll(progress).is_break();
        }
    }
    if let Some(failure) = driver.failure {
        return Err(failure);
    }
    driver.last();
    if let ([state], true) = (driver.states.as_mut_slice(), T::LEAPS) {
        leaper.warmed(state, driver.board.target, clock.now);
    }
    let tallies = driver.states.into_iter().map(|mut state| {
        state.tally.close_window();
        state.tally
    });
    let tallies = tallies.collect();
    Ok(Driven {
        tallies,
        interrupted,
    })
}

#[cfg(test)]
mod tests;

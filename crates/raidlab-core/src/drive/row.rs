//! A lane that makes one call after the other, by itself: what the loop keeps for many lanes and depths is left out.
use super::DriveError;
use super::driver::Driver;
use super::slot::Batch;
use crate::target::{Completion, Target};
use crate::time::Instant;
use crate::workload::{Next, OpRecord, Workload};

/// Where the loop over turns stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) now: Instant,
    /// When an operation last ended.
    pub(super) last_end: Instant,
}

impl<W: Workload, T: Target> Driver<'_, W, T> {
    /// Whether there is one lane, whose calls can be made in a [row](Self::row).
    pub(super) fn is_row(&self) -> bool {
        matches!(&*self.lanes, [lane] if lane.workload.is_serial())
    }

    /// Makes one call after the other as the turns of the loop would, until it is `until`, or one ends otherwise than it should,
    /// or none comes at once. One that has not ended by `until` is in flight then, as after any turn.
    #[inline]
    pub(super) fn row(
        &mut self,
        clock: &mut Clock,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DriveError> {
        let ([lane], [state]) = (&mut *self.lanes, self.states.as_mut_slice()) else {
            return Ok(());
        };
        let Some(&tag) = self.board.free.last() else {
            return Ok(());
        };
        if state.done || state.held || state.in_flight > 0 || self.board.target.may_leap() {
            return Ok(());
        }
        self.board.target.asked_by(0);
        while clock.now < until {
            let submitted = clock.now;
            let Next::Issue {
                op,
                intended,
                counted,
            } = lane.workload.next(submitted)
            else {
                // The next turn asks again.
                return Ok(());
            };
            let intended = intended.unwrap_or(submitted).min(submitted);
            self.board.target.submit(tag, op)?;
            self.board.target.wait(Some(until), done)?;
            clock.now = self.board.target.now();
            state.tally.pass(clock.now.since(submitted), 1);
            let batch = Batch {
                first: state.issued,
                ..Batch::of(op, intended, submitted, counted)
            };
            state.issued += 1;
            if let [end] = done.as_slice()
                && end.result == Ok(batch.bytes)
            {
                lane.workload.completed(&OpRecord {
                    index: batch.first,
                    op,
                    intended,
                    submitted,
                    completed: end.at,
                    result: end.result,
                    counted,
                });
                let bytes = u64::from(batch.bytes).into();
                state.tally.add_some(batch.kind(), end.at, 1, bytes);
                clock.last_end = clock.now;
                done.clear();
                continue;
            }
            self.board.flying.put(tag, batch);
            self.board.free.pop();
            state.in_flight += 1;
            if !done.is_empty() {
                clock.last_end = clock.now;
                self.complete(done);
            }
            return Ok(());
        }
        Ok(())
    }
}

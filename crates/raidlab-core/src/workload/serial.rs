//! Workloads that are one process making one call after another.
use super::{Expected, Next, OpRecord, Stretch, Workload};
use crate::op::Op;
use crate::time::Instant;

/// What a process does next: a call, and whether it counts in the phase's rate.
pub(super) type Step = Option<(Op, bool)>;

/// The calls of one process in order.
pub(super) trait Script {
    /// The next call; `None` when it has come to its end.
    fn step(&mut self, now: Instant) -> Step;

    /// How far it will go.
    fn expected(&self) -> Expected;

    /// The like pieces that come next.
    fn stretch(&self) -> Option<Stretch> {
        None
    }

    /// Leaves out so many of them.
    fn skip(&mut self, pieces: u64) {
        let _ = pieces;
    }
}

/// Makes the calls of a script one after another, whatever the depth of its lane: a process does
/// not write back a block before it has read it.
#[derive(Clone, Debug)]
pub struct Serial<S> {
    script: S,
    busy: bool,
}

impl<S> Serial<S> {
    pub(super) fn new(script: S) -> Self {
        Self {
            script,
            busy: false,
        }
    }
}

impl<S: Script> Workload for Serial<S> {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        if self.busy {
            return Next::Idle { until: None };
        }
        match self.script.step(now) {
            Some((op, counted)) => {
                self.busy = true;
                Next::Issue {
                    op,
                    intended: None,
                    counted,
                }
            }
            None => Next::Done,
        }
    }

    #[inline]
    fn completed(&mut self, _: &OpRecord) {
        self.busy = false;
    }

    #[inline]
    fn is_serial(&self) -> bool {
        true
    }

    fn expected(&self) -> Expected {
        self.script.expected()
    }

    fn stretch(&self) -> Option<Stretch> {
        self.script.stretch()
    }

    fn skip(&mut self, pieces: u64) {
        self.script.skip(pieces);
    }
}

//! What is asked, one operation after another.
//!
//! A workload never sees a clock or a device: it is told the time when it is asked, and says what it
//! wants next. The i-th operation depends on (seed, i) alone, never on timing, so two trials with
//! the same [`stream_digest`] asked for the same operations.
mod block;
mod calls;
mod files;
mod handle;
mod pass;
mod scan;
mod serial;
pub mod spec;

use crate::op::{BlockKind, FileId, Op};
use crate::rng::mix;
use crate::target::Errno;
use crate::time::Instant;

/// The answer to "what next?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do this.
    Issue {
        /// The operation.
        op: Op,
        /// When it was due, for a fixed arrival rate: waiting for a free slot then counts in its
        /// response time (no coordinated omission). `None`: as soon as there is a slot.
        intended: Option<Instant>,
        /// Whether it counts in the phase's rate: a rewrite reads and writes a block and counts it
        /// once.
        counted: bool,
    },
    /// Nothing before this time; `None`: nothing before one of my operations has ended.
    Idle {
        /// When to ask again at the latest.
        until: Option<Instant>,
    },
    /// No more operations will come.
    Done,
}

impl Next {
    /// An operation that counts and is due now.
    #[must_use]
    #[inline]
    pub const fn counted(op: Op) -> Self {
        Self::Issue {
            op,
            intended: None,
            counted: true,
        }
    }

    /// An operation that is part of the phase but not of its figure (an open, a sync).
    #[must_use]
    #[inline]
    pub const fn uncounted(op: Op) -> Self {
        Self::Issue {
            op,
            intended: None,
            counted: false,
        }
    }
}

/// Counted operations on blocks that are due now and differ only in where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// How many; at least 1.
    pub count: u32,
    /// Read or write.
    pub kind: BlockKind,
    /// Bytes of each.
    pub len: u32,
}

/// One operation from wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpRecord {
    /// Its number within its workload, from 0.
    pub index: u64,
    /// What was done.
    pub op: Op,
    /// When it was due.
    pub intended: Instant,
    /// When the target took it.
    pub submitted: Instant,
    /// When it had ended.
    pub completed: Instant,
    /// Bytes moved, or the error.
    pub result: Result<u32, Errno>,
    /// Whether it counts in the phase's rate.
    pub counted: bool,
}

/// A source of operations.
pub trait Workload {
    /// What to do next. Asked again only while a slot is free.
    fn next(&mut self, now: Instant) -> Next;

    /// Whether it makes one call after the other and each at once, however deep its lane is: there is never more than one in
    /// flight. Constant.
    #[inline]
    fn is_serial(&self) -> bool {
        false
    }

    /// Of the next operations those, `most` at most, that are alike, counted and due now; `None` says
    /// nothing, and [`next`](Self::next) is asked. The common case of the fastest workloads: what is
    /// decided here once for many operations is not decided at each.
    #[inline]
    fn ready(&self, now: Instant, most: u32) -> Option<Ready> {
        let _ = (now, most);
        None
    }

    /// Issues operations that [`ready`](Self::ready) has promised, one for each of `offsets`, and
    /// writes there where each begins.
    ///
    /// # Panics
    /// When none was promised.
    #[inline]
    fn issue(&mut self, offsets: &mut [u64]) {
        assert!(offsets.is_empty(), "no operation was said to be ready");
    }

    /// Told of each operation that has ended, in the order the target reported them.
    #[inline]
    fn completed(&mut self, record: &OpRecord) {
        let _ = record;
    }

    /// Counted bytes or operations that it will come to, if that is known beforehand (for progress).
    fn expected(&self) -> Expected {
        Expected::default()
    }

    /// When it is over that asked for its last operation, where operations are due at times of their own: when the next one would
    /// have been due. Asked when it is done; `None` when it is over with its last operation.
    fn lasts(&self) -> Option<Instant> {
        None
    }

    /// The like pieces that come next; `None` when what comes next is something else, or at a time of
    /// its own.
    fn stretch(&self) -> Option<Stretch> {
        None
    }

    /// What it goes on with until some time, when each operation is drawn by chance and begins as soon as there is a slot; `None` when
    /// what it does next depends on what was before, or on how much of it there was.
    fn chance(&self) -> Option<Chance> {
        None
    }

    /// Leaves out the next `pieces` of the [`stretch`](Self::stretch), which has at least as many, or of what comes by
    /// [`chance`](Self::chance).
    fn skip(&mut self, pieces: u64) {
        let _ = pieces;
    }

    /// Another one that goes on as this one would, for whoever may want to go on from here twice; `None` when there is
    /// none.
    fn twin(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Operations that are drawn by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    /// None is begun at or after this time.
    pub until: Instant,
    /// Some of them read.
    pub reads: bool,
    /// Some of them write.
    pub writes: bool,
}

/// Pieces of one size that are dealt with one after another, in the same way: each begins where the one
/// before ends, and counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The data file; `None`: block operations on the extent.
    pub file: Option<FileId>,
    /// First byte of the next piece.
    pub offset: u64,
    /// Bytes of a piece.
    pub piece: u32,
    /// How many are to come.
    pub pieces: u64,
    /// Each piece is read.
    pub reads: bool,
    /// Each piece is written (after it was read, when both).
    pub writes: bool,
    /// No piece is begun at or after this time.
    pub until: Option<Instant>,
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn next(&mut self, now: Instant) -> Next {
        (**self).next(now)
    }

    fn completed(&mut self, record: &OpRecord) {
        (**self).completed(record);
    }

    fn is_serial(&self) -> bool {
        (**self).is_serial()
    }

    fn expected(&self) -> Expected {
        (**self).expected()
    }

    fn lasts(&self) -> Option<Instant> {
        (**self).lasts()
    }

    fn stretch(&self) -> Option<Stretch> {
        (**self).stretch()
    }

    fn chance(&self) -> Option<Chance> {
        (**self).chance()
    }

    fn skip(&mut self, pieces: u64) {
        (**self).skip(pieces);
    }
}

/// How far a workload will go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Counted operations in all.
    pub ops: Option<u64>,
    /// Counted bytes in all.
    pub bytes: Option<u64>,
    /// Time it takes by its own rule.
    pub time: Option<crate::time::Span>,
}

/// Operations that a digest looks at.
pub const DIGEST_OPS: u64 = 4096;

/// A digest of the first [`DIGEST_OPS`] operations that a fresh workload asks for, with each one
/// ended at once. Trials with different digests did different things; comparing them is refused
/// unless asked for.
pub fn stream_digest<W: Workload>(mut workload: W) -> u64 {
    let mut digest = 0_u64;
    let mut now = Instant::ZERO;
    let mut index = 0;
    while index < DIGEST_OPS {
        match workload.next(now) {
            Next::Issue {
                op,
                intended,
                counted,
            } => {
                for word in op.words().into_iter().chain([u64::from(counted)]) {
                    digest = mix(digest.rotate_left(5) ^ word);
                }
                let completed = intended.unwrap_or(now).max(now);
                workload.completed(&OpRecord {
                    index,
                    op,
                    intended: completed,
                    submitted: completed,
                    completed,
                    result: Ok(op.bytes()),
                    counted,
                });
                index += 1;
            }
            Next::Idle { until: Some(until) } if until > now => now = until,
            Next::Idle { .. } | Next::Done => break,
        }
    }
    mix(digest ^ index)
}

#[cfg(test)]
pub(crate) mod tests;

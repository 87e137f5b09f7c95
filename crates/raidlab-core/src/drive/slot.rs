//! Where the driver keeps an operation that is in flight.
use super::DriveError;
use super::tally::Kind;
use crate::op::{BlockKind, BlockOp, Op, OpClass};
use crate::target::{Completion, Errno};
use crate::time::Instant;
use crate::workload::OpRecord;

/// A place for one operation in flight: one line of the cache. Large transfers drive all of this out
/// of the nearest cache between submission and completion, so that each line counts.
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) index: u64,
    pub(super) op: Op,
    /// When it was due.
    pub(super) intended: Instant,
    pub(super) submitted: Instant,
    /// What the operation moves when it succeeds.
    pub(super) bytes: u32,
    /// Number of the lane, or [`Slot::FREE_LANE`].
    pub(super) lane: u32,
    /// Number of the batch it was submitted in, modulo 2^32. Operations of a batch are of one kind.
    pub(super) batch: u32,
    pub(super) class: OpClass,
    pub(super) counted: bool,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    /// In place of a lane's number: there is no operation.
    pub(super) const FREE_LANE: u32 = u32::MAX;

    pub(super) const FREE: Self = Self {
        index: 0,
        op: Op::Block(BlockOp {
            kind: BlockKind::Flush,
            len: 0,
            offset: 0,
        }),
        intended: Instant::ZERO,
        submitted: Instant::ZERO,
        class: OpClass::Sync,
        counted: false,
        batch: 0,
        bytes: 0,
        lane: Self::FREE_LANE,
    };

    /// An operation in flight, all but its lane and number.
    #[inline]
    pub(super) fn of(op: Op, intended: Instant, submitted: Instant, counted: bool) -> Self {
        Self {
            bytes: op.bytes(),
            op,
            intended,
            submitted,
            class: op.class(),
            counted,
            ..Self::FREE
        }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind {
            intended: self.intended,
            submitted: self.submitted,
            class: self.class,
            counted: self.counted,
        }
    }

    /// The operation as it ended. Inlined, so that a workload that does not look at it costs nothing.
    #[inline(always)]
    pub(super) fn record(&self, completion: &Completion) -> OpRecord {
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

    /// What to say of an operation that failed or moved another number of bytes than it should.
    #[cold]
    #[inline(never)]
    pub(super) fn failure(&self, result: Result<u32, Errno>) -> DriveError {
        let (index, op) = (self.index, self.op);
        match result {
            Ok(moved) => DriveError::Short { index, op, moved },
            Err(errno) => DriveError::Op { index, op, errno },
        }
    }
}

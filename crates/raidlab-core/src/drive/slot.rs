//! Where the driver keeps operations that are in flight.
use super::DriveError;
use super::tally::Kind;
use crate::op::{BlockKind, BlockOp, Op, OpClass};
use crate::target::{Completion, Tag};
use crate::time::{Instant, Span};
use crate::workload::OpRecord;

/// A place for one operation in flight: half a line of the cache. Large transfers drive all of this
/// out of the nearest cache between submission and completion, so that each line counts.
#[repr(align(32))]
pub(super) struct Slot {
    pub(super) op: Op,
    /// How many of its batch were before it.
    pub(super) place: u32,
    /// Number of the batch it was submitted in, or [`Slot::FREE`].
    pub(super) batch: u32,
}

const _: () = assert!(size_of::<Slot>() == 32);

impl Slot {
    /// In place of a batch's number: there is no operation.
    pub(super) const FREE: u32 = u32::MAX;

    /// A place without an operation.
    pub(super) const EMPTY: Self = Self {
        op: Op::Block(BlockOp {
            kind: BlockKind::Flush,
            len: 0,
            offset: 0,
        }),
        place: 0,
        batch: Self::FREE,
    };
}

/// What operations have in common that a lane submitted together: one kind of operation of one size.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    /// When they were due.
    pub(super) intended: Instant,
    pub(super) submitted: Instant,
    /// Number of the first within its workload.
    pub(super) first: u64,
    /// What each moves when it succeeds.
    pub(super) bytes: u32,
    /// Number of the lane.
    pub(super) lane: u32,
    /// How many are in flight; 0: there is no batch here.
    pub(super) left: u32,
    pub(super) class: OpClass,
    pub(super) counted: bool,
}

impl Batch {
    /// `count` operations like `op`.
    #[inline]
    pub(super) fn of(op: Op, intended: Instant, submitted: Instant, counted: bool) -> Self {
        Self {
            intended,
            submitted,
            first: 0,
            bytes: op.bytes(),
            lane: 0,
            left: 1,
            class: op.class(),
            counted,
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

    /// An operation as it ended. Inlined, so that a workload that does not look at it costs nothing.
    #[inline(always)]
    pub(super) fn record(&self, slot: &Slot, completion: &Completion) -> OpRecord {
        OpRecord {
            index: self.first + u64::from(slot.place),
            op: slot.op,
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
    pub(super) fn failure(&self, slot: &Slot, completion: &Completion) -> DriveError {
        let record = self.record(slot, completion);
        let (index, op) = (record.index, record.op);
        match record.result {
            Ok(moved) => DriveError::Short { index, op, moved },
            Err(errno) => DriveError::Op { index, op, errno },
        }
    }
}

/// All that is in flight.
pub(super) struct InFlight {
    pub(super) slots: Vec<Slot>,
    batches: Vec<Batch>,
    /// Of batches that have ended; the one used last is the next to be used.
    unused: Vec<u32>,
}

impl InFlight {
    /// Room for `count` operations.
    pub(super) fn new(count: u32) -> Self {
        Self {
            slots: (0..count).map(|_| Slot::EMPTY).collect(),
            batches: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Keeps a batch until all its operations have ended.
    #[inline(always)]
    pub(super) fn add(&mut self, batch: Batch) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.batches[number as usize] = batch;
            return number;
        }
        self.batches.push(batch);
        self.batches.len() as u32 - 1
    }

    /// Operations of a batch begin in the slots of `tags`: `op` of each offset.
    #[inline(never)]
    pub(super) fn begin(
        &mut self,
        tags: &[Tag],
        offsets: &[u64],
        op: impl Fn(u64) -> Op,
        batch: u32,
    ) {
        let slots = self.slots.as_mut_slice();
        for ((&tag, &offset), place) in tags.iter().zip(offsets).zip(0..) {
            let op = op(offset);
            slots[tag.0 as usize] = Slot { op, place, batch };
        }
    }

    #[inline(always)]
    pub(super) fn batch(&self, number: u32) -> Batch {
        self.batches[number as usize]
    }

    /// `count` operations of the batch have ended.
    #[inline(always)]
    pub(super) fn end(&mut self, number: u32, count: u32) {
        let batch = &mut self.batches[number as usize];
        batch.left -= count;
        if batch.left == 0 {
            self.unused.push(number);
        }
    }

    /// All that is in flight was submitted so much later.
    pub(super) fn put_off(&mut self, by: Span) {
        for batch in self.batches.iter_mut().filter(|batch| batch.left > 0) {
            batch.intended += by;
            batch.submitted += by;
        }
    }
}

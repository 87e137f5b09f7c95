//! Where the driver keeps operations that are in flight.
use super::DriveError;
use super::tally::Kind;
use crate::op::{BlockKind, BlockOp, Op, OpClass};
use crate::target::{Completion, Tag};
use crate::time::{Instant, Span};
use crate::workload::OpRecord;

/// What operations have in common that a lane submitted together: one kind of operation of one size.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    /// One of them; block operations of several differ in where they begin.
    pub(super) op: Op,
    /// When they were due.
    pub(super) intended: Instant,
    pub(super) submitted: Instant,
    /// Number of the first within its workload.
    pub(super) first: u64,
    /// What each moves when it succeeds.
    pub(super) bytes: u32,
    /// Number of the lane.
    pub(super) lane: u32,
    /// How many of several are in flight; 0: there is no batch here.
    pub(super) left: u32,
    pub(super) class: OpClass,
    pub(super) counted: bool,
}

impl Batch {
    /// `count` operations like `op`.
    #[inline]
    pub(super) fn of(op: Op, intended: Instant, submitted: Instant, counted: bool) -> Self {
        Self {
            op,
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

    /// In place of one.
    fn none() -> Self {
        let op = Op::Block(BlockOp {
            kind: BlockKind::Flush,
            len: 0,
            offset: 0,
        });
        Self::of(op, Instant::ZERO, Instant::ZERO, false)
    }

    pub(super) fn kind(&self) -> Kind {
        Kind {
            intended: self.intended,
            submitted: self.submitted,
            class: self.class,
            counted: self.counted,
        }
    }

    /// The one of the batch that begins at `offset`.
    #[inline(always)]
    fn op_at(&self, offset: u64) -> Op {
        match self.op {
            Op::Block(block) => Op::Block(BlockOp { offset, ..block }),
            other => other,
        }
    }

    /// An operation as it ended. Inlined, so that a workload that does not look at it costs nothing.
    #[inline(always)]
    pub(super) fn record(&self, own: Own, completion: &Completion) -> OpRecord {
        OpRecord {
            index: self.first + u64::from(own.place),
            op: self.op_at(own.offset),
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
    pub(super) fn failure(&self, own: Own, completion: &Completion) -> DriveError {
        let record = self.record(own, completion);
        let (index, op) = (record.index, record.op);
        match record.result {
            Ok(moved) => DriveError::Short { index, op, moved },
            Err(errno) => DriveError::Op { index, op, errno },
        }
    }
}

/// What an operation does not share with its batch.
#[derive(Clone, Copy, Default)]
pub(super) struct Own {
    /// Where a block operation begins.
    offset: u64,
    /// How many of its batch were before it.
    place: u32,
}

/// The slots: a column for each thing that is known of an operation in flight. Large transfers drive all of
/// it out of the nearest cache between submission and completion, and what is looked at by then are the
/// batches' numbers alone, as long as no workload asks for more.
#[derive(Clone)]
pub(super) struct Slots {
    batches: Vec<u32>,
    offsets: Vec<u64>,
    places: Vec<u32>,
}

impl Slots {
    /// In place of a batch's number: there is no operation.
    pub(super) const FREE: u32 = u32::MAX;

    fn new(count: u32) -> Self {
        let count = count as usize;
        Self {
            batches: vec![Self::FREE; count],
            offsets: vec![0; count],
            places: vec![0; count],
        }
    }

    pub(super) fn count(&self) -> usize {
        self.batches.len()
    }

    /// Number of the batch that the slot's operation was submitted in, or [`FREE`](Self::FREE).
    #[inline(always)]
    pub(super) fn batch(&self, tag: Tag) -> u32 {
        self.batches[tag.0 as usize]
    }

    /// The slot is free from now on.
    #[inline(always)]
    pub(super) fn free(&mut self, tag: Tag) {
        self.batches[tag.0 as usize] = Self::FREE;
    }

    /// What the operation does not share with the others of its batch. Without a panic, so that nothing is left of
    /// it where nobody looks at it.
    #[inline(always)]
    fn own(&self, tag: Tag) -> Own {
        let slot = tag.0 as usize;
        Own {
            offset: self.offsets.get(slot).copied().unwrap_or_default(),
            place: self.places.get(slot).copied().unwrap_or_default(),
        }
    }
}

/// All that is in flight.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) slots: Slots,
    /// One for each slot, of the operation there if it was submitted by itself; behind them those of several.
    batches: Vec<Batch>,
    /// Of batches of several that have ended; the one used last is the next to be used.
    unused: Vec<u32>,
}

impl InFlight {
    /// Room for `count` operations.
    pub(super) fn new(count: u32) -> Self {
        Self {
            slots: Slots::new(count),
            batches: vec![Batch::none(); count as usize],
            unused: Vec::new(),
        }
    }

    /// An operation by itself begins in the slot of `tag`.
    #[inline(always)]
    pub(super) fn put(&mut self, tag: Tag, batch: Batch) {
        self.slots.batches[tag.0 as usize] = tag.0;
        self.batches[tag.0 as usize] = batch;
    }

    /// What the operation in the slot of `tag`, of the batch `number`, does not share with the others of it.
    #[inline(always)]
    pub(super) fn own(&self, number: u32, tag: Tag) -> Own {
        if number != tag.0 {
            return self.slots.own(tag);
        }
        let offset = match self.batches.get(number as usize) {
            Some(Batch {
                op: Op::Block(block),
                ..
            }) => block.offset,
            _ => 0,
        };
        Own { offset, place: 0 }
    }

    /// Keeps a batch of several until all its operations have ended.
    #[inline]
    pub(super) fn add(&mut self, batch: Batch) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.batches[number as usize] = batch;
            return number;
        }
        self.batches.push(batch);
        self.batches.len() as u32 - 1
    }

    /// Operations of a batch begin in the slots of `tags`, one at each offset.
    #[inline(never)]
    pub(super) fn begin(&mut self, tags: &[Tag], offsets: &[u64], batch: u32) {
        let Slots {
            batches,
            offsets: begins,
            places,
        } = &mut self.slots;
        let (batches, begins, places) = (
            batches.as_mut_slice(),
            begins.as_mut_slice(),
            places.as_mut_slice(),
        );
        for ((&tag, &offset), place) in tags.iter().zip(offsets).zip(0..) {
            let slot = tag.0 as usize;
            batches[slot] = batch;
            begins[slot] = offset;
            places[slot] = place;
        }
    }

    #[inline(always)]
    pub(super) fn batch(&self, number: u32) -> &Batch {
        &self.batches[number as usize]
    }

    /// `count` operations of the batch have ended.
    #[inline(always)]
    pub(super) fn end(&mut self, number: u32, count: u32) {
        // That of a slot is free when the slot is.
        if number as usize >= self.slots.count() {
            self.end_of_several(number, count);
        }
    }

    #[inline]
    fn end_of_several(&mut self, number: u32, count: u32) {
        let batch = &mut self.batches[number as usize];
        batch.left -= count;
        if batch.left == 0 {
            self.unused.push(number);
        }
    }

    /// All that is in flight was submitted so much later.
    pub(super) fn put_off(&mut self, by: Span) {
        // Those of free slots do not matter.
        for batch in &mut self.batches {
            batch.intended += by;
            batch.submitted += by;
        }
    }
}

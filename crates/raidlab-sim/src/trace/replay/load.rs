//! The requests of a trace as operations on a target, in the order in which they come.
//!
//! A write of a journal's commit is more than one operation, one after the other, as for a disk without writes past its cache
//! (FUA), which libata takes every SATA disk for (`blk-flush.c`): a flush before it if it wants one, the write, and a flush
//! behind it if it must be durable. Its response time is that from when it came until the write has ended, which is what blkparse
//! shows; others find the disk busy with the flush behind it.
use super::{LONGEST, Misfit, ReplayError, ReplayOptions, Replayed};
use crate::trace::{Record, TraceError};
use raidlab_core::histogram::Latencies;
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::time::Instant;
use raidlab_core::units::SECTOR;
use raidlab_core::workload::{Next, OpRecord, Workload};
use std::collections::{BTreeMap, VecDeque};

/// A request and where it goes.
#[derive(Clone, Copy)]
struct Placed {
    record: Record,
    lba: u64,
    bytes: u32,
}

/// What is done for a request, in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The flush before a write.
    Before,
    /// The request itself.
    Itself,
    /// The flush behind a write.
    Behind,
}

impl Part {
    const fn first(record: &Record) -> Self {
        if record.preflush {
            Self::Before
        } else {
            Self::Itself
        }
    }

    const fn next(self, record: &Record) -> Option<Self> {
        match self {
            Self::Before => Some(Self::Itself),
            Self::Itself if record.fua => Some(Self::Behind),
            Self::Itself | Self::Behind => None,
        }
    }
}

/// An operation for a request.
#[derive(Clone, Copy)]
struct Step {
    /// Number of the request among all.
    index: u64,
    placed: Placed,
    /// When the request came.
    came: Instant,
    part: Part,
}

impl Step {
    fn op(&self) -> Op {
        let Placed { record, lba, bytes } = self.placed;
        let kind = match self.part {
            Part::Itself => record.kind,
            Part::Before | Part::Behind => BlockKind::Flush,
        };
        let (len, offset) = match kind {
            BlockKind::Flush => (0, 0),
            _ => (bytes, lba * SECTOR),
        };
        Op::Block(BlockOp { kind, len, offset })
    }

    fn next(&self) -> Option<Self> {
        let part = self.part.next(&self.placed.record)?;
        Some(Self { part, ..*self })
    }
}

/// The load that a trace is.
pub(super) struct Load<'t, I, F> {
    records: I,
    options: ReplayOptions,
    sectors: u64,
    next: Option<Placed>,
    start: Option<Instant>,
    /// Those in flight by the number of the operation.
    open: BTreeMap<u64, Step>,
    /// Those whose turn has come because what stood before them has ended.
    ready: VecDeque<Step>,
    /// Operations in flight that others wait for.
    awaited: u64,
    issued: u64,
    requests: u64,
    pub(super) moved: u64,
    pub(super) responses: Latencies,
    pub(super) measured: Vec<u64>,
    pub(super) predicted: Vec<u64>,
    pub(super) error: Option<ReplayError>,
    /// Line of the first request that did not end as it should.
    pub(super) failed: Option<usize>,
    each: &'t mut F,
}

impl<'t, I, F> Load<'t, I, F> {
    /// The requests of `records` on a target of `sectors`.
    pub(super) fn new(records: I, options: ReplayOptions, sectors: u64, each: &'t mut F) -> Self {
        Self {
            records,
            options,
            sectors,
            next: None,
            start: None,
            open: BTreeMap::new(),
            ready: VecDeque::new(),
            awaited: 0,
            issued: 0,
            requests: 0,
            moved: 0,
            responses: Latencies::new(),
            measured: Vec::new(),
            predicted: Vec::new(),
            error: None,
            failed: None,
            each,
        }
    }

    /// The target is asked for the next part of a request.
    fn issue(&mut self, step: Step) -> Next {
        self.awaited += u64::from(step.next().is_some());
        self.open.insert(self.issued, step);
        self.issued += 1;
        let is_itself = step.part == Part::Itself;
        Next::Issue {
            op: step.op(),
            intended: is_itself.then_some(step.came),
            counted: is_itself,
        }
    }
}

impl<I, F> Load<'_, I, F>
where
    I: Iterator<Item = Result<Record, TraceError>>,
{
    /// The next request, moved inside the target.
    fn fetch(&mut self) -> Option<Placed> {
        let record = match self.records.next()? {
            Ok(record) => record,
            Err(error) => {
                self.error = Some(error.into());
                return None;
            }
        };
        let line = record.line;
        let placed = self.place(record);
        placed
            .map_err(|misfit| self.error = Some(ReplayError::Request { line, misfit }))
            .ok()
    }

    fn place(&mut self, record: Record) -> Result<Placed, Misfit> {
        let (lba, sectors) = (record.lba, record.sectors);
        if record.at > LONGEST {
            return Err(Misfit::TooLate(record.at));
        }
        if record.kind == BlockKind::Flush {
            return Ok(Placed {
                record,
                lba,
                bytes: 0,
            });
        }
        let bytes = u64::from(sectors) * SECTOR;
        let bytes = u32::try_from(bytes).map_err(|_| Misfit::TooLarge(sectors))?;
        let logical = self.options.logical.max(1);
        if !lba.is_multiple_of(u64::from(logical)) || !sectors.is_multiple_of(logical) {
            let logical = u64::from(logical) * SECTOR;
            return Err(Misfit::Unaligned {
                lba,
                sectors,
                logical,
            });
        }
        let end = lba.saturating_add(u64::from(sectors));
        let mut placed = Placed { record, lba, bytes };
        if end > self.sectors {
            if !self.options.wrap || u64::from(sectors) > self.sectors {
                let sectors = self.sectors;
                return Err(Misfit::Beyond { end, sectors });
            }
            placed.lba = wrapped(lba, u64::from(sectors), self.sectors, self.options.grain);
            self.moved += 1;
        }
        Ok(placed)
    }
}

/// Where a request of `length` sectors goes that reaches beyond the end of a target of `sectors`, but is no larger than it.
pub(in crate::trace) fn wrapped(lba: u64, length: u64, sectors: u64, grain: u64) -> u64 {
    let grain = grain.min(sectors).max(1);
    let lba = lba % (sectors - sectors % grain).max(1);
    let over = (lba + length).saturating_sub(sectors);
    lba.saturating_sub(over.div_ceil(grain) * grain)
}

impl<I, F> Workload for Load<'_, I, F>
where
    I: Iterator<Item = Result<Record, TraceError>>,
    F: FnMut(&Replayed),
{
    fn next(&mut self, now: Instant) -> Next {
        let start = *self.start.get_or_insert(now);
        if let Some(step) = self.ready.pop_front() {
            return self.issue(step);
        }
        if self.next.is_none() {
            self.next = self.fetch();
        }
        let Some(placed) = self.next else {
            return match self.awaited {
                0 => Next::Done,
                _ => Next::Idle { until: None },
            };
        };
        let came = match self.options.depth {
            Some(_) => now,
            None => start + placed.record.at,
        };
        if came > now {
            return Next::Idle { until: Some(came) };
        }
        self.next = None;
        let index = self.requests;
        self.requests += 1;
        self.issue(Step {
            index,
            placed,
            came,
            part: Part::first(&placed.record),
        })
    }

    fn completed(&mut self, ended: &OpRecord) {
        let Some(step) = self.open.remove(&ended.index) else {
            return;
        };
        let Placed { record, lba, .. } = step.placed;
        let as_asked = ended.result == Ok(ended.op.bytes());
        if !as_asked {
            self.failed.get_or_insert(record.line);
        }
        if let Some(next) = step.next() {
            self.awaited -= 1;
            if as_asked {
                self.ready.push_back(next);
            }
        }
        if step.part != Part::Itself {
            return;
        }
        let response = ended.completed.since(step.came);
        self.responses.record(response);
        if let Some(measured) = record.response {
            self.measured.push(measured.0);
            self.predicted.push(response.0);
        }
        (self.each)(&Replayed {
            index: step.index,
            record,
            lba,
            came: self.start.map_or(record.at, |start| step.came.since(start)),
            response,
            error: ended.result.err(),
        });
    }
}

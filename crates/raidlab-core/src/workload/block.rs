//! Random and sequential block I/O at any depth, closed loop or at a fixed arrival rate: the hot
//! path of the measuring engine, a few nanoseconds an operation.
use super::{Chance, Expected, Next, OpRecord, Ready, Stretch, Workload};
use crate::op::{BlockKind, BlockOp, Op};
use crate::rng::Stream;
use crate::time::{Instant, Span};
use crate::units::{Bytes, Extent};
use serde::{Deserialize, Serialize};

/// In which order the blocks of the region are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Uniformly at random, with replacement.
    Random,
    /// One after another, from the start again at the end.
    Sequential,
}

/// When operations are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "arrival", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// As soon as there is a free slot.
    #[default]
    Closed,
    /// At equal distances, whether or not the ones before have ended.
    Constant {
        /// Operations a second; at least 1.
        per_second: u32,
    },
    /// At exponentially distributed distances (a Poisson process).
    Poisson {
        /// Mean operations a second; at least 1.
        per_second: u32,
    },
}

/// Where the workload ends: at whichever limit comes first. At least one must be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limit {
    /// Counted operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// Time from the first question to the last operation issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
}

/// Block operations on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BlockSpec {
    /// In which order.
    pub order: Order,
    /// Reads in per cent of all operations, by chance; the rest are writes.
    pub read_percent: u8,
    /// Bytes of one operation; at least 1.
    pub block: u32,
    /// Whole blocks of this region are visited, aligned to its start.
    pub region: Extent,
    /// Number of the block of the region that a sequential order begins with.
    #[serde(default)]
    pub first: u64,
    /// Where it ends.
    pub limit: Limit,
    /// When operations are due.
    #[serde(default)]
    pub arrival: Arrival,
    /// A flush is issued after so many writes; 0: never. It does not wait for them: with a depth
    /// above 1 it covers the writes that have ended.
    #[serde(default)]
    pub flush_every: u32,
    /// What is issued after so many writes is `fdatasync`; at the end it is `fsync` all the same.
    #[serde(default)]
    pub flush_data: bool,
    /// A flush when all operations have ended, so that what a cache took is paid for.
    #[serde(default)]
    pub flush_end: bool,
}

/// What a [`Blocks`] does next.
enum Turn {
    Operation { intended: Option<Instant> },
    Flush(BlockKind),
    Idle { until: Option<Instant> },
    Done,
}

/// Running block operations.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Counted operations issued.
    issued: u64,
    count: u64,
    blocks: u64,
    /// Next block of a sequential order.
    cursor: u64,
    block: u32,
    base: u64,
    random: bool,
    /// A draw below it is a read; pure reads and pure writes draw nothing.
    mixed: bool,
    read_below: u64,
    offsets: Stream,
    kinds: Stream,
    start: Option<Instant>,
    end: Instant,
    arrival: Arrival,
    gaps: Stream,
    /// The next operation is due so long after the start.
    due: Span,
    flush_every: u32,
    unflushed: u32,
    in_flight: u32,
    flush_end: bool,
    spec: BlockSpec,
}

impl Blocks {
    /// The operations of `spec` drawn from `stream`.
    #[must_use]
    pub fn new(spec: BlockSpec, stream: Stream) -> Self {
        let blocks = spec.region.len.0 / u64::from(spec.block.max(1));
        let percent = u64::from(spec.read_percent.min(100));
        Self {
            issued: 0,
            count: match spec.limit {
                // No limit at all would run for ever.
                _ if blocks == 0 => 0,
                Limit {
                    ops: None,
                    time: None,
                } => 0,
                limit => limit.ops.unwrap_or(u64::MAX),
            },
            blocks,
            cursor: if blocks == 0 { 0 } else { spec.first % blocks },
            block: spec.block,
            base: spec.region.start.0,
            random: spec.order == Order::Random,
            mixed: percent % 100 != 0,
            // A pure workload draws nothing and compares 0.
            read_below: if percent == 100 {
                u64::MAX
            } else {
                (u64::MAX / 100) * percent
            },
            offsets: stream.child(0),
            kinds: stream.child(1),
            start: None,
            end: Instant(u64::MAX),
            arrival: spec.arrival,
            gaps: stream.child(2),
            due: Span::ZERO,
            flush_every: spec.flush_every,
            unflushed: 0,
            in_flight: 0,
            flush_end: spec.flush_end,
            spec,
        }
    }

    #[cold]
    fn begin(&mut self, now: Instant) -> Instant {
        self.start = Some(now);
        self.end = now + self.spec.limit.time.unwrap_or(Span::MAX);
        if matches!(self.arrival, Arrival::Poisson { .. }) {
            self.due = self.gap(0);
        }
        now
    }

    /// Time between arrivals `i - 1` and `i` of a Poisson process: -ln(1 - u) / rate.
    fn gap(&self, i: u64) -> Span {
        let Arrival::Poisson { per_second } = self.arrival else {
            return Span::ZERO;
        };
        // 53 bits make every value of [0, 1) exact; libm agrees on every machine.
        let u = (self.gaps.at(i) >> 11) as f64 / (1_u64 << 53) as f64;
        Span((-libm::log1p(-u) * 1e9 / f64::from(per_second.max(1))) as u64)
    }

    /// When operation `issued` is due, and the due time of the one after it.
    fn schedule(&self, start: Instant) -> (Instant, Span) {
        let next = self.issued + 1;
        match self.arrival {
            Arrival::Closed => (start, Span::ZERO),
            // From the number alone, so that no rounding adds up.
            Arrival::Constant { per_second } => {
                let at = |i: u64| {
                    Span((u128::from(i) * 1_000_000_000 / u128::from(per_second.max(1))) as u64)
                };
                (start + self.due, at(next))
            }
            Arrival::Poisson { .. } => (start + self.due, self.due + self.gap(next)),
        }
    }

    /// After the last operation: the last flush, which waits for all others.
    #[cold]
    fn ending(&mut self) -> Turn {
        if !self.flush_end {
            return Turn::Done;
        }
        if self.in_flight > 0 {
            return Turn::Idle { until: None };
        }
        self.flush_end = false;
        Turn::Flush(BlockKind::Flush)
    }

    /// What comes next.
    fn turn(&mut self, now: Instant) -> Turn {
        let start = match self.start {
            Some(start) => start,
            None => self.begin(now),
        };
        if self.unflushed > 0 && self.unflushed >= self.flush_every {
            self.unflushed = 0;
            let data = self.spec.flush_data;
            return Turn::Flush(if data {
                BlockKind::FlushData
            } else {
                BlockKind::Flush
            });
        }
        if self.issued >= self.count || now >= self.end {
            return self.ending();
        }
        if matches!(self.arrival, Arrival::Closed) {
            return Turn::Operation { intended: None };
        }
        let (due, next) = self.schedule(start);
        if due >= self.end {
            return self.ending();
        }
        if due > now {
            return Turn::Idle { until: Some(due) };
        }
        self.due = next;
        Turn::Operation {
            intended: Some(due),
        }
    }

    /// Whether operation `i` reads or writes.
    #[inline]
    fn kind(&self, i: u64) -> BlockKind {
        let draw = if self.mixed { self.kinds.at(i) } else { 0 };
        if draw < self.read_below {
            BlockKind::Read
        } else {
            BlockKind::Write
        }
    }

    #[inline]
    fn next_in_sequence(&mut self) -> u64 {
        let number = self.cursor;
        self.cursor += 1;
        if self.cursor == self.blocks {
            self.cursor = 0;
        }
        self.base + number * u64::from(self.block)
    }

    fn operation(&mut self) -> BlockOp {
        let kind = self.kind(self.issued);
        let mut offset = [0];
        self.issue(&mut offset);
        BlockOp {
            kind,
            len: self.block,
            offset: offset[0],
        }
    }
}

impl Workload for Blocks {
    fn next(&mut self, now: Instant) -> Next {
        match self.turn(now) {
            Turn::Operation { intended } => Next::Issue {
                op: Op::Block(self.operation()),
                intended,
                counted: true,
            },
            Turn::Flush(kind) => {
                self.in_flight += 1;
                Next::uncounted(Op::Block(BlockOp {
                    kind,
                    len: 0,
                    offset: 0,
                }))
            }
            Turn::Idle { until } => Next::Idle { until },
            Turn::Done => Next::Done,
        }
    }

    #[inline]
    fn ready(&self, now: Instant, most: u32) -> Option<Ready> {
        let plain =
            matches!(self.arrival, Arrival::Closed) && self.start.is_some() && now < self.end;
        if !plain {
            return None;
        }
        let most = if self.flush_every > 0 {
            most.min(self.flush_every.saturating_sub(self.unflushed))
        } else {
            most
        };
        let most = u64::from(most).min(self.count - self.issued) as u32;
        if most == 0 {
            return None;
        }
        let kind = self.kind(self.issued);
        let alike = |more: &u64| self.kind(self.issued + more) == kind;
        let count = if self.mixed {
            1 + (1..u64::from(most)).take_while(alike).count() as u32
        } else {
            most
        };
        Some(Ready {
            count,
            kind,
            len: self.block,
        })
    }

    #[inline]
    fn issue(&mut self, offsets: &mut [u64]) {
        let count = offsets.len() as u32;
        if self.flush_every > 0 && self.kind(self.issued) == BlockKind::Write {
            self.unflushed += count;
        }
        if self.random {
            let (first, stream, blocks) = (self.issued, self.offsets, self.blocks);
            let (base, block) = (self.base, u64::from(self.block));
            for (offset, i) in offsets.iter_mut().zip(first..) {
                *offset = base + stream.below(i, blocks) * block;
            }
        } else {
            offsets.fill_with(|| self.next_in_sequence());
        }
        self.issued += u64::from(count);
        self.in_flight += count;
    }

    #[inline]
    fn completed(&mut self, _: &OpRecord) {
        self.in_flight -= 1;
    }

    fn expected(&self) -> Expected {
        let ops = (self.count != u64::MAX).then_some(self.count);
        Expected {
            ops,
            bytes: ops.map(|n| n.saturating_mul(u64::from(self.block))),
            time: self.spec.limit.time,
        }
    }

    fn lasts(&self) -> Option<Instant> {
        let start = self.start.filter(|_| self.issued > 0)?;
        // `due` is that of the first operation not issued.
        let next = start + self.due;
        match self.arrival {
            Arrival::Closed => None,
            // Also beyond the end of the time, before which one more is due than there are whole distances in it.
            Arrival::Constant { .. } => Some(next),
            // The number in a time given beforehand is that of the rate; the gap that the end of the time falls into is a long one.
            Arrival::Poisson { .. } => Some(next.min(self.end)),
        }
    }

    fn stretch(&self) -> Option<Stretch> {
        let plain = !self.random
            && !self.mixed
            && matches!(self.arrival, Arrival::Closed)
            && self.start.is_some()
            && self.flush_every == 0
            && self.issued < self.count;
        plain.then(|| Stretch {
            file: None,
            offset: self.base + self.cursor * u64::from(self.block),
            piece: self.block,
            pieces: (self.count - self.issued).min(self.blocks - self.cursor),
            reads: self.read_below > 0,
            writes: self.read_below == 0,
            until: self.spec.limit.time.map(|_| self.end),
        })
    }

    fn chance(&self) -> Option<Chance> {
        let plain = self.random
            && matches!(self.arrival, Arrival::Closed)
            && self.start.is_some()
            && self.count == u64::MAX;
        plain.then_some(Chance {
            until: self.end,
            reads: self.read_below > 0,
            writes: self.read_below < u64::MAX,
        })
    }

    fn skip(&mut self, pieces: u64) {
        self.issued += pieces;
        self.cursor = (self.cursor + pieces) % self.blocks.max(1);
    }

    fn twin(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl BlockSpec {
    /// Counted bytes at most, when the number of operations is limited.
    #[must_use]
    pub fn bytes(&self) -> Option<Bytes> {
        let ops = self.limit.ops?;
        Some(Bytes(ops.saturating_mul(u64::from(self.block))))
    }
}

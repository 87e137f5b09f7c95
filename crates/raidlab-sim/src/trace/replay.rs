//! Replaying a trace: each request is issued when it came, or when there is room for it, and the target's response
//! times are compared with the recorded ones.
use super::{Demerit, Record, TraceError};
use raidlab_core::drive::{DriveError, DriveOptions, Lane, Tally, drive};
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::target::{Errno, Target};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{SECTOR, common_multiple};
use raidlab_core::words::count;
use raidlab_core::workload::{Next, OpRecord, Workload};
use std::collections::BTreeMap;

/// Sectors of 512 bytes in 1 MiB.
const MIB_SECTORS: u64 = (1 << 20) / SECTOR;

/// So long no trace lasts: 100 years. The time of a replay is counted in nanoseconds, to 584 years.
const LONGEST: Span = Span::from_secs(100 * 365 * 24 * 3600);

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// So many requests are kept in flight, in the order of the trace, whatever its times; at least 1. `None`: each
    /// comes when the trace says, however many are in flight.
    pub depth: Option<u32>,
    /// Requests beyond the end of the target are moved inside instead of being refused: to their block modulo the
    /// target's capacity in whole `grain`s. One that still reaches beyond the end is moved before it, by whole grains
    /// where there is room. Their sizes stay.
    pub wrap: bool,
    /// Sectors of 512 bytes within which a moved request keeps its place; at least 1. See [`grain()`].
    pub grain: u64,
    /// Sectors of 512 bytes that the target's logical sectors have; at least 1. Requests that are not whole ones are
    /// refused, as a device does.
    pub logical: u32,
}

impl Default for ReplayOptions {
    /// At the times of the trace; nothing is moved, and logical sectors have 512 bytes.
    fn default() -> Self {
        Self {
            depth: None,
            wrap: false,
            grain: 1,
            logical: 1,
        }
    }
}

/// Sectors within which a moved request should keep its place on a target of `sectors`: whole MiB, by which partitions
/// and file systems are laid out, and whole `stripe`s (sectors; 0 without) of an array, so that what was aligned
/// to chunks and stripes is so still. Whole `physical` sectors (sectors of 512 bytes) where the target is too small for that.
#[must_use]
pub fn grain(sectors: u64, physical: u32, stripe: u64) -> u64 {
    let physical = u64::from(physical.max(1));
    let stripes = common_multiple(MIB_SECTORS, stripe.max(1));
    [stripes, MIB_SECTORS, physical]
        .into_iter()
        .find(|grain| *grain <= sectors)
        .unwrap_or(1)
}

/// One request that was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Number among the replayed requests, from 0, in the order of the trace.
    pub index: u64,
    /// As recorded.
    pub record: Record,
    /// First sector of 512 bytes on the target: as recorded, unless it was moved.
    pub lba: u64,
    /// When it came, from the beginning on: as recorded, or when the depth had room for it.
    pub came: Span,
    /// Response time on the target: from when it came to its end, waiting for a slot included.
    pub response: Span,
    /// Error number of the target, if it failed.
    pub error: Option<Errno>,
}

/// What a replay came to.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Counts, rates and the distribution of the response times.
    pub tally: Tally,
    /// Requests that were moved inside the target.
    pub moved: u64,
    /// The distance to the recorded response times, for the requests that have one.
    pub demerit: Option<Demerit>,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error("the trace cannot be read: {0}")]
    Trace(#[from] TraceError),
    /// A request that the target cannot be asked for.
    #[error("{line}: {misfit}")]
    Request {
        /// Line of the trace, from 1.
        line: usize,
        /// What is wrong with it.
        misfit: Misfit,
    },
    /// The target failed.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// Why a target cannot be asked for a request.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    /// It goes beyond the end.
    #[error(
        "this request reaches sector {end}, but the target has {sectors}: choose a larger disk or layout, or let addresses wrap"
    )]
    Beyond {
        /// Sector after its last.
        end: u64,
        /// Sectors of the target.
        sectors: u64,
    },
    /// It is no whole logical sectors.
    #[error(
        "this request of {} from sector {lba} on is not of whole logical sectors, which have {logical} bytes on the target: \
         a device refuses it (EINVAL)",
        count(sectors, "sector")
    )]
    Unaligned {
        /// First sector of 512 bytes.
        lba: u64,
        /// Sectors of 512 bytes.
        sectors: u32,
        /// Bytes of a logical sector.
        logical: u64,
    },
    /// Its bytes do not fit a request.
    #[error(
        "this request of {0} sectors has 4 GiB or more, which no request has: correct the trace"
    )]
    TooLarge(u32),
    /// Its time is beyond all that is recorded, and where it is added to another, beyond what can be counted.
    #[error("this request came {0} after the first, which no trace lasts: correct its time")]
    TooLate(Span),
    /// The target failed at it.
    #[error(transparent)]
    Failed(DriveError),
}

/// A request and where it goes.
#[derive(Clone, Copy)]
struct Placed {
    record: Record,
    lba: u64,
    bytes: u32,
}

struct Load<'t, I, F> {
    records: I,
    options: ReplayOptions,
    sectors: u64,
    next: Option<Placed>,
    start: Option<Instant>,
    /// Those in flight by number.
    open: BTreeMap<u64, Placed>,
    issued: u64,
    moved: u64,
    measured: Vec<u64>,
    predicted: Vec<u64>,
    error: Option<ReplayError>,
    /// Line of the first request that did not end as it should.
    failed: Option<usize>,
    each: &'t mut F,
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
pub(super) fn wrapped(lba: u64, length: u64, sectors: u64, grain: u64) -> u64 {
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
        if self.next.is_none() {
            self.next = self.fetch();
        }
        let Some(placed) = self.next else {
            return Next::Done;
        };
        let due = match self.options.depth {
            Some(_) => now,
            None => start + placed.record.at,
        };
        if due > now {
            return Next::Idle { until: Some(due) };
        }
        self.next = None;
        self.open.insert(self.issued, placed);
        self.issued += 1;
        Next::Issue {
            op: Op::Block(BlockOp {
                kind: placed.record.kind,
                len: placed.bytes,
                offset: if placed.record.kind == BlockKind::Flush {
                    0
                } else {
                    placed.lba * SECTOR
                },
            }),
            intended: Some(due),
            counted: true,
        }
    }

    fn completed(&mut self, ended: &OpRecord) {
        let Some(Placed { record, lba, bytes }) = self.open.remove(&ended.index) else {
            return;
        };
        if ended.result != Ok(bytes) {
            self.failed.get_or_insert(record.line);
        }
        let response = ended.completed.since(ended.intended);
        if let Some(measured) = record.response {
            self.measured.push(measured.0);
            self.predicted.push(response.0);
        }
        (self.each)(&Replayed {
            index: ended.index,
            record,
            lba,
            came: self
                .start
                .map_or(record.at, |start| ended.intended.since(start)),
            response,
            error: ended.result.err(),
        });
    }
}

/// Replays `records` on `target`, telling `each` of every request as it ends.
///
/// Memory is that of the requests in flight, and 16 bytes for each that has a recorded response.
///
/// # Errors
/// When the trace cannot be read, a request does not fit the target, or the target fails.
pub fn replay<I, T, F>(
    records: I,
    target: &mut T,
    options: ReplayOptions,
    mut each: F,
) -> Result<Replay, ReplayError>
where
    I: Iterator<Item = Result<Record, TraceError>>,
    T: Target,
    F: FnMut(&Replayed),
{
    let limits = target.limits();
    let load = Load {
        records,
        options,
        sectors: limits.size / SECTOR,
        next: None,
        start: None,
        open: BTreeMap::new(),
        issued: 0,
        moved: 0,
        measured: Vec::new(),
        predicted: Vec::new(),
        error: None,
        failed: None,
        each: &mut each,
    };
    let mut lanes = [Lane {
        workload: load,
        depth: options.depth.unwrap_or(limits.max_in_flight),
    }];
    // Nobody watches, so that idle stretches of a trace are passed over in few steps.
    let drive_options = DriveOptions {
        poll: Span::from_secs(3600),
        ..DriveOptions::default()
    };
    let driven = drive(&mut lanes, target, &drive_options, &mut ());
    let [lane] = lanes;
    let mut load = lane.workload;
    let driven = driven.map_err(|error| match load.failed {
        Some(line) => ReplayError::Request {
            line,
            misfit: Misfit::Failed(error),
        },
        None => error.into(),
    })?;
    if let Some(error) = load.error {
        return Err(error);
    }
    let mut tallies = driven.tallies.into_iter();
    let tally = tallies.next().ok_or(DriveError::Deadlock)?;
    Ok(Replay {
        tally,
        moved: load.moved,
        demerit: Demerit::of(&mut load.measured, &mut load.predicted),
    })
}

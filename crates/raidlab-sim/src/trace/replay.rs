//! Replaying a trace: each request is issued when it came, and the target's response times are
//! compared with the recorded ones.
use super::{Demerit, Record, TraceError};
use raidlab_core::drive::{DriveError, DriveOptions, Lane, Tally, drive};
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::target::{Errno, Target};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use raidlab_core::workload::{Next, OpRecord, Workload};
use std::collections::BTreeMap;

/// How to replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Only the requests of this device; all, on the one target, when `None`.
    pub device: Option<u32>,
    /// Requests beyond the end of the target are moved inside (block modulo capacity) instead of
    /// being refused.
    pub wrap: bool,
}

/// One request that was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Number among the replayed requests, from 0, in the order of the trace.
    pub index: u64,
    /// As recorded.
    pub record: Record,
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
    /// Requests of other devices.
    pub skipped: u64,
    /// The distance to the recorded response times, for the requests that have one.
    pub demerit: Option<Demerit>,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error("the trace cannot be read: {0}")]
    Trace(#[from] TraceError),
    /// A request beyond the end of the target.
    #[error(
        "request {index} reaches sector {end}, but the target has {sectors}: choose a larger disk or layout, or let addresses wrap"
    )]
    Beyond {
        /// Number of the request in the trace, from 0.
        index: u64,
        /// Sector after its last.
        end: u64,
        /// Sectors of the target.
        sectors: u64,
    },
    /// The target failed.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

struct Load<'t, I, F> {
    records: I,
    options: ReplayOptions,
    sectors: u64,
    next: Option<Record>,
    start: Option<Instant>,
    /// Records in flight by number.
    open: BTreeMap<u64, Record>,
    read: u64,
    issued: u64,
    skipped: u64,
    measured: Vec<u64>,
    predicted: Vec<u64>,
    error: Option<ReplayError>,
    each: &'t mut F,
}

impl<I, F> Load<'_, I, F>
where
    I: Iterator<Item = Result<Record, TraceError>>,
{
    /// The next record of the device, moved inside the target.
    fn fetch(&mut self) -> Option<Record> {
        loop {
            let mut record = match self.records.next()? {
                Ok(record) => record,
                Err(error) => {
                    self.error = Some(error.into());
                    return None;
                }
            };
            let index = self.read;
            self.read += 1;
            if self
                .options
                .device
                .is_some_and(|device| device != record.device)
            {
                self.skipped += 1;
                continue;
            }
            let length = u64::from(record.sectors);
            let end = record.lba.saturating_add(length);
            if end > self.sectors {
                if !self.options.wrap || length > self.sectors {
                    let sectors = self.sectors;
                    self.error = Some(ReplayError::Beyond {
                        index,
                        end,
                        sectors,
                    });
                    return None;
                }
                record.lba %= self.sectors - length + 1;
            }
            return Some(record);
        }
    }
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
        let Some(record) = self.next else {
            return Next::Done;
        };
        let due = start + record.at;
        if due > now {
            return Next::Idle { until: Some(due) };
        }
        self.next = None;
        self.open.insert(self.issued, record);
        self.issued += 1;
        let sector = SECTOR as u32;
        Next::Issue {
            op: Op::Block(BlockOp {
                kind: record.kind,
                len: record.sectors * sector,
                offset: if record.kind == BlockKind::Flush {
                    0
                } else {
                    record.lba * SECTOR
                },
            }),
            intended: Some(due),
            counted: true,
        }
    }

    fn completed(&mut self, ended: &OpRecord) {
        let Some(record) = self.open.remove(&ended.index) else {
            return;
        };
        let response = ended.completed.since(ended.intended);
        if let Some(measured) = record.response {
            self.measured.push(measured.0);
            self.predicted.push(response.0);
        }
        (self.each)(&Replayed {
            index: ended.index,
            record,
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
        read: 0,
        issued: 0,
        skipped: 0,
        measured: Vec::new(),
        predicted: Vec::new(),
        error: None,
        each: &mut each,
    };
    let mut lanes = [Lane {
        workload: load,
        depth: limits.max_in_flight,
    }];
    // Nobody watches, so that idle stretches of a trace are passed over in few steps.
    let drive_options = DriveOptions {
        poll: Span::from_secs(3600),
        ..DriveOptions::default()
    };
    let driven = drive(&mut lanes, target, &drive_options, &mut ())?;
    let [lane] = lanes;
    let mut load = lane.workload;
    if let Some(error) = load.error {
        return Err(error);
    }
    let mut tallies = driven.tallies.into_iter();
    let tally = tallies.next().ok_or(DriveError::Deadlock)?;
    Ok(Replay {
        tally,
        skipped: load.skipped,
        demerit: Demerit::of(&mut load.measured, &mut load.predicted),
    })
}

//! Replaying a trace: each request is issued when it came, or when there is room for it, and the target's response
//! times are compared with the recorded ones.
mod load;

use super::{Demerit, Record, TraceError};
use load::Load;
#[cfg(test)]
pub(super) use load::wrapped;
use raidlab_core::drive::{DriveError, DriveOptions, Lane, Tally, drive};
use raidlab_core::histogram::Latencies;
use raidlab_core::target::{Errno, Target};
use raidlab_core::time::Span;
use raidlab_core::units::{SECTOR, common_multiple};
use raidlab_core::words::count;

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
    /// Counts and rates, with all operations in flight: a request that flushes is several.
    pub tally: Tally,
    /// The distribution of the requests' response times.
    pub responses: Latencies,
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
    let load = Load::new(records, options, limits.size / SECTOR, &mut each);
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
        responses: load.responses,
        moved: load.moved,
        demerit: Demerit::of(&mut load.measured, &mut load.predicted),
    })
}

//! Judgement of a phase by what the kernel's counters say about it: pure, from numbers to flags with reasons.
//!
//! The central check is accounting: of A bytes claimed, D were seen at the device, so `h = 1 - D/A` came from a cache.

mod beneath;
mod processor;
mod requests;
mod small;

use std::time::Duration;

use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::Bytes;

use super::cpu::CpuUse;
use super::diskstats::Difference;
use super::fitness::ArrayState;
use super::holes::Holes;
use super::link::RateLimit;
use super::neighbours::Neighbour;
use super::stack::DeviceStack;

pub use beneath::Through;
pub use requests::{Excess, Requests, moved};
pub use small::{SmallFiles, beside_small_files};

pub use raidlab_core::phase::{PARTLY, SERVED};

/// Device bytes over claimed bytes above which something else read too.
pub const FOREIGN: f64 = 1.1;
/// Tolerance above a rate limit.
pub const LIMIT_TOLERANCE: f64 = 0.10;
/// Shortest phase that can be timed soundly (bonnie++'s `MinTime`).
pub const SHORTEST: Duration = Duration::from_millis(500);
/// Share of a CPU from which a generator thread is the bottleneck.
pub const CPU_BOUND: f64 = 0.95;
/// Foreign CPUs from which the machine is contended.
pub const FOREIGN_CPUS: f64 = 0.10;
/// Stolen share of CPU time from which the machine is contended.
pub const STEAL: f64 = 0.02;
/// CPU pressure from which the machine is contended.
pub const CPU_PRESSURE: f64 = 0.05;
/// Growth of the residency (share of the file) by which direct I/O is known to have gone through the cache.
pub const RESIDENCY_GROWTH: f64 = 0.02;

/// What is known about a phase. Every unknown is `None` and then judged by nothing.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Bytes the workload read.
    pub claimed_read: u64,
    /// Bytes the workload wrote.
    pub claimed_written: u64,
    /// Wall time of the phase, and which of it was not counted in its figures; all else here is of both.
    pub wall: Duration,
    /// See [`wall`](Self::wall).
    pub ramp: Duration,
    /// Direct I/O was asked for.
    pub direct: bool,
    /// The page cache is meant to serve the reads (`hdparm -T`, a warm run): no flag for that.
    pub warm: bool,
    /// The clock stopped after a successful flush (fsync, or direct I/O with a flush).
    pub flushed: bool,
    /// Of the bytes written those of blocks that were not written before in the phase; all where that is not known.
    pub distinct_written: Option<u64>,
    /// Bytes the topmost devices read in the phase.
    pub device_read: Option<u64>,
    /// Bytes the topmost devices wrote in the phase.
    pub device_written: Option<u64>,
    /// Requests of the stack's devices.
    pub requests: Option<Requests>,
    /// Bytes that the devices beneath the stack's loop devices read; `None` when there are none.
    pub beneath_read: Option<u64>,
    /// What was written through loop devices that have the page cache beneath them; `None` when there are none.
    pub through_loops: Option<Through>,
    /// Parts of what is read that no disk is read for.
    pub holes: Option<Holes>,
    /// The holes are raidlab's own: of a device that it was given to write to.
    pub holes_are_own: bool,
    /// What devices beneath loop devices and volumes did, and what they were asked for.
    pub beneath: Vec<Excess>,
    /// The file system lies on several devices and may keep copies (btrfs), so more bytes written than asked for is
    /// no sign of anything else.
    pub copies: bool,
    /// Bytes this process caused to be read (`/proc/self/io`): tells read-ahead from other programs.
    pub process_read: Option<u64>,
    /// Bytes this process caused to be written, as its pages got dirty.
    pub process_written: Option<u64>,
    /// Share of the file in the page cache before the phase.
    pub resident_before: Option<f64>,
    /// Share after it.
    pub resident_after: Option<f64>,
    /// What the link can carry at most.
    pub link: Option<RateLimit>,
    /// What the medium can give at most, when declared.
    pub medium: Option<RateLimit>,
    /// CPU time of each generator thread in the phase, one a job.
    pub generator: Vec<Duration>,
    /// Whether a saturated generator is what is measured (a null target such as `/dev/zero`, a cached file).
    pub generator_is_subject: bool,
    /// CPU of other programs, in CPUs.
    pub foreign_cpus: Option<f64>,
    /// Stolen share of CPU time, 0 to 1.
    pub steal: Option<f64>,
    /// Share of the time in which tasks waited for a CPU, 0 to 1. Not judged with more jobs than CPUs, which wait for
    /// each other.
    pub cpu_pressure: Option<f64>,
    /// How often a limit of the control group stopped the processor.
    pub throttled: Option<u64>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Arrays of the stack that were not idle or not whole.
    pub arrays: Vec<ArrayState>,
}

impl Evidence {
    /// Takes over what the devices of a stack and its neighbours did in the phase.
    pub fn with_devices(
        mut self,
        difference: &Difference,
        stack: &DeviceStack,
        neighbours: &[Neighbour],
    ) -> Self {
        let sums = moved(difference, stack);
        self.device_read = sums.map(|(read, _)| read);
        self.device_written = sums.map(|(_, written)| written);
        self.requests = Requests::of(difference, stack, neighbours).filter(|_| sums.is_some());
        self.beneath = Excess::of(difference, stack);
        self.copies = stack.top.len() > 1;
        let beneath = stack.beneath_loops();
        let uncounted = |name: &&str| {
            let device = stack.device(name);
            device.is_none_or(|device| device.counted == Some(false))
        };
        self.through_loops = Through::of(difference, stack);
        self.beneath_read = Some(&beneath)
            .filter(|names| !names.is_empty() && !names.iter().any(uncounted))
            .and_then(|names| difference.sum(names.iter().copied()))
            .map(|(read, _)| read);
        self
    }

    /// Takes over CPU load, steal, pressure and the process's own I/O count.
    pub fn with_cpu(mut self, used: &CpuUse) -> Self {
        self.foreign_cpus = used.foreign_cpus();
        self.steal = used.steal_share();
        self.cpu_pressure = used.cpu_pressure.map(|pressure| pressure.some);
        self.throttled = used.throttled;
        self.process_read = used.io.map(|io| io.read_bytes);
        self.process_written = used.io.map(|io| io.written_bytes);
        self
    }
}

/// Judges a phase.
pub fn judge(evidence: &Evidence) -> Vec<Flag> {
    let checks: [fn(&Evidence) -> Option<Flag>; 13] = [
        too_short,
        direct_not_honoured,
        read_accounting,
        beneath::holes,
        beneath::read_beneath_loops,
        unflushed,
        beneath::written_beneath_loops,
        foreign_writes,
        above_limit,
        processor::generator_bound,
        processor::throttled,
        processor::other_load,
        array_busy,
    ];
    let mut flags: Vec<Flag> = checks.iter().filter_map(|check| check(evidence)).collect();
    if !flags.iter().any(|flag| flag.kind == FlagKind::ForeignIo) {
        flags.extend(requests::of_others(evidence).or_else(|| requests::beneath(evidence)));
    }
    flags
}

/// The share of the claimed reads that no device was seen to do: `h = 1 - D/A`. Below 0 when it read more.
pub fn hit_share(claimed: u64, device: u64) -> Option<f64> {
    (claimed > 0).then(|| 1.0 - device as f64 / claimed as f64)
}

/// Bytes below which a difference of device counters says nothing: metadata, journals and logs of an idle system.
const SLACK: u64 = 4 << 20;
/// The same for reads that this process is known not to have caused.
const LITTLE: u64 = 256 << 10;

fn too_short(e: &Evidence) -> Option<Flag> {
    let counted = e.wall.saturating_sub(e.ramp);
    (counted < SHORTEST).then(|| {
        Flag::new(
            FlagKind::TooShort,
            format!(
                "it took {:.3} s, less than {} s",
                counted.as_secs_f64(),
                SHORTEST.as_secs_f64()
            ),
        )
    })
}

fn direct_not_honoured(e: &Evidence) -> Option<Flag> {
    if !e.direct {
        return None;
    }
    // Each direction for itself: half of a mix may be honoured.
    let directions = [
        ("read", e.claimed_read, e.device_read),
        ("wrote", e.claimed_written, e.device_written),
    ];
    for (did, claimed, device) in directions {
        // What no disk is read for says nothing of the page cache.
        if did == "read" && beneath::has_holes(e) {
            continue;
        }
        let share = device.and_then(|device| hit_share(claimed, device));
        if let (Some(device), Some(true)) = (device, share.map(|share| share > SERVED)) {
            let figures = format!("the device {did} {} of {}", size(device), size(claimed));
            return Some(Flag::new(
                FlagKind::DirectNotHonoured,
                format!("direct I/O was asked for, but {figures}"),
            ));
        }
    }
    let (before, after) = e.resident_before.zip(e.resident_after)?;
    (after - before > RESIDENCY_GROWTH).then(|| {
        Flag::new(
            FlagKind::DirectNotHonoured,
            format!(
                "direct I/O was asked for, but the file's share in the page cache grew from {:.1} % to {:.1} %",
                before * 100.0,
                after * 100.0
            ),
        )
    })
}

/// Accounting of reads: by h.
fn read_accounting(e: &Evidence) -> Option<Flag> {
    let device = e.device_read?;
    let share = hit_share(e.claimed_read, device)?;
    let figures = format!(
        "the device read {} of {}",
        size(device),
        size(e.claimed_read)
    );
    let excess = device.saturating_sub(e.claimed_read);
    let caused_here = e
        .process_read
        .map(|read| read as f64 > FOREIGN * e.claimed_read as f64);
    let slack = match caused_here {
        Some(false) if !e.copies => LITTLE,
        _ => SLACK,
    };
    if device as f64 > FOREIGN * e.claimed_read as f64 && excess > slack {
        let cause = match caused_here {
            Some(true) => "read-ahead fetched more than was used",
            Some(false) => "something else read too",
            None => "something else read too, or read-ahead fetched more than was used",
        };
        return Some(Flag::new(
            FlagKind::ForeignIo,
            format!("{figures}: {cause}"),
        ));
    }
    // With direct I/O a shortfall is another fault, named by its own check, and so are holes; a warm run wants it.
    if e.warm || beneath::has_holes(e) || (e.direct && share > SERVED) {
        return None;
    }
    if share > SERVED {
        return Some(Flag::new(
            FlagKind::ServedFromCache,
            format!("{figures}: the page cache served it"),
        ));
    }
    (share > PARTLY).then(|| {
        Flag::new(
            FlagKind::PartlyCached,
            format!("{figures}: {:.1} % came from the page cache", share * 100.0),
        )
    })
}

fn unflushed(e: &Evidence) -> Option<Flag> {
    let device = e.device_written?;
    let share = hit_share(e.claimed_written, device)?;
    // What was overwritten before it was written back is told by itself.
    let explained = e.flushed
        && !e.direct
        && e.distinct_written
            .is_some_and(|few| hit_share(few, device).is_some_and(|share| share <= PARTLY));
    if share <= PARTLY || explained || (e.direct && share > SERVED) {
        return None;
    }
    let figures = format!(
        "{} of {} had reached the device when the clock stopped",
        size(device),
        size(e.claimed_written)
    );
    let distinct = e.distinct_written.filter(|few| *few < e.claimed_written);
    let cause = match distinct {
        _ if !e.flushed => "; the rest was still in memory, or was overwritten there".to_owned(),
        None => {
            ", though it was flushed: a file system that compresses or a device that was not seen"
                .to_owned()
        }
        Some(distinct) => format!(
            ", though it was flushed: blocks were written several times, but about {} are different ones, so that a file system \
             compresses or a device was not seen, too",
            size(distinct)
        ),
    };
    Some(Flag::new(FlagKind::Unflushed, format!("{figures}{cause}")))
}

fn foreign_writes(e: &Evidence) -> Option<Flag> {
    let device = e.device_written?;
    // A file that is only read must cause no writes to speak of; one that is written causes journal traffic besides.
    let excess = device.saturating_sub(e.claimed_written);
    let more = device as f64 > FOREIGN * e.claimed_written as f64 && excess > SLACK;
    (more && !e.copies).then(|| {
        Flag::new(
            FlagKind::ForeignIo,
            format!(
                "the device wrote {} where {} was asked for: something else wrote too, earlier data were written back, or the file system writes twice",
                size(device),
                size(e.claimed_written)
            ),
        )
    })
}

/// A rate above what the link or the medium can give.
fn above_limit(e: &Evidence) -> Option<Flag> {
    let wall = e.wall.as_secs_f64();
    let bytes = e.claimed_read.saturating_add(e.claimed_written);
    // A warm run is meant to be faster than any link.
    if wall <= 0.0 || e.warm {
        return None;
    }
    let rate = bytes as f64 / wall;
    let limits = [
        (
            &e.link,
            "more than the link carries: a cache of the operating system, or a wrong clock",
        ),
        (
            &e.medium,
            "more than the medium gives: a cache of the controller, the drive or the host",
        ),
    ];
    limits.into_iter().find_map(|(limit, meaning)| {
        let limit = limit.as_ref()?;
        (rate > (1.0 + LIMIT_TOLERANCE) * limit.bytes_per_second).then(|| {
            Flag::new(
                FlagKind::AboveLimit,
                format!(
                    "{:.0} MB/s is above the {:.0} MB/s of {}, {meaning}",
                    rate / 1e6,
                    limit.bytes_per_second / 1e6,
                    limit.source
                ),
            )
        })
    })
}

/// A resync takes part of the array's time, a part that nobody knows: void. An array that only lacks a member is as it will
/// be until that is replaced, and how it is then may be what somebody wants to know: a remark.
fn array_busy(e: &Evidence) -> Option<Flag> {
    let words: Vec<_> = e.arrays.iter().map(|array| &array.words[..]).collect();
    let flag = (!words.is_empty()).then(|| Flag::new(FlagKind::ArrayBusy, words.join("; ")))?;
    let busy = e.arrays.iter().any(|array| array.busy);
    Some(if busy { flag } else { flag.remark() })
}

/// A size as a reason gives it.
pub(crate) fn size(bytes: u64) -> Bytes {
    Bytes(bytes)
}

#[cfg(test)]
#[path = "tests/evidence.rs"]
mod tests;

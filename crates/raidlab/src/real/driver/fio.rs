//! fio itself in place of phases of block operations: its command line for each, and its JSON as the phase's record.
use super::{Calls, Ground, Said, directory_or_device, imported};
use crate::commands::quoted;
use crate::exit::{BAD_REQUEST, Failure, TRIAL_FAILED};
use crate::real::trial::Watch;
use raidlab_core::phase::{Access, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Order, WorkloadSpec};
use raidlab_io::run::{make_ready, uring_available};
use raidlab_results::import::Format;
use raidlab_results::record::{Figure, PhaseRecord, Unit, part_of};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

/// EAGAIN in the words of the C library.
const PUT_OFF: &str = "Resource temporarily unavailable";

/// How fio hands over several operations at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Uring,
    Libaio,
}

impl Queue {
    /// io_uring where there is one, but not beside a resync or rebuild of md: what is given to it is tried without waiting
    /// first, md lets no write past what it is copying, and the EAGAIN that comes of it (a write of several chunks to RAID10, seen
    /// with Linux 6.1) ends fio. libaio waits in `io_submit`. All trials of a cell have the same.
    const fn choose(uring: bool, busy: bool) -> Self {
        match uring && !busy {
            true => Self::Uring,
            false => Self::Libaio,
        }
    }
}

/// Runs fio once for each phase of the plan.
pub(super) fn run(ground: &Ground<'_>, watch: &mut dyn Watch) -> Result<Said, Failure> {
    let options = ground.options;
    let file = directory_or_device(ground, "fio")?;
    let queue = Queue::choose(uring_available().is_ok(), ground.busy);
    let (mut text, mut phases, mut parts) = (String::new(), Vec::new(), Vec::new());
    let mut provenance = None;
    let all = ground.plan.phases.len();
    for (number, phase) in ground.plan.phases.iter().enumerate() {
        watch.phase(number, all, &phase.title);
        let mut monitor = |progress| {
            watch.tick(&progress);
            match options.cancel.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        make_ready(phase, ground.place, options, &mut monitor)
            .map_err(|error| Failure::from_error(TRIAL_FAILED, &error))?;
        // Phases do not visit the same places in the same order; fio reads numbers with a sign.
        let seed = options.seed.wrapping_add(number as u64) >> 1;
        let words = words(phase, &file, seed, queue)?;
        let output = Calls::new(&options.cancel, watch)
            .phase(&words)
            .map_err(|failure| put_off(failure, queue))?;
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let _ = write!(text, "+ {}\n{}", line.join(" "), output.out);
        let (said, from) = imported(&output.out, "fio", Format::FioJson)?;
        parts.extend(parts_of(phase, &said));
        phases.push(joined(phase, said)?);
        provenance.get_or_insert(from);
    }
    let none = || Failure::new(BAD_REQUEST, "no phase of the profile can be run here");
    phases.extend(parts);
    Ok(Said {
        phases,
        provenance: provenance.ok_or_else(none)?,
        text,
    })
}

/// The command line that does what a phase says.
fn words(phase: &Phase, file: &Path, seed: u64, queue: Queue) -> Result<Vec<String>, Failure> {
    let queued = phase.jobs.iter().any(|job| job.depth > 1);
    let engine = match (queued, queue) {
        // One at a time costs least by a call that waits, as in raidlab's own phases.
        (false, _) => "psync",
        (true, Queue::Uring) => "io_uring",
        (true, Queue::Libaio) => "libaio",
    };
    // A colon separates files.
    let file = file.display().to_string().replace(':', "\\:");
    let mut words = vec![
        "fio".to_owned(),
        "--output-format=json+".to_owned(),
        "--eta=never".to_owned(),
        // One process, which ends as a whole when it is ended.
        "--thread=1".to_owned(),
        "--disk_util=0".to_owned(),
        // Response times with the time of submission, as raidlab counts them.
        "--lat_percentiles=1".to_owned(),
        "--clat_percentiles=0".to_owned(),
        // The cache has been emptied where that is asked for.
        "--invalidate=0".to_owned(),
        "--randrepeat=0".to_owned(),
        format!("--randseed={seed}"),
        // With replacement.
        "--norandommap=1".to_owned(),
        format!("--ioengine={engine}"),
        format!("--direct={}", u8::from(phase.access == Access::Direct)),
        format!("--filename={file}"),
    ];
    if phase.ramp > Span::ZERO {
        words.push(format!("--ramp_time={}us", phase.ramp.0 / 1000));
    }
    for Job { workload, depth } in &phase.jobs {
        let WorkloadSpec::Blocks(spec) = workload else {
            let message = format!("fio has nothing like the phase '{}'", phase.id);
            return Err(Failure::new(BAD_REQUEST, message));
        };
        words.push(format!("--name={}", phase.id));
        words.push(format!("--iodepth={depth}"));
        job(spec, phase.ramp, &mut words);
    }
    Ok(words)
}

/// What fio says when a device would not take an operation at once; it asks no second time.
fn put_off(failure: Failure, queue: Queue) -> Failure {
    let put_off = queue == Queue::Uring && failure.message.contains(PUT_OFF);
    if !put_off {
        return failure;
    }
    failure.remedy(
        "the device put an operation off (EAGAIN), which fio takes for a failure: leave --driver out, raidlab's own phases submit it \
         again, or measure when nothing is rebuilt there",
    )
}

/// The options of a job.
fn job(spec: &BlockSpec, ramp: Span, words: &mut Vec<String>) {
    let random = spec.order == Order::Random;
    let rw = match (spec.read_percent, random) {
        (100, false) => "read",
        (100, true) => "randread",
        (0, false) => "write",
        (0, true) => "randwrite",
        (_, false) => "rw",
        (_, true) => "randrw",
    };
    let block = u64::from(spec.block);
    // A sequential order that begins within the region goes to its end first.
    let before = if random { 0 } else { spec.first * block };
    words.extend([
        format!("--rw={rw}"),
        format!("--bs={block}"),
        format!("--offset={}", spec.region.start.0 + before),
        format!("--size={}", spec.region.len.0 - before),
    ]);
    let mixed = ![0, 100].contains(&spec.read_percent);
    if mixed {
        words.push(format!("--rwmixread={}", spec.read_percent));
    }
    if let Some(ops) = spec.limit.ops {
        words.push(format!("--io_size={}", ops.saturating_mul(block)));
    }
    if let Some(time) = spec.limit.time {
        // fio adds its ramp to the time.
        let counted = Span(time.0.saturating_sub(ramp.0));
        words.push(format!("--runtime={}us", counted.0 / 1000));
        if spec.limit.ops.is_none() {
            words.push("--time_based=1".to_owned());
        }
    }
    let (rate, process) = match spec.arrival {
        Arrival::Closed => (None, "linear"),
        Arrival::Constant { per_second } => (Some(per_second), "linear"),
        Arrival::Poisson { per_second } => (Some(per_second), "poisson"),
    };
    if let Some(rate) = rate {
        // Of a mixture each direction has a rate of its own.
        let reads = (u64::from(rate) * u64::from(spec.read_percent) / 100).max(1);
        words.push(match mixed {
            false => format!("--rate_iops={rate}"),
            true => format!(
                "--rate_iops={reads},{}",
                u64::from(rate).saturating_sub(reads).max(1)
            ),
        });
        words.push(format!("--rate_process={process}"));
    }
    if spec.flush_every > 0 {
        let call = if spec.flush_data {
            "fdatasync"
        } else {
            "fsync"
        };
        words.push(format!("--{call}={}", spec.flush_every));
    }
    if spec.flush_end {
        words.push("--end_fsync=1".to_owned());
    }
}

/// What fio says of reads and of writes of a phase that does both, by themselves.
fn parts_of(phase: &Phase, said: &[PhaseRecord]) -> Vec<PhaseRecord> {
    let both = said.len() > 1;
    let parts = said.iter().filter(|_| both).map(|direction| {
        let name = direction.phase.rsplit('/').next().unwrap_or_default();
        PhaseRecord {
            phase: part_of(&phase.id, name),
            // It is of the job, for both together.
            cpu_percent: None,
            ..direction.clone()
        }
    });
    parts.collect()
}

/// What fio says of reads and of writes of one phase, as that phase.
fn joined(phase: &Phase, said: Vec<PhaseRecord>) -> Result<PhaseRecord, Failure> {
    let mut directions = said.into_iter();
    let mut whole = directions.next().ok_or_else(|| {
        let message = format!("fio did nothing in the phase '{}'", phase.id);
        Failure::new(TRIAL_FAILED, message)
    })?;
    for other in directions {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let iops = iops(&whole).zip(iops(&other)).map(|(a, b)| a + b);
        whole.rate = whole.rate.zip(other.rate).map(|(a, b)| a + b);
        whole.bytes = sum(whole.bytes, other.bytes);
        whole.ops = sum(whole.ops, other.ops);
        whole.elapsed_ns = whole.elapsed_ns.max(other.elapsed_ns);
        whole.latency = whole.latency.zip(other.latency).map(|(mut all, more)| {
            all.merge(&more);
            all
        });
        whole.figures = iops
            .map(|iops| figure("iops", iops, Unit::PerSecond))
            .into_iter()
            .collect();
        for flag in other.flags {
            if !whole.flags.contains(&flag) {
                whole.flags.push(flag);
            }
        }
    }
    whole.phase.clone_from(&phase.id);
    Ok(whole)
}

fn figure(name: &str, value: f64, unit: Unit) -> Figure {
    Figure {
        name: name.to_owned(),
        value,
        unit,
    }
}

fn iops(record: &PhaseRecord) -> Option<f64> {
    let mut figures = record.figures.iter();
    figures.find(|f| f.name == "iops").map(|f| f.value)
}

#[cfg(test)]
mod tests;

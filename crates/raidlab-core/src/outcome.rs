//! What came of a phase, whether it was measured or modelled.
use crate::drive::{Series, Tally};
use crate::flag::Flag;
use crate::histogram::Latencies;
use crate::op::OpClass;
use crate::time::{Instant, Span};
use serde::{Deserialize, Serialize};

/// Processor time that the counted time of a phase cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// The workload's own time in user mode, all its threads.
    pub user: Span,
    /// The workload's own time in the kernel, all its threads.
    pub system: Span,
    /// Time of kernel threads that worked meanwhile (md, jbd2, write-back …), which no tool counts;
    /// `None` when it could not be told.
    pub kernel_threads: Option<Span>,
}

impl CpuTime {
    /// The share of one processor that the workload itself took, in per cent, as the old tools print
    /// it: (user + system) / elapsed.
    #[must_use]
    pub fn percent(&self, elapsed: Span) -> f64 {
        if elapsed == Span::ZERO {
            0.0
        } else {
            100.0 * (self.user + self.system).0 as f64 / elapsed.0 as f64
        }
    }

    /// Of what was used in `ramp` and the `counted` time after it that of the counted time, taken to have been used evenly.
    #[must_use]
    pub fn of_counted(self, ramp: Span, counted: Span) -> Self {
        if ramp == Span::ZERO {
            return self;
        }
        let all = u128::from((ramp + counted).0);
        let part = |time: Span| Span((u128::from(time.0) * u128::from(counted.0) / all) as u64);
        Self {
            user: part(self.user),
            system: part(self.system),
            kernel_threads: self.kernel_threads.map(part),
        }
    }
}

/// Bytes that the block device below moved during a phase, beside what the workload claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBytes {
    /// Bytes the workload read.
    pub claimed_read: u64,
    /// Bytes the workload wrote.
    pub claimed_written: u64,
    /// Bytes read from the device.
    pub device_read: u64,
    /// Bytes written to the device.
    pub device_written: u64,
}

/// What the reads came to of a phase that also writes, or the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// Which.
    pub class: OpClass,
    /// Counted operations.
    pub ops: u64,
    /// Their bytes: of a job that does both the share of its operations, which are all of one size.
    pub bytes: u64,
    /// From the beginning of counting to the last completion of the jobs that do such.
    pub elapsed: Span,
}

/// One phase of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseOutcome {
    /// The phase's stable name.
    pub id: String,
    /// Counted operations.
    pub ops: u64,
    /// Counted bytes.
    pub bytes: u64,
    /// From the first submission (or the end of the ramp) to the last completion of all jobs; at a rate of its own to when the next
    /// operation would have been due, if that is later.
    pub elapsed: Span,
    /// Response times by class of operation, where there were any.
    pub latencies: Vec<(OpClass, Latencies)>,
    /// Reads and writes by themselves, where there were both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<Direction>,
    /// Time spent waiting for a free slot, where operations were due before they could be taken.
    pub delay: Option<Latencies>,
    /// Mean number of operations in flight, all jobs together, each over its own time from start to end.
    pub mean_in_flight: f64,
    /// Progress over time, all jobs together.
    pub series: Series,
    /// Processor time.
    pub cpu: CpuTime,
    /// What the device below moved; `None` when there is none that counts.
    pub device: Option<DeviceBytes>,
    /// Digest of the operation streams of all jobs.
    pub digest: u64,
    /// Doubts.
    pub flags: Vec<Flag>,
}

impl PhaseOutcome {
    /// Joins the tallies of jobs that ran together. Processor time, device bytes, digest and flags
    /// are left for whoever knows them.
    #[must_use]
    pub fn from_tallies(id: &str, tallies: &[Tally]) -> Self {
        let from = tallies
            .iter()
            .map(|t| t.from)
            .min()
            .unwrap_or(Instant::ZERO);
        let to = tallies.iter().map(|t| t.to).max().unwrap_or(Instant::ZERO);
        let mut series = Series::default();
        tallies.iter().for_each(|t| series.merge(&t.series));
        let merged = |pick: &dyn Fn(&Tally) -> Option<&Latencies>| {
            tallies
                .iter()
                .filter_map(pick)
                .fold(None::<Latencies>, |all, one| {
                    let mut all = all.unwrap_or_default();
                    all.merge(one);
                    Some(all)
                })
        };
        Self {
            id: id.to_owned(),
            ops: tallies.iter().map(|t| t.ops).sum(),
            bytes: tallies.iter().map(|t| t.bytes).sum(),
            elapsed: to.since(from),
            latencies: OpClass::ALL
                .into_iter()
                .filter_map(|class| merged(&|t: &Tally| t.latencies(class)).map(|l| (class, l)))
                .collect(),
            directions: directions(tallies),
            delay: merged(&|t: &Tally| t.delay.as_deref()),
            mean_in_flight: tallies.iter().map(Tally::mean_in_flight).sum(),
            series,
            cpu: CpuTime::default(),
            device: None,
            digest: 0,
            flags: Vec::new(),
        }
    }

    /// Counted bytes a second; `None` when no time passed.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.elapsed > Span::ZERO).then(|| self.bytes as f64 / self.elapsed.as_secs_f64())
    }

    /// Counted operations a second; `None` when no time passed.
    #[must_use]
    pub fn ops_per_second(&self) -> Option<f64> {
        (self.elapsed > Span::ZERO).then(|| self.ops as f64 / self.elapsed.as_secs_f64())
    }

    /// Response times of all classes that move data, merged (of all classes when none moves any).
    #[must_use]
    pub fn latency(&self) -> Latencies {
        let moves = |class: OpClass| matches!(class, OpClass::Read | OpClass::Write);
        let any = self.latencies.iter().any(|(class, _)| moves(*class));
        let mut all = Latencies::new();
        self.latencies
            .iter()
            .filter(|(class, _)| !any || moves(*class))
            .for_each(|(_, l)| all.merge(l));
        all
    }
}

/// Reads and writes by themselves; nothing where there are not both.
fn directions(tallies: &[Tally]) -> Vec<Direction> {
    let count = |tally: &Tally, class| tally.latencies(class).map_or(0, Latencies::count);
    let of = |class| {
        let jobs = tallies.iter().filter(|tally| count(tally, class) > 0);
        let mut direction = Direction {
            class,
            ops: 0,
            bytes: 0,
            elapsed: Span::ZERO,
        };
        for tally in jobs {
            let ops = count(tally, class);
            let all = count(tally, OpClass::Read) + count(tally, OpClass::Write);
            let bytes = u128::from(tally.bytes) * u128::from(ops) / u128::from(all);
            direction.ops += ops;
            direction.bytes += bytes as u64;
            direction.elapsed = direction.elapsed.max(tally.elapsed());
        }
        (direction.ops > 0).then_some(direction)
    };
    let both = [OpClass::Read, OpClass::Write].map(of);
    match both {
        [Some(reads), Some(writes)] => vec![reads, writes],
        _ => Vec::new(),
    }
}

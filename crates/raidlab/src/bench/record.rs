//! From what came of a phase to what the store keeps.
use raidlab_core::histogram::Latencies;
use raidlab_core::op::OpClass;
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::{Counted, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::workload::spec::WorkloadSpec;
use raidlab_results::record::{Figure, PhaseRecord, Unit, part_of};

/// The record of a measured phase: its rate in the unit that `counted` says, its latencies as the
/// old tools tell them, and everything that is needed to judge it.
pub(crate) fn of_phase(outcome: PhaseOutcome, phase: &Phase) -> Recorded {
    Recorded {
        parts: parts(&outcome, phase),
        whole: whole(outcome, phase.counted),
    }
}

/// A phase, and its reads and writes by themselves where it does both.
pub(crate) struct Recorded {
    /// All of it.
    pub(crate) whole: PhaseRecord,
    /// They stand behind all phases of the trial.
    pub(crate) parts: Vec<PhaseRecord>,
}

/// Reads and writes by themselves, of block operations alone: calls that rewrite what they have read belong together.
fn parts(outcome: &PhaseOutcome, phase: &Phase) -> Vec<PhaseRecord> {
    let blocks = |job: &Job| matches!(job.workload, WorkloadSpec::Blocks(_));
    if !phase.jobs.iter().all(blocks) {
        return Vec::new();
    }
    let directions = outcome.directions.iter().filter_map(|direction| {
        let name = match direction.class {
            OpClass::Read => "read",
            OpClass::Write => "write",
            OpClass::Sync | OpClass::Meta => return None,
        };
        let seconds = direction.elapsed.as_secs_f64();
        let each_second = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
        let mut found = outcome.latencies.iter();
        let latency = found
            .find(|(class, _)| *class == direction.class)
            .map(|(_, latency)| latency.clone());
        let mut figures = latency.as_ref().map_or_else(Vec::new, latency_figures);
        figures.extend(each_second(direction.ops).map(iops));
        let rate = each_second(direction.bytes);
        Some(PhaseRecord {
            bytes: Some(direction.bytes),
            ops: Some(direction.ops),
            elapsed_ns: Some(direction.elapsed.0),
            latency,
            figures,
            flags: outcome.flags.clone(),
            ..PhaseRecord::bare(&part_of(&outcome.id, name), rate, Unit::BytesPerSecond)
        })
    });
    directions.collect()
}

fn whole(outcome: PhaseOutcome, counted: Counted) -> PhaseRecord {
    let (rate, unit) = match counted {
        Counted::Bytes => (outcome.bytes_per_second(), Unit::BytesPerSecond),
        Counted::Ops => (outcome.ops_per_second(), Unit::PerSecond),
    };
    let latency = outcome.latency();
    let mut figures = latency_figures(&latency);
    if counted == Counted::Bytes {
        figures.extend(outcome.ops_per_second().map(iops));
    }
    let cpu_share =
        |time: Span| 100.0 * time.as_secs_f64() / outcome.elapsed.as_secs_f64().max(1e-9);
    figures.push(Figure {
        name: "cpu-user".into(),
        value: cpu_share(outcome.cpu.user),
        unit: Unit::Percent,
    });
    figures.push(Figure {
        name: "cpu-system".into(),
        value: cpu_share(outcome.cpu.system),
        unit: Unit::Percent,
    });
    if let Some(threads) = outcome.cpu.kernel_threads {
        figures.push(Figure {
            name: "cpu-kernel-threads".into(),
            value: cpu_share(threads),
            unit: Unit::Percent,
        });
    }
    PhaseRecord {
        phase: outcome.id,
        rate,
        unit,
        bytes: Some(outcome.bytes),
        ops: Some(outcome.ops),
        elapsed_ns: Some(outcome.elapsed.0),
        cpu_percent: Some(outcome.cpu.percent(outcome.elapsed)),
        cpu: Some(outcome.cpu),
        latency: (!latency.is_empty()).then_some(latency),
        mean_in_flight: Some(outcome.mean_in_flight),
        device: outcome.device,
        series_bytes: outcome.series.windows.iter().map(|w| w.bytes).collect(),
        series_ops: outcome.series.windows.iter().map(|w| w.ops).collect(),
        series_width_ns: outcome.series.width.0,
        figures,
        flags: outcome.flags,
        explained: None,
    }
}

/// Operations a second, where the figure is bytes.
fn iops(each_second: f64) -> Figure {
    Figure {
        name: "iops".into(),
        value: each_second,
        unit: Unit::PerSecond,
    }
}

/// Mean, maximum and the shares above 2 s and 10 s (tiobench's columns).
fn latency_figures(latency: &Latencies) -> Vec<Figure> {
    let (Some(mean), Some(max)) = (latency.mean(), latency.max()) else {
        return Vec::new();
    };
    let seconds = |name: &str, span: Span| Figure {
        name: name.into(),
        value: span.as_secs_f64(),
        unit: Unit::Seconds,
    };
    let above = |name: &str, limit: u64| Figure {
        name: name.into(),
        value: 100.0 * latency.share_above(Span::from_secs(limit)),
        unit: Unit::Percent,
    };
    vec![
        seconds("latency-mean", mean),
        seconds("latency-max", max),
        above("share-above-2s", 2),
        above("share-above-10s", 10),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::drive::Series;
    use raidlab_core::flag::{Flag, FlagKind};
    use raidlab_core::op::OpenMode;
    use raidlab_core::outcome::{CpuTime, Direction};
    use raidlab_core::phase::{Access, Evidence};
    use raidlab_core::units::{Bytes, Extent};
    use raidlab_core::workload::spec::{
        Arrival, BlockSpec, Durable, Handle, Limit, Order, PassAction, PassSpec,
    };

    fn outcome() -> PhaseOutcome {
        let mut latencies = Latencies::new();
        latencies.record_n(Span::from_millis(4), 99);
        latencies.record(Span::from_secs(3));
        PhaseOutcome {
            id: "block-read".into(),
            ops: 100,
            bytes: 100 << 20,
            elapsed: Span::from_secs(2),
            latencies: vec![(OpClass::Read, latencies)],
            directions: Vec::new(),
            delay: None,
            mean_in_flight: 1.0,
            series: Series::default(),
            cpu: CpuTime {
                user: Span::from_millis(100),
                system: Span::from_millis(400),
                kernel_threads: None,
            },
            device: None,
            digest: 7,
            flags: Vec::new(),
        }
    }

    #[test]
    fn a_rate_is_in_the_unit_that_is_counted() {
        let bytes = whole(outcome(), Counted::Bytes);
        assert_eq!(
            (bytes.rate, bytes.unit),
            (Some(f64::from(50 << 20)), Unit::BytesPerSecond)
        );
        let ops = whole(outcome(), Counted::Ops);
        assert_eq!((ops.rate, ops.unit), (Some(50.0), Unit::PerSecond));
        assert!(
            ops.figures.iter().all(|f| f.name != "iops"),
            "the rate itself says it"
        );
    }

    #[test]
    fn tiobenchs_latency_columns_are_kept() {
        let record = whole(outcome(), Counted::Bytes);
        let figure = |name: &str| {
            record
                .figures
                .iter()
                .find(|f| f.name == name)
                .expect(name)
                .value
        };
        assert!((figure("latency-max") - 3.0).abs() < 1e-9);
        assert!((figure("share-above-2s") - 1.0).abs() < 1e-9);
        assert!(figure("share-above-10s").abs() < 1e-9);
        assert!((record.cpu_percent.unwrap() - 25.0).abs() < 1e-9);
        assert!((figure("cpu-system") - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_phase_without_operations_has_no_latency() {
        let mut empty = outcome();
        empty.latencies.clear();
        let record = whole(empty, Counted::Ops);
        assert_eq!(record.latency, None);
        assert!(
            record
                .figures
                .iter()
                .all(|f| !f.name.starts_with("latency"))
        );
    }

    fn mixture(jobs: Vec<Job>) -> (PhaseOutcome, Phase) {
        let mut writes = Latencies::new();
        writes.record_n(Span::from_micros(20), 10);
        let mut both = outcome();
        both.id = "mixed".into();
        both.latencies.push((OpClass::Write, writes));
        let direction = |class, ops, bytes| Direction {
            class,
            ops,
            bytes,
            elapsed: Span::from_secs(2),
        };
        both.directions = vec![
            direction(OpClass::Read, 100, 100 << 12),
            direction(OpClass::Write, 10, 10 << 20),
        ];
        both.flags = vec![Flag::new(FlagKind::Unflushed, "half of it".to_owned())];
        let phase = Phase {
            id: "mixed".into(),
            title: "a mixture".into(),
            jobs,
            access: Access::Direct,
            counted: Counted::Bytes,
            cold: false,
            evidence: Evidence::None,
            needs: Vec::new(),
            fresh: Vec::new(),
            ramp: Span::ZERO,
        };
        (both, phase)
    }

    #[test]
    fn reads_and_writes_of_a_mixture_are_told_by_themselves() {
        let blocks = BlockSpec {
            order: Order::Random,
            read_percent: 50,
            block: 4096,
            region: Extent::new(0, 1 << 20),
            first: 0,
            limit: Limit::default(),
            arrival: Arrival::Closed,
            flush_every: 0,
            flush_data: false,
            flush_end: false,
        };
        let job = Job {
            workload: WorkloadSpec::Blocks(blocks),
            depth: 1,
        };
        let (outcome, phase) = mixture(vec![job]);
        let Recorded { whole, parts } = of_phase(outcome, &phase);
        assert_eq!(whole.latency.map(|l| l.count()), Some(110));
        let names: Vec<&str> = parts.iter().map(|part| part.phase.as_str()).collect();
        assert_eq!(names, ["mixed: read", "mixed: write"]);
        for (part, (ops, rate)) in parts.iter().zip([(100, 204_800.0), (10, 5_242_880.0)]) {
            assert_eq!(part.whole(), Some("mixed"));
            assert_eq!((part.ops, part.rate), (Some(ops), Some(rate)));
            assert_eq!(part.latency.as_ref().map(Latencies::count), Some(ops));
            assert_eq!(part.flags, whole.flags, "the doubts of the whole");
        }
        let longest = parts[1].figures.iter().find(|f| f.name == "latency-max");
        assert!(longest.is_some_and(|f| f.value < 1e-4), "{longest:?}");
    }

    /// bonnie's seeks read a block and write some of them back: that is one figure.
    #[test]
    fn calls_that_read_and_write_belong_together() {
        let pass = PassSpec {
            handle: Handle::new(0, OpenMode::Update),
            action: PassAction::Rewrite,
            start: Bytes(0),
            size: Bytes(1 << 20),
            call: 8192,
            durable: Durable::Never,
        };
        let job = Job {
            workload: WorkloadSpec::Pass(pass),
            depth: 1,
        };
        let (outcome, phase) = mixture(vec![job]);
        assert!(of_phase(outcome, &phase).parts.is_empty());
    }
}

//! From what came of a phase to what the store keeps.
use raidlab_core::histogram::Latencies;
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::Counted;
use raidlab_core::time::Span;
use raidlab_results::record::{Figure, PhaseRecord, Unit};

/// The record of a measured phase: its rate in the unit that `counted` says, its latencies as the
/// old tools tell them, and everything that is needed to judge it.
pub(crate) fn of_phase(outcome: PhaseOutcome, counted: Counted) -> PhaseRecord {
    let (rate, unit) = match counted {
        Counted::Bytes => (outcome.bytes_per_second(), Unit::BytesPerSecond),
        Counted::Ops => (outcome.ops_per_second(), Unit::PerSecond),
    };
    let latency = outcome.latency();
    let mut figures = latency_figures(&latency);
    if let Some(iops) = outcome
        .ops_per_second()
        .filter(|_| counted == Counted::Bytes)
    {
        figures.push(Figure {
            name: "iops".into(),
            value: iops,
            unit: Unit::PerSecond,
        });
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
    use raidlab_core::op::OpClass;
    use raidlab_core::outcome::CpuTime;

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
        let bytes = of_phase(outcome(), Counted::Bytes);
        assert_eq!(
            (bytes.rate, bytes.unit),
            (Some(f64::from(50 << 20)), Unit::BytesPerSecond)
        );
        let ops = of_phase(outcome(), Counted::Ops);
        assert_eq!((ops.rate, ops.unit), (Some(50.0), Unit::PerSecond));
        assert!(
            ops.figures.iter().all(|f| f.name != "iops"),
            "the rate itself says it"
        );
    }

    #[test]
    fn tiobenchs_latency_columns_are_kept() {
        let record = of_phase(outcome(), Counted::Bytes);
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
        let record = of_phase(empty, Counted::Ops);
        assert_eq!(record.latency, None);
        assert!(
            record
                .figures
                .iter()
                .all(|f| !f.name.starts_with("latency"))
        );
    }
}

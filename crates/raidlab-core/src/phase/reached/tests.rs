use super::*;
use crate::histogram::Latencies;
use crate::op::OpClass;
use crate::phase::{Access, Counted, Evidence, Job};
use crate::rng::Stream;
use crate::units::Extent;
use crate::workload::spec::{Limit, Order};

fn phase(arrival: Arrival, limit: Limit, ramp: Span) -> Phase {
    let spec = BlockSpec {
        order: Order::Random,
        read_percent: 100,
        block: 4096,
        region: Extent::new(0, 1 << 20),
        first: 0,
        limit,
        arrival,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    };
    Phase {
        id: "read".to_owned(),
        title: String::new(),
        jobs: vec![Job {
            workload: WorkloadSpec::Blocks(spec),
            depth: 32,
        }],
        access: Access::Direct,
        counted: Counted::Bytes,
        cold: false,
        evidence: Evidence::None,
        needs: Vec::new(),
        fresh: Vec::new(),
        ramp,
    }
}

fn timed(seconds: u64) -> Limit {
    Limit {
        ops: None,
        time: Some(Span::from_secs(seconds)),
    }
}

fn outcome(ops: u64, elapsed: Span, response: Span) -> PhaseOutcome {
    let mut outcome = PhaseOutcome::from_tallies("read", &[]);
    (outcome.ops, outcome.elapsed) = (ops, elapsed);
    let mut latencies = Latencies::new();
    latencies.record_n(response, ops);
    outcome.latencies = vec![(OpClass::Read, latencies)];
    outcome
}

const CONSTANT: Arrival = Arrival::Constant { per_second: 1000 };

#[test]
fn a_rate_that_is_not_kept_is_told_with_what_was_done() {
    let phase = phase(CONSTANT, timed(10), Span::ZERO);
    let of = |ops| phase.not_reached(&outcome(ops, Span::from_secs(10), Span::from_millis(1)));
    assert_eq!(of(10_000), None);
    assert_eq!(of(9_600), None);
    let flag = of(4_000).expect("a doubt");
    assert_eq!((flag.kind, flag.voids), (FlagKind::RateNotReached, false));
    assert_eq!(
        flag.reason,
        "400 operations a second of 1000 asked for: they queued up, and response times grow with the length of the phase"
    );
}

#[test]
fn the_wait_for_the_last_operations_is_no_time_in_which_others_were_due() {
    let late = outcome(10_000, Span::from_secs(12), Span::from_secs(2));
    assert_eq!(
        phase(CONSTANT, timed(10), Span::ZERO).not_reached(&late),
        None
    );
    let by_number = Limit {
        ops: Some(10_000),
        time: None,
    };
    assert_eq!(
        phase(CONSTANT, by_number, Span::ZERO).not_reached(&late),
        None
    );
    // As long, though some were answered at once: those after them queued up.
    let mut slow = outcome(10_000, Span::from_secs(12), Span::from_secs(1));
    slow.latencies[0].1.record(Span::from_millis(1));
    let told = phase(CONSTANT, by_number, Span::ZERO).not_reached(&slow);
    assert!(told.is_some_and(|flag| flag.kind == FlagKind::RateNotReached));
}

#[test]
fn the_ramp_is_no_part_of_the_time() {
    let phase = phase(CONSTANT, timed(10), Span::from_secs(5));
    let half = outcome(5_000, Span::from_secs(5), Span::from_millis(1));
    assert_eq!(phase.not_reached(&half), None);
}

#[test]
fn what_arrives_by_chance_may_be_less() {
    let by_chance = Arrival::Poisson { per_second: 100 };
    let phase = phase(by_chance, timed(1), Span::ZERO);
    let of = |ops| phase.not_reached(&outcome(ops, Span::from_secs(1), Span::from_millis(1)));
    assert_eq!(of(75), None, "four standard deviations of 10");
    assert!(of(50).is_some());
    // Of 200 phases in which all is done at once none is told.
    for seed in 0..200 {
        let jobs = &phase.jobs[0].workload;
        let mut workload = jobs.build(Stream::new(seed));
        let mut done = 0;
        let mut now = crate::time::Instant::ZERO;
        loop {
            use crate::workload::{Next, Workload as _};
            match workload.next(now) {
                Next::Issue { .. } => done += 1,
                Next::Idle { until: Some(until) } => now = until,
                _ => break,
            }
        }
        assert_eq!(of(done), None, "seed {seed}: {done}");
    }
}

#[test]
fn a_closed_loop_is_held_to_its_depth() {
    let phase = phase(Arrival::Closed, timed(10), Span::ZERO);
    let mut few = outcome(10, Span::from_secs(10), Span::from_millis(1));
    few.mean_in_flight = 3.0;
    let flag = phase.not_reached(&few).expect("a doubt");
    assert_eq!(flag.kind, FlagKind::DepthNotReached);
    few.mean_in_flight = 31.0;
    assert_eq!(phase.not_reached(&few), None);
}

//! Memory does not grow with the length of a run. A test binary of its own: the peak is the process's.
use raidlab_core::phase::{Access, Counted, Evidence, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Limit, Order, WorkloadSpec};
use raidlab_io::run::{Place, RunOptions, run_phase};
use std::ops::ControlFlow;
use std::path::Path;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn run(ops: u64, depth: u32) {
    let workload = WorkloadSpec::Blocks(BlockSpec {
        order: Order::Random,
        read_percent: 100,
        block: 4096,
        region: Extent::new(0, 1 << 30),
        first: 0,
        limit: Limit {
            ops: Some(ops),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    });
    let phase = Phase {
        id: "memory".into(),
        title: "memory".into(),
        jobs: vec![Job { workload, depth }; 2],
        access: Access::Buffered,
        counted: Counted::Ops,
        cold: false,
        evidence: Evidence::None,
        needs: Vec::new(),
        fresh: Vec::new(),
        ramp: Span::ZERO,
    };
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let mut quiet = |_| ControlFlow::Continue(());
    let outcome = run_phase(&phase, &place, &RunOptions::new(1), &mut quiet).unwrap();
    assert_eq!(outcome.ops, 2 * ops);
}

#[test]
fn a_hundred_times_the_operations_take_no_more_memory() {
    run(10_000, 64);
    let short = peak_kib();
    run(1_000_000, 64);
    let long = peak_kib();
    // Buffers: 2 jobs of 64 slots of 4 KiB are half a MiB; all else is within the promised 100 MiB.
    assert!(long < 100 * 1024, "peak {long} KiB");
    assert!(long - short < 4 * 1024, "from {short} to {long} KiB");
}

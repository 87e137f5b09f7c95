use super::*;
use crate::phase::{Counted, Evidence, Job};
use crate::rng::Stream;
use crate::time::Span;
use crate::workload::spec::{Arrival, BlockSpec, Limit};
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;

fn phase(order: Order, region: u64, access: Access) -> Phase {
    let spec = BlockSpec {
        order,
        read_percent: 0,
        block: 4096,
        region: Extent::new(0, region),
        first: 0,
        limit: Limit {
            ops: Some(10_000),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: true,
    };
    Phase {
        id: "write".to_owned(),
        title: String::new(),
        jobs: vec![Job {
            workload: WorkloadSpec::Blocks(spec),
            depth: 1,
        }],
        access,
        counted: Counted::Bytes,
        cold: false,
        evidence: Evidence::WritesReachDevice,
        needs: Vec::new(),
        fresh: Vec::new(),
        ramp: Span::ZERO,
    }
}

/// What the formula says is what the draws do.
#[test]
fn random_places_come_again_as_often_as_is_expected() {
    for region in [4, 16, 64, 1024] {
        let blocks = region * MIB / 4096;
        let stream = Stream::new(region);
        let drawn: BTreeSet<u64> = (0..10_000).map(|i| stream.below(i, blocks)).collect();
        let phase = phase(Order::Random, region * MIB, Access::Buffered);
        let told = phase.distinct_written(10_000 * 4096) as f64 / 4096.0;
        let apart = told / drawn.len() as f64 - 1.0;
        assert!(apart.abs() < 0.02, "{region} MiB: {told} {}", drawn.len());
    }
}

#[test]
fn a_sequence_comes_again_when_its_region_is_over() {
    let phase = phase(Order::Sequential, 16 * MIB, Access::Buffered);
    assert_eq!(phase.distinct_written(10 * MIB), 10 * MIB);
    assert_eq!(phase.distinct_written(40 * MIB), 16 * MIB);
}

#[test]
fn what_was_overwritten_in_memory_is_told_as_that_and_nothing_more() {
    let random = phase(Order::Random, 64 * MIB, Access::Buffered);
    let claimed = 128 * MIB;
    let distinct = random.distinct_written(claimed);
    let flag = random.overwritten(claimed, distinct).expect("a part was");
    assert_eq!((flag.kind, flag.voids), (FlagKind::PartlyCached, false));
    insta::assert_snapshot!(flag.reason, @"the device wrote 55.3 MiB of 128 MiB: blocks were written several times, about 55.3 MiB are different ones, and the page cache took what was overwritten before it was written back");
    // Nearly all: a figure of memory.
    let all = phase(Order::Random, MIB, Access::Buffered).overwritten(claimed, MIB);
    let all = all.expect("nearly all was");
    assert_eq!((all.kind, all.voids), (FlagKind::ServedFromCache, true));
    // Less than the different blocks: something else is missing, and another flag says so.
    assert_eq!(random.overwritten(claimed, distinct / 2), None);
    assert_eq!(random.overwritten(claimed, claimed), None);
    // Past the page cache nothing is overwritten in it.
    let direct = phase(Order::Random, 64 * MIB, Access::Direct);
    assert_eq!(direct.overwritten(claimed, distinct), None);
}

//! How many requests a second one core simulates on one disk, driven by the drive loop with all its
//! statistics on.
//!
//! `cargo bench -p raidlab-sim --bench disk`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::rng::Stream;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
use raidlab_sim::catalogue;
use raidlab_sim::disk::{Disk, DiskTarget};
use std::time::Instant;

/// Time this thread has been on a processor in seconds, so that other load on the machine counts
/// little; wall time where the kernel does not tell.
fn on_processor(begin: Instant) -> f64 {
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| begin.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

struct Case {
    name: &'static str,
    model: &'static str,
    order: Order,
    read_percent: u8,
    block: u32,
    depth: u32,
    ops: u64,
}

const CASES: &[Case] = &[
    case(
        "random-4k-depth-1",
        "HP-C3323A",
        Order::Random,
        100,
        4096,
        1,
        8_000_000,
    ),
    case(
        "random-4k-depth-5",
        "HP-C3323A",
        Order::Random,
        100,
        4096,
        5,
        8_000_000,
    ),
    case(
        "random-4k-depth-32",
        "HP-C3323A",
        Order::Random,
        100,
        4096,
        32,
        8_000_000,
    ),
    case(
        "modern-random-4k-depth-1",
        "nearline-24tb",
        Order::Random,
        100,
        4096,
        1,
        8_000_000,
    ),
    case(
        "modern-random-4k-depth-5",
        "nearline-24tb",
        Order::Random,
        100,
        4096,
        5,
        8_000_000,
    ),
    case(
        "modern-random-4k-depth-32",
        "nearline-24tb",
        Order::Random,
        100,
        4096,
        32,
        2_000_000,
    ),
    case(
        "desktop-random-4k-depth-5",
        "ST3250624AS",
        Order::Random,
        100,
        4096,
        5,
        8_000_000,
    ),
    case(
        "sequential-4k",
        "ST3250624AS",
        Order::Sequential,
        100,
        4096,
        1,
        8_000_000,
    ),
    case(
        "sequential-64k",
        "ST3250624AS",
        Order::Sequential,
        100,
        65_536,
        1,
        2_000_000,
    ),
    case(
        "sequential-write-64k",
        "ST3250624AS",
        Order::Sequential,
        0,
        65_536,
        1,
        1_000_000,
    ),
    case(
        "random-write-4k",
        "ST3250624AS",
        Order::Random,
        0,
        4096,
        1,
        1_000_000,
    ),
    case(
        "nvme-random-4k-depth-32",
        "nvme-ssd",
        Order::Random,
        100,
        4096,
        32,
        4_000_000,
    ),
];

const fn case(
    name: &'static str,
    model: &'static str,
    order: Order,
    read_percent: u8,
    block: u32,
    depth: u32,
    ops: u64,
) -> Case {
    Case {
        name,
        model,
        order,
        read_percent,
        block,
        depth,
        ops,
    }
}

fn run(case: &Case) {
    let model = catalogue::find(case.model)
        .expect("a model of the catalogue")
        .disk;
    let block = u64::from(case.block);
    let spec = BlockSpec {
        order: case.order,
        read_percent: case.read_percent,
        block: case.block,
        region: Extent::new(0, model.sectors() * 512 / block * block),
        first: 0,
        limit: Limit {
            ops: Some(case.ops),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_end: false,
    };
    let mut best = 0.0_f64;
    let mut simulated = String::new();
    for _ in 0..3 {
        let workload = Blocks::new(spec, Stream::new(1));
        let mut lanes = [Lane {
            workload,
            depth: case.depth,
        }];
        let mut target = DiskTarget::new(Disk::new(&model, 1));
        let begin = Instant::now();
        let before = on_processor(begin);
        let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ())
            .expect("the disk answers");
        let seconds = on_processor(begin) - before;
        best = best.max(case.ops as f64 / seconds / 1e6);
        let elapsed = driven.tallies[0].elapsed().as_secs_f64();
        simulated = format!(
            "{:.2} requests/s, {:.1} MB/s",
            case.ops as f64 / elapsed,
            case.ops as f64 * block as f64 / elapsed / 1e6
        );
    }
    println!(
        "{:28} {best:8.2} M requests/s   (simulated {simulated})",
        case.name
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    for case in CASES {
        if wanted.is_empty() || wanted.iter().any(|w| case.name.contains(w.as_str())) {
            run(case);
        }
    }
}

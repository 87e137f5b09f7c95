//! How many requests a second one core simulates on one disk, driven by the drive loop with all its
//! statistics on.
//!
//! `cargo bench -p raidlab-sim --bench disk`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::time::Span;
use raidlab_core::workload::spec::Order;
use raidlab_sim::catalogue;
use raidlab_sim::disk::seek::SeekSpec;
use raidlab_sim::disk::{Disk, DiskModel, DiskTarget};
use shared::{Arguments, Load};
use std::sync::Arc;

struct Case {
    name: &'static str,
    model: &'static str,
    load: Load,
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
        "measured-random-4k-depth-1",
        "nearline-24tb",
        Order::Random,
        100,
        4096,
        1,
        8_000_000,
    ),
    case(
        "measured-random-4k-depth-5",
        "nearline-24tb",
        Order::Random,
        100,
        4096,
        5,
        8_000_000,
    ),
    case(
        "measured-random-4k-depth-32",
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
        load: Load {
            order,
            read_percent,
            block,
            depth,
            ops,
        },
    }
}

/// Points of the seek curve of a disk whose curve was measured.
const POINTS: u32 = 1000;

/// The disk with its seek curve as an extraction gives it, point by point.
fn measured(model: DiskModel) -> DiskModel {
    let DiskModel::Hdd(model) = model else {
        return model;
    };
    let (mut spec, longest) = (model.spec.clone(), model.geometry.cylinders() - 1);
    let at = |i: u32| 1 + (u64::from(longest - 1) * u64::from(i) / u64::from(POINTS)) as u32;
    let point = |i| (at(i), Span(model.seek.nanos(at(i))));
    spec.seek = SeekSpec::Table((0..=POINTS).map(point).collect());
    DiskModel::Hdd(Arc::new(spec.build().expect("the same disk")))
}

fn main() {
    let arguments = Arguments::read();
    for case in CASES.iter().filter(|case| arguments.want(case.name)) {
        let mut model = catalogue::find(case.model).expect("a model").disk;
        if case.name.starts_with("measured") {
            model = measured(model);
        }
        let target = || DiskTarget::new(Disk::new(&model, 1));
        let figures = case.load.run(&arguments, target, |_| 0);
        let moved = figures.simulated * f64::from(case.load.block) / 1e6;
        println!(
            "{:28} {:8.2} M requests/s   (simulated {:.2} requests/s, {moved:.1} MB/s)",
            case.name, figures.requests, figures.simulated
        );
    }
}

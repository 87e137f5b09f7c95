//! How many requests a second one core simulates on one disk, driven by the drive loop with all its
//! statistics on.
//!
//! `cargo bench -p raidlab-sim --bench disk`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::workload::spec::Order;
use raidlab_sim::catalogue;
use raidlab_sim::disk::{Disk, DiskTarget};
use shared::{Arguments, Load};

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

fn main() {
    let arguments = Arguments::read();
    for case in CASES.iter().filter(|case| arguments.want(case.name)) {
        let model = catalogue::find(case.model).expect("a model").disk;
        let target = || DiskTarget::new(Disk::new(&model, 1));
        let figures = case.load.run(&arguments, target, |_| 0);
        let moved = figures.simulated * f64::from(case.load.block) / 1e6;
        println!(
            "{:28} {:8.2} M requests/s   (simulated {:.2} requests/s, {moved:.1} MB/s)",
            case.name, figures.requests, figures.simulated
        );
    }
}

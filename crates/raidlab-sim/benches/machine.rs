//! How many disk operations a second one core simulates through array, queues and fabric, driven by
//! the drive loop with all its statistics on.
//!
//! `cargo bench -p raidlab-sim --bench machine`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::rng::Stream;
use raidlab_core::units::{Bytes, Extent, SECTOR, Sectors};
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
use raidlab_experiment::hardware::Link;
use raidlab_experiment::kernel::{Kernel, Scheduler};
use raidlab_layout::{Geometry, Spec};
use raidlab_sim::array::{ArrayKind, ArraySpec};
use raidlab_sim::catalogue::{self, controller};
use raidlab_sim::fabric::{ControllerSpec, DiskSlot, FabricSpec};
use raidlab_sim::queue::QueueSpec;
use raidlab_sim::storage::{MemberSpec, Storage, StorageSpec, StorageTarget};
use std::sync::Arc;
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
    layout: &'static str,
    members: usize,
    order: Order,
    read_percent: u8,
    block: u32,
    depth: u32,
    ops: u64,
}

const fn random(
    name: &'static str,
    layout: &'static str,
    members: usize,
    read_percent: u8,
    depth: u32,
    ops: u64,
) -> Case {
    Case {
        name,
        layout,
        members,
        order: Order::Random,
        read_percent,
        block: 4096,
        depth,
        ops,
    }
}

const CASES: &[Case] = &[
    random("single-read-1", "single", 1, 100, 1, 4_000_000),
    random("single-read-5", "single", 1, 100, 5, 4_000_000),
    random("raid0-9-read-5", "raid0", 9, 100, 5, 4_000_000),
    random("raid1-2-mixed-5", "raid1", 2, 67, 5, 2_000_000),
    random("raid10-8-mixed-5", "raid10", 8, 67, 5, 2_000_000),
    random("raid5-9-read-5", "raid5", 9, 100, 5, 4_000_000),
    random("raid5-9-mixed-5", "raid5", 9, 67, 5, 1_000_000),
    random("raid5-9-write-5", "raid5", 9, 0, 5, 1_000_000),
    random("raid5-9-mixed-32", "raid5", 9, 67, 32, 500_000),
    Case {
        order: Order::Sequential,
        block: 1 << 20,
        ..random("raid5-9-sequential-1m", "raid5", 9, 100, 2, 200_000)
    },
];

fn storage(case: &Case) -> Option<Storage> {
    let model = catalogue::find("HP-C3323A").expect("known").disk;
    let sectors = model.sectors() / 128 * 128;
    let kind = if case.layout == "single" {
        ArrayKind::Single(Sectors(sectors))
    } else {
        let spec: Spec = case.layout.parse().expect("a layout");
        let geometry = Geometry {
            sizes: vec![Sectors(sectors); case.members],
            chunk: Bytes::kib(64).to_sectors(),
            outer_chunk: None,
        };
        ArrayKind::Md(spec.build(&geometry).expect("an array"))
    };
    let queue = QueueSpec::of(Kernel::DEFAULT, Some(Scheduler::None), true, 1024, 32);
    let members = case.members as u32;
    let controller = controller::find("ahci").expect("known").controller;
    let spec = StorageSpec {
        fabric: FabricSpec {
            controllers: vec![ControllerSpec {
                name: "ahci".to_owned(),
                model: Arc::new(controller),
                link: Link::Sata,
                bus: None,
                channels: members,
                rate: None,
                cache: None,
                write_back: None,
            }],
            disks: (0..members)
                .map(|i| DiskSlot {
                    name: format!("disk{i}"),
                    model: model.clone(),
                    controller: 0,
                    channel: i,
                })
                .collect(),
            ..FabricSpec::default()
        },
        array: ArraySpec::new(kind),
        members: (0..members)
            .map(|port| MemberSpec {
                port,
                offset: 0,
                queue,
            })
            .collect(),
    };
    Storage::new(&spec, 1).ok()
}

fn run(case: &Case) {
    let block = u64::from(case.block);
    let mut best = (0.0_f64, 0.0_f64);
    let mut simulated = 0.0;
    for _ in 0..3 {
        let Some(storage) = storage(case) else {
            println!("{:24} cannot be built", case.name);
            return;
        };
        let spec = BlockSpec {
            order: case.order,
            read_percent: case.read_percent,
            block: case.block,
            region: Extent::new(0, storage.sectors() * SECTOR / block * block),
            first: 0,
            limit: Limit {
                ops: Some(case.ops),
                time: None,
            },
            arrival: Arrival::Closed,
            flush_every: 0,
            flush_end: false,
        };
        let mut lanes = [Lane {
            workload: Blocks::new(spec, Stream::new(1)),
            depth: case.depth,
        }];
        let mut target = StorageTarget::new(storage);
        let begin = Instant::now();
        let before = on_processor(begin);
        let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ())
            .expect("the array answers");
        let seconds = on_processor(begin) - before;
        let fabric = target.storage().fabric();
        let disk_ops: u64 = (0..case.members as u32)
            .map(|disk| fabric.disk(disk).counters())
            .map(|c| c.reads + c.writes)
            .sum();
        let rate = (
            case.ops as f64 / seconds / 1e6,
            disk_ops as f64 / seconds / 1e6,
        );
        if rate.0 > best.0 {
            best = rate;
        }
        simulated = case.ops as f64 / driven.tallies[0].elapsed().as_secs_f64();
    }
    println!(
        "{:24} {:8.2} M requests/s {:8.2} M disk operations/s   (simulated {simulated:.1} requests/s)",
        case.name, best.0, best.1
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

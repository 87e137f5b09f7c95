//! How many disk operations a second one core simulates through array, queues and fabric, driven by
//! the drive loop with all its statistics on; and for the bare array, its plan on disks alone.
//!
//! `cargo bench -p raidlab-sim --bench machine`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "shared/bare.rs"]
mod bare;
mod shared;

use bare::Bare;
use raidlab_core::units::{Bytes, Sectors};
use raidlab_core::workload::spec::Order;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::kernel::{Kernel, Scheduler};
use raidlab_layout::{Geometry, Layout, Spec};
use raidlab_sim::array::{ArrayKind, ArraySpec};
use raidlab_sim::catalogue::{self, controller};
use raidlab_sim::disk::DiskModel;
use raidlab_sim::fabric::{ControllerSpec, DiskSlot, FabricSpec};
use raidlab_sim::queue::QueueSpec;
use raidlab_sim::storage::{MemberSpec, Storage, StorageSpec, StorageTarget};
use shared::{Arguments, Load};
use std::sync::Arc;

struct Case {
    name: &'static str,
    layout: &'static str,
    members: usize,
    /// The layout's plan on disks, and nothing between.
    bare: bool,
    load: Load,
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
        bare: false,
        load: Load {
            order: Order::Random,
            read_percent,
            block: 4096,
            depth,
            ops,
        },
    }
}

const fn bare(name: &'static str, read_percent: u8, depth: u32) -> Case {
    let case = random(name, "raid5", 9, read_percent, depth, 1_000_000);
    Case { bare: true, ..case }
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
        load: Load {
            order: Order::Sequential,
            read_percent: 100,
            block: 1 << 20,
            depth: 2,
            ops: 200_000,
        },
        ..random("raid5-9-sequential-1m", "raid5", 9, 100, 2, 0)
    },
    bare("bare-9-read-5", 100, 5),
    bare("bare-9-mixed-5", 67, 5),
    bare("bare-9-mixed-32", 67, 32),
];

/// A disk of the time of the peer's figures.
fn model() -> DiskModel {
    catalogue::find("HP-C3323A").expect("known").disk
}

fn layout(case: &Case) -> Layout {
    let spec: Spec = case.layout.parse().expect("a layout");
    let geometry = Geometry {
        sizes: vec![Sectors(model().sectors() / 128 * 128); case.members],
        chunk: Bytes::kib(64).to_sectors(),
        outer_chunk: None,
    };
    spec.build(&geometry).expect("an array")
}

fn storage(case: &Case) -> Storage {
    let model = model();
    let kind = if case.layout == "single" {
        ArrayKind::Single(Sectors(model.sectors() / 128 * 128))
    } else {
        ArrayKind::Md(layout(case))
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
    Storage::new(&spec, 1).expect("a storage")
}

fn main() {
    let arguments = Arguments::read();
    for case in CASES.iter().filter(|case| arguments.want(case.name)) {
        let figures = if case.bare {
            let target = || Bare::new(layout(case), &model());
            case.load.run(&arguments, target, Bare::disk_ops)
        } else {
            let target = || StorageTarget::new(storage(case));
            case.load.run(&arguments, target, |target| {
                let counters = target.device().disks().map(|disk| disk.counters());
                counters.map(|c| c.reads + c.writes).sum()
            })
        };
        println!(
            "{:24} {:8.2} M requests/s {:8.2} M disk operations/s   (simulated {:.1} requests/s)",
            case.name, figures.requests, figures.disk_ops, figures.simulated
        );
    }
}

//! What the fabric adds to a disk operation: the same random reads on bare disks and behind each kind
//! of line and controller, asked for in a closed loop.
//!
//! `cargo bench -p raidlab-sim --bench fabric`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::time::Instant as Virtual;
use raidlab_core::units::{Bytes, Lba, Sectors};
use raidlab_layout::{Geometry, Spec};
use raidlab_sim::block::{Bio, Origin};
use raidlab_sim::catalogue::{self, controller};
use raidlab_sim::disk::{Disk, Request};
use raidlab_sim::fabric::{BusSpec, ControllerSpec, DiskSlot, Fabric, FabricSpec, VolumeSpec};
use std::sync::Arc;
use std::time::Instant;

const DEPTH: u64 = 4;

fn spec(card: &str, disk: &str, channels: &[u32], bus: Option<u64>) -> FabricSpec {
    let model = controller::find(card).expect("of the catalogue").controller;
    let mut spec = FabricSpec::default();
    spec.controllers.push(ControllerSpec {
        name: "card".to_owned(),
        link: model.link,
        model: Arc::new(model),
        bus: bus.map(|_| 0),
        channels: channels.len() as u32,
        rate: None,
        cache: None,
        write_back: None,
    });
    spec.buses.extend(bus.map(|rate| BusSpec {
        name: "pci".to_owned(),
        rate,
        duplex: false,
    }));
    let model = catalogue::find(disk).expect("of the catalogue").disk;
    for (channel, disks) in channels.iter().enumerate() {
        for _ in 0..*disks {
            spec.disks.push(DiskSlot {
                name: format!("disk{}", spec.disks.len()),
                model: model.clone(),
                controller: 0,
                channel: channel as u32,
            });
        }
    }
    spec
}

fn with_volume(mut spec: FabricSpec, layout: &str) -> FabricSpec {
    let layout: Spec = layout.parse().expect("a layout");
    let sizes: Vec<_> = spec
        .disks
        .iter()
        .map(|disk| Sectors(disk.model.sectors() / 128 * 128))
        .collect();
    let geometry = Geometry {
        sizes,
        chunk: Bytes::kib(64).to_sectors(),
        outer_chunk: None,
    };
    spec.volumes.push(VolumeSpec {
        name: "volume".to_owned(),
        disks: (0..spec.disks.len() as u32).collect(),
        layout: layout.build(&geometry).expect("an array"),
        failed: Vec::new(),
        state: raidlab_experiment::setup::ArrayState::Clean,
        rebuild_rate: None,
    });
    spec
}

/// Nanoseconds of real time for each of `total` random reads of 4 KiB on bare disks.
fn bare(disk: &str, disks: usize, total: u64) -> f64 {
    let model = catalogue::find(disk).expect("of the catalogue").disk;
    let mut disks: Vec<Disk> = (0..disks).map(|i| Disk::new(&model, i as u64)).collect();
    let (numbers, sectors) = (Stream::new(3), model.sectors() - 8);
    let request = |i: u64| Request {
        id: i,
        kind: BlockKind::Read,
        lba: Lba(numbers.below(i, sectors)),
        sectors: 8,
        fua: false,
    };
    let begin = Instant::now();
    let mut given = 0;
    for disk in &mut disks {
        for _ in 0..DEPTH {
            disk.submit(Virtual::ZERO, request(given));
            given += 1;
        }
    }
    let mut done = Vec::new();
    while given < total {
        let next = disks.iter().enumerate();
        let next = next.filter_map(|(i, disk)| Some((disk.next_event()?, i)));
        let Some((at, index)) = next.min() else { break };
        disks[index].advance(at, &mut done);
        for _ in done.drain(..) {
            disks[index].submit(at, request(given));
            given += 1;
        }
    }
    begin.elapsed().as_secs_f64() * 1e9 / total as f64
}

fn through(spec: &FabricSpec, kind: BlockKind, sequential: bool, total: u64) -> f64 {
    let mut fabric = Fabric::new(spec, 1).expect("a fabric");
    let (numbers, ports) = (Stream::new(3), fabric.ports().len() as u64);
    let sectors = fabric.ports()[0].sectors - 8;
    let bio = |i: u64| Bio {
        id: i,
        kind,
        lba: Lba(if sequential {
            i * 128 % (sectors - 128)
        } else {
            numbers.below(i, sectors)
        }),
        sectors: if sequential { 128 } else { 8 },
        fua: false,
        origin: Origin::default(),
    };
    let begin = Instant::now();
    let mut given = 0;
    for port in 0..ports {
        for _ in 0..DEPTH {
            fabric.submit(Virtual::ZERO, port as u32, bio(given));
            given += 1;
        }
    }
    let mut done = Vec::new();
    while given < total {
        let Some(now) = fabric.next_event() else {
            break;
        };
        fabric.advance(now, &mut done);
        for end in done.drain(..) {
            fabric.submit(now, end.port, bio(given));
            given += 1;
        }
    }
    begin.elapsed().as_secs_f64() * 1e9 / total as f64
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let best = |run: &dyn Fn() -> f64| (0..3).map(|_| run()).fold(f64::INFINITY, f64::min);
    let (sata, scsi, pata) = ("ST3250624AS", "u160-10k-2002", "ST340015A");
    for (name, disk, disks) in [("bare-sata", sata, 6), ("bare-scsi", scsi, 6)] {
        if is_wanted(name) {
            let nanos = best(&|| bare(disk, disks, 1_000_000));
            println!("{name:28} {nanos:8.1} ns a request");
        }
    }
    let (read, write) = (BlockKind::Read, BlockKind::Write);
    let perc = |layout| with_volume(spec("PERC3/Di", scsi, &[0, 3], None), layout);
    let ite = with_volume(spec("ITE8212", pata, &[2, 2], None), "raid0");
    let cases = [
        ("ahci", spec("ahci", sata, &[1; 6], None), read, false),
        (
            "ahci-on-a-bus",
            spec("ahci", sata, &[1; 6], Some(106_000_000)),
            read,
            false,
        ),
        ("u160", spec("u160", scsi, &[6], None), read, false),
        ("pata", spec("pata", pata, &[2, 2], None), read, false),
        ("firmware-raid0-sequential", ite, read, true),
        ("cache-raid5-sequential-read", perc("raid5"), read, true),
        ("cache-raid5-sequential-write", perc("raid5"), write, true),
        ("cache-raid5-random-write", perc("raid5"), write, false),
    ];
    for (name, spec, kind, sequential) in cases {
        if is_wanted(name) {
            let total = if sequential || kind == write {
                200_000
            } else {
                1_000_000
            };
            let nanos = best(&|| through(&spec, kind, sequential, total));
            println!("{name:28} {nanos:8.1} ns a request");
        }
    }
}

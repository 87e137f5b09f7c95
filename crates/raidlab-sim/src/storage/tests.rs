//! All layers together, without a host.
mod requests;

use super::*;
use crate::array::{ArrayKind, ArraySpec, ParityCost};
use crate::catalogue::{self, controller};
use crate::fabric::{ControllerSpec, DiskSlot, FabricSpec};
use crate::queue::QueueSpec;
use raidlab_core::drive::{DriveOptions, Lane, Tally, drive};
use raidlab_core::op::{BlockKind, OpClass};
use raidlab_core::rng::{Stream, mix};
use raidlab_core::units::{Bytes, Extent, Lba, SECTOR, Sectors};
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
use raidlab_experiment::hardware::Link;
use raidlab_experiment::kernel::{Kernel, Scheduler};
use raidlab_layout::{Geometry, Layout, Spec};
use std::sync::Arc;

/// `members` disks of `model` on SATA ports, or two to a PATA channel.
fn fabric(model: &str, members: usize, link: Link) -> FabricSpec {
    let model = catalogue::find(model).expect("known").disk;
    let kind = if link == Link::Pata { "pata" } else { "ahci" };
    let controller = controller::find(kind).expect("known").controller;
    let shared = if link == Link::Pata { 2 } else { 1 };
    FabricSpec {
        controllers: vec![ControllerSpec {
            name: "card".to_owned(),
            model: Arc::new(controller),
            link,
            bus: None,
            channels: members as u32,
            rate: None,
            cache: None,
            write_back: None,
        }],
        disks: (0..members as u32)
            .map(|i| DiskSlot {
                name: format!("disk{i}"),
                model: model.clone(),
                controller: 0,
                channel: i / shared,
            })
            .collect(),
        ..FabricSpec::default()
    }
}

fn layout(text: &str, members: usize, sectors: u64) -> Layout {
    let spec: Spec = text.parse().expect("a layout");
    spec.build(&Geometry {
        sizes: vec![Sectors(sectors); members],
        chunk: Bytes::kib(64).to_sectors(),
        outer_chunk: None,
    })
    .expect("an array")
}

fn spec(kind: ArrayKind, fabric: FabricSpec, kernel: Kernel) -> StorageSpec {
    let scheduler = if kernel >= Kernel::Linux(5, 0, 0) {
        Scheduler::None
    } else {
        Scheduler::Noop
    };
    let members = (0..fabric.disks.len() as u32).map(|port| MemberSpec {
        port,
        offset: 2048,
        queue: QueueSpec::of(
            kernel,
            Some(scheduler),
            true,
            1024,
            fabric.disks[port as usize].model.tags(),
        ),
    });
    StorageSpec {
        members: members.collect(),
        array: ArraySpec::new(kind),
        fabric,
    }
}

const MODEL: &str = "ST3250624AS";
const MEMBER: u64 = 20 << 21;

fn array(text: &str, members: usize) -> Storage {
    let fabric = fabric(MODEL, members, Link::Sata);
    let kind = if text == "single" {
        ArrayKind::Single(Sectors(MEMBER))
    } else {
        ArrayKind::Md(layout(text, members, MEMBER))
    };
    Storage::new(&spec(kind, fabric, Kernel::DEFAULT), 1).expect("a device")
}

struct Load {
    order: Order,
    read_percent: u8,
    block: u32,
    depth: u32,
    ops: u64,
}

const RANDOM: Load = Load {
    order: Order::Random,
    read_percent: 100,
    block: 4096,
    depth: 1,
    ops: 400,
};

fn run(storage: Storage, load: &Load) -> (Tally, StorageTarget) {
    let block = u64::from(load.block);
    let spec = BlockSpec {
        order: load.order,
        read_percent: load.read_percent,
        block: load.block,
        region: Extent::new(0, storage.sectors() * SECTOR / block * block),
        first: 0,
        limit: Limit {
            ops: Some(load.ops),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: load.read_percent < 100,
    };
    let mut lanes = [Lane {
        workload: Blocks::new(spec, Stream::new(7)),
        depth: load.depth,
    }];
    let mut target = StorageTarget::new(storage);
    let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ());
    let tally = driven.expect("it answers").tallies.remove(0);
    (tally, target)
}

fn rate(tally: &Tally) -> f64 {
    tally.bytes as f64 / tally.elapsed().as_secs_f64()
}

const LAYOUTS: [(&str, usize); 10] = [
    ("single", 1),
    ("linear", 3),
    ("raid0", 3),
    ("raid1", 2),
    ("raid10", 4),
    ("raid10-f2", 4),
    ("raid10-o2", 4),
    ("raid10-n3", 5),
    ("raid1+0 2x2", 4),
    ("raid0+1 2x2", 4),
];

#[test]
fn every_layout_does_all_it_is_asked() {
    for (text, members) in LAYOUTS {
        for read_percent in [100, 50, 0] {
            let load = Load {
                read_percent,
                depth: 8,
                ..RANDOM
            };
            let (tally, target) = run(array(text, members), &load);
            assert_eq!((tally.ops, tally.bytes), (400, 400 * 4096), "{text}");
            assert_eq!(target.device().in_flight(), 0, "{text}");
            let latencies = [OpClass::Read, OpClass::Write].map(|c| {
                let of = tally.latencies(c);
                of.map_or(0, |l| l.sum())
            });
            // Little: the time in the system added over all is what was in flight, added over time.
            let sum = (latencies[0] + latencies[1]) as f64;
            let area = tally.mean_in_flight() * tally.elapsed().0 as f64;
            let flush = tally.latencies(OpClass::Sync).map_or(0, |l| l.sum()) as f64;
            assert!(
                (sum + flush - area).abs() <= area * 0.01,
                "{text} {sum} {area}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let digest = |seed| {
        let fabric = fabric(MODEL, 4, Link::Sata);
        let kind = ArrayKind::Md(layout("raid10-f2", 4, MEMBER));
        let storage = Storage::new(&spec(kind, fabric, Kernel::DEFAULT), seed).expect("a device");
        let load = Load {
            read_percent: 70,
            depth: 5,
            ..RANDOM
        };
        let (tally, _) = run(storage, &load);
        let each = tally.latencies(OpClass::Read).expect("reads").buckets();
        each.fold(tally.to.0, |d, (value, n)| {
            mix(d.rotate_left(5) ^ value ^ n << 40)
        })
    };
    assert_eq!(digest(3), digest(3));
    assert_ne!(digest(3), digest(4), "the angles differ");
}

#[test]
fn far_copies_are_read_as_fast_as_stripes() {
    let load = Load {
        order: Order::Sequential,
        block: 1 << 20,
        depth: 4,
        ops: 600,
        ..RANDOM
    };
    let of = |text, members| rate(&run(array(text, members), &load).0);
    let (one, stripes, far) = (of("single", 1), of("raid0", 4), of("raid10-f2", 4));
    assert!(stripes > 3.0 * one, "{stripes} {one}");
    assert!((far / stripes - 1.0).abs() < 0.03, "{far} {stripes}");
}

#[test]
fn what_a_submitter_collects_is_joined_and_what_it_does_not_is_not() {
    let commands = |bare: bool| {
        let mut storage = array("raid0", 2);
        let bio = Bio {
            id: 0,
            kind: BlockKind::Read,
            lba: Lba(0),
            sectors: 2048,
            fua: false,
            origin: Origin {
                task: 1,
                sync: true,
                ..Default::default()
            },
        };
        if bare {
            storage.submit_bare(Instant::ZERO, bio);
        } else {
            storage.submit_alone(Instant::ZERO, bio);
        }
        let mut ended = Vec::new();
        while let Some(at) = storage.next_event().filter(|_| ended.is_empty()) {
            storage.advance(at, &mut ended);
        }
        assert_eq!(ended.len(), 1);
        storage
            .disks()
            .map(|disk| disk.counters().reads)
            .sum::<u64>()
    };
    // Eight chunks on each of two disks.
    assert_eq!((commands(true), commands(false)), (16, 2));
}

/// A request of any kind, somewhere in the first 256 MiB.
fn some_bio(id: u64, draw: u64, numbers: &Stream) -> Bio {
    Bio {
        id,
        kind: match draw % 16 {
            0 => BlockKind::Flush,
            1..9 => BlockKind::Write,
            _ => BlockKind::Read,
        },
        lba: Lba(numbers.below(2 * id + 1, 1 << 16) * 8),
        sectors: 8 << (draw >> 8 & 7),
        fua: draw >> 16 & 15 == 0,
        origin: Origin {
            task: 1,
            sync: true,
            ..Default::default()
        },
    }
}

/// The array is told of the request and of the waiting at once; the queues must not notice.
#[test]
fn a_request_whose_submitter_waits_is_one_that_is_submitted_and_unplugged() {
    for (text, members) in [("single", 1), ("raid10", 4), ("raid5", 5)] {
        let (mut alone, mut apart) = (array(text, members), array(text, members));
        let (numbers, mut now) = (Stream::new(3), Instant::ZERO);
        let (mut ends, mut same) = (Vec::new(), Vec::new());
        for id in 0..600 {
            let draw = numbers.at(2 * id);
            let bio = some_bio(id, draw, &numbers);
            alone.submit_alone(now, bio);
            apart.give(now, bio);
            apart.unplug(now);
            assert_eq!(alone.next_event(), apart.next_event(), "{text} {id}");
            now += Span(draw >> 40);
            alone.advance(now, &mut ends);
            apart.advance(now, &mut same);
        }
        alone.advance(now + Span::from_secs(1000), &mut ends);
        apart.advance(now + Span::from_secs(1000), &mut same);
        assert_eq!(ends.len(), 600, "{text}");
        assert_eq!(ends, same, "{text}");
    }
}

/// What goes past the lists of those to be asked, and the same by the lists: the same ends at the same times, whoever orders the
/// queues, whether disks share a channel, and whether the array's thread takes time.
#[test]
fn the_short_way_past_the_lists_is_the_long_way() {
    let old = Kernel::Linux(2, 6, 17);
    for (text, members, link, kernel) in [
        ("raid5", 9, Link::Sata, Kernel::DEFAULT),
        ("raid5", 6, Link::Pata, Kernel::DEFAULT),
        ("raid6", 6, Link::Pata, old),
        ("raid10", 4, Link::Pata, Kernel::DEFAULT),
        ("raid1", 2, Link::Sata, old),
        ("raid0", 4, Link::Pata, Kernel::DEFAULT),
    ] {
        for (depth, costs) in [(1, false), (5, false), (5, true), (24, true)] {
            let kind = ArrayKind::Md(layout(text, members, MEMBER));
            let mut spec = spec(kind, fabric(MODEL, members, link), kernel);
            if costs {
                spec.array.cost = ParityCost {
                    xor: 2_000_000_000,
                    syndrome: 1_000_000_000,
                    copy: 3_000_000_000,
                    stripe: 3000,
                    submit: 2000,
                };
            }
            let of = |lists_only| {
                let mut storage = Storage::new(&spec, 1).expect("a device");
                storage.lists_only = lists_only;
                let (mut ends, mut now) = (Vec::new(), Instant::ZERO);
                let numbers = Stream::new(11);
                for id in 0..500 {
                    while id as usize >= ends.len() + depth {
                        now = storage.next_event().expect("something is in flight");
                        storage.advance(now, &mut ends);
                    }
                    let draw = numbers.at(2 * id);
                    storage.submit_alone(now, some_bio(id, draw, &numbers));
                }
                storage.advance(Instant(1 << 50), &mut ends);
                let counters = storage.disks().map(|disk| format!("{:?}", disk.counters()));
                (ends, counters.collect::<Vec<_>>())
            };
            let (short, long) = (of(false), of(true));
            assert_eq!(short.0.len(), 500, "{text} {depth}");
            assert_eq!(short, long, "{text} {depth}");
        }
    }
}

#[test]
fn two_drives_on_one_cable_take_turns() {
    let load = Load {
        order: Order::Sequential,
        block: 256 << 10,
        depth: 4,
        ops: 400,
        ..RANDOM
    };
    let of = |disks: &[u32]| {
        let mut fabric = fabric("ST340015A", 2, Link::Pata);
        for (slot, channel) in fabric.disks.iter_mut().zip(disks) {
            slot.channel = *channel;
        }
        let kind = ArrayKind::Md(layout("raid0", 2, MEMBER));
        let storage = Storage::new(&spec(kind, fabric, Kernel::Linux(2, 6, 16)), 1);
        rate(&run(storage.expect("a device"), &load).0)
    };
    let (apart, together) = (of(&[0, 1]), of(&[0, 0]));
    assert!(apart > 1.2 * together, "{apart} {together}");
}

#[test]
fn a_queue_in_the_drive_raises_random_reads() {
    let of = |depth| {
        let load = Load {
            depth,
            ops: 1500,
            ..RANDOM
        };
        rate(&run(array("single", 1), &load).0)
    };
    let (one, deep) = (of(1), of(32));
    assert!((1.3..3.0).contains(&(deep / one)), "{one} {deep}");
}

#[test]
fn a_failed_disk_of_a_mirror_is_not_missed() {
    let mut storage = array("raid1", 2);
    storage.inject(Instant::ZERO, 0, Fault::Dead);
    let (tally, target) = run(storage, &RANDOM);
    assert_eq!(tally.ops, 400);
    assert_eq!(target.device().fabric().disk(1).counters().reads, 400);
}

#[test]
fn what_does_not_fit_is_refused() {
    let told = |spec: &StorageSpec| Storage::new(spec, 1).expect_err("refused").to_string();
    let kind = ArrayKind::Md(layout("raid0", 2, MEMBER));
    let good = spec(kind, fabric(MODEL, 2, Link::Sata), Kernel::DEFAULT);
    let mut beyond = good.clone();
    beyond.members[1].port = 5;
    assert_eq!(told(&beyond), "member 1 is at port 5, but the fabric has 2");
    let mut twice = good.clone();
    twice.members[1].port = 0;
    assert_eq!(told(&twice), "port 0 has two members");
    let mut few = good.clone();
    few.members.truncate(1);
    assert_eq!(told(&few), "the array has 2 members, but 1 are given");
    let mut small = good;
    small.members[0].offset = 488_397_000;
    assert!(
        told(&small).starts_with("member 0 needs 530340040 sectors of disk0"),
        "{}",
        told(&small)
    );
}

/// Instead of going round in a circle for ever.
#[test]
#[should_panic(expected = "time stands still at 0.0")]
fn an_array_that_does_nothing_is_told() {
    let mut storage = array("raid1", 2);
    storage.stuck = true;
    run(storage, &RANDOM);
}

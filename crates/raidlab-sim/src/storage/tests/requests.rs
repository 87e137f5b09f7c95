//! How large requests are that arrays take and hand on, by kernel, and what file systems hear of it.
use super::*;
use crate::array::{Array, Era};
use crate::host::{Device, Hints};

#[test]
fn parity_arrays_of_new_kernels_take_smaller_requests_than_their_members() {
    let most = |levels: &str, members: usize, kernel: Kernel| {
        let kind = ArrayKind::Md(layout(levels, members, 1 << 20));
        let mut spec = spec(kind, fabric(MODEL, members, Link::Sata), kernel);
        spec.array.era = Era::of(kernel);
        for member in &mut spec.members {
            member.queue.max_sectors = 2560;
        }
        Storage::new(&spec, 1).expect("storage").max_sectors()
    };
    let new = Kernel::Linux(6, 1, 0);
    assert_eq!(most("raid5", 4, new), 2048);
    assert_eq!(most("raid6", 4, new), 2048);
    assert_eq!(most("raid50 2x3", 6, new), 2048);
    assert_eq!(most("raid10-n2", 4, new), 2560);
    assert_eq!(most("raid5", 4, Kernel::Linux(5, 19, 0)), 2560);
}

/// What a file system hears of an array on these disks, whose chunk is so large.
fn told_to_host(levels: &str, members: usize, chunk: u64, kernel: Kernel) -> Hints {
    let parsed: Spec = levels.parse().expect("a layout");
    let geometry = Geometry {
        sizes: vec![Sectors(1 << 20); members],
        chunk: Bytes::kib(chunk).to_sectors(),
        outer_chunk: None,
    };
    let kind = ArrayKind::Md(parsed.build(&geometry).expect("an array"));
    let mut spec = spec(kind, fabric(MODEL, members, Link::Sata), kernel);
    spec.array.era = Era::of(kernel);
    for member in &mut spec.members {
        member.queue = QueueSpec::of(kernel, None, true, 65_536, 31);
    }
    Device::hints(&Storage::new(&spec, 1).expect("storage"))
}

/// `bdi->io_pages` of md, as stated of [`Era::large_calls`](crate::array::Era).
#[test]
fn a_large_call_raises_the_read_ahead_as_the_array_says() {
    let call = |levels, members, kernel| told_to_host(levels, members, 64, kernel).large_call;
    for (levels, members) in [("raid1", 2), ("raid10-n2", 4), ("raid5", 4)] {
        assert_eq!(call(levels, members, Kernel::Linux(5, 6, 0)), 0, "{levels}");
        assert!(call(levels, members, Kernel::Linux(5, 7, 0)) >= 2048);
    }
    for kernel in [Kernel::Linux(4, 10, 0), Kernel::Linux(6, 1, 0)] {
        assert_eq!(call("raid0", 2, kernel), 128);
    }
}

#[test]
fn a_raid10_takes_requests_of_a_large_stripe_since_6_11() {
    let most = |members, minor| {
        told_to_host("raid10-n2", members, 512, Kernel::Linux(6, minor, 0)).max_sectors
    };
    assert_eq!((most(8, 10), most(8, 11)), (2560, 4096));
    assert_eq!((most(4, 11), most(4, 16), most(4, 17)), (2560, 2560, 8192));
    // Of requests of 4 MiB a stripe is none.
    assert_eq!((most(8, 17), most(18, 17)), (8192, 9216));
}

/// What goes to the members of an array when it is given a request of 2 MiB from 160 KiB on, in KiB of the member.
fn parts(levels: &str, kernel: Kernel) -> Vec<(u64, u64)> {
    let parsed: Spec = levels.parse().expect("a layout");
    let geometry = Geometry {
        sizes: vec![Sectors(1 << 20); 4],
        chunk: Bytes::kib(512).to_sectors(),
        outer_chunk: None,
    };
    let mut spec = ArraySpec::new(ArrayKind::Md(parsed.build(&geometry).expect("an array")));
    spec.era = Era::of(kernel);
    let mut array = Array::new(&spec)
        .expect("an array")
        .of_requests(&spec.era, 2560, None);
    array.submit(
        Instant::ZERO,
        Bio {
            id: 1,
            kind: BlockKind::Read,
            lba: Lba(320),
            sectors: 4096,
            fua: false,
            origin: Origin::default(),
        },
    );
    let mut asked = Vec::new();
    array.take(&mut asked);
    asked
        .iter()
        .map(|it| (it.bio.lba.0 / 2, u64::from(it.bio.sectors) / 2))
        .collect()
}

#[test]
fn the_rest_of_what_is_too_large_comes_last_from_4_12_to_6_17() {
    let of = |minor: (u32, u32)| parts("raid10-n2", Kernel::Linux(minor.0 as _, minor.1 as _, 0));
    let first = (160, 352);
    let rest = [(0, 512), (512, 416)];
    let beyond = [(928, 96), (512, 512), (1024, 160)];
    let last = [&[first][..], &beyond, &rest].concat();
    let in_turn = [&[first][..], &rest, &beyond].concat();
    for minor in [(4, 12), (6, 17)] {
        assert_eq!(of(minor), last, "{minor:?}");
    }
    for minor in [(4, 11), (6, 18)] {
        assert_eq!(of(minor), in_turn, "{minor:?}");
    }
    // Raid0 comes to all in turn in any case.
    let stripes = [(160, 352), (0, 512), (0, 512), (0, 512), (512, 160)];
    assert_eq!(parts("raid0", Kernel::Linux(6, 1, 0)), stripes);
}

/// AHCI takes 168 stretches of memory in a request (`AHCI_MAX_SG`), of which a stripe of md and a page of a block device
/// that is written itself are one each: 672 KiB, whatever the kernel lets requests come to.
#[test]
fn what_is_made_of_single_pages_is_no_larger_than_the_driver_takes_pages() {
    let hints = |segments| {
        let kind = ArrayKind::Md(layout("raid5", 4, 1 << 20));
        let mut spec = spec(kind, fabric(MODEL, 4, Link::Sata), Kernel::Linux(4, 4, 0));
        spec.array.era = Era::of(Kernel::Linux(4, 4, 0));
        for member in &mut spec.members {
            member.queue.max_sectors = 2560;
            member.queue.segments = segments;
        }
        Device::hints(&Storage::new(&spec, 1).expect("storage"))
    };
    assert_eq!((hints(168).max_sectors, hints(168).paged), (2560, 1344));
    assert_eq!(hints(u32::MAX).paged, 2560);
}

/// One stretch of writes comes to the queues of all members of a stripe, and of members behind each other to that of one.
#[test]
fn writers_fill_one_queue_of_a_linear_array() {
    let queue = |levels, members| told_to_host(levels, members, 64, Kernel::Linux(2, 6, 16)).queue;
    let one = 128 * 1024;
    assert_eq!((queue("linear", 4), queue("raid0", 4)), (one, 4 * one));
}

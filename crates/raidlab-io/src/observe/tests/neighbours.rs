//! What others ask of the devices of a stack, from the kernel's counters to the flag.
use super::evidence::{Evidence, judge};
use super::neighbours::{come, neighbours};
use super::tree::{Tree, lvm_on_mirror};
use super::{diskstats, resolve};
use raidlab_core::flag::{Flag, FlagKind};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// What a device did in a phase: reads and writes, each as requests and MiB, and flushes.
type Did<'a> = (&'a str, (u64, u64), (u64, u64), u64);

fn difference(devices: &[Did<'_>]) -> diskstats::Difference {
    let none: Vec<Did<'_>> = devices.iter().map(|its| (its.0, NONE, NONE, 0)).collect();
    snapshot(devices).since(&snapshot(&none))
}

fn snapshot(devices: &[Did<'_>]) -> diskstats::Snapshot {
    let lines = devices.iter().enumerate().map(|(minor, device)| {
        let (name, reads, writes, flushes) = device;
        format!(
            "8 {minor} {name} {} 0 {} 0 {} 0 {} 0 0 0 0 0 0 0 0 {flushes} 0\n",
            reads.0,
            reads.1 * MIB / 512,
            writes.0,
            writes.1 * MIB / 512,
        )
    });
    diskstats::Snapshot {
        taken: Instant::now(),
        devices: diskstats::parse(&lines.collect::<String>()).unwrap(),
    }
}

/// What is flagged in a phase on `top` that reads and writes so many MiB.
fn flagged(tree: &Tree, top: &str, (read, written): (u64, u64), devices: &[Did<'_>]) -> Vec<Flag> {
    let stack = resolve::device_stack(&tree.roots, vec![top.to_owned()]).unwrap();
    let beside = neighbours(&tree.roots, &stack);
    let evidence = Evidence {
        claimed_read: read * MIB,
        claimed_written: written * MIB,
        flushed: written > 0,
        wall: Duration::from_secs(10),
        ..Evidence::default()
    };
    judge(&evidence.with_devices(&difference(devices), &stack, &beside))
}

/// Volumes on a mirror of two disks; `vg-other` is a neighbour of the measured `vg-data`.
fn volumes() -> Tree {
    let tree = lvm_on_mirror();
    tree.built_on("dm-1", "md0")
        .attribute("dm-1", "dm/name", "vg-other");
    tree
}

const NONE: (u64, u64) = (0, 0);

#[test]
fn another_volume_of_the_same_disks_is_noticed_by_its_own_counters() {
    let tree = volumes();
    let reading = |other: (u64, u64)| {
        flagged(
            &tree,
            "dm-0",
            (1024, 0),
            &[
                ("dm-0", (1024, 1024), NONE, 0),
                ("dm-1", other, NONE, 0),
                ("md0", (1024 + other.0, 1024 + other.1), NONE, 0),
                ("sda1", (1024 + other.0, 1024 + other.1), NONE, 0),
                ("sda", (1024 + other.0, 1024 + other.1), NONE, 0),
                ("sdb1", NONE, NONE, 0),
                ("sdb", NONE, NONE, 0),
            ],
        )
    };
    assert_eq!(reading(NONE), []);
    assert_eq!(reading((10, 0)), [], "the log of an idle system");
    // A few random reads of 4 KiB: no bytes to speak of, and half of a hard disk's time.
    let [flag] = reading((500, 2)).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: the disk did 500 requests that were not asked for, beside 1024 that were: vg-other used it");
    // Few large ones.
    let [flag] = reading((64, 512)).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: the disk did 64 requests of 512 MiB that were not asked for, beside 1024 that were: vg-other used it");
}

/// Each write comes to both disks, with a bitmap; nothing of that is anybody else's.
#[test]
fn what_an_array_makes_of_its_own_writes_is_no_neighbours() {
    let disk = |name| (name, NONE, (1300, 1100), 200);
    let devices = [
        ("dm-0", NONE, (1024, 1024), 200),
        ("dm-1", NONE, NONE, 0),
        ("md0", NONE, (1024, 1024), 200),
        disk("sda1"),
        disk("sda"),
        disk("sdb1"),
        disk("sdb"),
    ];
    assert_eq!(flagged(&volumes(), "dm-0", (0, 1024), &devices), []);
}

/// Seen with Linux 6.1.192: of a read of 1 MiB that device mapper splits, it counts two of 1 MiB each.
#[test]
fn a_volume_that_counts_twice_is_not_taken_for_two_readers() {
    let devices = |below| {
        [
            ("dm-0", (2048, 2048), NONE, 0),
            ("md0", (2048, below), NONE, 0),
        ]
    };
    assert_eq!(flagged(&volumes(), "dm-0", (1024, 0), &devices(1024)), []);
    let somebody = flagged(&volumes(), "dm-0", (1024, 0), &devices(1600));
    assert_eq!(somebody[0].kind, FlagKind::ForeignIo, "{somebody:?}");
}

/// A loop device's file on a partition with a journal.
fn image() -> Tree {
    let tree = Tree::new();
    tree.device("virtual/block/loop3", "7:3")
        .device("pci0/block/sda", "8:0")
        .file("images/disk", "");
    let file = tree.path("images/disk");
    tree.attribute("loop3", "loop/backing_file", file.to_str().unwrap());
    tree.mounted("8:0", "ext4", "/dev/sda", "rw");
    tree
}

#[test]
fn other_users_of_the_disk_beneath_a_loop_file_are_noticed() {
    let of = |read: u64, written: u64, flushes: u64| {
        flagged(
            &image(),
            "loop3",
            (512, 512),
            &[
                ("loop3", (512, 512), (512, 512), flushes),
                ("sda", (600, read), (600, written), flushes),
            ],
        )
    };
    assert_eq!(of(512, 520, 10), []);
    // A transaction of the journal for each flush is its file system's, and so ours.
    assert_eq!(of(512, 600, 4000), []);
    let [flag] = of(512, 900, 10).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: sda beneath wrote 900 MiB where 512.6 MiB was asked for: something else used it, or earlier data were written back");
    let [flag] = of(800, 512, 10).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: sda beneath read 800 MiB where 512 MiB was asked for: something else used it, or read-ahead fetched more than was used");
}

/// No bytes to speak of, and half of a hard disk's time.
#[test]
fn small_random_reads_beneath_a_loop_file_are_noticed() {
    let tree = image();
    let of = |requests: u64, mib: u64| {
        let devices = [
            ("loop3", (2000, 500), NONE, 0),
            ("sda", (requests, mib), NONE, 0),
        ];
        flagged(&tree, "loop3", (500, 0), &devices)
    };
    // The page cache reads ahead, in requests of its own size.
    assert_eq!(of(2500, 502), []);
    tree.attribute("loop3", "loop/dio", "1");
    assert_eq!(of(2000, 500), []);
    // A file in pieces, or a disk that takes smaller requests: more of them, and no byte more.
    assert_eq!(of(8000, 500), []);
    // Where the file system keeps what it knows of the file.
    assert_eq!(of(2010, 501), []);
    let [flag] = of(2500, 502).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: sda beneath did 2500 requests of reading where 2000 were asked for: something else used it");
}

/// Who opens the physical volume itself has no device of his own that counts.
#[test]
fn small_random_reads_of_a_physical_volume_are_noticed() {
    let tree = lvm_on_mirror();
    let of = |requests: u64, mib: u64| {
        let devices = [
            ("dm-0", (1024, 1024), NONE, 0),
            ("md0", (requests, mib), NONE, 0),
        ];
        flagged(&tree, "dm-0", (1024, 0), &devices)
    };
    assert_eq!(of(1024, 1024), []);
    let [flag] = of(1524, 1026).try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: md0 beneath did 1524 requests of reading where 1024 were asked for: something else used it");
}

/// One that came in mid-phase was not there to be counted before it: all that it was asked for was asked meanwhile.
#[test]
fn a_neighbour_that_comes_in_mid_phase_is_noticed_by_its_own_counters() {
    let tree = lvm_on_mirror();
    let stack = resolve::device_stack(&tree.roots, vec!["dm-0".to_owned()]).unwrap();
    let mut beside = neighbours(&tree.roots, &stack);
    assert_eq!(beside, []);
    let before = snapshot(&[("dm-0", NONE, NONE, 0), ("md0", NONE, NONE, 0)]);
    tree.built_on("dm-1", "md0")
        .attribute("dm-1", "dm/name", "vg-other");
    let after = snapshot(&[
        ("dm-0", (1024, 1024), NONE, 0),
        ("md0", (1524, 1026), NONE, 0),
        ("dm-1", (500, 2), NONE, 0),
    ]);
    come(&mut beside, &tree.roots, &stack);
    let evidence = Evidence {
        claimed_read: 1024 * MIB,
        wall: Duration::from_secs(10),
        ..Evidence::default()
    };
    let difference = after.since(&before);
    let flags = judge(&evidence.with_devices(&difference, &stack, &beside));
    let [flag] = flags.try_into().expect("one doubt");
    insta::assert_snapshot!(flag, @"foreign-io: the disk did 500 requests that were not asked for, beside 1024 that were: vg-other used it");
}

#[test]
fn a_loop_device_beside_that_goes_past_the_page_cache_is_a_neighbour() {
    let tree = image();
    tree.device("virtual/block/loop4", "7:4")
        .attribute("loop4", "loop/dio", "1");
    let file = tree.path("images/disk");
    tree.attribute("loop4", "loop/backing_file", file.to_str().unwrap());
    let devices = [
        ("loop3", (1000, 512), NONE, 0),
        ("loop4", (400, 1), NONE, 0),
        ("sda", (1400, 513), NONE, 0),
    ];
    let flags = flagged(&tree, "loop3", (512, 0), &devices);
    assert_eq!(flags[0].kind, FlagKind::ForeignIo, "{flags:?}");
    tree.attribute("loop4", "loop/dio", "0");
    assert_eq!(flagged(&tree, "loop3", (512, 0), &devices), []);
}

/// A loop device may show a block device, which lies in a file system of memory.
#[test]
fn a_loop_device_over_a_block_device_is_not_in_memory() {
    if !super::tree::is_root("a_loop_device_over_a_block_device_is_not_in_memory") {
        return;
    }
    let roots = super::Roots::system();
    let lower = super::tree::LoopDevice::new(8 << 20);
    let upper = std::process::Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&lower.node)
        .output()
        .unwrap();
    let upper = String::from_utf8(upper.stdout).unwrap().trim().to_owned();
    let name = upper.trim_start_matches("/dev/").to_owned();
    let stack = resolve::device_stack(&roots, vec![name.clone()]);
    super::tree::run("losetup", &["--detach", &upper]);
    let stack = stack.unwrap();
    let device = stack.device(&name).unwrap();
    assert_eq!(
        (&device.below, device.in_memory),
        (&vec![lower.name()], false)
    );
}

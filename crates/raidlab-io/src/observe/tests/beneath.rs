use super::*;
use crate::observe::evidence::judge;
use crate::observe::holes::Holes;
use crate::observe::resolve;
use crate::observe::tree::Tree;
use crate::observe::{Roots, diskstats};
use std::time::Duration;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn told(evidence: &Evidence) -> Vec<(FlagKind, bool)> {
    let flags = judge(evidence);
    flags.iter().map(|flag| (flag.kind, flag.voids)).collect()
}

#[test]
fn half_of_a_file_that_is_a_hole_is_not_the_page_cache() {
    let of = |share: f64| Evidence {
        claimed_read: GIB,
        device_read: Some((GIB as f64 * (1.0 - share)) as u64),
        device_written: Some(0),
        wall: Duration::from_secs(10),
        direct: true,
        holes: Some(Holes {
            share,
            of: "the file".to_owned(),
        }),
        ..Evidence::default()
    };
    assert_eq!(told(&of(0.5)), [(FlagKind::Sparse, true)]);
    assert_eq!(
        judge(&of(0.5))[0].reason,
        "50.0 % of the file are holes or were never written: no disk is read for them"
    );
    assert_eq!(told(&of(1.0)), [(FlagKind::Sparse, true)]);
    assert_eq!(told(&of(0.01)), [(FlagKind::Sparse, false)]);
    assert_eq!(told(&of(0.0001)), []);
    let own = Evidence {
        holes_are_own: true,
        ..of(0.5)
    };
    assert_eq!(told(&own), [(FlagKind::Sparse, false)]);
    // It did not come to them.
    let before_them = Evidence {
        device_read: Some(GIB),
        ..of(0.5)
    };
    assert_eq!(told(&before_them), [(FlagKind::Sparse, false)]);
    // A loop device that goes past the page cache counts what its file has no disk for.
    let beneath = Evidence {
        beneath_read: Some(GIB / 2),
        ..before_them
    };
    assert_eq!(told(&beneath), [(FlagKind::Sparse, true)]);
    // Nothing of it is read.
    let writing = Evidence {
        claimed_read: 0,
        device_read: Some(0),
        ..of(0.5)
    };
    assert_eq!(told(&writing), []);
}

#[test]
fn writes_that_the_page_cache_beneath_loop_devices_took_are_told() {
    let of = |written: u64| Evidence {
        claimed_written: GIB,
        device_read: Some(0),
        device_written: Some(GIB),
        wall: Duration::from_secs(10),
        direct: true,
        // A mirror writes twice as much.
        through_loops: Some(Through {
            asked: 2 * GIB,
            written,
        }),
        ..Evidence::default()
    };
    assert_eq!(told(&of(2 * GIB)), []);
    assert_eq!(told(&of(2 * GIB / 100 * 99)), []);
    assert_eq!(told(&of(215 * MIB)), [(FlagKind::Unflushed, false)]);
    assert_eq!(
        judge(&of(215 * MIB))[0].reason,
        "2 GiB were written through loop devices, and 215 MiB to the disk beneath: the rest is in the page cache of their files"
    );
    // Not even the loop device was asked for them.
    let above = Evidence {
        device_written: Some(0),
        direct: false,
        ..of(0)
    };
    assert_eq!(told(&above), [(FlagKind::Unflushed, false)]);
    assert!(!judge(&above)[0].reason.contains("loop"));
}

/// Two loop devices with files on one disk, of which one goes past the page cache.
#[test]
fn what_went_past_the_page_cache_is_left_out() {
    let tree = Tree::new();
    let image = tree.path("images/0");
    tree.file("images/0", "");
    tree.device("virtual/block/loop0", "7:0")
        .attribute("loop0", "loop/backing_file", image.to_str().expect("UTF-8"))
        .attribute("loop0", "loop/dio", "0")
        .device("virtual/block/loop1", "7:1")
        .attribute("loop1", "loop/backing_file", image.to_str().expect("UTF-8"))
        .attribute("loop1", "loop/dio", "1")
        .device("pci0000:00/block/sda", "8:0")
        .mounted("8:0", "ext4", "/dev/sda", "rw");
    tree.device("virtual/block/md0", "9:0")
        .built_on("md0", "loop0")
        .built_on("md0", "loop1");
    let stack = resolve::device_stack(&tree.roots, vec!["md0".to_owned()]).expect("a stack");
    let through = |stack: &DeviceStack, loops: (u64, u64), disk: u64| {
        let line = |number: &str, name: &str, mib: u64| {
            format!("{number} {name} 0 0 0 0 1 0 {} 0 0 0 0\n", mib * 2048)
        };
        let stats = |times: u64| {
            let all = [
                line("9 0", "md0", 2000 * times),
                line("7 0", "loop0", loops.0 * times),
                line("7 1", "loop1", loops.1 * times),
                line("8 0", "sda", disk * times),
            ];
            tree.file("proc/diskstats", &all.concat());
            diskstats::Snapshot::take(&Roots::under(&tree.path(""))).expect("counters")
        };
        let before = stats(0);
        Through::of(&stats(1).since(&before), stack)
    };
    let of = |asked: u64, written: u64| {
        Some(Through {
            asked: asked * MIB,
            written: written * MIB,
        })
    };
    assert_eq!(through(&stack, (1000, 1000), 1200), of(1000, 200));
    assert_eq!(through(&stack, (1000, 1000), 2000), of(1000, 1000));
    let one = resolve::device_stack(&tree.roots, vec!["loop1".to_owned()]).expect("a stack");
    assert_eq!(through(&one, (1000, 1000), 1000), None);
}

#[test]
fn a_limit_of_the_control_group_that_stopped_the_load_is_told() {
    let of = |times| Evidence {
        claimed_read: GIB,
        device_read: Some(GIB),
        device_written: Some(0),
        wall: Duration::from_secs(10),
        generator: vec![Duration::from_secs(2)],
        throttled: times,
        ..Evidence::default()
    };
    assert_eq!(told(&of(None)), []);
    assert_eq!(told(&of(Some(0))), []);
    assert_eq!(told(&of(Some(99))), [(FlagKind::GeneratorBound, false)]);
    assert!(
        judge(&of(Some(99)))[0]
            .reason
            .ends_with("stopped its threads 99 times")
    );
}

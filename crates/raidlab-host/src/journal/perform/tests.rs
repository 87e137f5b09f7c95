//! Whose arrays are stopped.
use super::whose::{are_ours, lies_on, not_ours};
use super::{Run, arrays, is_mounted_there};
use crate::identity::Identity;
use crate::journal::{Process, Undone};
use raidlab_io::observe::{DeviceNumber, Roots};
use std::fs;
use std::path::Path;

/// Tables of the kernel with an array on these disks, whose nodes cannot be opened.
fn tables(disks: &[&str]) -> (tempfile::TempDir, Roots) {
    let directory = tempfile::tempdir().expect("a directory");
    let roots = Roots::under(directory.path());
    for (number, disk) in disks.iter().enumerate() {
        let block = roots.block(disk);
        fs::create_dir_all(&block).expect("made");
        fs::write(block.join("dev"), format!("8:{number}\n")).expect("written");
        fs::write(block.join("size"), "2048\n").expect("written");
        fs::create_dir_all(roots.block("md9").join("slaves").join(disk)).expect("made");
    }
    fs::create_dir_all(roots.block("md9").join("md")).expect("made");
    fs::create_dir_all(roots.sys.join("block/md9")).expect("made");
    fs::create_dir_all(roots.proc.join("self")).expect("made");
    for file in ["self/mountinfo", "swaps", "mdstat"] {
        fs::write(roots.proc.join(file), "").expect("written");
    }
    (directory, roots)
}

fn disk(name: &str, minor: u32) -> Identity {
    Identity {
        name: name.to_owned(),
        number: DeviceNumber { major: 8, minor },
        size: 1 << 20,
        serial: None,
        backing: None,
    }
}

#[test]
fn a_disk_that_cannot_be_opened_is_still_the_one_that_it_was() {
    let (_kept, roots) = tables(&["sda", "sdb"]);
    let members = [disk("sda", 0), disk("sdb", 1)];
    assert!(lies_on(&roots, "md9", &members));
    assert_eq!(not_ours(&roots, &members, "md9"), None);
    assert!(!lies_on(&roots, "md9", &[disk("sda", 0), disk("sdb", 7)]));
}

#[test]
fn an_array_that_is_on_a_foreign_disk_too_is_told_and_not_forgotten() {
    let (_kept, roots) = tables(&["sda", "sdz"]);
    let members = [disk("sda", 0)];
    let run = Run {
        process: Process::own(),
        uuids: Vec::new(),
        gone: false,
        stopped: Vec::new(),
        kept: Vec::new(),
        members: Vec::new(),
        mounted: false,
        partly: false,
        clears: false,
        stay: Vec::new(),
    };
    let stop = |members: &[Identity]| arrays::stop(&roots, (members, "md9"), &run, true);
    let left = stop(&members).expect("looked at");
    let told =
        matches!(&left, Undone::Left(why) if why.contains("sdz") && why.contains("mdadm --stop"));
    assert!(told, "{left:?}");
    // Another array of the same name is nobody's business.
    let left = stop(&[disk("sdc", 9)]).expect("looked at");
    assert_eq!(left, Undone::Nothing);
}

/// A scrub is asked for by a place, and what is there when nothing is mounted is someone else's file system.
#[test]
fn a_scrub_is_ended_where_the_file_system_is_mounted_alone() {
    let (_kept, roots) = tables(&["sda"]);
    let (point, uuid) = (Path::new("/state/mnt"), "5a5a-5a");
    let mounted = |point: &str, kind: &str| {
        let line = format!("30 1 0:40 / {point} rw - {kind} /dev/sda rw\n");
        fs::write(roots.proc.join("self/mountinfo"), line).expect("written");
        is_mounted_there(&roots, Path::new("/state/mnt"), uuid)
    };
    assert!(!mounted("/state/mnt", "btrfs"), "of another uuid");
    fs::create_dir_all(roots.sys.join("fs/btrfs").join(uuid)).expect("made");
    assert!(mounted("/state/mnt", "btrfs"));
    assert!(!mounted("/state", "btrfs"), "what the directory is on");
    assert!(!mounted("/state/mnt", "ext4"));
    assert!(!is_mounted_there(&roots, point, "other"));
}

#[test]
fn a_member_that_is_gone_is_nobodys() {
    let leaves = |names: &str| {
        names
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ours = |leaf: &str| leaf.starts_with("ours");
    let there = |leaf: &str| !leaf.ends_with("gone");
    assert!(are_ours(&leaves("ours1 ours2"), there, ours));
    assert!(are_ours(&leaves("ours1 sdb-gone"), there, ours));
    assert!(!are_ours(&leaves("ours1 theirs"), there, ours));
    assert!(!are_ours(&leaves("sda-gone sdb-gone"), there, ours));
    assert!(!are_ours(&[], there, ours));
}

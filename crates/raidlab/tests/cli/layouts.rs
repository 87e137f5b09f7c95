//! `raidlab layout` of arrays of btrfs, as a user reads it.
use crate::lab::Lab;

#[test]
fn unequal_disks_of_btrfs_are_told_by_their_chunks() {
    let lab = Lab::new();
    let told = |line: &str| lab.run(&format!("layout {line}")).done().out;
    insta::assert_snapshot!(told(
        "btrfs-raid1 --member-size 8TB,8TB,4TB,2TB --read-errors 1e15"
    ));
    insta::assert_snapshot!(told("btrfs-raid10 --member-size 8TB,8TB,4TB,2TB"));
    insta::assert_snapshot!(told("btrfs-raid1c3 --member-size 8TB,8TB,4TB,2TB"));
    insta::assert_snapshot!(told(
        "btrfs-raid6 -n 5 --member-size 8TB --read-errors 1e15"
    ));
    insta::assert_snapshot!(told("btrfs-single --member-size 8TB,2TB"));
    insta::assert_snapshot!(told("btrfs-raid0 -n 2 --member-size 8TB"));
    insta::assert_snapshot!(told("btrfs-raid1 -n 60 --member-size 24TB"));
}

#[test]
fn the_same_is_told_as_json() {
    let lab = Lab::new();
    let json = lab
        .run("layout btrfs-raid5 --member-size 8TB,8TB,2TB --read-errors 1e15 --json")
        .done();
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("JSON"));
}

/// As many members as show that they take turns, and a note of that.
#[test]
fn a_level_of_btrfs_is_told_for_members_enough() {
    let lab = Lab::new();
    for (level, members) in [
        ("single", 3),
        ("raid0", 3),
        ("raid1", 3),
        ("raid1c3", 4),
        ("raid1c4", 5),
        ("raid10", 4),
        ("raid5", 3),
        ("raid6", 4),
    ] {
        let told = lab.run(&format!("layout btrfs-{level}")).done();
        let first = format!("btrfs-{level}, {members} members\n");
        assert!(told.out.starts_with(&first), "{}", told.out);
        told.says(&[&format!("told for {members}")]);
    }
}

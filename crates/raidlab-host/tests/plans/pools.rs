//! Arrays that their file system makes: btrfs and ZFS.
use super::{checked, options, plans, told, verified};

#[test]
fn arrays_of_btrfs() {
    let rest = r#"
profile = "bonnie"
[array]
engine = "btrfs"
[factors]
layout = ["linear", "raid0", "raid1", "raid10", "raid5", "raid6"]
"#;
    insta::assert_snapshot!(told(&plans(4, rest, &options())));
    let rest = r#"
profile = "bonnie"
[array]
engine = "btrfs"
[factors]
array = [
  { name = "the first", layout = "raid1", failed = [0] },
  { name = "the last", layout = "raid10", failed = [3] },
]
"#;
    let verify = verified();
    insta::assert_snapshot!("degraded_btrfs", told(&plans(4, rest, &verify)));
    let rest = r#"
profile = "bonnie"
[array]
engine = "btrfs"
allocated = "1GiB"
[factors]
array = [
  { name = "one", layout = "raid1", state = "rebuilding 1" },
  { name = "two", layout = "raid1c3", state = "rebuilding 2", failed = [1, 3] },
  { name = "parity", layout = "raid5", state = "rebuilding 1" },
  { name = "the first", layout = "raid10", state = "rebuilding 1", failed = [0] },
]
"#;
    insta::assert_snapshot!("rebuilding_btrfs", told(&plans(4, rest, &verify)));
}

#[test]
fn pools_of_zfs() {
    let rest = r#"
profile = "bonnie"
[array]
layout = "zfs-mirror"
[host]
memory = "1GiB"
[factors]
ashift = [9, 12]
"#;
    insta::assert_snapshot!("zfs", told(&plans(2, rest, &options())));
    let rest = r#"
profile = "bonnie"
[array]
record-size = "1MiB"
[factors]
layout = ["zfs-stripe", "raidz1", "raidz2", "zfs-mirror 2x2"]
"#;
    insta::assert_snapshot!("zfs_pools", told(&plans(4, rest, &options())));
    let rest = r#"
profile = "bonnie"
[host]
memory = "1GiB"
[factors]
array = [
  { name = "the first", layout = "zfs-mirror", members = 2, ashift = 12, failed = [0] },
  { name = "two", layout = "raidz2", failed = [1, 3] },
]
"#;
    insta::assert_snapshot!("degraded_pools", told(&plans(4, rest, &verified())));
    let rest = r#"
profile = "bonnie"
[array]
allocated = "1GiB"
[factors]
array = [
  { name = "one", layout = "raidz1", state = "rebuilding 1", ashift = 13 },
  { name = "two", layout = "zfs-mirror 2x2", state = "rebuilding 2", failed = [1, 2] },
]
"#;
    let rebuilding = plans(4, rest, &verified());
    insta::assert_snapshot!("rebuilding_pools", told(&rebuilding));
    let (_, plan) = &rebuilding[1];
    let undone = plan.as_ref().expect("a plan").undo_lines();
    insta::assert_snapshot!("rebuilding_pools_undone", undone.join("\n"));
}

#[test]
fn arrays_of_btrfs_and_pools_are_scrubbed_with_redundancy_or_without() {
    let verify = verified();
    let head = "[profile]\nname = \"bonnie\"\nsize = \"1GiB\"\n";
    let btrfs = "[array]\nengine = \"btrfs\"\n[filesystem]\nkind = \"btrfs\"\n[factors]\nlayout = [\"raid0\", \"raid1\"]\n";
    let pools = "[factors]\nlayout = [\"zfs-stripe\", \"zfs-mirror\", \"raidz1\"]\n";
    let mut all = checked(&plans(3, &format!("{head}{btrfs}"), &verify));
    all.push_str(&checked(&plans(3, &format!("{head}{pools}"), &verify)));
    insta::assert_snapshot!(all);
}

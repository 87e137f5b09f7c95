//! Arrays that cannot be: levels, members, chunks, pools, states, and what they stand on.
use super::{beside, known, parse, wrong};

told!(
    numbers_behind_levels_that_are_not_nested,
    beside("[factors]\nlayout = [\"raid0 2\", \"raid5 2x3\", \"raid50 2\", \"raid50 2x1000\"]\n")
);

told!(
    raid5_of_one_member,
    beside("[factors]\nlayout = [\"raid5\", \"raid6\"]\nmembers = [1, 3]\n")
);

told!(
    chunks_that_md_refuses,
    beside("[factors]\nlayout = [\"raid0\", \"raid5\"]\nchunk = [0, \"48KiB\", \"1000B\"]\n")
);

told!(
    chunks_that_mdadm_refuses_for_raid0,
    beside(
        "[factors]\nlayout = [\"raid0\", \"raid10\"]\nchunk = [\"512B\", \"3KiB\", \"4608B\", \"48KiB\"]\n"
    )
);

told!(
    a_chunk_of_nothing_beside_what_is_wrong_with_the_layout,
    beside("[array]\nchunk = \"0B\"\n[factors]\nlayout = [\"raid5x\", \"raid0\"]\nmembers = [9]\n")
);

told!(
    pools_that_are_filled_to_the_brim,
    beside(
        "[array]\nstate = \"rebuilding 1\"\n[factors]\nlayout = [\"zfs-mirror 2x2\", \"raidz1\"]\n\
         allocated = [\"66TiB\", \"100TiB\"]\n"
    )
);

told!(
    records_that_zfs_does_not_have,
    beside(
        "[array]\nlayout = \"raidz1\"\n[factors]\nrecord-size = [0, \"100KiB\", \"32MiB\", \"1MiB\"]\n"
    )
);

told!(
    more_members_than_disks,
    beside("[array]\nlayout = \"raid5\"\n[factors]\nmembers = [3, 6]\n")
);

told!(
    more_members_than_ports,
    r#"title = "t"
disks = { model = "ST340015A", count = 4 }
profile = "bonnie"
[topology.controllers.card]
kind = "pata"
[factors]
layout = ["raid0"]
channels = [[1, 1], [3, 0], [1, 1, 1]]
"#
);

told!(
    more_disks_than_ports,
    r#"title = "t"
profile = "bonnie"
[disks.fast]
model = "ST3000DM001"
count = 3
[disks.old]
model = "ST340015A"
[disks.lost]
model = "nearline-24tb"
[topology.controllers.card]
kind = "pata"
disks = [["fast"]]
[topology.controllers.board]
kind = "sata"
bus = "pci"
disks = ["old", "fast1", "nobody"]
[array]
layout = "raid0"
"#
);

told!(
    unknown_models,
    r#"title = "t"
profile = "bonnie"
[disks.a]
model = "ST340015B"
[disks.b]
model = "QuantumBigfoot"
override = { rpm = 0, cash = "2MiB", sector-physical = "4096" , seek-track = "20ms", seek-average = "8ms" }
[topology.controllers.c]
kind = "hardware-raid"
model = "PERC3"
[array]
layout = "raid1"
"#
);

told!(
    states_that_cannot_be,
    beside(
        r#"
[factors]
row = [
  { name = "a", layout = "raid0", state = "degraded" },
  { name = "b", layout = "raid5", state = "degraded 2" },
  { name = "c", layout = "raid0", state = "resyncing" },
  { name = "d", layout = "raid10", state = "degraded 2", failed = [0, 1] },
  { name = "e", layout = "raid5", state = "broken" },
  { name = "f", layout = "raid5", state = "degraded 1", failed = [7] },
  { name = "g", layout = "raid5", state = "degarded 1" },
  { name = "h", layout = "raid5", state = "resyncing 1" },
  { name = "i", layout = "raid0", state = "initial-sync" },
  { name = "j", layout = "raid5", state = "inital-sync" },
]
"#
    )
);

told!(
    schedulers_and_file_systems_of_another_era,
    beside(
        r#"
[array]
layout = "raid5"
[factors]
row = [
  { name = "a", kernel = "2.6.16", scheduler = "mq-deadline" },
  { name = "b", kernel = "6.1", scheduler = "cfq" },
  { name = "c", kernel = "windows-2000", scheduler = "cfq" },
  { name = "d", kernel = "windows-2000", filesystem = "ext4" },
  { name = "e", filesystem = "zfs" },
  { name = "f", filesystem = "none" },
  { name = "g", kernel = "six" },
]
"#
    )
);

told!(
    settings_without_effect,
    beside(
        r#"
[array]
layout = "raid1"
chunk = "64KiB"
ashift = 12
stripe-cache = 256
[profile.dd]
count = 10
"#
    )
    .replace("profile = \"bonnie\"\n", "")
    .replace("[profile.dd]", "[profile]\nname = \"bonnie\"\n[profile.dd]")
);

/// Settings of a profile and of the host that others of the cell leave nothing to say.
const IDLE: &str = r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }

[profile]
name = "random"
arrival = "poisson"
read-percent = 100
fsync = 8

[host]
read-ahead = "1MiB"

[array]
layout = "raid10"

[factors]
dirty-limit = ["10%", "20%"]
"#;

told!(settings_that_others_leave_nothing_to_say, IDLE);

/// btrfs and ZFS have a read-ahead of their own.
#[test]
fn the_devices_read_ahead_is_nothing_to_btrfs_and_zfs() {
    let of = |rest: &str| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 2 }}\nprofile = \"bonnie\"\n[host]\nread-ahead = \"1MiB\"\n{rest}"
        );
        parse(&text, "lab.toml", &known()).map_err(|report| report.to_string())
    };
    for rest in [
        "[array]\nlayout = \"raid1\"\n[filesystem]\nkind = \"btrfs\"",
        "[array]\nlayout = \"raid1\"\nengine = \"btrfs\"",
        "[array]\nlayout = \"zfs-mirror\"",
    ] {
        let told = of(rest).unwrap_err();
        assert!(told.contains("'read-ahead' makes no difference"), "{told}");
    }
    of("[array]\nlayout = \"raid1\"\n[factors]\nfilesystem = [\"ext4\", \"btrfs\"]").unwrap();
}

#[test]
fn they_stand_where_any_cell_has_a_use_for_them() {
    let text = IDLE
        .replace("read-percent = 100\n", "")
        .replace(
            "[factors]",
            "[factors]\nrate = [0, 100]\ndirect = [true, false]",
        )
        .replace("dirty-limit = [", "# ");
    parse(&text, "lab.toml", &known()).unwrap();
}

told!(
    bits_of_a_bitmap_that_cannot_be,
    beside(
        r#"
[array]
layout = "raid6"
bitmap = "internal"
[factors]
bitmap-chunk = ["3KiB", "2KiB", "48MiB", "4KiB"]
"#
    )
);

told!(
    bits_without_a_bitmap,
    beside(
        r#"
[array]
layout = "raid6"
bitmap-chunk = "64MiB"
"#
    )
);

told!(
    threads_that_a_kernel_does_not_have,
    beside(
        r#"
[host]
kernel = "3.10"
[array]
layout = "raid6"
[factors]
group-threads = [0, 4, 300]
"#
    )
);

told!(
    layouts_that_are_none,
    beside(
        r#"
[factors]
layout = ["raid50", "zfs-raidz", "raid5-xx", "RAID 10", "mirror", "stripe", "raid10-n9", "raidz4", "zfs-mirror 3x2"]
queue_depth = [1, 32]
"#
    )
);

told!(
    capacities_that_are_no_whole_sectors,
    r#"title = "t"
profile = "random"
[array]
layout = "raid0"
[disks]
a = { model = "nearline-24tb", count = 1, override = { capacity = "10MB" } }
b = { model = "nearline-24tb", count = 1, override = { capacity = "100B" } }
c = { model = "nearline-24tb", count = 1, override = { capacity = "1536KiB", sector-logical = "4KiB", sector-physical = "4KiB" } }
d = { model = "nearline-24tb", count = 1, override = { capacity = "1537KiB", sector-logical = "4KiB", sector-physical = "4KiB" } }
"#
);

told!(
    direct_calls_smaller_than_the_disks_sectors,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 2, override = { sector-logical = "4KiB" } }
filesystem = "none"
[profile]
name = "random"
direct = true
block = "512B"
[array]
layout = "raid1"
"#
);

// Real ones refused them, and the model took them for direct.
told!(
    direct_calls_smaller_than_pages_on_btrfs,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 2 }
filesystem = "btrfs"
[profile]
name = "random"
size = "1GiB"
call-size = "3KiB"
[array]
layout = "raid1"
engine = "btrfs"
"#
);

// Both were predicted as if the disks took sectors of 512 bytes.
told!(
    units_of_a_pool_smaller_than_the_disks_sectors,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 2, override = { sector-logical = "4KiB" } }
profile = "random"
[array]
layout = "zfs-mirror"
[factors]
ashift = [9, 11, 12, 13]
"#
);

told!(
    blocks_smaller_than_the_disks_sectors,
    r#"title = "t"
profile = "random"
[disks.old]
model = "nearline-24tb"
[disks.native]
model = "nearline-24tb"
override = { sector-logical = "4KiB" }
[array]
layout = "raid1"
[filesystem]
kind = "ext4"
block = "1KiB"
"#
);

// A power of two is no remedy where the disks have no room for it.
told!(
    a_chunk_larger_than_the_disks,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 6 }
profile = "random"
[array]
layout = "raid6"
chunk = "100TiB"
"#
);

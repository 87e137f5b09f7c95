//! Wrong files, and what a user reads about them. All that is wrong is told in one pass.
mod common;

use common::known;
use raidlab_experiment::{Diagnostics, parse};

fn wrong(text: &str) -> Diagnostics {
    match parse(text, "lab.toml", &known()) {
        Ok(_) => panic!("this must be refused:\n{text}"),
        Err(diagnostics) => diagnostics,
    }
}

/// Four disks and a profile; the rest is the test's.
fn beside(rest: &str) -> String {
    format!(
        "title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 4 }}\nprofile = \"bonnie\"\n{rest}"
    )
}

macro_rules! told {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            let diagnostics = wrong(&$text);
            insta::assert_snapshot!(stringify!($name), diagnostics.render(false));
        }
    };
}

told!(
    numbers_behind_levels_that_are_not_nested,
    beside("[factors]\nlayout = [\"raid0 2\", \"raid5 2x3\", \"raid50 2\", \"raid50 2x1000\"]\n")
);

told!(
    misspelt_keys_and_values,
    r#"title = "t"
disks = { modle = "nearline-24tb", count = 4 }
profile = "bonie"

[host]
scheduler = "deadlin"
memmory = "4GiB"

[facters]
layout = ["raid5"]

[factors]
layuot = ["raid5"]
chunk = ["64KiB"]
"#
);

told!(
    a_profile_by_name_and_as_a_section,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"

[profile]
time = "10s"

[factors]
layout = ["raid5"]
"#
);

told!(
    words_of_other_tools,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"

[factors]
level = ["raid5", "raid10"]
disks = [3, 4]
iodepth = [1, 32]
elevator = ["none"]

[array]
chunk_size = "64KiB"
fs = "ext4"

[design]
runs = 3
"#
);

told!(
    lists_of_levels_outside_of_factors,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
array = { layout = "raid5" }

[profile]
name = "random"
depth = [1, 32]
block = ["4KiB", "64KiB"]
"#
);

told!(
    ambiguous_and_unitless_sizes,
    beside(
        r#"
[array]
layout = "raid5"

[host]
memory = 4096
read-ahead = "128 parsecs"

[factors]
chunk = ["64K", "512KiB", 4096, "-4KiB", "0.3B"]
"#
    )
);

told!(
    negative_numbers,
    r#"title = "t"
disks = { model = "nearline-24tb", count = -4, override = { rpm = -7200, seek-average = "-8ms", outer-rate = "-1MB/s" } }
profile = "bonnie"
[array]
layout = "raid5"
chunk = -1
[design]
repeats = -3
margin = -0.1
"#
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
    baselines_that_match_no_cell,
    beside(
        r#"
[factors]
layout = ["raid5", "raid10"]
chunk = ["64KiB", "128KiB"]
[design]
baseline = { layout = "raid6", chunk = "64KiB" }
repeats = 2
aggregate = "trimmed"
[expected]
study = "pata-raid"
[report]
tables = ["figures", "ratio"]
charts = [{ kind = "lines", y = "block-writ", lines = "member" }, { kind = "bars", x = "chunk" }]
"#
    )
);

told!(
    a_baseline_by_a_label_that_is_none,
    beside("[factors]\nlayout = [\"raid5\", \"raid10\"]\n[design]\nbaseline = \"raid 5\"\n")
);

told!(
    factors_that_no_profile_takes,
    beside(
        r#"
[array]
layout = "raid5"
[factors]
queue-depth = [1, 32]
threads = [1, 4]
colour = ["red"]
bonnie.sekers = [1, 2]
"#
    )
);

told!(
    duplicate_cells,
    beside("[factors]\nlayout = [\"raid1\", \"raid5\"]\nchunk = [\"64KiB\", \"128KiB\"]\n")
);

told!(
    levels_twice_and_factors_that_fight,
    beside(
        r#"
[array]
chunk = "4KiB"
[factors]
layout = ["raid5", "RAID5"]
chunk = ["64KiB", "65536B"]
rows = [{ name = "a", layout = "raid0" }, { layout = "raid1" }]
none = []
one = "raid5"
"#
    )
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

told!(
    profile_settings_out_of_range,
    r#"title = "t"
disks = { model = "ST340015A", count = 2 }
[profile]
name = "bonnie"
size = "1TiB"
chunk = "1MB/s"
seeks = 2
fast = "perhaps"
[array]
layout = "raid0"
"#
);

told!(
    exclusions_that_leave_nothing_or_match_nothing,
    beside(
        r#"
[factors]
layout = ["raid5", "raid6"]
chunk = ["64KiB", "128KiB"]
[[only]]
layout = "raid5"
[[exclude]]
layout = "raid10"
[[exclude]]
chunk = "64KiB"
levle = 1
[[exclude]]
[[exclude]]
layout = "raid5"
"#
    )
);

told!(
    not_toml,
    "title = \"t\"\ndisks = { model = \"nearline-24tb\" count = 4 }\nprofile = bonnie\n[factors\nlayout = [\"raid5\"]\n[host]\nscheduler = \"deadlin\"\n"
);

told!(an_empty_file, "");

told!(
    another_kind_of_file,
    "# Notes\n\nOne has\na line\nafter\nanother\nof which\nnone is\nwhat an\nexperiment\nsays.\n"
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
    values_of_other_types,
    r#"title = 5
disks = [{ model = "nearline-24tb", count = 4 }]
profile = ["random", "bonnie"]
factors = 3
design = { repeats = "3", seed = 99999999999999999999, margin = 2, order = "random" }
[array]
layout = ["raid5", "raid6"]
failed = "0"
[host]
write-cache = "maybe"
[topology]
controllers = { card = "pata" }
[report]
tables = "figures"
charts = ["pie", { kind = "lines" }]
"#
);

told!(
    yes_and_no_and_numbers_where_something_else_is_wanted,
    r#"title = true
question = ["what?"]
disks = { model = 5, count = 1.5, labels = [1], override = { outer-rate = 200, seek-average = true, cache = true, inner-rate = [1] } }
profile = { name = true, depth = 2.5, block = 4.5, time = 1.5 }
filesystem = false
design = { repeats = true, seed = 1.5, order = true, margin = true, verify = 1 }
[array]
layout = 5
chunk = true
metadata = 1.2
bitmap = false
state = 1
members = true
[host]
kernel = 6.1
memory = [1]
scheduler = { name = "none" }
cores = "two"
[[exclude]]
layout = 5
"#
);

told!(
    tables_and_lists_where_something_else_is_wanted,
    r#"title = { text = "t" }
disks = "nearline-24tb"
profile = 5
topology = ["pata"]
[array]
layout = { level = "raid5" }
chunk = ["64KiB"]
stripe-cache = [256]
sync-speed-max = 200
write-cache = [true]
kernel = true
"#
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
    settings_out_of_their_range,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 2000 }
[profile]
name = "random"
queue-depth = -1
jobs = 2000
read-percent = 101
rate = true
[factors]
layout = ["raid5"]
stripe-cache = [-1, 16]
"#
);

#[test]
fn colour_adds_nothing_but_colour_and_lines() {
    let diagnostics = wrong(&beside("[array]\nlayout = \"raid55\"\n"));
    let (plain, coloured) = (diagnostics.render(false), diagnostics.render(true));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains('\u{1b}'));
    assert!(coloured.contains("raid55"));
}

#[test]
fn one_line_a_problem_for_other_programs() {
    let diagnostics = wrong(&beside("[array]\nlayout = \"raid0\"\nchunk = \"64K\"\n"));
    insta::assert_snapshot!(diagnostics, @r#"lab.toml:6:9: the size '64K' is ambiguous (write "64KiB" (65536 bytes) or "64kB" (64000 bytes))"#);
    assert_eq!(diagnostics.items().len(), 1);
}

#[test]
fn a_flood_of_problems_is_cut() {
    let levels: Vec<String> = (0..300).map(|i| format!("\"nonsense{i}\"")).collect();
    let text = beside(&format!("[factors]\nscheduler = [{}]\n", levels.join(",")));
    let rendered = wrong(&text).render(false);
    assert!(
        rendered.ends_with("errors in lab.toml, the first 100 are shown\n"),
        "{rendered}"
    );
}

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

told!(
    keys_in_another_section,
    beside(
        "layout = \"raid5\"\n\n[host]\nfile-system = \"ext4\"\nstripe_cache = 256\nrepeat = 3\n[array]\nrepeats = 3\n"
    )
);

/// The keys that a table knows, as it tells them when there is one that it does not know.
fn known_in(section: &str) -> Vec<String> {
    let told = wrong(&beside(&format!("[{section}]\nzzz = 1\n"))).render(false);
    let at = told.find("unknown key 'zzz'").expect("it is unknown");
    let list = told[at..].split("known: ").nth(1).expect("a list");
    let list = list.lines().next().expect("a line");
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn where_a_key_is_said_to_belong_it_is_known() {
    let sections = ["array", "host", "design", "report", "filesystem"];
    let known: Vec<_> = sections.map(|section| (section, known_in(section))).into();
    let mut told = 0;
    for key in known.iter().flat_map(|(_, keys)| keys) {
        let all = wrong(&beside(&format!("{key} = 1\n"))).render(false);
        let Some(home) = all.split("belongs in [").nth(1) else {
            continue;
        };
        let home = home.split(']').next().expect("a section");
        let (_, keys) = known
            .iter()
            .find(|(name, _)| *name == home)
            .expect("a section");
        assert!(keys.contains(key), "{key} in {home}");
        told += 1;
    }
    assert!(told >= 30, "{told}");
}

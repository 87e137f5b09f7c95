//! Values of other types, and out of their range.
use super::{beside, wrong};

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

told!(
    limits_that_md_does_not_keep,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"
[array]
layout = "raid5"
state = "rebuilding 1"
[factors]
sync-speed-max = ["100KiB/s", "512B/s", "2000KiB/s"]
"#
);

told!(
    rates_that_no_controller_has,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"
[topology.controllers.card]
kind = "hardware-raid"
channels = 4
[array]
layout = "raid5"
state = "rebuilding 1"
[factors]
rebuild-rate = [0, 101, "30%"]
"#
);

// Without a title there is no experiment: dropping the key would be the next error.
told!(
    texts_that_say_nothing,
    r#"title = ""
question = " "
disks = { model = "", count = 4 }
[array]
layout = ""
chunk = ""
[profile]
name = "random"
"#
);

told!(
    limits_of_what_may_be_dirty,
    beside(
        r#"
[host]
dirty-limit = ["20%"]
dirty-background = 10
dirty-expire = "5ms"
dirty-writeback = "100 days"
[factors]
layout = ["raid5"]
"#
    )
);

told!(
    limits_that_a_kernel_does_not_take,
    beside(
        r#"
[array]
layout = "raid5"
[factors]
kernel = ["2.6.28", "2.4.20", "windows-2000", "6.1"]
dirty-limit = ["64MiB", "4KiB", "0%", "101%", "-5%", "5x", "10"]
dirty-expire = ["1000h", "30s"]
"#
    )
);

told!(
    limits_that_zfs_does_not_have,
    beside(
        r#"
[host]
dirty-limit = "5%"
dirty-writeback = "0s"
[array]
layout = "zfs-mirror"
"#
    )
);

/// What a message quotes is read by somebody.
#[test]
fn a_value_as_long_as_a_book_is_not_quoted_whole() {
    let text = beside("[profile.random]\nblock = \"X\"\n").replace("profile = \"bonnie\"\n", "");
    let text = text.replace("[profile.random]", "[profile]\nname = \"random\"");
    let told = wrong(&text.replace('X', &"9".repeat(1_000_000)));
    assert!(told.render(false).len() < 5000);
    assert!(told.render(false).contains("999…999"));
}

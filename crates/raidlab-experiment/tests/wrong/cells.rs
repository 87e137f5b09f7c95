//! Factors, cells and baselines that do not fit together.
use super::{beside, wrong};

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

//! Tools and file systems in the guest: fio, bonnie++, XFS, btrfs; and a step that fails, with the kernel's word on it.
use crate::guest::{has, left, may, run};
use crate::lab::Lab;
use serde_json::Value;

/// All in one guest.
const CELLS: &str = r#"title = "Tools and file systems"
disks = { model = "ST3250624AS", count = 3 }

[array]
member-size = "96MiB"
chunk = "64KiB"

[host]
memory = "384MiB"

[factors]
cell = [
  { name = "random", layout = "raid0", members = 2, filesystem = "none", profile = "random", random = { depth = 4, total = "1MiB" } },
  { name = "mixed", layout = "single", members = 1, filesystem = "none", profile = "random", random = { depth = 1, total = "1MiB", read-percent = 50 } },
  { name = "xfs", layout = "raid5", member-size = "384MiB", filesystem = "xfs", profile = "sequential", sequential = { total = "16MiB", size = "16MiB" } },
  { name = "btrfs", engine = "btrfs", layout = "raid1", members = 2, member-size = "128MiB", filesystem = "btrfs", profile = "sequential", sequential = { total = "16MiB", size = "16MiB" } },
  { name = "bonnie", layout = "raid1", members = 2, filesystem = "ext4", profile = "bonnie", bonnie = { size = "48MiB", chunk = "64KiB", files = 0, fast = true, direct = true } },
  { name = "broken", layout = "single", members = 1, filesystem = "ext4", mount-options = "nonsense", profile = "sequential", sequential = { total = "1MiB", size = "1MiB" } },
]

[design]
repeats = 1
"#;

/// What is kept of a cell: its trial and its environment.
fn of<'s>(shown: &'s Value, label: &str) -> (&'s Value, String) {
    let trials = shown["trials"].as_array().expect("trials");
    let trial = trials.iter().find(|trial| trial["cell"]["label"] == label);
    let trial = trial.unwrap_or_else(|| panic!("no {label} in {trials:#?}"));
    let id = trial["environment"].as_str().expect("an environment");
    (trial, shown["environments"][id].to_string())
}

/// Its phases by name, with their figures in bytes or operations a second.
fn phases(trial: &Value) -> Vec<(&str, Option<f64>)> {
    assert_eq!(trial["status"], "complete", "{trial:#}");
    let phases = trial["phases"].as_array().expect("phases");
    let one = |phase: &'_ Value| phase["rate"].as_f64();
    let all = phases.iter();
    all.map(|phase| (phase["phase"].as_str().expect("a name"), one(phase)))
        .collect()
}

#[track_caller]
fn assert_figures(trial: &Value, tool: &str, wanted: &[(&str, std::ops::Range<f64>)]) {
    assert_eq!(trial["provenance"]["tool"], tool, "{trial:#}");
    let found = phases(trial);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "{trial:#}"
    );
    for ((name, rate), (_, range)) in found.iter().zip(wanted) {
        let good = rate.is_some_and(|rate| range.contains(&rate));
        assert!(good, "{name}: {rate:?}, not in {range:?}");
    }
}

#[test]
fn tools_and_file_systems_work_in_one_guest_and_a_failed_step_has_the_kernels_word() {
    let name = "tools_and_file_systems_work_in_one_guest_and_a_failed_step_has_the_kernels_word";
    let programs = ["fio", "bonnie++", "mkfs.xfs", "mkfs.btrfs"];
    if !may(name) || !programs.iter().all(|program| has(name, program)) {
        return;
    }
    let lab = Lab::new();
    lab.write("tools.toml", CELLS);
    let ran = run(&lab, "run tools.toml --on vm --driver tool").code(5);
    ran.says(&[
        "1 of 6 trials failed",
        "the kernel said meanwhile:",
        "nonsense",
    ]);
    let shown = lab.run("show --json").done().json();

    // This disk reads at 67 MB/s at its beginning, and takes 8.5 ms for a seek and 4.2 ms for half a revolution; what is
    // written here may stay in its cache.
    let (trial, kept) = of(&shown, "random");
    assert_figures(
        trial,
        "fio",
        &[("read", 0.3e6..3e6), ("write", 0.3e6..600e6)],
    );
    assert!(
        kept.contains("--ioengine=io_uring") && kept.contains("--filename=/dev/md"),
        "{kept}"
    );
    let (trial, kept) = of(&shown, "mixed");
    assert_figures(
        trial,
        "fio",
        &[
            ("mixed", 0.2e6..4e6),
            ("mixed: read", 0.1e6..2e6),
            ("mixed: write", 0.1e6..2e6),
        ],
    );
    assert!(kept.contains("--ioengine=psync"), "{kept}");

    // 64 KiB on each of two data members, by XFS's own word: 16 and 32 blocks.
    let (trial, kept) = of(&shown, "xfs");
    assert_figures(
        trial,
        "fio",
        &[("read", 20e6..140e6), ("write", 5e6..600e6)],
    );
    for part in ["su=65536,sw=2", "sunit=16", "swidth=32 blks"] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
    let (trial, kept) = of(&shown, "btrfs");
    assert_figures(
        trial,
        "fio",
        &[("read", 20e6..140e6), ("write", 5e6..600e6)],
    );
    assert!(
        kept.contains("Data, RAID1") && kept.contains("Metadata, RAID1"),
        "{kept}"
    );

    // What it reads may be in memory still, of which bonnie++ then says that it was too fast.
    let (trial, kept) = of(&shown, "bonnie");
    assert_eq!(trial["provenance"]["tool"], "bonnie++", "{trial:#}");
    let found = phases(trial);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["block-write", "rewrite", "block-read", "seeks"]);
    let figure = |n: usize| found[n].1.expect("a figure");
    assert!((5e6..300e6).contains(&figure(0)), "{found:?}");
    assert!((2e6..100e6).contains(&figure(1)), "{found:?}");
    assert!(figure(3) > 20.0, "{found:?}");
    assert!(
        kept.contains("mkfs.ext4") && kept.contains("Filesystem UUID"),
        "{kept}"
    );

    // It was mounted in vain: what the kernel said of it is told with the failure, in a line, for it stands in tables; and
    // all of it is kept.
    let (trial, kept) = of(&shown, "broken");
    assert_eq!(trial["status"], "failed", "{trial:#}");
    let reason = trial["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("mount -t ext4")
            && reason.contains("meanwhile: ext4: Unknown parameter")
            && !reason.contains('\n'),
        "{reason}"
    );
    assert!(
        kept.contains("\"kernel_log\":[") && kept.contains("nonsense"),
        "{kept}"
    );
    assert!(left(&lab).is_empty());
}

//! The command lines for every level, variant, state and file system, as a user reads them in `raidlab plan`.
#[path = "plans/pools.rs"]
mod pools;

use raidlab_core::units::Bytes;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::{Cell, Experiment, Known, KnownDisk, parse};
use raidlab_host::identity::Identity;
use raidlab_host::provision::{
    InitialSync, MemberDevice, Options, PlanError, ProvisionPlan, digest, plan,
};
use raidlab_io::observe::DeviceNumber;
use std::fmt::Write as _;
use std::path::PathBuf;

const SIZE: u64 = 8 << 30;

type Planned = Vec<(String, Result<ProvisionPlan, PlanError>)>;

fn member(number: usize) -> MemberDevice {
    let letter = char::from(b'b' + number as u8);
    let name = format!("sd{letter}");
    MemberDevice {
        path: PathBuf::from(format!("/dev/{name}")),
        identity: Identity {
            name,
            number: DeviceNumber {
                major: 8,
                minor: 16 * (number as u32 + 1),
            },
            size: SIZE,
            serial: Some(format!("SERIAL{number}")),
            backing: None,
        },
        schedulers: ["none", "mq-deadline", "kyber", "bfq"]
            .map(str::to_owned)
            .to_vec(),
        write_cache: Some(true),
        ata: true,
        has_queue_depth: true,
        throttles: true,
    }
}

fn options() -> Options {
    Options {
        mount: PathBuf::from("/run/raidlab-mnt"),
        arrays: vec![119, 118, 117, 116],
        initial_sync: InitialSync::Real,
        adds_to_ddf: false,
        verify: false,
        modelled: false,
    }
}

/// The same, with what is checked after the phases.
fn verified() -> Options {
    Options {
        verify: true,
        ..options()
    }
}

/// An experiment on so many disks.
fn experiment(disks: usize, rest: &str) -> Experiment {
    let text = format!("title = \"t\"\ndisks = {{ model = \"disk\", count = {disks} }}\n{rest}");
    let known = Known {
        disks: vec![KnownDisk {
            name: "disk",
            capacity: Some(Bytes(SIZE)),
            link: Some(Link::Sata),
        }],
        controllers: Vec::new(),
        studies: Vec::new(),
        ..Known::default()
    };
    parse(&text, "t.toml", &known).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// Plans of all cells of an experiment on so many disks.
fn plans(disks: usize, rest: &str, options: &Options) -> Planned {
    let experiment = experiment(disks, rest);
    let one = |cell: &Cell| {
        let members: Vec<MemberDevice> = (0..cell.setup.array.members.len()).map(member).collect();
        (cell.label.clone(), plan(&cell.setup, &members, options))
    };
    experiment.cells.iter().map(one).collect()
}

fn told(plans: &Planned) -> String {
    let mut out = String::new();
    for (label, plan) in plans {
        let _ = writeln!(out, "{label}:");
        match plan {
            Err(error) => {
                let _ = writeln!(out, "  cannot: {error}");
            }
            Ok(plan) => {
                // The members' own settings are in a test of their own.
                let lines = plan.lines().into_iter();
                for line in lines.filter(|line| !line.contains("queue/scheduler")) {
                    let _ = writeln!(out, "  {line}");
                }
                for note in &plan.notes {
                    let _ = writeln!(out, "  but: {note}");
                }
            }
        }
    }
    out
}

const RAW: &str = "filesystem = \"none\"\nprofile = \"random\"\n";

#[test]
fn every_level_of_md() {
    let plain = r#"
[factors]
layout = ["linear", "raid1"]
"#;
    let striped = r#"
[array]
chunk = "64KiB"
[factors]
layout = ["raid0", "raid0-original", "raid4", "raid5", "raid5-la", "raid5-ra", "raid5-rs", "raid6",
  "raid6-ddf-N-continue", "raid10", "raid10-n3", "raid10-f2", "raid10-o2", "raid10-f3"]
"#;
    let both = [plain, striped].map(|rest| told(&plans(4, &format!("{RAW}{rest}"), &options())));
    insta::assert_snapshot!(both.concat());
}

/// mdadm's own choice is the order of kernels before 3.14, and raidlab's `raid0` is that of kernels since: with members
/// of different sizes a kernel put sectors elsewhere than the layout said.
#[test]
fn striping_over_unequal_members_says_in_which_order() {
    let rest = format!(
        "{RAW}[array]\nchunk = \"64KiB\"\n[factors]\nlayout = [\"raid0\", \"raid0-original\"]\n"
    );
    let experiment = experiment(3, &rest);
    let lines = |cell: usize, unequal: u64| {
        let mut members: Vec<MemberDevice> = (0..3).map(member).collect();
        members[1].identity.size += unequal;
        let setup = &experiment.cells[cell].setup;
        let planned = plan(setup, &members, &options()).unwrap_or_else(|error| panic!("{error}"));
        planned.lines().join("\n")
    };
    assert!(lines(0, 1 << 30).contains("--layout=alternate"));
    assert!(lines(1, 1 << 30).contains("--layout=original"));
    assert!(!lines(0, 0).contains("--layout"), "there is but one order");
}

#[test]
fn arrays_of_arrays() {
    let rest = r#"
[array]
chunk = "64KiB"
[factors]
layout = ["raid10 2x2", "raid01 2x2", "raid50 2x3", "raid60 2x4"]
"#;
    insta::assert_snapshot!(told(&plans(8, &format!("{RAW}{rest}"), &options())));
}

#[test]
fn metadata_bitmap_and_size() {
    let rest = r#"
[array]
layout = "raid5-la"
member-size = "2GiB"
[factors]
form = [
  { name = "old", metadata = "0.90" },
  { name = "end", metadata = "1.0", bitmap = "internal", bitmap-chunk = "16MiB" },
  { name = "intel", metadata = "imsm" },
  { name = "ddf", metadata = "ddf" },
]
"#;
    insta::assert_snapshot!(told(&plans(4, &format!("{RAW}{rest}"), &options())));
}

#[test]
fn states() {
    let rest = r#"
[array]
layout = "raid6"
stripe-cache = 4096
group-threads = 4
[factors]
state = ["clean", "degraded 2", "resyncing", "rebuilding 1"]
"#;
    insta::assert_snapshot!(told(&plans(5, &format!("{RAW}{rest}"), &options())));
    let rest = r#"
[factors]
layout = ["raid1", "raid4", "raid5", "raid6", "raid10"]
state = ["initial-sync", "resyncing"]
"#;
    insta::assert_snapshot!(
        "arrays_that_are_not_yet_synced",
        told(&plans(4, &format!("{RAW}{rest}"), &options()))
    );
    let rest = r#"
[array]
layout = "raid01 2x2"
state = "rebuilding 1"
sync-speed-max = "10MiB/s"
"#;
    let half = told(&plans(4, &format!("{RAW}{rest}"), &options()));
    insta::assert_snapshot!("a_failed_half_of_a_mirror", half);
}

/// A container lets go of disks and takes them in; its volumes know them by the roles that they were given.
#[test]
fn states_of_bios_raids() {
    let rest = r#"
[array]
layout = "raid5-la"
member-size = "2GiB"
failed = [2]
[factors]
metadata = ["imsm", "ddf"]
state = ["degraded 1", "rebuilding 1"]
"#;
    insta::assert_snapshot!(told(&plans(4, &format!("{RAW}{rest}"), &options())));
    let newer = Options {
        adds_to_ddf: true,
        ..options()
    };
    let rest = rest.replace("\"imsm\", \"ddf\"", "\"ddf\"");
    let rest = rest.replace("\"degraded 1\", \"rebuilding 1\"", "\"rebuilding 1\"");
    insta::assert_snapshot!(
        "ddf_rebuilt_by_a_newer_mdadm",
        told(&plans(4, &format!("{RAW}{rest}"), &newer))
    );
}

#[test]
fn members_that_are_all_zero_agree_already() {
    let options = Options {
        initial_sync: InitialSync::AssumeClean,
        ..options()
    };
    let rest = "[factors]\nlayout = [\"raid0\", \"raid1\", \"raid5\"]\n";
    insta::assert_snapshot!(told(&plans(3, &format!("{RAW}{rest}"), &options)));
}

/// What is checked of each cell after its phases, and what is said of those that are not.
fn checked(plans: &Planned) -> String {
    let mut out = String::new();
    for (label, plan) in plans {
        let _ = writeln!(out, "{label}:");
        let plan = plan.as_ref().expect("a plan");
        for line in plan.check_lines() {
            let _ = writeln!(out, "  {line}");
        }
        for note in &plan.notes {
            let _ = writeln!(out, "  note: {note}");
        }
    }
    out
}

#[test]
fn what_has_redundancy_left_is_checked_and_what_has_not_is_told() {
    let verify = verified();
    let on = |disks, rest: &str| plans(disks, &format!("{RAW}{rest}"), &verify);
    let mut all = String::new();
    let layouts = "[factors]\nlayout = [\"single\", \"linear\", \"raid0\", \"raid1\", \"raid10\", \"raid5\", \"raid50 2x3\"]\n";
    all.push_str(&checked(&on(6, layouts)));
    let states = "[factors]\nlayout = [\"raid1\", \"raid5\", \"raid6\", \"raid10\"]\nstate = [\"degraded 1\", \
                  \"initial-sync\", \"resyncing\", \"rebuilding 1\"]\n";
    all.push_str(&checked(&on(4, states)));
    let spent = "[factors]\nlayout = [\"raid6\", \"raid10\"]\nstate = [\"degraded 2\"]\n[array]\nfailed = [0, 2]\n";
    all.push_str(&checked(&on(4, spent)));
    let pair = "[array]\nlayout = \"raid1\"\nstate = \"degraded 1\"\n";
    all.push_str(&checked(&on(2, pair)));
    let volume = "[array]\nlayout = \"raid5-la\"\nmetadata = \"imsm\"\nmember-size = \"2GiB\"\n";
    all.push_str(&checked(&on(3, volume)));
    insta::assert_snapshot!(all);
    // Unless it is asked for, nothing is checked and nothing is said.
    for (label, plan) in plans(6, &format!("{RAW}{layouts}"), &options()) {
        let plan = plan.expect("a plan");
        assert!(plan.checks.is_empty() && plan.notes.is_empty(), "{label}");
    }
}

#[test]
fn another_check_is_another_digest() {
    let verify = verified();
    let rest = format!("{RAW}[array]\nlayout = \"raid5\"\n");
    let digest_of = |options: &Options| {
        let planned = plans(3, &rest, options);
        digest(planned.iter().filter_map(|(_, plan)| plan.as_ref().ok()))
    };
    assert_ne!(digest_of(&verify), digest_of(&options()));
}

#[test]
fn a_cell_may_ask_for_the_initial_sync_itself() {
    let assumed = Options {
        initial_sync: InitialSync::AssumeClean,
        ..options()
    };
    let rest = "[factors]\nlayout = [\"raid1\", \"raid5\"]\nstate = [\"clean\", \"degraded 1\"]\n";
    let asked = format!("{RAW}[array]\ninitial-sync = true\n{rest}");
    let waits = |plans: Planned| {
        let told = told(&plans);
        assert!(!told.contains("--assume-clean"), "{told}");
        told
    };
    let told_by_cell = waits(plans(3, &asked, &assumed));
    let told_by_options = waits(plans(3, &format!("{RAW}{rest}"), &options()));
    assert_eq!(told_by_cell, told_by_options);
}

#[test]
fn file_systems_know_the_stripes() {
    let rest = r#"
profile = "bonnie"
[factors]
layout = ["raid5", "raid1", "raid10-f2"]
filesystem = ["ext2", "ext3", "ext4", "xfs", "btrfs"]
"#;
    insta::assert_snapshot!(told(&plans(4, rest, &options())));
    let rest = r#"
profile = "bonnie"
[array]
layout = "single"
[filesystem]
kind = "ext3"
block = "1KiB"
journal = "64MiB"
mode = "writeback"
mount-options = "noatime,barrier=0"
"#;
    insta::assert_snapshot!(
        "options_of_a_file_system",
        told(&plans(1, rest, &options()))
    );
}

#[test]
fn queues_and_caches() {
    let rest = r#"
[profile]
name = "random"
direct = false
[array]
layout = "raid0"
[host]
scheduler = "bfq"
read-ahead = "1MiB"
request-size = "128KiB"
queue-requests = 16
write-cache = false
drive-queue = 1
"#;
    let planned = plans(2, rest, &options());
    let plan = planned[0].1.as_ref().expect("a plan");
    insta::assert_snapshot!(plan.lines().join("\n"));
    insta::assert_snapshot!("what_undoes_it", plan.undo_lines().join("\n"));
}

#[test]
fn schedulers_of_old_kernels_have_heirs_or_are_refused() {
    let rest = r#"
profile = "random"
[array]
layout = "raid0"
[host]
kernel = "2.6.16"
[factors]
scheduler = ["noop", "deadline", "cfq", "anticipatory"]
"#;
    let planned = plans(2, rest, &options());
    let told: Vec<String> = planned
        .iter()
        .map(|(label, plan)| match plan {
            Ok(plan) => format!("{label}: {} ({})", plan.lines()[0], plan.notes.join("; ")),
            Err(error) => format!("{label}: {error}"),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_digest_is_of_devices_and_commands() {
    let rest = format!("{RAW}[factors]\nlayout = [\"raid0\", \"raid1\"]\n");
    let all = |options: &Options| -> Vec<ProvisionPlan> {
        let planned = plans(2, &rest, options).into_iter();
        planned.map(|(_, plan)| plan.expect("a plan")).collect()
    };
    let (one, same) = (all(&options()), all(&options()));
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(one[0].digest(), one[1].digest());
    let numbers = Options {
        arrays: vec![90, 91],
        ..options()
    };
    assert_ne!(digest(&one), digest(&all(&numbers)), "other commands");
    let mut other = one.clone();
    other[0].members[0].identity.serial = Some("ANOTHER".to_owned());
    assert_ne!(
        digest(&one),
        digest(&other),
        "another disk of the same name"
    );
}

/// Shares and sizes take each other's place; the settings are the last thing before the trial, and are set back first.
#[test]
fn limits_of_what_may_be_dirty() {
    let rest = r#"
profile = "bonnie"
[host]
dirty-expire = "3s"
dirty-writeback = "0s"
[array]
layout = "raid1"
[factors]
dirty-limit = ["64MiB", "5%"]
dirty-background = ["4MiB", "0%"]
"#;
    let planned = plans(2, rest, &options());
    insta::assert_snapshot!(told(&planned));
    let plan = planned[0].1.as_ref().expect("a plan");
    assert!(plan.sets_system());
    insta::assert_snapshot!("limits_undone", plan.undo_lines().join("\n"));
    let plain = plans(
        2,
        "profile = \"bonnie\"\n[array]\nlayout = \"raid1\"\n",
        &options(),
    );
    assert!(!plain[0].1.as_ref().expect("a plan").sets_system());
}

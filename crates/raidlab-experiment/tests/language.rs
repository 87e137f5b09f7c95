//! What files come to: defaults, members, states, overruling.
mod common;

use common::known;
use raidlab_core::units::Bytes;
use raidlab_experiment::experiment::{Baseline, TableKind};
use raidlab_experiment::kernel::{FilesystemKind, Scheduler};
use raidlab_experiment::setup::{ArrayState, Engine};
use raidlab_experiment::{Experiment, Known, parse};

fn sound(text: &str) -> Experiment {
    parse(text, "lab.toml", &known()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn refused(text: &str) -> String {
    let error = parse(text, "lab.toml", &known()).expect_err("this must be refused");
    error.to_string()
}

const HEAD: &str = "title = \"t\"\nprofile = \"random\"\n";

fn disks(model: &str, count: u32, rest: &str) -> String {
    format!("{HEAD}disks = {{ model = \"{model}\", count = {count} }}\n{rest}")
}

#[test]
fn one_disk_needs_no_layout() {
    let experiment = sound(&disks("nearline-24tb", 1, ""));
    let [cell] = experiment.cells.as_slice() else {
        panic!("one cell");
    };
    let array = &cell.setup.array;
    assert_eq!(array.layout.to_string(), "single");
    assert_eq!((array.engine, array.chunk), (Engine::None, None));
    assert_eq!(array.capacity, Some(Bytes(24_000_000_000_000)));
    assert_eq!(array.capacity_disks, "1");
}

#[test]
fn defaults_follow_the_kernel() {
    let text = |kernel: &str| {
        let rest = format!("[array]\nlayout = \"raid5\"\n[host]\nkernel = \"{kernel}\"\n");
        disks("ST3250624AS", 3, &rest).replace("random", "bonnie")
    };
    let of = |kernel: &str| {
        let setup = sound(&text(kernel)).cells[0].setup.clone();
        let filesystem = setup.filesystem.map(|f| f.kind);
        (setup.array.chunk, setup.host.scheduler, filesystem)
    };
    let old = (
        Some(Bytes::kib(64)),
        Some(Scheduler::Anticipatory),
        Some(FilesystemKind::Ext3),
    );
    assert_eq!(of("2.6.16"), old);
    let new = (
        Some(Bytes::kib(512)),
        Some(Scheduler::MqDeadline),
        Some(FilesystemKind::Ext4),
    );
    assert_eq!(of("6.1"), new);
    let told = refused(&text("windows-2000"));
    assert!(told.contains("windows-2000 has no md"), "{told}");
    let card = "[topology.controllers.card]\nkind = \"hardware-raid\"\n";
    let windows = sound(&(text("windows-2000") + card)).cells[0].setup.clone();
    assert_eq!(windows.host.scheduler, None);
    assert_eq!(windows.array.engine, Engine::Controller);
    let filesystem = windows.filesystem.map(|f| f.kind);
    assert_eq!(filesystem, Some(FilesystemKind::Ntfs));
}

#[test]
fn nvme_has_no_scheduler_of_itself() {
    let experiment = sound(&disks("nvme-ssd", 2, "[array]\nlayout = \"raid1\"\n"));
    assert_eq!(
        experiment.cells[0].setup.host.scheduler,
        Some(Scheduler::None)
    );
}

#[test]
fn zfs_sets_noop_on_whole_disks_while_there_is_noop() {
    let of = |kernel: &str, layout: &str, host: &str| {
        let rest = format!("[array]\n{layout}\n[host]\nkernel = \"{kernel}\"\n{host}\n");
        sound(&disks("ST3000DM001", 2, &rest)).cells[0]
            .setup
            .host
            .scheduler
    };
    let mirror = "layout = \"zfs-mirror\"";
    assert_eq!(of("2.6.32", mirror, ""), Some(Scheduler::Noop));
    assert_eq!(of("4.19", mirror, ""), Some(Scheduler::Noop));
    assert_eq!(of("6.1", mirror, ""), Some(Scheduler::MqDeadline));
    // What the user sets stays, as does what others have, and partitions.
    let cfq = Some(Scheduler::Cfq);
    assert_eq!(of("2.6.32", mirror, "scheduler = \"cfq\""), cfq);
    assert_eq!(of("2.6.32", "layout = \"raid1\"", ""), cfq);
    let part = format!("{mirror}\nmember-size = \"100GiB\"");
    assert_eq!(of("2.6.32", &part, ""), cfq);
}

#[test]
fn members_begin_where_it_is_said() {
    let of = |array: &str| {
        sound(&disks("ST3000DM001", 2, &format!("[array]\n{array}\n"))).cells[0]
            .setup
            .array
            .clone()
    };
    let whole = of("layout = \"raid0\"").capacity.expect("it is known");
    let later = of("layout = \"raid0\"\nmember-start = \"1000GiB\"");
    assert_eq!(later.capacity, Some(Bytes(whole.0 - (2000 << 30))));
    assert_eq!(later.used_of(Bytes::gib(1001)), Bytes::gib(1));
    let both = of("layout = \"raid0\"\nmember-size = \"1GiB\"\nmember-start = \"31.5KiB\"");
    assert_eq!(both.capacity, Some(Bytes::gib(2)));
    assert_eq!(both.used_of(Bytes::gib(1001)), Bytes::gib(1));
    // A partition of ZFS is no whole disk.
    let rest =
        "[array]\nlayout = \"zfs-mirror\"\nmember-start = \"1GiB\"\n[host]\nkernel = \"2.6.32\"\n";
    let host = &sound(&disks("ST3000DM001", 2, rest)).cells[0].setup.host;
    assert_eq!(host.scheduler, Some(Scheduler::Cfq));
}

#[test]
fn members_that_cannot_begin_there_are_refused() {
    let told = |array: &str| refused(&disks("ST3000DM001", 2, &format!("[array]\n{array}\n")));
    for (array, parts) in [
        (
            "layout = \"raid1\"\nmember-start = \"1001 B\"",
            &["1001 B is no whole number of the 512 B sectors"][..],
        ),
        (
            "layout = \"raid1\"\nmember-start = \"3TiB\"",
            &["'member-start' of 3 TiB is not on disk0, which has"],
        ),
        (
            "layout = \"raid1\"\nmember-start = \"2000GiB\"\nmember-size = \"1000GiB\"",
            &["'member-size' of 1000 GiB from there on goes 206."],
        ),
    ] {
        let told = told(array);
        assert_eq!(told.lines().count(), parts.len(), "{told}");
        for part in parts {
            assert!(told.contains(part), "no '{part}' in {told}");
        }
    }
}

#[test]
fn models_are_known_in_any_case() {
    let experiment = sound(&disks("st340015a", 2, "[array]\nlayout = \"raid0\"\n"));
    assert_eq!(experiment.disks[0].model, "ST340015A");
}

#[test]
fn without_a_catalogue_every_model_is_unknown() {
    let error = parse(&disks("x", 1, ""), "lab.toml", &Known::default());
    let error = error.expect_err("no model is known").to_string();
    assert_eq!(
        error,
        "lab.toml:3:19: unknown disk model 'x' (none is declared)"
    );
}

#[test]
fn members_by_number_group_name_and_channel() {
    let text = |members: &str| {
        format!(
            "{HEAD}[disks.a]\nmodel = \"ST340015A\"\ncount = 2\n[disks.b]\nmodel = \"ST340015A\"\ncount = 2\n\
             [topology.controllers.card]\nkind = \"pata\"\ndisks = [[\"a0\", \"b0\"], [\"a1\", \"b1\"]]\n\
             [array]\nlayout = \"raid0\"\n{members}\n"
        )
    };
    for (given, members, channels) in [
        ("members = 3", "a0 a1 b0", "2+1"),
        ("members = \"1 a + 2 b\"", "a0 b0 b1", "2+1"),
        ("members = [\"b1\", \"a0\"]", "b1 a0", "1+1"),
        ("channels = [2, 1]", "a0 b0 a1", "2+1"),
        ("channels = [0, 2]", "a1 b1", "0+2"),
        ("", "a0 a1 b0 b1", "2+2"),
    ] {
        let array = sound(&text(given)).cells[0].setup.array.clone();
        assert_eq!(array.members.join(" "), members, "{given}");
        assert_eq!(array.channels, channels, "{given}");
    }
    for (given, why) in [
        ("members = \"3 a\"", "has 2 disks left"),
        ("members = \"1 c\"", "unknown group of disks 'c'"),
        ("members = \"a + b\"", "chooses no members"),
        ("members = [\"a0\", \"a0\"]", "'a0' is a member twice"),
        ("members = [\"a9\"]", "unknown disk 'a9'"),
        ("members = 2\nchannels = [1, 1]", "members are chosen twice"),
        ("channels = [0, 0]", "no member on any channel"),
    ] {
        let told = refused(&text(given));
        assert!(told.contains(why), "{given}: {told}");
    }
}

#[test]
fn a_nested_layout_takes_as_many_disks_as_its_shape() {
    let factors = "[factors]\nlayout = [\"raid50 2x3\", \"raid01 2x4\", \"raid6\"]\n";
    let experiment = sound(&disks("nearline-24tb", 8, factors));
    let counts = experiment.cells.iter().map(|c| c.setup.array.members.len());
    assert_eq!(counts.collect::<Vec<_>>(), [6, 8, 8]);
    let told = refused(&disks("nearline-24tb", 4, factors));
    assert!(
        told.contains("raid50 2x3 has 6 members, and there are 4 disks"),
        "{told}"
    );
}

#[test]
fn failed_members_are_the_first_that_can_fail_together() {
    let factors = "[array]\nstate = \"degraded 2\"\n[factors]\nlayout = [\"raid6\", \"raid10\"]\n";
    let experiment = sound(&disks("nearline-24tb", 4, factors));
    let failed = experiment
        .cells
        .iter()
        .map(|c| c.setup.array.failed.clone());
    // raid10 keeps two copies side by side on members 0 and 1.
    assert_eq!(failed.collect::<Vec<_>>(), [vec![0, 1], vec![0, 2]]);
    let named = "[array]\nlayout = \"raid6\"\nfailed = [3, 1]\n";
    let array = sound(&disks("nearline-24tb", 4, named)).cells[0]
        .setup
        .array
        .clone();
    assert_eq!(
        (array.state, array.failed),
        (ArrayState::Degraded(2), vec![1, 3])
    );
}

#[test]
fn a_controller_makes_arrays_only_of_its_own_disks() {
    let text = |engine: &str| {
        format!(
            "{HEAD}disks = {{ model = \"ST3250624AS\", count = 2 }}\n\
             [topology.controllers.a]\nkind = \"hardware-raid\"\ndisks = [\"disk0\"]\n\
             [topology.controllers.b]\nkind = \"sata\"\ndisks = [\"disk1\"]\n\
             [array]\nlayout = \"raid1\"\n{engine}\n"
        )
    };
    assert_eq!(sound(&text("")).cells[0].setup.array.engine, Engine::Md);
    let told = refused(&text("engine = \"controller\""));
    assert!(told.contains("several controllers"), "{told}");
    let told = refused(&text("engine = \"zfs\""));
    assert!(
        told.contains("engine 'zfs' has no layout 'raid1'"),
        "{told}"
    );
    let alone = text("members = [\"disk1\"]\nengine = \"controller\"").replace("raid1", "raid0");
    let told = refused(&alone);
    assert!(
        told.contains("controller 'b' has no RAID of its own"),
        "{told}"
    );
    let own = text("members = [\"disk0\"]").replace("raid1", "raid0");
    assert_eq!(sound(&own).cells[0].setup.array.engine, Engine::Controller);
}

/// It says something of arrays of a controller's own that have something to do, and of no others.
#[test]
fn a_rebuild_rate_is_of_controllers_that_rebuild() {
    let text = |array: &str| {
        let card = "[topology.controllers.card]\nkind = \"hardware-raid\"\nchannels = 3\n";
        disks(
            "nearline-24tb",
            3,
            &format!("{card}[array]\nlayout = \"raid5\"\n{array}\n"),
        )
    };
    let rate = |array: &str| sound(&text(array)).cells[0].setup.array.rebuild_rate;
    assert_eq!(rate("state = \"rebuilding 1\"\nrebuild-rate = 0"), Some(0));
    assert_eq!(rate("state = \"resyncing\"\nrebuild-rate = 100"), Some(100));
    assert_eq!(rate("state = \"rebuilding 1\""), None);
    for array in ["", "state = \"degraded 1\""] {
        let factor = format!("{}[factors]\nrebuild-rate = [10, 30]\n", text(array));
        let told = refused(&factor);
        assert!(
            told.contains("an array of a controller's own RAID in"),
            "{told}"
        );
    }
}

#[test]
fn what_does_not_fit_on_the_array_is_refused() {
    let rest = "[array]\nlayout = \"raid1\"\nmember-size = \"1GiB\"\n";
    let text = disks("ST340015A", 2, rest).replace("profile = \"random\"\n", "");
    let bonnie = format!("{text}[profile]\nname = \"bonnie\"\nsize = \"2GiB\"\n");
    let told = refused(&bonnie);
    assert!(
        told.contains("needs 2 GiB of free space and there are 1 GiB"),
        "{told}"
    );
    let large = text.replace("1GiB", "41GB") + "[profile]\nname = \"dd\"\n";
    let told = refused(&large);
    assert!(told.contains("is more than the"), "{told}");
}

#[test]
fn profile_settings_go_where_they_belong() {
    let text = "title = \"t\"\ndisks = { model = \"nearline-24tb\", count = 2 }\n\
        [array]\nlayout = \"raid0\"\n\
        [profile.random]\nblock = \"8KiB\"\n[profile.hdparm]\ncount = 2\n\
        [factors]\nprofile = [\"random\", \"hdparm\"]\nrandom.depth = [1, 2]\n\
        [[exclude]]\nprofile = \"hdparm\"\nrandom.depth = 2\n";
    // A dotted key is a table to TOML; levels of a factor with a dot are named in quotes.
    let quoted = text.replace("random.depth = 2", "\"random.depth\" = 2");
    let told = refused(&quoted);
    assert!(told.contains("unknown setting 'count' of hdparm"), "{told}");
    let experiment = sound(&quoted.replace("[profile.hdparm]\ncount = 2\n", ""));
    let labels: Vec<&str> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "random, random.depth 1",
            "random, random.depth 2",
            "hdparm, random.depth 1"
        ]
    );
    let settings = &experiment.cells[1].setup.settings;
    assert_eq!(
        (settings["block"].as_str(), settings["depth"].as_str()),
        ("8192", "2")
    );
}

#[test]
fn the_same_setting_under_two_names_is_told() {
    let text = "title = \"t\"\ndisks = { model = \"nearline-24tb\", count = 2 }\n\
        [array]\nlayout = \"raid0\"\n[profile]\nname = \"random\"\ndepth = 4\nqueue-depth = 8\n";
    let told = refused(text);
    assert!(
        told.contains("'depth' and 'queue-depth' are the same"),
        "{told}"
    );
}

#[test]
fn a_baseline_by_levels_may_be_several_cells() {
    let rest = "[factors]\nlayout = [\"raid5\", \"raid6\"]\nchunk = [\"64KiB\", \"128KiB\"]\n\
        [design]\nbaseline = { chunk = \"64 KiB\" }\n";
    let experiment = sound(&disks("nearline-24tb", 4, rest));
    let levels = [("chunk".to_owned(), "64KiB".to_owned())].into();
    assert_eq!(experiment.design.baseline, Some(Baseline::Levels(levels)));
    assert!(experiment.report.tables.contains(&TableKind::Ratios));
    let stored = experiment.cells[1].factors();
    assert_eq!(
        (stored["chunk"].as_str(), stored["level"].as_str()),
        ("131072", "raid5")
    );
}

#[test]
fn too_many_combinations_are_refused_before_they_are_made() {
    let numbers: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let rest = format!(
        "[array]\nlayout = \"raid0\"\n[factors]\nqueue-depth = [{0}]\njobs = [{0}]\n",
        numbers.join(",")
    );
    let told = refused(&disks("nearline-24tb", 2, &rest));
    assert!(
        told.contains("1000000 combinations of levels are too many"),
        "{told}"
    );
}

/// What is wrong with one key leaves the checks of the others alone.
#[test]
fn a_bad_key_hides_no_other() {
    let six = |rest: &str| disks("ST3250624AS", 6, rest);
    let cases: [(String, &[&str]); 5] = [
        (
            six(
                "[array]\nlayout = \"raid5\"\n[host]\nqueue-requests = 0\nkernel = \"2.6.17\"\nscheduler = \"mq-deadline\"\n",
            ),
            &["'queue-requests'", "no scheduler 'mq-deadline'"],
        ),
        (
            six(
                "[array]\nlayout = \"raidz1\"\nashift = 17\nrecord-size = \"3KiB\"\nstate = \"degraded 2\"\n",
            ),
            &[
                "17",
                "ZFS has no records of 3 KiB",
                "does not survive 2 failed members",
            ],
        ),
        (
            six(
                "[array]\nlayout = \"raid5\"\nmetadata = \"2.0\"\nchunk = \"48KiB\"\nstate = \"degraded 2\"\n\
                 [design]\nbaseline = \"foo\"\n[report]\ntables = [\"published\"]\n",
            ),
            &[
                "'2.0'",
                "48 KiB",
                "does not survive 2 failed members",
                "the baseline 'foo' is no cell",
                "the table 'published' needs",
            ],
        ),
        (
            six(
                "[array]\nlayout = \"raid5\"\nmember-size = \"9TB\"\nstate = \"degraded 2\"\n[host]\nmemory = \"1KiB\"\nkernel = \"2.6.17\"\nscheduler = \"kyber\"\n",
            ),
            &[
                "is more than the",
                "does not survive",
                "runs nothing",
                "no scheduler 'kyber'",
            ],
        ),
        (
            six(
                "[array]\nlayout = \"raid5\"\nstate = \"broken\"\n[design]\nbaseline = \"the cell\"\n[report]\ntables = [\"ratios\", \"rebuild\"]\n",
            ),
            &["'broken' is no state"],
        ),
    ];
    for (text, parts) in cases {
        let told = refused(&text);
        assert_eq!(told.lines().count(), parts.len(), "{told}");
        for part in parts {
            assert!(told.contains(part), "no '{part}' in {told}");
        }
    }
}

#[test]
fn a_pool_is_never_resyncing_and_has_no_initial_sync() {
    for layout in ["zfs-mirror", "raidz1"] {
        let rest = format!("[array]\nlayout = \"{layout}\"\nstate = \"resyncing\"\n");
        let told = refused(&disks("ST3250624AS", 4, &rest));
        assert!(told.starts_with("lab.toml:6:9: "), "{told}");
        assert!(
            told.contains("is of ZFS, which is never resyncing"),
            "{told}"
        );
        let told = refused(&disks(
            "ST3250624AS",
            4,
            &rest.replace("resyncing", "initial-sync"),
        ));
        assert!(
            told.contains("is of ZFS, which has no initial sync"),
            "{told}"
        );
    }
}

/// Each line of a job file that is wrong is underlined by itself, with its remedy.
#[test]
fn jobs_are_told_with_their_lines() {
    let told = |quotes: &str| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"ST3250624AS\", count = 1 }}\n[profile]\nname = \"fio\"\n\
             jobs = {quotes}\n[a: b]\n  rw=raed\nsize=16m\n[c]\nfoo=bar\n{quotes}\n"
        );
        parse(&text, "lab.toml", &known()).expect_err("this must be refused")
    };
    insta::assert_snapshot!(told("\"\"\"").render(false));
    assert_eq!(told("'''").to_string(), told("\"\"\"").to_string());
    // Of one line with escapes there is no line to underline.
    let text = "title = \"t\"\ndisks = { model = \"ST3250624AS\" }\nprofile = { name = \"fio\", jobs = \"[a]\\nrw=raed\\n\" }\n";
    let error = parse(text, "lab.toml", &known()).expect_err("this must be refused");
    let problem = &error.items()[0];
    assert_eq!(error.place(problem), (3, 34));
    assert_eq!(problem.label, "line 2 of 'jobs'");
    // What only shows when all jobs are read has its remedy behind it, not the reason.
    let text = text.replace(
        "rw=raed\\n",
        "size=1m\\nfilename=x\\n[b]\\nsize=1m\\nfilename=y\\n",
    );
    let told = refused(&text);
    assert!(
        told.contains("profile fio, filename of job b: all jobs must be on the same file"),
        "{told}"
    );
}

/// A list of nothing had a label of nothing.
#[test]
fn a_level_without_anything_has_a_name() {
    let text = "title = \"t\"\ndisks = { model = \"nearline-24tb\", count = 3 }\nprofile = \"random\"\n[array]\nlayout = \"raid5\"\n\
                [factors]\nfailed = [[], [1]]\n";
    let experiment = parse(text, "lab.toml", &known()).expect("a good file");
    let labels: Vec<&str> = experiment
        .cells
        .iter()
        .map(|cell| cell.label.as_str())
        .collect();
    assert_eq!(labels, ["none", "failed 1"]);
}

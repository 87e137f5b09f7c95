//! Requests that make no sense: exit 2, a message that names the option and the remedy, and nothing
//! left behind.
use crate::lab::{DD, Lab, ended, program};
use std::process::Command;

/// Each is refused with exit 2, says these, and leaves nothing.
#[track_caller]
fn nonsense(cases: &[(&str, &[&str])]) {
    for (line, parts) in cases {
        let lab = Lab::new();
        lab.run(line).refused(2).says(parts);
        lab.assert_untouched();
    }
}

#[test]
fn sizes_and_units() {
    nonsense(&[
        (
            "bench place --size 64K",
            &["--size", "'64KiB' (65536 bytes)", "'64kB' (64000 bytes)"],
        ),
        (
            "bench place --profile random --block-size 4k",
            &["--block-size", "'4KiB'", "'4kB'"],
        ),
        (
            "bench place --profile random --size 10parsec",
            &["--size", "is not a size", "KiB"],
        ),
        (
            "bench place --profile random --size 0",
            &["size", "less than one block"],
        ),
        (
            "bench place --profile random --runtime 5",
            &["--runtime", "'5s' for seconds"],
        ),
        ("bench place --profile random --runtime 0s", &["time"]),
        ("bench place --budget 5", &["--budget", "'5s' for seconds"]),
        (
            "bench place --budget 0s",
            &["--budget", "nothing would be measured"],
        ),
        ("bench place --repeats auto --width 5", &["--width", "'5%'"]),
        ("bench place --margin 2", &["--margin", "'2%'"]),
        ("bench place --stall 0s", &["--stall"]),
        ("layout raid5 --chunk 64K", &["--chunk", "'64KiB'"]),
        (
            "layout raid0 --chunk 1B",
            &["a chunk of 1 byte is no whole number", "a multiple of 512"],
        ),
        (
            "layout raid0 --chunk 100B",
            &["a chunk of 100 bytes is no whole number"],
        ),
    ]);
}

#[test]
fn repeats() {
    nonsense(&[
        (
            "bench place --repeats 0",
            &["--repeats", "nothing would be measured: write 1 or more"],
        ),
        (
            "bench place -n many",
            &["--repeats", "'many' is not a number of repeats"],
        ),
        (
            "bench place --repeats auto --max-repeats 1",
            &["--max-repeats", "2..=10000"],
        ),
        (
            "bench place -n 3 --width 1%",
            &["--width", "--repeats auto"],
        ),
        (
            "bench place --max-repeats 9",
            &["--max-repeats", "--repeats auto"],
        ),
    ]);
}

#[test]
fn profiles_and_settings() {
    nonsense(&[
        (
            "bench place --profile bonny",
            &[
                "no profile 'bonny'",
                "sequential, fio (",
                "did you mean 'bonnie'",
            ],
        ),
        (
            "bench place --profile dd,dd",
            &["profile dd is named twice"],
        ),
        (
            "bench place --set seks=4",
            &["no setting 'seks'", "did you mean 'seeks'"],
        ),
        (
            "bench place --set seeks",
            &["--set 'seeks' has no '='", "KEY=VALUE"],
        ),
        (
            "bench place --set dd.count=4",
            &["profile dd is not among those"],
        ),
        (
            "bench place --profile hdparm --depth 4",
            &[
                "--depth means nothing to hdparm",
                "hdparm knows --size, --runtime, ",
            ],
        ),
        (
            "bench place --profile dd --files 4",
            &["--files means nothing to dd"],
        ),
        (
            "bench place --profile random --depth 0",
            &["depth", "'0' is not a whole number from 1 to 4096"],
        ),
        (
            "bench place --profile random --read 120",
            &["read-percent", "'120' is not a whole number from 0 to 100"],
        ),
        (
            "bench place --profile random --direct --buffered",
            &["--direct", "--buffered"],
        ),
        (
            "bench place --files 1::2",
            &["--files '1::2'", "--files 16"],
        ),
        ("bench place --profile fio", &["--job-file", "profile fio"]),
        (
            "bench place --job-file nowhere.fio --profile fio",
            &["nowhere.fio"],
        ),
        (
            "bench place --job-file nowhere.fio --depth 4",
            &["--job-file", "--depth"],
        ),
        (
            "bench place --data zero",
            &["--data", "zeros, seeded or compressible=N"],
        ),
    ]);
}

#[test]
fn what_cannot_be_done_is_known_before_it_is_measured() {
    nonsense(&[
        (
            &format!("bench place -n 1 {DD} --baseline nowhere"),
            &["baseline 'nowhere'", "place"],
        ),
        (
            &format!("bench place -n 1 {DD} --json --markdown"),
            &["--json", "--markdown"],
        ),
    ]);
    let lab = Lab::new();
    for output in [
        "--html nowhere/r.html",
        "--html place",
        "--images /dev/null/charts",
        "--images /dev/null",
    ] {
        let ran = lab
            .run(&format!("bench place -n 1 {DD} {output}"))
            .refused(4);
        let path = output.split(' ').nth(1).expect("a path");
        assert!(
            !ran.err.contains(".raidlab-"),
            "a name that nobody gave: {}",
            ran.err
        );
        let ran = ran.says(&["cannot write", path, "help:"]);
        if output.starts_with("--images") {
            ran.says(&[
                "a file stands where a directory is wanted",
                "name a directory",
            ]);
        }
        lab.assert_untouched();
    }
}

#[test]
fn paths() {
    nonsense(&[
        ("bench", &["<PATH>"]),
        (
            "bench nowhere",
            &[
                "nowhere: no such file or directory",
                "name an existing directory",
            ],
        ),
        ("bench a=", &["'a=' names no place", "NAME=PATH"]),
        (
            "bench place place",
            &["'place' is named twice", "NAME=PATH"],
        ),
        ("bench place/nowhere", &["place/nowhere: no such file"]),
        ("doctor nowhere", &["nowhere"]),
        ("bench place --resume", &["leave the paths out"]),
    ]);
}

#[test]
fn commands_and_their_objects() {
    nonsense(&[
        ("", &["Usage: raidlab"]),
        ("frobnicate", &["unrecognized subcommand 'frobnicate'"]),
        (
            "predict lab.toml",
            &["there is no command 'predict'", "raidlab run FILE --on sim"],
        ),
        (
            "create -n 4",
            &["there is no command 'create'", "raidlab run FILE --on host"],
        ),
        ("vm create", &["unrecognized subcommand 'create'"]),
        (
            "bench place --bs 4KiB",
            &["'raidlab bench' has no option '--bs'", "--block-size"],
        ),
        (
            "run lab.toml --runs=3",
            &["'raidlab run' has no option '--runs'", "--repeats"],
        ),
        (
            "run lab.toml --dry-run",
            &["no option '--dry-run'", "raidlab plan FILE"],
        ),
        // Nothing of it is called so.
        ("list --bs 4KiB", &["unexpected argument '--bs'"]),
        ("clean --dry-run", &["unexpected argument '--dry-run'"]),
        ("layout raid7", &["'raid7' is no level", "raid10", "raidz2"]),
        (
            "layout raidz4",
            &["'raidz4' is no level of ZFS", "raidz3", "raidz1 2x3"],
        ),
        (
            "layout mirror -n 2",
            &["did you mean 'raid1'", "zfs-mirror"],
        ),
        (
            "layout raid5 --store x",
            &["neither reads nor keeps results", "leave --store out"],
        ),
        ("layout raid5 -n -3", &["'-3' is below zero"]),
        ("bench place --size -5", &["'-5' is below zero"]),
        ("replay trace", &["--disk", "--experiment"]),
        (
            "replay trace --disk nvme-ssd --cell x",
            &["--cell", "--disk"],
        ),
        ("layout raid5 --members 1", &["member"]),
        (
            "layout raid5 --member-size 24",
            &["--member-size", "24 bytes", "with its unit", "24TB"],
        ),
        (
            "layout raid10 4",
            &["raid10 is not nested", "raidlab layout raid10 -n 4"],
        ),
        (
            "layout raid50 2x1000",
            &["too few or too many", "1 to 999 groups"],
        ),
        (
            "layout raid5 --ashift 12",
            &[
                "--ashift",
                "'raid5' is no level of ZFS",
                "leave --ashift out",
            ],
        ),
        (
            "layout raidz1 --chunk 64KiB",
            &["'raidz1' has no chunk", "leave --chunk out", "--ashift"],
        ),
        ("layout 'raid50 2x3' --members 5", &["has 6 members, not 5"]),
        (
            "layout btrfs-raid7",
            &["'btrfs-raid7' is no level of btrfs", "btrfs-raid1c3"],
        ),
        (
            "layout btrfs-raid1 --chunk 64KiB",
            &["no chunk to choose", "leave --chunk out"],
        ),
        (
            "layout btrfs-raid1 --ashift 12",
            &["--ashift is of ZFS", "leave --ashift out"],
        ),
        (
            "layout btrfs-raid1 --sector 5",
            &["no fixed places", "dump-tree -t chunk"],
        ),
        ("layout btrfs-raid1c4 -n 3", &["at least 4 members"]),
        (
            "layout btrfs-raid1 --member-size 1536B",
            &["member 0 has 1.5 KiB", "use a larger member"],
        ),
        (
            "layout btrfs-raid0 -n 200",
            &["200 members are more than the 128"],
        ),
        (
            "layout btrfs-raid0 -n 3 --member-size 4EiB",
            &["more than 8 EiB"],
        ),
        (
            "layout raid5 --sector 99999999999",
            &["no sector 99999999999"],
        ),
        (
            "reference report nowhere",
            &["no study 'nowhere'", "pata-raid0"],
        ),
        (
            "compare pata-raid0:x pata-raid0:y",
            &["pata-raid0 has no cell 'x'", "md raid0 1 disk"],
        ),
        (
            "compare pata-raid0 pata-raid0 --gate 95%",
            &["--gate", "0.95"],
        ),
        ("import nowhere", &["cannot read nowhere"]),
        ("import place", &["cannot read place", "directory"]),
        ("report --from-export nowhere", &["cannot read nowhere"]),
        (
            "import --format xml nowhere",
            &["'xml' is no import format", "bonnie"],
        ),
        ("export --format xml", &["--format", "jsonl, csv"]),
    ]);
}

/// Looking at a store that is not there does not make one.
#[test]
fn no_store() {
    for line in [
        "list",
        "show",
        "report",
        "export",
        "remove 1f",
        "bench --resume",
        "compare 1f 2f",
    ] {
        let lab = Lab::new();
        let store = lab.store();
        lab.run(line).refused(4).says(&[
            &store.display().to_string(),
            "there is no store",
            "--store",
        ]);
        lab.assert_untouched();
    }
}

#[test]
fn sessions_that_are_not_there() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    for (line, says) in [
        ("report zz", "'zz' is not an identifier"),
        ("show ffffffff", "no session and no trial 'ffffffff'"),
        (
            "export ffffffff",
            "no session 'ffffffff'; 'raidlab list' shows them",
        ),
        ("remove ffffffff --yes", "no session 'ffffffff'"),
        ("bench --resume", "there is no unfinished session"),
        ("bench --resume ffffffff", "no session 'ffffffff'"),
        ("report --profile bonnie", "no trials of profile 'bonnie'"),
        (
            "report --profile bonnie",
            "it has dd; 'raidlab list --profile bonnie'",
        ),
        ("compare old new", "'old' is neither a session nor a study"),
    ] {
        lab.run(line).refused(2).says(&[says]);
    }
    let id = lab.sessions()[0]["id"].as_str().expect("an id").to_owned();
    lab.run(&format!("bench --resume {id}"))
        .refused(2)
        .says(&["is finished", "raidlab report"]);
    lab.run(&format!("bench --resume {id} --profile dd"))
        .refused(2)
        .says(&["--resume", "--profile"]);
}

#[test]
fn help_and_version_are_answers() {
    let lab = Lab::new();
    lab.run("--help")
        .done()
        .prints(&["Exit codes: 0 done", "bench"]);
    lab.run("bench --help")
        .done()
        .prints(&["--repeats", "Profiles: bonnie", "fio"]);
    lab.run("--version").done().prints(&["raidlab "]);
    lab.assert_untouched();
}

#[test]
fn no_home_to_keep_results_in() {
    let lab = Lab::new();
    let mut command = Command::new(program());
    command.args(["list"]).current_dir(lab.path("")).env_clear();
    // Without HOME the password database tells where home is: a store there is as good.
    let ran = ended(command);
    assert!(matches!(ran.code, Some(0 | 4)), "{ran:?}");
}

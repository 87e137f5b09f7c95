//! `raidlab plan`, and what experiments may name.
use crate::lab::{Lab, unfolded};
use crate::models::DISK;
use crate::real::slowly;
use std::path::Path;

pub(crate) const GOOD: &str = r#"title = "Two layouts"
disks = { model = "nearline-24tb", count = 4 }
profile = { name = "random", size = "1GiB", time = "1s" }

[factors]
layout = ["raid5", "raid10"]

[design]
repeats = 2
"#;

#[test]
fn a_plan_tells_cells_order_and_time() {
    let lab = Lab::new();
    lab.write("lab.toml", GOOD);
    let ran = lab.run("plan lab.toml").done();
    insta::assert_snapshot!(
        ran.out
            .lines()
            .take_while(|l| !l.starts_with("With --on"))
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(ran.out.contains("With --on sim about "), "{}", ran.out);
    assert_eq!(ran.err, "");
    // Another seed, another order; the same seed, the same.
    let order = |line: &str| {
        let json = lab.run(line).done().json();
        let trials = json["trials"].as_array().expect("trials").clone();
        trials
            .iter()
            .map(|t| t["cell"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        order("plan lab.toml --json"),
        order("plan lab.toml --json --seed 1")
    );
    assert_eq!(order("plan lab.toml --json -n 7").len(), 14);
    let orders: std::collections::BTreeSet<_> = (1..9)
        .map(|seed| order(&format!("plan lab.toml --json --seed {seed}")))
        .collect();
    assert!(orders.len() > 1, "orders are drawn");
    lab.assert_nothing_but(&["lab.toml"]);
    // One cell has one order.
    assert!(ran.out.contains("Order, by"), "{}", ran.out);
    lab.write("lab.toml", GOOD.replace(", \"raid10\"", ""));
    let one = lab.run("plan lab.toml").done().out;
    assert!(
        one.contains("1 cell") && !one.contains("Order, by"),
        "{one}"
    );
}

/// A sync takes as long as the disks are large, and changes what a parity array reads and writes at.
#[test]
fn a_plan_tells_which_arrays_are_synced_first() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 4 }\nprofile = \"random\"\n\
         [array]\ninitial-sync = true\n[factors]\nlayout = [\"raid5\", \"raid0\"]\n",
    );
    let ran = lab.run("plan lab.toml").done();
    let told = unfolded(&ran.out);
    let synced = |layout: &str| {
        told.contains(&format!("{layout} of disk0 disk1 disk2 disk3 on channels 1+1+1+1, chunk 512 KiB, by md, synced first,"))
    };
    assert_eq!(
        (synced("raid5"), synced("raid0")),
        (true, false),
        "{}",
        ran.out
    );
}

/// What `run --on vm` would do in its guest, without one.
#[test]
fn a_plan_tells_the_commands_of_a_guest() {
    let lab = Lab::new();
    lab.write("lab.toml", GOOD);
    // The content of 4 x 24 TB is kept in memory.
    lab.run("plan lab.toml --on vm")
        .refused(4)
        .says(&["member-size = \"1GiB\""]);
    let small = GOOD.replace(
        "[factors]",
        "[array]\nmember-size = \"1GiB\"\n\n[host]\nscheduler = \"bfq\"\n\n[factors]",
    );
    lab.write("lab.toml", small);
    lab.run("plan lab.toml --on vm").done().prints(&[
        "no device of yours is written to",
        "echo bfq > /sys/block/nbd3/queue/scheduler",
        "mdadm --create /dev/md119 --run",
        "--level=5 --chunk=512",
        "--assume-clean /dev/nbd0 /dev/nbd1 /dev/nbd2 /dev/nbd3",
        "--level=10",
        "afterwards: mdadm --stop /dev/md119",
    ]);
    lab.assert_nothing_but(&["lab.toml"]);
}

#[test]
fn the_resolved_form_is_printed() {
    let lab = Lab::new();
    lab.write("lab.toml", GOOD);
    lab.run("plan lab.toml --resolved").done().prints(&[
        "experiment-version = 1",
        "engine = \"md\"",
        "kernel = \"6.1\"",
    ]);
    let json = lab.run("plan lab.toml --json").done().json();
    assert_eq!(json["cells"].as_array().expect("cells").len(), 2);
    assert_eq!(json["experiment"]["title"], "Two layouts");
    assert_eq!(json["digest"].as_str().map(str::len), Some(64));
}

#[test]
fn the_examples_can_be_planned() {
    let lab = Lab::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for name in crate::lab::names(&examples) {
        let path = examples.join(&name);
        lab.run(&format!("plan '{}'", path.display()))
            .done()
            .prints(&["Cells:", "round 1:"]);
    }
    // A long plan is cut, and says how to see all of it.
    let sweep = examples.join("pata-blocksize.toml");
    lab.run(&format!("plan '{}'", sweep.display()))
        .done()
        .prints(&["and 488 more cells; --all lists them"]);
}

/// One file cannot hold both the report and the trials, whatever the two paths look like.
#[test]
fn the_report_and_the_trials_are_two_files() {
    let lab = Lab::new();
    lab.write("lab.toml", GOOD);
    for (html, out) in [("x", "x"), ("x", "./x"), ("place/../x", "x")] {
        let line = format!("run lab.toml --on sim --html {html} --out {out}");
        lab.run(&line)
            .refused(2)
            .says(&["--html and --out name the same file", "a file of its own"]);
        assert!(!lab.path("x").exists());
    }
}

#[test]
fn requests_that_make_no_sense() {
    let lab = Lab::new();
    lab.write("lab.toml", GOOD);
    for (line, says) in [
        ("plan nowhere.toml", "cannot read nowhere.toml"),
        ("plan lap.toml", "did you mean lab.toml?"),
        ("plan ./lap.toml", "did you mean ./lab.toml?"),
        ("plan .", "name a file; in it are lab.toml"),
        ("layout raid5 --members two", "a whole number is wanted"),
        (
            "layout raid5 --members 99999999999999999999",
            "it is too large",
        ),
        ("plan lab.toml -n 0", "--repeats"),
        ("plan lab.toml --seed=-1", "--seed"),
        ("run lab.toml", "--on"),
        ("run lab.toml --on moon", "sim"),
        ("run lab.toml --on sim --jobs 0", "--jobs"),
    ] {
        lab.run(line).refused(2).says(&[says]);
    }
    lab.run("run lab.toml --on vm")
        .refused(4)
        .says(&["their content is kept in memory", "member-size"]);
    lab.run("run lab.toml --on host")
        .refused(4)
        .says(&["allows none that can be used", "raidlab devices"]);
    lab.assert_nothing_but(&["lab.toml"]);
}

/// A model file of the user's own is found beside the experiment, wherever raidlab is called from.
#[test]
fn experiments_name_model_files_by_their_paths() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("study/models")).expect("a folder");
    let own = "study/models/small.toml";
    lab.write(own, DISK);
    let text = GOOD.replace("nearline-24tb", "models/small.toml");
    let text = text.replace("[factors]", "[host]\nmemory = \"256MiB\"\n\n[factors]");
    lab.write("study/lab.toml", &text);
    lab.run("plan study/lab.toml")
        .done()
        .prints(&["4 x models/small.toml"]);
    let digest = || {
        let json = lab.run("plan study/lab.toml --json").done().json();
        json["digest"].as_str().expect("a digest").to_owned()
    };
    let rates = || {
        let run = "run study/lab.toml --on sim --json";
        lab.run(run).done().json().to_string()
    };
    let before = (digest(), rates());
    // The file is part of the experiment: another disk is another experiment.
    lab.write(own, DISK.replace("rpm = 7200", "rpm = 5400"));
    let after = (digest(), rates());
    assert_ne!(before.0, after.0);
    assert_ne!(before.1, after.1);

    lab.write(own, DISK.replace("rpm = 7200", "rpm = \"fast\""));
    lab.run("plan study/lab.toml").refused(2).says(&[
        "study/lab.toml:2:19",
        "the model file 'models/small.toml' cannot be used",
        "models/small.toml:12:7",
        "raidlab disk show PATH",
    ]);
    lab.write("study/lab.toml", text.replace("small.toml", "none.toml"));
    lab.run("plan study/lab.toml").refused(2).says(&[
        "study/lab.toml:2:19",
        "the model file 'models/none.toml' cannot be used: No such file",
    ]);
}

#[test]
fn levels_with_commas_in_their_names_are_told_apart() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = \"x\"\ndisks = { model = \"sata-ssd\", count = 2 }\nprofile = \"random\"\n[factors]\n\
         array = [{ name = \"two, striped\", layout = \"raid0\" }, { name = \"two, mirrored\", layout = \"raid1\" }]\n",
    );
    lab.run("plan lab.toml")
        .done()
        .prints(&["array  two, striped; two, mirrored\n"]);
}

/// As with disks; what the file says of the controller decides.
#[test]
fn experiments_name_files_of_controllers_by_their_paths() {
    let lab = Lab::new();
    let card = lab.run("disk show hardware-raid --file").done().out;
    std::fs::create_dir_all(lab.path("study")).expect("a folder");
    lab.write("study/card.toml", &card);
    let text = GOOD.replace(
        "[factors]",
        "[topology.controllers.card]\nkind = \"hardware-raid\"\nlink = \"sata\"\n\
         model = \"./card.toml\"\nchannels = 4\n\n[host]\nmemory = \"256MiB\"\n\n[factors]",
    );
    lab.write("study/lab.toml", &text);
    let digest = || {
        let json = lab.run("plan study/lab.toml --json").done().json();
        json["digest"].as_str().expect("a digest").to_owned()
    };
    let rates = || lab.run("run study/lab.toml --on sim --json").done().json();
    let before = (digest(), rates());
    let slow = card.replace("host_read_mb_s = 3000", "host_read_mb_s = 30");
    assert_ne!(slow, card);
    lab.write("study/card.toml", &slow);
    let after = (digest(), rates());
    assert_ne!(before.0, after.0);
    assert_ne!(before.1.to_string(), after.1.to_string());

    lab.write("study/card.toml", card.replace("= 3000", "= \"fast\""));
    lab.run("plan study/lab.toml").refused(2).says(&[
        "the model file './card.toml' cannot be used",
        "card.toml:",
        "raidlab disk show PATH",
    ]);
    lab.write("study/lab.toml", text.replace("./card.toml", "none.toml"));
    lab.run("plan study/lab.toml")
        .refused(2)
        .says(&["the model file 'none.toml' cannot be used: No such file"]);
    // One of the catalogue whose name looks like a path.
    let known = text.replace("./card.toml", "PERC3/Di");
    let known = known.replace("\"sata\"", "\"scsi\"");
    lab.write(
        "study/lab.toml",
        known.replace("nearline-24tb", "MAN3367MP"),
    );
    lab.run("plan study/lab.toml").done();
    lab.write("study/lab.toml", text.replace("./card.toml", "PERC4"));
    lab.run("plan study/lab.toml")
        .refused(2)
        .says(&["unknown controller model 'PERC4'", "PERC3/Di"]);
}

/// Those that take a second or two; the others are planned by tests and run by hand.
#[test]
fn small_experiments_that_come_with_the_program_run() {
    let lab = Lab::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    for name in [
        "pata-channels",
        "vm-all-levels",
        "vm-btrfs",
        "vm-btrfs-degraded",
        "vm-btrfs-parity",
        "vm-btrfs-parity-rebuilding",
        "vm-btrfs-rebuilding",
        "vm-cached",
        "vm-calls",
        "vm-chunks",
        "vm-levels",
        "vm-raidz",
        "vm-readers",
        "vm-states",
        "vm-zfs-ashift",
        "vm-zfs-states",
    ] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("an experiment");
        let file = format!("{name}.toml");
        lab.write(&file, text);
        // Unoptimised, on a machine that may do other things.
        slowly(&lab, &format!("run {file} --on sim --repeats 1")).done();
    }
}

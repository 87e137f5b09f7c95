//! `raidlab run --on sim`, `raidlab reference run`, and replays on arrays: from the file to the report.
use crate::lab::{Lab, until};
use crate::root;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;

/// Small, but with everything: two layouts, several rounds, a baseline.
const SMALL: &str = r#"title = "Two layouts"
question = "Which of the two reads faster?"
disks = { model = "ST3250624AS", count = 4 }

[array]
member-size = "1GiB"
chunk = "64KiB"

[profile]
name = "dd"
bs = "256KiB"
count = 16
conv = "none"

[factors]
layout = ["raid0", "raid5"]

[design]
repeats = 3
baseline = { layout = "raid0" }
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("lab.toml", SMALL);
    lab
}

/// All that is kept of the trials, without the ids of the session.
fn found(lab: &Lab) -> Vec<Value> {
    let mut trials = lab.trials();
    for trial in &mut trials {
        for name in ["id", "session"] {
            trial[name].take();
        }
    }
    trials
}

/// The margin of the file is what is meant when none is given, and no more than that.
#[test]
fn a_report_is_judged_as_is_asked_for() {
    let lab = lab();
    lab.run("run lab.toml --on sim")
        .done()
        .prints(&["by more than 2.0 %"]);
    lab.run("report")
        .done()
        .prints(&["by more than 2.0 %", "what limits it"]);
    let wide = lab.run("report --margin 50%").done();
    wide.prints(&["by more than 50.0 %", "what limits it"]);
}

#[test]
fn an_experiment_is_predicted() {
    let lab = lab();
    let ran = lab
        .run("run lab.toml --on sim --html r.html --out trials.jsonl")
        .done()
        .says(&["[6/6]", "wrote r.html", "wrote trials.jsonl"])
        .prints(&[
            "Two layouts",
            "Which of the two reads faster?",
            "Results: dd",
            "what limits it",
            "raid5 of 4 disks",
            "digest of the results",
        ]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!(trial["provenance"]["source"], "simulated");
        assert_eq!(trial["cell_digest"].as_str().map(str::len), Some(64));
        assert!(trial["digest"].is_u64() && trial["seed"].is_u64());
        for phase in trial["phases"].as_array().expect("phases") {
            let explained = &phase["explained"];
            assert!(explained["why"].as_str().is_some_and(|why| !why.is_empty()));
            assert_eq!(explained["members"].as_array().map(Vec::len), Some(4));
            assert!(phase["rate"].as_f64() > Some(0.0), "{phase}");
        }
    }
    assert_eq!(lab.sessions()[0]["state"], "finished");
    let html = std::fs::read_to_string(lab.path("r.html")).expect("a page");
    assert!(html.contains("what limits it") && html.contains("</html>"));
    // The report can be had again, and the exported trials are a whole export.
    assert_eq!(lab.run("report").done().out, ran.out);
    lab.run("import trials.jsonl --store other.sqlite").done();
    lab.run("show").done().prints(&[
        "Two layouts",
        "limit  ",
        "busy   disk0",
        "moved  disk0 ST3250624AS:",
    ]);
    lab.run("compare raid0 raid5").refused(2);
    let id = lab.sessions()[0]["id"].as_str().expect("an id").to_owned();
    lab.run(&format!("compare {id}:raid0 {id}:raid5"))
        .done()
        .prints(&["ratio"]);
}

#[test]
fn threads_change_nothing() {
    let labs = [lab(), lab()];
    let outs = [1, 2].map(|jobs| {
        let lab = &labs[jobs - 1];
        lab.run(&format!("run lab.toml --on sim --jobs {jobs}"))
            .done()
            .out
    });
    assert_eq!(outs[0], outs[1], "the reports are the same, digest and all");
    let [mut one, mut two] = [found(&labs[0]), found(&labs[1])];
    for all in [&mut one, &mut two] {
        all.sort_by_key(|trial| trial["order"].as_u64());
    }
    assert_eq!(one, two);
    // Another seed finds something else.
    let other = labs[0].run("run lab.toml --on sim --seed 9").done().out;
    assert_ne!(outs[0], other);
}

/// A state that pools do not have is told with its line, before anything is run or kept.
#[test]
fn pools_that_resync_are_refused_up_front() {
    let lab = Lab::new();
    let text = SMALL.replace(r#"["raid0", "raid5"]"#, r#"["raidz1", "zfs-mirror 2x2"]"#);
    let text = text.replace("{ layout = \"raid0\" }", "{ layout = \"raidz1\" }");
    let text = text.replace("chunk = \"64KiB\"", "state = \"resyncing\"");
    lab.write("pools.toml", text);
    let refused = lab.run("run pools.toml --on sim").refused(2).says(&[
        "raidz1 is of ZFS, which is never resyncing",
        "zfs-mirror 2x2 is of ZFS",
        "--> pools.toml:7:9",
    ]);
    // Such pools are built nowhere else either.
    assert!(!refused.err.contains("--on vm"), "{}", refused.err);
    assert!(!lab.store().exists(), "nothing is kept");
}

/// A disk of a pool of several vdevs was replaced: it gets its share of what is allocated, as the file says or as the profile's
/// files are.
#[test]
fn pools_of_several_vdevs_are_resilvered() {
    let lab = Lab::new();
    let text = SMALL.replace(r#"["raid0", "raid5"]"#, r#"["zfs-mirror 2x2", "raidz1"]"#);
    let text = text.replace("{ layout = \"raid0\" }", "{ layout = \"raidz1\" }");
    let text = text.replace(
        "conv = \"none\"",
        "conv = \"none\"\n[report]\ntables = [\"rebuild\"]",
    );
    let state = |more: &str| format!("state = \"rebuilding 1\"\n{more}");
    for (more, mirrors, raidz) in [("allocated = \"512MiB\"", 256, 176), ("", 2, 1)] {
        lab.write(
            "pools.toml",
            text.replace("chunk = \"64KiB\"", &state(more)),
        );
        lab.run("run pools.toml --on sim --fresh")
            .done()
            .prints(&["of ZFS and btrfs of what is allocated", "to do"]);
        for trial in lab.trials() {
            let phases = trial["phases"].as_array().expect("phases");
            let rebuild = phases.iter().find(|phase| phase["phase"] == "rebuild");
            let bytes = rebuild.expect("a rebuild")["bytes"]
                .as_u64()
                .expect("bytes");
            let mib = bytes >> 20;
            let wanted = match trial["cell"]["label"].as_str() {
                Some("raidz1") => raidz,
                _ => mirrors,
            };
            assert!(
                (wanted..wanted + wanted / 20 + 8).contains(&mib),
                "{mib} {wanted}"
            );
        }
    }
    let much = text.replace("chunk = \"64KiB\"", &state("allocated = \"4GiB\""));
    lab.write("much.toml", much);
    lab.run("run much.toml --on sim")
        .refused(2)
        .says(&["'allocated' of 4 GiB is more than the pool has room for"]);
}

/// A load is beside a rebuild where disks are fast, and the whole is not extrapolated from there: what hardly disturbs it makes it
/// no shorter.
#[test]
fn a_rebuild_beside_a_load_takes_no_less_than_by_itself() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 't'\ndisks = { model = 'ST3250624AS', count = 2 }\n\
         [profile]\nname = 'random'\ntime = '10s'\ndepth = 1\n[factors]\nrate = [1, 60]\n\
         [array]\nlayout = 'raid1'\nstate = 'rebuilding 1'\n\
         sync-speed-max = '1000MiB/s'\nsync-speed-min = '20MiB/s'\n\
         [design]\nrepeats = 1\n[report]\ntables = ['rebuild']\n",
    );
    let ran = lab.run("run lab.toml --on sim").done();
    ran.prints(&["lies further out, where the disks are faster"]);
    let mut slower = Vec::new();
    for trial in lab.trials() {
        let phases = trial["phases"].as_array().expect("phases");
        let rebuild = phases.iter().find(|phase| phase["phase"] == "rebuild");
        let figures = rebuild.expect("a rebuild")["figures"].clone();
        let figure = |name: &str| {
            let all = figures.as_array().expect("figures");
            let found = all.iter().find(|figure| figure["name"] == name);
            found.expect(name)["value"].as_f64().expect("a number")
        };
        let outermost = figure("rebuild-rate-loaded") * figure("rebuild-time") / 250.0e9;
        slower.push((
            figure("rebuild-time-loaded") / figure("rebuild-time"),
            outermost,
        ));
    }
    let [(little, outermost), (much, _)] = slower[..] else {
        panic!("two trials: {slower:?}");
    };
    // Its rate is above that of the whole, and its time is not below.
    assert!(outermost > 1.1, "{slower:?}");
    assert!((1.0..1.2).contains(&little), "{slower:?}");
    assert!(much > 1.3, "{slower:?}");
}

#[test]
fn one_trial_has_no_interval() {
    let lab = lab();
    let ran = lab.run("run lab.toml --on sim -n 1 --markdown").done();
    ran.prints(&[
        "a figure of the model without an interval",
        "n=1, no interval",
    ]);
    let json = lab.run("run lab.toml --on sim -n 2 --json").done().json();
    assert!(json["blocks"].is_array());
    assert_eq!(lab.sessions().len(), 2);
}

/// What was killed loses no finished trial, and goes on by itself.
#[test]
fn killed_and_gone_on_with() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        SMALL
            .replace("count = 16", "count = 400")
            .replace("repeats = 3", "repeats = 15"),
    );
    let mut running = lab.start("run lab.toml --on sim --jobs 1");
    running.wait_for("[3/30]");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code(), None);
    let before = lab.sessions()[0]["trials"].as_u64().expect("a number");
    assert!((3..30).contains(&before), "{before}");
    let kept = found(&lab);
    // The seed belongs to what is gone on with: another one begins anew.
    let mut other = lab.start("run lab.toml --on sim --seed 5");
    other.wait_for("[1/30]");
    other.signal(Signal::INT);
    assert_eq!(other.end().code(), Some(130), "{}", other.said());
    assert!(
        other
            .said()
            .contains("interrupted; finished trials are kept")
    );
    assert_eq!(lab.sessions().len(), 2);
    // `bench --resume` has nothing to do with it.
    lab.run("bench --resume").refused(2).says(&[
        "no unfinished session of bench",
        "is an experiment: 'raidlab run lab.toml --on sim' goes on with it",
    ]);
    let mut again = lab.start("run lab.toml --on sim");
    again.wait_for(&format!("{before} of 30 trials are there"));
    assert_eq!(again.end().code(), Some(0), "{}", again.said());
    assert_eq!(lab.sessions().len(), 2);
    let session = lab
        .sessions()
        .into_iter()
        .find(|s| s["state"] == "finished");
    let session = session.expect("a finished one");
    assert_eq!(session["trials"], 30);
    let id = session["id"].as_str().expect("an id");
    let shown = lab.run(&format!("show {id} --json")).done().json();
    let all = shown["trials"].as_array().expect("trials");
    let orders: BTreeSet<_> = all.iter().map(|t| t["order"].as_u64()).collect();
    assert_eq!(orders.len(), 30, "each trial once");
    for trial in &kept {
        let same = all
            .iter()
            .find(|t| t["order"] == trial["order"])
            .expect("it is there");
        assert_eq!(
            same["phases"], trial["phases"],
            "what was finished stays as it was"
        );
    }
}

/// Of nothing there is nothing to go on with.
#[test]
fn interrupted_before_the_first_trial() {
    let lab = Lab::new();
    // A trial of many minutes.
    let dd = "name = \"dd\"\nbs = \"256KiB\"\ncount = 16\nconv = \"none\"";
    let random = "name = \"random\"\nsize = \"1GiB\"\ntime = \"1000000s\"";
    assert!(SMALL.contains(dd));
    lab.write("lab.toml", SMALL.replace(dd, random));
    let mut running = lab.start("run lab.toml --on sim --jobs 1");
    // Its store is made first, and nothing is said meanwhile.
    let begun = || lab.run("list --json").out.contains("\"planned\": 6");
    until("a session", begun);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(lab.sessions().len(), 1, "nobody could tidy up");
    // It is gone on with, and as empty as before.
    let mut again = lab.start("run lab.toml --on sim --jobs 1");
    again.wait_for("0 of 6 trials are there");
    again.signal(Signal::INT);
    assert_eq!(again.end().code(), Some(130), "{}", again.said());
    assert!(
        again
            .said()
            .contains("interrupted before the first trial ended; nothing was kept"),
        "{}",
        again.said()
    );
    assert_eq!(lab.sessions().len(), 0);
}

#[test]
fn fresh_begins_anew() {
    let lab = Lab::new();
    lab.write("lab.toml", SMALL.replace("repeats = 3", "repeats = 5000"));
    let mut running = lab.start("run lab.toml --on sim --jobs 1");
    running.wait_for("[");
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    let mut fresh = lab.start("run lab.toml --on sim --jobs 1 --fresh");
    until("a second session", || lab.sessions().len() == 2);
    fresh.signal(Signal::INT);
    fresh.end();
    assert!(!fresh.said().contains("going on with"), "{}", fresh.said());
}

#[test]
fn a_store_that_cannot_be_written() {
    if !root::may("a_store_that_cannot_be_written") {
        return;
    }
    let lab = lab();
    let small = root::Mounted::tmpfs(&lab.path("small"), "128k");
    lab.run("run lab.toml --on sim -n 200 --store small/s.sqlite")
        .refused(4)
        .says(&["small/s.sqlite", "no space is left"]);
    drop(small);
    lab.run("run lab.toml --on sim --store nowhere/s.sqlite")
        .refused(4)
        .says(&["nowhere/s.sqlite", "--store"]);
}

/// A few rows of a study: figures, errors, findings.
#[test]
fn a_study_is_predicted() {
    let lab = Lab::new();
    lab.run("reference run sata-md-levels --rows 'raid5 3*count=10'")
        .done()
        .says(&["[1/1]"])
        .prints(&[
            "raid5 3 disks, dd count=10",
            "Does what the study found hold",
        ]);
    let json = lab
        .run("reference run sata-md-levels --rows 'raid?*disks, dd count=10' --json")
        .done()
        .json();
    let study = &json["studies"][0];
    assert_eq!(study["study"], "sata-md-levels");
    let figures = study["figures"].as_array().expect("figures");
    assert!(
        figures.iter().all(|f| f["predicted"].as_f64() > Some(0.0)),
        "{figures:?}"
    );
    assert!(study["findings"].as_array().is_some_and(|f| f.len() > 5));
    lab.run("reference run sata-md-levels --rows nothing")
        .refused(2)
        .says(&["no row matches 'nothing'"]);
    lab.run("reference run nowhere")
        .refused(2)
        .says(&["there is no study 'nowhere'"]);
    lab.assert_untouched();
}

#[test]
fn a_trace_is_replayed_on_an_array() {
    let lab = lab();
    lab.write(
        "trace",
        "0.0 0 1000 8 1\n5.0 0 300000 128 1\n9.0 0 2000 8 0\n",
    );
    let ran = lab
        .run("replay trace --experiment lab.toml --cell raid5")
        .done()
        .says(&["on raid5: 3 requests"]);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 4);
    // The array's disks answered, not the memory of the host.
    let response = |row: &[&str]| row[6].parse::<f64>().expect("a time");
    assert!(rows[1..].iter().all(|row| response(row) > 0.05), "{rows:?}");
    lab.run("replay trace --experiment lab.toml")
        .refused(2)
        .says(&["--cell", "raid0", "raid5"]);
    lab.run("replay trace --experiment lab.toml --cell raid7")
        .refused(2)
        .says(&["no cell 'raid7'"]);
}

/// Who asks for the same again while it runs is told so, and by whom, instead of getting it all a second time.
#[test]
fn the_same_while_it_runs_is_told_with_who_runs_it() {
    let lab = Lab::new();
    lab.write("lab.toml", SMALL.replace("repeats = 3", "repeats = 5000"));
    let mut running = lab.start("run lab.toml --on sim --jobs 1");
    until("a trial is stored", || lab.complete() > 0);
    let process = format!("by process {}, begun ", running.id());
    lab.run("run lab.toml --on sim").refused(4).says(&[
        "the same is being run already",
        &process,
        "run lab.toml --on sim --jobs 1",
        " of 10000 trials",
        "--fresh",
    ]);
    // Other trials are none of these.
    lab.run("run lab.toml --on sim --seed 5 --repeats 1").done();
    assert_eq!(lab.sessions().len(), 2);
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
}

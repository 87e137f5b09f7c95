//! What identifies an imported trial: its text and its label, and within a call the file.
use crate::lab::{Lab, samples};
use serde_json::Value;
use std::collections::BTreeMap;

const HDPARM: &str = "\n/dev/sda:\n Timing cached reads:   21416 MB in  1.99 seconds = 10773.54 MB/sec\n \
                      Timing buffered disk reads: 412 MB in  3.01 seconds = 136.89 MB/sec\n";

fn dd(runs: usize) -> String {
    "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10.5 s, 102 MB/s\n".repeat(runs)
}

/// Trials of all sessions by the label of their cells.
fn labels(lab: &Lab) -> BTreeMap<String, usize> {
    let mut labels = BTreeMap::new();
    let export = lab.run("export").done().out;
    for line in export.lines().skip(1) {
        let trial: Value = serde_json::from_str(line).expect("a trial");
        let label = trial["cell"]["label"].as_str().expect("a label").to_owned();
        *labels.entry(label).or_default() += 1;
    }
    labels
}

#[track_caller]
fn holds<const N: usize>(lab: &Lab, wanted: [(&str, usize); N]) {
    let wanted = wanted.map(|(label, n)| (label.to_owned(), n));
    assert_eq!(labels(lab), BTreeMap::from(wanted));
}

#[test]
fn another_label_makes_another_trial() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("old")).expect("a directory");
    std::fs::create_dir(lab.path("new")).expect("a directory");
    lab.write("old/h.txt", HDPARM);
    lab.write("new/h.txt", HDPARM);
    lab.run("import old/h.txt --label old").done();
    lab.run("import new/h.txt --label new").done().says(&[
        "imported 1 trial, session",
        "1 trial has the figures of session",
        "under the label 'old': kept apart",
    ]);
    holds(&lab, [("old", 1), ("new", 1)]);
    // Sessions of their own, so that they can be compared.
    lab.run("compare last~1 last")
        .done()
        .prints(&["buffered-read"]);
    // A label that was forgotten can be given later.
    lab.run("import old/h.txt").done();
    lab.run("import old/h.txt --label later")
        .done()
        .says(&["imported 1 trial"]);
    holds(
        &lab,
        [("old", 1), ("new", 1), ("/dev/sda", 1), ("later", 1)],
    );
    // What the output says itself, or what the file is called, are labels, too.
    lab.run("import old/h.txt --label /dev/sda")
        .done()
        .says(&["imported 0 trials, 1 was there before"]);
    lab.write("a.txt", dd(5));
    lab.write("b.txt", dd(5));
    lab.run("import a.txt").done();
    lab.run("import b.txt").done().says(&["imported 5 trials"]);
    lab.run("compare last~1 last").done();
}

#[test]
fn the_same_text_under_the_same_label_is_told_and_can_be_insisted_on() {
    let lab = Lab::new();
    lab.write("h.txt", HDPARM);
    let first = lab.run("import h.txt --label a --json").done().json();
    let again = lab.run("import h.txt --label a --json").done();
    let again = again.says(&[
        "imported 0 trials, 1 was there before, session",
        "--again",
        "another --label",
    ]);
    let again = again.json();
    assert_eq!(again[0]["sessions"], first[0]["sessions"]);
    assert_eq!(
        (&again[0]["trials"], &again[0]["skipped"]),
        (&0.into(), &1.into())
    );
    lab.run("import h.txt --label a --again")
        .done()
        .says(&["imported 1 trial", "as a repeat"]);
    lab.run("import h.txt --label a --again")
        .done()
        .says(&["imported 1 trial"]);
    holds(&lab, [("a", 3)]);
    // As told beforehand.
    lab.run("import h.txt --label a --dry-run")
        .done()
        .says(&["would import 0 trials, 1 was there before"]);
    lab.run("import h.txt --label b --dry-run")
        .done()
        .says(&["would import 1 trial"]);
    holds(&lab, [("a", 3)]);
}

#[test]
fn repeats_in_files_of_their_own_are_repeats() {
    let lab = Lab::new();
    for name in ["r1.txt", "r2.txt", "r3.txt"] {
        lab.write(name, HDPARM);
    }
    std::os::unix::fs::symlink("r1.txt", lab.path("link.txt")).expect("a link");
    let line = "import r1.txt r2.txt ./r1.txt link.txt r3.txt r2.txt --label a";
    lab.run(line).done().says(&[
        "./r1.txt: the same file as r1.txt, read once",
        "link.txt: the same file as r1.txt, read once",
        "r2.txt: a text that came before, taken as a repeat",
    ]);
    holds(&lab, [("a", 3)]);
    // A retry adds nothing, and one of more files what it has more.
    lab.run(line)
        .done()
        .says(&["r3.txt: imported 0 trials, 1 was there before"]);
    lab.run("import r2.txt --label a")
        .done()
        .says(&["imported 0 trials"]);
    holds(&lab, [("a", 3)]);
    lab.write("r4.txt", HDPARM);
    lab.run("import r1.txt r2.txt r3.txt r4.txt --label a")
        .done();
    holds(&lab, [("a", 4)]);
    lab.run("report --json").done();
}

/// A time stamp in the text tells that two files are of one run.
#[test]
fn one_run_in_two_files_is_one_run() {
    let lab = Lab::new();
    let fio = std::fs::read(samples().join("fio-3.33-jsonplus.json")).expect("a sample");
    lab.write("a.json", &fio);
    lab.write("copy.json", &fio);
    lab.run("import a.json copy.json --label x")
        .done()
        .says(&["copy.json: imported 0 trials, 1 was there before"]);
    holds(&lab, [("x", 1)]);
    let ran = lab.run("import copy.json --label x --again").done();
    ran.says(&["imported 0 trials", "--again does not apply"]);
    lab.run("import copy.json --label y").done();
    holds(&lab, [("x", 1), ("y", 1)]);
}

/// A file that has grown is another text: of runs without a time stamp nobody can tell which are new.
#[test]
fn what_has_the_figures_of_what_is_there_is_told() {
    let lab = Lab::new();
    lab.write("log.txt", dd(2));
    lab.run("import log.txt --label a").done();
    lab.write("log.txt", dd(3));
    lab.run("import log.txt --label a").done().says(&[
        "imported 3 trials",
        "3 trials have the figures of session",
        "under the same label 'a' (a file that has grown?)",
        "raidlab remove",
    ]);
}

/// Up to now trials were identified by their text alone.
#[test]
fn trials_of_stores_of_before_are_known_again() {
    let lab = Lab::new();
    lab.write("h.txt", HDPARM);
    lab.run("import h.txt").done();
    // What an earlier version made of `import h.txt --label old`.
    let export = lab.run("export").done().out;
    let former = export.replace("\"label\":\"/dev/sda\"", "\"label\":\"old\"");
    assert_ne!(export, former);
    lab.write("former.jsonl", former);
    let run = |options: &str| lab.run(&format!("import {options} --store former.sqlite"));
    run("former.jsonl").done().says(&["imported 1 trial"]);
    run("h.txt --label old")
        .done()
        .says(&["imported 0 trials, 1 was there before"]);
    run("h.txt --label new").done().says(&["imported 1 trial"]);
    run("h.txt")
        .done()
        .says(&["imported 0 trials", "under the label 'old'", "with --again"]);
    run("h.txt --again").done().says(&["imported 1 trial"]);
    run("former.jsonl --dry-run")
        .done()
        .says(&["would import 0 trials, 1 was there before"]);
}

/// Four runs of fio for each of two arrays, of which the second is as fast and has the slower tail.
#[test]
fn response_times_that_fio_told_pass_a_gate_or_do_not() {
    let lab = Lab::new();
    let sample = std::fs::read_to_string(samples().join("fio-3.33-client.json")).expect("a sample");
    for (label, tail) in [("old array", 3000), ("new array [2]", 4500)] {
        let files: Vec<String> = (0..4).map(|run| format!("{tail}-{run}.json")).collect();
        for (run, file) in files.iter().enumerate() {
            let told = format!("\"99.000000\" : {}", tail + 7 * run);
            assert!(sample.contains("\"99.000000\" : 3440"));
            let text = sample.replace("\"99.000000\" : 3440", &told);
            lab.write(
                file,
                text.replace("1795197602", &format!("17951{tail}{run}")),
            );
        }
        lab.run(&format!("import {} --label '{label}'", files.join(" ")))
            .done();
    }
    let compare = |line: &str| lab.run(&format!("compare {line} --phase a/write"));
    compare("':old array' ':new array [2]' --gate-latency 1.1")
        .code(1)
        .prints(&["p99 at 1.1: fail", "equivalent"]);
    compare("':new array [2]' ':old array' --gate-latency 1.1 --require-interval").done();
    // 2048 writes have no 99.9th percentile that is more than luck.
    compare("':old array' ':new array [2]' --gate-latency p99.9=1.1 --require-interval")
        .code(6)
        .says(&["p99.9 wants 10000 operations in every run"]);
}

#[test]
fn a_label_alone_names_its_cells_in_all_sessions() {
    let lab = Lab::new();
    for (label, files) in [("old", 2), ("old*", 2), ("new", 1)] {
        for run in 0..files {
            // One that is longer is another.
            lab.write("log.txt", dd(1 + run));
            lab.run(&format!("import log.txt --label {label}")).done();
        }
    }
    lab.run("compare :old :new")
        .done()
        .prints(&["runs of 2 sessions are taken together"]);
    // A star stands for itself.
    lab.run("compare ':old*' :old").done();
    lab.run("compare :old :old")
        .refused(2)
        .says(&["3 trials are on both sides"]);
    lab.run("compare :nobody :old")
        .refused(2)
        .says(&["no session has a cell 'nobody'"]);
    lab.run("compare old new")
        .refused(2)
        .says(&["no session 'old'", "':old' means the cells of that name"]);
    lab.run("compare older new")
        .refused(2)
        .says(&["'older' is neither a session nor a study"]);
    lab.run("compare : :old").refused(2);
}

#[test]
fn formats_and_tools_by_name() {
    let lab = Lab::new();
    let sample = std::fs::read_to_string(samples().join("fio-3.33-client.json")).expect("a sample");
    lab.write("line.json", sample.replace('\n', ""));
    lab.run("import line.json")
        .done()
        .says(&["imported 1 trial"]);
    lab.run("import line.json --format fio --label b")
        .done()
        .says(&["imported 1 trial"]);
    lab.run("import line.json --format fio-json --label c")
        .done()
        .says(&["imported 1 trial"]);
    lab.run("import line.json --format hdparm")
        .refused(2)
        .says(&["line.json:1:", "looks like the output of fio (fio-json)"]);
    lab.run("import line.json --format fioo")
        .refused(2)
        .says(&["fio-json", "or fio or"]);
    lab.write("none.json", "{\n  \"x\" : 1\n}\n");
    let ran = lab.run("import none.json --format fio").refused(2);
    assert!(!ran.err.contains("damaged part"), "{}", ran.err);
}

//! Stores that cannot be used: they stay as they are, and nothing is measured for nothing.
use crate::lab::{DD, Lab, copy_program, ended};
use crate::root::{self, Mounted};
use std::process::Command;

/// Nothing that uses the store goes on; the place and the file stay as they were.
#[track_caller]
fn refused(lab: &Lab, code: i32, says: &[&str]) {
    let before = std::fs::read(lab.store()).ok();
    let sample = crate::lab::samples().join("hdparm-tT.txt");
    for line in [
        format!("bench place -n 1 {DD}"),
        "list".to_owned(),
        "report".to_owned(),
        "show".to_owned(),
        "export".to_owned(),
        format!("import {}", sample.display()),
        "remove 1f --yes".to_owned(),
        "bench --resume".to_owned(),
    ] {
        let ran = lab.run(&line).refused(code).says(says);
        ran.says(&["store.sqlite"]);
        lab.assert_clean();
    }
    assert!(std::fs::read(lab.store()).ok() == before, "it was changed");
}

#[test]
fn of_a_newer_version() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let mut bytes = std::fs::read(lab.store()).expect("a store");
    // `user_version` in the header of an SQLite file (fileformat2.html, 1.3).
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    lab.write("store.sqlite", &bytes);
    refused(
        &lab,
        4,
        &["this store has version 99", "use a newer raidlab"],
    );
}

#[test]
fn that_is_a_directory() {
    let lab = Lab::new();
    std::fs::create_dir(lab.store()).expect("a directory");
    refused(&lab, 2, &["a directory, not a file", "--store"]);
}

#[test]
fn that_is_something_else() {
    let lab = Lab::new();
    lab.write(
        "store.sqlite",
        "my shopping list, not to be overwritten\n".repeat(200),
    );
    refused(&lab, 2, &["not a raidlab store", "--store"]);
}

#[test]
fn that_is_cut_short() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let bytes = std::fs::read(lab.store()).expect("a store");
    lab.write("store.sqlite", &bytes[..bytes.len() / 2]);
    let before = std::fs::read(lab.store()).expect("a store");
    let ran = lab.run("report");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    ran.says(&["damaged", "store.sqlite"]);
    assert!(std::fs::read(lab.store()).expect("a store") == before);
}

#[test]
fn in_a_directory_that_is_not_there() {
    let lab = Lab::new();
    lab.run(&format!("bench place -n 1 {DD} --store nowhere/s.sqlite"))
        .refused(4)
        .says(&["nowhere/s.sqlite", "does not exist", "--store"]);
    lab.assert_untouched();
}

#[test]
fn on_a_read_only_file_system() {
    if !root::may("on_a_read_only_file_system") {
        return;
    }
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let mounted = Mounted::tmpfs(&lab.path("ro"), "4m");
    std::fs::copy(lab.store(), mounted.path.join("s.sqlite")).expect("a copy");
    mounted.make_read_only();
    for store in ["ro/s.sqlite", "ro/new.sqlite"] {
        lab.run(&format!("bench place -n 1 {DD} --store {store}"))
            .refused(4)
            .says(&[store, "--store"]);
        lab.assert_clean();
    }
    lab.run("report --store ro/s.sqlite")
        .done()
        .prints(&["dd on place"]);
    lab.run("list --store ro/s.sqlite")
        .done()
        .prints(&["finished"]);
}

#[test]
fn that_may_not_be_written() {
    if !root::may("that_may_not_be_written") {
        return;
    }
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let copy = lab.path("raidlab");
    copy_program(&copy);
    for (path, mode) in [
        (lab.path(""), "755"),
        (lab.place(), "777"),
        (lab.store(), "644"),
    ] {
        root::system("chmod", &[mode, path.to_str().expect("a path")]);
    }
    let nobody = |line: &str| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy);
        command.args(line.split_whitespace());
        lab.settle(&mut command);
        ended(command)
    };
    nobody(&format!("bench place -n 1 {DD}")).refused(4).says(&[
        "store.sqlite",
        "cannot be written",
        "permission",
    ]);
    lab.assert_clean();
    nobody("list").done().prints(&["finished"]);
}

#[test]
fn full_while_measuring() {
    if !root::may("full_while_measuring") {
        return;
    }
    let lab = Lab::new();
    let tmpfs = Mounted::tmpfs(&lab.path("small"), "256k");
    let ran = lab
        .run(&format!("bench place -n 60 {DD} --store small/s.sqlite"))
        .refused(4);
    ran.says(&[
        "small/s.sqlite",
        "no space is left",
        "nothing stored before is lost",
    ]);
    lab.assert_clean();
    let listed = lab.run("list --json --store small/s.sqlite").done().json();
    let kept = listed[0]["trials"].as_u64().expect("a number");
    assert!((1..60).contains(&kept), "{kept}");
    drop(tmpfs);
}

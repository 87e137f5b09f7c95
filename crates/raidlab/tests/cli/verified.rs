//! Arrays that are checked after the phases, on loop devices, as root.
use crate::lab::Lab;
use crate::real::{ON_FILES, assert_taken_apart, slowly};
use crate::root::may;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MIRROR: &str = r#"
title = "Still what was written?"
disks = { model = "nearline-24tb", count = 2 }

[array]
layout = "raid1"
engine = "btrfs"

[profile]
name = "random"
size = "32MiB"
read-percent = 0
rate = 10
time = "4s"

[design]
repeats = 1
verify = true
"#;

/// btrfs-progs note what came of scrubs for good: nothing of a file system that has gone is left.
#[track_caller]
fn assert_no_notes(lab: &Lab) {
    let shown = lab.run("show --json").done().out;
    let (_, rest) = shown
        .split_once("uuid: ")
        .expect("the uuid of the file system");
    let uuid = &rest[..36];
    let directory = Path::new("/var/lib/btrfs");
    if directory.exists() {
        let left = crate::lab::names(directory);
        assert!(!left.iter().any(|name| name.contains(uuid)), "{left:?}");
    }
}

/// What has been a member is blank, and nobody's: the kernel cannot take it back.
#[test]
fn btrfs_is_measured_and_scrubbed_without_a_member() {
    if !may("btrfs_is_measured_and_scrubbed_without_a_member") {
        return;
    }
    let lab = Lab::new();
    let text = MIRROR
        .replace("count = 2", "count = 4")
        .replace("layout = \"raid1\"\n", "")
        .replace("4s", "200ms");
    let arrays = "\n[factors]\narray = [\n  { name = \"first of two\", layout = \"raid1\", members = 2, failed = [0] },\n  \
                  { name = \"one of four\", layout = \"raid10\", members = 4, state = \"degraded\", failed = [2] },\n]\n";
    lab.write("lab.toml", format!("{text}{arrays}"));
    slowly(&lab, &format!("run lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "Verified after the phases (btrfs scrub",
            "consistent in 2 of 2 trials",
        ]);
    for trial in lab.trials() {
        assert_eq!(trial["status"], "complete", "{trial:#}");
        let counts = &trial["checks"][0]["counts"];
        assert_eq!(counts["uncorrectable_errors"], 0, "{trial:#}");
    }
    let shown = lab.run("show --json").done().out;
    for kept in ["btrfs device scan --forget", "-t btrfs -o degraded"] {
        assert!(shown.contains(kept), "the commands are kept");
    }
    assert_no_notes(&lab);
    assert_taken_apart(&lab);
    lab.run("clean").done().says(&["nothing was left behind"]);
}

#[test]
fn an_array_that_is_still_consistent_is_told_so() {
    if !may("an_array_that_is_still_consistent_is_told_so") {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        MIRROR.replace("verify = true\n", "").replace("4s", "200ms"),
    );
    slowly(&lab, &format!("run lab.toml --verify {ON_FILES}"))
        .done()
        .prints(&[
            "Verified after the phases (btrfs scrub",
            "consistent in 1 of 1 trial",
        ]);
    let trial = &lab.trials()[0];
    let check = &trial["checks"][0];
    assert_eq!(check["consistent"], true, "{trial:#}");
    assert_eq!(check["counts"]["csum_errors"], 0, "{trial:#}");
    // Both copies of the file that was read.
    assert!(
        check["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes >= 64 << 20),
        "{check}"
    );
    let command = trial["command"].as_str().expect("a command");
    assert!(
        command.contains(" --verify "),
        "not the same run: {command}"
    );
    assert_taken_apart(&lab);
    assert!(
        lab.run("report")
            .done()
            .out
            .contains("Verified after the phases")
    );
    // Who asks for nothing has nothing, and is no part of the same session.
    slowly(&lab, &format!("run lab.toml {ON_FILES}")).done();
    assert!(lab.trials().iter().any(|trial| trial["checks"].is_null()));
}

/// One member is overwritten while the phase reads nothing and writes little: nobody notices but the scrub.
#[test]
fn a_member_that_was_changed_behind_the_arrays_back_voids_the_trial() {
    if !may("a_member_that_was_changed_behind_the_arrays_back_voids_the_trial") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", MIRROR);
    let mut running = lab.start(&format!("run lab.toml {ON_FILES}"));
    // The data are there as soon as the file that is read has its size.
    let data = lab.path("state/raidlab/mnt");
    let written = || walk(&data).contains(&(32 << 20));
    crate::lab::until("the data", || written() || !running.is_running());
    std::thread::sleep(Duration::from_secs(1));
    assert!(running.is_running(), "{}", running.said());
    let mut members = walk_paths(&lab.path("place"));
    members.sort();
    let member = members.pop().expect("a member");
    let file = OpenOptions::new()
        .write(true)
        .open(&member)
        .expect("writable");
    // Not its superblock, nor the copy of it at 64 MiB.
    for range in [(20 << 20)..(60 << 20), (68 << 20)..(150_u64 << 20)] {
        let mut at = range.start;
        while at < range.end {
            file.write_all_at(&[0xa5; 1 << 16], at).expect("written");
            at += 1 << 16;
        }
    }
    file.sync_all().expect("synced");
    let status = running.end();
    assert_eq!(status.code(), Some(0), "{}", running.said());
    let trial = &lab.trials()[0];
    assert_eq!(trial["checks"][0]["consistent"], false, "{trial:#}");
    let flags = trial["flags"].as_array().expect("flags");
    let flag = flags.iter().find(|flag| flag["kind"] == "inconsistent");
    let flag = flag.unwrap_or_else(|| panic!("{trial:#}"));
    assert_eq!(flag["voids"], true, "{flag}");
    let reason = flag["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("csum error") && reason.contains("corruption_errs"),
        "{reason}"
    );
    lab.run("report").done().prints(&[
        "consistent in 0 of 1 trial",
        "inconsistent: the scrub of btrfs found",
    ]);
    assert_taken_apart(&lab);
    assert_no_notes(&lab);
}

fn walk_paths(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let inside = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => walk_paths(&path),
        path => vec![path],
    };
    entries.flatten().flat_map(inside).collect()
}

fn walk(directory: &Path) -> Vec<u64> {
    let size = |path: PathBuf| Some(std::fs::metadata(path).ok()?.len());
    walk_paths(directory).into_iter().filter_map(size).collect()
}

/// A run whose scrub goes at 1 MiB a second, and where its file system is mounted: that of the trial behind the one of
/// which it says `after`.
fn in_the_scrub(lab: &Lab, line: &str, after: &str) -> (crate::lab::Running, PathBuf) {
    let mut running = lab.start(line);
    running.wait_for(after);
    let root = lab.path("").display().to_string();
    let mounted = || {
        let said = Command::new("findmnt")
            .args(["-rn", "-t", "btrfs", "-o", "TARGET,UUID"])
            .output()
            .expect("findmnt");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = said.lines().find(|line| line.starts_with(&root))?;
        let (point, uuid) = line.split_once(' ')?;
        Some((PathBuf::from(point), uuid.to_owned()))
    };
    crate::lab::until("the file system", || {
        mounted().is_some() || !running.is_running()
    });
    let (point, uuid) = mounted().unwrap_or_else(|| panic!("{}", running.said()));
    for device in ["1", "2"] {
        let limit = format!("/sys/fs/btrfs/{uuid}/devinfo/{device}/scrub_speed_max");
        std::fs::write(&limit, "1m").unwrap_or_else(|error| panic!("{limit}: {error}"));
    }
    let scrubbing = || {
        let mut status = Command::new("btrfs");
        let said = status.args(["scrub", "status"]).arg(&point).output();
        let said = said.expect("btrfs");
        String::from_utf8_lossy(&said.stdout).contains("running")
    };
    crate::lab::until("the scrub", || scrubbing() || !running.is_running());
    assert!(running.is_running(), "{}", running.said());
    (running, point)
}

/// The last two signals come in the second trial: the first one, which had ended, is kept.
#[test]
fn a_scrub_that_is_interrupted_or_killed_leaves_nothing_and_is_gone_on_with() {
    if !may("a_scrub_that_is_interrupted_or_killed_leaves_nothing_and_is_gone_on_with") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", MIRROR.replace("repeats = 1", "repeats = 2"));
    let line = format!("run lab.toml {ON_FILES}");
    for (signal, code, after, kept) in [
        (Signal::INT, Some(130), "", 0),
        (Signal::KILL, None, "", 0),
        (Signal::TERM, Some(130), "[1/2]", 1),
        (Signal::KILL, None, "", 1),
    ] {
        let (mut running, _) = in_the_scrub(&lab, &line, after);
        let asked = Instant::now();
        running.signal(signal);
        assert_eq!(running.end().code(), code, "{}", running.said());
        if signal != Signal::KILL {
            let round = kept + 1;
            let told = format!("interrupted in the cell round {round}: scrub of btrfs");
            assert!(running.said().contains(&told), "{}", running.said());
        }
        // Both copies of 32 MiB would take half a minute.
        assert!(
            asked.elapsed() < Duration::from_secs(20),
            "it was waited for"
        );
        if signal == Signal::KILL {
            lab.run("clean").done();
        }
        assert_taken_apart(&lab);
        // Its trial was not verified, and is not kept.
        assert_eq!(lab.complete(), kept, "{signal:?} {after}");
    }
    slowly(&lab, &line).done();
    let trials = lab.trials();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(trial["checks"][0]["consistent"], true, "{trial:#}");
    }
    assert_no_notes(&lab);
}

#[test]
fn a_scrub_that_somebody_else_ends_leaves_the_trial_unverified_and_no_gate_passes_it() {
    let name = "a_scrub_that_somebody_else_ends_leaves_the_trial_unverified_and_no_gate_passes_it";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", MIRROR);
    let line = format!("run lab.toml {ON_FILES}");
    let (mut running, point) = in_the_scrub(&lab, &line, "");
    let mut cancel = Command::new("btrfs");
    let cancelled = cancel.args(["scrub", "cancel"]).arg(&point).status();
    assert!(cancelled.expect("btrfs").success());
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
    // Told at once, and in the report.
    let told = "unverified: whether the array is still consistent could not be told";
    assert!(running.said().contains(told), "{}", running.said());
    let trial = &lab.trials()[0];
    let flags = trial["flags"].as_array().expect("flags");
    let flag = flags.iter().find(|flag| flag["kind"] == "unverified");
    let flag = flag.unwrap_or_else(|| panic!("{trial:#}"));
    assert_eq!(flag["voids"], false, "{flag}");
    assert!(trial["checks"].is_null(), "{trial:#}");
    lab.run("report").done().prints(&[
        "consistent in 0 of 1 trial; in 1 that could not be told (unverified)",
        told,
    ]);
    assert_taken_apart(&lab);
    slowly(&lab, &format!("{line} --fresh")).done();
    lab.run("compare last~1 last --gate 0.1").code(6).says(&[
        "the gate cannot tell",
        "could not be told in 1 trial (unverified)",
    ]);
    // Nobody has to gate.
    lab.run("compare last~1 last").done();
}

#[test]
fn on_the_simulator_there_is_nothing_to_verify_which_is_said_once() {
    let lab = Lab::new();
    let quick = MIRROR
        .replace("engine = \"btrfs\"\n", "")
        .replace("repeats = 1", "repeats = 2");
    lab.write("lab.toml", quick);
    let ran = lab.run("run lab.toml --on sim").done();
    assert_eq!(
        ran.err.matches("nothing to verify").count(),
        1,
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("Verified"), "{}", ran.out);
}

#[test]
fn an_array_that_was_only_taken_to_agree_is_not_verified() {
    if !may("an_array_that_was_only_taken_to_agree_is_not_verified") {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        MIRROR.replace("engine = \"btrfs\"", "engine = \"md\""),
    );
    lab.run(&format!("run lab.toml {ON_FILES} --assume-clean"))
        .refused(2)
        .says(&[
            "only taken to agree (--assume-clean)",
            "leave out --assume-clean",
        ]);
}

//! Experiments on real arrays of loop devices, as root: built, measured, taken apart; whatever ends them.
use crate::lab::{Lab, Ran, ended, ended_within, names, until};
use crate::root::{has, may};
use rustix::process::Signal;
use std::os::unix::fs::{FileExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BTRFS: &str = r#"
title = "Who keeps the copies?"
disks = { model = "nearline-24tb", count = 4 }

[array]
engine = "btrfs"

[profile]
name = "dd"
bs = "256KiB"
count = 32

[factors]
layout = ["raid0", "raid1", "raid10"]

[design]
repeats = 2
"#;

/// One disk, written to without a file system.
pub(crate) const RAW: &str = r#"
title = "A disk as it is"
disks = { model = "nearline-24tb", count = 1 }
filesystem = "none"

[array]
layout = "single"

[profile]
name = "sequential"
size = "16MiB"
read-percent = 0
time = "300ms"

[design]
repeats = 1
"#;

pub(crate) const ON_FILES: &str = "--on host --loop-dir place --loop-size 160MiB";

/// Several trials of btrfs, and what the machine does beside, take a while.
pub(crate) fn slowly(lab: &Lab, line: &str) -> Ran {
    ended_within(lab.command(line), Duration::from_secs(300))
}

/// Nothing of this lab's is left on the machine.
#[track_caller]
pub(crate) fn assert_taken_apart(lab: &Lab) {
    lab.assert_clean();
    let root = lab.path("");
    let root = root
        .to_str()
        .expect("a path of plain text")
        .trim_end_matches('/');
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(root), "still mounted:\n{mounts}");
    for device in names(Path::new("/sys/block")) {
        let file = format!("/sys/block/{device}/loop/backing_file");
        let file = std::fs::read_to_string(file).unwrap_or_default();
        assert!(!file.starts_with(root), "{device} still shows {file}");
    }
    let journals = lab.path("state/raidlab/journal");
    if journals.exists() {
        assert_eq!(names(&journals), [""; 0], "journals are left");
    }
    assert!(!lab.path("state/raidlab/mnt").exists());
}

#[test]
fn btrfs_on_loop_files_is_built_measured_and_taken_apart() {
    if !may("btrfs_on_loop_files_is_built_measured_and_taken_apart") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    slowly(&lab, &format!("run lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "measured by raidlab on a host",
            "raid10",
            "loop files of 160 MiB",
        ])
        .says(&["[6/6]"]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!(trial["status"], "complete");
        assert_eq!(trial["provenance"]["place"], "host");
        assert_eq!(trial["phases"].as_array().map(Vec::len), Some(4), "{trial}");
        let moved = trial["phases"][0]["device"]["device_written"].as_u64();
        let copies = if trial["cell"]["label"] == "raid0" {
            1
        } else {
            2
        };
        let least = copies * (32 << 18);
        assert!(
            moved.is_some_and(|moved| moved >= least),
            "{moved:?} of {least} reached the disks"
        );
    }
    let shown = lab.run("show --json").done().out;
    assert!(
        shown.contains("mkfs.btrfs -f -q -K -U UUID-1"),
        "the commands are kept"
    );
    assert!(
        shown.contains("btrfs filesystem df"),
        "what was built is kept"
    );
    assert_taken_apart(&lab);
    lab.run("clean").done().says(&["nothing was left behind"]);
}

#[test]
fn a_disk_is_measured_past_file_systems_only_while_it_is_held() {
    if !may("a_disk_is_measured_past_file_systems_only_while_it_is_held") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    slowly(
        &lab,
        "run lab.toml --on host --only * --member-size 48MiB --loop-dir place --loop-size 64MiB",
    )
    .done();
    let trial = &lab.trials()[0];
    let command = trial["command"].as_str().expect("a command");
    assert!(
        command.contains(" --only '*' --member-size 50331648B "),
        "not the same run: {command}"
    );
    assert_eq!(trial["phases"][0]["phase"], "write", "{trial}");
    assert!(
        trial["phases"][0]["rate"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0)
    );
    assert_taken_apart(&lab);
}

#[test]
fn the_tool_itself_runs_where_its_profile_would() {
    if !may("the_tool_itself_runs_where_its_profile_would") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS.replace("repeats = 2", "repeats = 1"));
    slowly(&lab, &format!("run lab.toml {ON_FILES} --driver tool")).done();
    for trial in lab.trials() {
        assert_eq!(trial["provenance"]["tool"], "dd", "{trial}");
        let phases = trial["phases"].as_array().expect("phases");
        let names: Vec<_> = phases
            .iter()
            .filter_map(|phase| phase["phase"].as_str())
            .collect();
        assert_eq!(names, ["write-first", "read-first", "write", "read"]);
    }
    assert!(
        lab.run("show --json")
            .done()
            .out
            .contains("+ dd if=/dev/zero"),
        "its output is kept"
    );
    assert_taken_apart(&lab);
    let other = RAW.replace("\"sequential\"", "\"hdbench\"");
    let other = other.replace("size = \"16MiB\"\nread-percent = 0\ntime = \"300ms\"\n", "");
    lab.write("other.toml", other.replace("filesystem = \"none\"\n", ""));
    lab.run("run other.toml --on host --loop-dir place --driver tool")
        .refused(2)
        .says(&["profile hdbench has no tool that could carry it out"]);
}

#[test]
fn fio_itself_runs_on_a_disk_that_is_held_and_on_a_file_system() {
    let name = "fio_itself_runs_on_a_disk_that_is_held_and_on_a_file_system";
    if !may(name) || !has(name, "fio") {
        return;
    }
    let lab = Lab::new();
    lab.write("raw.toml", RAW);
    let on = "--on host --loop-dir place --driver tool --loop-size";
    slowly(&lab, &format!("run raw.toml {on} 64MiB")).done();
    let mixed =
        "name = \"random\"\nsize = \"16MiB\"\nread-percent = 70\ndepth = 4\ntotal = \"4MiB\"\n";
    let dd = "name = \"dd\"\nbs = \"256KiB\"\ncount = 32\n";
    let files = BTRFS
        .replace(dd, mixed)
        .replace("repeats = 2", "repeats = 1");
    lab.write(
        "files.toml",
        files.replace("\"raid0\", \"raid1\", \"raid10\"", "\"raid1\""),
    );
    slowly(&lab, &format!("run files.toml {on} 160MiB")).done();
    let sessions = lab.sessions();
    assert_eq!(sessions.len(), 2);
    let mut seen = Vec::new();
    for listed in &sessions {
        let id = listed["id"].as_str().expect("an id");
        let shown = lab.run(&format!("show {id} --json")).done().json();
        let trial = &shown["trials"][0];
        assert_eq!(trial["provenance"]["tool"], "fio", "{trial}");
        let phase = &trial["phases"][0];
        assert!(
            phase["rate"].as_f64().is_some_and(|rate| rate > 0.0),
            "{phase}"
        );
        seen.push(phase["phase"].as_str().expect("a name").to_owned());
        if phase["phase"] == "mixed" {
            assert_eq!(phase["bytes"], 4 << 20, "{phase}");
        }
        assert!(
            shown.to_string().contains("+ fio --output-format=json+"),
            "its output is kept"
        );
    }
    seen.sort();
    assert_eq!(seen, ["mixed", "write"]);
    assert_taken_apart(&lab);
}

#[test]
fn a_plan_tells_the_exact_commands() {
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    lab.run(&format!("plan lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "mkfs.btrfs -f -q -K -U UUID-1 -s 4096 -d raid10 -m raid10 /dev/loopN0",
            "mount -t btrfs -o device=/dev/loopN1",
            "afterwards: umount",
            "no device of yours is written to",
        ]);
    lab.assert_nothing_but(&["lab.toml"]);
}

#[test]
fn a_normal_user_is_told_what_needs_root() {
    if !may("a_normal_user_is_told_what_needs_root") {
        return;
    }
    let lab = Lab::new();
    let copy = lab.path("raidlab");
    crate::lab::copy_program(&copy);
    lab.write("lab.toml", BTRFS);
    for path in ["", "lab.toml", "place"] {
        std::fs::set_permissions(lab.path(path), PermissionsExt::from_mode(0o755)).expect("set");
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy);
    command.args(format!("run lab.toml {ON_FILES}").split_whitespace());
    lab.settle(&mut command);
    ended(command)
        .refused(4)
        .says(&["takes root", "sudo raidlab", "--on sim"]);
    assert_taken_apart(&lab);
}

#[test]
fn a_kernel_without_md_is_told_before_anything_is_made() {
    if !may("a_kernel_without_md_is_told_before_anything_is_made") {
        return;
    }
    if Path::new("/proc/mdstat").exists() {
        // There is nothing to be refused; what md does is tested in the virtual machine.
        return;
    }
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        BTRFS.replace("engine = \"btrfs\"", "engine = \"md\""),
    );
    lab.run(&format!("run lab.toml {ON_FILES}"))
        .refused(4)
        .says(&["this kernel has no md", "--on vm", "engine = \"btrfs\""]);
    lab.assert_nothing_but(&["lab.toml"]);
}

#[test]
fn ctrl_c_takes_everything_apart_and_the_run_can_go_on() {
    if !may("ctrl_c_takes_everything_apart_and_the_run_can_go_on") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    let line = format!("run lab.toml {ON_FILES}");
    let mut running = lab.start(&line);
    running.wait_for("[1/6]");
    running.signal(Signal::INT);
    let status = running.end();
    assert_eq!(status.code(), Some(130), "{}", running.said());
    assert_taken_apart(&lab);
    let before = lab.trials().len();
    assert!((1..6).contains(&before), "{before}");
    slowly(&lab, &line)
        .done()
        .says(&["going on with session", "[6/6]"]);
    assert_eq!(lab.trials().len(), 6);
    assert_taken_apart(&lab);
}

/// Whatever raidlab was doing when it was killed: `raidlab clean`, or the next run, leaves nothing of it, and no
/// finished trial is lost.
#[test]
fn kill_9_at_any_moment_is_undone() {
    if !may("kill_9_at_any_moment_is_undone") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    let line = format!("run lab.toml {ON_FILES}");
    let mut kept = 0;
    for moment in 0..10_u64 {
        let mut running = lab.start(&line);
        // From before the first loop file to the middle of a trial: prime steps, so that no two fall into the same.
        std::thread::sleep(Duration::from_millis(40 + 193 * moment));
        if running.is_running() {
            running.signal(Signal::KILL);
        }
        until("its end", || !running.is_running());
        if moment % 2 == 0 {
            slowly(&lab, "clean").done();
            assert_taken_apart(&lab);
        }
        let now = lab.complete();
        assert!(now >= kept, "{now} of {kept} finished trials are left");
        kept = now;
    }
    slowly(&lab, &line).done().says(&["[6/6]"]);
    let now = lab.complete();
    assert!(
        now > 0 && now.is_multiple_of(6),
        "{now} trials are no whole runs"
    );
    assert!(now >= kept, "{now} of {kept} finished trials are left");
    assert_taken_apart(&lab);
}

/// A run that was killed as it measured a btrfs on four disks, two of which are clear by now; its journal.
fn killed_and_cleared_in_part(lab: &Lab) -> PathBuf {
    lab.write(
        "lab.toml",
        BTRFS.replace(r#"["raid0", "raid1", "raid10"]"#, r#"["raid0"]"#),
    );
    let mut running = lab.start(&format!("run lab.toml {ON_FILES}"));
    let place = lab.path("state/raidlab/mnt").display().to_string();
    let mount = || {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        places.find(|at| at.starts_with(&place)).map(str::to_owned)
    };
    until("its file system", || mount().is_some());
    running.signal(Signal::KILL);
    running.end();
    let mount = mount().expect("what is mounted outlives whoever mounted it");
    rustix::mount::unmount(mount, rustix::mount::UnmountFlags::empty()).unwrap();
    wipe(lab, &["disk0", "disk1"]);
    let journals = lab.path("state/raidlab/journal");
    journals.join(&names(&journals)[0])
}

/// A run that was killed as it cleared the members of a file system: what the first of them had is gone, and what is on the others
/// is nobody's any more.
#[test]
fn a_file_system_that_was_cleared_in_part_is_cleared_to_its_end() {
    let name = "a_file_system_that_was_cleared_in_part_is_cleared_to_its_end";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    let journal = killed_and_cleared_in_part(&lab);
    // What a run writes before it clears the first.
    let written = std::fs::read_to_string(&journal).unwrap();
    let step = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let members = line.contains("\"contents\"") && entry["entry"] == "intend";
        members.then(|| entry["step"].to_string())
    };
    let step = written.lines().filter_map(step).next_back();
    let step = step.expect("members that were written on");
    let line = format!("{{\"entry\":\"clears\",\"step\":{step}}}\n");
    std::fs::write(&journal, written + &line).unwrap();
    slowly(&lab, "clean").done();
    assert_taken_apart(&lab);
}

/// Whoever else has cleared some of them may have had something on the others.
#[test]
fn a_file_system_that_someone_else_has_cleared_in_part_is_left() {
    let name = "a_file_system_that_someone_else_has_cleared_in_part_is_left";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    let journal = killed_and_cleared_in_part(&lab);
    for _ in 0..2 {
        slowly(&lab, "clean")
            .code(3)
            .prints(&["/dev/loop", "cannot be looked into"]);
        let written = std::fs::read_to_string(&journal).unwrap();
        assert!(!written.contains("\"clears\""), "{written}");
    }
    wipe(&lab, &["disk2", "disk3"]);
    slowly(&lab, "clean").done();
    assert_taken_apart(&lab);
}

/// Clears the superblocks of a btrfs, at 64 KiB and 64 MiB.
fn wipe(lab: &Lab, disks: &[&str]) {
    for disk in disks {
        let node = loop_of(&lab.place(), disk);
        let file = std::fs::OpenOptions::new().write(true).open(node).unwrap();
        for at in [64 << 10, 64 << 20] {
            file.write_all_at(&[0; 4096], at).unwrap();
        }
        file.sync_all().unwrap();
    }
}

/// The loop device of a disk that a run made below `place`.
fn loop_of(place: &Path, disk: &str) -> PathBuf {
    let devices = names(Path::new("/sys/block"));
    let of = |name: &String| {
        let file = format!("/sys/block/{name}/loop/backing_file");
        let file = std::fs::read_to_string(file).unwrap_or_default();
        file.starts_with(&place.display().to_string()) && file.trim_end().ends_with(disk)
    };
    let name = devices.into_iter().find(of).expect(disk);
    Path::new("/dev").join(name)
}

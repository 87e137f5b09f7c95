//! Where loop files are to be made: whatever is said, nothing is left there, and nothing is lost sight of.
use crate::lab::{Lab, Running, names, until};
use crate::real::{ON_FILES, RAW, assert_taken_apart, slowly};
use crate::root::{Mounted, has, may, system};
use rustix::process::Signal;
use std::path::Path;

/// Kills a run as soon as it has made a file for a loop device in this directory.
fn kill_with_loop_files(running: &mut Running, directory: &Path) {
    until("a loop file", || {
        let here = names(directory);
        here.iter()
            .any(|name| directory.join(name).join("disk0").exists())
    });
    running.signal(Signal::KILL);
    running.end();
}

/// What a run does is undone from wherever `clean` is called, and not only from where the run was.
#[test]
fn what_a_killed_run_left_is_found_from_another_directory() {
    if !may("what_a_killed_run_left_is_found_from_another_directory") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW.replace("300ms", "30s"));
    let mut running = lab.start(&format!("run lab.toml {ON_FILES}"));
    kill_with_loop_files(&mut running, &lab.place());
    let mut elsewhere = lab.command("clean");
    elsewhere.current_dir("/");
    let ran = crate::lab::ended(elsewhere).done();
    assert!(
        ran.out.contains("removed") || ran.err.contains("removed"),
        "{ran:?}"
    );
    assert_taken_apart(&lab);
}

#[test]
fn a_place_for_loop_files_that_is_none_is_refused_and_nothing_is_written_down() {
    let name = "a_place_for_loop_files_that_is_none_is_refused_and_nothing_is_written_down";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    for (place, says) in [
        ("lab.toml", "is no directory"),
        ("nowhere/at/all", "there is no directory"),
    ] {
        for command in ["run", "plan"] {
            lab.run(&format!(
                "{command} lab.toml --on host --loop-dir {place} --loop-size 16MiB"
            ))
            .refused(2)
            .says(&[place, says, "help:"]);
        }
    }
    lab.run("clean").done().says(&["nothing was left behind"]);
    assert_taken_apart(&lab);
}

/// What a profile needs, and loop files, is told before anything is built; the run ends in its first trial else.
#[test]
fn too_little_room_is_told_by_plan_and_refused_by_run() {
    let name = "too_little_room_is_told_by_plan_and_refused_by_run";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW.replace("16MiB", "64MiB"));
    let small = "lab.toml --on host --loop-dir place --loop-size 32MiB";
    lab.run(&format!("plan {small}")).done().prints(&[
        "Not as it is: cell 'the cell'",
        "32 MiB at most",
        "--loop-size",
    ]);
    let told = lab.run(&format!("plan {small} --json")).done().json();
    let lack = told["host"]["lacks"][0]["message"]
        .as_str()
        .expect("a lack");
    assert!(lack.contains("32 MiB at most"), "{told}");
    lab.run(&format!("run {small}")).refused(2).says(&[
        "cell 'the cell'",
        "32 MiB at most",
        "help: choose",
        "--loop-size",
    ]);
    let large = "lab.toml --on host --loop-dir place --loop-size 1PiB";
    lab.run(&format!("plan {large}"))
        .done()
        .prints(&["no room for 1 loop file of 1 PiB", "another --loop-dir"]);
    lab.run(&format!("run {large}"))
        .refused(4)
        .says(&["(1 PiB)", "another --loop-dir"]);
    lab.run("clean").done().says(&["nothing was left behind"]);
    assert_taken_apart(&lab);
}

/// The kernel tells of mounts by the places that links lead to.
#[test]
fn what_is_mounted_below_a_link_is_found_again() {
    let name = "what_is_mounted_below_a_link_is_found_again";
    if !may(name) || !has(name, "mkfs.ext4") {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        RAW.replace("filesystem = \"none\"", "filesystem = \"ext4\""),
    );
    std::fs::create_dir_all(lab.path("elsewhere/raidlab")).expect("a directory");
    std::os::unix::fs::symlink("elsewhere", lab.path("state")).expect("a link");
    slowly(&lab, &format!("run lab.toml {ON_FILES}"))
        .done()
        .says(&["[1/1]"]);
    assert_taken_apart(&lab);
}

/// A file system that nobody can write to for a while; left so, its writers could not even be killed.
struct Frozen(String);

impl Frozen {
    fn new(point: &Path) -> Self {
        let point = point.to_str().expect("a path of plain text").to_owned();
        system("fsfreeze", &["-f", &point]);
        Self(point)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fsfreeze")
            .args(["-u", &self.0])
            .status();
    }
}

/// A run that has been asked to end while the device that it writes to is frozen, which keeps whoever writes in the kernel.
fn asked_while_frozen(lab: &Lab) -> (Running, Frozen) {
    let slow = RAW
        .replace("filesystem = \"none\"", "filesystem = \"ext4\"")
        .replace("time = \"300ms\"", "time = \"60s\"");
    lab.write("lab.toml", slow);
    let mut running = lab.start(&format!("run lab.toml {ON_FILES}"));
    let point = lab.path("state/raidlab/mnt");
    let written = || {
        let here = std::fs::read_dir(&point).into_iter().flatten().flatten();
        let mut data = here.filter_map(|entry| std::fs::read_dir(entry.path()).ok());
        data.any(|mut files| files.any(|file| file.is_ok()))
    };
    until("files of a phase", written);
    let frozen = Frozen::new(&point);
    running.signal(Signal::INT);
    running.wait_for("a second Ctrl-C");
    (running, frozen)
}

/// That is told, and it is taken apart when it goes on.
#[test]
fn what_is_waited_for_after_a_signal_is_told() {
    let name = "what_is_waited_for_after_a_signal_is_told";
    if !may(name) || !has(name, "mkfs.ext4") || !has(name, "fsfreeze") {
        return;
    }
    let lab = Lab::new();
    let (mut running, frozen) = asked_while_frozen(&lab);
    drop(frozen);
    assert_eq!(running.end().code(), Some(130));
    let said = running.said();
    assert!(said.contains("raidlab clean"), "{said}");
    assert_taken_apart(&lab);
}

/// As soon as the kernel lets go of it, and what it built is left.
#[test]
fn a_second_control_c_ends_it_at_once() {
    let name = "a_second_control_c_ends_it_at_once";
    if !may(name) || !has(name, "mkfs.ext4") || !has(name, "fsfreeze") {
        return;
    }
    let lab = Lab::new();
    let (mut running, frozen) = asked_while_frozen(&lab);
    running.signal(Signal::INT);
    // It has ended but for what the kernel holds.
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(frozen);
    assert_eq!(running.end().code(), Some(130));
    slowly(&lab, "clean").done().prints(&["detached /dev/loop"]);
    assert_taken_apart(&lab);
}

/// Its directory has gone, and something else has its name: what was in there has gone with it.
#[test]
fn what_was_in_a_directory_that_has_gone_is_undone() {
    if !may("what_was_in_a_directory_that_has_gone_is_undone") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW.replace("300ms", "30s"));
    let mounted = Mounted::tmpfs(&lab.path("files"), "64m");
    let mut running = lab.start("run lab.toml --on host --loop-dir files --loop-size 32MiB");
    kill_with_loop_files(&mut running, &lab.path("files"));
    drop(mounted);
    std::fs::remove_dir(lab.path("files")).expect("nothing is in it any more");
    lab.write("files", "something else");
    slowly(&lab, "clean").done();
    lab.run("clean").done().says(&["nothing was left behind"]);
    assert_eq!(
        std::fs::read(lab.path("files")).expect("the file"),
        b"something else"
    );
    assert_taken_apart(&lab);
}

/// Without a journal nothing is begun, and that is no trial that failed.
#[test]
fn a_place_for_journals_that_cannot_be_written_is_told_before_anything_is_made() {
    if !may("a_place_for_journals_that_cannot_be_written_is_told_before_anything_is_made") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    let state = Mounted::tmpfs(&lab.path("state"), "1m");
    state.make_read_only();
    lab.run(&format!("run lab.toml {ON_FILES}"))
        .refused(4)
        .says(&["state/raidlab", "Read-only file system"]);
    drop(state);
    assert_taken_apart(&lab);
}

/// Of two runs that use the same names on the machine the second is refused before it has begun anything.
#[test]
fn of_two_runs_at_once_the_second_is_refused_before_its_first_step() {
    if !may("of_two_runs_at_once_the_second_is_refused_before_its_first_step") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW.replace("300ms", "3s"));
    let mut first = lab.start(&format!("run lab.toml {ON_FILES}"));
    until("a loop file", || !names(&lab.place()).is_empty());
    let here = names(&lab.place());
    slowly(
        &lab,
        &format!("run lab.toml {ON_FILES} --store other.sqlite"),
    )
    .refused(4)
    .says(&[
        "another run of raidlab",
        &format!("by process {}, begun ", first.id()),
        "raidlab run lab.toml",
        "nothing was begun",
    ]);
    // It is told of no trial that failed, and leaves what is the first one's alone.
    assert!(!lab.path("other.sqlite").exists());
    assert_eq!(names(&lab.place()), here);
    slowly(&lab, "clean")
        .done()
        .says(&["nothing was left behind"]);
    assert_eq!(first.end().code(), Some(0), "{}", first.said());
    assert_eq!(lab.complete(), 1);
    assert_taken_apart(&lab);
    // How long it took, with what was built and taken apart, is known from now on.
    lab.run("plan lab.toml").done().prints(&[
        "With --on host (loop files of 160 MiB) ",
        "by the time of 1 earlier trial of these cells in the store",
    ]);
    let told = lab.run("plan lab.toml --json").done().json();
    let most = &told["estimated_seconds"]["by_earlier_trials"][0]["most"];
    assert!(most.as_f64().is_some_and(|s| s > 3.0), "{most}");
}

#[test]
fn of_two_runs_that_begin_together_one_is_carried_out() {
    if !may("of_two_runs_that_begin_together_one_is_carried_out") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW.replace("300ms", "2s"));
    let mut both = [(); 2].map(|()| lab.start(&format!("run lab.toml {ON_FILES}")));
    let mut codes = both.each_mut().map(|run| run.end().code());
    codes.sort_unstable();
    let said = both.each_ref().map(Running::said);
    assert_eq!(codes, [Some(0), Some(4)], "{said:?}");
    assert_eq!(lab.trials().len(), 1, "no trial failed: {said:?}");
    assert_taken_apart(&lab);
}

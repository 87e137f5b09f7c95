//! Working directories in which there is something that raidlab did not make: they stay, and are told.
use crate::lab::{Lab, names, until};
use crate::root::{may, system};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

const LINE: &str = "bench place -n 1 --profile random --size 4MiB --runtime 300ms";

/// The working directory of a bench that was killed.
fn killed(lab: &Lab) -> PathBuf {
    let before = names(&lab.place());
    let new = || {
        let mut all = names(&lab.place()).into_iter();
        all.find(|name| !before.contains(name))
            .map(|name| lab.place().join(name))
            .filter(|path| path.join("data-0").exists())
    };
    let mut running = lab.start(&LINE.replace("300ms", "30s"));
    until("the data file", || new().is_some());
    let left = new().expect("there");
    running.signal(Signal::KILL);
    running.end();
    left
}

#[test]
fn files_that_raidlab_did_not_make_are_told_and_left() {
    let lab = Lab::new();
    let left = killed(&lab);
    let copy = lab.place().join(".raidlab-00000a");
    system(
        "cp",
        &["-a", left.to_str().unwrap(), copy.to_str().unwrap()],
    );
    for of in [&left, &copy] {
        fs::create_dir(of.join("dir")).unwrap();
        fs::write(of.join("dir/p"), "mine").unwrap();
        fs::write(of.join("precious.txt"), "mine").unwrap();
    }
    let told = [
        "'dir', 'precious.txt'",
        "raidlab did not make",
        "move that elsewhere",
    ];
    for _ in 0..2 {
        let ran = lab.run("clean").code(3).prints(&told);
        for of in [&left, &copy] {
            assert!(ran.out.contains(&of.display().to_string()), "{ran:?}");
            assert_eq!(fs::read_to_string(of.join("dir/p")).unwrap(), "mine");
            assert!(of.join("data-0").exists());
        }
    }
    // The next bench in the same place tells them once, and measures.
    let ran = lab.run(LINE).done().says(&told);
    assert_eq!(ran.err.matches("00000a stays").count(), 1, "{ran:?}");
    for of in [&left, &copy] {
        assert_eq!(fs::read_to_string(of.join("precious.txt")).unwrap(), "mine");
        fs::remove_file(of.join("precious.txt")).unwrap();
        fs::remove_dir_all(of.join("dir")).unwrap();
    }
    lab.run("clean").done();
    lab.assert_clean();
}

#[test]
fn what_is_mounted_in_a_working_directory_is_told_and_left() {
    if !may("what_is_mounted_in_a_working_directory_is_told_and_left") {
        return;
    }
    let lab = Lab::new();
    let left = killed(&lab);
    let (theirs, point) = (lab.path("theirs"), left.join("m"));
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("f"), "mine").unwrap();
    fs::create_dir(&point).unwrap();
    let words = [&theirs, &point].map(|path| path.to_str().unwrap().to_owned());
    system("mount", &["--bind", &words[0], &words[1]]);
    let cleaned = lab.run("clean");
    let benched = lab.run(LINE);
    system("umount", &[&words[1]]);
    let told = ["is mounted at", "umount", "raidlab clean"];
    cleaned.code(3).prints(&told);
    benched.done().says(&told);
    assert_eq!(fs::read_to_string(theirs.join("f")).unwrap(), "mine");
    assert!(left.join("data-0").exists());
    fs::remove_dir(&point).unwrap();
    fs::remove_dir_all(&theirs).unwrap();
    lab.run("clean").done();
    lab.assert_clean();
}

/// All was measured when the directory could not be removed: the figures are kept, and the run says what it left.
#[test]
fn a_bench_whose_directory_stays_keeps_its_figures() {
    let lab = Lab::new();
    let mut running = lab.start(&LINE.replace("300ms", "2s"));
    let work = || names(&lab.place()).pop().map(|name| lab.place().join(name));
    let there = || work().filter(|work| work.join("data-0").exists());
    until("the data file", || there().is_some());
    let work = there().expect("there");
    fs::write(work.join("precious.txt"), "mine").unwrap();
    assert_eq!(running.end().code(), Some(5), "{}", running.said());
    let said = running.said();
    for part in [
        "stays: it holds 'precious.txt'",
        "something was left behind",
        "raidlab clean",
    ] {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
    assert_eq!(lab.complete(), 1);
    assert_eq!(
        fs::read_to_string(work.join("precious.txt")).unwrap(),
        "mine"
    );
    lab.run("clean").code(3).prints(&["'precious.txt'"]);
    fs::remove_file(work.join("precious.txt")).unwrap();
    lab.run("clean").done();
    lab.assert_clean();
}

/// With no journal that tells of it no run would ever begin again.
#[test]
fn a_mount_point_that_no_run_has_is_removed() {
    let lab = Lab::new();
    let point = lab.path("state/raidlab/mnt");
    fs::create_dir_all(&point).unwrap();
    lab.run("clean").done().prints(&["removed", "raidlab/mnt"]);
    assert!(!point.exists());
    lab.run("clean").done().says(&["nothing was left behind"]);
}

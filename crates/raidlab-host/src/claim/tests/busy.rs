//! File systems that a run left and that are in use when it is undone.
use super::files::{LARGE, Mounted, cleaned, device, journal, left_mounted, make};
use super::*;
use crate::alone::Alone;
use crate::journal::{Journal, Report, Undone, forget_point};
use std::process::{Child, Command};

/// A process that works in a directory.
struct Inside(Child);

impl Inside {
    fn of(directory: &Path) -> Self {
        let mut command = Command::new("sleep");
        Self(
            command
                .arg("600")
                .current_dir(directory)
                .spawn()
                .expect("sleep"),
        )
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is mounted there hides the directory that raidlab made: that it is not seen does not mean that it has gone.
#[test]
fn a_mount_that_is_in_use_keeps_its_mount_point() {
    if !may("a_mount_that_is_in_use_keeps_its_mount_point") {
        return;
    }
    let theirs = device(LARGE);
    let place = tempfile::tempdir().expect("a directory");
    make("ext4", 0x51, &[&theirs]);
    let point = left_mounted(place.path(), 0x51, &theirs, true);
    let inside = Inside::of(&point);
    let report = cleaned(place.path());
    drop(inside);
    let left = report.left.join("\n");
    assert!(
        left.contains("stays mounted: it is in use") && left.contains("fuser -vm"),
        "{report:?}"
    );
    assert!(!left.contains("wipefs"), "{report:?}");
    let report = cleaned(place.path());
    assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
    assert!(!point.exists(), "{report:?}");
    theirs.given();
}

/// Whoever has it mounted elsewhere is told to unmount it, and not to clear it.
#[test]
fn a_file_system_that_is_mounted_elsewhere_is_not_to_be_cleared() {
    if !may("a_file_system_that_is_mounted_elsewhere_is_not_to_be_cleared") {
        return;
    }
    for (kind, byte) in [("ext4", 0x52), ("btrfs", 0x53)] {
        let both = [device(LARGE), device(LARGE)];
        let used: Vec<&Theirs> = both
            .iter()
            .take(if kind == "btrfs" { 2 } else { 1 })
            .collect();
        let place = tempfile::tempdir().expect("a directory");
        make(kind, byte, &used);
        journal(place.path(), byte, &used, true);
        let mounted = Mounted::of(&used);
        let report = cleaned(place.path());
        let at = mounted.path("");
        let at = at.display().to_string();
        let told = format!("mounted at {}", at.trim_end_matches('/'));
        assert_eq!(report.left.len(), used.len(), "{report:?}");
        for left in &report.left {
            assert!(
                left.contains(&told) && left.contains("umount"),
                "{report:?}"
            );
            assert!(!left.contains("wipefs"), "{report:?}");
        }
        drop(mounted);
        let report = cleaned(place.path());
        assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
    }
}

/// In the directory that a killed run worked in, too, which is raidlab's by its name.
#[test]
fn files_in_a_working_directory_keep_its_file_system() {
    if !may("files_in_a_working_directory_keep_its_file_system") {
        return;
    }
    let theirs = device(LARGE);
    let place = tempfile::tempdir().expect("a directory");
    make("ext4", 0x54, &[&theirs]);
    journal(place.path(), 0x54, &[&theirs], true);
    let mounted = Mounted::of(&[&theirs]);
    std::fs::create_dir(mounted.path(".raidlab-0a1b2c")).expect("made");
    for name in ["data-0", "letters"] {
        std::fs::write(mounted.path(".raidlab-0a1b2c").join(name), "x").expect("written");
    }
    drop(mounted);
    let report: Report = cleaned(place.path());
    let left = report.left.join("\n");
    assert!(
        left.contains("'.raidlab-0a1b2c/letters'") && !left.contains("data-0"),
        "{report:?}"
    );
    assert!(report.undone.is_empty(), "{report:?}");
    let mounted = Mounted::of(&[&theirs]);
    std::fs::remove_file(mounted.path(".raidlab-0a1b2c/letters")).expect("still there");
    drop(mounted);
    let report = cleaned(place.path());
    assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
    theirs.given();
}

/// It would keep every run from beginning: raidlabs before this one forgot it when what was mounted there was in use.
#[test]
fn a_mount_point_that_no_journal_tells_of_is_removed_when_it_is_empty() {
    let state = tempfile::tempdir().expect("a directory");
    let (journals, point) = (state.path().join("journal"), state.path().join("mnt"));
    let alone = Alone::take(state.path(), &[]).expect("nobody else");
    let roots = Roots::system();
    let forget = || forget_point(&roots, &journals, &point, &alone).expect("looked at");
    assert_eq!(forget(), Undone::Nothing);
    std::fs::create_dir(&point).expect("made");
    // A journal that is there undoes it itself.
    let journal = Journal::begin(&journals, "raidlab run x").expect("begun");
    assert_eq!(forget(), Undone::Nothing);
    std::fs::remove_file(journal.path()).expect("removed");
    std::fs::write(point.join("letters"), "mine").expect("written");
    assert!(matches!(forget(), Undone::Left(why) if why.contains("look into it")));
    std::fs::remove_file(point.join("letters")).expect("still there");
    assert_eq!(
        forget(),
        Undone::Done(format!("removed {}", point.display()))
    );
    assert!(!point.exists());
}

//! What a working directory takes with it when it goes, and what it must not.
use super::super::*;
use crate::observe::tree::{is_root, run};
use std::fs;

/// Unmounts a place when it is dropped, so that a test that fails leaves nothing mounted.
struct Bound(PathBuf);

impl Bound {
    fn at(what: &Path, point: PathBuf) -> Self {
        let words = [what, &point].map(|path| path.to_str().unwrap());
        run("mount", &["--bind", words[0], words[1]]);
        Self(point)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// A bind mount of the same file system has the same device number: nothing but the mount tells them apart.
#[test]
fn what_is_mounted_in_it_is_not_emptied() {
    if !is_root("what_is_mounted_in_it_is_not_emptied") {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let theirs = parent.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    // A name that raidlab gives, too.
    for name in ["f", "data-0", "0000000001"] {
        fs::write(theirs.join(name), "theirs").unwrap();
    }
    // Where nothing of raidlab's has that name, and where a directory of small files has.
    for name in ["m", "00000"] {
        let work = WorkDir::create(parent.path()).unwrap();
        fs::write(work.path().join("data-0"), "ours").unwrap();
        fs::create_dir(work.path().join(name)).unwrap();
        let path = work.path().to_owned();
        let bound = Bound::at(&theirs, path.join(name));
        let error = work.remove().expect_err("something is mounted").to_string();
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 3, "{name}: {error}");
        let point = bound.0.display().to_string();
        assert!(
            error.contains(&format!("mounted at {point}"))
                && error.contains(&format!("umount {point}")),
            "{error}"
        );
        // Refused before anything is removed.
        assert!(path.join("data-0").exists() && path.join(OWNER).exists());
        drop(bound);
    }
    // The directory itself, too: by its name one comes to what is mounted there.
    let work = WorkDir::create(parent.path()).unwrap();
    let path = work.path().to_owned();
    fs::write(theirs.join(OWNER), "x").unwrap();
    let bound = Bound::at(&theirs, path.clone());
    assert!(work.remove().is_err());
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 4);
    drop(bound);
}

/// A link is never gone through.
#[test]
fn what_a_link_leads_to_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let theirs = parent.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    for name in ["f", "0000000001"] {
        fs::write(theirs.join(name), "theirs").unwrap();
    }
    let work = WorkDir::create(parent.path()).unwrap();
    for (at, to) in [("data-0", "f"), ("00000", ""), ("link", "")] {
        std::os::unix::fs::symlink(theirs.join(to), work.path().join(at)).unwrap();
    }
    drop(work);
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(theirs.join("f")).unwrap(), "theirs");
}

/// Also in a copy of a directory that a killed run left, under another name.
#[test]
fn what_raidlab_did_not_make_keeps_the_directory_and_is_told() {
    let parent = tempfile::tempdir().unwrap();
    let stale = parent.path().join(".raidlab-0000a1");
    fs::create_dir_all(stale.join("00000")).unwrap();
    fs::create_dir(stale.join("dir")).unwrap();
    let owner = format!("{FIRST_LINE}\npid 1\nstart 0\nboot another\n");
    for (name, text) in [
        (OWNER, owner.as_str()),
        ("data-0", "ours"),
        ("00000/0000000001aB", "ours"),
        ("00000/letter", "theirs"),
        ("dir/p", "theirs"),
        ("precious.txt", "theirs"),
        ("data-1.bak", "theirs"),
    ] {
        fs::write(stale.join(name), text).unwrap();
    }
    let found = WorkDir::remove_stale(parent.path());
    assert!(found.removed.is_empty());
    let told = found.left[0].to_string();
    let words = [
        "'00000/letter', 'data-1.bak', 'dir' and 1 more",
        "move that elsewhere",
        "raidlab clean",
    ];
    assert!(
        told.starts_with(&format!("{} stays: ", stale.display()))
            && words.iter().all(|words| told.contains(words)),
        "{told}"
    );
    assert!(stale.join("data-0").exists() && stale.join("00000/0000000001aB").exists());
    // When it is moved elsewhere, all goes.
    fs::remove_dir_all(stale.join("dir")).unwrap();
    for name in ["00000/letter", "data-1.bak", "precious.txt"] {
        fs::rename(stale.join(name), parent.path().join("kept")).unwrap();
    }
    let found = WorkDir::remove_stale(parent.path());
    assert!(found.left.is_empty() && !stale.exists());
    assert_eq!(found.removed, [stale]);
}

/// Whoever puts something there while a run goes on finds it there when it has ended.
#[test]
fn what_was_put_there_meanwhile_stays_when_a_run_ends() {
    let parent = tempfile::tempdir().unwrap();
    for drops in [false, true] {
        let work = WorkDir::create(parent.path()).unwrap();
        let path = work.path().to_owned();
        fs::write(path.join("precious.txt"), "theirs").unwrap();
        match drops {
            true => drop(work),
            false => {
                let error = work.remove().expect_err("it is not raidlab's").to_string();
                assert!(error.contains("'precious.txt'"), "{error}");
            }
        }
        assert_eq!(
            fs::read_to_string(path.join("precious.txt")).unwrap(),
            "theirs"
        );
    }
}

/// What tools make goes with the rest, as what raidlab makes itself does.
#[test]
fn what_tools_made_goes() {
    let parent = tempfile::tempdir().unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    fs::create_dir_all(work.path().join("Bonnie.12/00000")).unwrap();
    for name in [
        "Bonnie.12.000",
        "Bonnie.12/00000/0000000001",
        "_12_tiotest.0",
    ] {
        fs::write(work.path().join(name), "x").unwrap();
    }
    work.remove().unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

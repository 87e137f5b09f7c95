//! Working directories: whose they are, and when they go.
use super::*;
use crate::descriptor::by_name;

#[test]
fn a_working_directory_goes_when_it_is_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    let path = work.path().to_owned();
    std::fs::write(path.join("data-0"), "x").unwrap();
    assert!(
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(".raidlab-")
    );
    drop(work);
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// The file system that it is on can be unmounted meanwhile: nothing there is open any more.
#[test]
fn a_working_directory_that_is_let_go_of_is_found_again() {
    let parent = tempfile::tempdir().unwrap();
    let mut work = WorkDir::create(parent.path()).unwrap();
    let path = work.path().to_owned();
    std::fs::write(path.join("data-0"), "x").unwrap();
    let opened = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|to| to.starts_with(parent.path())).count()
    };
    assert!(opened() > 0);
    work.leave();
    assert_eq!(opened(), 0);
    assert!(path.join("data-0").exists());
    work.come_back().unwrap();
    assert!(opened() > 0);
    // It is known as that of someone who lives.
    assert!(WorkDir::remove_stale(parent.path()).removed.is_empty());
    assert_eq!(std::fs::read(work.way().join("data-0")).unwrap(), b"x");
    work.leave();
    std::fs::rename(&path, parent.path().join("elsewhere")).unwrap();
    let error = work.come_back().unwrap_err().to_string();
    assert!(error.contains("find again"), "{error}");
    drop(work);
    assert!(parent.path().join("elsewhere/data-0").exists());
}

/// Where a file that is open cannot be removed, it gets another name and the directory stays.
#[test]
fn what_tells_the_owner_is_closed_before_it_is_removed() {
    use rustix::fs::inotify;
    let parent = tempfile::tempdir().unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    let wanted = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, work.path(), wanted).unwrap();
    work.remove().unwrap();
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut room);
    let first = events.next().unwrap().events();
    assert_eq!(first, inotify::ReadFlags::CLOSE_WRITE);
    let second = events.next().unwrap().events();
    assert_eq!(second, inotify::ReadFlags::DELETE);
}

#[test]
fn only_directories_whose_owner_is_gone_are_removed() {
    let parent = tempfile::tempdir().unwrap();
    let live = WorkDir::create(parent.path()).unwrap();
    let make = |name: &str, owner: Option<&str>| {
        let path = parent.path().join(name);
        std::fs::create_dir(&path).unwrap();
        if let Some(text) = owner {
            std::fs::write(path.join(OWNER), text).unwrap();
        }
        path
    };
    let boot = boot_id();
    let gone = format!("{FIRST_LINE}\npid 4194999\nstart 1\nboot {boot}\n");
    let reused = format!(
        "{FIRST_LINE}\npid {}\nstart 1\nboot {boot}\n",
        std::process::id()
    );
    let earlier = format!("{FIRST_LINE}\npid 1\nstart 0\nboot another\n");
    let mut stale = vec![
        make(".raidlab-0000a1", Some(&gone)),
        make(".raidlab-0000a2", Some(&reused)),
        make(".raidlab-0000a3", Some(&earlier)),
    ];
    let shared = format!("{earlier}machine 0123 elsewhere\n");
    let here = format!("{earlier}machine {}\n", machine());
    stale.push(make(".raidlab-0000a4", Some(&here)));
    let kept = [
        make(".raidlab-0000b1", Some(&shared)),
        make(".raidlab-0000b3", Some("my own notes\n")),
        make("other", Some(&gone)),
        // No name that raidlab gives.
        make(".raidlab-gone", Some(&gone)),
        make(".raidlab-no-owner", None),
    ];
    std::os::unix::fs::symlink(&kept[3], parent.path().join(".raidlab-0000b4")).unwrap();
    let mut removed = WorkDir::remove_stale(parent.path()).removed;
    removed.sort();
    stale.sort();
    assert_eq!(removed, stale);
    assert!(stale.iter().all(|path| !path.exists()));
    assert!(kept.iter().all(|path| path.exists()));
    assert!(live.path().exists());
}

/// As it is where directories cannot be locked, or another raidlab is making one.
#[test]
fn what_was_left_before_it_had_an_owner_is_removed_when_it_is_old() {
    let parent = tempfile::tempdir().unwrap();
    let _other = turn(parent.path()).expect("a lock");
    let make = |name: &str, files: &[(&str, &str)], old: bool| {
        let path = parent.path().join(name);
        std::fs::create_dir(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        let then = std::time::SystemTime::now() - 2 * UNBORN;
        let all = files.iter().map(|(file, _)| path.join(file));
        for path in all.chain([path.clone()]).filter(|_| old) {
            File::open(path).unwrap().set_modified(then).unwrap();
        }
        path
    };
    let mut stale = vec![
        make(".raidlab-00000a", &[], true),
        make(".raidlab-00000b", &[(OWNER, "")], true),
    ];
    let kept = [
        make(".raidlab-00000c", &[], false),
        make(".raidlab-00000d", &[(OWNER, "")], false),
        make(".raidlab-00000e", &[("notes", "")], true),
        make(".raidlab-00000f", &[(OWNER, ""), ("data-0", "x")], true),
        make(".raidlab-notes", &[], true),
    ];
    let mut removed = WorkDir::remove_stale(parent.path()).removed;
    removed.sort();
    stale.sort();
    assert_eq!(removed, stale);
    assert!(kept.iter().all(|path| path.exists()));
}

#[test]
fn what_was_left_before_it_had_an_owner_is_removed_at_once_when_nobody_makes_one() {
    let parent = tempfile::tempdir().unwrap();
    let left = parent.path().join(".raidlab-00000a");
    let notes = parent.path().join(".raidlab-00000b");
    for path in [&left, &notes] {
        std::fs::create_dir(path).unwrap();
    }
    std::fs::write(left.join(OWNER), "").unwrap();
    std::fs::write(notes.join("notes"), "").unwrap();
    assert_eq!(WorkDir::remove_stale(parent.path()).removed, [left]);
    assert!(notes.exists());
}

/// Whoever may write to the directory around it can do that at any time.
#[test]
fn what_was_put_in_its_place_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let victim = parent.path().join("victim");
    std::fs::create_dir_all(victim.join("below")).unwrap();
    for file in ["data-0", "owner", "below/notes"] {
        std::fs::write(victim.join(file), "theirs").unwrap();
    }
    let intact = || {
        let files = ["data-0", "owner", "below/notes"].map(|file| victim.join(file));
        files
            .iter()
            .all(|file| std::fs::read_to_string(file).is_ok_and(|text| text == "theirs"))
    };
    for drops in [true, false] {
        let work = WorkDir::create(parent.path()).unwrap();
        let (path, stolen) = (work.path().to_owned(), parent.path().join("stolen"));
        std::fs::rename(&path, &stolen).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        std::fs::write(work.way().join("data-0"), "ours").unwrap();
        assert_eq!(
            std::fs::read_to_string(stolen.join("data-0")).unwrap(),
            "ours"
        );
        assert_eq!(by_name(&work.way().join("data-0")), stolen.join("data-0"));
        match drops {
            true => drop(work),
            false => {
                let error = work.remove().unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("cannot remove {}", path.display())),
                    "{error}"
                );
            }
        }
        assert!(intact(), "drops {drops}");
        // What was made is empty, under whatever name.
        assert_eq!(std::fs::read_dir(&stolen).unwrap().count(), 0);
        assert!(WorkDir::remove_stale(parent.path()).removed.is_empty());
        assert!(intact());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_dir(&stolen).unwrap();
    }
}

/// In a directory that others may write to, they could say that it was left by a raidlab.
#[test]
fn what_another_user_says_of_a_directory_is_not_believed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join(".raidlab-0000c1");
    std::fs::create_dir(&path).unwrap();
    let owner = path.join(OWNER);
    std::fs::write(
        &owner,
        format!("{FIRST_LINE}\npid 1\nstart 0\nboot another\n"),
    )
    .unwrap();
    std::os::unix::fs::chown(&owner, Some(65_534), None).unwrap();
    assert!(WorkDir::remove_stale(parent.path()).removed.is_empty());
    std::os::unix::fs::chown(&owner, Some(0), None).unwrap();
    assert_eq!(WorkDir::remove_stale(parent.path()).removed, [path]);
}

#[test]
fn a_place_that_cannot_be_written_to_is_an_error_with_its_path() {
    let missing = Path::new("/nonexistent/directory");
    let message = WorkDir::create(missing).unwrap_err().to_string();
    assert_eq!(
        message,
        "cannot make a working directory in /nonexistent/directory: No such file or directory (os error 2); is the path right?"
    );
}

/// What is on the disk when the power fails, or the disk: by a copy of it while the file system is in use.
#[test]
fn whose_it_is_is_on_the_disk_before_anything_else() {
    use crate::observe::tree::{LoopDevice, MountedLoop, is_root, run};
    if !is_root("whose_it_is_is_on_the_disk_before_anything_else") {
        return;
    }
    let mounted = MountedLoop::ext4(64 << 20, &[]);
    let work = WorkDir::create(mounted.point.path()).unwrap();
    let data = File::create(work.path().join("data-0")).unwrap();
    (&data).write_all(&[1; 4096]).unwrap();
    data.sync_all().unwrap();
    let copied = LoopDevice::prepared(64 << 20, |file| {
        std::fs::copy(&mounted.device.file, file).unwrap();
    });
    let point = tempfile::tempdir().unwrap();
    let words = [copied.node.as_path(), point.path()].map(|path| path.to_str().unwrap());
    run("mount", &words);
    let name = work.path().file_name().unwrap();
    let owner = std::fs::read_to_string(point.path().join(name).join(OWNER));
    run("umount", &[words[1]]);
    let owner = owner.unwrap();
    assert!(parse_owner(&owner).is_some(), "'{owner}'");
}

/// Under load a directory that its owner removed was taken for one that nobody owned: its owner file goes before it does.
#[test]
fn nobody_sees_a_directory_without_its_owner_while_it_goes() {
    let parent = tempfile::tempdir().unwrap();
    let made = WorkDir::create(parent.path()).unwrap();
    let owner = made.path().join(OWNER);
    let looking = turn(parent.path()).expect("a turn");
    let removal = std::thread::spawn(move || made.remove());
    std::thread::sleep(TURN / 5);
    assert!(owner.exists(), "it is somebody's as long as others look");
    drop(looking);
    removal.join().unwrap().unwrap();
    assert!(!owner.exists());
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_made_where_it_could_not_be_removed() {
    let name = "nothing_is_made_where_it_could_not_be_removed";
    if !crate::observe::tree::is_root(name) {
        return;
    }
    let mounted = crate::observe::tree::MountedLoop::ext4(16 << 20, &[]);
    let place = mounted.point.path().join("append-only");
    std::fs::create_dir(&place).expect("made");
    let path = place.to_str().expect("UTF-8");
    crate::observe::tree::run("chattr", &["+a", path]);
    let error = WorkDir::create(&place)
        .expect_err("it would stay")
        .to_string();
    assert!(error.contains("append-only"), "{error}");
    assert_eq!(std::fs::read_dir(&place).expect("read").count(), 0);
    crate::observe::tree::run("chattr", &["-a", path]);
    assert!(WorkDir::create(&place).is_ok());
}

//! What a build needs, and what is left of one that was killed.
use super::keep::programs;
use super::packages::compiler;
use super::*;
use std::process::Stdio;

#[test]
fn the_kernel_says_its_compiler() {
    let text = "override ARCH = x86\nCC = $(if $(X),$(CCACHE)) $(CROSS_COMPILE)gcc-12\nifneq\n";
    assert_eq!(compiler(text).as_deref(), Some("gcc-12"));
    assert_eq!(compiler("override ARCH = x86\n"), None);
}

#[test]
fn a_missing_program_is_told_with_its_package() {
    let error = needs(&[("sh", "dash"), ("no-such-compiler", "gcc")]).unwrap_err();
    assert_eq!(error.to_string(), "no-such-compiler is not installed");
    assert_eq!(error.remedy().as_deref(), Some("apt-get install gcc"));
    assert!(plain(Path::new("/home/a b/zfs")).is_err());
    assert!(plain(Path::new("/home/a/.cache/raidlab/zfs")).is_ok());
}

#[test]
fn programs_that_were_moved_before_a_build_was_killed_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (root, new) = (directory.path().join("root"), directory.path().join("new"));
    fs::create_dir_all(root.join("sbin")).unwrap();
    fs::create_dir_all(root.join("etc/zfs")).unwrap();
    fs::write(root.join("sbin/zpool"), "program").unwrap();
    for _ in 0..2 {
        programs(&root, &new).unwrap();
        assert!(new.join("root/sbin/zpool").is_file() && !new.join("root/etc").exists());
    }
}

#[test]
fn what_a_killed_build_left_is_ended_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().to_owned());
    assert_eq!(Zfs::clean(&cache).unwrap(), None);
    let work = builds(&cache).join("work");
    fs::create_dir_all(work.join("source")).unwrap();
    let held = lock(&builds(&cache), &AtomicBool::new(false)).unwrap();
    let sleeps = |mark: Option<&Path>| {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").current_dir(work.join("source"));
        sleep
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .envs(mark.map(|work| (strays::MARK, work)))
            .spawn()
            .unwrap()
    };
    let named = work.canonicalize().unwrap();
    let (mut stray, mut shell) = (sleeps(Some(&named)), sleeps(None));
    assert_eq!(Zfs::clean(&cache).unwrap(), None, "a build is under way");
    let stopped = lock(&builds(&cache), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(VmError::Interrupted)));
    drop(held);
    // Buried while it is waited for.
    let watch = std::thread::spawn(move || stray.wait().unwrap());
    // A child that another test is just starting may hold a copy of the lock for a moment.
    let begun = Instant::now();
    let cleaned = loop {
        match Zfs::clean(&cache).unwrap() {
            None if begun.elapsed().as_secs() < 10 => {
                std::thread::sleep(Duration::from_millis(20));
            }
            cleaned => break cleaned,
        }
    };
    assert!(cleaned.unwrap().contains("that was killed"));
    assert!(!watch.join().unwrap().success());
    let lives = shell.try_wait().unwrap().is_none();
    let _ = shell.kill().and_then(|()| shell.wait());
    assert!(lives, "who only looks around in there is no build");
    assert!(!work.exists());
}

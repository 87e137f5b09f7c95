//! `raidlab vm setup --zfs`.
use crate::lab::Lab;
use crate::{PATIENCE, command, run};
use rustix::process::Signal;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Where kernels are that have been fetched: a second cache takes them from there. `None` where this machine's own is used.
fn kernels(lab: &Lab) -> Option<PathBuf> {
    let setup = run(lab, "vm setup --no-boot --json").done().json();
    let path = PathBuf::from(setup["kernel"]["vmlinuz"].as_str().expect("a path"));
    let mut above = path.ancestors();
    above
        .find(|path| path.ends_with("kernels"))
        .map(Path::to_owned)
}

/// A cache without ZFS.
fn other_cache(lab: &Lab) -> PathBuf {
    let cache = lab.path("cache");
    std::fs::create_dir(&cache).expect("a directory");
    if let Some(kernels) = kernels(lab) {
        symlink(kernels, cache.join("kernels")).expect("a link");
    }
    cache
}

fn in_cache(lab: &Lab, cache: &Path, line: &str) -> Command {
    let mut command = command(lab, line);
    command.env("RAIDLAB_CACHE", cache);
    command
}

#[test]
fn zfs_is_built_once_and_in_the_image() {
    let lab = Lab::new();
    let first = run(&lab, "vm setup --zfs --no-boot --json").done().json();
    let begun = Instant::now();
    let second = run(&lab, "vm setup --zfs --json").done().json();
    assert!(
        begun.elapsed() < Duration::from_secs(300),
        "it was built again"
    );
    assert_eq!(first["zfs"], second["zfs"]);
    assert_eq!(
        first["image"], second["image"],
        "the same content, bit for bit"
    );
    assert_eq!(first["zfs"]["release"], first["kernel"]["release"]);
    let programs = first["image"]["programs"].as_array().expect("a list");
    for name in ["zpool", "zfs", "zdb"] {
        assert!(programs.iter().any(|p| p == name), "{name} in {programs:?}");
    }
    let packages = first["zfs"]["packages"].as_array().expect("a list");
    let of = |name: &str| packages.iter().find(|p| p["name"] == name);
    assert_eq!(
        of("zfs-dkms").expect("the source")["version"],
        first["zfs"]["version"]
    );
    assert!(of("zfsutils-linux").is_some());
    let modules = PathBuf::from(first["zfs"]["modules"].as_str().expect("a path"));
    let place = modules.parent().expect("a place");
    assert!(place.join("LICENSE").is_file(), "it goes with its licence");
    // Of this cache: other directories above may have any name.
    let builds = place.ancestors().find(|path| path.ends_with("zfs"));
    let builds = builds.expect("the directory of all builds");
    assert!(
        !builds.join("work").exists(),
        "nothing is left of the build"
    );
    // What a debugger alone reads is not kept.
    let size = std::fs::metadata(modules.join("zfs.ko"))
        .expect("a module")
        .len();
    assert!((1 << 20..32 << 20).contains(&size), "{size}");
}

#[test]
fn without_zfs_the_run_says_how_to_get_it() {
    let lab = Lab::new();
    let cache = other_cache(&lab);
    lab.write("pools.toml", crate::pools::SMALL);
    let ran = crate::lab::ended_within(in_cache(&lab, &cache, "run pools.toml --on vm"), PATIENCE);
    ran.refused(4)
        .says(&["not built for the guest's kernel", "raidlab vm setup --zfs"]);
}

#[test]
fn a_build_that_is_interrupted_leaves_nothing() {
    let lab = Lab::new();
    let cache = other_cache(&lab);
    let mut running = lab.start_command(in_cache(&lab, &cache, "vm setup --zfs"));
    let begun = Instant::now();
    while !running.said().contains("looking at what the kernel has") {
        assert!(
            running.is_running() && begun.elapsed() < PATIENCE,
            "{}",
            running.said()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    assert!(!cache.join("zfs/work").exists());
    assert!(working_in(&cache).is_empty());
}

#[test]
fn a_build_that_is_killed_does_not_count_and_is_gone_on_with_or_cleaned() {
    let lab = Lab::new();
    let cache = other_cache(&lab);
    let work = cache.join("zfs/work");
    for again in [false, true] {
        let mut running = lab.start_command(in_cache(&lab, &cache, "vm setup --zfs"));
        let begun = Instant::now();
        while !running.said().contains("looking at what the kernel has") {
            assert!(
                running.is_running() && begun.elapsed() < PATIENCE,
                "{}",
                running.said()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(
            running.said().contains("unpacking"),
            !again,
            "what was unpacked is unpacked again"
        );
        running.signal(Signal::KILL);
        running.end();
        assert!(
            work.join("unpacked").is_file(),
            "there is something to go on with"
        );
        assert!(
            !cache
                .join("zfs")
                .read_dir()
                .expect("a directory")
                .flatten()
                .any(|entry| {
                    let name = entry.file_name();
                    name != "work" && name != "lock"
                })
        );
    }
    let ran = crate::lab::ended_within(in_cache(&lab, &cache, "clean"), PATIENCE);
    ran.done().prints(&["a build of ZFS that was killed"]);
    assert!(!work.exists());
    assert!(working_in(&cache).is_empty());
}

/// Processes whose working directory is below this one.
fn working_in(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().expect("it is there");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let inside = |entry: &std::fs::DirEntry| {
        let at = std::fs::read_link(entry.path().join("cwd"));
        at.is_ok_and(|at| at.starts_with(&directory))
    };
    let names = entries
        .filter(inside)
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

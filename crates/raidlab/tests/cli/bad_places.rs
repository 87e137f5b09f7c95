//! Places that cannot be measured: the right exit code, the remedy, and nothing left behind.
use crate::lab::{DD, Lab, assert_empty, copy_program, ended, program, until};
use crate::root::{self, Loop, Mounted};
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

#[test]
fn a_file_smaller_than_a_block() {
    let lab = Lab::new();
    lab.write("small", [7; 100]);
    lab.write("empty", "");
    for file in ["small", "empty"] {
        for profile in ["random", "dd", "hdparm", "tiobench", "sequential"] {
            lab.run(&format!("bench {file} --profile {profile}"))
                .refused(2)
                .says(&[file, "help:"]);
        }
    }
    assert_eq!(
        std::fs::read(lab.path("small")).expect("the file"),
        [7; 100]
    );
    assert!(!lab.store().exists());
}

#[test]
fn a_profile_that_only_writes_has_nothing_to_do_on_a_file() {
    let lab = Lab::new();
    lab.write("file", [7; 1 << 16]);
    lab.run("bench file --profile random --block-size 4KiB --read 0")
        .refused(2)
        .says(&["file"]);
    assert!(std::fs::read(lab.path("file")).expect("the file") == [7; 1 << 16]);
    assert!(!lab.store().exists());
}

#[test]
fn what_the_kernel_makes_up_keeps_no_files() {
    let lab = Lab::new();
    lab.run("bench /proc --profile random --size 1MiB")
        .refused(4)
        .says(&["/proc: proc has no space to keep files in", "help:"]);
    assert!(!lab.store().exists());
}

/// It tells of no size and takes all of the machine's memory: nothing is begun there whose end nobody knows.
#[test]
fn a_file_system_without_an_end() {
    if !root::may("a_file_system_without_an_end") {
        return;
    }
    let lab = Lab::new();
    let mounted = Mounted::ramfs(&lab.path("ram"));
    lab.run("bench ram --plan --profile random --size 1MiB")
        .refused(4)
        .says(&["ram", "ramfs tells of no size", "tmpfs"]);
    assert_empty(&mounted.path);
}

#[test]
fn a_device_of_three_sectors() {
    if !root::may("a_device_of_three_sectors") {
        return;
    }
    let lab = Lab::new();
    let file = lab.write("disk", [7; 1536]);
    let device = Loop::on(&file);
    let path = device.path.display().to_string();
    for profile in ["random", "bonnie", "hdparm", "sequential"] {
        lab.run(&format!("bench {path} --profile {profile}"))
            .refused(2)
            .says(&[&path]);
    }
    assert!(!lab.store().exists());
    lab.run(&format!(
        "bench {path} -n 1 --profile random --block-size 512 --runtime 50ms"
    ))
    .done();
    assert_eq!(std::fs::read(&file).expect("the file"), [7; 1536]);
}

/// What cannot be asked of the place is known before anything is begun: by `--plan`, too.
/// Such as one whose table of device-mapper is all errors: everything in the kernel's tables is in order.
#[test]
fn a_device_that_nothing_can_be_read_from_is_not_fit() {
    if !root::may("a_device_that_nothing_can_be_read_from_is_not_fit") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("disk");
    let content = std::fs::File::create(&file).expect("a file");
    content.set_len(16 << 20).expect("its size");
    let device = Loop::on(&file);
    let line = format!("doctor {}", device.path.display());
    let before = lab.run(&line).done();
    assert!(!before.out.contains("cannot be read"), "{before:?}");
    // The device stays as large as it was.
    content.set_len(0).expect("cut off");
    let name = device.path.display();
    lab.run(&line).done().prints(&[
        "before you measure:",
        &format!("{name} cannot be read at byte 0"),
    ]);
}

#[test]
fn direct_blocks_smaller_than_the_devices_sectors() {
    if !root::may("direct_blocks_smaller_than_the_devices_sectors") {
        return;
    }
    let lab = Lab::new();
    let disk = lab.write("disk", "");
    let file = std::fs::File::options().write(true).open(&disk);
    file.and_then(|file| file.set_len(64 << 20))
        .expect("a file");
    let device = Loop::of_sectors(&disk, 4096);
    let path = device.path.display().to_string();
    let large = Mounted::ext4(&lab.path("large"), &device);
    std::fs::write(large.path.join("file"), vec![7; 1 << 20]).expect("a file");
    let before = crate::lab::names(&large.path);
    let options = "-n 1 --profile random --size 1MiB --runtime 50ms --direct";
    for place in [&path, "large", "large/file"] {
        for (block, code) in [("512", 2), ("6144", 2), ("4KiB", 0)] {
            for plan in ["--plan", ""] {
                let ran = lab.run(&format!(
                    "bench {place} {options} --block-size {block} {plan}"
                ));
                if code == 0 {
                    ran.done();
                    continue;
                }
                ran.refused(code)
                    .says(&["direct I/O", "a multiple of 4096 bytes", place]);
                assert!(place != path.as_str() || !lab.store().exists());
            }
        }
    }
    assert_eq!(crate::lab::names(&large.path), before);
    let buffered = options.replace("--direct", "--buffered");
    lab.run(&format!("bench large {buffered} --block-size 512"))
        .done();
}

#[test]
fn a_read_only_file_system() {
    if !root::may("a_read_only_file_system") {
        return;
    }
    let lab = Lab::new();
    let mounted = Mounted::tmpfs(&lab.path("ro"), "4m");
    std::fs::write(mounted.path.join("file"), [7; 1 << 16]).expect("a file");
    mounted.make_read_only();
    lab.run(&format!("bench ro {DD}"))
        .refused(4)
        .says(&["ro", "mounted read-only", "remount"]);
    assert!(!lab.store().exists());
    lab.run("bench ro/file -n 1 --profile random --block-size 4KiB --buffered --runtime 50ms")
        .done();
}

#[test]
fn a_file_system_with_too_little_space() {
    if !root::may("a_file_system_with_too_little_space") {
        return;
    }
    let lab = Lab::new();
    let disk = lab.write("disk", "");
    std::fs::File::options()
        .write(true)
        .open(&disk)
        .and_then(|f| f.set_len(32 << 20))
        .expect("a file");
    let device = Loop::on(&disk);
    let ext4 = Mounted::ext4(&lab.path("small"), &device);
    let before = crate::lab::names(&ext4.path);
    for profile in [
        "bonnie --files 0 --size 64MiB",
        "random --size 64MiB",
        "dd --block-size 1MiB --count 64",
    ] {
        lab.run(&format!("bench small --profile {profile}"))
            .refused(4)
            .says(&["64 MiB", "free", "help:"]);
        assert_eq!(crate::lab::names(&ext4.path), before);
        assert!(!lab.store().exists());
    }
}

/// Someone else fills the file system while a phase writes.
#[test]
fn a_file_system_that_fills_up_meanwhile() {
    if !root::may("a_file_system_that_fills_up_meanwhile") {
        return;
    }
    let lab = Lab::new();
    let tmpfs = Mounted::tmpfs(&lab.path("full"), "64m");
    // One byte a call: slow enough to be overtaken.
    let line =
        "bench full -n 1 --profile bonnie --files 0 --size 40MiB --set characters-size=40MiB";
    let mut running = lab.start(line);
    let data = || {
        let entries = std::fs::read_dir(&tmpfs.path)
            .expect("a directory")
            .flatten();
        let sizes = entries.filter_map(|e| std::fs::metadata(e.path().join("data-0")).ok());
        sizes.map(|found| found.len()).max().unwrap_or(0)
    };
    until("the first bytes", || data() > 1 << 20);
    let filler = tmpfs.path.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file");
    while file.write_all(&[1; 1 << 16]).is_ok() {}
    drop(file);
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(5), "{said}");
    for part in [
        "error: ",
        "full",
        "No space left on device",
        "free some space",
    ] {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
    assert_eq!(
        crate::lab::names(&tmpfs.path),
        ["filler"],
        "the working directory is gone"
    );
    let trials = lab.trials();
    assert_eq!(trials.len(), 1, "the failure is on record");
    assert_eq!(trials[0]["status"], "failed");
    // What failed is no trial that the session has.
    lab.run("list")
        .done()
        .prints(&["unfinished", "0 of 1 trials, 1 failed"]);
    let listed = lab.run("list --json").done().json();
    assert_eq!(
        (&listed[0]["trials"], &listed[0]["failed"]),
        (&0.into(), &1.into())
    );
    // With space again, the session can be brought to its end.
    std::fs::remove_file(filler).expect("the filler");
    let mut again = lab.start(line);
    again.wait_for("this begins anew");
    again.signal(rustix::process::Signal::INT);
    again.end();
    let said = again.said();
    assert!(
        said.contains("was interrupted after 0 of 1 trial (1 failed)"),
        "{said}"
    );
    for session in lab.sessions().iter().skip(1) {
        let second = session["id"].as_str().expect("an id");
        lab.run(&format!("remove {second} --yes")).done();
    }
    lab.run("bench --resume").done();
    let trials = lab.trials();
    let complete = trials.iter().filter(|t| t["status"] == "complete").count();
    assert_eq!(
        (trials.len(), complete),
        (2, 1),
        "what failed was measured anew"
    );
    assert_empty(&tmpfs.path);
}

/// As an ordinary user: no permission is exit 4, with the path.
#[test]
fn a_directory_without_permission() {
    if !root::may("a_directory_without_permission") {
        return;
    }
    let lab = Lab::new();
    let set = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    // The program itself may be where only its owner looks.
    let copy = lab.path("raidlab");
    copy_program(&copy);
    set(&lab.path(""), 0o755);
    std::fs::create_dir(lab.path("own")).expect("a directory");
    root::system(
        "chown",
        &["65534:65534", lab.path("own").to_str().expect("a path")],
    );
    let nobody = |line: &str| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy);
        command.args(line.split_whitespace());
        lab.settle(&mut command);
        command.env("RAIDLAB_STORE", lab.path("own/store.sqlite"));
        ended(command)
    };
    set(&lab.place(), 0o755);
    nobody(&format!("bench place {DD}")).refused(4).says(&[
        "place",
        "ermission denied",
        "run as a user who may",
    ]);
    set(&lab.place(), 0o700);
    nobody(&format!("bench place {DD}"))
        .refused(4)
        .says(&["place", "ermission denied"]);
    let secret = lab.write("secret", [7; 1 << 16]);
    set(&secret, 0o600);
    nobody("bench secret --profile random --block-size 4KiB")
        .refused(4)
        .says(&["secret", "ermission denied"]);
    assert_empty(&lab.path("own"));
    lab.assert_clean();
    // The same user measures what is theirs, without any privilege.
    nobody(&format!("bench own -n 1 {DD}")).done();
    nobody("bench own -n 1 --profile random --size 4MiB --runtime 50ms").done();
    assert_eq!(crate::lab::names(&lab.path("own")), ["store.sqlite"]);
}

/// Results are kept with their paths, as text. What is not text is refused before anything is measured,
/// whether it was typed or is what a typed path leads to.
#[test]
fn a_path_that_is_not_text() {
    let lab = Lab::new();
    let odd = lab.path("").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&odd).expect("a directory");
    let typed = |path: &OsStr| {
        let mut command = lab.command("bench");
        command.arg(path).args(DD.split_whitespace());
        ended(command).refused(2)
    };
    typed(odd.as_os_str()).says(&["caf\u{fffd}", "UTF-8", "mount --bind"]);
    std::os::unix::fs::symlink(&odd, lab.path("link")).expect("a link");
    typed(OsStr::new("link")).says(&["caf\u{fffd}", "UTF-8", "mount --bind"]);
    assert_empty(&odd);
    assert!(!lab.store().exists());
    // Nothing of `doctor` is kept.
    lab.run("doctor link").done().prints(&["caf\u{fffd}"]);
}

/// A file system whose server is silent: it is said who does not answer, and it can be interrupted.
#[test]
fn a_file_system_that_does_not_answer() {
    if !root::may("a_file_system_that_does_not_answer") || !Path::new("/dev/fuse").exists() {
        return;
    }
    let lab = Lab::new();
    // Seen by this process alone: whoever else looks at it would be held, too.
    let script = "exec 7<>/dev/fuse; \
                  mount -i -t fuse -o fd=7,rootmode=40000,user_id=0,group_id=0 silent place; \
                  exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", script])
        .arg(program())
        .args(["bench", "place"]);
    lab.settle(&mut command);
    let mut running = lab.start_command(command);
    running.wait_for("place has not answered for 5 s");
    // Not INT: who runs the tests in the background may have it ignored.
    running.signal(rustix::process::Signal::TERM);
    let status = running.end();
    assert_eq!(status.signal(), Some(15), "{status}: {}", running.said());
    lab.assert_clean();
    assert!(!lab.store().exists());
}

/// Opening a device may set something going: only those that are harmless are opened.
#[test]
fn other_character_devices() {
    for device in ["/dev/null", "/dev/tty", "/dev/ptmx"] {
        let lab = Lab::new();
        lab.run(&format!("bench {device} {DD}")).refused(2).says(&[
            device.trim_end_matches("ptmx"),
            "is a character device",
            "help:",
        ]);
        lab.assert_untouched();
    }
}

/// Limits of the shell are errors like others: said with the remedy, and nothing is left behind.
#[test]
fn limits_of_the_process() {
    let lab = Lab::new();
    let limited = |limit: &str, line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(program()).args(line.split_whitespace());
        lab.settle(&mut shell);
        ended(shell)
    };
    limited(
        "-f 4096",
        "bench place -n 1 --profile dd --block-size 1MiB --count 8",
    )
    .refused(5)
    .says(&["File too large", "ulimit -f"]);
    lab.assert_clean();
    // Sixteen jobs have a ring and a file each. Which of them meets the limit depends on how many
    // descriptors the one who runs the tests has left open.
    for limit in ["-n 24", "-n 32"] {
        let line = "bench place -n 1 --profile random --size 4MiB --runtime 50ms --jobs 16";
        let ran = limited(limit, line).refused(4);
        ran.says(&["Too many open files", "ulimit -n"]);
        lab.assert_clean();
    }
}

/// A place that goes away before the first trial: no session of nothing is kept.
#[test]
fn a_place_that_vanishes() {
    let lab = Lab::new();
    let mut running = lab.start(&format!("bench place {DD}"));
    running.wait_for("arm to measure");
    // The machine is watched for a second before the first trial.
    std::thread::sleep(std::time::Duration::from_millis(400));
    if std::fs::remove_dir(lab.place()).is_err() {
        // The first trial has begun: this machine was too busy for the test to be in time.
        return;
    }
    let status = running.end();
    let said = running.said();
    // A busy program may not even have looked at it yet: then the place is not there at all.
    let expected = [(Some(4), "cannot read"), (Some(2), "no such file")];
    assert!(
        expected
            .iter()
            .any(|(code, part)| status.code() == *code && said.contains(part)),
        "{status}: {said}"
    );
    assert!(said.contains("place"), "{said}");
    // The store may have been made meanwhile; then it is empty.
    assert!(!lab.store().exists() || lab.sessions().is_empty());
}

//! Devices that another process has open without holding them, and windows of one file.
use super::shown::{Mounted, Over, node};
use super::*;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

/// A process that has a device open, as a virtual machine has its disk: without excluding anyone.
pub(super) struct Opener(Child);

impl Opener {
    pub(super) fn of(path: &Path) -> Self {
        let node = OpenOptions::new().read(true).write(true).open(path);
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::from(node.expect("a node")));
        Self(command.spawn().expect("sleep"))
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_device_that_another_process_has_open_is_refused() {
    if !may("a_device_that_another_process_has_open_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let opener = Opener::of(&theirs.path);
    let pid = format!("sleep ({})", opener.0.id());
    theirs.refused_by(&[Gate::Open], &[&pid, "open"]);
    drop(opener);
    theirs.given();
}

/// As a jail has its disk, or a container: not below `/dev`.
#[test]
fn a_device_that_is_open_by_a_node_elsewhere_is_refused() {
    if !may("a_device_that_is_open_by_a_node_elsewhere_is_refused") {
        return;
    }
    let (theirs, jail) = (Theirs::new(), Mounted::memory());
    let other = jail.at().join("rootfs");
    node(&theirs.path, &other);
    let opener = Opener::of(&other);
    // Its name is nothing to go by.
    std::fs::remove_file(&other).expect("a node");
    let pid = format!("sleep ({})", opener.0.id());
    theirs.refused_by(&[Gate::Open], &[&pid, "rootfs"]);
    drop(opener);
    theirs.given();
}

/// Whoever has the file of a loop device open sees what is written to the device, and writes what is on it.
#[test]
fn a_loop_device_whose_file_another_process_has_open_is_refused() {
    if !may("a_loop_device_whose_file_another_process_has_open_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let file = theirs.directory.path().join("disk");
    let opener = Opener::of(&file);
    let pid = format!("sleep ({})", opener.0.id());
    theirs.refused_by(&[Gate::Open], &[&pid, file.to_str().expect("a name")]);
    drop(opener);
    theirs.given();
}

const MAPPED: &str = "RAIDLAB_TEST_MAPS";

/// The other process of the test below: maps a file, closes it, and stays until its input ends.
#[test]
fn maps_what_it_is_told_to() {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let Some(path) = std::env::var_os(MAPPED) else {
        return;
    };
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.expect("to be mapped");
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice, which nothing refers to.
    unsafe {
        mmap(
            std::ptr::null_mut(),
            4096,
            rights,
            MapFlags::SHARED,
            &file,
            0,
        )
    }
    .expect("mapped");
    drop(file);
    // Past the capture of a test's output.
    let mut out = std::io::stderr();
    out.write_all(b"mapped\n").expect("said");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_device_that_another_process_has_mapped_is_refused() {
    if !may("a_device_that_another_process_has_mapped_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let file = theirs.directory.path().join("disk");
    for mapped in [&file, &theirs.path] {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([
            "--exact",
            "--nocapture",
            "claim::tests::open::maps_what_it_is_told_to",
        ]);
        command.env(MAPPED, mapped).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut other = Opener(command.spawn().expect("this program"));
        let said = other.0.stderr.as_mut().expect("its errors");
        let mut line = [0; 7];
        said.read_exact(&mut line).expect("it has mapped it");
        assert_eq!(&line, b"mapped\n");
        let pid = format!("({})", other.0.id());
        theirs.refused_by(&[Gate::Open], &[&pid, mapped.to_str().expect("a name")]);
        drop(other);
        theirs.given();
    }
}

/// Whoever has the whole disk open may write to its partitions, too.
#[test]
fn a_partition_of_a_disk_that_another_process_has_open_is_refused() {
    if !may("a_partition_of_a_disk_that_another_process_has_open_is_refused") {
        return;
    }
    let theirs = Theirs::with(&["--partscan"]);
    system(&["sgdisk", "--clear", "--new=1:2048:+8M", theirs.path()]);
    system(&["partx", "--update", theirs.path()]);
    let part = PathBuf::from(format!("{}p1", theirs.path()));
    let roots = Roots::system();
    let device = device_at(&roots, &part).expect("a partition");
    let take = |gates: &[Gate]| {
        let but: Vec<Gate> = gates
            .iter()
            .filter(|g| **g != Gate::Right)
            .copied()
            .collect();
        let entry = theirs.entry();
        Claim::through(&roots, &device, Right::Allowed(&entry), &but)
    };
    let opener = Opener::of(&theirs.path);
    let refused = take(Gate::ALL).expect_err("its disk is open").to_string();
    assert!(refused.contains("sleep"), "{refused}");
    drop(take(&all_but(&[Gate::Open])).expect("nothing else refuses"));
    drop(opener);
    drop(take(Gate::ALL).expect("a claim"));
    system(&["sgdisk", "--zap-all", theirs.path()]);
}

/// Two loop devices may show two parts of one file: as large as each other, and not the same.
#[test]
fn another_part_of_the_same_file_is_another_device() {
    if !may("another_part_of_the_same_file_is_another_device") {
        return;
    }
    let theirs = Theirs::with(&["--sizelimit", "8MiB"]);
    let (entry, before) = (theirs.entry(), theirs.device());
    let file = theirs.directory.path().join("disk");
    let file = file.to_str().expect("a name");
    let part = ["--offset", "16MiB", "--sizelimit", "8MiB"];
    theirs.show_instead(&[&part[..], &[theirs.path(), file]].concat());
    assert!(!theirs.device().identity.is_same_device(&before.identity));
    let roots = Roots::system();
    let take = |gates: &[Gate]| Claim::through(&roots, &before, Right::Allowed(&entry), gates);
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("no longer the device"), "{error}");
    let error = take(&all_but(&[Gate::Identity])).expect_err("refused by the list");
    assert!(error.to_string().contains("serial number"), "{error}");
}

/// What is on the other one is on this one, too, and whoever uses that does not hold this.
#[test]
fn a_device_whose_bytes_another_device_shows_is_refused() {
    if !may("a_device_whose_bytes_another_device_shows_is_refused") {
        return;
    }
    let theirs = Theirs::with(&["--sizelimit", "8MiB"]);
    let file = &theirs.directory.path().join("disk");
    // A link of another name, so that each of them knows its own.
    let show = |options: &[&str]| {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("link");
        std::fs::hard_link(file, &link).expect("a link");
        let words = [
            &["losetup", "--find", "--show"],
            options,
            &[link.to_str().expect("a name")],
        ];
        Theirs {
            path: PathBuf::from(system(&words.concat())),
            directory,
        }
    };
    for options in [&[][..], &["--offset", "4MiB", "--sizelimit", "8MiB"]] {
        let other = show(options);
        let name = other.path().trim_start_matches("/dev/");
        theirs.refused_by(&[Gate::Open], &[name, "same bytes"]);
    }
    // Two parts that have nothing in common are two devices.
    let apart = show(&["--offset", "8MiB", "--sizelimit", "8MiB"]);
    theirs.given();
    apart.given();
}

#[test]
fn a_partition_whose_bytes_another_device_shows_is_refused() {
    if !may("a_partition_whose_bytes_another_device_shows_is_refused") {
        return;
    }
    let theirs = Theirs::with(&["--partscan"]);
    system(&["sgdisk", "--clear", "--new=1:2048:+8M", theirs.path()]);
    system(&["partx", "--update", theirs.path()]);
    let part = PathBuf::from(format!("{}p1", theirs.path()));
    let own = Own(OwnKind::Guest);
    let take = |gates: &[Gate]| {
        let device = device_at(&Roots::system(), &part).expect("a partition");
        Claim::through(&Roots::system(), &device, Right::Own(&own), gates).map(drop)
    };
    let file = theirs.directory.path().join("disk");
    let file = file.to_str().expect("a name");
    // By another name, which tells nothing when it is gone.
    let link = theirs.directory.path().join("link");
    std::fs::hard_link(file, &link).expect("a link");
    let over = Over::new(&["--offset", "4MiB"], link.to_str().expect("a name"));
    std::fs::remove_file(&link).expect("a link");
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(
        error.contains(over.name()) && error.contains("same bytes"),
        "{error}"
    );
    take(&all_but(&[Gate::Open])).expect("nothing else refuses");
    drop(over);
    // The partition ends at 9 MiB.
    let apart = Over::new(&["--offset", "9MiB"], file);
    take(Gate::ALL).expect("a claim");
    drop(apart);
    // Whoever has the file open has that of the partition open.
    let opener = Opener::of(Path::new(file));
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("sleep"), "{error}");
    drop(opener);
    take(Gate::ALL).expect("a claim");
    system(&["partx", "--delete", theirs.path()]);
}

//! Devices that another process has open without holding them, and windows of one file.
use super::*;
use std::process::{Child, Command, Stdio};

/// A process that has a device open, as a virtual machine has its disk: without excluding anyone.
struct Opener(Child);

impl Opener {
    fn of(path: &Path) -> Self {
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

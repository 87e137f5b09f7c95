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
    system(&["losetup", "--detach", theirs.path()]);
    let file = file.to_str().expect("a name");
    system(&[
        "losetup",
        "--offset",
        "16MiB",
        "--sizelimit",
        "8MiB",
        theirs.path(),
        file,
    ]);
    assert!(!theirs.device().identity.is_same_device(&before.identity));
    let roots = Roots::system();
    let take = |gates: &[Gate]| Claim::through(&roots, &before, Right::Allowed(&entry), gates);
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("no longer the device"), "{error}");
    let error = take(&all_but(&[Gate::Identity])).expect_err("refused by the list");
    assert!(error.to_string().contains("serial number"), "{error}");
}

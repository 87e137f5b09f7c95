//! Disks with partitions, and partitions beside others.
use super::*;
use std::time::Instant;

#[test]
fn a_partition_of_a_disk_in_use_is_refused_and_so_is_the_disk() {
    if !may("a_partition_of_a_disk_in_use_is_refused_and_so_is_the_disk") {
        return;
    }
    if crate::tool::find("sgdisk").is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED partitions: needs sgdisk (package gdisk)"
        );
        assert!(std::env::var_os("CI").is_none());
        return;
    }
    let whole = Theirs::with(&["--partscan"]);
    let path = whole.path().to_owned();
    system(&["sgdisk", "-n", "1:2048:+16M", "-n", "2:0:+16M", &path]);
    let (first, second) = (format!("{path}p1"), format!("{path}p2"));
    // Some kernels look for partitions only when they are asked to.
    let _ = Tool::new(["partx", "-u", &path]).run();
    assert!(
        Path::new(&first).exists(),
        "the kernel shows partitions of loop devices"
    );
    let point = whole.directory.path().join("mnt");
    std::fs::create_dir(&point).expect("a mount point");
    let point = point.to_str().expect("a name");
    system(&["mkfs.ext4", "-q", "-F", &first]);
    system(&["mount", &first, point]);
    // A partition's serial number is that of its disk, and loop devices have none: the right is that of a guest.
    let own = Own(OwnKind::Guest);
    let take = |path: &str, but: &[Gate]| {
        let device = device_at(&Roots::system(), Path::new(path)).expect("a device");
        Claim::through(&Roots::system(), &device, Right::Own(&own), &all_but(but))
            .map_err(|e| e.to_string())
    };
    let all = [Gate::Kernel, Gate::Bytes, Gate::Exclusive];
    let disk = (
        take(&path, &[]),
        take(&path, &all[..2]),
        take(&path, &all).map(drop),
    );
    let sibling = (take(&second, &[]), take(&second, &all[..1]).is_ok());
    let mounted = (
        take(&first, &[]),
        take(&first, &all[..2]),
        take(&first, &all).is_ok(),
    );
    system(&["umount", point]);
    let after = take(&second, &[]).is_ok();
    system(&["partx", "-d", &path]);
    let (why, busy, open) = disk;
    let why = why.expect_err("the disk is refused");
    assert!(
        why.contains("is mounted at") && why.contains("has partitions"),
        "{why}"
    );
    assert!(busy.expect_err("held by the kernel").contains("busy"));
    open.expect("only the gates stood between");
    let why = sibling.0.expect_err("the partition beside is refused");
    assert!(why.contains("is mounted at"), "{why}");
    assert!(sibling.1, "it was the kernel's word that refused");
    let why = mounted.0.expect_err("the mounted partition is refused");
    assert!(
        why.contains("is mounted at") && why.contains("ext2/3/4"),
        "{why}"
    );
    assert!(mounted.1.expect_err("held by the kernel").contains("busy"));
    assert!(mounted.2 && after);
}

#[test]
fn a_partition_of_raidlabs_own_is_taken_back_by_its_id_alone() {
    if may("a_partition_of_raidlabs_own_is_taken_back_by_its_id_alone") {
        is_taken_back_by_its_id_alone(&["--partscan"]);
    }
}

#[test]
fn a_partition_of_a_disk_with_large_sectors_is_so_too() {
    if may("a_partition_of_a_disk_with_large_sectors_is_so_too") {
        is_taken_back_by_its_id_alone(&["--partscan", "--sector-size", "4096"]);
    }
}

fn is_taken_back_by_its_id_alone(options: &[&str]) {
    use crate::journal::{Journal, Undo};
    let roots = Roots::system();
    let theirs = Theirs::with(options);
    let mut claim = theirs.take(Gate::ALL).expect("a claim");
    let held = claim.held().expect("held");
    crate::provision::partition::write(held, &theirs.path, SIZE, [7; 16]).expect("partitioned");
    let first = PathBuf::from(format!("{}p1", theirs.path()));
    let begun = Instant::now();
    while !first.exists() {
        assert!(
            begun.elapsed().as_secs() < 5,
            "the kernel shows {}",
            first.display()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    claim.lend().expect("lent");
    if crate::tool::find("sgdisk").is_some() {
        let verify = Tool::new(["sgdisk", "--verify", "--print", theirs.path()]).run();
        let said = verify.expect("it reads it").out;
        // Of a disk without a table it finds no problems, either.
        assert!(
            said.contains("No problems found") && said.contains("BF01"),
            "{said}"
        );
    }
    let undo = |id: &str| {
        let mut journal = Journal::begin(theirs.directory.path(), "x").expect("begun");
        let member = claim.identity().clone();
        let uuids = vec![id.to_owned()];
        journal
            .intend("write", &[Undo::Contents { member, uuids }])
            .expect("announced");
        journal.undo_since(&roots, 0).expect("tried")
    };
    let report = undo(&"08".repeat(16));
    assert!(
        report.left[0].contains("which raidlab did not write"),
        "{report:?}"
    );
    let report = undo(&"07".repeat(16));
    assert_eq!(report.undone, [format!("cleared {}", theirs.path())]);
    claim.retake_empty().expect("as it was");
}

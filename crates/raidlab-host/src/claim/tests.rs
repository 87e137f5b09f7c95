//! Each gate refuses, and without it the claim would have been given: on loop devices, as root. The same tests are run in
//! a guest, whose kernel has what holds devices, by the tests of raidlab's virtual machines.
mod holders;

use super::*;
use crate::inventory::{device_at, look_at};
use crate::tool::Tool;
use std::io::Write as _;

const SIZE: u64 = 64 << 20;

/// Whether a test that needs root may go on; says so where it may not.
fn may(name: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let message = format!("SKIPPED {name}: needs root for loop devices");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// Set where these tests run in a guest: nothing may be missing there.
fn in_guest() -> bool {
    std::env::var_os("RAIDLAB_GATES_IN_GUEST").is_some()
}

fn system(words: &[&str]) -> String {
    // A guest has no udev that device-mapper's tools could wait for.
    let tool = Tool::new(words.iter().copied()).with(&[("DM_DISABLE_UDEV", "1")]);
    let ran = tool.run();
    ran.unwrap_or_else(|error| panic!("{error}"))
        .out
        .trim()
        .to_owned()
}

/// A loop device over a file of someone else's.
struct Theirs {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Theirs {
    fn new() -> Self {
        Self::with(&[])
    }

    /// With further options of losetup.
    fn with(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("disk");
        File::create(&file)
            .and_then(|f| f.set_len(SIZE))
            .expect("a file");
        let mut words = vec!["losetup", "--find", "--show"];
        words.extend(options);
        words.push(file.to_str().expect("a name"));
        let path = PathBuf::from(system(&words));
        Self { directory, path }
    }

    fn device(&self) -> Device {
        device_at(&Roots::system(), &self.path).expect("a device")
    }

    /// An entry of an allow-list that fits it.
    fn entry(&self) -> Allowed {
        let device = self.device();
        Allowed {
            id: device.ids[0].clone(),
            serial: device.identity.serial.expect("a serial number"),
            size: device.identity.size,
            note: None,
            array: None,
            line: 2,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("a name")
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let file = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .expect("writable");
        file.write_all_at(bytes, at)
            .and_then(|()| file.sync_all())
            .expect("written");
    }

    fn take(&self, gates: &[Gate]) -> Result<Claim> {
        let entry = self.entry();
        Claim::through(
            &Roots::system(),
            &self.device(),
            Right::Allowed(&entry),
            gates,
        )
    }

    /// Refused with these words, by these gates; given without them, and refused with all of them.
    #[track_caller]
    fn refused_by(&self, by: &[Gate], says: &[&str]) {
        let error = self.take(Gate::ALL).expect_err("refused").to_string();
        for words in says {
            assert!(error.contains(words), "no '{words}' in: {error}");
        }
        for left_out in by {
            let but = |gate: &&Gate| *gate != left_out;
            let gates: Vec<Gate> = Gate::ALL.iter().filter(but).copied().collect();
            assert_eq!(
                self.take(&gates).is_ok(),
                by.len() == 1,
                "without {left_out:?}"
            );
        }
        let without: Vec<Gate> = Gate::ALL
            .iter()
            .filter(|gate| !by.contains(gate))
            .copied()
            .collect();
        drop(self.take(&without).expect("nothing else refuses"));
    }

    /// The claim is given.
    #[track_caller]
    fn given(&self) {
        drop(self.take(Gate::ALL).expect("a claim"));
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = Tool::new(["losetup", "--detach", self.path()]).run();
    }
}

#[test]
fn an_empty_device_of_the_allow_list_is_claimed_and_held() {
    if !may("an_empty_device_of_the_allow_list_is_claimed_and_held") {
        return;
    }
    let theirs = Theirs::new();
    let mut claim = theirs.take(Gate::ALL).expect("a claim");
    assert!(!claim.is_own());
    let second = theirs.take(Gate::ALL).expect_err("held");
    assert!(second.to_string().contains("busy"), "{second}");
    claim.lend().expect("lent");
    assert!(claim.held().is_none());
    drop(open_exclusively(&theirs.path).expect("free while it is lent"));
    claim.retake_empty().expect("taken back");
    assert!(open_exclusively(&theirs.path).is_err());
}

#[test]
fn a_mounted_device_is_refused() {
    if !may("a_mounted_device_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let point = theirs.directory.path().join("mnt");
    std::fs::create_dir(&point).expect("a mount point");
    let point = point.to_str().expect("a name");
    system(&["mkfs.ext4", "-q", "-F", theirs.path()]);
    system(&["mount", theirs.path(), point]);
    theirs.refused_by(
        &[Gate::Kernel, Gate::Bytes, Gate::Exclusive],
        &["is mounted at", "ext2/3/4 file system"],
    );
    system(&["umount", point]);
    theirs.refused_by(&[Gate::Bytes], &["ext2/3/4", "no one uses it now"]);
    clear(
        &open_exclusively(&theirs.path).expect("free"),
        SIZE,
        &theirs.path,
    )
    .expect("cleared");
    theirs.given();
}

#[test]
fn swap_is_refused() {
    if !may("swap_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    system(&["mkswap", theirs.path()]);
    theirs.refused_by(&[Gate::Bytes], &["swap space"]);
    if Tool::new(["swapon", theirs.path()]).run().is_ok() {
        theirs.refused_by(
            &[Gate::Kernel, Gate::Bytes, Gate::Exclusive],
            &["active swap space"],
        );
        system(&["swapoff", theirs.path()]);
    } else {
        assert!(!in_guest(), "swap can be switched on in a guest");
    }
}

#[test]
fn file_systems_and_members_of_others_are_refused_by_their_bytes() {
    if !may("file_systems_and_members_of_others_are_refused_by_their_bytes") {
        return;
    }
    let theirs = Theirs::new();
    let makers: [(&[&str], &str); 3] = [
        (&["mkfs.btrfs", "-q", "-f", "-M"], "btrfs file system"),
        (&["mkfs.ext3", "-q", "-F"], "ext2/3/4 file system"),
        (&["sgdisk", "--clear"], "GPT partition table"),
    ];
    for (words, what) in makers {
        if crate::tool::find(words[0]).is_none() {
            continue;
        }
        let mut words = words.to_vec();
        words.push(theirs.path());
        system(&words);
        theirs.refused_by(&[Gate::Bytes], &[what]);
        clear(
            &open_exclusively(&theirs.path).expect("free"),
            SIZE,
            &theirs.path,
        )
        .expect("cleared");
        theirs.given();
    }
    // What this machine has no tools for, by the magic numbers of their formats.
    let signs: [(u64, &[u8], &str); 8] = [
        (0, b"LUKS\xba\xbe\0\x02", "LUKS encrypted volume"),
        (0x218, b"LVM2 001", "LVM2 physical volume"),
        (
            0x1000,
            &[0xfc, 0x4e, 0x2b, 0xa9],
            "md array member (metadata 1.2)",
        ),
        (
            SIZE - 65536,
            &[0xfc, 0x4e, 0x2b, 0xa9],
            "md array member (metadata 0.90)",
        ),
        (
            SIZE - 1024,
            b"Intel Raid ISM Cfg Sig. ",
            "Intel (IMSM) array member",
        ),
        (SIZE - 512, &[0xde, 0x11, 0xde, 0x11], "DDF array member"),
        (
            128 * 1024,
            &0x00ba_b10c_u64.to_le_bytes(),
            "zfs pool member",
        ),
        (3, b"NTFS    ", "ntfs file system"),
    ];
    for (at, bytes, what) in signs {
        theirs.write(at, bytes);
        theirs.refused_by(&[Gate::Bytes], &[what]);
        theirs.write(at, &vec![0; bytes.len()]);
        theirs.given();
    }
}

#[test]
fn a_member_of_a_mounted_btrfs_that_no_mount_names_is_refused() {
    if !may("a_member_of_a_mounted_btrfs_that_no_mount_names_is_refused") {
        return;
    }
    // btrfs of two devices takes 109 MiB of each at least.
    let (first, second) = (Theirs::new(), Theirs::new());
    for theirs in [&first, &second] {
        let file = theirs.directory.path().join("disk");
        let file = OpenOptions::new().write(true).open(file).expect("its file");
        file.set_len(256 << 20).expect("longer");
        system(&["losetup", "--set-capacity", theirs.path()]);
    }
    let point = first.directory.path().join("mnt");
    std::fs::create_dir(&point).expect("a mount point");
    let point = point.to_str().expect("a name");
    system(&[
        "mkfs.btrfs",
        "-q",
        "-f",
        "-d",
        "raid1",
        "-m",
        "raid1",
        first.path(),
        second.path(),
    ]);
    let device = format!("device={}", second.path());
    system(&["mount", "-t", "btrfs", "-o", &device, first.path(), point]);
    let refused = second.take(Gate::ALL).expect_err("refused").to_string();
    let without: Vec<Gate> = vec![Gate::Exclusive, Gate::Identity, Gate::Right];
    let busy = second
        .take(&without)
        .expect_err("the kernel holds it")
        .to_string();
    let open = second.take(&[Gate::Identity, Gate::Right]);
    system(&["umount", point]);
    assert!(refused.contains("in use by btrfs"), "{refused}");
    assert!(busy.contains("busy"), "{busy}");
    assert!(open.is_ok(), "only the gates stood between");
}

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
        let gates: Vec<Gate> = Gate::ALL
            .iter()
            .filter(|gate| !but.contains(gate))
            .copied()
            .collect();
        Claim::through(&Roots::system(), &device, Right::Own(&own), &gates)
            .map_err(|e| e.to_string())
    };
    let all = [Gate::Kernel, Gate::Bytes, Gate::Exclusive];
    let disk = (
        take(&path, &[]),
        take(&path, &all[..2]),
        take(&path, &all).is_ok(),
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
    assert!(open, "only the gates stood between");
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
fn a_device_that_someone_holds_is_refused() {
    if !may("a_device_that_someone_holds_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let holder = open_exclusively(&theirs.path).expect("free");
    theirs.refused_by(&[Gate::Exclusive], &["busy"]);
    drop(holder);
    theirs.given();
}

#[test]
fn another_serial_number_or_size_is_refused() {
    if !may("another_serial_number_or_size_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let right = theirs.entry();
    let wrong = [
        Allowed {
            serial: "file-0-1".to_owned(),
            ..right.clone()
        },
        Allowed {
            size: right.size + 512,
            ..right.clone()
        },
    ];
    for (entry, says) in wrong.iter().zip(["serial number", "size"]) {
        let take = |gates: &[Gate]| {
            Claim::through(
                &Roots::system(),
                &theirs.device(),
                Right::Allowed(entry),
                gates,
            )
        };
        let error = take(Gate::ALL).expect_err("refused").to_string();
        assert!(error.contains(says) && error.contains("line 2"), "{error}");
        let but: Vec<Gate> = Gate::ALL
            .iter()
            .filter(|g| **g != Gate::Right)
            .copied()
            .collect();
        assert!(take(&but).is_ok(), "it was the entry that did not fit");
    }
}

#[test]
fn a_name_that_has_become_another_device_is_refused() {
    if !may("a_name_that_has_become_another_device_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let (entry, before) = (theirs.entry(), theirs.device());
    // The same name, another file of the same size.
    let other = theirs.directory.path().join("other");
    File::create(&other)
        .and_then(|f| f.set_len(SIZE))
        .expect("a file");
    system(&["losetup", "--detach", theirs.path()]);
    system(&["losetup", theirs.path(), other.to_str().expect("a name")]);
    let take =
        |gates: &[Gate]| Claim::through(&Roots::system(), &before, Right::Allowed(&entry), gates);
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("no longer the device"), "{error}");
    let but = |left_out: &[Gate]| -> Vec<Gate> {
        Gate::ALL
            .iter()
            .filter(|gate| !left_out.contains(gate))
            .copied()
            .collect()
    };
    let error = take(&but(&[Gate::Identity]))
        .expect_err("refused by the list")
        .to_string();
    assert!(error.contains("serial number"), "{error}");
    assert!(take(&but(&[Gate::Identity, Gate::Right])).is_ok());
}

#[test]
fn a_device_that_changes_while_it_is_lent_is_not_taken_back() {
    if !may("a_device_that_changes_while_it_is_lent_is_not_taken_back") {
        return;
    }
    let theirs = Theirs::new();
    let mut claim = theirs.take(Gate::ALL).expect("a claim");
    claim.lend().expect("lent");
    let file = theirs.directory.path().join("disk");
    OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|f| f.set_len(SIZE / 2))
        .expect("shorter");
    system(&["losetup", "--set-capacity", theirs.path()]);
    let error = claim.retake().expect_err("another size").to_string();
    assert!(error.contains("another device"), "{error}");
}

#[test]
fn raidlabs_own_is_its_own_file_and_no_other() {
    if !may("raidlabs_own_is_its_own_file_and_no_other") {
        return;
    }
    let theirs = Theirs::new();
    let device = theirs.device();
    let backing = device.identity.backing.clone().expect("its file");
    let own = Own::of_loop_file(backing.clone());
    let roots = Roots::system();
    drop(Claim::take(&roots, &device, Right::Own(&own)).expect("its own"));
    let foreign = Own::of_loop_file(FileId {
        inode: backing.inode + 1,
        ..backing
    });
    let error = Claim::take(&roots, &device, Right::Own(&foreign)).expect_err("not its own");
    assert!(error.to_string().contains("own file"), "{error}");
    assert!(
        Own::in_guest(&roots).is_none(),
        "this is no guest of raidlab's"
    );
}

#[test]
fn the_disk_that_this_system_runs_from_is_theirs() {
    let roots = Roots::system();
    let resolved = raidlab_io::observe::resolve(&roots, Path::new("/")).expect("a root");
    for name in resolved.stack().into_iter().flat_map(|stack| stack.names()) {
        let device = look_at(&roots, name).expect("a device");
        assert_eq!(device.witnesses.ownership(), Ownership::Theirs, "{name}");
    }
}

#[test]
fn a_partition_of_raidlabs_own_is_taken_back_by_its_id_alone() {
    use crate::journal::{Journal, Undo};
    if !may("a_partition_of_raidlabs_own_is_taken_back_by_its_id_alone") {
        return;
    }
    let roots = Roots::system();
    let theirs = Theirs::with(&["--partscan"]);
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

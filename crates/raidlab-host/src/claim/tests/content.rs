//! What is on a device refuses it, whether anybody uses it or not.
use super::*;

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

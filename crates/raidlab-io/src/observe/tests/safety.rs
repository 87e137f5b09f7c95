use proptest::prelude::*;

use crate::observe::tree::{LoopDevice, Tree, is_root, lvm_on_mirror};

use super::*;

/// What the kernel says; the nodes of an invented tree cannot be read, which is said for each.
fn kernel_says(tree: &Tree, name: &str) -> Vec<String> {
    inspect_name(&tree.roots, name)
        .unwrap()
        .iter()
        .filter(|used| !matches!(used.how, Use::Unreadable(_)))
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_disk_is_in_use_through_all_that_is_built_on_it() {
    let tree = lvm_on_mirror();
    let root = fs::canonicalize(tree.path("")).unwrap();
    assert_eq!(
        kernel_says(&tree, "sda"),
        [
            "sda1 is part of md0 (md raid1)".to_owned(),
            "md0 is part of dm-0 (LVM vg-data)".to_owned(),
            format!("dm-0 is mounted at {} (ext4)", root.display()),
            "sda has partitions: sda1".to_owned(),
        ]
    );
    assert_eq!(kernel_says(&tree, "sdc"), Vec::<String>::new());
}

#[test]
fn a_device_that_cannot_be_read_is_not_free() {
    let tree = lvm_on_mirror();
    let used = inspect_name(&tree.roots, "sdc").unwrap();
    assert!(
        matches!(
            used.as_slice(),
            [InUse {
                how: Use::Unreadable(_),
                ..
            }]
        ),
        "{used:?}"
    );
}

#[test]
fn swap_read_only_and_the_disk_below_count() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .partition("virtual/block/sda", "sda1", "8:1")
        .partition("virtual/block/sda", "sda2", "8:2")
        .attribute("sda2", "ro", "1")
        .file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/sda1 partition 8 0 -2\n/swapfile file 8 0 -3\n");
    assert_eq!(kernel_says(&tree, "sda1"), ["sda1 is active swap space"]);
    assert_eq!(kernel_says(&tree, "sda2"), ["sda2 is write-protected"]);
    assert_eq!(
        kernel_says(&tree, "sda"),
        [
            "sda1 is active swap space",
            "sda has partitions: sda1, sda2"
        ]
    );
    // A file system right on the disk below a partition: both uses cannot be.
    tree.mounted("8:0", "xfs", "/dev/sda", "rw");
    assert!(kernel_says(&tree, "sda2")[0].starts_with("sda is mounted at"));
}

#[test]
fn a_second_btrfs_device_is_in_use_though_no_mount_names_it() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .directory("sys/fs/btrfs/1234/devices/sda");
    assert_eq!(
        kernel_says(&tree, "sda"),
        ["sda is in use by btrfs, mounted out of sight"]
    );
}

#[test]
fn a_mount_in_another_namespace_is_seen_by_what_the_file_system_keeps_in_sysfs() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .directory("sys/fs/ext4/features")
        .directory("sys/fs/ext4/sda");
    assert_eq!(
        kernel_says(&tree, "sda"),
        ["sda is in use by ext4, mounted out of sight"]
    );
    // Seen in the mount table, it is said once.
    tree.mounted("8:0", "ext4", "/dev/sda", "rw");
    assert_eq!(kernel_says(&tree, "sda").len(), 1);
}

#[test]
fn what_the_kernel_serves_to_others_is_in_use() {
    let tree = Tree::new();
    let nvme = "sys/kernel/config/nvmet/subsystems/nqn.2014-08.org:x/namespaces/1";
    let scsi = "sys/kernel/config/target/core/fileio_0/backup/udev_path";
    tree.device("virtual/block/sda", "8:0")
        .partition("virtual/block/sda", "sda1", "8:1")
        .device("virtual/block/sdb", "8:16")
        .device("virtual/block/sdc", "8:32")
        .file(&format!("{nvme}/device_path"), "/dev/sda1\n")
        .file(&format!("{nvme}/enable"), "0\n")
        .file("sys/kernel/config/target/core/fileio_0/hba_info", "HBA")
        .file(scsi, "/dev/sdb\n")
        .file(
            "sys/kernel/scst_tgt/devices/d/filename",
            "/dev/sdc\n[key]\n",
        );
    let of_nvme =
        "sda1 is served by the NVMe target as namespace 1 of nqn.2014-08.org:x".to_owned();
    let partitioned = "sda has partitions: sda1".to_owned();
    assert_eq!(kernel_says(&tree, "sda1"), std::slice::from_ref(&of_nvme));
    assert_eq!(kernel_says(&tree, "sda"), [of_nvme, partitioned]);
    assert_eq!(
        kernel_says(&tree, "sdb"),
        ["sdb is served by the SCSI target as backup (fileio_0)"]
    );
    assert_eq!(kernel_says(&tree, "sdc"), ["sdc is served by SCST as d"]);
    tree.file(&format!("{nvme}/device_path"), "/dev/sda\n");
    assert_eq!(
        kernel_says(&tree, "sda1"),
        ["sda is served by the NVMe target as namespace 1 of nqn.2014-08.org:x"]
    );
}

/// By what sysfs names, as the nodes of an invented tree are none.
#[test]
fn a_loop_device_that_cannot_be_asked_may_lie_on_any_other() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .device("virtual/block/loop0", "7:0")
        .file("image", "");
    let image = tree.path("image");
    let shows = |text: &str| {
        tree.attribute("loop0", "loop/backing_file", text);
        kernel_says(&tree, "sda")
    };
    assert_eq!(shows(image.to_str().unwrap()), Vec::<String>::new());
    let unknown =
        ["loop0 may lie on sda: what it shows cannot be found out; detach it first".to_owned()];
    assert_eq!(shows("/nothing/of/that/name"), unknown);
    // What has the name of one that was removed is another.
    assert_eq!(shows(&format!("{} (deleted)", image.display())), unknown);
    assert_eq!(kernel_says(&tree, "loop0"), Vec::<String>::new());
}

#[test]
fn what_lies_on_a_device_through_a_loop_device_is_a_use_of_it() {
    if !is_root("what_lies_on_a_device_through_a_loop_device_is_a_use_of_it") {
        return;
    }
    let roots = Roots::system();
    let device = LoopDevice::new(8 << 20);
    let output = std::process::Command::new("losetup")
        .args(["--find", "--show", "--offset", "1MiB"])
        .arg(&device.node)
        .output()
        .unwrap();
    let upper = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let name = upper.trim_start_matches("/dev/").to_owned();
    let (lower, own) = (device.name(), |name| inspect_name(&roots, name).unwrap());
    let said = [own(&lower), own(&name)].map(|all| {
        let told = all.iter().map(ToString::to_string);
        told.collect::<Vec<_>>()
    });
    let family = family_above(&roots, &lower);
    crate::observe::tree::run("losetup", &["--detach", &upper]);
    let [below, above] = said;
    assert_eq!(below, [format!("{name} lies on {lower}")]);
    assert_eq!(
        above,
        [format!("{name} shows the device {lower}: use that one")]
    );
    assert_eq!(family, [lower, name]);
}

#[test]
fn only_block_devices_are_opened() {
    let error = open_for_reading(Path::new("/dev/zero"))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "/dev/zero is not a block device");
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(
        open_for_reading(file.path()),
        Err(ObserveError::WrongKind { .. })
    ));
    assert!(matches!(
        inspect(&Roots::system(), file.path()),
        Err(ObserveError::WrongKind { .. })
    ));
}

#[test]
fn reads_the_swap_table() {
    let text = "Filename Type Size Used Priority\n/dev/dm-1 partition 8 0 -2\n/my\\040file file 8 0 -3\n/dev/a\\040b partition 1 1 1\n";
    assert_eq!(
        parse_swaps(text),
        [PathBuf::from("/dev/dm-1"), PathBuf::from("/dev/a b")]
    );
    assert!(parse_swaps("").is_empty());
}

fn scan(image: &[u8]) -> Vec<String> {
    let read = |offset: u64, buffer: &mut [u8]| {
        let at = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&image[at..at + buffer.len()]);
        Ok(())
    };
    find_signatures(image.len() as u64, read)
        .unwrap()
        .iter()
        .map(|s| s.what.clone())
        .collect()
}

#[test]
fn each_probe_finds_its_own_magic_and_zeros_have_none() {
    // Not a multiple of 256 KiB, so that places from the end differ from those from the start.
    let mut image = vec![0u8; (3 << 20) + 5 * 4096];
    assert_eq!(scan(&image), Vec::<String>::new());
    for probe in probes() {
        let at = usize::try_from(probe.offset(image.len() as u64).unwrap()).unwrap();
        image[at..at + probe.magic().len()].copy_from_slice(probe.magic());
        assert!(
            scan(&image).contains(&probe.what().to_owned()),
            "{}",
            probe.what()
        );
        image[at..at + probe.magic().len()].fill(0);
    }
}

/// What libblkid knows besides, at one of the places where it looks.
#[test]
fn all_that_libblkid_knows_is_found() {
    const MIB: usize = 1 << 20;
    let size = 5 * MIB + 5 * 4096;
    let kinds: &[(usize, &[u8], &str)] = &[
        (0x418, b"\x5a\x4d", "minix file system"),
        (0x2034, b"ReIsErFs", "reiserfs file system"),
        (0, b"sqsh", "squashfs file system"),
        (0x8009, b"CDROM", "iso9660 file system"),
        (0, b"\0\0\0ReFS\0", "refs file system"),
        (0x2000, b"\x49\xe8\x95\xf9", "hpfs file system"),
        (0x2000, b"OracleCFS", "ocfs file system"),
        (0x20, b"ORCLDISK", "oracle asm disk"),
        (0x400, b"\xf5\xfc\x01\xa5", "vxfs file system"),
        (0x20_0000, b"\x5e\xf1\xab\x2f", "vmfs file system"),
        (0x220, b"BFS1", "befs file system"),
        (0, b"\xce\xfa\xad\x1b", "bfs file system"),
        (0x1000, b"SPB5", "netware file system"),
        (0x1_0004, b"\x8b\x42\x3c\x10", "scoutfs file system"),
        (0x3f8, b"\x20\x7e\x18\xfd", "sysv file system"),
        (0x4055c, b"\0\x01\x19\x54", "ufs file system"),
        (0x255c, b"\0\x01\x19\x54", "ufs file system"),
        (0, b"\x45\x3d\xcd\x28", "cramfs file system"),
        (0, b"-rom1fs-", "romfs file system"),
        (0, b"SFOZ", "zonefs file system"),
        (0, b"UBI#", "ubi volume"),
        (3 * 512, b"\xfe\xed\xba\xbe", "xfs log"),
        (32768 - 10, b"SWAPSPACE2", "swap space"),
        (8192 - 10, b"SWAP-SPACE", "swap space"),
        (4096 - 10, b"S2SUSPEND", "hibernation image"),
        (4096 - 10, b"LINHIB0001", "hibernation image"),
        (4 * MIB, b"SKUL\xba\xbe", "LUKS2 secondary header"),
        (0, b"HM\x01\0", "LVM1 physical volume"),
        (0, b"SnAp", "LVM snapshot"),
        (size - 4096 + 60, b"\x83\x74\x02\x6c", "drbd device"),
        (0x1220, b"\xf0\x16\x78\x5a", "Highpoint array member"),
        (size - 5632, b"\xf3\x16\x78\x5a", "Highpoint array member"),
        (size - 512, b"\x37\xfc\x4d\x1e", "Adaptec array member"),
        (size - 416, b"\0\0\0\x2f", "Silicon Image array member"),
        (size - 512, b"JM", "JMicron array member"),
        (
            size - 3087 * 512,
            b"Promise Technology, Inc.",
            "Promise array member",
        ),
        (512, b"\x57\x45\x56\x82", "BSD disk label"),
        (0, b"ER\x02\0", "Apple partition table"),
        (0, b"\x0b\xe5\xa9\x41", "SGI partition table"),
        (508, b"\xda\xbe", "Sun partition table"),
        (0x20c, b"\xee\xde\x0d\x60", "Solaris partition table"),
        (0, b"\xc9\xc2\xd4\xc1", "AIX partition table"),
    ];
    let mut image = vec![0u8; size];
    let missed: Vec<_> = kinds
        .iter()
        .filter(|(at, magic, what)| {
            image[*at..at + magic.len()].copy_from_slice(magic);
            let found = scan(&image).iter().any(|found| found == what);
            image[*at..at + magic.len()].fill(0);
            !found
        })
        .map(|(at, _, what)| format!("{what} at {at:#x}"))
        .collect();
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn finds_zfs_labels_at_either_end() {
    let mut image = vec![0u8; 2 << 20];
    let mut list = vec![1, 1, 0, 0];
    list.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 36, 0, 0, 0, 32, 0, 0, 0, 7]);
    list.extend(b"version\0");
    let at = 16 * 1024;
    image[at..at + list.len()].copy_from_slice(&list);
    assert_eq!(scan(&image), ["zfs pool member"]);
    image[at..at + list.len()].fill(0);
    let ring = (2 << 20) - 256 * 1024 + 128 * 1024 + 5 * 1024;
    image[ring..ring + 8].copy_from_slice(&0x00ba_b10c_u64.to_le_bytes());
    assert_eq!(scan(&image), ["zfs pool member"]);
}

#[test]
fn tells_partition_tables_from_boot_sectors_of_file_systems() {
    let mut image = vec![0u8; 1 << 20];
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    assert_eq!(scan(&image), ["boot sector"]);
    image[446 + 4] = 0x83;
    assert_eq!(scan(&image), ["MBR partition table"]);
    image[0x52..0x5a].copy_from_slice(b"FAT32   ");
    assert_eq!(scan(&image), ["fat file system"]);
}

#[test]
fn swap_made_by_mkswap_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    crate::observe::tree::run("/usr/sbin/mkswap", &["-q", path.to_str().unwrap()]);
    assert_eq!(scan(&fs::read(&path).unwrap()), ["swap space"]);
}

#[test]
fn a_gpt_is_found_with_its_protective_mbr_and_its_backup() {
    let mut image = vec![0u8; 1 << 20];
    image[446 + 4] = 0xee;
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image[512..520].copy_from_slice(b"EFI PART");
    let backup = image.len() - 512;
    image[backup..backup + 8].copy_from_slice(b"EFI PART");
    assert_eq!(
        scan(&image),
        [
            "MBR partition table",
            "GPT partition table",
            "GPT partition table (backup)"
        ]
    );
}

#[test]
fn the_kernel_and_the_bytes_both_tell_of_a_real_partition() {
    if !is_root("the_kernel_and_the_bytes_both_tell_of_a_real_partition") {
        return;
    }
    let device = LoopDevice::prepared(4 << 20, |file| {
        let mut sector = [0u8; 512];
        sector[446 + 4] = 0x83;
        sector[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
        sector[446 + 12..446 + 16].copy_from_slice(&4096u32.to_le_bytes());
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        OpenOptions::new()
            .write(true)
            .open(file)
            .unwrap()
            .write_all_at(&sector, 0)
            .unwrap();
    });
    device.add_partition(1, 2048, 4096);
    let roots = Roots::system();
    let (name, part) = (device.name(), format!("{}p1", device.name()));
    let used = inspect_name(&roots, &name).unwrap();
    let says = |text: &str| used.iter().any(|used| used.to_string() == text);
    assert!(says(&format!("{name} has partitions: {part}")), "{used:?}");
    assert!(
        says(&format!(
            "{name} carries MBR partition table (signature at byte 510)"
        )),
        "{used:?}"
    );
    let stack = crate::observe::resolve::device_stack(&roots, vec![part]).unwrap();
    assert_eq!(stack.devices[0].kind, DeviceKind::Partition);
    assert_eq!(stack.devices[0].below, [name]);
}

#[test]
fn an_empty_loop_device_is_free_and_one_with_luks_is_not() {
    if !is_root("an_empty_loop_device_is_free_and_one_with_luks_is_not") {
        return;
    }
    let roots = Roots::system();
    let device = LoopDevice::new(4 << 20);
    assert_eq!(inspect(&roots, &device.node).unwrap(), []);
    let device = LoopDevice::prepared(4 << 20, |file| {
        let file = OpenOptions::new().write(true).open(file).unwrap();
        file.write_all_at(b"LUKS\xba\xbe", 0).unwrap();
    });
    let used = inspect(&roots, &device.node).unwrap();
    assert_eq!(used.len(), 1);
    assert!(
        used[0]
            .to_string()
            .contains("carries LUKS encrypted volume"),
        "{}",
        used[0]
    );
}

proptest! {
    #[test]
    fn any_bytes_of_any_size_are_scanned(bytes in proptest::collection::vec(any::<u8>(), 0..6000)) {
        let _ = scan(&bytes);
    }

    #[test]
    fn any_swap_table_is_read(text in r"[a-z/ \n\\0-9]{0,100}") {
        let _ = parse_swaps(&text);
    }
}

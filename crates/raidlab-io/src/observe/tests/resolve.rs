use crate::observe::tree::{LoopDevice, Tree, is_root, lvm_on_mirror};

use super::*;

fn reason(resolved: &Resolved) -> &str {
    match &resolved.backing {
        Backing::None { reason, .. } => reason,
        Backing::Devices(stack) => panic!("found devices: {stack:?}"),
    }
}

#[test]
fn finds_the_stack_from_file_system_to_disks() {
    let tree = lvm_on_mirror();
    let resolved = resolve(&tree.roots, &tree.path("proc")).unwrap();
    assert_eq!(resolved.kind, PathKind::Directory);
    assert_eq!(
        resolved.mount.as_ref().unwrap().option("stripe"),
        Some("32")
    );
    let stack = resolved.stack().unwrap();
    assert_eq!(stack.top, ["dm-0"]);
    assert_eq!(
        stack.leaves().map(|d| d.name.as_str()).collect::<Vec<_>>(),
        ["sda", "sdb"]
    );
    insta::assert_snapshot!(stack.describe(), @r"
    dm-0 (LVM vg-data)
      md0 (md raid1)
        sda1 (partition)
          sda (disk)
        sdb1 (partition)
          sdb (disk)
    ");
    assert!(!resolved.in_memory());
}

#[test]
fn upper_devices_come_before_lower_ones_that_are_shared() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .built_on("dm-1", "sda")
        .built_on("dm-2", "dm-1")
        .built_on("dm-2", "sda");
    let stack = device_stack(&tree.roots, vec!["dm-2".to_owned()]).unwrap();
    assert_eq!(stack.names().collect::<Vec<_>>(), ["dm-2", "dm-1", "sda"]);
}

#[test]
fn a_cycle_in_sysfs_ends() {
    let tree = Tree::new();
    tree.built_on("dm-1", "dm-2").built_on("dm-2", "dm-1");
    let stack = device_stack(&tree.roots, vec!["dm-1".to_owned()]).unwrap();
    assert_eq!(stack.devices.len(), 2);
    assert!(stack.describe().lines().count() < 10);
}

#[test]
fn says_what_is_there_instead_of_a_device() {
    let tree = Tree::new();
    let say = |number: &str, fs_type: &str, source: &str| {
        tree.mounted(number, fs_type, source, "rw");
        resolve(&tree.roots, &tree.path("proc")).unwrap()
    };
    let tmpfs = say("0:50", "tmpfs", "tmpfs");
    assert_eq!(reason(&tmpfs), "no block device underneath: tmpfs");
    assert!(tmpfs.in_memory());
    let nfs = say("0:51", "nfs4", "server:/export");
    assert_eq!(
        reason(&nfs),
        "no block device underneath: nfs4 (server:/export)"
    );
    assert!(!nfs.in_memory());
    assert_eq!(
        reason(&say("0:52", "zfs", "tank/data")),
        "no block device underneath: zfs dataset tank/data; the disks of a pool are known to zfs only (zpool status)"
    );
    assert_eq!(
        reason(&say("8:77", "ext4", "/dev/gone")),
        "no block device underneath: ext4 on device 8:77, which /sys/class/block does not list"
    );
    tree.file("proc/self/mountinfo", "");
    assert_eq!(
        reason(&resolve(&tree.roots, &tree.path("proc")).unwrap()),
        "no block device underneath: its mount is not in the mount table"
    );
}

#[test]
fn btrfs_has_all_its_devices_on_top() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .device("virtual/block/sdb", "8:16");
    tree.directory("sys/fs/btrfs/features")
        .directory("sys/fs/btrfs/1234/devices/sda")
        .directory("sys/fs/btrfs/1234/devices/sdb")
        .mounted("0:40", "btrfs", "/dev/sdb", "rw,subvolid=257,subvol=/@");
    let resolved = resolve(&tree.roots, &tree.path("proc")).unwrap();
    assert_eq!(resolved.stack().unwrap().top, ["sda", "sdb"]);
}

#[test]
fn an_overlay_is_followed_to_where_new_files_go() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .directory("upper")
        .directory("merged");
    let path = |name: &str| {
        fs::canonicalize(tree.path(name))
            .unwrap()
            .display()
            .to_string()
    };
    let table = |upper: &str| {
        format!(
            "30 1 8:0 / / rw - ext4 /dev/sda rw\n\
             31 30 0:60 / {} rw - overlay overlay rw,lowerdir=/l,upperdir={upper},workdir=/w\n",
            path("merged")
        )
    };
    tree.file("proc/self/mountinfo", &table(&path("upper")));
    let resolved = resolve(&tree.roots, &tree.path("merged")).unwrap();
    assert_eq!(resolved.stack().unwrap().top, ["sda"]);
    tree.file("proc/self/mountinfo", &table("/nowhere/to/be/seen"));
    assert_eq!(
        reason(&resolve(&tree.roots, &tree.path("merged")).unwrap()),
        "no block device underneath: overlay, whose upper directory /nowhere/to/be/seen is not visible from here"
    );
    // An upper directory on the overlay itself must not run in a circle.
    tree.file("proc/self/mountinfo", &table(&path("merged")));
    assert!(reason(&resolve(&tree.roots, &tree.path("merged")).unwrap()).contains("overlay"));
}

#[test]
fn a_loop_device_leads_to_the_device_of_its_file() {
    let tree = Tree::new();
    tree.device("virtual/block/sda", "8:0")
        .device("virtual/block/loop3", "7:3");
    let backing = tree.path("image").display().to_string();
    tree.file("image", "x")
        .attribute("loop3", "loop/backing_file", &backing)
        .mounted("8:0", "xfs", "/dev/sda", "rw");
    let stack = device_stack(&tree.roots, vec!["loop3".to_owned()]).unwrap();
    assert_eq!(stack.device("loop3").unwrap().below, ["sda"]);
    tree.mounted("0:9", "tmpfs", "tmpfs", "rw");
    let stack = device_stack(&tree.roots, vec!["loop3".to_owned()]).unwrap();
    let leaf = stack.leaves().next().unwrap();
    assert_eq!(leaf.note.as_deref(), Some("file on tmpfs"));
    assert!(leaf.in_memory);
}

#[test]
fn a_path_that_is_not_there_or_not_storage_is_refused() {
    let roots = Roots::system();
    assert!(
        resolve(&roots, Path::new("/nonexistent/x"))
            .unwrap_err()
            .to_string()
            .contains("/nonexistent/x")
    );
    assert_eq!(
        reason(&resolve(&roots, Path::new("/dev/zero")).unwrap()),
        "no block device underneath: character device"
    );
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = resolve(&roots, &socket).unwrap_err().to_string();
    assert!(
        error.ends_with("socket is not a directory, a regular file or a block device"),
        "{error}"
    );
}

#[test]
fn a_real_loop_device_leads_to_the_file_system_of_its_file() {
    if !is_root("a_real_loop_device_leads_to_the_file_system_of_its_file") {
        return;
    }
    let device = LoopDevice::new(1 << 20);
    let roots = Roots::system();
    let resolved = resolve(&roots, &device.node).unwrap();
    assert_eq!(resolved.kind, PathKind::BlockDevice);
    let stack = resolved.stack().unwrap();
    assert_eq!(stack.top, [device.name()]);
    let file = resolve(&roots, &device.file).unwrap();
    match &file.backing {
        Backing::Devices(below) => assert_eq!(stack.devices[0].below, below.top),
        Backing::None { .. } => assert!(stack.devices[0].note.is_some()),
    }
}

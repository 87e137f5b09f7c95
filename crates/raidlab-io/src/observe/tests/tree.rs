//! An invented `/proc` and `/sys` for tests, and loop devices on the real ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::Roots;

/// A directory that stands in for the root of a machine.
pub(crate) struct Tree {
    directory: TempDir,
    pub(crate) roots: Roots,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots::under(directory.path());
        let tree = Self { directory, roots };
        tree.file("proc/self/mountinfo", "");
        tree
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub(crate) fn file(&self, relative: &str, content: &str) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn directory(&self, relative: &str) -> &Self {
        fs::create_dir_all(self.path(relative)).unwrap();
        self
    }

    /// A block device at a place below `sys/devices`, with its link in `sys/class/block`.
    pub(crate) fn device(&self, place: &str, number: &str) -> &Self {
        let name = place.rsplit('/').next().unwrap();
        self.file(&format!("sys/devices/{place}/dev"), &format!("{number}\n"));
        fs::create_dir_all(self.path("sys/class/block")).unwrap();
        symlink(
            self.path("sys/devices").join(place),
            self.path("sys/class/block").join(name),
        )
        .unwrap();
        self
    }

    /// An attribute of a device made before.
    pub(crate) fn attribute(&self, device: &str, file: &str, content: &str) -> &Self {
        self.file(
            &format!("sys/class/block/{device}/{file}"),
            &format!("{content}\n"),
        )
    }

    pub(crate) fn partition(&self, disk_place: &str, name: &str, number: &str) -> &Self {
        self.device(&format!("{disk_place}/{name}"), number);
        self.attribute(name, "partition", "1")
    }

    /// `upper` is built on `lower`.
    pub(crate) fn built_on(&self, upper: &str, lower: &str) -> &Self {
        self.directory(&format!("sys/class/block/{upper}/slaves/{lower}"));
        self.directory(&format!("sys/class/block/{lower}/holders/{upper}"))
    }

    /// Says that all of this tree lies on a mount.
    pub(crate) fn mounted(
        &self,
        number: &str,
        fs_type: &str,
        source: &str,
        options: &str,
    ) -> &Self {
        let point = fs::canonicalize(self.directory.path()).unwrap();
        self.file(
            "proc/self/mountinfo",
            &format!(
                "30 1 {number} / {} rw,relatime - {fs_type} {source} {options}\n",
                point.display()
            ),
        )
    }
}

/// Two SATA disks in a RAID1, LVM on it, ext4 on that; a third disk is free.
pub(crate) fn lvm_on_mirror() -> Tree {
    let tree = Tree::new();
    for (port, disk, minor) in [(1, "sda", 0), (2, "sdb", 16), (3, "sdc", 32)] {
        let place =
            format!("pci0000:00/0000:00:1f.2/ata{port}/host{port}/target{port}:0:0/block/{disk}");
        tree.device(&place, &format!("8:{minor}"));
        tree.file(
            &format!("sys/class/ata_link/link{port}/sata_spd"),
            "3.0 Gbps\n",
        );
        if disk != "sdc" {
            tree.partition(&place, &format!("{disk}1"), &format!("8:{}", minor + 1));
            tree.built_on("md0", &format!("{disk}1"));
        }
    }
    // `built_on` made the directory of md0 in the class; a real kernel has a link there, which makes no difference.
    tree.file("sys/class/block/md0/dev", "9:0\n")
        .attribute("md0", "md/level", "raid1")
        .attribute("md0", "md/raid_disks", "2")
        .attribute("md0", "md/sync_action", "recover")
        .attribute("md0", "md/degraded", "1")
        .attribute("md0", "md/dev-sda1/state", "in_sync")
        .attribute("md0", "md/dev-sdb1/state", "spare")
        .built_on("dm-0", "md0")
        .attribute("dm-0", "dev", "253:0")
        .attribute("dm-0", "dm/name", "vg-data")
        .attribute("dm-0", "dm/uuid", "LVM-abcdef");
    tree.mounted("253:0", "ext4", "/dev/mapper/vg-data", "rw,stripe=32");
    tree
}

/// Says why a test did not run; CI runs as root, so that nothing is left out there.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        let message = format!("SKIPPED {test}: it needs root for a loop device");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
    }
    root
}

/// A loop device over a file of its own, detached when dropped.
pub(crate) struct LoopDevice {
    pub(crate) node: PathBuf,
    pub(crate) file: PathBuf,
    _directory: TempDir,
}

impl LoopDevice {
    pub(crate) fn new(size: u64) -> Self {
        Self::prepared(size, |_| {})
    }

    pub(crate) fn prepared(size: u64, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("backing");
        fs::File::create(&file).unwrap().set_len(size).unwrap();
        prepare(&file);
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "losetup: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let node = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        Self {
            node,
            file,
            _directory: directory,
        }
    }

    /// Makes a partition, the first or the second, from sector `start`. The kernel is told by hand, because not every kernel reads
    /// partition tables.
    pub(crate) fn add_partition(&self, number: u32, start: u64, sectors: u64) {
        let numbers = [u64::from(number), start, sectors].map(|number| number.to_string());
        let [number, start, sectors] = &numbers;
        let node = self.node.to_str().unwrap();
        run("addpart", &[node, number, start, sectors]);
    }

    pub(crate) fn name(&self) -> String {
        self.node.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Partitions outlive the detaching and would turn up on the next user of the device.
        for number in ["1", "2"] {
            let name = format!("{}p{number}", self.name());
            if Path::new("/sys/class/block").join(name).exists() {
                let _ = Command::new("delpart").arg(&self.node).arg(number).status();
            }
        }
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.node)
            .status();
    }
}

/// A file system of its own on a loop device, unmounted when dropped.
pub(crate) struct MountedLoop {
    pub(crate) point: TempDir,
    // After the mount point: fields are dropped in order, and the device is detached last.
    pub(crate) device: LoopDevice,
}

impl MountedLoop {
    /// ext4 with further options of `mke2fs`.
    pub(crate) fn ext4(size: u64, options: &[&str]) -> Self {
        let device = LoopDevice::prepared(size, |file| {
            let file = file.to_str().unwrap();
            let fixed = ["-q", "-F", "-t", "ext4", "-b", "4096"];
            run("/usr/sbin/mke2fs", &[&fixed, options, &[file]].concat());
        });
        let point = tempfile::tempdir().unwrap();
        run(
            "mount",
            &[
                device.node.to_str().unwrap(),
                point.path().to_str().unwrap(),
            ],
        );
        Self { point, device }
    }
}

impl Drop for MountedLoop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.point.path()).status();
    }
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

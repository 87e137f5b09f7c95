//! From a path to its mount and the block devices underneath.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};
use super::mountinfo::{self, Mount, mount_of};
use super::roots::{self, DeviceNumber, Roots};
use super::stack::{DeviceStack, NoDevice};

/// What a measured path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// A directory, in which files will be made.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/zero`: no storage at all.
    CharacterDevice,
}

/// What carries a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Block devices; the topmost ones' counters prove the I/O.
    Devices(DeviceStack),
    /// None.
    None {
        /// Why: `no block device underneath: tmpfs`.
        reason: String,
        /// The data are in memory.
        in_memory: bool,
    },
}

impl Backing {
    /// The devices, if there are any.
    pub fn stack(&self) -> Option<&DeviceStack> {
        match self {
            Self::Devices(stack) => Some(stack),
            Self::None { .. } => None,
        }
    }
}

/// A path, its mount and its devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The path without links.
    pub path: PathBuf,
    /// What it is.
    pub kind: PathKind,
    /// The mount it lies on; `None` for devices, whose node's place says nothing.
    pub mount: Option<Mount>,
    /// What carries it.
    pub backing: Backing,
}

impl Resolved {
    /// The device stack, if there is one.
    pub fn stack(&self) -> Option<&DeviceStack> {
        self.backing.stack()
    }

    /// Whether the data live in memory, so that no disk is measured: tmpfs, ramfs, zram, or a loop device on these.
    pub fn in_memory(&self) -> bool {
        match &self.backing {
            Backing::None { in_memory, .. } => *in_memory,
            Backing::Devices(stack) => {
                stack.leaves().next().is_some() && stack.leaves().all(|leaf| leaf.in_memory)
            }
        }
    }
}

fn is_memory(fs_type: &str) -> bool {
    // The root of a system that was started from a file in memory (initramfs) is called `rootfs`.
    matches!(
        fs_type,
        "tmpfs" | "ramfs" | "rootfs" | "devtmpfs" | "hugetlbfs"
    )
}

/// Finds mount and devices of an existing path.
///
/// # Errors
/// When the path does not exist or may not be seen, is a socket or pipe, or the mount table cannot be read.
pub fn resolve(roots: &Roots, path: &Path) -> Result<Resolved> {
    let path = fs::canonicalize(path).map_err(ObserveError::read(path))?;
    let metadata = fs::metadata(&path).map_err(ObserveError::read(&path))?;
    let file_type = metadata.file_type();
    if file_type.is_block_device() {
        let name = roots.block_of(&metadata)?;
        let backing = Backing::Devices(device_stack(roots, vec![name])?);
        return Ok(Resolved {
            path,
            kind: PathKind::BlockDevice,
            mount: None,
            backing,
        });
    }
    if file_type.is_char_device() {
        let backing = no_device(&"character device".into());
        return Ok(Resolved {
            path,
            kind: PathKind::CharacterDevice,
            mount: None,
            backing,
        });
    }
    let kind = if file_type.is_dir() {
        PathKind::Directory
    } else if file_type.is_file() {
        PathKind::File
    } else {
        return Err(ObserveError::WrongKind {
            path,
            expected: "a directory, a regular file or a block device",
        });
    };
    let mounts = mountinfo::parse(&roots.proc_text("self/mountinfo")?)?;
    let mount = mount_of(&mounts, &path, mount_id(roots, &path)).cloned();
    let backing = match &mount {
        Some(mount) => match devices_of_mount(roots, &mounts, mount, 0) {
            Ok(names) => Backing::Devices(stack_of(roots, &mounts, names)),
            Err(nothing) => no_device(&nothing),
        },
        None => no_device(&"its mount is not in the mount table".into()),
    };
    Ok(Resolved {
        path,
        kind,
        mount,
        backing,
    })
}

fn no_device(nothing: &NoDevice) -> Backing {
    Backing::None {
        reason: format!("no block device underneath: {}", nothing.reason),
        in_memory: nothing.in_memory,
    }
}

/// The stack below block devices given by kernel name.
///
/// # Errors
/// When the mount table cannot be read (it is needed for loop devices).
pub fn device_stack(roots: &Roots, names: Vec<String>) -> Result<DeviceStack> {
    let mounts = mountinfo::parse(&roots.proc_text("self/mountinfo")?)?;
    Ok(stack_of(roots, &mounts, names))
}

fn stack_of(roots: &Roots, mounts: &[Mount], names: Vec<String>) -> DeviceStack {
    DeviceStack::collect(roots, names, &|file| {
        // A loop device shows a block device as well as a file.
        let shown = fs::metadata(file).ok();
        if let Some(device) = shown.filter(|shown| shown.file_type().is_block_device()) {
            let named = roots.block_of(&device).ok();
            return named
                .map(|name| vec![name])
                .ok_or_else(|| "a block device that is not known".into());
        }
        let mount = mount_of(mounts, file, mount_id(roots, file))
            .ok_or("the mount of its file is not known")?;
        devices_of_mount(roots, mounts, mount, 0).map_err(|nothing| nothing.below("file"))
    })
}

fn mount_id(roots: &Roots, path: &Path) -> Option<u64> {
    // An id means something only in the mount table of the running system.
    if !roots.is_live() {
        return None;
    }
    let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(stat.stx_mask)
        .contains(StatxFlags::MNT_ID)
        .then_some(stat.stx_mnt_id)
}

/// Overlays may lie on overlays; more than this is a cycle.
const MAX_OVERLAYS: usize = 8;

/// Kernel names of the devices that hold a mounted file system, or in words why there is none.
fn devices_of_mount(
    roots: &Roots,
    mounts: &[Mount],
    mount: &Mount,
    depth: usize,
) -> std::result::Result<Vec<String>, NoDevice> {
    if mount.fs_type == "btrfs" {
        return btrfs_devices(roots, mount);
    }
    if mount.fs_type == "overlay" {
        let upper = mount
            .option("upperdir")
            .ok_or("overlay without an upper directory, read only")?;
        if depth == MAX_OVERLAYS {
            return Err("overlay".into());
        }
        // New files go to the upper directory. It may lie outside of what this process sees (a container's view).
        let upper = fs::canonicalize(upper).map_err(|_| {
            format!("overlay, whose upper directory {upper} is not visible from here")
        })?;
        let below =
            mount_of(mounts, &upper, mount_id(roots, &upper)).filter(|below| below.id != mount.id);
        let below = below.ok_or("overlay, whose upper directory is on no known mount")?;
        return devices_of_mount(roots, mounts, below, depth + 1)
            .map_err(|nothing| nothing.below("overlay"));
    }
    let fs_type = mount.fs_type.as_str();
    // Major 0 is the kernel's range for file systems without a device.
    if mount.number.major != 0 {
        let name = roots.block_by_number(mount.number).ok_or_else(|| {
            format!(
                "{fs_type} on device {}, which /sys/class/block does not list",
                mount.number
            )
        })?;
        return Ok(vec![name]);
    }
    if fs_type == "zfs" {
        let dataset = &mount.source;
        Err(format!(
            "zfs dataset {dataset}; the disks of a pool are known to zfs only (zpool status)"
        ))?;
    }
    let in_memory = is_memory(fs_type);
    if in_memory || mount.source == fs_type || mount.source.is_empty() {
        return Err(NoDevice {
            reason: fs_type.to_owned(),
            in_memory,
        });
    }
    let name = source_device(roots, &mount.source)
        .ok_or_else(|| format!("{fs_type} ({})", mount.source))?;
    Ok(vec![name])
}

fn source_device(roots: &Roots, source: &str) -> Option<String> {
    let path = fs::canonicalize(source).ok()?;
    let metadata = fs::metadata(path).ok()?;
    metadata
        .file_type()
        .is_block_device()
        .then(|| roots.block_by_number(DeviceNumber::from_raw(metadata.rdev())))
        .flatten()
}

/// All devices of a btrfs file system: sysfs lists them by its uuid, the mount table names but one.
fn btrfs_devices(roots: &Roots, mount: &Mount) -> std::result::Result<Vec<String>, NoDevice> {
    let named = source_device(roots, &mount.source).or_else(|| {
        let name = Path::new(&mount.source).file_name()?.to_str()?.to_owned();
        roots.block(&name).exists().then_some(name)
    });
    let named =
        named.ok_or_else(|| format!("btrfs ({}), whose device is not known", mount.source))?;
    let directory = roots.sys.join("fs/btrfs");
    let members = roots::names_in(&directory)
        .into_iter()
        .map(|uuid| roots::names_in(&directory.join(uuid).join("devices")))
        .find(|members| members.contains(&named));
    Ok(members.unwrap_or_else(|| vec![named]))
}

#[cfg(test)]
#[path = "tests/resolve.rs"]
mod tests;

//! Whether a block device is in use by anything. Devices are only looked at: nothing here can write.

mod exports;
mod openers;
mod signature;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::block_size_of;
use super::error::{ObserveError, Result};
use super::loops::{LoopShows, attached_loops};
use super::mountinfo::{self, Mount};
use super::roots::{self, DeviceNumber, Roots};
use super::stack::{self, DeviceKind};

pub use openers::{Opener, Target, Unreadable, in_container, openers, unreadable};
pub use signature::{Probe, Signature, find_signatures, probes};

/// One way in which a device is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Mounted at a place.
    Mounted {
        /// Where.
        at: PathBuf,
        /// File-system type.
        fs_type: String,
    },
    /// Active swap space.
    Swap,
    /// A device is built on it: md, device mapper, bcache.
    HeldBy(String),
    /// A loop device lies on it, whose driver does not hold what it shows.
    ShownBy(String),
    /// A loop device of which it cannot be known what it shows, so that it may lie on it.
    MayBeShownBy(String),
    /// It is a loop device that shows a device, this one: what else is on that, holding this one does not keep away.
    Shows(String),
    /// The kernel serves it to others, by this target.
    ExportedBy(String),
    /// Has partitions that the kernel knows.
    Partitioned(Vec<String>),
    /// A known signature is on it.
    Signed(Signature),
    /// The device cannot be read, so what is on it is not known.
    Unreadable(String),
    /// Write-protected.
    ReadOnly,
    /// Part of a mounted file system, though no mount seen from here names it: a further device of btrfs, or a mount
    /// in another namespace (a container's).
    MountedElsewhere {
        /// File-system type.
        fs_type: String,
    },
}

/// A device and its use. For a whole answer the device itself, its partitions, all devices built on it and the disks
/// below it are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InUse {
    /// The device that is in use, kernel name; perhaps a partition or the parent of the inspected one.
    pub device: String,
    /// How.
    pub how: Use,
}

impl std::fmt::Display for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = &self.device;
        match &self.how {
            Use::Mounted { at, fs_type } => {
                write!(f, "{device} is mounted at {} ({fs_type})", at.display())
            }
            Use::Swap => write!(f, "{device} is active swap space"),
            Use::HeldBy(holder) => write!(f, "{device} is part of {holder}"),
            Use::ShownBy(other) => write!(f, "{other} lies on {device}"),
            Use::MayBeShownBy(other) => write!(
                f,
                "{other} may lie on {device}: what it shows cannot be found out; detach it first"
            ),
            Use::Shows(below) => write!(f, "{device} shows the device {below}: use that one"),
            Use::ExportedBy(target) => write!(f, "{device} is served by {target}"),
            Use::Partitioned(names) => write!(f, "{device} has partitions: {}", names.join(", ")),
            Use::Signed(signature) => write!(f, "{device} carries {signature}"),
            Use::Unreadable(reason) => {
                write!(
                    f,
                    "{device} cannot be read, so what it carries is not known: {reason}"
                )
            }
            Use::ReadOnly => write!(f, "{device} is write-protected"),
            Use::MountedElsewhere { fs_type } => {
                write!(f, "{device} is in use by {fs_type}, mounted out of sight")
            }
        }
    }
}

/// Opens a block device for reading only.
///
/// # Errors
/// When the path is no block device or may not be opened.
pub fn open_for_reading(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        // Without O_NONBLOCK the open of an empty drive waits for a medium; it has no effect on the reads.
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .map_err(ObserveError::call("open for reading", path))?;
    let metadata = file
        .metadata()
        .map_err(ObserveError::call("inspect", path))?;
    if !metadata.file_type().is_block_device() {
        return Err(ObserveError::WrongKind {
            path: path.to_owned(),
            expected: "a block device",
        });
    }
    Ok(file)
}

/// Opens a device by kernel name, and makes sure that the node is that device.
pub(crate) fn open_node(roots: &Roots, name: &str) -> Result<File> {
    // The kernel writes `!` for a slash in a name (`cciss!c0d0`).
    let path = roots.dev.join(name.replace('!', "/"));
    let file = open_for_reading(&path)?;
    let node = DeviceNumber::from_raw(
        file.metadata()
            .map_err(ObserveError::call("inspect", &path))?
            .rdev(),
    );
    let listed = roots::text(&roots.block(name).join("dev")).and_then(|text| text.parse().ok());
    if listed.is_some_and(|listed: DeviceNumber| listed != node) {
        return Err(ObserveError::WrongKind {
            path,
            expected: "the device of that name in /sys (a stale node)",
        });
    }
    Ok(file)
}

/// Lists every use of a block device: of itself, its partitions, what is built on them, and the disks below it.
/// Empty means that both the kernel and the bytes say it is free. Signatures on the disk below a partition are not
/// listed: that it is partitioned is why there is a partition.
///
/// # Errors
/// When the path is no known block device, or the mount table cannot be read.
pub fn inspect(roots: &Roots, path: &Path) -> Result<Vec<InUse>> {
    let metadata = fs::metadata(path).map_err(ObserveError::read(path))?;
    if !metadata.file_type().is_block_device() {
        return Err(ObserveError::WrongKind {
            path: path.to_owned(),
            expected: "a block device",
        });
    }
    inspect_name(roots, &roots.block_of(&metadata)?)
}

/// As [`inspect`], by kernel name.
///
/// # Errors
/// When the mount or swap table cannot be read.
pub fn inspect_name(roots: &Roots, name: &str) -> Result<Vec<InUse>> {
    let mounts = mountinfo::parse(&roots.proc_text("self/mountinfo")?)?;
    let swaps = swap_devices(roots)?;
    let mut found = Vec::new();
    let loops = attached_loops(roots);
    let exports = exports::exports(roots);
    for device in &family_with(roots, name, &loops) {
        kernel_uses(roots, device, &mounts, &swaps, &mut found);
        found.extend(exports::of(&exports, device));
        found.extend(loops_over(roots, device, &loops).map(|upper| InUse {
            device: device.clone(),
            how: Use::ShownBy(upper),
        }));
    }
    found.extend(by_its_own_loop(roots, name, &loops));
    let parts = stack::partitions(roots, name);
    if !parts.is_empty() {
        found.push(InUse {
            device: name.to_owned(),
            how: Use::Partitioned(parts.clone()),
        });
    }
    for device in std::iter::once(name.to_owned()).chain(parts) {
        byte_uses(roots, &device, &mut found);
    }
    for device in disks_below(roots, name) {
        // Only direct use of the lower device: that the inspected one lies on it is no news.
        for used in direct_uses(roots, &device, &mounts, &swaps) {
            found.push(InUse {
                device: device.clone(),
                how: used,
            });
        }
        found.extend(exports::of(&exports, &device));
    }
    if roots::flag(&roots.block(name).join("ro")) == Some(true) {
        found.push(InUse {
            device: name.to_owned(),
            how: Use::ReadOnly,
        });
    }
    Ok(found)
}

/// What loop devices say of a device besides those that lie on it: that it is itself one that shows another, and those that
/// cannot be asked.
fn by_its_own_loop(roots: &Roots, name: &str, loops: &[(String, LoopShows)]) -> Vec<InUse> {
    let uses = loops.iter().filter_map(|(other, shows)| {
        let how = match shows {
            LoopShows::Unknown if other != name => Use::MayBeShownBy(other.clone()),
            _ if other != name => return None,
            _ => {
                let below = shows.block()?;
                let below = roots.block_by_number(below).unwrap_or(below.to_string());
                Use::Shows(below)
            }
        };
        Some(InUse {
            device: name.to_owned(),
            how,
        })
    });
    uses.collect()
}

/// The loop devices that lie directly on a device, whatever part of it they show.
fn loops_over<'a>(
    roots: &Roots,
    device: &str,
    loops: &'a [(String, LoopShows)],
) -> impl Iterator<Item = String> + use<'a> {
    let number = roots::text(&roots.block(device).join("dev")).and_then(|text| text.parse().ok());
    loops
        .iter()
        .filter(move |(_, shows)| number.is_some() && shows.block() == number)
        .map(|(upper, _)| upper.clone())
}

/// The device, its partitions, and all that is built on any of these or shows them, each once, by kernel name.
pub fn family_above(roots: &Roots, name: &str) -> Vec<String> {
    family_with(roots, name, &attached_loops(roots))
}

fn family_with(roots: &Roots, name: &str, loops: &[(String, LoopShows)]) -> Vec<String> {
    let mut family = vec![name.to_owned()];
    let mut at = 0;
    while at < family.len() {
        let device = family[at].clone();
        let above = stack::partitions(roots, &device)
            .into_iter()
            .chain(roots::names_in(&roots.block(&device).join("holders")))
            .chain(loops_over(roots, &device, loops));
        for next in above.collect::<Vec<_>>() {
            if !family.contains(&next) {
                family.push(next);
            }
        }
        at += 1;
    }
    family
}

fn disks_below(roots: &Roots, name: &str) -> Vec<String> {
    let mut below = Vec::new();
    let mut todo = vec![name.to_owned()];
    while let Some(device) = todo.pop() {
        let lower = match stack::kind_of(roots, &device) {
            DeviceKind::Partition => stack::parent_disk(roots, &device).into_iter().collect(),
            _ => roots::names_in(&roots.block(&device).join("slaves")),
        };
        for next in lower {
            if next != name && !below.contains(&next) {
                below.push(next.clone());
                todo.push(next);
            }
        }
    }
    below
}

fn kernel_uses(
    roots: &Roots,
    device: &str,
    mounts: &[Mount],
    swaps: &[String],
    found: &mut Vec<InUse>,
) {
    for how in direct_uses(roots, device, mounts, swaps) {
        found.push(InUse {
            device: device.to_owned(),
            how,
        });
    }
    for holder in roots::names_in(&roots.block(device).join("holders")) {
        let kind = stack::kind_of(roots, &holder);
        let how = Use::HeldBy(format!("{holder} ({kind})"));
        found.push(InUse {
            device: device.to_owned(),
            how,
        });
    }
}

fn direct_uses(roots: &Roots, device: &str, mounts: &[Mount], swaps: &[String]) -> Vec<Use> {
    let number = roots::text(&roots.block(device).join("dev")).and_then(|text| text.parse().ok());
    let mut uses: Vec<Use> = mounts
        .iter()
        .filter(|mount| Some(mount.number) == number || source_names(roots, mount, device))
        .map(|mount| Use::Mounted {
            at: mount.point.clone(),
            fs_type: mount.fs_type.clone(),
        })
        .collect();
    if uses.is_empty() {
        uses.extend(
            mounted_elsewhere(roots, device).map(|fs_type| Use::MountedElsewhere { fs_type }),
        );
    }
    if swaps.iter().any(|swap| swap == device) {
        uses.push(Use::Swap);
    }
    uses
}

/// btrfs mounts have an anonymous number; their source names one device.
fn source_names(roots: &Roots, mount: &Mount, device: &str) -> bool {
    mount.number.major == 0 && node_name(roots, Path::new(&mount.source)).as_deref() == Some(device)
}

/// The kind of a mounted file system on a device, by the directories that file systems keep in `/sys/fs` as long as
/// they are mounted anywhere: `/sys/fs/TYPE/DEVICE`, and `/sys/fs/btrfs/UUID/devices/DEVICE`.
fn mounted_elsewhere(roots: &Roots, device: &str) -> Option<String> {
    let root = roots.sys.join("fs");
    roots::names_in(&root).into_iter().find(|fs_type| {
        let directory = root.join(fs_type);
        if fs_type == "btrfs" {
            let holds = |uuid: &String| directory.join(uuid).join("devices").join(device).exists();
            return roots::names_in(&directory).iter().any(holds);
        }
        // A device cannot be named like one of the other entries (`features`), but only known devices count.
        directory.join(device).is_dir() && roots.block(device).exists()
    })
}

/// Kernel name of the device a node or a link to it stands for.
fn node_name(roots: &Roots, path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.file_type().is_block_device() {
        return roots.block_by_number(DeviceNumber::from_raw(metadata.rdev()));
    }
    None
}

/// Kernel names of the devices swapped to, from `/proc/swaps`; absent without swap support.
fn swap_devices(roots: &Roots) -> Result<Vec<String>> {
    let path = roots.proc.join("swaps");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = roots::required_text(&path)?;
    Ok(parse_swaps(&text)
        .into_iter()
        .filter_map(|path| {
            node_name(roots, &path).or_else(|| path.file_name()?.to_str().map(str::to_owned))
        })
        .collect())
}

/// Paths of `/proc/swaps` that are partitions or devices.
pub(super) fn parse_swaps(text: &str) -> Vec<PathBuf> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let path = words.next()?;
            (words.next()? == "partition").then(|| mountinfo::unescape(path))
        })
        .collect()
}

fn byte_uses(roots: &Roots, device: &str, found: &mut Vec<InUse>) {
    let mut push = |how| {
        found.push(InUse {
            device: device.to_owned(),
            how,
        });
    };
    match read_signatures(roots, device) {
        Ok(signatures) => signatures
            .into_iter()
            .for_each(|signature| push(Use::Signed(signature))),
        Err(error) => push(Use::Unreadable(error.to_string())),
    }
}

/// The known signatures on a device.
///
/// # Errors
/// When it cannot be opened or read.
pub fn read_signatures(roots: &Roots, device: &str) -> Result<Vec<Signature>> {
    let path = roots.dev.join(device);
    let file = open_node(roots, device)?;
    let size = block_size_of(&file).map_err(ObserveError::call("find the size of", &path))?;
    find_signatures(size, |offset, buffer| file.read_exact_at(buffer, offset))
        .map_err(ObserveError::call("read", &path))
}

#[cfg(test)]
#[path = "../tests/safety.rs"]
mod tests;

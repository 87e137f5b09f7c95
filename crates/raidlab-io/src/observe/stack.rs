//! The stack of block devices below one: partition, md, device mapper, loop, down to disks.

mod queue;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use queue::past_cache;

use super::roots::{self, DeviceNumber, Roots};

/// Tells the devices below a loop device's file, or in words why there are none.
pub(crate) type Below<'a> = &'a dyn Fn(&Path) -> Result<Vec<String>, NoDevice>;

/// Why there is no block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoDevice {
    /// In words: `tmpfs`, `nfs4 (server:/export)`.
    pub(crate) reason: String,
    /// The data are in memory.
    pub(crate) in_memory: bool,
}

impl NoDevice {
    /// With what lies on it named first: `file on tmpfs`.
    pub(crate) fn below(mut self, what: &str) -> Self {
        self.reason = format!("{what} on {}", self.reason);
        self
    }
}

impl From<String> for NoDevice {
    fn from(reason: String) -> Self {
        Self {
            reason,
            in_memory: false,
        }
    }
}

impl From<&str> for NoDevice {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

/// What a block device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DeviceKind {
    /// A whole disk, or what the hardware shows as one.
    Disk,
    /// A partition of a disk.
    Partition,
    /// A Linux software array.
    Md {
        /// `raid5`, as `/sys/block/*/md/level` says.
        level: Option<String>,
    },
    /// A device-mapper device.
    Mapper {
        /// Its name in `/dev/mapper`.
        name: Option<String>,
        /// What made it, the first part of its uuid: `LVM`, `CRYPT`, `mpath`, `part1`.
        made_by: Option<String>,
    },
    /// A loop device.
    Loop {
        /// The file it shows; `None` when it is not set up.
        backing_file: Option<PathBuf>,
    },
    /// Memory that looks like a disk: zram, brd.
    Memory,
    /// A disk served over a network (nbd, rbd, drbd).
    Network,
}

/// One device of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackDevice {
    /// Kernel name, `sda1`.
    pub name: String,
    /// Device number; `None` when sysfs does not tell.
    pub number: Option<DeviceNumber>,
    /// What it is.
    pub kind: DeviceKind,
    /// Names of the devices directly below.
    pub below: Vec<String>,
    /// What lies below when that is no block device: `file on tmpfs`.
    pub note: Option<String>,
    /// The data are in memory: zram, or a loop device over a file on tmpfs.
    pub in_memory: bool,
    /// Whether the kernel counts its I/O (`queue/iostats`); `None` when it does not say.
    pub counted: Option<bool>,
    /// A volume that asks what is below for just the bytes that it is asked for: linear or striped, encrypted. Others keep
    /// copies, logs and metadata.
    #[serde(default)]
    pub carries: bool,
    /// A loop device that goes past the page cache: it reads of its file just what it is asked for.
    #[serde(default)]
    pub past_cache: bool,
}

/// A block device and all below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStack {
    /// The topmost devices: one, or all of a btrfs file system.
    pub top: Vec<String>,
    /// Every device once, upper before lower.
    pub devices: Vec<StackDevice>,
}

impl DeviceStack {
    /// The stack below some devices. `backing` tells the devices below a loop device's file, or why there are none.
    pub(crate) fn collect(roots: &Roots, top: Vec<String>, backing: Below<'_>) -> Self {
        let mut stack = Self {
            top: top.clone(),
            devices: Vec::new(),
        };
        for name in top {
            stack.visit(roots, &name, backing);
        }
        stack.order_upper_first();
        stack
    }

    fn visit(&mut self, roots: &Roots, name: &str, backing: Below<'_>) {
        // A device may be reached twice (two LVs of one disk), and a loop file may lie on its own loop device.
        if self.device(name).is_some() {
            return;
        }
        let kind = kind_of(roots, name);
        let (below, nothing) = match below(roots, name, &kind, backing) {
            Ok(below) => (below, None),
            Err(nothing) => (Vec::new(), Some(nothing)),
        };
        self.devices.push(StackDevice {
            name: name.to_owned(),
            number: roots::text(&roots.block(name).join("dev")).and_then(|text| text.parse().ok()),
            counted: queue::counted(roots, name, &kind),
            carries: queue::carries(roots, name, &kind),
            past_cache: past_cache(roots, name),
            kind,
            below: below.clone(),
            in_memory: nothing.as_ref().is_some_and(|nothing| nothing.in_memory),
            note: nothing.map(|nothing| nothing.reason),
        });
        for lower in below {
            self.visit(roots, &lower, backing);
        }
    }

    /// Depth-first order can put a shared disk before a device above it; sort by longest distance from the top.
    fn order_upper_first(&mut self) {
        let count = self.devices.len();
        let mut depth = vec![0usize; count];
        // At most `count` rounds are needed, which also ends a (broken) cycle.
        for _ in 0..count {
            for upper in 0..count {
                for lower in 0..count {
                    if self.devices[upper]
                        .below
                        .contains(&self.devices[lower].name)
                    {
                        depth[lower] = depth[lower].max(depth[upper] + 1).min(count);
                    }
                }
            }
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&index| (depth[index], index));
        self.devices = order
            .into_iter()
            .map(|index| self.devices[index].clone())
            .collect();
    }

    /// A device by name.
    pub fn device(&self, name: &str) -> Option<&StackDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The lowest devices: those with no block device below.
    pub fn leaves(&self) -> impl Iterator<Item = &StackDevice> {
        self.devices.iter().filter(|device| device.below.is_empty())
    }

    /// Names of the devices whose counters prove the I/O: the topmost ones, and what is below those that are known to
    /// keep none (md linear: since 5.14 each level counts for itself, and that one does not).
    pub fn counting_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.top_names().collect();
        let linear = DeviceKind::Md {
            level: Some("linear".to_owned()),
        };
        // Arrays of arrays are a few levels deep; a broken cycle ends with the devices that there are.
        for _ in 0..self.devices.len() {
            let silent = |name: &&str| self.device(name).filter(|device| device.kind == linear);
            let Some(device) = names.iter().find_map(silent) else {
                break;
            };
            names.retain(|name| *name != device.name);
            let below = device.below.iter().map(String::as_str);
            names.extend(below);
        }
        names
    }

    /// Names of the topmost devices.
    pub fn top_names(&self) -> impl Iterator<Item = &str> {
        self.top.iter().map(String::as_str)
    }

    /// Whether the counters that prove the I/O can be trusted to move.
    pub fn top_counted(&self) -> bool {
        let off = |name: &str| {
            self.device(name)
                .is_some_and(|device| device.counted == Some(false))
        };
        !self.counting_names().into_iter().any(off)
    }

    /// Names of the devices on which the files of loop devices lie: what the page cache answers for a loop device,
    /// they do not see.
    pub fn beneath_loops(&self) -> Vec<&str> {
        let loops = self
            .devices
            .iter()
            .filter(|device| matches!(device.kind, DeviceKind::Loop { .. }));
        let mut names: Vec<&str> = loops
            .flat_map(|device| device.below.iter().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Names of all devices.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|device| device.name.as_str())
    }

    /// The tree, one device a line, indented: `md0 (raid5) > sda1 > sda`.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for name in &self.top {
            self.describe_below(name, 0, &mut out);
        }
        out
    }

    fn describe_below(&self, name: &str, depth: usize, out: &mut String) {
        let Some(device) = self.device(name) else {
            return;
        };
        let note = device
            .note
            .as_ref()
            .map(|note| format!(" [{note}]"))
            .unwrap_or_default();
        out.push_str(&format!(
            "{}{name} ({}){note}\n",
            "  ".repeat(depth),
            device.kind
        ));
        if depth < self.devices.len() {
            for lower in &device.below {
                self.describe_below(lower, depth + 1, out);
            }
        }
    }
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk => f.write_str("disk"),
            Self::Partition => f.write_str("partition"),
            Self::Md { level } => {
                write!(f, "md {}", level.as_deref().unwrap_or("of unknown level"))
            }
            Self::Mapper { name, made_by } => {
                write!(f, "{}", made_by.as_deref().unwrap_or("device mapper"))?;
                name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
            }
            Self::Loop {
                backing_file: Some(file),
            } => write!(f, "loop on {}", file.display()),
            Self::Loop { backing_file: None } => f.write_str("loop, not set up"),
            Self::Memory => f.write_str("memory"),
            Self::Network => f.write_str("network disk"),
        }
    }
}

/// What a device is, from sysfs and, where that has no word for it, from the driver's name.
pub(crate) fn kind_of(roots: &Roots, name: &str) -> DeviceKind {
    let directory = roots.block(name);
    if directory.join("partition").exists() {
        return DeviceKind::Partition;
    }
    if directory.join("md").exists() {
        return DeviceKind::Md {
            level: roots::text(&directory.join("md/level")),
        };
    }
    if directory.join("dm").exists() {
        let uuid = roots::text(&directory.join("dm/uuid"));
        return DeviceKind::Mapper {
            name: roots::text(&directory.join("dm/name")),
            made_by: uuid.and_then(|uuid| Some(uuid.split_once('-')?.0.to_owned())),
        };
    }
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match driver {
        "loop" => DeviceKind::Loop {
            backing_file: loop_file(roots, name),
        },
        "zram" | "ram" => DeviceKind::Memory,
        "nbd" | "rbd" | "drbd" => DeviceKind::Network,
        _ => DeviceKind::Disk,
    }
}

fn loop_file(roots: &Roots, name: &str) -> Option<PathBuf> {
    let text = roots::text(&roots.block(name).join("loop/backing_file"))?;
    // A removed file is shown with this suffix; the device still reads it.
    Some(PathBuf::from(
        text.strip_suffix(" (deleted)").unwrap_or(&text),
    ))
}

fn below(
    roots: &Roots,
    name: &str,
    kind: &DeviceKind,
    backing: Below<'_>,
) -> Result<Vec<String>, NoDevice> {
    match kind {
        DeviceKind::Partition => match parent_disk(roots, name) {
            Some(disk) => Ok(vec![disk]),
            None => Err("its disk is not known".into()),
        },
        DeviceKind::Loop {
            backing_file: Some(file),
        } => backing(file),
        DeviceKind::Memory => Err(NoDevice {
            reason: "in memory".to_owned(),
            in_memory: true,
        }),
        _ => Ok(roots::names_in(&roots.block(name).join("slaves"))),
    }
}

/// The disk a partition is on: the directory above it in sysfs.
pub(crate) fn parent_disk(roots: &Roots, name: &str) -> Option<String> {
    let real = fs::canonicalize(roots.block(name)).ok()?;
    let parent = real.parent()?.file_name()?.to_str()?.to_owned();
    roots.block(&parent).exists().then_some(parent)
}

/// The partitions of a disk.
pub(crate) fn partitions(roots: &Roots, disk: &str) -> Vec<String> {
    roots::names_in(&roots.block(disk))
        .into_iter()
        .filter(|name| roots.block(disk).join(name).join("partition").exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, level: Option<&str>, below: &[&str]) -> StackDevice {
        StackDevice {
            name: name.to_owned(),
            number: None,
            kind: level.map_or(DeviceKind::Disk, |level| DeviceKind::Md {
                level: Some(level.to_owned()),
            }),
            below: below.iter().map(|name| (*name).to_owned()).collect(),
            note: None,
            in_memory: false,
            counted: None,
            carries: false,
            past_cache: false,
        }
    }

    #[test]
    fn what_counts_nothing_is_proved_by_what_is_below() {
        let mut stack = DeviceStack {
            top: vec!["md0".to_owned()],
            devices: vec![
                device("md0", Some("linear"), &["sda", "md1"]),
                device("sda", None, &[]),
                device("md1", Some("raid1"), &["sdb", "sdc"]),
                device("sdb", None, &[]),
                device("sdc", None, &[]),
            ],
        };
        assert_eq!(stack.counting_names(), ["sda", "md1"]);
        stack.devices[1].counted = Some(false);
        assert!(!stack.top_counted());
        stack.top = vec!["md1".to_owned()];
        assert_eq!(stack.counting_names(), ["md1"]);
        assert!(stack.top_counted());
    }
}

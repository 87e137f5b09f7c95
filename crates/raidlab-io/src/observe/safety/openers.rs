//! Which other processes have a block device open. Opening exclusively keeps out only those that ask in the same way: a
//! virtual machine whose disk it is, or a `dd` onto it, does not.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::observe::roots::{self, DeviceNumber, Roots};

/// A process that has a device open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// Its id.
    pub pid: u32,
    /// Its name, as the kernel has it (15 bytes at most).
    pub name: String,
    /// The device's node, as the process knows it.
    pub node: String,
}

impl std::fmt::Display for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}) has {} open", self.name, self.pid, self.node)
    }
}

/// The other processes that have one of these devices open, as far as this user may look; its own threads are none.
#[must_use]
pub fn openers(roots: &Roots, devices: &[DeviceNumber]) -> Vec<Opener> {
    let own = std::process::id();
    let pids = roots::names_in(&roots.proc).into_iter();
    pids.filter_map(|name| name.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| opener(roots, pid, devices))
        .collect()
}

fn opener(roots: &Roots, pid: u32, devices: &[DeviceNumber]) -> Option<Opener> {
    let process = roots.proc.join(pid.to_string());
    let descriptors = process.join("fd");
    let node = roots::names_in(&descriptors)
        .iter()
        .find_map(|number| device_node(&descriptors.join(number), devices))?;
    Some(Opener {
        pid,
        name: roots::text(&process.join("comm")).unwrap_or_default(),
        node,
    })
}

/// What a descriptor's link says, when it leads to one of these devices. Only what lies in a `dev` directory is looked at
/// (that of a container, too): a file of a server that is silent would not let go of who asks for it.
fn device_node(descriptor: &Path, devices: &[DeviceNumber]) -> Option<String> {
    let node = fs::read_link(descriptor).ok()?.to_str()?.to_owned();
    if !node.contains("/dev/") {
        return None;
    }
    let found = fs::metadata(descriptor).ok()?;
    let number = DeviceNumber::from_raw(found.rdev());
    (found.file_type().is_block_device() && devices.contains(&number)).then_some(node)
}

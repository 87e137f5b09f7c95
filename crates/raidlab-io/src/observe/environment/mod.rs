//! The record of what a trial ran on. What cannot be found out is `None`, never a guess.

mod cgroup;
mod device;
mod filesystem;
mod host;
mod identify;
mod superblock;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use cgroup::{IoKind, IoLimit, Limits};
pub use device::{BcacheRecord, DeviceRecord, MdRecord, QueueRecord};
pub use filesystem::{FilesystemRecord, Space, space_at};
pub use host::{BatteryState, Cpu, Kernel, Memory, memory};
pub use identify::{IDENTIFY_BYTES, Identity, parse_identify};
pub use superblock::{ExtParameters, XfsParameters, parse_ext, parse_xfs};

pub(crate) use cgroup::{limits, throttled};
pub(crate) use host::{batteries, governors};

use super::error::Result;
use super::mountinfo::Mount;
use super::resolve::{Backing, PathKind, Resolved};
use super::roots::Roots;

/// The machine and, when one is measured, the path with its file system and devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel.
    pub kernel: Kernel,
    /// Processor.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// `kvm`, `qemu`, `hypervisor` (one that does not tell its name), `docker`; `None` when nothing hints at one.
    pub virtualisation: Option<String>,
    /// What was measured.
    pub target: Option<TargetRecord>,
}

/// The measured path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Canonical path.
    pub path: PathBuf,
    /// Directory, file or device.
    pub kind: PathKind,
    /// Its mount, with options.
    pub mount: Option<Mount>,
    /// File-system parameters.
    pub filesystem: Option<FilesystemRecord>,
    /// Devices, upper before lower.
    pub devices: Vec<DeviceRecord>,
    /// The topmost devices.
    pub top: Vec<String>,
    /// Why there is no block device.
    pub no_device: Option<String>,
}

impl Environment {
    /// Records the machine and, if given, a resolved path.
    ///
    /// # Errors
    /// Only when `/proc` itself cannot be read; every other unknown is `None`.
    pub fn capture(roots: &Roots, target: Option<&Resolved>) -> Result<Self> {
        Ok(Self {
            kernel: host::kernel(roots),
            cpu: host::cpu(roots),
            memory: memory(roots)?,
            virtualisation: host::virtualisation(roots),
            target: target.map(|resolved| TargetRecord::capture(roots, resolved)),
        })
    }
}

/// What sysfs, udev and their own identify data tell of block devices by kernel name, in that order.
///
/// # Errors
/// When the mount table cannot be read (it is needed for loop devices).
pub fn device_records(roots: &Roots, names: &[String]) -> Result<Vec<DeviceRecord>> {
    let stack = super::resolve::device_stack(roots, names.to_vec())?;
    let records = names.iter().filter_map(|name| stack.device(name));
    Ok(records.map(|found| device::record(roots, found)).collect())
}

impl TargetRecord {
    fn capture(roots: &Roots, resolved: &Resolved) -> Self {
        let (devices, top, no_device) = match &resolved.backing {
            Backing::Devices(stack) => (
                stack
                    .devices
                    .iter()
                    .map(|device| device::record(roots, device))
                    .collect(),
                stack.top.clone(),
                None,
            ),
            Backing::None { reason, .. } => (Vec::new(), Vec::new(), Some(reason.clone())),
        };
        Self {
            path: resolved.path.clone(),
            kind: resolved.kind,
            mount: resolved.mount.clone(),
            filesystem: filesystem::record(roots, resolved),
            devices,
            top,
            no_device,
        }
    }
}

#[cfg(test)]
#[path = "../tests/environment.rs"]
mod tests;

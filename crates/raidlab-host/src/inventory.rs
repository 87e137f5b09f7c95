//! Every block device of the machine: what it is, by what it is known again, and whose it is.
use crate::error::{HostError, Result};
use crate::identity::{Identity, serial_of};
use crate::loops::Shown;
use crate::ownership::Witnesses;
use raidlab_io::observe::environment::device_records;
use raidlab_io::observe::safety::family_above;
use raidlab_io::observe::stack::DeviceKind;
use raidlab_io::observe::{DeviceNumber, Roots};
use serde::Serialize;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// One device of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    /// Its node.
    pub path: PathBuf,
    /// By what it is known again.
    pub identity: Identity,
    /// Disk, partition, loop, md ...
    pub kind: DeviceKind,
    /// Its maker's name for it.
    pub model: Option<String>,
    /// World-wide name.
    pub wwn: Option<String>,
    /// Names that stay: the links in `/dev/disk/by-id` and `by-partuuid`, the world-wide name, a loop device's file.
    /// The first is the best.
    pub ids: Vec<String>,
    /// Kernel names of the devices directly below.
    pub below: Vec<String>,
    /// Kernel names of what is on it: partitions and arrays.
    pub above: Vec<String>,
    /// What the two witnesses say.
    pub witnesses: Witnesses,
}

/// All block devices that have a medium, by kernel name. Loop devices without a file are left out.
///
/// # Errors
/// When the mount table cannot be read.
pub fn inventory(roots: &Roots) -> Result<Vec<Device>> {
    let names: Vec<String> = roots
        .block_names()
        .into_iter()
        .filter(|name| has_medium(roots, name))
        .collect();
    names.iter().map(|name| look_at(roots, name)).collect()
}

fn has_medium(roots: &Roots, name: &str) -> bool {
    let size = fs::read_to_string(roots.block(name).join("size"));
    size.is_ok_and(|text| text.trim() != "0")
}

/// The device of a node, however it is called.
///
/// # Errors
/// When the path is no block device that the kernel knows.
pub fn device_at(roots: &Roots, path: &Path) -> Result<Device> {
    let found = fs::metadata(path).map_err(HostError::call("inspect", path))?;
    if !found.file_type().is_block_device() {
        let text = format!("{} is no block device", path.display());
        return Err(HostError::BadRequest(text));
    }
    let number = DeviceNumber::from_raw(found.rdev());
    let unknown = || {
        let text = format!(
            "{}: the kernel knows no device {number}: a stale node",
            path.display()
        );
        HostError::BadRequest(text)
    };
    let name = roots.block_by_number(number).ok_or_else(unknown)?;
    look_at(roots, &name)
}

/// A device by kernel name.
///
/// # Errors
/// When the kernel knows none, or the mount table cannot be read.
pub fn look_at(roots: &Roots, name: &str) -> Result<Device> {
    let mut records = device_records(roots, &[name.to_owned()])?;
    let record = records.pop().ok_or_else(|| {
        HostError::Unexpected(format!("the kernel no longer knows a device {name}"))
    })?;
    let path = roots.dev.join(name.replace('!', "/"));
    let number = record
        .number
        .ok_or_else(|| HostError::Unexpected(format!("{name} has no device number")))?;
    let shown = match &record.kind {
        DeviceKind::Loop { .. } => shown_by(&path),
        _ => None,
    };
    let mut above = family_above(roots, name);
    above.retain(|other| other != name);
    let mut ids = links_to(roots, number);
    ids.extend(record.wwid.clone());
    if let Some(shown) = &shown {
        ids.push(format!("loop:{}", shown.file.path.display()));
    }
    Ok(Device {
        identity: Identity {
            name: name.to_owned(),
            number,
            size: record.size.unwrap_or(0),
            serial: serial_of(roots, &record, shown.as_ref()),
            backing: shown.map(|shown| shown.file),
        },
        path,
        model: record.model.clone(),
        wwn: record.wwid.clone(),
        ids,
        below: record.below.clone(),
        above,
        kind: record.kind,
        witnesses: Witnesses::ask(roots, name)?,
    })
}

fn shown_by(path: &Path) -> Option<Shown> {
    let file = raidlab_io::observe::safety::open_for_reading(path).ok()?;
    crate::loops::shown_by(&file).ok()
}

/// Names of the links below `/dev/disk` that mean this device, the best first: what tells make, model and serial
/// number, then world-wide names, then partition ids.
fn links_to(roots: &Roots, number: DeviceNumber) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (rank, folder) in ["by-id", "by-partuuid"].into_iter().enumerate() {
        let Ok(entries) = fs::read_dir(roots.dev.join("disk").join(folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let node = fs::metadata(entry.path());
            let same = node.is_ok_and(|node| DeviceNumber::from_raw(node.rdev()) == number);
            if let (true, Ok(name)) = (same, entry.file_name().into_string()) {
                let plain_number = name.starts_with("wwn-") || name.starts_with("nvme-eui.");
                found.push((2 * rank + usize::from(plain_number), name));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_tells_make_and_serial_number_is_the_first_of_the_names() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(tree.path());
        let links = [
            ("by-id", "wwn-0x5000c500a0b1c2d3", "/dev/null"),
            ("by-id", "nvme-eui.0025385b", "/dev/null"),
            ("by-id", "zzz-MAKE_5ND0ABCD", "/dev/null"),
            ("by-id", "ata-MAKE_of_another", "/dev/zero"),
            ("by-partuuid", "0f8fad5b-d9cb", "/dev/null"),
            ("by-path", "pci-0000:00:1f.2-ata-1", "/dev/null"),
        ];
        for (folder, name, node) in links {
            let folder = roots.dev.join("disk").join(folder);
            fs::create_dir_all(&folder).expect("made");
            symlink(node, folder.join(name)).expect("linked");
        }
        // Any node has a number.
        let number = DeviceNumber { major: 1, minor: 3 };
        let named = [
            "zzz-MAKE_5ND0ABCD",
            "nvme-eui.0025385b",
            "wwn-0x5000c500a0b1c2d3",
            "0f8fad5b-d9cb",
        ];
        assert_eq!(links_to(&roots, number), named);
    }
}

//! Who else may write to what a device holds, whom holding the device does not keep out.
use crate::error::Result;
use crate::identity::{Identity, record_of};
use crate::loops::{self, Shown};
use crate::patience::patiently;
use crate::sysfs;
use raidlab_core::units::SECTOR;
use raidlab_io::observe::environment::DeviceRecord;
use raidlab_io::observe::safety::{Opener, Target, open_for_reading, openers};
use raidlab_io::observe::stack::DeviceKind;
use raidlab_io::observe::{DeviceNumber, LoopShows, Roots, attached_loops, loop_path};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How long another process may have a device open: tools that look at every new one (udev) are soon done.
const LOOKED_AT: Duration = Duration::from_secs(3);

/// In words, who else has an open device: another process, or another loop device that shows the same bytes.
pub(super) fn others(roots: &Roots, file: &File, found: &Identity) -> Option<String> {
    let opener = opened_by(roots, file, found).map(|opener| format!("{opener}: end it first"));
    let twice = || {
        let other = shown_twice(roots, file, found)?;
        Some(format!(
            "{other} shows the same bytes of the same file: detach it first"
        ))
    };
    let two_ways = || {
        let other = reached_twice(roots, found)?;
        Some(format!(
            "{other} has the same serial number and size: it may be the same disk by another way, which is not held by \
             holding this one; detach one of them, or join them (multipath)"
        ))
    };
    opener.or_else(twice).or_else(two_ways)
}

/// The name of another disk that may be this one: by two cables, or two paths of a network, each disk is there twice.
fn reached_twice(roots: &Roots, found: &Identity) -> Option<String> {
    let own = disk_of(roots, found).ok()?;
    let same = |other: &DeviceRecord| {
        // Name spaces of one NVMe drive have its serial number, and names of their own.
        let other_name = own.wwid.is_some() && other.wwid.is_some() && own.wwid != other.wwid;
        other.kind == DeviceKind::Disk
            // Without a number it is a path that the kernel has joined to another device.
            && other.number.is_some_and(|number| Some(number) != own.number)
            && (other.serial.is_some() && other.serial == own.serial
                || other.wwid.is_some() && other.wwid == own.wwid)
            && other.size == own.size
            && !other_name
    };
    if own.kind != DeviceKind::Disk {
        return None;
    }
    let records = roots.block_names().into_iter();
    let mut records = records.filter_map(|name| record_of(roots, &name).ok());
    Some(records.find(same)?.name)
}

/// Another process that has a device open, the disk of a partition, or the file of a loop device, and keeps it so. Whoever
/// only reads is one, too: a copy that is being made of what is there, or a machine whose disk it is, would go on with
/// something else.
fn opened_by(roots: &Roots, file: &File, found: &Identity) -> Option<Opener> {
    let mut asked = vec![Target::Device(found.number)];
    if let Ok(disk) = disk_of(roots, found) {
        asked.extend(disk.number.map(Target::Device));
    }
    if let Some(shown) = shown_of(roots, file, found) {
        asked.push(Target::File {
            device: DeviceNumber::from_raw(shown.file.device),
            inode: shown.file.inode,
        });
    }
    let alone = || {
        openers(roots, &asked)
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    };
    patiently(LOOKED_AT, alone).err()
}

/// The same of a device that is only looked at; `None` when it cannot be.
pub(crate) fn opener_of(roots: &Roots, node: &Path) -> Option<Opener> {
    let file = open_for_reading(node).ok()?;
    let found = Identity::of_open(roots, &file, node).ok()?;
    opened_by(roots, &file, &found)
}

/// The device, or the disk that a partition is a part of.
fn disk_of(roots: &Roots, found: &Identity) -> Result<DeviceRecord> {
    let own = record_of(roots, &found.name)?;
    match own.below.first() {
        Some(disk) if own.kind == DeviceKind::Partition => record_of(roots, disk),
        _ => Ok(own),
    }
}

/// What a loop device shows, or the loop device of a partition: its driver answers for partitions as well.
fn shown_of(roots: &Roots, file: &File, found: &Identity) -> Option<Shown> {
    let disk = disk_of(roots, found).ok()?;
    let is_loop = matches!(disk.kind, DeviceKind::Loop { .. });
    is_loop.then(|| loops::shown_by(file).ok())?
}

/// The name of another loop device that shows some of the same bytes: what is mounted from it, or built on it, is on this
/// one, too.
fn shown_twice(roots: &Roots, file: &File, found: &Identity) -> Option<String> {
    let own = shown_of(roots, file, found)?;
    let its = record_of(roots, &found.name).ok()?;
    let start = own.offset + its.partition_start.unwrap_or(0);
    let own_bytes = start..start.saturating_add(found.size);
    let disk = disk_of(roots, found).ok()?.name;
    let same = |name: &String, shows: LoopShows| {
        let id = match shows {
            LoopShows::Told(told) => Some((told.device, told.inode)),
            LoopShows::File(device, inode) => Some((device, inode)),
            LoopShows::Block(_) | LoopShows::Unknown => None,
        };
        let path = || loop_path(roots, name).is_some_and(|path| path == own.file.path);
        let told = roots.block(name).join("loop");
        let offset = sysfs::number(&told.join("offset")).unwrap_or(0);
        let size = sysfs::number(&roots.block(name).join("size")).unwrap_or(0) * SECTOR;
        let apart = offset >= own_bytes.end || offset.saturating_add(size) <= own_bytes.start;
        *name != disk && !apart && (id == Some((own.file.device, own.file.inode)) || path())
    };
    let mut all = attached_loops(roots).into_iter();
    Some(all.find(|(name, shows)| same(name, *shows))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A disk in the kernel's tables.
    fn disk(roots: &Roots, name: &str, minor: u32, (serial, wwid): (&str, &str), size: u64) {
        let block = roots.block(name);
        fs::create_dir_all(block.join("device")).expect("made");
        let files = [
            ("dev", format!("8:{minor}")),
            ("size", size.to_string()),
            ("device/serial", serial.to_owned()),
            ("device/wwid", wwid.to_owned()),
        ];
        for (file, text) in files.into_iter().filter(|(_, text)| !text.is_empty()) {
            fs::write(block.join(file), text).expect("written");
        }
    }

    #[test]
    fn a_disk_that_is_reached_in_two_ways_is_told() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(tree.path());
        fs::create_dir_all(roots.proc.join("self")).expect("made");
        for file in ["self/mountinfo", "swaps", "mdstat"] {
            fs::write(roots.proc.join(file), "").expect("written");
        }
        disk(&roots, "sda", 0, ("S1", ""), 2048);
        let found = Identity {
            name: "sda".to_owned(),
            number: DeviceNumber { major: 8, minor: 0 },
            size: 1 << 20,
            serial: Some("S1".to_owned()),
            backing: None,
        };
        let others = [
            ("sdb", ("S2", ""), 2048),
            ("sdc", ("S1", ""), 4096),
            ("sdd", ("", ""), 2048),
        ];
        for (minor, (name, ids, size)) in (16..).step_by(16).zip(others) {
            disk(&roots, name, minor, ids, size);
            assert_eq!(reached_twice(&roots, &found), None, "{name}");
        }
        disk(&roots, "sde", 64, ("S1", "naa.1"), 2048);
        assert_eq!(reached_twice(&roots, &found).as_deref(), Some("sde"));
        // Two name spaces of one drive.
        disk(&roots, "sda", 0, ("S1", "naa.2"), 2048);
        assert_eq!(reached_twice(&roots, &found), None);
    }
}

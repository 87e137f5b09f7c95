//! Who else may write to what a device holds, whom holding the device does not keep out.
use crate::identity::{FileId, Identity, record_of};
use crate::loops;
use crate::patience::patiently;
use crate::sysfs;
use raidlab_core::units::SECTOR;
use raidlab_io::observe::Roots;
use raidlab_io::observe::environment::DeviceRecord;
use raidlab_io::observe::safety::{Opener, openers};
use raidlab_io::observe::stack::DeviceKind;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process may have a device open: tools that look at every new one (udev) are soon done.
const LOOKED_AT: Duration = Duration::from_secs(3);

/// In words, who else has an open device: another process, or another loop device that shows the same bytes.
pub(super) fn others(roots: &Roots, file: &File, found: &Identity) -> Option<String> {
    let opener = opened_by(roots, found).map(|opener| format!("{opener}: end it first"));
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
    let mut own = record_of(roots, &found.name).ok()?;
    if own.kind == DeviceKind::Partition {
        own = record_of(roots, own.below.first()?).ok()?;
    }
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

/// Another process that has a device open, or the disk of a partition, and keeps it so.
fn opened_by(roots: &Roots, found: &Identity) -> Option<Opener> {
    let mut numbers = vec![found.number];
    if let Ok(record) = record_of(roots, &found.name)
        && record.kind == DeviceKind::Partition
    {
        let disks = record.below.iter().map(|disk| record_of(roots, disk));
        numbers.extend(disks.filter_map(|disk| disk.ok()?.number));
    }
    let alone = || {
        openers(roots, &numbers)
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    };
    patiently(LOOKED_AT, alone).err()
}

/// The name of another loop device that shows some of the same bytes: what is mounted from it, or built on it, is on this
/// one, too. The others are not opened: a device that someone is detaching would stay for as long.
fn shown_twice(roots: &Roots, file: &File, found: &Identity) -> Option<String> {
    // The driver answers for partitions as well, which are none of the file by themselves.
    found.backing.as_ref()?;
    let own = loops::shown_by(file).ok()?;
    let own_bytes = own.offset..own.offset.saturating_add(found.size);
    let mut names = roots.block_names().into_iter();
    names.find(|name| {
        // Only a whole loop device has this.
        let told = roots.block(name).join("loop");
        let Some(path) = sysfs::text(&told.join("backing_file")) else {
            return false;
        };
        let path = Path::new(path.strip_suffix(" (deleted)").unwrap_or(&path));
        let id = FileId::of(path);
        let id = id.is_ok_and(|id| (id.device, id.inode) == (own.file.device, own.file.inode));
        let number = |file: PathBuf| sysfs::text(&file)?.parse::<u64>().ok();
        let offset = number(told.join("offset")).unwrap_or(0);
        let size = number(roots.block(name).join("size")).unwrap_or(0) * SECTOR;
        let apart = offset >= own_bytes.end || offset.saturating_add(size) <= own_bytes.start;
        *name != found.name && (id || path == own.file.path) && !apart
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_io::observe::DeviceNumber;
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

//! Who else may write to what a device holds, whom holding the device does not keep out.
use crate::identity::{FileId, Identity, record_of};
use crate::loops;
use crate::patience::patiently;
use crate::sysfs;
use raidlab_core::units::SECTOR;
use raidlab_io::observe::Roots;
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
    opener.or_else(|| {
        let other = shown_twice(roots, file, found)?;
        Some(format!(
            "{other} shows the same bytes of the same file: detach it first"
        ))
    })
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

//! By what a block device is known: not by its name, which the kernel deals out anew at every boot.
use crate::error::{HostError, Result};
use crate::loops::{self, Shown};
use crate::sysfs;
use raidlab_io::observe::cache::block_size_of;
use raidlab_io::observe::environment::{DeviceRecord, device_records};
use raidlab_io::observe::stack::DeviceKind;
use raidlab_io::observe::{DeviceNumber, Roots};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file by what it is, not by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Where it was.
    pub path: PathBuf,
    /// Device number of the file system it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

impl FileId {
    /// Of the file at a path, links not followed.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(path: &Path) -> Result<Self> {
        let found = std::fs::symlink_metadata(path).map_err(HostError::call("inspect", path))?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Of a file that is open, made at a path: whatever has its name by now.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn of_open(file: &File, path: &Path) -> Result<Self> {
        let found = file.metadata().map_err(HostError::call("inspect", path))?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Whether the file at its path is still this one.
    #[must_use]
    pub fn is_there(&self) -> bool {
        Self::of(&self.path).is_ok_and(|found| found == *self)
    }
}

/// What a device is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Kernel name when it was looked at; told, never trusted.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// Bytes.
    pub size: u64,
    /// Serial number: of the drive, of a partition that of its disk with its first sector, of a loop device its file with
    /// the first byte of it that is shown.
    pub serial: Option<String>,
    /// The file of a loop device, by the driver's own word.
    pub backing: Option<FileId>,
}

impl Identity {
    /// Of an open device: number, size and backing file come through that very descriptor, the serial number from
    /// what the kernel has under that number.
    ///
    /// # Errors
    /// When the device cannot be looked at or has gone.
    pub fn of_open(roots: &Roots, file: &File, path: &Path) -> Result<Self> {
        let found = file.metadata().map_err(HostError::call("inspect", path))?;
        let number = DeviceNumber::from_raw(found.rdev());
        let size = block_size_of(file).map_err(HostError::call("find the size of", path))?;
        let name = roots.block_by_number(number).ok_or_else(|| {
            HostError::Unexpected(format!(
                "{}: the kernel no longer knows device {number}",
                path.display()
            ))
        })?;
        let record = record_of(roots, &name)?;
        let shown = match record.kind {
            DeviceKind::Loop { .. } => loops::shown_by(file).ok(),
            _ => None,
        };
        Ok(Self {
            serial: serial_of(roots, &record, shown.as_ref()),
            name,
            number,
            size,
            backing: shown.map(|shown| shown.file),
        })
    }

    /// Of a device that cannot be opened, as one that died but is still in the kernel's tables: by these tables alone. `None`
    /// when it is not there, and for loop devices, which only their driver can tell of.
    #[must_use]
    pub(crate) fn in_tables(roots: &Roots, name: &str) -> Option<Self> {
        let record = record_of(roots, name).ok()?;
        if matches!(record.kind, DeviceKind::Loop { .. }) {
            return None;
        }
        let directory = roots.block(name);
        let number = sysfs::text(&directory.join("dev"))?;
        let (major, minor) = number.split_once(':')?;
        Some(Self {
            name: name.to_owned(),
            number: DeviceNumber {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            },
            size: sysfs::number(&directory.join("size"))? * raidlab_core::units::SECTOR,
            serial: serial_of(roots, &record, None),
            backing: None,
        })
    }

    /// Whether this is the device that was recorded, whatever it is called now: the same size and, where there is one,
    /// the same serial number; without one, the same number.
    #[must_use]
    pub fn is_same_device(&self, recorded: &Self) -> bool {
        let known = match (&self.serial, &recorded.serial) {
            (Some(own), Some(other)) => own == other,
            (None, None) => self.number == recorded.number,
            _ => false,
        };
        // The number of a file's inode is given out again when it has gone; its name then is another.
        let same_file = match (&self.backing, &recorded.backing) {
            (Some(own), Some(other)) => own.path == other.path,
            _ => true,
        };
        known && same_file && self.size == recorded.size
    }
}

/// What the kernel and udev tell of one device.
pub(crate) fn record_of(roots: &Roots, name: &str) -> Result<DeviceRecord> {
    let mut records = device_records(roots, &[name.to_owned()])?;
    records
        .pop()
        .ok_or_else(|| HostError::Unexpected(format!("the kernel no longer knows a device {name}")))
}

/// The serial number that goes into an allow-list.
pub(crate) fn serial_of(
    roots: &Roots,
    record: &DeviceRecord,
    shown: Option<&Shown>,
) -> Option<String> {
    match record.kind {
        DeviceKind::Partition => {
            let disk = record_of(roots, record.below.first()?).ok()?;
            let of_disk = disk.serial.or(disk.wwid)?;
            let start = record.partition_start? / raidlab_core::units::SECTOR;
            Some(format!("{of_disk}@{start}"))
        }
        DeviceKind::Loop { .. } => shown.map(|Shown { file, offset }| {
            let whole = format!("file-{:x}-{}", file.device, file.inode);
            match offset {
                0 => whole,
                // Another part of the same file is another device.
                _ => format!("{whole}@{offset}"),
            }
        }),
        DeviceKind::Disk => record.serial.clone().or_else(|| record.wwid.clone()),
        DeviceKind::Md { .. }
        | DeviceKind::Mapper { .. }
        | DeviceKind::Memory
        | DeviceKind::Network => None,
    }
}

//! What loop devices show. Their driver takes what it shows without holding it, and is in no list of holders: of what lies
//! on a device through one of them, the kernel tells only when the loop device is asked.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use super::roots::{self, DeviceNumber, Roots};
use super::safety::open_node;

/// linux/loop.h
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;
const LOOP_INFO64: usize = 232;

/// `struct loop_info64`, of which not all is of use.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encryption: [u32; 2],
    /// `LO_FLAGS_*`
    pub flags: u32,
    names_and_key: [u8; 64 + 64 + 32],
    init: [u64; 2],
}

const _: () = assert!(size_of::<LoopInfo>() == LOOP_INFO64);

impl LoopInfo {
    /// Nothing set.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encryption: [0; 2],
            flags: 0,
            names_and_key: [0; 64 + 64 + 32],
            init: [0; 2],
        }
    }
}

/// What a loop device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopBacking {
    /// Number of the file system that the file, or the node of the device, is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// The block device, when it is none of files: by its number, as its name may be any and may have gone.
    pub block: Option<DeviceNumber>,
    /// The first byte that is shown.
    pub offset: u64,
    /// The number of the loop device.
    pub number: u32,
}

impl LoopBacking {
    /// Of an open loop device, by the driver's own word.
    ///
    /// # Errors
    /// When it is no loop device, or shows nothing.
    pub fn of(device: &File) -> io::Result<Self> {
        let mut info = LoopInfo::empty();
        // SAFETY: LOOP_GET_STATUS64 writes one struct loop_info64 to the pointer, which is that large (asserted above) and
        // lives over the call; the descriptor is open.
        let answer = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        // The driver takes files and block devices, and no others; a file's own number is 0.
        let block = (info.rdevice != 0).then(|| DeviceNumber::from_raw(info.rdevice));
        Ok(Self {
            device: info.device,
            inode: info.inode,
            block,
            offset: info.offset,
            number: info.number,
        })
    }
}

/// What is known of what a loop device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopShows {
    /// By the driver's word.
    Told(LoopBacking),
    /// By the name that sysfs has: a block device.
    Block(DeviceNumber),
    /// By that name: a file, of this number and inode.
    File(u64, u64),
    /// Nothing can be known: the loop device may not be opened, and there is nothing of that name.
    Unknown,
}

impl LoopShows {
    /// The block device that it shows.
    #[must_use]
    pub fn block(&self) -> Option<DeviceNumber> {
        match self {
            Self::Told(told) => told.block,
            Self::Block(number) => Some(*number),
            Self::File(..) | Self::Unknown => None,
        }
    }
}

/// What sysfs says after the name of what has been removed.
const DELETED: &str = " (deleted)";

fn told_path(roots: &Roots, name: &str) -> Option<String> {
    roots::text(&roots.block(name).join("loop/backing_file"))
}

/// The name that sysfs has for what a whole loop device shows; `None` when it shows nothing, or is none.
#[must_use]
pub fn loop_path(roots: &Roots, name: &str) -> Option<PathBuf> {
    let path = told_path(roots, name)?;
    Some(PathBuf::from(path.strip_suffix(DELETED).unwrap_or(&path)))
}

/// What a loop device shows; `None` when it shows nothing, or is none. It is opened for a moment: when it is detached
/// meanwhile, it goes at the end of that.
#[must_use]
pub fn loop_shows(roots: &Roots, name: &str) -> Option<LoopShows> {
    told_path(roots, name)?;
    match open_node(roots, name).map(|device| LoopBacking::of(&device)) {
        Ok(Ok(told)) => return Some(LoopShows::Told(told)),
        // Detached since.
        Ok(Err(error)) if error.raw_os_error() == Some(libc::ENXIO) => return None,
        _ => {}
    }
    let path = told_path(roots, name)?;
    if path.ends_with(DELETED) {
        return Some(LoopShows::Unknown);
    }
    Some(match fs::metadata(&path) {
        Ok(found) if found.file_type().is_block_device() => {
            LoopShows::Block(DeviceNumber::from_raw(found.rdev()))
        }
        Ok(found) if found.is_file() => LoopShows::File(found.dev(), found.ino()),
        _ => LoopShows::Unknown,
    })
}

/// All loop devices that show something, by kernel name.
#[must_use]
pub fn attached_loops(roots: &Roots) -> Vec<(String, LoopShows)> {
    let names = roots.block_names().into_iter();
    names
        .filter_map(|name| {
            let shows = loop_shows(roots, &name)?;
            Some((name, shows))
        })
        .collect()
}

//! The one extent that block operations address: a file or a device.
use super::error::EngineError;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, ioctl_blksszget, statx};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How an extent is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentMode {
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// For writing too; without it writes are refused before they reach the kernel.
    pub write: bool,
    /// Every write durable before it ends (`O_SYNC`).
    pub sync: bool,
}

/// An open file or device.
#[derive(Debug)]
pub struct Extent {
    pub(super) file: File,
    /// Its path, for messages.
    pub path: PathBuf,
    /// How it was opened.
    pub mode: ExtentMode,
    /// Bytes that it has; for a character device as many as an offset can name.
    pub size: u64,
    /// Offsets and lengths must be multiples of this power of two.
    pub alignment: u32,
}

impl Extent {
    /// Opens an existing file or device.
    ///
    /// # Errors
    /// When it cannot be opened so, its size cannot be told, or it has no direct I/O.
    pub fn open(path: &Path, mode: ExtentMode) -> Result<Self, EngineError> {
        let file = match open(path, mode, true) {
            // Only the owner and root may ask for it.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(path, mode, false),
            other => other,
        };
        let file = match file {
            // What tmpfs, some FUSE file systems and others answer to O_DIRECT.
            Err(error) if mode.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                return Err(EngineError::NoDirect {
                    path: crate::descriptor::by_name(path),
                });
            }
            other => other.map_err(EngineError::open("open", path))?,
        };
        let size = size_of(&file).map_err(EngineError::open("find the size of", path))?;
        let alignment = if mode.direct {
            direct_alignment(&file).ok_or_else(|| EngineError::NoDirect {
                path: crate::descriptor::by_name(path),
            })?
        } else {
            1
        };
        Ok(Self {
            file,
            path: crate::descriptor::by_name(path),
            mode,
            size,
            alignment,
        })
    }

    /// Whether an operation's offset and length may be asked of it.
    #[inline]
    pub(super) fn is_aligned(&self, offset: u64, len: u32) -> bool {
        (offset | u64::from(len)) & u64::from(self.alignment - 1) == 0
    }
}

/// Without `O_NOATIME` each read looks whether the time of the last access is to be updated, and one
/// a day writes it: neither belongs to the storage. (fio and t/io_uring open so, too.)
fn open(path: &Path, mode: ExtentMode, no_access_time: bool) -> io::Result<File> {
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, mode.direct);
    flags.set(OFlags::SYNC, mode.sync);
    flags.set(OFlags::NOATIME, no_access_time);
    std::fs::OpenOptions::new()
        .read(true)
        .write(mode.write)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Length of a file, or where a block device ends.
pub(crate) fn size_of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_block_device() {
        Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?)
    } else if kind.is_char_device() {
        Ok(i64::MAX as u64)
    } else {
        Ok(metadata.len())
    }
}

/// The multiple that direct I/O wants of offsets and lengths; `None` when there is no direct I/O.
fn direct_alignment(file: &File) -> Option<u32> {
    if let Ok(sector) = ioctl_blksszget(file) {
        return Some(sector);
    }
    let known = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|found| found.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    match known {
        Some(found) if found.stx_dio_offset_align == 0 => None,
        // Buffers are page-aligned; nothing in use asks for more.
        Some(found) => Some(found.stx_dio_offset_align.next_power_of_two()),
        // Before Linux 6.1, or a file system that does not tell: a block of any file system in use.
        None => Some(4096),
    }
}

/// The multiple that direct I/O will want of offsets and lengths in a place, before anything is begun there: of a file, a
/// device, or a file that is made in a directory. That is tried with one that has no name and goes when it is closed.
/// `None` where nobody can tell yet: files without names cannot be made there, say, or there is no direct I/O.
#[must_use]
pub fn direct_alignment_at(path: &Path) -> Option<u32> {
    let directory = path.is_dir();
    let (kind, how) = match directory {
        true => (OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR | Mode::WUSR),
        false => (OFlags::RDONLY, Mode::empty()),
    };
    let flags = kind | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, how).ok()?);
    direct_alignment(&file)
}

/// Opens a directory for `openat` and its kin.
pub(super) fn open_directory(path: &Path) -> Result<rustix::fd::OwnedFd, EngineError> {
    rustix::fs::open(
        path,
        OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(EngineError::open("open", path))
}

//! Loop devices of raidlab's own: files that it made, shown as disks.
use crate::claim::Own;
use crate::error::{HostError, Result};
use crate::identity::FileId;
use crate::journal::{Journal, Undo};
use raidlab_io::observe::{LoopBacking, LoopInfo, Roots, loop_path, privilege};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// linux/loop.h
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const LOOP_CLR_FD: libc::Ioctl = 0x4c01;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LO_FLAGS_PARTSCAN: u32 = 8;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// The file that a loop device shows, by the driver's own word: a name could be another file's by now.
///
/// # Errors
/// When it is no loop device, or shows no file.
pub(crate) fn backing_of(device: &File) -> std::io::Result<FileId> {
    Ok(shown_by(device)?.file)
}

/// What a loop device shows.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Of this file,
    pub(crate) file: FileId,
    /// from this byte on.
    pub(crate) offset: u64,
}

/// The part of a file that a loop device shows, by the driver's own word.
///
/// # Errors
/// As [`backing_of`].
pub(crate) fn shown_by(device: &File) -> std::io::Result<Shown> {
    let told = LoopBacking::of(device)?;
    // The driver keeps but 63 bytes of a name; sysfs has all of it.
    let path = loop_path(&Roots::system(), &format!("loop{}", told.number)).unwrap_or_default();
    Ok(Shown {
        file: FileId {
            path,
            device: told.device,
            inode: told.inode,
        },
        offset: told.offset,
    })
}

/// Takes the file from a loop device. It is gone when its last user is.
pub(crate) fn detach(device: &File) -> std::io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument; the descriptor is open.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Shows a file as a block device; past the page cache of the file where its file system can do that.
fn attach(file: &File) -> std::io::Result<PathBuf> {
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/loop-control")?;
    // It may have partitions, as a disk may.
    let mut flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_PARTSCAN;
    // Another process may take the free number first; a hundred times it will not.
    for _ in 0..100 {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument; the descriptor is open.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        let mut config = LoopConfig {
            fd: file.as_raw_fd().cast_unsigned(),
            block_size: 0,
            info: LoopInfo::empty(),
            reserved: [0; 8],
        };
        config.info.flags = flags;
        // SAFETY: LOOP_CONFIGURE reads one struct loop_config, laid out as in linux/loop.h, which lives over the call;
        // both descriptors are open.
        let answer = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        if answer == 0 {
            return Ok(path);
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EBUSY) => {}
            Some(libc::EINVAL) if flags & LO_FLAGS_DIRECT_IO != 0 => flags = LO_FLAGS_PARTSCAN,
            _ => return Err(error),
        }
    }
    Err(std::io::Error::from_raw_os_error(libc::EBUSY))
}

/// A disk that raidlab made: a file of its own, shown as a block device. What undoes it is in the journal.
#[derive(Debug)]
pub struct LoopDisk {
    path: PathBuf,
    file: FileId,
}

impl LoopDisk {
    /// The block device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The proof, for a claim, that the device is raidlab's own.
    #[must_use]
    pub fn own(&self) -> Own {
        Own::of_loop_file(self.file.clone())
    }
}

/// The directory that loop files are to be made in, by its full path: what is written down of them is read again by whoever
/// cleans up, from a directory of its own.
///
/// # Errors
/// [`HostError::BadRequest`] when it is none; when it cannot be looked at.
pub fn place(parent: &Path) -> Result<PathBuf> {
    let wrong = |why: String| Err(HostError::BadRequest(why));
    match parent.canonicalize() {
        Ok(whole) if whole.is_dir() => Ok(whole),
        Ok(_) => wrong(format!("{} is no directory", parent.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            wrong(format!("there is no directory {}", parent.display()))
        }
        Err(error) => Err(HostError::call("find", parent)(error)),
    }
}

/// Makes `count` disks of `size` bytes in a new directory inside `parent`.
///
/// # Errors
/// As [`place`]; when there is no room, or the kernel gives no loop device.
pub fn make_disks(
    parent: &Path,
    count: usize,
    size: u64,
    journal: &mut Journal,
) -> Result<Vec<LoopDisk>> {
    let whole = place(parent)?;
    let free = raidlab_io::observe::environment::space_at(&whole)?.available;
    let wanted = size.saturating_mul(count as u64);
    if wanted > free {
        let units = raidlab_core::units::Bytes;
        return Err(HostError::missing(
            format!(
                "there is no room for {} of {} ({}): {} has {} free",
                raidlab_core::words::count(count, "loop file"),
                units(size),
                units(wanted),
                parent.display(),
                units(free)
            ),
            "give a smaller --loop-size, or another --loop-dir",
        ));
    }
    let directory = whole.join(format!("raidlab-loop-{}", journal.id()));
    let step = journal.intend(
        "make a directory for loop files",
        &[Undo::NewDirectory(directory.clone())],
    )?;
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .map_err(HostError::call("make", &directory))?;
    journal.done_with(step, &[Undo::Directory(FileId::of(&directory)?)])?;
    (0..count)
        .map(|number| make_disk(&directory.join(format!("disk{number}")), size, journal))
        .collect()
}

/// All of its space where the file system can do that; where it cannot, the file is sparse.
fn give_size(file: &File, size: u64) -> std::io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(size),
        other => Ok(other?),
    }
}

fn make_disk(path: &Path, size: u64, journal: &mut Journal) -> Result<LoopDisk> {
    let step = journal.intend("make a loop file", &[Undo::NewFile(path.to_owned())])?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(HostError::call("make", path))?;
    let id = FileId::of_open(&file, path)?;
    journal.done_with(step, &[Undo::File(id.clone())])?;
    // All of its space now: a sparse file would make writes slower, and fail in the middle of a trial.
    give_size(&file, size).map_err(HostError::call("give its size to", path))?;
    let step = journal.intend("show it as a block device", &[Undo::LoopDevice(id.clone())])?;
    let device = attach(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => HostError::missing(
            format!("loop devices may not be made: {error}"),
            privilege::remedy(privilege::is_root(), "run as root"),
        ),
        std::io::ErrorKind::NotFound => HostError::missing(
            "this kernel has no loop devices (/dev/loop-control is missing)",
            "load the module: modprobe loop",
        ),
        _ => HostError::call("make a loop device for", path)(error),
    })?;
    journal.done(step)?;
    Ok(LoopDisk {
        path: device,
        file: id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_space_is_refused() {
        // A file system in memory refuses more than it may ever hold at once, without taking any of it.
        let shm = Path::new("/dev/shm");
        let Ok(file) = tempfile::tempfile_in(shm) else {
            return;
        };
        let found = rustix::fs::statvfs(shm).expect("a file system");
        let most = found.f_blocks * found.f_frsize;
        give_size(&file, 4096).expect("a page");
        if most > 0 {
            let error = give_size(&file, 2 * most).expect_err("twice of what it can hold");
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        }
    }
}

//! Emptying the page cache of one file or device, and proving it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};
use super::roots::Roots;

/// A file counts as cold below this residency: less than a page in a thousand cannot move a rate by a per cent.
pub const COLD_RESIDENCY: f64 = 0.001;

/// How the cache was emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictionMethod {
    /// `fsync` and `posix_fadvise(POSIX_FADV_DONTNEED)` on a file.
    Advise,
    /// `BLKFLSBUF` on a block device.
    FlushBuffers,
    /// `sync` and `/proc/sys/vm/drop_caches`: the whole machine.
    DropCaches,
}

/// Evidence that a cache was emptied. Caches below the kernel (drive, controller, host of a virtual machine, backing
/// file of a loop device) cannot be seen from here and are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    /// How.
    pub method: EvictionMethod,
    /// Fraction of the pages in memory before, 0 to 1; `None` when it could not be asked.
    pub resident_before: Option<f64>,
    /// Fraction after.
    pub resident_after: Option<f64>,
    /// Whether it is known to be cold now: residency after is below 0.1 %.
    pub proved: bool,
}

impl Eviction {
    fn new(method: EvictionMethod, before: Option<f64>, after: Option<f64>) -> Self {
        Self {
            method,
            resident_before: before,
            resident_after: after,
            proved: after.is_some_and(|after| after < COLD_RESIDENCY),
        }
    }
}

/// Writes a file's dirty pages and takes it out of the page cache, or flushes a block device's buffers.
///
/// On tmpfs the pages *are* the file: nothing can be evicted and `proved` stays false.
///
/// # Errors
/// When it cannot be opened or synced, or `BLKFLSBUF` is refused (it takes root).
pub fn evict(path: &Path) -> Result<Eviction> {
    let (file, is_device) = open(path)?;
    let before = residency_of(&file).ok();
    file.sync_all().map_err(ObserveError::call("sync", path))?;
    let method = if is_device {
        flush_buffers(&file).map_err(ObserveError::call("flush the buffers of", path))?;
        EvictionMethod::FlushBuffers
    } else {
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(ObserveError::call("evict from the page cache", path))?;
        EvictionMethod::Advise
    };
    let mut after = residency_of(&file).ok();
    if method == EvictionMethod::Advise && after.is_some_and(|after| after >= COLD_RESIDENCY) {
        // Pages that sat in a per-CPU batch at the first call are skipped by it; the kernel drains the batches only
        // when it notices (mm/fadvise.c), so one repetition is part of the method.
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(ObserveError::call("evict from the page cache", path))?;
        after = residency_of(&file).ok();
    }
    Ok(Eviction::new(method, before, after))
}

/// Writes back everything and drops all clean pages, dentries and inodes of the machine. Only for `--allow-global`:
/// it slows every other program down. `prove` is the file or device that must be cold then.
///
/// # Errors
/// When `/proc/sys/vm/drop_caches` cannot be written (it takes root) or `prove` cannot be opened.
pub fn drop_global(roots: &Roots, prove: &Path) -> Result<Eviction> {
    let before = residency(prove).ok();
    rustix::fs::sync();
    let control = roots.proc.join("sys/vm/drop_caches");
    std::fs::write(&control, "3\n").map_err(ObserveError::call("write to", &control))?;
    let after = residency(prove)?;
    Ok(Eviction::new(
        EvictionMethod::DropCaches,
        before,
        Some(after),
    ))
}

/// Fraction of a file's or device's pages that are in the page cache, 0 to 1; an empty file has 0. Of a device that
/// nobody holds open nothing is: the kernel drops its pages at the last close. Of a file that is neither owned nor
/// writable by the caller `mincore` shows all pages as resident, which errs towards "not proved".
///
/// # Errors
/// When it cannot be opened, sized or asked.
pub fn residency(path: &Path) -> Result<f64> {
    let (file, _) = open(path)?;
    residency_of(&file).map_err(ObserveError::call("ask for the cached pages of", path))
}

/// Opens what has pages of its own; tells whether it is a block device.
fn open(path: &Path) -> Result<(File, bool)> {
    let file = File::options()
        .read(true)
        // A pipe without a writer would keep the open waiting; it has no effect on what is meant to be opened.
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(ObserveError::call("open", path))?;
    let kind = file
        .metadata()
        .map_err(ObserveError::call("inspect", path))?
        .file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(ObserveError::WrongKind {
            path: path.to_owned(),
            expected: "a regular file or a block device",
        });
    }
    Ok((file, kind.is_block_device()))
}

/// Fraction of an open file's pages in the page cache: by `cachestat(2)` (Linux 6.5), else by `mincore(2)`.
///
/// # Errors
/// As the system says.
pub fn residency_of(file: &File) -> io::Result<f64> {
    let length = length_of(file)?;
    if length == 0 {
        return Ok(0.0);
    }
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let pages = length.div_ceil(page);
    let resident = match cachestat(file, length) {
        Ok(resident) => resident,
        // Missing (ENOSYS), not offered for hugetlbfs (EOPNOTSUPP), forbidden by a sandbox (EPERM).
        Err(_) => mincore(file, length)?,
    };
    Ok((resident as f64 / pages as f64).min(1.0))
}

fn length_of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        return block_size_of(file);
    }
    Ok(metadata.size())
}

/// Size of an open block device in bytes: where its end is.
///
/// # Errors
/// When it cannot be sought in.
pub fn block_size_of(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?)
}

#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, linux/mman.h; all but `cached` are of no use here.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat(file: &File, length: u64) -> io::Result<u64> {
    // The number is 451 on every architecture (the unified range of new calls).
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = CachestatRange { offset: 0, length };
    let mut result = Cachestat::default();
    // SAFETY: both structures have the kernel's layout and live over the call; the descriptor is open.
    let answer = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut result,
            0u32,
        )
    };
    if answer == 0 {
        Ok(result.cached)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Bytes mapped at a time: the mapping is of address space only, the vector is one byte a page.
const WINDOW: u64 = 1 << 30;

fn mincore(file: &File, length: u64) -> io::Result<u64> {
    let mut resident = 0;
    let mut offset = 0;
    while offset < length {
        let window = WINDOW.min(length - offset);
        resident += mincore_window(file, offset, window)?;
        offset += window;
    }
    Ok(resident)
}

fn mincore_window(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let size = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut vector = vec![0u8; size.div_ceil(rustix::param::page_size())];
    // SAFETY: a new mapping at an address of the kernel's choice, never dereferenced, unmapped below.
    let address = unsafe {
        mmap(
            std::ptr::null_mut(),
            size,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            offset,
        )
    }?;
    // SAFETY: the range is the mapping just made, and the vector has one byte for each of its pages.
    let answer = unsafe { libc::mincore(address, size, vector.as_mut_ptr()) };
    let failure = (answer != 0).then(io::Error::last_os_error);
    // SAFETY: exactly the mapping made above; nothing points into it.
    unsafe { munmap(address, size) }?;
    match failure {
        Some(error) => Err(error),
        None => Ok(vector.iter().map(|page| u64::from(page & 1)).sum()),
    }
}

fn flush_buffers(device: &File) -> io::Result<()> {
    // BLKFLSBUF, linux/fs.h: _IO(0x12, 97).
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: BLKFLSBUF takes no argument; the descriptor is open.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF, 0) };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
#[path = "tests/cache.rs"]
mod tests;

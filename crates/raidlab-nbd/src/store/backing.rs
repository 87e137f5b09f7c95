//! A sparse file.
use super::StoreError;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Content in a file, which has holes where nothing was written.
#[derive(Debug)]
pub struct Backing {
    file: File,
    /// Holes can be made.
    punches: bool,
}

/// A program that another thread is just starting has the file, too, and with it the lock.
impl Drop for Backing {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }
}

impl Backing {
    /// Opens or makes a file of this size. What it holds is kept.
    ///
    /// # Errors
    /// A file that is in use by another server, is no regular file, or is of another size: it would
    /// be some other disk's.
    pub fn open(path: &Path, size: u64) -> std::io::Result<Self> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
        }
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        if rustix::fs::flock(&file, lock).is_err() {
            let text = "another process holds its lock";
            return Err(Error::new(ErrorKind::ResourceBusy, text));
        }
        match found.len() {
            0 => file.set_len(size)?,
            len if len == size => {}
            len => {
                let text = format!("it has {len} bytes, but the disk has {size}");
                return Err(Error::new(ErrorKind::InvalidInput, text));
            }
        }
        let punches = true;
        Ok(Self { file, punches })
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        Ok(self.file.read_exact_at(buffer, offset)?)
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        Ok(self.file.write_all_at(data, offset)?)
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) -> Result<(), StoreError> {
        // The kernel knows no hole of no length (EINVAL).
        if self.punches && len > 0 {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(&self.file, flags, offset, len) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::OPNOTSUPP) => self.punches = false,
                Err(error) => return Err(StoreError::Io(error.into())),
            }
        }
        let zeroes = vec![0; (len as usize).min(1 << 20)];
        let mut left = len;
        while left > 0 {
            let n = left.min(zeroes.len() as u64);
            self.write(offset + (len - left), &zeroes[..n as usize])?;
            left -= n;
        }
        Ok(())
    }

    pub(super) fn used(&self) -> u64 {
        self.file.metadata().map_or(0, |found| found.blocks() * 512)
    }
}

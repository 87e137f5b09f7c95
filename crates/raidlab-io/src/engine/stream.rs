//! Single characters by the C library: what `putc` and `getc` cost, one library call a byte and one
//! system call a buffer (4096 bytes with glibc).
//!
//! The calls are those without a lock. bonnie is one thread, and for such a process the C library
//! leaves the lock out; here jobs are threads, and with the lock a byte would cost several times as
//! much as it does there.
use raidlab_core::target::Errno;
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

unsafe extern "C" {
    /// POSIX.1-2001 `putc_unlocked`, as a function.
    fn putc_unlocked(byte: c_int, stream: *mut libc::FILE) -> c_int;
    /// POSIX.1-2001 `getc_unlocked`, as a function.
    fn getc_unlocked(stream: *mut libc::FILE) -> c_int;
}

/// A stream of the C library on a duplicate of a file's descriptor.
#[derive(Debug)]
pub(super) struct Stream {
    file: *mut libc::FILE,
    position: u64,
    writing: bool,
}

impl Stream {
    /// A stream on `file`, for writing (and reading) or for reading.
    pub(super) fn open(file: &File, writable: bool) -> Result<Self, Errno> {
        let duplicate = file.try_clone().map_err(|error| errno(&error))?;
        let mode = if writable { c"r+" } else { c"r" };
        // SAFETY: the descriptor is open and its ownership passes to the stream.
        let stream = unsafe { libc::fdopen(duplicate.as_raw_fd(), mode.as_ptr()) };
        if stream.is_null() {
            return Err(last());
        }
        let _ = duplicate.into_raw_fd();
        // The duplicate shares the file's position, which one-byte calls may have moved.
        let mut stream = Self {
            file: stream,
            position: u64::MAX,
            writing: false,
        };
        stream.seek(0, false)?;
        Ok(stream)
    }

    fn seek(&mut self, offset: u64, writing: bool) -> Result<(), Errno> {
        let offset_c = libc::off_t::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
        // SAFETY: the stream is open. Seeking flushes it and allows the change of direction.
        if unsafe { libc::fseeko(self.file, offset_c, libc::SEEK_SET) } != 0 {
            return Err(last());
        }
        self.position = offset;
        self.writing = writing;
        Ok(())
    }

    /// Writes each of `bytes` by `putc`.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        if self.position != offset || !self.writing {
            self.seek(offset, true)?;
        }
        for &byte in bytes {
            // SAFETY: the stream is open, and used by this thread alone.
            if unsafe { putc_unlocked(c_int::from(byte), self.file) } == libc::EOF {
                return Err(last());
            }
        }
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Reads into each of `bytes` by `getc`; the number read, less at the end of the file.
    pub(super) fn get(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        if self.position != offset || self.writing {
            self.seek(offset, false)?;
        }
        for (read, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: the stream is open, and used by this thread alone.
            let got = unsafe { getc_unlocked(self.file) };
            if got == libc::EOF {
                // SAFETY: likewise.
                if unsafe { libc::ferror(self.file) } != 0 {
                    return Err(last());
                }
                self.position += read as u64;
                return Ok(read);
            }
            *byte = got as u8;
        }
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Hands what is buffered to the kernel.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.file) } == 0 {
            Ok(())
        } else {
            Err(last())
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: open until here. Errors were reported by `flush`, which every close and sync calls.
        unsafe { libc::fclose(self.file) };
    }
}

/// The error number of an error of the system.
pub(super) fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// The error number of the last failed call.
pub(super) fn last() -> Errno {
    errno(&io::Error::last_os_error())
}

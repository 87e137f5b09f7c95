//! Page-aligned memory that the kernel may write into until an operation has ended.
use super::error::EngineError;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;

/// The unit buffers are laid out in; at least the memory alignment of any direct I/O.
pub(super) const PAGE: usize = 4096;

/// An anonymous mapping, populated, so that no page fault falls into a measurement.
#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut u8,
    len: usize,
}

impl Mapping {
    /// Maps at least `len` bytes, zeroed.
    pub(super) fn new(len: usize) -> Result<Self, EngineError> {
        let len = len.max(1).next_multiple_of(PAGE);
        let error = |source: rustix::io::Errno| EngineError::Memory {
            bytes: len as u64,
            source: source.into(),
        };
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(error)?;
        let mapping = Self {
            start: start.cast(),
            len,
        };
        // Fewer, larger pages make importing a registered buffer cheaper; without them it works too.
        // SAFETY: exactly the mapping made above; both pieces of advice leave its content alone.
        unsafe {
            let _ = madvise(start, len, Advice::LinuxHugepage);
            if madvise(start, len, Advice::LinuxPopulateWrite).is_err() {
                // Before Linux 5.14: touch each page.
                std::ptr::write_bytes(start.cast::<u8>(), 0, len);
            }
        }
        Ok(mapping)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The address of byte `at`, from which `len` bytes must lie within.
    #[inline]
    pub(super) fn at(&self, at: usize, len: usize) -> *mut u8 {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: within the mapping by the assertion.
        unsafe { self.start.add(at) }
    }

    /// Gives the memory up for good, unmapping nothing: for buffers that the kernel may still write
    /// into when a device never answered.
    pub(super) fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; owners drop it when no operation uses it.
        let _ = unsafe { munmap(self.start.cast::<c_void>(), self.len) };
    }
}

//! What the two queues of a ring hold, and loops over them.
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// An entry of the submission queue as the kernel reads it (`struct io_uring_sqe`).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) opcode: u8,
    pub(super) flags: u8,
    pub(super) priority: u16,
    pub(super) fd: RawFd,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) op_flags: u32,
    pub(super) user_data: u64,
    /// Of the registered buffer.
    pub(super) buffer: u16,
    pub(super) personality: u16,
    pub(super) other_fd: u32,
    pub(super) rest: [u64; 2],
}

const _: () = assert!(size_of::<Entry>() == 64);

/// An entry of the completion queue (`struct io_uring_cqe`).
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Ended {
    pub(super) user_data: u64,
    /// Bytes moved, or the error number negated.
    pub(super) result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Ended>() == 16);

/// The rest of the submission queue. The entries are queued when this is dropped.
///
/// This and [`AllEnded`] hold what they need by themselves, so that a loop over them has it in
/// registers.
pub(super) struct Filling<'a> {
    /// A power of two of them, as many as `mask` + 1.
    pub(super) entries: *mut Entry,
    pub(super) mask: u32,
    /// One beyond the last place that is free.
    pub(super) end: u32,
    pub(super) tail: u32,
    /// Where `tail` is kept.
    pub(super) queued: &'a mut u32,
}

impl Filling<'_> {
    /// Adds an entry; false when there is no room.
    ///
    /// # Safety
    /// What the entry refers to must live until the kernel has reported its end.
    #[inline(always)]
    #[must_use]
    pub(super) unsafe fn push(&mut self, entry: Entry) -> bool {
        if self.tail == self.end {
            return false;
        }
        // SAFETY: masked, so within the entries; the kernel reads only those before the tail that
        // `enter` gives it, and this one is not among them.
        unsafe {
            let place = self.entries.add((self.tail & self.mask) as usize);
            place.write(entry);
        }
        self.tail = self.tail.wrapping_add(1);
        true
    }
}

impl Drop for Filling<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.queued = self.tail;
    }
}

/// What has ended. It is taken when this is dropped.
pub(super) struct AllEnded<'a> {
    /// A power of two of them, as many as `mask` + 1; the kernel has filled in those before `tail`.
    pub(super) ended: *const Ended,
    pub(super) mask: u32,
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Where the kernel looks for `head`.
    pub(super) seen: &'a AtomicU32,
}

impl Iterator for AllEnded<'_> {
    type Item = Ended;

    #[inline(always)]
    fn next(&mut self) -> Option<Ended> {
        if self.head == self.tail {
            return None;
        }
        let place = (self.head & self.mask) as usize;
        self.head = self.head.wrapping_add(1);
        // SAFETY: masked, so within the queue; the kernel has filled in what is before the tail.
        Some(unsafe { self.ended.add(place).read() })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.tail.wrapping_sub(self.head) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for AllEnded<'_> {}

impl Drop for AllEnded<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.seen.store(self.head, Ordering::Release);
    }
}

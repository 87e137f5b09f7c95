//! The two queues that a ring shares with the kernel, without anything between them and the engine:
//! at a few million operations a second each instruction an operation shows.
use super::super::error::EngineError;
use super::queues::{AllEnded, Ended, Entry, Filling};
use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringRegisterOp,
    IoringSetupFlags, Timespec, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_params, io_uring_ptr, io_uring_register, io_uring_rsrc_update, io_uring_setup,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Pages shared with the kernel.
struct Shared {
    start: *mut u8,
    len: usize,
}

impl Shared {
    fn new(fd: &OwnedFd, len: usize, what: u64) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, fd, what) }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// The address of byte `at`, where the kernel says that `T`s are.
    fn at<T>(&self, at: u32) -> *mut T {
        assert!(at as usize + size_of::<T>() <= self.len);
        // SAFETY: within the mapping by the assertion.
        unsafe { self.start.add(at as usize) }.cast()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, which nothing refers to any more.
        let _ = unsafe { munmap(self.start.cast::<c_void>(), self.len) };
    }
}

/// A ring: what is queued for the kernel, and what the kernel says has ended.
pub(super) struct Rings {
    // Kept mapped for `at`.
    _queues: Shared,
    _entries: Shared,
    fd: OwnedFd,
    /// The number it is registered with: the kernel then need not look up the descriptor.
    pub(super) registered: Option<u32>,
    /// Completions are worked off by the waiting thread alone.
    pub(super) deferred: bool,
    at: Addresses,
    /// Places in the submission queue less one; a power of two less one, as the next.
    mask: u32,
    ended_mask: u32,
    /// The kernel has taken the entries before this one.
    head: u32,
    /// The entries before this one are filled in.
    tail: u32,
}

/// Within the shared pages.
struct Addresses {
    entries: *mut Entry,
    /// One beyond the last entry that the kernel may take.
    tail: *const AtomicU32,
    /// One beyond the last completion that was seen, and that there is.
    ended_head: *const AtomicU32,
    ended_tail: *const AtomicU32,
    ended: *const Ended,
}

/// Sets of options, the best first; whether completions are deferred.
const LEVELS: [(IoringSetupFlags, bool); 4] = {
    use IoringSetupFlags as Flags;
    let deferred = Flags::SINGLE_ISSUER
        .union(Flags::DEFER_TASKRUN)
        .union(Flags::SUBMIT_ALL);
    [
        // Linux 6.6
        (deferred.union(Flags::NO_SQARRAY), true),
        // Linux 6.1
        (deferred, true),
        // Linux 5.19
        (Flags::COOP_TASKRUN.union(Flags::SUBMIT_ALL), false),
        (Flags::empty(), false),
    ]
};

impl Rings {
    /// For `depth` operations by the best set of options this kernel has.
    pub(super) fn build(depth: u32) -> Result<Self, EngineError> {
        let no_uring = |source: Errno| EngineError::NoUring {
            source: source.into(),
        };
        let mut last = Errno::NOSYS;
        for (flags, deferred) in LEVELS {
            let mut parameters = io_uring_params::default();
            parameters.flags = flags;
            // SAFETY: no option that refers to memory or another ring is set.
            match unsafe { io_uring_setup(depth.max(1), &mut parameters) } {
                Ok(fd) => return Self::mapped(fd, &parameters, deferred),
                Err(Errno::INVAL) => last = Errno::INVAL,
                Err(error) => return Err(no_uring(error)),
            }
        }
        Err(no_uring(last))
    }

    fn mapped(
        fd: OwnedFd,
        parameters: &io_uring_params,
        deferred: bool,
    ) -> Result<Self, EngineError> {
        // Younger than all else that is relied on: one mapping of both queues, no completion lost.
        if !parameters.features.contains(IoringFeatureFlags::EXT_ARG) {
            return Err(EngineError::OldUring {
                feature: "waiting with a time limit (EXT_ARG)",
                since: "Linux 5.11",
            });
        }
        let (sq, cq) = (&parameters.sq_off, &parameters.cq_off);
        let places = |count: u32, size: usize| count as usize * size;
        let ended = cq.cqes as usize + places(parameters.cq_entries, size_of::<Ended>());
        let listed = sq.array as usize + places(parameters.sq_entries, size_of::<u32>());
        let map = |len: usize, what| {
            Shared::new(&fd, len, what).map_err(|source| EngineError::Memory {
                bytes: len as u64,
                source: source.into(),
            })
        };
        let queues = map(ended.max(listed), IORING_OFF_SQ_RING)?;
        let entries = map(
            places(parameters.sq_entries, size_of::<Entry>()),
            IORING_OFF_SQES,
        )?;
        if !parameters.flags.contains(IoringSetupFlags::NO_SQARRAY) {
            // Which entry is at which place of the queue: always the one of the same number.
            for number in 0..parameters.sq_entries {
                let place = queues.at::<u32>(sq.array + number * size_of::<u32>() as u32);
                // SAFETY: within the array; the kernel reads it when it is entered.
                unsafe { place.write(number) };
            }
        }
        let at = Addresses {
            entries: entries.at(0),
            tail: queues.at(sq.tail),
            ended_head: queues.at(cq.head),
            ended_tail: queues.at(cq.tail),
            ended: queues.at(cq.cqes),
        };
        let mut rings = Self {
            _queues: queues,
            _entries: entries,
            fd,
            registered: None,
            deferred,
            at,
            mask: parameters.sq_entries - 1,
            ended_mask: parameters.cq_entries - 1,
            head: 0,
            tail: 0,
        };
        rings.registered = rings.register_itself();
        Ok(rings)
    }

    /// How many entries are queued that the kernel has not taken.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// The rest of the queue, to be filled in.
    #[inline(always)]
    pub(super) fn filling(&mut self) -> Filling<'_> {
        Filling {
            entries: self.at.entries,
            mask: self.mask,
            end: self.head.wrapping_add(self.mask + 1),
            tail: self.tail,
            queued: &mut self.tail,
        }
    }

    /// Hands `count` of the queued entries to the kernel and waits for `least` ends, until `limit` at
    /// most; returns how many it took. Completions that are deferred are worked off by it.
    #[inline]
    pub(super) fn enter(
        &mut self,
        count: u32,
        least: u32,
        limit: Option<Timespec>,
    ) -> Result<u32, Errno> {
        // SAFETY: an aligned word of the shared pages, which live as long as `self`.
        unsafe { &*self.at.tail }.store(self.tail, Ordering::Release);
        let (ring, flags) = match self.registered {
            // SAFETY: not a descriptor but the ring's registered number, and only the call below sees
            // it, whose flag says what it is.
            Some(number) => (
                unsafe { BorrowedFd::borrow_raw(number.cast_signed()) },
                IoringEnterFlags::GETEVENTS | IoringEnterFlags::REGISTERED_RING,
            ),
            None => (self.fd.as_fd(), IoringEnterFlags::GETEVENTS),
        };
        let taken = match &limit {
            None => {
                // SAFETY: the queued entries refer to what lives long enough (see `push`).
                unsafe { io_uring_enter(ring, count, least, flags) }
            }
            Some(limit) => {
                let argument = io_uring_getevents_arg {
                    ts: io_uring_ptr::new(std::ptr::from_ref(limit).cast_mut().cast()),
                    ..Default::default()
                };
                let flags = flags | IoringEnterFlags::EXT_ARG;
                // SAFETY: as above; the limit lives over the call.
                unsafe { io_uring_enter_arg(ring, count, least, flags, Some(&argument)) }
            }
        }?;
        let taken = taken.min(self.queued());
        self.head = self.head.wrapping_add(taken);
        Ok(taken)
    }

    /// What has ended and was not taken before. Alone, so that nothing is taken twice.
    #[inline(always)]
    pub(super) fn ended(&mut self) -> AllEnded<'_> {
        // SAFETY: aligned words of the shared pages, which live as long as `self`. The head is
        // written by this thread alone.
        let (seen, tail) = unsafe { (&*self.at.ended_head, &*self.at.ended_tail) };
        AllEnded {
            ended: self.at.ended,
            mask: self.ended_mask,
            head: seen.load(Ordering::Relaxed),
            tail: tail.load(Ordering::Acquire),
            seen,
        }
    }

    fn register(
        &self,
        what: IoringRegisterOp,
        argument: *const c_void,
        count: usize,
    ) -> Result<u32, Errno> {
        // SAFETY: the callers give what the operation takes; buffers live until the ring is closed.
        unsafe { io_uring_register(&self.fd, what, argument, count as u32) }
    }

    /// Registers the ring with its thread (Linux 5.18).
    fn register_itself(&self) -> Option<u32> {
        let mut update = io_uring_rsrc_update::default();
        update.offset = u32::MAX;
        update.data = io_uring_ptr::new(std::ptr::without_provenance_mut(
            self.fd.as_raw_fd() as usize
        ));
        let argument = (&raw mut update).cast_const().cast();
        let done = self.register(IoringRegisterOp::RegisterRingFds, argument, 1);
        (done == Ok(1)).then_some(update.offset)
    }

    /// Registers a file, which then has number 0; false when that is refused.
    pub(super) fn register_file(&self, file: RawFd) -> bool {
        let argument = (&raw const file).cast();
        let done = self.register(IoringRegisterOp::RegisterFiles, argument, 1);
        done.is_ok()
    }

    /// Registers buffers; false when that is refused.
    ///
    /// # Safety
    /// They must be mapped until the ring is closed.
    pub(super) unsafe fn register_buffers(&self, regions: &[libc::iovec]) -> bool {
        let argument = regions.as_ptr().cast();
        let done = self.register(IoringRegisterOp::RegisterBuffers, argument, regions.len());
        done.is_ok()
    }

    /// Lets go of all that is registered, at once: closing a ring does so some time later, and a file
    /// system could not be unmounted until then.
    pub(super) fn unregister(&mut self) {
        let none = std::ptr::null();
        let _ = self.register(IoringRegisterOp::UnregisterFiles, none, 0);
        let _ = self.register(IoringRegisterOp::UnregisterBuffers, none, 0);
    }
}

impl Drop for Rings {
    /// The registration holds the ring open until its thread ends.
    fn drop(&mut self) {
        let Some(number) = self.registered.take() else {
            return;
        };
        let mut update = io_uring_rsrc_update::default();
        update.offset = number;
        let argument = (&raw const update).cast();
        let _ = self.register(IoringRegisterOp::UnregisterRingFds, argument, 1);
    }
}

//! io_uring: many block operations in flight by one system call a turn.
mod entries;

use super::error::EngineError;
use super::extent::Extent;
use super::ring::build;
use super::{TargetOptions, failed, unsupported};
use entries::Entries;
use io_uring::{EnterFlags, IoUring, types};
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::{Instant, Span};
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// How long dropping a target waits for operations that are still in flight.
const PATIENCE: Span = Span::from_secs(5);
const QUEUE_FULL: &str = "the submission queue is full";

/// What of io_uring this kernel and user have; all of it speeds things up, none changes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UringFeatures {
    /// Completions are worked off by the waiting thread alone (`SINGLE_ISSUER` and `DEFER_TASKRUN`,
    /// Linux 6.1).
    pub deferred: bool,
    /// The file is registered.
    pub file: bool,
    /// The buffers are registered.
    pub buffers: bool,
}

/// A target on io_uring. It belongs to the thread that made it (`SINGLE_ISSUER`), so it is not
/// `Send`.
///
/// Buffers stay owned by the target until the kernel has reported the operation's end. Dropping a
/// target with operations in flight waits for them for 5 s; if one does not end even then, its
/// memory is given up for good and never unmapped.
pub struct Uring {
    // Dropped by hand: the ring before the memory its operations use.
    ring: ManuallyDrop<IoUring>,
    entries: ManuallyDrop<Entries>,
    options: TargetOptions,
    deferred: bool,
    /// Entries in the submission queue that the kernel has not taken.
    queued: u32,
    /// Taken by the kernel and not reported as ended.
    taken: u32,
    /// Everything had ended when the last call returned: the target answers at once (page cache,
    /// `/dev/zero`), and the next call need not prepare for waiting.
    at_once: bool,
    now: Instant,
    not_send: PhantomData<*const ()>,
}

impl Uring {
    /// A ring on `extent`.
    ///
    /// # Errors
    /// [`EngineError::NoUring`] when the kernel or a policy refuses io_uring,
    /// [`EngineError::OldUring`] when it cannot wait with a time limit, and when there is no memory.
    pub fn new(extent: Extent, options: TargetOptions) -> Result<Self, EngineError> {
        let (ring, deferred) = build(options.depth)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(EngineError::OldUring {
                feature: "waiting with a time limit (EXT_ARG)",
                since: "Linux 5.11",
            });
        }
        let entries = Entries::new(&ring, extent, &options)?;
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            entries: ManuallyDrop::new(entries),
            deferred,
            queued: 0,
            taken: 0,
            at_once: false,
            now: options.clock.now(),
            options,
            not_send: PhantomData,
        })
    }

    /// Whether a ring can be made at all: the reason to use the other engine when not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn probe() -> Result<(), EngineError> {
        build(1).map(drop)
    }

    /// What of io_uring is in use.
    #[must_use]
    pub fn features(&self) -> UringFeatures {
        UringFeatures {
            deferred: self.deferred,
            file: self.entries.file,
            buffers: self.entries.registered,
        }
    }

    /// The bytes that the last operation of this slot moved, as long as the slot is not used again.
    #[must_use]
    pub fn buffer(&self, tag: Tag, len: u32) -> &[u8] {
        let start = self.entries.own_buffer(tag.0, len).0;
        // SAFETY: `own_buffer` gives `len` bytes of a mapping; the borrow keeps `submit` away, and
        // what is in flight in other slots uses other bytes.
        unsafe { std::slice::from_raw_parts(start, len as usize) }
    }

    /// Submitted and not reported as ended.
    fn in_flight(&self) -> u32 {
        self.queued + self.taken
    }

    /// Hands the queued entries to the kernel and waits for one end, until `limit` at most.
    fn enter_and_wait(&mut self, limit: Option<Span>) -> io::Result<()> {
        let timespec = limit.map(|limit| {
            types::Timespec::new()
                .sec(limit.0 / 1_000_000_000)
                .nsec((limit.0 % 1_000_000_000) as u32)
        });
        let mut arguments = types::SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        self.enter(self.queued, 1, EnterFlags::EXT_ARG, Some(&arguments))
    }

    /// Hands all but the last portion of the queued entries to the kernel, a portion at a time: the
    /// device works on the first while the next ones are made ready. (On a virtio disk at depth 32
    /// portions of a quarter gave a tenth more I/Os than all at once, and single ones no more.)
    fn enter_portions(&mut self) -> io::Result<()> {
        let portion = (self.options.depth / 4).max(1);
        while self.queued > portion {
            let before = self.queued;
            self.enter::<libc::sigset_t>(portion, 0, EnterFlags::empty(), None)?;
            if self.queued == before {
                break;
            }
        }
        Ok(())
    }

    /// Hands `count` of the queued entries to the kernel and waits for `least` ends.
    #[inline]
    fn enter<A>(
        &mut self,
        count: u32,
        least: u32,
        flags: EnterFlags,
        arguments: Option<&A>,
    ) -> io::Result<()> {
        // GETEVENTS even when nothing is waited for: deferred completions are worked off by it.
        let flags = EnterFlags::GETEVENTS | flags;
        // SAFETY: the arguments live over the call, and their type is what the flags say.
        let taken = unsafe {
            self.ring
                .submitter()
                .enter(count, least, flags.bits(), arguments)
        };
        match taken {
            Ok(taken) => {
                let taken = (taken as u32).min(self.queued);
                self.queued -= taken;
                self.taken += taken;
            }
            Err(error) => match error.raw_os_error() {
                // Timed out; interrupted by a signal; the completion queue must be emptied or memory
                // come free first. What is queued stays queued for the next turn.
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                _ => return Err(error),
            },
        }
        Ok(())
    }

    #[inline(always)]
    fn harvest(&mut self, done: &mut Vec<Completion>) {
        let at = self.now;
        let queue = self.ring.completion();
        let (before, count) = (done.len(), queue.len());
        done.reserve(count);
        for (place, entry) in done.spare_capacity_mut().iter_mut().zip(queue) {
            let tag = Tag(entry.user_data() as u32);
            self.entries.release(tag);
            let moved = entry.result();
            let result = if moved < 0 {
                Err(Errno(-moved))
            } else {
                Ok(moved.unsigned_abs())
            };
            place.write(Completion { tag, result, at });
        }
        // SAFETY: room for `count` was reserved, and the queue had as many entries.
        unsafe { done.set_len(before + count) };
        self.taken -= count as u32;
    }
}

impl Target for Uring {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: self.options.depth,
            alignment: self.entries.extent.alignment,
            size: self.entries.extent.size,
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    #[inline]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let Op::Block(block) = op else {
            return Err(unsupported(
                op,
                "io_uring is used for block operations only",
            ));
        };
        let entry = self.entries.entry(tag, block)?;
        let mut queue = self.ring.submission();
        // SAFETY: the file is open and the buffer mapped until the operation has ended: its slot is
        // held until then, and `drop` waits.
        if unsafe { queue.push(&entry) }.is_err() {
            return Err(unsupported(op, QUEUE_FULL));
        }
        self.queued += 1;
        Ok(())
    }

    #[inline(always)]
    fn submit_alike(
        &mut self,
        kind: BlockKind,
        len: u32,
        tags: &[Tag],
        offsets: &[u64],
    ) -> Result<(), TargetError> {
        let block = |offset| Op::Block(BlockOp { kind, len, offset });
        let operations = tags.iter().zip(offsets);
        let Some(mut reads) = self.entries.plain_reads(kind, len) else {
            for (&tag, &offset) in operations {
                self.submit(tag, block(offset))?;
            }
            return Ok(());
        };
        let mut queue = self.ring.submission();
        let before = queue.len();
        let mut taken = Ok(());
        for (&tag, &offset) in operations {
            match reads.entry(tag, offset) {
                // SAFETY: as in `submit`.
                Ok(entry) if unsafe { queue.push(&entry) }.is_ok() => {}
                Ok(_) => taken = Err(unsupported(block(offset), QUEUE_FULL)),
                Err(error) => taken = Err(error),
            }
            if taken.is_err() {
                break;
            }
        }
        self.queued += (queue.len() - before) as u32;
        taken
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let before = done.len();
        loop {
            if self.in_flight() == 0 {
                if let Some(until) = until {
                    self.options.clock.sleep_until(until);
                }
                self.now = self.options.clock.now();
                self.options.heartbeat.beat(self.now);
                return Ok(());
            }
            // Counted from the end of the last wait, so the limit is late by the driver's work since,
            // and never early.
            let limit = until.map(|until| until.since(self.now));
            let entered = if self.at_once || limit == Some(Span::ZERO) {
                self.enter::<libc::sigset_t>(self.queued, 0, EnterFlags::empty(), None)
            } else {
                self.enter_portions()
                    .and_then(|()| self.enter_and_wait(limit))
            };
            entered.map_err(|error| failed("io_uring_enter failed", error))?;
            self.now = self.options.clock.now();
            self.harvest(done);
            self.at_once = self.in_flight() == 0;
            if done.len() > before {
                self.options.heartbeat.beat(self.now);
                return Ok(());
            }
            if until.is_some_and(|until| self.now >= until) {
                return Ok(());
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let give_up = self.options.clock.now() + PATIENCE;
        let mut done = Vec::new();
        while self.in_flight() > 0 && self.now < give_up {
            if self.wait(Some(give_up), &mut done).is_err() {
                break;
            }
        }
        let idle = self.in_flight() == 0;
        if idle {
            // Closing a ring lets go of what is registered some time later; a file system could not
            // be unmounted until then.
            let _ = self.ring.submitter().unregister_files();
            let _ = self.ring.submitter().unregister_buffers();
        }
        // SAFETY: each is taken once, here, and nothing uses them afterwards. The ring goes first: it
        // lets go of the registered memory.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            let entries = ManuallyDrop::take(&mut self.entries);
            if !idle {
                entries.leak();
            }
        }
    }
}

//! io_uring: many block operations in flight by one system call a turn.
mod entries;
mod queues;
mod rings;

use super::error::EngineError;
use super::extent::Extent;
use super::{TargetOptions, failed, unsupported};
use entries::Entries;
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::{Instant, Span};
use rings::Rings;
use rustix::io::Errno as SystemError;
use rustix::io_uring::{IoringSqeFlags, Timespec};
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
    /// The ring is registered with its thread (Linux 5.18).
    pub ring: bool,
}

/// A target on io_uring. It belongs to the thread that made it (`SINGLE_ISSUER`), so it is not
/// `Send`.
///
/// Buffers stay owned by the target until the kernel has reported the operation's end. Dropping a
/// target with operations in flight waits for them for 5 s; if one does not end even then, its
/// memory is given up for good and never unmapped.
pub struct Uring {
    // Dropped by hand: the ring before the memory its operations use.
    rings: ManuallyDrop<Rings>,
    entries: ManuallyDrop<Entries>,
    options: TargetOptions,
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
        let rings = Rings::build(options.depth)?;
        let entries = Entries::new(&rings, extent, &options)?;
        Ok(Self {
            rings: ManuallyDrop::new(rings),
            entries: ManuallyDrop::new(entries),
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
        Rings::build(1).map(drop)
    }

    /// What of io_uring is in use.
    #[must_use]
    pub fn features(&self) -> UringFeatures {
        UringFeatures {
            deferred: self.rings.deferred,
            file: self.entries.file,
            buffers: self.entries.registered,
            ring: self.rings.registered.is_some(),
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
        self.rings.queued() + self.taken
    }

    /// Hands the queued entries to the kernel and waits for one end, until `limit` at most.
    fn enter_and_wait(&mut self, limit: Option<Span>) -> Result<(), SystemError> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: (limit.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (limit.0 % 1_000_000_000).cast_signed(),
        });
        self.enter(self.rings.queued(), 1, limit)
    }

    /// Hands all but the last portion of the queued entries to the kernel, a portion at a time: the
    /// device works on the first while the next ones are made ready. (On a virtio disk at depth 32
    /// portions of a quarter gave a tenth more I/Os than all at once, and single ones no more.)
    fn enter_portions(&mut self) -> Result<(), SystemError> {
        let portion = (self.options.depth / 4).max(1);
        loop {
            let before = self.rings.queued();
            if before <= portion {
                return Ok(());
            }
            self.enter(portion, 0, None)?;
            if self.rings.queued() == before {
                return Ok(());
            }
        }
    }

    /// Hands `count` of the queued entries to the kernel and waits for `least` ends.
    #[inline]
    fn enter(
        &mut self,
        count: u32,
        least: u32,
        limit: Option<Timespec>,
    ) -> Result<(), SystemError> {
        match self.rings.enter(count, least, limit) {
            Ok(taken) => self.taken += taken,
            // Timed out; interrupted by a signal; the completion queue must be emptied or memory come
            // free first. What is queued stays queued for the next turn.
            Err(SystemError::TIME | SystemError::INTR | SystemError::AGAIN | SystemError::BUSY) => {
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    #[inline(never)]
    fn harvest(&mut self, done: &mut Vec<Completion>) {
        let at = self.now;
        let ended = self.rings.ended();
        let (before, count) = (done.len(), ended.len());
        done.reserve(count);
        let places = done.spare_capacity_mut().as_mut_ptr();
        for (number, entry) in ended.enumerate() {
            let tag = Tag(entry.user_data as u32);
            self.entries.release(tag);
            let result = match u32::try_from(entry.result) {
                Ok(moved) => Ok(moved),
                Err(_) => Err(Errno(-entry.result)),
            };
            // SAFETY: `ended` gives `count` entries, for which room was reserved.
            unsafe { (*places.add(number)).write(Completion { tag, result, at }) };
        }
        // SAFETY: as many were written.
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
        // SAFETY: the file is open and the buffer mapped until the operation has ended: its slot is
        // held until then, and `drop` waits.
        if unsafe { self.rings.filling().push(entry) } {
            Ok(())
        } else {
            Err(unsupported(op, QUEUE_FULL))
        }
    }

    // The kernel tries all operations without waiting first (NOWAIT). Where that gives EAGAIN at once it has a worker wait.
    // Where a device has taken a part of the operation already, the error comes with that part's end, from a thread that
    // the kernel does not try again in. So does md's RAID10 (seen with Linux 6.1) while it resyncs or rebuilds: the parts
    // of what spans several chunks are let in one by one.
    #[cold]
    fn again(&mut self, tag: Tag, op: Op) -> Result<bool, TargetError> {
        let Op::Block(block) = op else {
            return Ok(false);
        };
        let mut entry = self.entries.entry(tag, block)?;
        entry.flags |= IoringSqeFlags::ASYNC.bits();
        // SAFETY: as in `submit`.
        if unsafe { self.rings.filling().push(entry) } {
            Ok(true)
        } else {
            Err(unsupported(op, QUEUE_FULL))
        }
    }

    // By itself, as `harvest`, so that its loop has the registers for itself.
    #[inline(never)]
    fn submit_alike(
        &mut self,
        kind: BlockKind,
        len: u32,
        tags: &[Tag],
        offsets: &[u64],
    ) -> Result<(), TargetError> {
        let operations = tags.iter().zip(offsets);
        let op = |offset| Op::Block(BlockOp { kind, len, offset });
        let Some(mut reads) = self.entries.plain_reads(kind, len) else {
            for (&tag, &offset) in operations {
                self.submit(tag, op(offset))?;
            }
            return Ok(());
        };
        let mut filling = self.rings.filling();
        for (&tag, &offset) in operations {
            let entry = reads.entry(tag, offset)?;
            // SAFETY: as in `submit`.
            if !unsafe { filling.push(entry) } {
                return Err(unsupported(op(offset), QUEUE_FULL));
            }
        }
        Ok(())
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
                self.enter(self.rings.queued(), 0, None)
            } else {
                self.enter_portions()
                    .and_then(|()| self.enter_and_wait(limit))
            };
            entered
                .map_err(|error| failed("io_uring_enter failed", std::io::Error::from(error)))?;
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
            self.rings.unregister();
        }
        // SAFETY: each is taken once, here, and nothing uses them afterwards. The ring goes first: it
        // lets go of the registered memory.
        unsafe {
            ManuallyDrop::drop(&mut self.rings);
            let entries = ManuallyDrop::take(&mut self.entries);
            if !idle {
                entries.leak();
            }
        }
    }
}

#[cfg(test)]
mod tests;

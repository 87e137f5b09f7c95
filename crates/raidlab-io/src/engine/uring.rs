//! io_uring: many block operations in flight by one system call a turn.
use super::content::{Lent, WriteSource};
use super::error::EngineError;
use super::extent::Extent;
use super::memory::Mapping;
use super::ring::build;
use super::{NOT_ALIGNED, NOT_WRITABLE, TargetOptions, failed, unsupported};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use raidlab_core::op::{BlockKind, BlockOp, FileId, Op};
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::{Instant, Span};
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

/// The extent is data file 0 for the purpose of content.
const EXTENT_FILE: FileId = 0;
/// How long dropping a target waits for operations that are still in flight.
const PATIENCE: Span = Span::from_secs(5);

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

/// What a slot's operation holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// There is none.
    Nothing,
    /// The slot's own buffer, or none.
    Own,
    /// Bytes of the write source.
    Source,
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
    source: ManuallyDrop<WriteSource>,
    buffers: ManuallyDrop<Mapping>,
    larger: ManuallyDrop<Vec<Option<Mapping>>>,
    extent: Extent,
    options: TargetOptions,
    features: UringFeatures,
    slot_len: u32,
    held: Vec<Held>,
    /// Of the slots that hold bytes of the write source.
    lent: Vec<Option<Lent>>,
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
        let slot_len = options.largest.next_multiple_of(super::memory::PAGE as u32);
        let buffers = Mapping::new(slot_len as usize * options.depth as usize)?;
        // A target that is only read needs no pool; one page stands for it.
        let (writers, largest) = if extent.mode.write {
            (options.depth, options.largest)
        } else {
            (1, 1)
        };
        let source = WriteSource::new(options.content.clone(), writers, largest)?;
        let file = ring
            .submitter()
            .register_files(&[extent.file.as_raw_fd()])
            .is_ok();
        let regions: Vec<libc::iovec> = (0..options.depth as usize)
            .map(|slot| libc::iovec {
                iov_base: buffers
                    .at(slot * slot_len as usize, slot_len as usize)
                    .cast(),
                iov_len: slot_len as usize,
            })
            .chain(source.regions())
            .collect();
        // Refused when it exceeds the limit of locked memory; unregistered buffers work as well.
        // SAFETY: the regions are mapped until after the ring is closed (see `drop`).
        let registered = unsafe { ring.submitter().register_buffers(&regions) }.is_ok();
        let now = options.clock.now();
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            source: ManuallyDrop::new(source),
            buffers: ManuallyDrop::new(buffers),
            larger: ManuallyDrop::new((0..options.depth).map(|_| None).collect()),
            extent,
            features: UringFeatures {
                deferred,
                file,
                buffers: registered,
            },
            slot_len,
            held: vec![Held::Nothing; options.depth as usize],
            lent: vec![None; options.depth as usize],
            queued: 0,
            taken: 0,
            at_once: false,
            now,
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
        self.features
    }

    /// The bytes that the last operation of this slot moved, as long as the slot is not used again.
    #[must_use]
    pub fn buffer(&self, tag: Tag, len: u32) -> &[u8] {
        let start = self.own_buffer(tag.0, len).0;
        // SAFETY: `own_buffer` gives `len` bytes of a mapping; the borrow keeps `submit` away, and
        // what is in flight in other slots uses other bytes.
        unsafe { std::slice::from_raw_parts(start, len as usize) }
    }

    /// The slot's own buffer and whether it is the registered one.
    #[inline]
    fn own_buffer(&self, slot: u32, len: u32) -> (*mut u8, bool) {
        if len <= self.slot_len {
            let at = slot as usize * self.slot_len as usize;
            return (self.buffers.at(at, len as usize), self.features.buffers);
        }
        self.larger[slot as usize]
            .as_ref()
            .map_or((std::ptr::dangling_mut(), false), |mapping| {
                (mapping.at(0, len as usize), false)
            })
    }

    /// Makes room for an operation larger than the target was made for.
    #[cold]
    fn enlarge(&mut self, slot: u32, len: u32) -> Result<(), TargetError> {
        let larger = &mut self.larger[slot as usize];
        if larger
            .as_ref()
            .is_none_or(|mapping| mapping.len() < len as usize)
        {
            let mapping = Mapping::new(len as usize)
                .map_err(|error| failed("cannot enlarge a buffer", error))?;
            *larger = Some(mapping);
        }
        Ok(())
    }

    #[inline(always)]
    fn entry(&mut self, slot: u32, op: BlockOp) -> Result<(squeue::Entry, Held), TargetError> {
        if op.kind == BlockKind::Flush {
            let entry = if self.features.file {
                opcode::Fsync::new(types::Fixed(0)).build()
            } else {
                opcode::Fsync::new(types::Fd(self.extent.file.as_raw_fd())).build()
            };
            return Ok((entry, Held::Own));
        }
        if op.len > self.slot_len {
            self.enlarge(slot, op.len)?;
        }
        let (start, registered, index, held) = if op.kind == BlockKind::Read {
            let (start, registered) = self.own_buffer(slot, op.len);
            (start, registered, slot as u16, Held::Own)
        } else if let Some(lent) = self.source.lend(slot, EXTENT_FILE, op.offset, op.len) {
            let index = self.options.depth as u16 + lent.replica;
            self.lent[slot as usize] = Some(lent);
            (lent.start, self.features.buffers, index, Held::Source)
        } else {
            let (start, registered) = self.own_buffer(slot, op.len);
            // SAFETY: `len` bytes of the slot's own buffer, which no operation uses: the slot is free.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, op.len as usize) };
            self.source.content().fill(EXTENT_FILE, op.offset, bytes);
            (start, registered, slot as u16, Held::Own)
        };
        let read = op.kind == BlockKind::Read;
        let (fd, offset) = (types::Fd(self.extent.file.as_raw_fd()), op.offset);
        macro_rules! on_file {
            ($op:ident, $($argument:expr),*) => {
                if self.features.file {
                    opcode::$op::new(types::Fixed(0), $($argument),*).offset(offset).build()
                } else {
                    opcode::$op::new(fd, $($argument),*).offset(offset).build()
                }
            };
        }
        let entry = match (read, registered) {
            (true, true) => on_file!(ReadFixed, start, op.len, index),
            (true, false) => on_file!(Read, start, op.len),
            (false, true) => on_file!(WriteFixed, start, op.len, index),
            (false, false) => on_file!(Write, start, op.len),
        };
        Ok((entry, held))
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

    #[inline]
    fn harvest(&mut self, done: &mut Vec<Completion>) {
        let (at, before) = (self.now, done.len());
        for entry in self.ring.completion() {
            let tag = Tag(entry.user_data() as u32);
            let slot = tag.0 as usize;
            let held = std::mem::replace(&mut self.held[slot], Held::Nothing);
            if held == Held::Source
                && let Some(lent) = self.lent[slot].take()
            {
                self.source.give_back(lent);
            }
            let moved = entry.result();
            let result = if moved < 0 {
                Err(Errno(-moved))
            } else {
                Ok(moved.unsigned_abs())
            };
            done.push(Completion { tag, result, at });
        }
        self.taken -= (done.len() - before) as u32;
    }
}

impl Target for Uring {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: self.options.depth,
            alignment: self.extent.alignment,
            size: self.extent.size,
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    // Always inlined: an operation handed over in memory is stored in pieces and read back whole,
    // which stalls the processor for longer than all the rest takes.
    #[inline(always)]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let Op::Block(block) = op else {
            return Err(unsupported(
                op,
                "io_uring is used for block operations only",
            ));
        };
        if self.held.get(tag.0 as usize) != Some(&Held::Nothing) {
            return Err(unsupported(op, "its slot is in use or beyond the depth"));
        }
        if block.kind == BlockKind::Write && !self.extent.mode.write {
            return Err(unsupported(op, NOT_WRITABLE));
        }
        if block.kind != BlockKind::Flush && !self.extent.is_aligned(block.offset, block.len) {
            return Err(unsupported(op, NOT_ALIGNED));
        }
        let (entry, held) = self.entry(tag.0, block)?;
        let entry = entry.user_data(u64::from(tag.0));
        // SAFETY: the file is open and the buffer mapped until the operation has ended: `held` keeps
        // the slot from being used, and `drop` waits.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return Err(unsupported(op, "the submission queue is full"));
        }
        self.held[tag.0 as usize] = held;
        self.queued += 1;
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
            let source = ManuallyDrop::take(&mut self.source);
            let buffers = ManuallyDrop::take(&mut self.buffers);
            let larger = ManuallyDrop::take(&mut self.larger);
            if !idle {
                // The kernel may still write there.
                source.leak();
                buffers.leak();
                larger.into_iter().flatten().for_each(Mapping::leak);
            }
        }
    }
}

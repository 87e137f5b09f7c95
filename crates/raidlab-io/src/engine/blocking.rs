//! System calls that return when the operation has ended: one at a time.
use super::content::{Lent, WriteSource};
use super::error::EngineError;
use super::extent::Extent;
use super::files::{self, Files, read_at, write_at};
use super::memory::Mapping;
use super::{NO_EXTENT, NOT_ALIGNED, NOT_WRITABLE, TargetOptions, failed, unsupported};
use raidlab_core::op::{BlockKind, BlockOp, FileId, FileOp, Op};
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;

/// The extent is data file 0 for the purpose of content.
const EXTENT_FILE: FileId = 0;

/// A target by ordinary system calls: the reference for the other engine, the fallback where there is
/// no io_uring, and the one for file operations.
///
/// `submit` takes one operation; `wait` carries it out, even when `until` has passed (it would never
/// be done otherwise).
#[derive(Debug)]
pub struct Blocking {
    extent: Option<Extent>,
    files: Option<Files>,
    options: TargetOptions,
    buffer: Mapping,
    source: WriteSource,
    pending: Option<(Tag, Op)>,
    now: Instant,
}

impl Blocking {
    /// On an extent (for block operations), a working directory (for file operations), or both.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(
        extent: Option<Extent>,
        files: Option<Files>,
        options: TargetOptions,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            buffer: Mapping::new(options.largest as usize)?,
            source: WriteSource::new(options.content.clone(), 1, options.largest)?,
            now: options.clock.now(),
            extent,
            files,
            options,
            pending: None,
        })
    }

    /// The bytes that the last reading operation moved.
    #[must_use]
    pub fn buffer(&self, len: u32) -> &[u8] {
        let start = self.buffer.at(0, len as usize);
        // SAFETY: `len` bytes of the mapping; the borrow keeps `wait` away.
        unsafe { std::slice::from_raw_parts(start, len as usize) }
    }

    #[cold]
    fn enlarge(&mut self, len: u32) -> Result<(), TargetError> {
        self.buffer =
            Mapping::new(len as usize).map_err(|error| failed("cannot enlarge a buffer", error))?;
        Ok(())
    }

    /// The bytes of a write; `None` when they were put into the own buffer.
    #[inline]
    fn bytes_for(&mut self, file: FileId, offset: u64, len: u32) -> Option<Lent> {
        let lent = self.source.lend(0, file, offset, len);
        if lent.is_none() && len > 0 {
            files::fill(self.source.content(), &self.buffer, (file, offset, len));
        }
        lent
    }

    #[inline(never)]
    fn perform_file(&mut self, op: FileOp) -> Result<u32, Errno> {
        let bytes = Op::File(op).bytes();
        let lent = files::written(op).map(|(file, offset, len)| self.bytes_for(file, offset, len));
        let start = match lent {
            Some(Some(lent)) => lent.start,
            _ => self.buffer.at(0, bytes as usize),
        };
        // SAFETY: `bytes` bytes of the source, lent until below, or of the own buffer; nothing else
        // refers to either meanwhile.
        let buffer = unsafe { std::slice::from_raw_parts_mut(start, bytes as usize) };
        let result = match &mut self.files {
            Some(files) => files.perform(op, buffer),
            None => Err(Errno(libc::EBADF)),
        };
        if let Some(Some(lent)) = lent {
            self.source.give_back(lent);
        }
        result
    }

    #[inline(always)]
    fn perform_block(&mut self, op: BlockOp) -> Result<u32, Errno> {
        let lent =
            (op.kind == BlockKind::Write).then(|| self.bytes_for(EXTENT_FILE, op.offset, op.len));
        let Some(extent) = &self.extent else {
            return Err(Errno(libc::EBADF));
        };
        match op.kind {
            BlockKind::Read => {
                let start = self.buffer.at(0, op.len as usize);
                // SAFETY: `len` bytes of the own buffer, to which nothing else refers.
                let buffer = unsafe { std::slice::from_raw_parts_mut(start, op.len as usize) };
                read_at(&extent.file, buffer, op.offset)
            }
            BlockKind::Write => {
                let start = match lent {
                    Some(Some(lent)) => lent.start,
                    _ => self.buffer.at(0, op.len as usize),
                };
                // SAFETY: `len` bytes of the source, lent until below, or of the own buffer.
                let buffer = unsafe { std::slice::from_raw_parts(start, op.len as usize) };
                let result = write_at(&extent.file, buffer, op.offset);
                if let Some(Some(lent)) = lent {
                    self.source.give_back(lent);
                }
                result
            }
            BlockKind::Flush | BlockKind::FlushData => {
                let flushed = match op.kind {
                    BlockKind::FlushData => rustix::fs::fdatasync(&extent.file),
                    _ => rustix::fs::fsync(&extent.file),
                };
                flushed
                    .map(|()| 0)
                    .map_err(|error| Errno(error.raw_os_error()))
            }
        }
    }

    #[inline]
    fn check(&self, op: Op) -> Result<(), TargetError> {
        match op {
            Op::Block(block) => {
                let Some(extent) = &self.extent else {
                    return Err(unsupported(op, NO_EXTENT));
                };
                if block.kind == BlockKind::Write && !extent.mode.write {
                    return Err(unsupported(op, NOT_WRITABLE));
                }
                if !block.kind.is_flush() && !extent.is_aligned(block.offset, block.len) {
                    return Err(unsupported(op, NOT_ALIGNED));
                }
            }
            Op::File(file) => {
                let refusal = match &self.files {
                    Some(files) => files.refusal(file),
                    None => Some("the target has no directory for file operations"),
                };
                if let Some(why) = refusal {
                    return Err(unsupported(op, why));
                }
            }
        }
        Ok(())
    }
}

impl Target for Blocking {
    fn limits(&self) -> Limits {
        let extent = self.extent.as_ref();
        Limits {
            max_in_flight: 1,
            alignment: extent.map_or(1, |extent| extent.alignment),
            size: extent.map_or(u64::MAX, |extent| extent.size),
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    #[inline(always)]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        if self.pending.is_some() {
            return Err(unsupported(op, "one operation is in flight already"));
        }
        self.check(op)?;
        if op.bytes() as usize > self.buffer.len() {
            self.enlarge(op.bytes())?;
        }
        self.pending = Some((tag, op));
        Ok(())
    }

    #[inline(always)]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let Some((tag, op)) = self.pending.take() else {
            if let Some(until) = until {
                self.options.clock.sleep_until(until);
            }
            self.now = self.options.clock.now();
            self.options.heartbeat.beat(self.now);
            return Ok(());
        };
        let result = match op {
            Op::Block(block) => self.perform_block(block),
            Op::File(file) => self.perform_file(file),
        };
        self.now = self.options.clock.now();
        self.options.heartbeat.beat(self.now);
        done.push(Completion {
            tag,
            result,
            at: self.now,
        });
        Ok(())
    }
}

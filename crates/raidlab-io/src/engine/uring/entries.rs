//! What becomes an entry of the submission queue, and the memory it refers to.
use super::super::content::{Lent, WriteSource};
use super::super::error::EngineError;
use super::super::extent::Extent;
use super::super::memory::{Mapping, PAGE};
use super::super::{NOT_ALIGNED, NOT_WRITABLE, TargetOptions, failed, unsupported};
use super::queues::Entry;
use super::rings::Rings;
use raidlab_core::op::{BlockKind, BlockOp, FileId, Op};
use raidlab_core::target::{Tag, TargetError};
use rustix::io_uring::{IoringFsyncFlags, IoringOp, IoringSqeFlags};
use std::os::fd::AsRawFd;

/// The extent is data file 0 for the purpose of content.
const EXTENT_FILE: FileId = 0;
/// The largest buffer that the kernel registers.
const LARGEST_REGISTERED: usize = 1 << 30;

const SLOT_IN_USE: &str = "its slot is in use or beyond the depth";

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

/// The extent and the buffers of a ring. The ring must be closed before they are dropped.
pub(super) struct Entries {
    pub(super) extent: Extent,
    /// The file is registered.
    pub(super) file: bool,
    /// The buffers are registered.
    pub(super) registered: bool,
    source: WriteSource,
    /// One after another, of `slot_len` bytes each.
    buffers: Mapping,
    slot_len: u32,
    /// The slots' buffers are registered as one: the kernel looks up one descriptor for all, which
    /// stays in its cache.
    as_one: bool,
    /// Of slots that had an operation larger than `slot_len`.
    larger: Vec<Option<Mapping>>,
    held: Vec<Held>,
    /// Of the slots that hold bytes of the write source.
    lent: Vec<Option<Lent>>,
}

impl Entries {
    /// Lays out the buffers and registers what can be registered with `rings`.
    pub(super) fn new(
        rings: &Rings,
        extent: Extent,
        options: &TargetOptions,
    ) -> Result<Self, EngineError> {
        let depth = options.depth as usize;
        let slot_len = options.largest.next_multiple_of(PAGE as u32);
        let buffers = Mapping::new(slot_len as usize * depth)?;
        // A target that is only read needs no pool; one page stands for it.
        let (writers, largest) = if extent.mode.write {
            (options.depth, options.largest)
        } else {
            (1, 1)
        };
        let source = WriteSource::new(options.content.clone(), writers, largest)?;
        let file = rings.register_file(extent.file.as_raw_fd());
        let as_one = buffers.len() <= LARGEST_REGISTERED;
        let (count, len) = if as_one {
            (1, buffers.len())
        } else {
            (depth, slot_len as usize)
        };
        let regions: Vec<libc::iovec> = (0..count)
            .map(|number| libc::iovec {
                iov_base: buffers.at(number * len, len).cast(),
                iov_len: len,
            })
            .chain(source.regions())
            .collect();
        // Refused when it exceeds the limit of locked memory; unregistered buffers work as well.
        // SAFETY: the regions are mapped until after the ring is closed (see `Uring::drop`).
        let registered = unsafe { rings.register_buffers(&regions) };
        Ok(Self {
            extent,
            file,
            registered,
            source,
            buffers,
            slot_len,
            as_one,
            larger: (0..depth).map(|_| None).collect(),
            held: vec![Held::Nothing; depth],
            lent: vec![None; depth],
        })
    }

    /// The slot's own buffer and whether it is the registered one.
    pub(super) fn own_buffer(&self, slot: u32, len: u32) -> (*mut u8, bool) {
        if len <= self.slot_len {
            let at = slot as usize * self.slot_len as usize;
            return (self.buffers.at(at, len as usize), self.registered);
        }
        self.larger[slot as usize]
            .as_ref()
            .map_or((std::ptr::dangling_mut(), false), |mapping| {
                (mapping.at(0, len as usize), false)
            })
    }

    /// The index that the slot's own buffer is registered with.
    fn own_index(&self, slot: u32) -> u16 {
        if self.as_one { 0 } else { slot as u16 }
    }

    /// The index that a copy of the write source's pool is registered with.
    fn source_index(&self, replica: u16) -> u16 {
        let first = if self.as_one { 1 } else { self.held.len() };
        first as u16 + replica
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

    /// The entry for an operation, which holds its slot until [`release`](Self::release).
    pub(super) fn entry(&mut self, tag: Tag, op: BlockOp) -> Result<Entry, TargetError> {
        let slot = tag.0;
        if self.held.get(slot as usize) != Some(&Held::Nothing) {
            return Err(refused(op, SLOT_IN_USE));
        }
        let (entry, held) = self.any(slot, op)?;
        self.held[slot as usize] = held;
        Ok(Entry {
            user_data: u64::from(slot),
            ..entry
        })
    }

    /// Reads of `len` bytes of the registered file into the slots' registered buffers; `None` when
    /// that cannot be, or these are no reads.
    pub(super) fn plain_reads(&mut self, kind: BlockKind, len: u32) -> Option<PlainReads<'_>> {
        let plain = kind == BlockKind::Read
            && len <= self.slot_len
            && self.file
            && self.registered
            && self.as_one
            && self.extent.is_aligned(0, len);
        let alike = Entry {
            len,
            ..self.of_file(IoringOp::ReadFixed)
        };
        plain.then(|| PlainReads {
            alike,
            start: self.buffers.at(0, self.slot_len as usize * self.held.len()),
            slot_len: self.slot_len as usize,
            misaligned: u64::from(self.extent.alignment - 1),
            held: &mut self.held,
        })
    }

    /// An entry that asks `opcode` of the file.
    fn of_file(&self, opcode: IoringOp) -> Entry {
        let (fd, flags) = if self.file {
            (0, IoringSqeFlags::FIXED_FILE.bits())
        } else {
            (self.extent.file.as_raw_fd(), 0)
        };
        Entry {
            opcode: opcode as u8,
            flags,
            fd,
            ..Entry::default()
        }
    }

    /// A read or write of the bytes from `start`, which are `registered` with a number or not.
    fn transfer(&self, op: BlockOp, start: *mut u8, registered: Option<u16>) -> Entry {
        let opcode = match (op.kind == BlockKind::Write, registered.is_some()) {
            (false, true) => IoringOp::ReadFixed,
            (false, false) => IoringOp::Read,
            (true, true) => IoringOp::WriteFixed,
            (true, false) => IoringOp::Write,
        };
        Entry {
            offset: op.offset,
            address: start.expose_provenance() as u64,
            len: op.len,
            buffer: registered.unwrap_or(0),
            ..self.of_file(opcode)
        }
    }

    /// The entry for an operation in a free slot, and what the slot then holds.
    fn any(&mut self, slot: u32, op: BlockOp) -> Result<(Entry, Held), TargetError> {
        if op.kind.is_flush() {
            let mut entry = self.of_file(IoringOp::Fsync);
            if op.kind == BlockKind::FlushData {
                entry.op_flags = IoringFsyncFlags::DATASYNC.bits();
            }
            return Ok((entry, Held::Own));
        }
        if op.kind == BlockKind::Write && !self.extent.mode.write {
            return Err(refused(op, NOT_WRITABLE));
        }
        if !self.extent.is_aligned(op.offset, op.len) {
            return Err(refused(op, NOT_ALIGNED));
        }
        if op.len > self.slot_len {
            self.enlarge(slot, op.len)?;
        }
        let (start, registered) = self.own_buffer(slot, op.len);
        let index = registered.then_some(self.own_index(slot));
        if op.kind == BlockKind::Read {
            return Ok((self.transfer(op, start, index), Held::Own));
        }
        if let Some(lent) = self.source.lend(slot, EXTENT_FILE, op.offset, op.len) {
            let index = self.registered.then_some(self.source_index(lent.replica));
            self.lent[slot as usize] = Some(lent);
            return Ok((self.transfer(op, lent.start, index), Held::Source));
        }
        // SAFETY: `len` bytes of the slot's own buffer, which no operation uses: the slot is free.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, op.len as usize) };
        self.source.content().fill(EXTENT_FILE, op.offset, bytes);
        Ok((self.transfer(op, start, index), Held::Own))
    }

    /// The slot's operation has ended.
    #[inline(always)]
    pub(super) fn release(&mut self, tag: Tag) {
        let held = &mut self.held[tag.0 as usize];
        if *held == Held::Source {
            self.give_back(tag.0);
        } else {
            *held = Held::Nothing;
        }
    }

    #[inline(never)]
    fn give_back(&mut self, slot: u32) {
        self.held[slot as usize] = Held::Nothing;
        if let Some(lent) = self.lent[slot as usize].take() {
            self.source.give_back(lent);
        }
    }

    /// Gives all memory up for good: the kernel may still write there.
    pub(super) fn leak(self) {
        self.source.leak();
        self.buffers.leak();
        self.larger.into_iter().flatten().for_each(Mapping::leak);
    }
}

/// Makes the entries of reads that are alike, with nothing decided again that is the same for all.
pub(super) struct PlainReads<'a> {
    /// What is the same for all.
    alike: Entry,
    /// Of the first slot's buffer; the others follow at distances of `slot_len`.
    start: *mut u8,
    slot_len: usize,
    /// Bits that no offset may have.
    misaligned: u64,
    held: &'a mut [Held],
}

impl PlainReads<'_> {
    /// What [`Entries::entry`] gives.
    // Inlined, so that the entry is made in place: one that is handed over in memory is stored in
    // pieces and read back whole, which stalls the processor for longer than all the rest takes.
    #[inline(always)]
    pub(super) fn entry(&mut self, tag: Tag, offset: u64) -> Result<Entry, TargetError> {
        let slot = tag.0 as usize;
        match self.held.get_mut(slot) {
            Some(held) if *held == Held::Nothing && offset & self.misaligned == 0 => {
                *held = Held::Own;
            }
            held => return Err(refuse_read(self.alike.len, offset, held.copied())),
        }
        // SAFETY: there are as many buffers as places in `held`, one after another.
        let start = unsafe { self.start.add(slot * self.slot_len) };
        Ok(Entry {
            offset,
            address: start.expose_provenance() as u64,
            user_data: u64::from(tag.0),
            ..self.alike
        })
    }
}

#[cold]
fn refuse_read(len: u32, offset: u64, held: Option<Held>) -> TargetError {
    let op = BlockOp {
        kind: BlockKind::Read,
        len,
        offset,
    };
    let free = held == Some(Held::Nothing);
    refused(op, if free { NOT_ALIGNED } else { SLOT_IN_USE })
}

#[cold]
fn refused(op: BlockOp, why: &'static str) -> TargetError {
    unsupported(Op::Block(op), why)
}

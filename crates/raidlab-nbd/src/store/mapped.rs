//! Memory in one piece.
//!
//! In the guest the content of the disks is in memory that was hidden from its kernel at boot
//! (`memmap=8G$4G`), so that it neither shrinks the page cache nor is shrunk by it.
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::os::fd::AsFd;
use std::sync::Arc;

/// What is noted as written, in one piece: so much is cleared when a disk is thrown away.
const GRAIN: u64 = 1 << 20;

/// A mapping that ends when the last of its users does.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to the mapping alone, and every part of it to one `Mapped` (see
// `Memory::divide`), so that it may be used from any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing is read or written through a shared `Mapping` itself.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `Memory`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}

/// Why there is no memory for the content of disks.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// No mapping.
    #[error("cannot map {bytes} bytes of {what}: {source}")]
    Map {
        /// Of what.
        what: &'static str,
        /// How many.
        bytes: u64,
        /// Why not.
        source: std::io::Error,
    },
    /// More content than memory.
    #[error("the disks have {wanted} bytes together, but there is memory for {has}")]
    TooSmall {
        /// Bytes of the disks.
        wanted: u64,
        /// Bytes of memory.
        has: u64,
    },
}

/// Memory that disks can be made of, one after the other. What they leave behind is cleared.
#[derive(Debug)]
pub struct Memory {
    mapping: Arc<Mapping>,
    /// What disks that are gone have written, by [`GRAIN`].
    left: Arc<std::sync::Mutex<Vec<(u64, u64)>>>,
    /// Where it is, for reports.
    what: &'static str,
}

impl Memory {
    /// Anonymous memory, taken as it is written.
    ///
    /// # Errors
    /// When the kernel gives none.
    pub fn anonymous(bytes: u64) -> Result<Self, MemoryError> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes as usize, access, flags) };
        Self::new(mapped, bytes, "anonymous memory")
    }

    /// Physical memory from `start` on. The caller has made sure, by the kernel's command line, that
    /// the kernel does not use it.
    ///
    /// # Errors
    /// When the kernel does not hand it out (`iomem=relaxed` is needed where `/dev/mem` is strict).
    ///
    /// # Safety
    /// Nothing else may use these addresses: neither the kernel nor a device nor a second `Memory`.
    pub unsafe fn physical(start: u64, bytes: u64) -> Result<Self, MemoryError> {
        let what = "/dev/mem";
        let open = std::fs::File::options().read(true).write(true).open(what);
        let file = open.map_err(|source| MemoryError::Map {
            what,
            bytes,
            source,
        })?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; that the memory behind it is
        // free is the caller's promise.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes as usize,
                access,
                MapFlags::SHARED,
                file.as_fd(),
                start,
            )
        };
        Self::new(mapped, bytes, what)
    }

    /// The memory that was hidden from this kernel at its boot (`memmap=SIZE$START`), or else so many
    /// bytes of anonymous memory.
    ///
    /// # Errors
    /// When there is neither.
    pub fn of_guest(otherwise: u64) -> Result<Self, MemoryError> {
        let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        match hidden(&line) {
            // SAFETY: the kernel was told at its boot that this memory is not its own, and no driver
            // of a guest that raidlab booted has claimed it. One mapping a process is made of it.
            Some((start, bytes)) => unsafe { Self::physical(start, bytes) },
            None => Self::anonymous(otherwise),
        }
    }

    fn new(
        mapped: Result<*mut std::ffi::c_void, rustix::io::Errno>,
        bytes: u64,
        what: &'static str,
    ) -> Result<Self, MemoryError> {
        let base = mapped.map_err(|error| MemoryError::Map {
            what,
            bytes,
            source: error.into(),
        })?;
        Ok(Self {
            mapping: Arc::new(Mapping {
                base: base.cast(),
                len: bytes as usize,
            }),
            left: Arc::default(),
            what,
        })
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.mapping.len as u64
    }

    /// What it is, in a word.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// Contents of these sizes, all zeroes. The borrow keeps the memory from being divided twice at
    /// the same time.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn divide(&mut self, sizes: &[u64]) -> Result<Vec<Mapped>, MemoryError> {
        let rounded = |size: &u64| size.next_multiple_of(GRAIN);
        let wanted: u64 = sizes.iter().map(rounded).sum();
        // Other users of the mapping are contents that are still in use.
        let in_use = Arc::strong_count(&self.mapping) > 1;
        if wanted > self.bytes() || in_use {
            let has = if in_use { 0 } else { self.bytes() };
            return Err(MemoryError::TooSmall { wanted, has });
        }
        self.clear();
        let mut at = 0;
        let part = |size: &u64| {
            let start = at;
            at += rounded(size);
            Mapped {
                mapping: Arc::clone(&self.mapping),
                left: Arc::clone(&self.left),
                start,
                len: *size,
                written: vec![false; size.div_ceil(GRAIN) as usize],
            }
        };
        Ok(sizes.iter().map(part).collect())
    }

    /// Clears what earlier contents have left.
    fn clear(&mut self) {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(|e| e.into_inner()));
        for (start, len) in left {
            // SAFETY: the range was part of a `Mapped` of this mapping, and there is none any more
            // (`divide` has looked).
            unsafe {
                self.mapping
                    .base
                    .add(start as usize)
                    .write_bytes(0, len as usize);
            }
        }
    }
}

/// Start and bytes of the memory that a kernel's command line hides from it.
fn hidden(line: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let (digits, shift) = match text.as_bytes().last()? {
            b'K' | b'k' => (&text[..text.len() - 1], 10),
            b'M' | b'm' => (&text[..text.len() - 1], 20),
            b'G' | b'g' => (&text[..text.len() - 1], 30),
            _ => (text, 0),
        };
        digits.parse::<u64>().ok()?.checked_mul(1 << shift)
    };
    let words = line.split_whitespace();
    let mut found = words.filter_map(|word| word.strip_prefix("memmap=")?.split_once('$'));
    found.find_map(|(size, start)| Some((number(start)?, number(size)?)))
}

#[cfg(test)]
#[test]
fn hidden_memory_is_found_on_the_command_line() {
    let line = "console=ttyS0 memmap=8192M$4096M quiet\n";
    assert_eq!(hidden(line), Some((4 << 30, 8 << 30)));
    assert_eq!(hidden("memmap=1G$0x100"), None);
    assert_eq!(hidden("memmap=1G@4G quiet"), None);
}

/// The content of one disk in such memory.
#[derive(Debug)]
pub struct Mapped {
    mapping: Arc<Mapping>,
    left: Arc<std::sync::Mutex<Vec<(u64, u64)>>>,
    start: u64,
    len: u64,
    /// Which pieces of [`GRAIN`] may hold something other than zeroes.
    written: Vec<bool>,
}

impl Mapped {
    fn place(&self, offset: u64, len: usize) -> *mut u8 {
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= self.len), "within the content");
        // SAFETY: the content lies within the mapping (`divide`), and the offset within the content.
        unsafe { self.mapping.base.add((self.start + offset) as usize) }
    }

    /// The bytes from `offset` on.
    ///
    /// # Panics
    /// When they reach beyond the content.
    #[must_use]
    pub fn slice(&self, offset: u64, len: usize) -> &[u8] {
        // SAFETY: this part of the mapping is this content's alone, and `self` is borrowed as long
        // as the slice lives. Any bytes are valid.
        unsafe { std::slice::from_raw_parts(self.place(offset, len), len) }
    }

    /// The bytes from `offset` on, to be written.
    ///
    /// # Panics
    /// When they reach beyond the content.
    pub fn slice_mut(&mut self, offset: u64, len: usize) -> &mut [u8] {
        if len > 0 {
            let pieces = offset / GRAIN..=(offset + len as u64 - 1) / GRAIN;
            pieces.for_each(|piece| self.written[piece as usize] = true);
        }
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.place(offset, len), len) }
    }

    /// Makes it unlike that of all disks of other numbers: each page of 4 KiB begins with eight bytes that follow from the
    /// number and its place. Copies and parity agree nowhere then, as on members that come from elsewhere.
    pub fn make_unlike(&mut self, number: u64) {
        const PAGE: usize = 4 << 10;
        for piece in 0..self.written.len() as u64 {
            let from = piece * GRAIN;
            let len = GRAIN.min(self.len - from) as usize;
            for (page, bytes) in self.slice_mut(from, len).chunks_mut(PAGE).enumerate() {
                let place = from / PAGE as u64 + page as u64;
                let word = raidlab_core::rng::mix(place ^ ((number + 1) << 48));
                if let Some(bytes) = bytes.get_mut(..8) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }

    /// Clears; what was never written is not touched.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let piece = at / GRAIN;
            let next = end.min((piece + 1) * GRAIN);
            if self.written[piece as usize] {
                self.slice_mut(at, (next - at) as usize).fill(0);
                // A whole piece is as good as new.
                self.written[piece as usize] = next - at < GRAIN;
            }
            at = next;
        }
    }

    pub(super) fn touched(&self) -> u64 {
        self.written.iter().filter(|written| **written).count() as u64 * GRAIN
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let mut left = self.left.lock().unwrap_or_else(|e| e.into_inner());
        let written = self.written.iter().enumerate().filter(|(_, w)| **w);
        left.extend(written.map(|(piece, _)| {
            let from = piece as u64 * GRAIN;
            (self.start + from, GRAIN.min(self.len - from))
        }));
    }
}

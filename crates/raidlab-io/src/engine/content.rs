//! The bytes that are written: a function of (policy, seed, file, offset), cheap enough for the
//! write path.
//!
//! Drawing fresh random bytes costs about as much as the page cache needs to take them, so the
//! generator would be what is measured. (Done as below, a write of 8 KiB to tmpfs costs the same as
//! one of zeros within the noise, 2.0 µs; one of 1 MiB some 10 % more, as its source is not in the
//! first-level cache.) Instead the content of a file repeats a pool of [`PERIOD`]
//! bytes that [`data::fill`] makes from the seed, and each [`BLOCK`] begins with a stamp of 8 bytes,
//! a number drawn from (seed, file, number of the block). The consequences, plainly:
//!
//! - no block of 4 KiB equals another one, in the same file or another: nothing to deduplicate by
//!   blocks;
//! - data is incompressible (or compressible as asked for) for anything that compresses units of up
//!   to 1 MiB; a larger window (a ZFS record of 16 MiB) would find the repetition;
//! - a check of what was read verifies each byte: the stamps tell a block that was written to
//!   another place or by another run, the pool tells damage within a block.
//!
//! Zeros have no stamps.
use super::error::EngineError;
use super::memory::{Mapping, PAGE};
use raidlab_core::data::{self, DataPolicy};
use raidlab_core::op::FileId;
use raidlab_core::rng::Stream;
use std::sync::Arc;

/// The pool's length in bytes: every common compression unit fits in (ZFS and btrfs records of
/// 128 KiB, the 1 MiB that ZFS allows by default), and it fits in a second-level cache.
pub const PERIOD: usize = 1 << 20;
/// Bytes that share a stamp.
pub const BLOCK: usize = data::COMPRESS_BLOCK;
const STAMP: usize = 8;

/// What belongs at each offset of each file of a run.
#[derive(Clone, Debug)]
pub struct Content {
    policy: DataPolicy,
    stream: Stream,
    pool: Arc<[u8]>,
}

impl Content {
    /// The content of a policy and seed.
    #[must_use]
    pub fn new(policy: DataPolicy, seed: u64) -> Self {
        let stream = Stream::new(seed);
        let mut pool = vec![0; PERIOD];
        data::fill(policy, stream, 0, &mut pool);
        Self {
            policy,
            stream,
            pool: pool.into(),
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> DataPolicy {
        self.policy
    }

    /// Fills `buffer` with what belongs at `offset` of `file`.
    pub fn fill(&self, file: FileId, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut rest = &mut *buffer;
        while !rest.is_empty() {
            let within = (at % PERIOD as u64) as usize;
            let (part, tail) = rest.split_at_mut(rest.len().min(PERIOD - within));
            part.copy_from_slice(&self.pool[within..within + part.len()]);
            at += part.len() as u64;
            rest = tail;
        }
        self.stamp(self.file(file), offset, buffer);
    }

    /// The offset of the first byte of `buffer` that is not what belongs there; `None` when all is.
    #[must_use]
    pub fn check(&self, file: FileId, offset: u64, buffer: &[u8]) -> Option<u64> {
        let mut expected = [0; BLOCK];
        let mut at = offset;
        for part in buffer.chunks(BLOCK) {
            let expected = &mut expected[..part.len()];
            self.fill(file, at, expected);
            if let Some(wrong) = part.iter().zip(&*expected).position(|(a, b)| a != b) {
                return Some(at + wrong as u64);
            }
            at += part.len() as u64;
        }
        None
    }

    fn file(&self, file: FileId) -> Stream {
        self.stream.child(u64::from(file))
    }

    /// Writes the stamps that lie in `buffer`, whole or cut by its ends.
    #[inline]
    fn stamp(&self, file: Stream, offset: u64, buffer: &mut [u8]) {
        if self.policy == DataPolicy::Zeros {
            return;
        }
        let mut block = offset / BLOCK as u64;
        let within = (offset % BLOCK as u64) as usize;
        let mut at = 0;
        if within > 0 {
            if within < STAMP {
                let stamp = file.at(block).to_le_bytes();
                let len = buffer.len().min(STAMP - within);
                buffer[..len].copy_from_slice(&stamp[within..within + len]);
            }
            block += 1;
            at = BLOCK - within;
        }
        while at < buffer.len() {
            let stamp = file.at(block).to_le_bytes();
            let len = STAMP.min(buffer.len() - at);
            buffer[at..at + len].copy_from_slice(&stamp[..len]);
            block += 1;
            at += BLOCK;
        }
    }
}

/// Most copies of the pool.
const MOST_REPLICAS: usize = 64;

/// Writes without copying: an operation is given the place in a copy of the pool that has the
/// content of its offset, and only the stamps are written. Two operations in flight must not share
/// bytes there, so large or many operations get several copies of the pool; the few that collide all
/// the same are told so and filled elsewhere.
#[derive(Debug)]
pub(super) struct WriteSource {
    content: Content,
    memory: Mapping,
    stride: usize,
    replicas: usize,
    /// One bit a page of the memory: in use by an operation.
    busy: Vec<u64>,
}

/// Where an operation's bytes lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lent {
    pub(super) start: *mut u8,
    /// Which copy of the pool.
    pub(super) replica: u16,
    first_page: u32,
    pages: u32,
}

impl WriteSource {
    /// For `depth` operations in flight of up to `largest` bytes.
    pub(super) fn new(content: Content, depth: u32, largest: u32) -> Result<Self, EngineError> {
        let largest = (largest as usize).next_multiple_of(PAGE);
        let replicas = (2 * depth as usize * largest)
            .div_ceil(PERIOD)
            .clamp(1, (depth as usize).min(MOST_REPLICAS));
        // The tail repeats the head, so that every operation's bytes lie in one piece.
        let stride = PERIOD + largest;
        let memory = Mapping::new(stride * replicas)?;
        for replica in 0..replicas {
            let start = memory.at(replica * stride, stride);
            // SAFETY: `stride` bytes of the mapping by `at`, which nothing else refers to yet.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, stride) };
            for part in bytes.chunks_mut(PERIOD) {
                part.copy_from_slice(&content.pool[..part.len()]);
            }
        }
        let pages = memory.len() / PAGE;
        Ok(Self {
            content,
            memory,
            stride,
            replicas,
            busy: vec![0; pages.div_ceil(64)],
        })
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// The copies of the pool, to be registered.
    pub(super) fn regions(&self) -> impl Iterator<Item = libc::iovec> + '_ {
        (0..self.replicas).map(|replica| libc::iovec {
            iov_base: self.memory.at(replica * self.stride, self.stride).cast(),
            iov_len: self.stride,
        })
    }

    /// The bytes of a write of `len` at `offset`, or `None` when it is too large or its bytes are in
    /// use. The caller gives them back when the operation has ended.
    #[inline]
    pub(super) fn lend(&mut self, slot: u32, file: FileId, offset: u64, len: u32) -> Option<Lent> {
        let (within, len) = ((offset % PERIOD as u64) as usize, len as usize);
        if len == 0 || within + len > self.stride {
            return None;
        }
        let replica = slot as usize % self.replicas;
        let at = replica * self.stride + within;
        let first = at / PAGE;
        let pages = (at + len - 1) / PAGE + 1 - first;
        if (first..first + pages).any(|page| self.busy[page / 64] >> (page % 64) & 1 == 1) {
            return None;
        }
        for page in first..first + pages {
            self.busy[page / 64] |= 1 << (page % 64);
        }
        let start = self.memory.at(at, len);
        // SAFETY: within the mapping by `at`; no operation in flight uses these pages by the bits.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, len) };
        self.content.stamp(self.content.file(file), offset, bytes);
        Some(Lent {
            start,
            replica: replica as u16,
            first_page: first as u32,
            pages: pages as u32,
        })
    }

    /// The operation has ended.
    #[inline]
    pub(super) fn give_back(&mut self, lent: Lent) {
        for page in lent.first_page as usize..(lent.first_page + lent.pages) as usize {
            self.busy[page / 64] &= !(1 << (page % 64));
        }
    }

    pub(super) fn leak(self) {
        self.memory.leak();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_two_blocks_are_equal_and_files_differ() {
        let content = Content::new(DataPolicy::Seeded, 7);
        let mut seen = std::collections::HashSet::new();
        for file in 0..2 {
            let mut bytes = vec![0; 3 * PERIOD];
            content.fill(file, 0, &mut bytes);
            for block in bytes.chunks(BLOCK) {
                assert!(seen.insert(block.to_vec()));
            }
        }
    }

    #[test]
    fn a_check_names_the_first_wrong_byte() {
        let content = Content::new(DataPolicy::Seeded, 1);
        let mut bytes = vec![0; 10_000];
        content.fill(3, 5_000, &mut bytes);
        assert_eq!(content.check(3, 5_000, &bytes), None);
        // Block 2 begins at 8192: its stamp tells the file.
        assert_eq!(content.check(2, 5_000, &bytes), Some(8_192));
        bytes[7_777] ^= 1;
        assert_eq!(content.check(3, 5_000, &bytes), Some(12_777));
    }

    #[test]
    fn zeros_are_zeros() {
        let mut source = WriteSource::new(Content::new(DataPolicy::Zeros, 1), 1, 8192).unwrap();
        let lent = source.lend(0, 0, PERIOD as u64 - 4096, 8192).unwrap();
        // SAFETY: `lend` gives 8192 bytes that are not given back yet.
        let bytes = unsafe { std::slice::from_raw_parts(lent.start, 8192) };
        assert!(bytes.iter().all(|&b| b == 0));
    }

    #[test]
    fn bytes_in_use_are_not_lent_again() {
        let mut source = WriteSource::new(Content::new(DataPolicy::Seeded, 1), 2, 4096).unwrap();
        assert_eq!(source.regions().count(), 1);
        let first = source.lend(0, 0, 0, 4096).unwrap();
        assert!(source.lend(1, 0, PERIOD as u64, 4096).is_none());
        assert!(source.lend(1, 0, 4096, 4096).is_some());
        source.give_back(first);
        assert!(source.lend(0, 0, PERIOD as u64, 4096).is_some());
        assert!(source.lend(0, 0, 8192, 1 << 21).is_none());
        assert!(source.lend(0, 0, 8192, 0).is_none());
    }

    proptest! {
        #[test]
        fn what_is_lent_is_what_belongs_there(
            offset in 0_u64..5_000_000, len in 1_u32..20_000, file in 0_u32..4, factor in 1.0..8.0_f64,
        ) {
            for policy in [DataPolicy::Seeded, DataPolicy::Zeros, DataPolicy::Compressible(factor)] {
                let content = Content::new(policy, 11);
                let mut source = WriteSource::new(content.clone(), 4, 20_000).unwrap();
                let lent = source.lend(3, file, offset, len).unwrap();
                // SAFETY: `lend` gives `len` bytes that are not given back yet.
                let bytes = unsafe { std::slice::from_raw_parts(lent.start, len as usize) };
                prop_assert_eq!(content.check(file, offset, bytes), None);
            }
        }

        #[test]
        fn content_depends_on_the_offset_alone(start in 0_u64..3_000_000, len in 0_usize..9000, cut in 0_usize..9000) {
            let content = Content::new(DataPolicy::Seeded, 5);
            let mut whole = vec![0; len];
            content.fill(1, start, &mut whole);
            let cut = cut.min(len);
            let mut part = vec![0; len - cut];
            content.fill(1, start + cut as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[cut..]);
        }
    }
}

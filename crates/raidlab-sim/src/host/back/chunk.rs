//! How much is written of one file before another one has its turn.
use crate::host::device::Device;
use crate::host::era::Chunks;
use crate::host::{Host, META};

/// Pages of a file (`MAX_WRITEBACK_PAGES`); those of larger chunks are a multiple of it (`MIN_WRITEBACK_PAGES`).
const FEW: u64 = 1024;

/// Pages that Linux 2.4 writes at a time (`NRSYNC`), of all files together.
const OLDEST: u64 = 32;

/// What the flusher is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) file: u32,
    /// Pages that are still to be written of it.
    pub(super) left: u64,
}

impl Chunk {
    /// What is left when so many pages are written; `None`: nothing is, or nothing could be.
    pub(super) fn without(self, written: u64) -> Option<Self> {
        let left = self.left.saturating_sub(written);
        (written > 0 && left > 0).then_some(Self { left, ..self })
    }
}

/// As much as the device writes in half a second, at most an eighth of what may be dirty, and 4 MiB more: whole ones of
/// 4 MiB (`writeback_chunk_size`; rate and limit in pages).
fn by_rate(rate: u64, limit: u64) -> u64 {
    ((rate / 2).min(limit / 8) + FEW) / FEW * FEW
}

impl<D: Device> Host<D> {
    /// Pages of a file that others than the flusher write at a time.
    pub(super) fn at_a_time(&self) -> u64 {
        if self.era.chunks != Chunks::Oldest {
            return FEW;
        }
        let files = 0..self.files.len() as u32;
        let dirty = files.filter(|file| self.cache.dirty_of(*file) > 0);
        (OLDEST / dirty.count().max(1) as u64).max(1)
    }

    /// Pages of a file that the flusher writes before another one has its turn.
    pub(super) fn chunk_of(&mut self, file: u32) -> u64 {
        let pages = match self.era.chunks {
            Chunks::Oldest | Chunks::Few => self.at_a_time(),
            Chunks::ByRate => by_rate(self.back.rate.at(self.now), self.back.limit),
        };
        self.or_run_of(file, pages)
    }

    /// The flusher has written so many pages of what it is at; with nothing left of it, another file has its turn. A flusher
    /// of the old kind goes on with what others have dirtied when it comes to an end of what is dirty side by side: its few
    /// pages are those of all files.
    pub(super) fn wrote_of_chunk(&mut self, written: u64) {
        let chunk = self.back.chunk.and_then(|it| it.without(written));
        let by_file = self.era.chunks == Chunks::ByRate;
        self.back.chunk = chunk.filter(|it| by_file && self.cache.dirty_of(it.file) > 0);
        if self.back.chunk.is_none() {
            self.back.turn += 1;
        }
    }

    /// So many pages of a file, or a whole run of dirty ones where the file system makes more of it.
    pub(super) fn or_run_of(&mut self, file: u32, pages: u64) -> u64 {
        let Some(most) = self.traits.whole_run.filter(|_| file != META) else {
            return pages;
        };
        let cursor = self.files[file as usize].cursor;
        let run = self.cache.next_dirty(file, cursor, most);
        run.map_or(pages, |(_, run)| pages.max(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_half_a_second_or_an_eighth_of_what_may_be_dirty() {
        // 100 MiB/s: 50 MiB and 4; of 20 % of 512 MiB an eighth: 12.8 MiB and 4.
        assert_eq!(by_rate(25_600, 1 << 30), 13 * FEW);
        assert_eq!(by_rate(25_600, 26_214), 4 * FEW);
        assert_eq!(by_rate(16, 26_214), FEW);
    }

    #[test]
    fn a_chunk_ends_when_it_is_written_or_nothing_can_be() {
        let chunk = Chunk { file: 1, left: 10 };
        assert_eq!(chunk.without(4), Some(Chunk { file: 1, left: 6 }));
        assert_eq!(chunk.without(10), None);
        assert_eq!(chunk.without(0), None);
    }
}

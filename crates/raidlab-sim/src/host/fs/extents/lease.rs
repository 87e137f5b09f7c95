//! What a file that grows has for itself beyond what is written of it.
use super::kind::{Ahead, Kind};
use super::{Extents, File};
use crate::host::fs::plan::Charge;
use crate::host::fs::space::Run;
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::{GIB, KIB, MIB};

/// The least that xfs keeps, of files that are as large (`m_allocsize_blocks`, by default 64 KiB).
const LEAST: u64 = 64 * KIB;
/// The most (`XFS_MAX_BMBT_EXTLEN`, a power of two).
const MOST: u64 = 8 * GIB;
/// Most bytes of an extent of btrfs (`BTRFS_MAX_EXTENT_SIZE`).
const EXTENT: u64 = 128 * MIB;

/// What a file has for itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// Blocks of the device that follow those of the file.
    pub(super) lease: Option<Run>,
    /// What is taken next, of a kind that takes windows.
    window: u64,
    /// The file's block up to which some are kept, with places or without.
    end: u64,
    /// The file's block from which on those have no places yet.
    delayed: Option<u64>,
}

impl Kept {
    pub(super) fn new(kind: &Kind) -> Self {
        let window = match kind.ahead {
            Ahead::Windows(first, _) => first,
            Ahead::Size | Ahead::Extent | Ahead::Whole => 0,
        };
        Self {
            window,
            ..Self::default()
        }
    }

    /// Those up to `end` have places.
    fn placed(&mut self, end: u64) {
        self.delayed = self.delayed.map(|_| end).filter(|end| *end < self.end);
    }

    /// Blocks that are taken at once when those from `at` on get places, of which `want` are written.
    fn taken(&mut self, kind: &Kind, at: u64, want: u64) -> u64 {
        match kind.ahead {
            Ahead::Windows(_, most) => {
                let taken = want.max(self.window);
                self.window = (self.window * 2).min(most);
                taken
            }
            Ahead::Size | Ahead::Extent => match self.delayed {
                Some(_) => want.max(self.end.saturating_sub(at)),
                None => want,
            },
            Ahead::Whole => want.min(EXTENT / kind.block),
        }
    }
}

impl File {
    /// Blocks of the extent that ends before the file's block `first`, up to which some are kept; without a place it is one
    /// of its own.
    fn extent_before(&mut self, first: u64) -> u64 {
        if let Some(from) = self.kept.delayed {
            return first.saturating_sub(from);
        }
        let lease = self.kept.lease.map_or(0, |lease| lease.len);
        let last = (first - lease).checked_sub(1);
        let run = last.and_then(|last| self.runs.holding(last));
        run.map_or(0, |run| first - run.at)
    }
}

impl Extents {
    /// A file is about to be written from block `first` to `end` in memory: what is kept for it moves on with it.
    pub(super) fn keep_ahead(&mut self, file: FileId, first: u64, end: u64) {
        if matches!(self.kind.ahead, Ahead::Windows(..) | Ahead::Whole) {
            return;
        }
        let Some(f) = self.files.get_mut(&file) else {
            return;
        };
        if end <= f.kept.end {
            return;
        }
        let before = f.kept.end;
        let least = LEAST / self.kind.block;
        let basis = match self.kind.ahead {
            // Behind a hole.
            _ if first > before => 0,
            Ahead::Size => before,
            _ => 2 * f.extent_before(before),
        };
        f.kept.delayed.get_or_insert(first.max(before));
        f.kept.end = end;
        if before >= least {
            let ahead = self.fitting(basis.min(MOST / self.kind.block)).max(least);
            let f = self.files.get_mut(&file);
            f.into_iter().for_each(|f| f.kept.end += ahead);
        }
    }

    /// A file is about to be written past the page cache: nothing is kept for it beyond that.
    pub(super) fn keep_no_more(&mut self, file: FileId, end: u64) {
        if let Some(f) = self.files.get_mut(&file) {
            f.kept.end = f.kept.end.max(end);
        }
    }

    /// So many blocks rounded down to a power of two; less when there is little free space: a quarter below 5 %, and half of
    /// that with each further per cent (`XFS_LOWSP_5_PCNT` to `XFS_LOWSP_1_PCNT`).
    fn fitting(&self, blocks: u64) -> u64 {
        let (free, all) = (self.space.free(), self.space.blocks());
        let short = (1..=5).filter(|percent| free < all / 100 * percent).count() as u32;
        let shift = if short == 0 { 0 } else { short + 1 };
        let mut blocks = blocks
            .checked_ilog2()
            .map_or(0, |log| (1_u64 << log) >> shift);
        while blocks > 0 && blocks >= free {
            blocks >>= 4;
        }
        blocks
    }

    /// Up to `want` blocks after those before `at`.
    pub(super) fn extend(
        &mut self,
        f: &mut File,
        at: u64,
        want: u64,
        charge: &mut Charge,
    ) -> Option<Run> {
        let lease = match f.kept.lease.take() {
            Some(lease) => lease,
            None => {
                let before = at.checked_sub(1).and_then(|before| f.runs.get(before));
                let goal = before.map_or(self.small.near(f.record), |dev| dev + 1);
                let window = f.kept.taken(&self.kind, at, want);
                let begins = self.begins_unit(f, at, window, before.map(|_| goal));
                let run = match self.kind.ahead {
                    Ahead::Whole => self.space.take_whole(goal, window),
                    _ if begins => self.space.take_from(goal, window, self.kind.unit),
                    _ => None,
                };
                let run = run.or_else(|| self.space.take(goal, window));
                let run = match run {
                    Some(run) => run,
                    None => self.steal(goal, want)?,
                };
                f.kept.placed(at + run.len);
                self.join_group(run.start, charge);
                charge.cpu += Span(self.kind.cpu[1]);
                run
            }
        };
        let len = want.min(lease.len);
        f.kept.lease = (len < lease.len).then_some(Run {
            start: lease.start + len,
            len: lease.len - len,
        });
        Some(Run {
            start: lease.start,
            len,
        })
    }

    /// Whether `len` blocks from the file's block `at` on are to begin where a stripe unit does: at the end of the file, when they
    /// fill one and cannot go `behind` the block before (`xfs_bmap_btalloc`, `xfs_bmap_isaeof`).
    fn begins_unit(&self, f: &mut File, at: u64, len: u64, behind: Option<u64>) -> bool {
        let unit = self.kind.unit;
        let last = unit > 0 && len >= unit && f.runs.from(at).is_none();
        last && behind.is_none_or(|behind| self.space.taken(behind, 1) > 0)
    }

    /// The device is full but for what files keep for themselves: that is given up.
    fn steal(&mut self, goal: u64, want: u64) -> Option<Run> {
        self.give_up_leases();
        self.space.take(goal, want)
    }

    /// Whether files kept anything for themselves (`xfs_icache_free_eofblocks`).
    pub(super) fn give_up_leases(&mut self) -> bool {
        let before = self.space.free();
        for f in self.files.values_mut() {
            if let Some(lease) = f.kept.lease.take() {
                f.kept.end -= lease.len.min(f.kept.end);
                self.space.give(lease);
            }
        }
        self.space.free() > before
    }
}

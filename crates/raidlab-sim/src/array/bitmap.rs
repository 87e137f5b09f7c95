//! md's write-intent bitmap: what is to be written is noted on the members first.
//!
//! A bit stands for a stretch of the array ([`BitmapSpec::chunk`]); of raid1 and raid10 for sectors of the array, of
//! parity levels for those of each member. Each has a count in memory (`md-bitmap.c:md_bitmap_startwrite`, `..._endwrite`):
//! 0, it is clear; 1 and 2, nothing is written there now; above, so many writes less two are. A write to a clear one sets it and
//! makes its page dirty. Dirty pages are written to all working members, with a flush before and past their caches
//! (`md.c:md_super_write`: `REQ_SYNC | REQ_PREFLUSH | REQ_FUA`, `WRITE_FLUSH_FUA` before 4.8), before what they announce goes on
//! (`md_bitmap_unplug`). md's thread does so for raid5, and for mirrors before 3.6, and does nothing else meanwhile: all other
//! writes wait with it. Of mirrors since then whoever submits does so himself when he has collected what he has
//! (`raid1.c:raid1_unplug`, `flush_bio_list`), and submits nothing more meanwhile: each turn of his has pages of its own.
//!
//! Every five seconds (`DEFAULT_BITMAP_DELAY` of mdadm) counts of 2 become 1 and those of 1 become 0, and the pages of these are
//! written the time after, for which nobody waits (`md_bitmap_daemon_work`). A write that a missing member should have had
//! keeps its bit, until that member is there again.
//!
//! At first all is clear, as in an array that was left alone for a while (a new one has all bits set, for ten seconds).
//! Left out: that a rebuild stops every five seconds to clear bits (`md_bitmap_cond_end_sync`); that who waits for pages does not read meanwhile, either.
mod driven;

use crate::block::Bio;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;

use super::core::Up;

/// Where a bitmap is, and how fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapSpec {
    /// Sectors of a bit; `None`: as mdadm picks it.
    pub chunk: Option<u64>,
    /// Where it begins on each member, in sectors from the first one of data: before that (metadata 1.1 and 1.2) or behind the
    /// data (0.90 and 1.0). Of an array of arrays: at the beginning of each.
    pub at: i64,
    /// Sectors of a logical block of the members, of which its last page is written no more than it needs.
    pub block: u32,
    /// Bytes that there is room for.
    pub room: u64,
    /// A bit is of 64 MiB at least when mdadm picks (since 3.1 of 2009, the time of 2.6.32); before, as fine as there is room.
    pub coarse: bool,
    /// Of mirrors whoever submits writes the pages, not md's thread (since 3.6, "submit IO from originating thread").
    pub by_submitter: bool,
}

/// Bytes of what describes the bitmap, before its bits (`bitmap_super_t`).
const HEAD: u64 = 256;
/// Least bytes of a bit (`add_internal_bitmap1`: "sub-page chunks don't work yet"), and least that mdadm picks.
const LEAST: u64 = 4096;
const COARSE: u64 = 64 << 20;
/// Bytes and sectors of a page.
const PAGE: u64 = 4096;
const PAGE_SECTORS: u32 = 8;
/// Time between two looks for bits that can be cleared (`DEFAULT_BITMAP_DELAY`).
const SLEEP: Span = Span::from_secs(5);
/// In a count: a member lacks what was written (`NEEDED_MASK`).
const NEEDED: u32 = 1 << 31;

/// Room for a bitmap that mdadm leaves on members of so many sectors, in bytes (`super1.c:choose_bm_space`).
#[must_use]
pub(crate) const fn room(sectors: u64) -> u64 {
    const GIB: u64 = 2 << 20;
    match sectors {
        ..128 => 0,
        _ if sectors >= 200 * GIB + 128 => 128 << 10,
        _ if sectors > 8 * GIB + 8 => 64 << 10,
        _ => 4 << 10,
    }
}

/// Bits that have room.
const fn most(spec: &BitmapSpec) -> u64 {
    let bytes = spec.room.saturating_sub(HEAD);
    if bytes == 0 { 8 } else { bytes * 8 }
}

/// Sectors of a bit.
fn chunk(spec: &BitmapSpec, sectors: u64) -> u64 {
    spec.chunk.unwrap_or_else(|| picked(spec, sectors)).max(8)
}

/// Bits of a bitmap for so many sectors, and how many have room.
pub(super) fn bits(spec: &BitmapSpec, sectors: u64) -> (u64, u64) {
    (sectors.div_ceil(chunk(spec, sectors)), most(spec))
}

/// Sectors of a bit that mdadm picks for so many sectors (`super1.c:add_internal_bitmap1`): twice as many until all bits find
/// room, from 4 KiB on; but 64 MiB at least.
#[must_use]
pub(crate) fn picked(spec: &BitmapSpec, sectors: u64) -> u64 {
    let most = most(spec);
    let (mut chunk, mut bits) = (LEAST, sectors * 512 / LEAST + 1);
    while bits > most {
        (chunk, bits) = (chunk * 2, bits.div_ceil(2));
    }
    let chunk = if spec.coarse {
        chunk.max(COARSE)
    } else {
        chunk
    };
    chunk / 512
}

/// What is to be done with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Page {
    /// Bits were set: before what they announce is written, it is (`BITMAP_PAGE_DIRTY`).
    dirty: bool,
    /// Bits were cleared: it is written the time after next (`BITMAP_PAGE_PENDING`), next (`BITMAP_PAGE_NEEDWRITE`).
    pending: bool,
    due: bool,
}

/// The bitmap of one array of the tree.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    /// Sectors of a bit.
    chunk: u64,
    counts: Vec<u32>,
    /// Bits that are not clear.
    set: Vec<u32>,
    pages: Vec<Page>,
    /// Dirty pages.
    dirty: u32,
    /// Sectors that are written of the last page.
    last: u32,
    at: i64,
    by_submitter: bool,
    /// Requests for pages that are under way.
    flight: u32,
    /// What is announced waits for its pages: until those under way are through; then how many of those that wait it is for.
    waits: Option<Waits>,
    held: Vec<Note>,
    /// What mirrors were given meanwhile by processes of whom something is held, in turns.
    later: VecDeque<Note>,
    /// Turns so far: how often whoever submitted has begun to wait.
    turn: u64,
    /// Since when the first of them waits for somebody to say that no more come.
    since: Instant,
    /// When the thread looked last, and that it found nothing to do.
    looked: Instant,
    all_clean: bool,
}

/// A write that waits, and the turn of its process that it is of.
#[derive(Clone, Copy, Debug)]
struct Note {
    up: Up,
    bio: Bio,
    turn: u64,
}

/// What those that wait wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// That what was written before ends.
    Before,
    /// Their pages; so many of them.
    Pages(usize),
}

impl Bitmap {
    /// A clear bitmap for so many sectors.
    pub(super) fn new(spec: &BitmapSpec, sectors: u64) -> Self {
        let (chunk, (bits, _)) = (chunk(spec, sectors), bits(spec, sectors));
        let bytes = HEAD + bits.div_ceil(8);
        let rest = ((bytes - 1) % PAGE + 1) as u32;
        let block = spec.block.max(1);
        Self {
            chunk,
            counts: vec![0; bits as usize],
            set: Vec::new(),
            pages: vec![Page::default(); bytes.div_ceil(PAGE) as usize],
            dirty: 0,
            last: rest.div_ceil(512).next_multiple_of(block),
            at: spec.at,
            by_submitter: spec.by_submitter,
            flight: 0,
            waits: None,
            held: Vec::new(),
            later: VecDeque::new(),
            turn: 0,
            since: Instant::ZERO,
            looked: Instant::ZERO,
            all_clean: true,
        }
    }

    fn page(bit: u32) -> usize {
        ((HEAD * 8 + u64::from(bit)) / (PAGE * 8)) as usize
    }

    fn bits(&self, from: u64, end: u64) -> std::ops::RangeInclusive<usize> {
        let last = self.counts.len().saturating_sub(1);
        let of = |sector: u64| ((sector / self.chunk) as usize).min(last);
        of(from)..=of(end.max(from + 1) - 1)
    }

    /// Sectors `from..end` are going to be written.
    fn begins(&mut self, now: Instant, from: u64, end: u64) {
        if self.all_clean && now.since(self.looked) >= SLEEP {
            // The write wakes the thread, which looks.
            self.looked = now;
        }
        for bit in self.bits(from, end) {
            let count = &mut self.counts[bit];
            if *count == 0 {
                self.set.push(bit as u32);
                let page = &mut self.pages[Self::page(bit as u32)];
                self.dirty += u32::from(!std::mem::replace(&mut page.dirty, true));
            }
            if *count < 2 {
                *count = 2;
            }
            *count += 1;
        }
    }

    /// And have been, on all members that should have them or not.
    fn ends(&mut self, from: u64, end: u64, everywhere: bool) {
        for bit in self.bits(from, end) {
            let count = &mut self.counts[bit];
            *count -= 1;
            if !everywhere {
                *count |= NEEDED;
            }
            if *count <= 2 {
                self.all_clean = false;
            }
        }
    }

    /// Whether a process is at an earlier turn than this one of his.
    fn is_at_another(&self, task: u16, turn: u64) -> bool {
        let other = |note: &Note| note.bio.origin.task == task && note.turn != turn;
        self.held.iter().any(other)
    }

    /// Whether what a process submits now is for a later turn.
    fn is_for_later(&self, task: u16) -> bool {
        let later = |note: &Note| note.bio.origin.task == task;
        self.is_at_another(task, self.turn) || self.later.iter().any(later)
    }

    /// The first that can have its turn now of what was given for later.
    fn next_turn(&mut self) -> Option<Note> {
        let mut seen = Vec::new();
        let at = self.later.iter().position(|note| {
            let task = note.bio.origin.task;
            let first = !seen.contains(&task);
            seen.push(task);
            first && !self.is_at_another(task, note.turn)
        })?;
        self.later.remove(at)
    }

    /// Whether writes wait now.
    const fn holds(&self) -> bool {
        self.waits.is_some() || self.dirty > 0
    }

    /// When the thread looks for what can be cleared.
    fn looks(&self) -> Option<Instant> {
        let free = !self.all_clean && self.flight == 0 && self.waits.is_none();
        free.then(|| self.looked + SLEEP)
    }

    /// The thread looks for what can be cleared; the pages that are to be written then.
    fn look(&mut self, now: Instant) -> Vec<usize> {
        (self.looked, self.all_clean) = (now, true);
        for page in &mut self.pages {
            page.due |= std::mem::take(&mut page.pending);
        }
        let (counts, pages) = (&mut self.counts, &mut self.pages);
        let mut clean = true;
        self.set.retain(|bit| {
            let count = &mut counts[*bit as usize];
            match *count {
                1 => {
                    *count = 0;
                    let page = &mut pages[Self::page(*bit)];
                    page.pending |= !page.due;
                    clean &= page.due;
                    return false;
                }
                2 => (*count, clean) = (1, false),
                _ => {}
            }
            true
        });
        self.all_clean = clean;
        // Those behind a dirty one are left to whoever writes that.
        let upto = self.pages.iter().position(|page| page.dirty);
        let upto = upto.unwrap_or(self.pages.len());
        let due = |index: &usize| self.pages[*index].due;
        let due: Vec<usize> = (0..upto).filter(due).collect();
        for index in &due {
            self.pages[*index].due = false;
        }
        due
    }

    /// The pages that must be written before what is announced is.
    fn announced(&mut self) -> Vec<usize> {
        let wanted = |index: &usize| self.pages[*index].dirty || self.pages[*index].due;
        let wanted: Vec<usize> = (0..self.pages.len()).filter(wanted).collect();
        for index in &wanted {
            self.pages[*index] = Page::default();
        }
        self.dirty = 0;
        wanted
    }

    fn sectors(&self, page: usize) -> u32 {
        if page + 1 == self.pages.len() {
            self.last
        } else {
            PAGE_SECTORS
        }
    }
}

//! Writes: into the cache, and from there to the disks.
//!
//! Whole groups (stripes that need no read for their parity) go to the disks as soon as they are
//! there. What is less waits for the rest, until the cache holds as much as may be dirty or nothing
//! has come for a while. While the host only reads, its reads have the disks to themselves: data that
//! a battery keeps can wait. The disks get it in the order of the sectors, from where the last run
//! ended.
use super::lines::BLOCK;
use super::task::Kind;
use super::{Cached, Due};
use crate::catalogue::controller::CacheModel;
use crate::fabric::plant::Plant;

/// Groups that are looked at for one that is whole. Assumed.
const LOOK: u32 = 16;

/// While the host's reads are at the disks it is not quiet: nanoseconds until that is looked at again, however short a quiet
/// time is. Assumed: less than any disk takes.
const DISK: u64 = 10_000;

/// What waits to be written.
#[derive(Clone, Debug)]
pub(super) struct Dirty {
    /// Lines with dirty blocks, in order.
    keys: Vec<u64>,
    /// Blocks that are dirty or on their way to the disks.
    blocks: u64,
    /// Blocks at which writes wait, and down to which anything is written then.
    high: u64,
    low: u64,
    /// Sector after the last run.
    position: u64,
    /// Sector after the last that came from the host.
    tail: u64,
    pressing: bool,
    draining: bool,
    last_write: u64,
    last_read: u64,
    /// Whether the end of the quiet time is on the agenda.
    armed: bool,
    /// Runs on their way.
    active: u32,
}

impl Dirty {
    pub(super) fn new(model: &CacheModel) -> Self {
        let share = |percent: u32| model.sectors / BLOCK * u64::from(percent) / 100;
        Self {
            keys: Vec::new(),
            blocks: 0,
            high: share(model.high).max(1),
            low: share(model.low),
            position: 0,
            tail: 0,
            pressing: false,
            draining: false,
            last_write: 0,
            last_read: 0,
            armed: false,
            active: 0,
        }
    }

    fn insert(&mut self, key: u64) {
        if self.keys.last().is_none_or(|last| *last < key) {
            return self.keys.push(key);
        }
        if let Err(place) = self.keys.binary_search(&key) {
            self.keys.insert(place, key);
        }
    }
}

impl Cached {
    /// Sectors that have been taken, and are not or not yet wholly on the disks.
    pub(in crate::fabric::volume) const fn dirty(&self) -> u64 {
        self.dirty.blocks * BLOCK
    }

    /// Writes come into the cache in their order, as far as there is room.
    pub(super) fn written(&mut self, now: u64, plant: &mut Plant) {
        while let Some(number) = self.writing.front().copied() {
            let bio = self.asked[number as usize].bio;
            let from = bio.lba.0 + self.asked[number as usize].moved;
            let at = self.take_in(from, bio.end());
            let asked = &mut self.asked[number as usize];
            if at > from {
                asked.moved += at - from;
                let card = &self.card;
                asked.moved_at = card.host(card.host_write, now, at - from, plant);
                (self.dirty.last_write, self.dirty.draining) = (now, false);
                self.dirty.tail = at;
                self.arm(now);
            }
            if at < bio.end() {
                self.dirty.pressing = true;
                break;
            }
            self.writing.pop_front();
            let ended = self.asked[number as usize].moved_at.max(now);
            self.agenda.push(ended, Due::Ended(number));
        }
        self.destage(now, plant);
    }

    /// Makes the sectors from `from` on dirty; up to where there was room.
    fn take_in(&mut self, from: u64, end: u64) -> u64 {
        let mut at = from;
        while at < end {
            let key = at / self.lines.size;
            let Some(index) = self.lines.obtain(key) else {
                break;
            };
            let stop = end.min((key + 1) * self.lines.size);
            let mask = self.lines.mask(key, at, stop);
            let line = self.lines.at_mut(index);
            let new = u64::from((mask & !line.dirty).count_ones());
            if self.dirty.blocks > 0 && self.dirty.blocks + new > self.dirty.high {
                self.lines.settle(index);
                break;
            }
            if line.dirty == 0 {
                self.dirty.insert(key);
            }
            line.dirty |= mask;
            line.valid |= mask;
            self.lines.settle(index);
            self.dirty.blocks += new;
            at = stop;
        }
        at
    }

    /// A write without write-back: it ends when the disks have it.
    pub(super) fn write_through(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let bio = self.asked[number as usize].bio;
        self.start(now, Kind::Through(number), bio.lba.0, bio.end(), plant);
    }

    /// A flush without write-back: the disks may hold writes back.
    pub(super) fn flush_disks(&mut self, now: u64, number: u32, plant: &mut Plant) {
        self.start(now, Kind::Flush(number), 0, 0, plant);
    }

    /// The host reads: what is dirty waits until it has been quiet for a while, unless it has to go.
    pub(super) fn gives_way(&mut self, now: u64) {
        self.dirty.last_read = now;
        if !self.dirty.keys.is_empty() {
            self.dirty.draining = false;
            self.arm(now);
        }
    }

    /// A read finds no line: what keeps them has to go.
    pub(super) fn make_room(&mut self, now: u64, plant: &mut Plant) {
        if !self.dirty.keys.is_empty() {
            self.dirty.pressing = true;
            self.destage(now, plant);
        }
    }

    /// Looks again after a quiet time.
    fn arm(&mut self, now: u64) {
        if !std::mem::replace(&mut self.dirty.armed, true) {
            let quiet = now.saturating_add(self.model.quiet.0);
            self.agenda.push(quiet, Due::Quiet);
        }
    }

    /// Nothing may have come for a while.
    pub(super) fn quiet(&mut self, now: u64, plant: &mut Plant) {
        self.dirty.armed = false;
        if self.dirty.keys.is_empty() {
            return;
        }
        let mut due = 0;
        if !self.reading.is_empty() {
            // One that waits for the disks is not over yet, and will not be at once.
            self.dirty.last_read = now;
            due = now.saturating_add(DISK);
        }
        let last = self.dirty.last_write.max(self.dirty.last_read);
        due = due.max(last.saturating_add(self.model.quiet.0));
        if now >= due {
            self.dirty.draining = true;
            self.destage(now, plant);
        } else {
            self.dirty.armed = true;
            self.agenda.push(due, Due::Quiet);
        }
    }

    /// Whether the host has lately read and not written, and nothing has to go.
    fn only_read(&self, now: u64) -> bool {
        let (dirty, quiet) = (&self.dirty, self.model.quiet.0);
        let lately = |at: u64| now < at.saturating_add(quiet);
        let must = dirty.pressing || dirty.draining;
        let reads = lately(dirty.last_read) || !self.reading.is_empty();
        !must && reads && !lately(dirty.last_write)
    }

    /// Runs go to the disks, as many as may be on their way.
    fn destage(&mut self, now: u64, plant: &mut Plant) {
        if self.only_read(now) {
            return;
        }
        while self.dirty.active < self.model.destages {
            let Some((from, to)) = self.pick() else {
                return;
            };
            self.lines.each(from, to, |line, mask| {
                line.dirty &= !mask;
                line.going |= mask;
            });
            for key in from / self.lines.size..to.div_ceil(self.lines.size) {
                let line = self.lines.find(key).map(|index| self.lines.at(index));
                if line.is_none_or(|line| line.dirty == 0)
                    && let Ok(place) = self.dirty.keys.binary_search(&key)
                {
                    self.dirty.keys.remove(place);
                }
            }
            self.dirty.position = to;
            self.dirty.active += 1;
            self.start(now, Kind::Destage, from, to, plant);
        }
    }

    /// The next run to write: the next whole group, or the next run of any length when it is urgent.
    fn pick(&self) -> Option<(u64, u64)> {
        let urgent = self.dirty.pressing || self.dirty.draining;
        let (mut at, mut wrapped) = (self.dirty.position, self.dirty.position == 0);
        for _ in 0..LOOK {
            let mut found = self.next_dirty(at);
            if found.is_none() && !wrapped {
                wrapped = true;
                found = self.next_dirty(0);
            }
            let from = found?;
            let group = from - from % self.group;
            let whole_end = (group + self.group).min(self.capacity.next_multiple_of(BLOCK));
            let to = self.dirty_until(from, whole_end);
            // The last block may be there in part: what completes it would make it dirty anew, and it alone would
            // keep its line.
            let coming = (whole_end - BLOCK + 1..whole_end).contains(&self.dirty.tail);
            if urgent || (from == group && to == whole_end && !coming) {
                return Some((from, to));
            }
            at = group + self.group;
        }
        None
    }

    /// The first dirty sector from `at` on whose block is not on its way.
    fn next_dirty(&self, at: u64) -> Option<u64> {
        let size = self.lines.size;
        let first = self.dirty.keys.partition_point(|key| *key < at / size);
        for key in &self.dirty.keys[first..] {
            let Some(index) = self.lines.find(*key) else {
                continue;
            };
            let line = self.lines.at(index);
            let mut blocks = line.dirty & !line.going;
            if *key == at / size {
                blocks &= self.lines.mask(*key, at, (*key + 1) * size);
            }
            if blocks != 0 {
                return Some(key * size + u64::from(blocks.trailing_zeros()) * BLOCK);
            }
        }
        None
    }

    /// The end of the dirty run from `at` on, at most `end`.
    fn dirty_until(&self, mut at: u64, end: u64) -> u64 {
        let size = self.lines.size;
        while at < end {
            let Some(index) = self.lines.find(at / size) else {
                break;
            };
            let line = self.lines.at(index);
            let first = (at % size) / BLOCK;
            let run = u64::from(((line.dirty & !line.going) >> first).trailing_ones());
            at += run * BLOCK;
            if run == 0 || !at.is_multiple_of(size) {
                break;
            }
        }
        at.min(end)
    }

    /// A run is on the disks.
    pub(super) fn destaged(&mut self, now: u64, (from, to): (u64, u64), plant: &mut Plant) {
        self.lines.each(from, to, |line, mask| line.going &= !mask);
        let dirty = &mut self.dirty;
        dirty.blocks = dirty
            .blocks
            .saturating_sub(to.div_ceil(BLOCK) - from / BLOCK);
        dirty.active -= 1;
        if dirty.blocks <= dirty.low {
            dirty.pressing = false;
        }
        if self.writing.is_empty() {
            self.destage(now, plant);
        } else {
            self.written(now, plant);
        }
        self.ask_again(now, plant);
    }
}

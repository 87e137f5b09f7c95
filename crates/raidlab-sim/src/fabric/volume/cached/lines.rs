//! Which blocks of the volume the cache holds, and what is to be done with them.
//!
//! A line is a run of sectors of the volume; what is valid, dirty or on its way is known by blocks of
//! 4 KiB, so that a write of less counts as a block. Lines with nothing to do are in a list, least
//! recently used last, and are taken from there when room is needed.

/// Sectors of a block.
pub(super) const BLOCK: u64 = 8;

const NONE: u32 = u32::MAX;

/// A line; bit i of each mask is block i.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    key: u64,
    /// In the cache.
    pub(super) valid: u32,
    /// To be written.
    pub(super) dirty: u32,
    /// Being read from the disks.
    pub(super) coming: u32,
    /// Being written to the disks.
    pub(super) going: u32,
    listed: bool,
    newer: u32,
    older: u32,
    /// Next line of the same bucket.
    chain: u32,
}

/// All lines of a cache. Memory is taken as lines come into use, and never more than the cache has.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Sectors of a line.
    pub(super) size: u64,
    most: usize,
    lines: Vec<Line>,
    buckets: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Lines {
    pub(super) fn new(sectors: u64, size: u64) -> Self {
        let most = (sectors / size).clamp(1, 1 << 30) as usize;
        Self {
            size,
            most,
            lines: Vec::new(),
            buckets: vec![NONE; most.next_power_of_two()],
            newest: NONE,
            oldest: NONE,
        }
    }

    fn bucket(&self, key: u64) -> usize {
        (raidlab_core::rng::mix(key) as usize) & (self.buckets.len() - 1)
    }

    /// The line of a key, if the cache has it.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let mut index = self.buckets[self.bucket(key)];
        while index != NONE {
            let line = &self.lines[index as usize];
            if line.key == key {
                return Some(index);
            }
            index = line.chain;
        }
        None
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Line {
        &self.lines[index as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Line {
        &mut self.lines[index as usize]
    }

    /// The line of a key, new if need be; `None` when every line has something to do.
    pub(super) fn obtain(&mut self, key: u64) -> Option<u32> {
        if let Some(index) = self.find(key) {
            return Some(index);
        }
        let index = if self.lines.len() < self.most {
            self.lines.push(Line::default());
            (self.lines.len() - 1) as u32
        } else {
            let index = self.oldest;
            if index == NONE {
                return None;
            }
            self.unlist(index);
            self.unchain(index);
            index
        };
        let bucket = self.bucket(key);
        self.lines[index as usize] = Line {
            key,
            chain: self.buckets[bucket],
            ..Line::default()
        };
        self.buckets[bucket] = index;
        Some(index)
    }

    /// A line was used or has changed: it is the newest of the list, or not in it.
    #[inline]
    pub(super) fn settle(&mut self, index: u32) {
        self.unlist(index);
        let newest = self.newest;
        let line = &mut self.lines[index as usize];
        if line.dirty | line.coming | line.going != 0 {
            return;
        }
        (line.listed, line.newer, line.older) = (true, NONE, newest);
        if newest == NONE {
            self.oldest = index;
        } else {
            self.lines[newest as usize].newer = index;
        }
        self.newest = index;
    }

    fn unlist(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        if !std::mem::replace(&mut line.listed, false) {
            return;
        }
        let (newer, older) = (line.newer, line.older);
        match newer {
            NONE => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
    }

    fn unchain(&mut self, index: u32) {
        let (key, next) = (self.at(index).key, self.at(index).chain);
        let bucket = self.bucket(key);
        if self.buckets[bucket] == index {
            self.buckets[bucket] = next;
            return;
        }
        let mut before = self.buckets[bucket];
        while self.at(before).chain != index {
            before = self.at(before).chain;
        }
        self.at_mut(before).chain = next;
    }

    /// The blocks of line `key` that the sectors from `from` to before `to` touch.
    #[inline]
    pub(super) fn mask(&self, key: u64, from: u64, to: u64) -> u32 {
        let start = key * self.size;
        let first = (from.max(start) - start) / BLOCK;
        let last = (to.min(start + self.size) - start).div_ceil(BLOCK);
        let ones = |n: u64| ((1_u64 << n) - 1) as u32;
        ones(last) & !ones(first)
    }

    /// Does something with the blocks of each line that the sectors from `from` to before `to` touch,
    /// of the lines that the cache has.
    pub(super) fn each(&mut self, from: u64, to: u64, mut change: impl FnMut(&mut Line, u32)) {
        for key in from / self.size..to.div_ceil(self.size) {
            if let Some(index) = self.find(key) {
                let mask = self.mask(key, from, to);
                change(&mut self.lines[index as usize], mask);
                self.settle(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is searched and reordered in the plainest way.
        #[test]
        fn the_least_recently_used_idle_line_is_taken(ops in prop::collection::vec((0_u64..40, 0_u8..4), 1..400)) {
            let mut lines = Lines::new(8 * 128, 128);
            let mut model: Vec<(u64, bool)> = Vec::new();
            for (key, what) in ops {
                let known = model.iter().position(|(k, _)| *k == key);
                if what == 0 {
                    prop_assert_eq!(lines.find(key).is_some(), known.is_some());
                    continue;
                }
                let got = lines.obtain(key);
                let dirty = what == 1;
                if known.is_none() && model.len() == 8 {
                    let Some(victim) = model.iter().position(|(_, dirty)| !dirty) else {
                        prop_assert!(got.is_none());
                        continue;
                    };
                    model.remove(victim);
                } else if let Some(known) = known {
                    model.remove(known);
                }
                let index = got.unwrap();
                lines.at_mut(index).dirty = u32::from(dirty);
                lines.settle(index);
                model.push((key, dirty));
                for (key, _) in &model {
                    prop_assert!(lines.find(*key).is_some());
                }
            }
        }
    }

    #[test]
    fn a_mask_has_the_blocks_that_are_touched() {
        let lines = Lines::new(1 << 20, 128);
        assert_eq!(lines.mask(0, 0, 128), 0xffff);
        assert_eq!(lines.mask(0, 0, 8), 1);
        assert_eq!(lines.mask(0, 7, 9), 3);
        assert_eq!(lines.mask(1, 0, 129), 1);
        assert_eq!(lines.mask(1, 248, 1000), 0x8000);
    }
}

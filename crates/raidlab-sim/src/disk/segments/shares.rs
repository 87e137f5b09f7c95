//! What of a buffer each of its segments has, where the drive divides it anew as readers come and go.
//!
//! Drives with buffers of more than a few MiB do not keep segments of one size: one reader gets nearly all of the buffer,
//! and several share it. How they find out how many there are is no one's publication; taken here is that a reader
//! is one of them until as much as the whole buffer was read by others since it was last served from it.

/// The shares, in parts of the size of the smallest segment, of which there are as many as segments.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// Parts that a segment has; 0: it is empty.
    parts: Vec<u8>,
    /// Sectors that had been asked for when a read was last served from it; 0: none was, or its reader is elsewhere now.
    served: Vec<u64>,
    /// First sector behind what a segment holds that is not being filled; 0 while it is.
    to: Vec<u64>,
    /// Sectors that were asked for ever.
    asked: u64,
    /// Sectors of the buffer.
    all: u64,
}

/// What a segment has to give up to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Everything.
    All(u8),
    /// What it holds before this sector.
    Before(u8, u64),
}

impl Shares {
    pub(super) fn new(count: u32, size: u64) -> Self {
        let count = count as usize;
        Self {
            parts: vec![0; count],
            served: vec![0; count],
            to: vec![0; count],
            asked: 0,
            all: count as u64 * size,
        }
    }

    /// Sectors of the buffer.
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    fn size(&self) -> u64 {
        self.all / (self.parts.len() as u64).max(1)
    }

    /// Whether its reader still comes, perhaps.
    fn is_live(&self, index: usize) -> bool {
        let served = self.served[index];
        self.parts[index] > 0 && served > 0 && self.asked - served < self.all
    }

    /// A read of so many sectors was served from the segment.
    pub(super) fn serve(&mut self, index: u8, sectors: u64) {
        self.asked += sectors;
        self.served[usize::from(index)] = self.asked;
    }

    /// The segment is taken for what begins at `start`, of which `sectors` are asked for. A reader that went past the
    /// end of another segment has left that one.
    pub(super) fn take(&mut self, index: u8, start: u64, sectors: u64) {
        let taken = usize::from(index);
        self.asked += sectors;
        (self.parts[taken], self.served[taken], self.to[taken]) = (1, 0, 0);
        for (to, served) in self.to.iter().zip(&mut self.served) {
            if *to > 0 && start.wrapping_sub(*to) < self.all {
                *served = 0;
            }
        }
    }

    /// The segment is filled no more, up to the sector `to`.
    pub(super) fn leave(&mut self, index: u8, to: u64) {
        self.to[usize::from(index)] = to;
    }

    /// The segment gets its reader's share, when it has less. Sectors that it can hold then.
    pub(super) fn grow(&mut self, index: u8) -> u64 {
        let own = usize::from(index);
        let others = (0..self.parts.len())
            .filter(|&other| other != own && self.is_live(other))
            .count();
        let share = (self.parts.len() / (1 + others)).max(1) as u8;
        self.parts[own] = self.parts[own].max(share);
        u64::from(self.parts[own]) * self.size()
    }

    /// Whether they have more than there is.
    pub(super) fn is_over(&self) -> bool {
        let sum: usize = self.parts.iter().map(|&parts| usize::from(parts)).sum();
        sum > self.parts.len()
    }

    /// Takes a part from another segment than `keep`: of those without a reader the one that was not used longest; else the
    /// largest. `latest` are all of them, the latest used first.
    pub(super) fn lose(&mut self, keep: u8, latest: impl Iterator<Item = u8>) -> Option<Loss> {
        let mut chosen: Option<(bool, u8, u8)> = None;
        for index in latest.filter(|&index| index != keep) {
            let at = usize::from(index);
            let parts = self.parts[at];
            if parts == 0 {
                continue;
            }
            // Without a reader before those with one, and among these by size; of equal ones the last.
            let rank = (!self.is_live(at), if self.is_live(at) { parts } else { 0 });
            if chosen.is_none_or(|(dead, size, _)| rank >= (dead, size)) {
                chosen = Some((rank.0, rank.1, index));
            }
        }
        let (_, _, index) = chosen?;
        let at = usize::from(index);
        self.parts[at] -= 1;
        if self.parts[at] == 0 || self.to[at] == 0 {
            self.parts[at] = 0;
            return Some(Loss::All(index));
        }
        let held = u64::from(self.parts[at]) * self.size();
        Some(Loss::Before(index, self.to[at].saturating_sub(held)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MOST_SEGMENTS, Segments};
    use proptest::prelude::*;

    /// Sectors of the smallest segment.
    const SIZE: u64 = 1024;

    /// A reader of `sectors` from `start` on, one after the other, as the disk tells of it: how much it can hold at the end.
    fn reader(segments: &mut Segments, start: u64, reads: u64, sectors: u64) -> (u8, u64) {
        let index = segments.take(start, sectors).expect("a segment");
        let mut held = segments.size();
        for _ in 0..reads {
            segments.touch(index);
            held = segments.serve(index, sectors, true);
        }
        let to = start + reads * sectors + held;
        segments.leave(index, to - held, (0, to), || to);
        (index, held)
    }

    #[test]
    fn one_reader_has_all_and_of_two_each_has_half() {
        let mut segments = Segments::new(16, SIZE, true);
        assert_eq!(reader(&mut segments, 0, 1, 128).1, 16 * SIZE);
        assert_eq!(reader(&mut segments, 1 << 30, 1, 128).1, 8 * SIZE);
        assert_eq!(reader(&mut segments, 2 << 30, 1, 128).1, 5 * SIZE);
        // Those that no reader has come back to for a whole buffer leave all.
        assert_eq!(
            reader(&mut segments, 3 << 30, 16 * SIZE / 128, 128).1,
            16 * SIZE
        );
    }

    #[test]
    fn a_reader_that_went_on_is_one_reader() {
        let mut segments = Segments::new(16, SIZE, true);
        let mut start = 0;
        for _ in 0..5 {
            let (_, held) = reader(&mut segments, start, 1, 128);
            assert_eq!(held, 16 * SIZE);
            start += 128 + held + SIZE;
        }
    }

    #[test]
    fn reads_here_and_there_leave_a_reader_what_it_has() {
        let mut segments = Segments::new(16, SIZE, true);
        let (stream, held) = reader(&mut segments, 0, 1, 128);
        for i in 0..100_u64 {
            let index = segments.take((i + 1) << 30, 8).expect("a segment");
            segments.fill(index, u64::MAX);
            // It is asked for now and then.
            if i % 8 == 7 {
                let end = segments.list[usize::from(stream)].filled;
                assert_eq!(
                    segments.find(held + 127, end),
                    Some(stream),
                    "after {i} reads"
                );
                segments.touch(stream);
                segments.serve(stream, 8, false);
            }
        }
    }

    #[test]
    fn segments_of_one_size_stay_so() {
        let mut segments = Segments::new(16, SIZE, false);
        assert_eq!(reader(&mut segments, 0, 1000, 128).1, SIZE);
    }

    proptest! {
        /// Whatever comes, they never have more than there is, and whoever was just given a part has it.
        #[test]
        fn the_buffer_is_never_overbooked(
            count in 1_u32..=MOST_SEGMENTS,
            steps in prop::collection::vec((0_u8..3, 0_u64..1 << 20, 1_u64..2048, any::<bool>()), 1..300),
        ) {
            let mut segments = Segments::new(count, SIZE, true);
            let mut last = None;
            for (step, start, sectors, filling) in steps {
                match (step, last) {
                    (1, Some(index)) => {
                        let held = segments.serve(index, sectors, filling);
                        prop_assert!((SIZE..=u64::from(count) * SIZE).contains(&held));
                    }
                    (2, Some(index)) => segments.leave(index, start, (0, u64::MAX), || start + sectors),
                    _ => last = segments.take(start, sectors),
                }
                let shares = segments.shares.as_ref().expect("shares");
                prop_assert!(!shares.is_over());
                if let Some(index) = last {
                    prop_assert!(shares.parts[usize::from(index)] > 0);
                }
            }
        }
    }
}

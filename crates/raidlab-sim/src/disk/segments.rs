//! The segmented read cache of a hard disk.
//!
//! A segment holds a run of sectors that grows at its end while the disk reads ahead into it. How far
//! it has grown is kept as a media coordinate, so that asking "is it there yet?" needs no division.
mod shares;

use shares::{Loss, Shares};

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// First logical sector held.
    pub(super) start: u64,
    /// Coordinate up to which it is filled; 0 when empty.
    pub(super) filled: u64,
    /// Coordinate up to which the filling is in the disk's counters, because the host has asked for it.
    booked: u64,
}

/// Most segments that a drive can have.
pub(super) const MOST_SEGMENTS: u32 = 64;

/// The segments, with the order of their last use.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    /// For each segment the low word of its start in units of at least a segment, apart, so that a
    /// miss takes few instructions.
    marks: Vec<u16>,
    /// How many of the marks there are in each class, of many more classes than marks: a miss mostly takes
    /// no look at the marks either.
    classes: Box<[u8]>,
    /// Bits of that unit.
    shift: u32,
    /// Indices in the order of last use, the latest at `first`, the others behind it and then from the
    /// beginning on.
    order: Vec<u8>,
    first: usize,
    /// Sectors that a segment can hold, the smallest where they have shares.
    size: u64,
    /// Sectors that the largest can hold.
    most: u64,
    /// Where the drive divides its buffer anew as readers come and go.
    shares: Option<Box<Shares>>,
}

impl Segments {
    pub(super) fn new(count: u32, size: u64, adaptive: bool) -> Self {
        let count = count.min(MOST_SEGMENTS);
        let shares = adaptive.then(|| Box::new(Shares::new(count, size)));
        let most = shares.as_ref().map_or(size, |shares| shares.all());
        Self {
            list: vec![Segment::default(); count as usize],
            marks: vec![0; count as usize],
            classes: classes(count),
            shift: most.max(1).next_power_of_two().trailing_zeros(),
            order: (0..count as u8).collect(),
            first: 0,
            size,
            most,
            shares,
        }
    }

    /// Sectors that a segment can hold when it is taken.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether any segment begins close enough before `lba` to hold it, perhaps; false for certain.
    #[inline]
    pub(super) fn may_hold(&self, lba: u64) -> bool {
        let mark = self.mark(lba);
        let there = self.classes[self.class(mark)] | self.classes[self.class(mark.wrapping_sub(1))];
        there != 0 && self.is_marked(mark)
    }

    #[inline(never)]
    fn is_marked(&self, mark: u16) -> bool {
        self.marks
            .iter()
            .fold(false, |any, &at| any | (mark.wrapping_sub(at) < 2))
    }

    #[inline]
    fn class(&self, mark: u16) -> usize {
        usize::from(mark) & (self.classes.len() - 1)
    }

    #[inline]
    fn mark(&self, lba: u64) -> u16 {
        (lba >> self.shift) as u16
    }

    #[inline]
    fn set_mark(&mut self, index: u8, start: u64) {
        let mark = self.mark(start);
        let before = std::mem::replace(&mut self.marks[usize::from(index)], mark);
        let (old, new) = (self.class(before), self.class(mark));
        self.classes[old] -= 1;
        self.classes[new] += 1;
    }

    /// A segment that holds the sectors from `lba` up to the coordinate `end`, the active one apart.
    pub(super) fn find(&self, lba: u64, end: u64) -> Option<u8> {
        let mark = self.mark(lba);
        let held = self
            .marks
            .iter()
            .zip(&self.list)
            .position(|(&at, segment)| {
                // What begins elsewhere is told by the marks alone, which lie together.
                mark.wrapping_sub(at) < 2
                    && segment.start <= lba
                    && lba - segment.start < self.most
                    && end <= segment.filled
            });
        held.map(|index| index as u8)
    }

    /// Makes `index` the latest used.
    #[inline]
    pub(super) fn touch(&mut self, index: u8) {
        if self.order.get(self.first) != Some(&index) {
            self.put_first(index);
        }
    }

    fn put_first(&mut self, index: u8) {
        self.order.rotate_left(self.first);
        self.first = 0;
        if let Some(at) = self.order.iter().position(|&i| i == index) {
            self.order[..=at].rotate_right(1);
        }
    }

    /// A read of so many sectors was served from the segment, which is being filled if `filling`: sectors that it can hold
    /// from now on.
    #[inline]
    pub(super) fn serve(&mut self, index: u8, sectors: u64, filling: bool) -> u64 {
        if self.shares.is_none() {
            return self.size;
        }
        self.serve_shared(index, sectors, filling)
    }

    #[inline(never)]
    fn serve_shared(&mut self, index: u8, sectors: u64, filling: bool) -> u64 {
        let Some(shares) = &mut self.shares else {
            return self.size;
        };
        shares.serve(index, sectors);
        if !filling {
            return self.size;
        }
        let held = shares.grow(index);
        self.make_room(index);
        held
    }

    /// Others give up what `keep` has been given.
    fn make_room(&mut self, keep: u8) {
        while let Some(shares) = self.shares.as_mut().filter(|shares| shares.is_over()) {
            let (late, early) = self.order.split_at(self.first);
            let latest = early.iter().chain(late).copied();
            match shares.lose(keep, latest) {
                Some(Loss::All(index)) => self.list[usize::from(index)].filled = 0,
                Some(Loss::Before(index, start)) => {
                    let segment = &mut self.list[usize::from(index)];
                    if start > segment.start {
                        segment.start = start;
                        self.set_mark(index, start);
                    }
                }
                None => return,
            }
        }
    }

    /// Takes the segment that was not used longest for data from `start`, of which `sectors` are asked for.
    #[inline]
    pub(super) fn take(&mut self, start: u64, sectors: u64) -> Option<u8> {
        // The last is the first now, which moves none of the others.
        let before = self.first.checked_sub(1);
        self.first = before.or(self.order.len().checked_sub(1))?;
        let index = self.order[self.first];
        self.list[usize::from(index)] = Segment {
            start,
            filled: 0,
            booked: 0,
        };
        self.set_mark(index, start);
        if let Some(shares) = &mut self.shares {
            shares.take(index, start, sectors);
            self.make_room(index);
        }
        Some(index)
    }

    #[inline]
    pub(super) fn fill(&mut self, index: u8, to: u64) {
        let segment = &mut self.list[usize::from(index)];
        (segment.filled, segment.booked) = (to, to);
    }

    /// The host has asked for what lies between two coordinates of a segment: how much of that had not been asked for before.
    #[inline]
    pub(super) fn book(&mut self, index: u8, from: u64, to: u64) -> u64 {
        let segment = &mut self.list[usize::from(index)];
        let new = to.saturating_sub(segment.booked.max(from));
        segment.booked = segment.booked.max(to);
        new
    }

    /// The segment is filled up to the coordinate `to`, of which the host has asked for what lies before `booked`, and has
    /// perhaps grown so far that its first sectors, those before `start`, were overwritten. `end` tells the sector behind the
    /// last one.
    // Part of the caller, which is on the path of every read.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        index: u8,
        start: u64,
        (booked, to): (u64, u64),
        end: impl FnOnce() -> u64,
    ) {
        if let Some(shares) = &mut self.shares {
            shares.leave(index, end());
        }
        let segment = &mut self.list[usize::from(index)];
        (segment.filled, segment.booked) = (to, booked);
        if start > segment.start {
            segment.start = start;
            self.set_mark(index, start);
        }
    }
}

/// The classes of `count` marks of 0: at least 32 for each.
fn classes(count: u32) -> Box<[u8]> {
    let mut classes = vec![0; (32 * count.max(1)).next_power_of_two() as usize];
    classes[0] = count as u8;
    classes.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is passed over is certainly not there.
        #[test]
        fn what_a_segment_holds_is_never_passed_over(
            starts in prop::collection::vec(0_u64..1 << 40, 1..100),
            count in 1_u32..=MOST_SEGMENTS,
            size in 1_u64..5000,
            offset: u64,
            adaptive: bool,
        ) {
            let mut segments = Segments::new(count, size, adaptive);
            for (number, start) in starts.iter().enumerate() {
                let index = segments.take(*start, 8).expect("a segment");
                segments.fill(index, u64::MAX);
                if number % 3 == 0 {
                    segments.leave(index, start + size / 2, (0, u64::MAX), || start + size);
                }
                if number % 2 == 0 {
                    segments.serve(index, 8, number % 4 == 0);
                }
            }
            for start in &starts {
                let lba = start + offset % size;
                if segments.find(lba, 1).is_some() {
                    prop_assert!(segments.may_hold(lba));
                }
            }
            for lba in starts.iter().flat_map(|start| [start.saturating_sub(1), *start, start + offset % (3 * size)]) {
                let holds = |of: &Segment| of.start <= lba && lba - of.start < segments.most && 1 <= of.filled;
                let looked = segments.list.iter().position(holds);
                prop_assert_eq!(segments.find(lba, 1).map(usize::from), looked);
            }
            // The latest is there for certain, so that the test cannot pass by finding nothing.
            let latest = starts[starts.len() - 1];
            prop_assert!(segments.find(latest + size - 1, 1).is_some());
        }
    }
}

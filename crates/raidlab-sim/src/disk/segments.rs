//! The segmented read cache of a hard disk.
//!
//! A segment holds a run of sectors that grows at its end while the disk reads ahead into it. How far
//! it has grown is kept as a media coordinate, so that asking "is it there yet?" needs no division.

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// First logical sector held.
    pub(super) start: u64,
    /// Coordinate up to which it is filled; 0 when empty.
    pub(super) filled: u64,
}

/// Most segments that a drive can have.
pub(super) const MOST_SEGMENTS: u32 = 64;

/// The segments, with the order of their last use.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    /// Low words of the starts, apart, so that a miss looks at few cache lines.
    starts: Vec<u32>,
    /// Indices in the order of last use, the latest first.
    order: Vec<u8>,
    /// Sectors that a segment can hold.
    size: u64,
}

impl Segments {
    pub(super) fn new(count: u32, size: u64) -> Self {
        let count = count.min(MOST_SEGMENTS);
        Self {
            list: vec![Segment::default(); count as usize],
            starts: vec![0; count as usize],
            order: (0..count as u8).collect(),
            size,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    #[inline]
    pub(super) fn get(&self, index: u8) -> Segment {
        self.list
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

    /// Whether any segment begins close enough before `lba` to hold it.
    #[inline]
    pub(super) fn may_hold(&self, lba: u64) -> bool {
        let (low, size) = (lba as u32, self.size.min(u64::from(u32::MAX)) as u32);
        self.starts
            .iter()
            .fold(false, |any, start| any | (low.wrapping_sub(*start) < size))
    }

    /// A segment that holds the sectors from `lba` up to the coordinate `end`, the active one apart.
    pub(super) fn find(&self, lba: u64, end: u64) -> Option<u8> {
        (0..self.list.len() as u8).find(|&index| {
            let segment = self.get(index);
            segment.start <= lba && lba - segment.start < self.size && end <= segment.filled
        })
    }

    /// Makes `index` the latest used.
    #[inline]
    pub(super) fn touch(&mut self, index: u8) {
        if self.order.first() == Some(&index) {
            return;
        }
        if let Some(at) = self.order.iter().position(|&i| i == index) {
            self.order[..=at].rotate_right(1);
        }
    }

    /// Takes the segment that was not used longest for data from `start`.
    #[inline]
    pub(super) fn take(&mut self, start: u64) -> Option<u8> {
        let index = self.order.pop()?;
        self.order.insert(0, index);
        self.list[usize::from(index)] = Segment { start, filled: 0 };
        self.starts[usize::from(index)] = start as u32;
        Some(index)
    }

    #[inline]
    pub(super) fn fill(&mut self, index: u8, to: u64) {
        self.list[usize::from(index)].filled = to;
    }

    /// The segment has grown so far that its first sectors were overwritten.
    #[inline]
    pub(super) fn advance(&mut self, index: u8, start: u64) {
        let segment = &mut self.list[usize::from(index)];
        if start > segment.start {
            segment.start = start;
            self.starts[usize::from(index)] = start as u32;
        }
    }
}

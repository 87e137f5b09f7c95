//! Times inside the fabric: plain nanoseconds, `NEVER` for what does not come by itself.
use super::slab::Slab;
use raidlab_core::units::SECTOR;

/// Later than anything.
pub(super) const NEVER: u64 = u64::MAX;

/// Time of a sector at `rate` bytes a second in 2^-20 ns; 0 for rate 0.
pub(super) fn sector_units(rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    ((u128::from(SECTOR) * 1_000_000_000) << 20).div_ceil(u128::from(rate)) as u64
}

/// Things to come, the next one last; ties in the order in which they became known.
#[derive(Clone, Debug)]
pub(super) struct Agenda<T> {
    list: Vec<(u64, T)>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

impl<T> Agenda<T> {
    #[inline]
    pub(super) fn push(&mut self, at: u64, what: T) {
        let mut place = self.list.len();
        while place > 0 && self.list[place - 1].0 <= at {
            place -= 1;
        }
        self.list.insert(place, (at, what));
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.list.last().map_or(NEVER, |(at, _)| *at)
    }

    /// The next one that has come by `now`, with its time.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, T)> {
        self.list.pop_if(|(at, _)| *at <= now)
    }
}

/// What a line remembers of a request that its disk has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) id: u64,
    pub(super) sectors: u32,
    pub(super) kind: raidlab_core::op::BlockKind,
}

/// The requests that a disk has, by the number it was given.
pub(super) type Flights = Slab<Flight>;

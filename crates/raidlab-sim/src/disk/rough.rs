//! How soon a sector can be reached, roughly: a bound from below and how sure it is, in a few integer operations and
//! one look at a table. Enough to tell which of some requests is reached first, but for a few in a hundred.
use super::rotation::{REVOLUTION, Spindle};
use super::seek::SeekCurve;

/// Parts of a turn that rough angles are counted in, as bits: 8 ns each for a disk of 7200 rpm.
const TURN_BITS: u32 = 20;
const TURN: u32 = 1 << TURN_BITS;
/// Stretches of distances, inwards and outwards, that have an entry each.
const STRETCHES: usize = 4096;
/// Parts by which a bound begins earlier than the arm can arrive: more than angles and times are rounded by.
const GUARD: u32 = 4;
/// Parts by which bounds must lie apart to tell which of what they bound is less: more than twice what they may be
/// too high.
const APART: u64 = 4;
/// 2^103 over a revolution: an angle times it, over 2^83, is in parts of a turn.
const RECIPROCAL: u64 = ((1_u128 << 103) / REVOLUTION as u128) as u64;

/// Parts of a turn in `angle`, turns left out: at most one too few.
#[inline]
pub(super) fn parts(angle: u64) -> u32 {
    let turns = (u128::from(angle) * u128::from(RECIPROCAL)) >> (103 - TURN_BITS);
    turns as u32 % TURN
}

/// Rough positioning times of a disk.
#[derive(Clone, Debug)]
pub(super) struct Rough {
    /// For each stretch of distances how far the disk turns in the shortest seek and in [`offset`](Self::offset); 0 where
    /// nothing is told. Those outwards count down from the end.
    least: Box<[u32; STRETCHES]>,
    /// Bits of a stretch.
    shift: u32,
    /// A turn, and how far the disk turns while a write settles, or one part more.
    offset: u32,
}

/// When a sector is reached at the soonest, in parts of a turn from [`offset`](Rough::offset) and [`GUARD`] before the
/// present.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    /// That time, but for rounding. Within a turn where nothing is told of it, and otherwise later.
    soonest: u32,
    /// Of that, waiting for the sector.
    wait: u32,
    stretch: usize,
}

impl Rough {
    /// For a disk of `cylinders` whose writes settle for `settle` nanoseconds. Nothing is told of `near` cylinders and
    /// fewer.
    pub(super) fn new(
        seek: &SeekCurve,
        cylinders: u32,
        spindle: &Spindle,
        settle: u64,
        near: u32,
    ) -> Self {
        let longest = cylinders.max(2) - 1;
        let half = STRETCHES as u32 / 2;
        let mut shift = 0;
        while longest >> shift >= half - 1 {
            shift += 1;
        }
        let turned = |nanos: u64| {
            let parts = u128::from(spindle.units(nanos)) << TURN_BITS;
            (parts / u128::from(REVOLUTION)) as u32
        };
        let offset = TURN + turned(settle) + 1;
        let entry = |distance: u32| {
            if distance <= near {
                return 0;
            }
            offset + turned(seek.nanos(distance.min(longest)))
        };
        let mut least = Box::new([0; STRETCHES]);
        for stretch in 1..half {
            least[stretch as usize] = entry(stretch << shift);
            least[STRETCHES - stretch as usize] = entry(((stretch - 1) << shift) + 1);
        }
        Self {
            least,
            shift,
            offset,
        }
    }

    /// What a write's bound begins later by: one less, so that it is not above what it bounds.
    pub(super) fn settling(&self) -> u32 {
        self.offset - TURN - 1
    }

    /// Where bounds begin when `angle`, turns left out, is under the heads.
    #[inline]
    pub(super) fn begin(&self, angle: u64) -> u32 {
        parts(angle).wrapping_sub(self.offset).wrapping_sub(GUARD)
    }

    /// The bound for a sector at the parts `at` of a turn when the arm goes `from` one cylinder `to` another and
    /// bounds [`begin`](Self::begin) at `begin`.
    #[inline(always)]
    pub(super) fn bound(
        &self,
        begin: u32,
        (from, to): (u32, u32),
        at: u32,
        settling: u32,
    ) -> Bound {
        let distance = to.wrapping_sub(from).cast_signed();
        let stretch = (distance >> self.shift).cast_unsigned() as usize % STRETCHES;
        let least = self.least[stretch] + settling;
        let wait = at.wrapping_sub(begin).wrapping_sub(least) % TURN;
        Bound {
            soonest: least + wait,
            wait,
            stretch,
        }
    }

    /// Whether the sector is reached at its bound for certain, but for rounding: the longest seek of its
    /// stretch ends before.
    #[inline]
    pub(super) fn is_sure(&self, bound: &Bound) -> bool {
        let stretch = bound.stretch;
        // The stretch beyond it.
        let next = if stretch < STRETCHES / 2 {
            stretch + 1
        } else {
            stretch - 1
        };
        let least = self.least[stretch];
        let spread = self.least[next % STRETCHES].wrapping_sub(least);
        least > 0 && bound.wait > spread + (2 * GUARD + 2)
    }
}

/// The lowest bound of some, whose it is, and the one above it.
#[derive(Clone, Copy)]
pub(super) struct Lowest {
    first: u64,
    second: u64,
}

impl Lowest {
    pub(super) const NONE: Self = Self {
        first: u64::MAX,
        second: u64::MAX,
    };

    #[inline(always)]
    pub(super) fn add(&mut self, bound: &Bound, index: usize) {
        let key = u64::from(bound.soonest) << 32 | index as u64;
        self.second = self.second.min(self.first.max(key));
        self.first = self.first.min(key);
    }

    /// Whose the lowest is.
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.first as u32 as usize
    }

    /// Whether it is so much lower than the others that no rounding can tell otherwise.
    #[inline]
    pub(super) fn is_apart(&self) -> bool {
        (self.second >> 32) - (self.first >> 32) > APART
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::seek::SeekSpec;
    use proptest::prelude::*;
    use raidlab_core::time::Span;

    proptest! {
        #[test]
        fn parts_are_at_most_one_too_few(turns in 0_u64..1 << 20, angle in 0..REVOLUTION) {
            let exact = (u128::from(angle) << TURN_BITS) / u128::from(REVOLUTION);
            let less = exact as i64 - i64::from(parts(turns * REVOLUTION + angle));
            prop_assert!(less == 0 || less == 1 || less == 1 - i64::from(TURN), "{less}");
        }

        /// Reckoned in floating point, to within the rounding that is allowed for.
        #[test]
        fn no_sector_is_reached_before_its_bound_nor_after_it_when_that_is_sure(
            cylinders in 2000_u32..500_000, ends in prop::array::uniform2(0.0..1.0_f64), settle in 0_u64..2_000_000,
            angles in prop::array::uniform2(0..REVOLUTION), write: bool) {
            let spindle = Spindle::new(72_000, 0);
            let points = vec![(1, Span(600_000)), (cylinders / 3, Span(8_000_000)), (cylinders, Span(16_000_000))];
            let seek = SeekCurve::new(&SeekSpec::Table(points), cylinders).unwrap();
            let rough = Rough::new(&seek, cylinders, &spindle, settle, 1);
            let way = ends.map(|end| (end * f64::from(cylinders)) as u32);
            let settling = if write { rough.settling() } else { 0 };
            let bound = rough.bound(rough.begin(angles[0]), (way[0], way[1]), parts(angles[1]), settling);
            let distance = way[0].abs_diff(way[1]);
            let moved = seek.nanos(distance) + if write && distance > 0 { settle } else { 0 };
            let part = REVOLUTION as f64 / f64::from(TURN);
            let mut reached = (angles[1] as f64 - angles[0] as f64) / part;
            while reached < spindle.units(moved) as f64 / part {
                reached += f64::from(TURN);
            }
            let from = f64::from(bound.soonest) - f64::from(rough.offset + GUARD);
            let late = reached - from;
            let rounding = f64::from(GUARD) / 2.0;
            prop_assert!(late > -rounding, "{late}");
            prop_assert!(!rough.is_sure(&bound) || late < rounding, "{late}");
        }
    }
}

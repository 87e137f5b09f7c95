//! Rotation in exact rational arithmetic.
//!
//! An angle is counted in units of 1/[`REVOLUTION`] turn. A disk of `n` tenths of a revolution a
//! minute advances by exactly `n` units a nanosecond, because a minute has 6e10 ns and a turn
//! 6e11 units. So the phase at any time is an integer, and no error adds up however long a run is.

/// Units of angle in one revolution.
pub const REVOLUTION: u64 = 600_000_000_000;

/// Below it a division by the speed is one multiplication: 2^46 units x 2^18 tenths of a rpm stay
/// below 2^64, so the reciprocal is exact.
const RECIPROCAL_LIMIT: u64 = 1 << 46;

/// Fastest spindle that the arithmetic carries, in tenths of a revolution a minute.
pub const FASTEST: u32 = 200_000;

/// A spindle: its speed, and the angle that was under the heads at time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spindle {
    /// Units of angle a nanosecond: tenths of a revolution a minute.
    speed: u64,
    /// ceil(2^64 / speed).
    reciprocal: u64,
    /// Angle at time zero.
    phase: u64,
    /// Below so many nanoseconds (25 hours for the fastest) the angle passed fits in 64 bits.
    small: u64,
}

impl Spindle {
    /// A spindle of `decirpm` tenths of a revolution a minute (1 to [`FASTEST`]), with `phase` units
    /// of angle under the heads at time zero.
    #[must_use]
    pub fn new(decirpm: u32, phase: u64) -> Self {
        let speed = u64::from(decirpm.clamp(2, FASTEST));
        Self {
            speed,
            reciprocal: u64::MAX / speed + 1,
            phase: phase % REVOLUTION,
            small: (u64::MAX - REVOLUTION) / speed,
        }
    }

    /// The angle under the heads `t` nanoseconds after time zero.
    #[must_use]
    #[inline]
    pub fn angle(&self, t: u64) -> u64 {
        self.passed(t) % REVOLUTION
    }

    /// The same with some whole turns added.
    #[inline]
    pub(super) fn passed(&self, t: u64) -> u64 {
        // Whole minutes count nothing; leaving them out is only needed where the product is too large.
        let t = if t < self.small { t } else { t % REVOLUTION };
        t * self.speed + self.phase
    }

    /// Angle passed in `ns` nanoseconds, which may be many turns; saturates.
    #[must_use]
    #[inline]
    pub fn units(&self, ns: u64) -> u64 {
        ns.saturating_mul(self.speed)
    }

    /// Angle passed in `ns` nanoseconds, fewer than 2^45 (nine hours).
    #[must_use]
    #[inline]
    pub(super) fn turned(&self, ns: u64) -> u64 {
        ns * self.speed
    }

    /// Nanoseconds until `units` of angle have passed, rounded up: a sector is never met early.
    #[must_use]
    #[inline]
    pub fn nanos(&self, units: u64) -> u64 {
        if units < RECIPROCAL_LIMIT {
            let rounded = units + (self.speed - 1);
            ((u128::from(rounded) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            units.div_ceil(self.speed)
        }
    }

    /// When the coordinate `x`, at `angle` within a turn, is first under the head from time `t` on, and the
    /// coordinate that is exactly under it then: `x` plus less than two nanoseconds of angle, so that no rounding adds
    /// up over transfers that follow each other.
    #[must_use]
    #[inline]
    pub fn meet(&self, t: u64, x: u64, angle: u64) -> (u64, u64) {
        let (from, to) = (self.angle(t), angle);
        let gap = if to >= from {
            to - from
        } else {
            to + REVOLUTION - from
        };
        if gap > REVOLUTION - self.tolerance() {
            return (t, x + (REVOLUTION - gap));
        }
        let wait = self.nanos(gap);
        (t + wait, x + (wait * self.speed - gap))
    }

    /// Angle to turn from time `t` until the angle `x` is under the heads. What was passed less than
    /// a nanosecond ago counts as not yet passed, since times are rounded up to whole nanoseconds.
    #[must_use]
    #[inline]
    pub fn until(&self, t: u64, x: u64) -> u64 {
        self.gap(self.angle(t), x % REVOLUTION)
    }

    /// Angle from `from` forward to `to`, both below [`REVOLUTION`], with the tolerance of
    /// [`until`](Self::until).
    #[must_use]
    #[inline]
    pub fn gap(&self, from: u64, to: u64) -> u64 {
        let gap = if to >= from {
            to - from
        } else {
            to + REVOLUTION - from
        };
        if gap > REVOLUTION - self.tolerance() {
            0
        } else {
            gap
        }
    }

    /// Angle that may have passed and still counts as not passed: two nanoseconds of turning.
    #[must_use]
    #[inline]
    pub fn tolerance(&self) -> u64 {
        2 * self.speed
    }

    /// One revolution in nanoseconds, rounded up.
    #[must_use]
    pub fn revolution(&self) -> u64 {
        REVOLUTION.div_ceil(self.speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_minute_is_a_whole_number_of_turns() {
        let spindle = Spindle::new(72_000, 12_345);
        let minute = 60_000_000_000;
        for t in [0, 1, 8_333_333, 1_000_000_007] {
            assert_eq!(spindle.angle(t), spindle.angle(t + minute));
            assert_eq!(spindle.angle(t), spindle.angle(t + 1_000_000 * minute));
            // On both sides of where whole turns are left out first.
            for near in [spindle.small - 1, spindle.small] {
                let turned = u128::from(near + t) * 72_000 + 12_345;
                let angle = (turned % u128::from(REVOLUTION)) as u64;
                assert_eq!(spindle.angle(near + t), angle);
            }
        }
        assert_eq!(spindle.revolution(), 8_333_334);
    }

    proptest! {
        #[test]
        fn the_reciprocal_divides_exactly(units in 0_u64..1 << 50, decirpm in 30_000_u32..=FASTEST) {
            let spindle = Spindle::new(decirpm, 0);
            prop_assert_eq!(spindle.nanos(units), units.div_ceil(u64::from(decirpm)));
        }

        #[test]
        fn waiting_brings_the_angle(t in 0_u64..1 << 60, x in 0_u64..REVOLUTION, phase: u64) {
            let spindle = Spindle::new(54_000, phase);
            let then = t + spindle.nanos(spindle.until(t, x));
            prop_assert!(spindle.until(then, x) == 0);
        }
    }
}

//! Divisions by constants without dividing.

/// Division by a constant as one multiplication: exact for dividends below 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    pub(super) by: u32,
    reciprocal: u64,
}

impl Divisor {
    pub(super) fn new(by: u32) -> Self {
        Self {
            by,
            // ceil(2^64 / by); 2^64 itself, for a divisor of 1, does not fit and is not used.
            reciprocal: (u64::MAX / u64::from(by)).wrapping_add(1),
        }
    }

    #[inline]
    pub(super) fn split(self, n: u32) -> (u32, u32) {
        if self.by == 1 {
            return (n, 0);
        }
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u32;
        (quotient, n - quotient * self.by)
    }
}

/// The same for dividends of 64 bits: exact, with one step of correction.
#[derive(Clone, Copy, Debug)]
pub(in crate::disk) struct Stride {
    pub(in crate::disk) by: u64,
    /// floor((2^64 - 1) / by), so that the product falls short of the quotient by less than 1.
    reciprocal: u64,
}

impl Stride {
    pub(in crate::disk) fn new(by: u64) -> Self {
        let reciprocal = u64::MAX / by;
        Self { by, reciprocal }
    }

    #[inline]
    pub(in crate::disk) fn split(self, n: u64) -> (u64, u64) {
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = n - quotient * self.by;
        let more = rest >= self.by;
        let off = if more { self.by } else { 0 };
        (quotient + u64::from(more), rest - off)
    }
}

//! Where a value is counted: buckets as wide as a power of two, each in so many equal parts.
//!
//! They are those of an HdrHistogram (Tene) of two significant figures from 1 to an hour in nanoseconds, and a
//! test holds them to one. They are reckoned here because recording is on the path of every operation: with
//! bounds that are constants it takes few instructions.

/// Values below it have a bucket each: the first power of two that tells two significant figures apart.
const EXACT: u64 = 256;
/// Parts of each power of two from there on.
const PARTS: usize = EXACT as usize / 2;
/// Values from here on are counted as an hour: the power of two after it, in nanoseconds.
const END: u64 = 1 << 42;
/// How many buckets there are.
pub(super) const COUNT: usize =
    (END.trailing_zeros() - PARTS.trailing_zeros()) as usize * PARTS + PARTS;

/// The bucket of a value; of one from [`END`] on, that of `longest`.
#[inline]
pub(super) const fn of(value: u64, longest: u64) -> usize {
    let value = if value < END { value } else { longest };
    let shift = (value | (EXACT - 1)).ilog2() - (EXACT.trailing_zeros() - 1);
    shift as usize * PARTS + (value >> shift) as usize
}

/// The lowest and the highest value that a bucket counts.
pub(super) const fn bounds(bucket: usize) -> (u64, u64) {
    let shift = (bucket / PARTS).saturating_sub(1);
    let lowest = ((bucket - shift * PARTS) as u64) << shift;
    (lowest, lowest + ((1 << shift) - 1))
}

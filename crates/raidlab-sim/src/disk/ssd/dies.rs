//! Where a page lies: on which die.
//!
//! A drive puts what it is given where it writes at the time: page after page over all dies, in rows (superpages). So what was
//! written in a row is spread evenly, and a place among the sectors says nothing of the die. Two things keep dies from being
//! `page % dies`, of which what is read or left out in a regular way (chunks and their parity) would meet some alone:
//!
//! - each row begins some dies further than the one before: a page of it holds parity (Micron, *NAND Flash Media Management
//!   Through RAIN*: one beside 15; of the Crucial M550 one beside 127), others maps and journals, and dies whose block is bad are
//!   left out. How many that are is taken to be irregular, and a quarter of the dies at most.
//! - blocks are written to as they come free, so that the rows of a block of each die begin anywhere.
//!
//! What is left out: data that were written here and there, whose pages may lie anywhere; and planes, so that pages are read by
//! themselves though a program has several.
use super::super::geometry::divide::Stride;
use raidlab_core::rng::Stream as Numbers;

/// Rows of a block of each die, as a power of two. Assumed; real blocks have some hundreds to thousands of pages.
const ROWS: u32 = 6;

/// Dies with pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dies {
    count: Stride,
    /// Dies that a row begins further on average, and what that varies by.
    step: u64,
    numbers: Numbers,
}

impl Dies {
    /// So many; where rows begin is the seed's choice.
    pub(super) fn new(count: u32, seed: u64) -> Self {
        let count = u64::from(count);
        Self {
            count: Stride::new(count),
            step: (count / 8).max(1),
            numbers: Numbers::new(seed),
        }
    }

    /// The die that a page is on.
    #[inline]
    pub(super) fn of(self, page: u64) -> usize {
        let (row, slot) = self.count.split(page);
        // Numbers of rows from below, those of blocks from above; a quarter of one, so that sums do not overflow.
        let block = self.numbers.at(!(row >> ROWS)) >> 2;
        let further = row * self.step + self.numbers.below(row, self.step);
        self.count.split(block + further + slot).1 as usize
    }
}

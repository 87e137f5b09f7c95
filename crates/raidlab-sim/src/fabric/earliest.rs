//! Which of several comes first: times in blocks, so that a new one is compared with those of its block and with the
//! earliest of the other blocks, by comparisons none of which a processor could guess wrong.
use super::time::NEVER;
use std::hint::select_unpredictable;

/// Times in a block: about the root of the most that there are.
const BLOCK: usize = 8;

/// A time for each of a fixed number of things.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    blocks: Box<[[u64; BLOCK]]>,
    /// The earliest of each block, and of all.
    least: Box<[u64]>,
    first: u64,
}

impl Earliest {
    /// Of `count` things, each at [`NEVER`].
    pub(super) fn new(count: usize) -> Self {
        let blocks = count.div_ceil(BLOCK);
        Self {
            blocks: vec![[NEVER; BLOCK]; blocks].into(),
            least: vec![NEVER; blocks].into(),
            first: NEVER,
        }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Whose the earliest time is: of equal ones that with the lowest number.
    #[inline]
    pub(super) fn which(&self) -> usize {
        let block = place(&self.least, self.first);
        BLOCK * block + place(&self.blocks[block], self.first)
    }

    /// The time of thing `which` is `at` now.
    #[inline]
    pub(super) fn set(&mut self, which: usize, at: u64) {
        let block = &mut self.blocks[which / BLOCK];
        block[which % BLOCK] = at;
        self.least[which / BLOCK] = least(block);
        self.first = least(&self.least);
    }
}

#[inline]
fn least(times: &[u64]) -> u64 {
    times.iter().fold(NEVER, |least, at| least.min(*at))
}

/// The first place of a time among some that have it.
#[inline]
fn place(times: &[u64], time: u64) -> usize {
    let places = times.iter().enumerate().rev();
    places.fold(0, |first, (place, at)| {
        select_unpredictable(*at == time, place, first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(count in 1_usize..20, sets in prop::collection::vec((any::<usize>(), 0_u64..12), 0..80)) {
            let mut earliest = Earliest::new(count);
            let mut times = vec![NEVER; count];
            for (which, at) in sets {
                let (which, at) = (which % count, if at == 11 { NEVER } else { at });
                times[which] = at;
                earliest.set(which, at);
                let least = times.iter().copied().zip(0..).min().expect("some");
                if least.0 < NEVER {
                    prop_assert_eq!((earliest.first(), earliest.which()), least);
                } else {
                    prop_assert_eq!(earliest.first(), NEVER);
                }
            }
        }
    }
}

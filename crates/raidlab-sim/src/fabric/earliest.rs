//! Which of several comes first: times in blocks, each with the first of its own, so that a time that comes forward is
//! compared with two others and one that goes back with those of its block and the first of the other blocks. None of
//! these comparisons is one that a processor could guess wrong.
use super::time::NEVER;
use std::hint::select_unpredictable;

/// Times in a block: about the root of the most that there are.
const BLOCK: usize = 8;

/// A time, and whose it is.
#[derive(Clone, Copy, Debug)]
struct First {
    at: u64,
    which: usize,
}

impl First {
    /// The earlier of two; of equal ones that of the lower number.
    #[inline]
    fn or(self, other: Self) -> Self {
        let lower = (other.at == self.at) & (other.which < self.which);
        self.or_if((other.at < self.at) | lower, other)
    }

    /// The earlier of this and another one of a higher number.
    #[inline]
    fn or_later(self, other: Self) -> Self {
        self.or_if(other.at < self.at, other)
    }

    #[inline]
    fn or_if(self, better: bool, other: Self) -> Self {
        Self {
            at: select_unpredictable(better, other.at, self.at),
            which: select_unpredictable(better, other.which, self.which),
        }
    }
}

/// A time for each of a fixed number of things.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    blocks: Box<[[u64; BLOCK]]>,
    /// The first of each block, and of all.
    firsts: Box<[First]>,
    first: First,
}

impl Earliest {
    /// Of `count` things, each at [`NEVER`].
    pub(super) fn new(count: usize) -> Self {
        let blocks = count.div_ceil(BLOCK);
        let never = |block| First {
            at: NEVER,
            which: BLOCK * block,
        };
        Self {
            blocks: vec![[NEVER; BLOCK]; blocks].into(),
            firsts: (0..blocks).map(never).collect(),
            first: never(0),
        }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first.at
    }

    /// Whose the earliest time is: of equal ones that with the lowest number.
    #[inline]
    pub(super) fn which(&self) -> usize {
        self.first.which
    }

    /// The time of thing `which` is `at` now.
    // Part of each caller: one brings times forward, another puts them off, so that each guesses right.
    #[inline(always)]
    pub(super) fn set(&mut self, which: usize, at: u64) {
        let number = which / BLOCK;
        let before = std::mem::replace(&mut self.blocks[number][which % BLOCK], at);
        if at <= before {
            let (new, first) = (First { at, which }, &mut self.firsts[number]);
            *first = first.or(new);
            self.first = self.first.or(new);
        } else {
            self.look(number);
        }
    }

    /// Looks anew for the first of a block, of which one has gone back, and of all.
    #[inline(never)]
    fn look(&mut self, number: usize) {
        self.firsts[number] = first_of(&self.blocks[number], BLOCK * number);
        let firsts = self.firsts.iter().copied();
        self.first = firsts.reduce(First::or_later).unwrap_or(self.first);
    }
}

/// The first of a block, whose things have the numbers from `from` on: in rounds, so that a processor compares
/// several pairs at a time.
#[inline]
fn first_of(block: &[u64; BLOCK], from: usize) -> First {
    let of = |which: usize| First {
        at: block[which],
        which,
    };
    let pair = |which| of(which).or_later(of(which + 1));
    let (low, high) = (pair(0).or_later(pair(2)), pair(4).or_later(pair(6)));
    let first = low.or_later(high);
    First {
        which: first.which + from,
        ..first
    }
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

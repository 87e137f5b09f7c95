//! Which of several comes first: a tree of comparisons in which each has a fixed place, so that a new time
//! for one takes as many comparisons as the tree has levels, and none that a processor could guess wrong.
use super::time::NEVER;
use std::hint::select_unpredictable;

/// A time for each of a fixed number of things.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// The earlier of two below; the root is at 1, the things themselves are the last. A time and whose it
    /// is stand in one number, so that one comparison decides by the time and then by the number.
    tree: Box<[u128]>,
    leaves: usize,
}

impl Earliest {
    /// Of `count` things, each at [`NEVER`].
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        let mut tree = vec![key(NEVER, 0); 2 * leaves];
        for (which, leaf) in tree[leaves..].iter_mut().enumerate() {
            *leaf = key(NEVER, which);
        }
        Self {
            tree: tree.into(),
            leaves,
        }
    }

    /// The earliest time and whose it is: of equal ones that with the lowest number.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let first = self.tree[1];
        ((first >> 64) as u64, first as u64 as usize)
    }

    /// The time of thing `which` is `at` now.
    #[inline]
    pub(super) fn set(&mut self, which: usize, at: u64) {
        let mut place = self.leaves + which;
        let mut least = key(at, which);
        self.tree[place] = least;
        while place > 1 {
            let other = self.tree[place ^ 1];
            least = select_unpredictable(other < least, other, least);
            place /= 2;
            self.tree[place] = least;
        }
    }
}

#[inline]
fn key(at: u64, which: usize) -> u128 {
    u128::from(at) << 64 | which as u128
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
                    prop_assert_eq!(earliest.first(), least);
                } else {
                    prop_assert_eq!(earliest.first().0, NEVER);
                }
            }
        }
    }
}

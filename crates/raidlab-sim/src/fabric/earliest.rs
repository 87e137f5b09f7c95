//! Which of several comes first: a tree of comparisons in which each has a fixed place, so that a new time
//! for one takes as many comparisons as the tree has levels, and none that a processor could guess wrong.
use super::time::NEVER;
use std::hint::select_unpredictable;

/// A time for each of a fixed number of things.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// The earlier of two below, and which it is; the root is at 1, the things themselves are the last.
    tree: Box<[(u64, u32)]>,
    leaves: usize,
}

impl Earliest {
    /// Of `count` things, each at [`NEVER`].
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        let mut tree = vec![(NEVER, 0); 2 * leaves];
        for (leaf, number) in tree[leaves..].iter_mut().zip(0..) {
            leaf.1 = number;
        }
        Self {
            tree: tree.into(),
            leaves,
        }
    }

    /// The earliest time and whose it is: of equal ones that with the lowest number.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let (at, which) = self.tree[1];
        (at, which as usize)
    }

    /// The time of thing `which` is `at` now.
    #[inline]
    pub(super) fn set(&mut self, which: usize, at: u64) {
        let mut place = self.leaves + which;
        self.tree[place].0 = at;
        while place > 1 {
            place /= 2;
            let (left, right) = (self.tree[2 * place], self.tree[2 * place + 1]);
            let later = right.0 < left.0;
            self.tree[place] = (
                select_unpredictable(later, right.0, left.0),
                select_unpredictable(later, right.1, left.1),
            );
        }
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
                    prop_assert_eq!(earliest.first(), least);
                } else {
                    prop_assert_eq!(earliest.first().0, NEVER);
                }
            }
        }
    }
}

//! What is to be resilvered: the places.
use crate::block::{Extent, joined};

/// Places that were in use, each from its first sector to the one after its last; ascending and apart.
pub(in super::super) fn places(extents: &[Extent]) -> Vec<(u64, u64)> {
    let mut all = joined(extents.iter().map(|e| (e.start, e.start + e.len)).collect());
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Places that overlap or touch are one; nothing is lost.
        #[test]
        fn places_are_apart_and_hold_all_extents(lens in prop::collection::vec((1_u64..2000, 0_u64..3), 1..60), seed: u64) {
            let mut at = 0;
            let mut all = Vec::new();
            for (len, gap) in lens {
                all.push(Extent { start: at, len, unit: 8, walked: false });
                at += len + gap;
            }
            all.sort_unstable_by_key(|e| raidlab_core::rng::mix(e.start ^ seed));
            let places = places(&all);
            prop_assert!(places.windows(2).all(|two| two[0].1 < two[1].0));
            let sectors: u64 = places.iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(sectors, all.iter().map(|e| e.len).sum::<u64>());
        }
    }
}

//! What is to be resilvered, by place.
use crate::block::Extent;

/// Sectors of a gap that extents go on over (`zfs_scan_max_ext_gap`, 2 MiB).
const GAP: u64 = 4096;
/// How much more an extent counts for being full (`zfs_scan_fill_weight`).
const FILL: u128 = 3;
/// Extents by place, in the order in which they go out: runs of blocks with gaps between them, the fullest first
/// (`ext_size_compare`), of equals the one in front.
pub(super) fn sorted(mut extents: Vec<Extent>) -> Vec<Extent> {
    // Mostly they are in runs that ascend, which a stable sort merges.
    extents.sort_by_key(|extent| extent.start);
    // Where each run begins, and its score.
    let mut runs: Vec<(usize, u128)> = Vec::new();
    let (mut at, mut fill) = (0, 0);
    for i in 0..extents.len() {
        fill += extents[i].len;
        let end = extents[i].start + extents[i].len;
        if extents
            .get(i + 1)
            .is_some_and(|next| next.start <= end + GAP)
        {
            continue;
        }
        let fill = std::mem::take(&mut fill);
        let full = u128::from((fill << 7) / (end - extents[at].start).max(1));
        runs.push((
            at,
            u128::from(fill) + ((full * FILL * u128::from(fill)) >> 7),
        ));
        at = i + 1;
    }
    let ends: Vec<usize> = runs
        .iter()
        .skip(1)
        .map(|run| run.0)
        .chain([extents.len()])
        .collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(runs[*i].1), runs[*i].0));
    if order.len() < 2 {
        return extents;
    }
    let mut out = Vec::with_capacity(extents.len());
    for i in order {
        out.extend_from_slice(&extents[runs[i].0..ends[i]]);
    }
    out
}

/// Places that were in use, each from its first sector to the one after its last; ascending and apart.
pub(in super::super) fn places(extents: &[Extent]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = extents.iter().map(|e| (e.start, e.start + e.len)).collect();
    all.sort();
    all.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Nothing is lost or comes twice; within a run places ascend, and no run has less score than the next.
        #[test]
        fn all_extents_are_sorted_into_runs(lens in prop::collection::vec((1_u64..2000, 0_u64..9000), 1..60), seed: u64) {
            let mut at = 0;
            let mut all = Vec::new();
            for (len, gap) in lens {
                all.push(Extent { start: at, len, unit: 8, walked: false });
                at += len + gap;
            }
            let mut mixed = all.clone();
            mixed.sort_unstable_by_key(|e| raidlab_core::rng::mix(e.start ^ seed));
            let order = sorted(mixed.clone());
            let mut back = order.clone();
            back.sort_unstable_by_key(|e| e.start);
            prop_assert_eq!(&back, &all);
            // Runs in the order in which they come: from, to, sectors.
            let mut runs: Vec<(u64, u64, u64)> = Vec::new();
            for e in &order {
                match runs.last_mut() {
                    Some(run) if run.1 <= e.start && e.start <= run.1 + GAP => (run.1, run.2) = (e.start + e.len, run.2 + e.len),
                    _ => runs.push((e.start, e.start + e.len, e.len)),
                }
            }
            let score = |run: &(u64, u64, u64)| run.2 + (run.2 * 128 / (run.1 - run.0)) * 3 * run.2 / 128;
            prop_assert!(runs.windows(2).all(|two| score(&two[0]) >= score(&two[1])));
            let sectors: u64 = places(&mixed).iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(sectors, all.iter().map(|e| e.len).sum::<u64>());
        }
    }
}

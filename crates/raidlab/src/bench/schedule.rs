//! In which order trials run, and when it is enough: pure, so that it can be tested.
//!
//! Each round runs every arm once, in an order drawn for that round (randomised complete blocks), so
//! that a machine that grows slower or faster cannot favour one arm.
use raidlab_core::rng::{Stream, shuffle};
use raidlab_core::time::Span;
use serde::{Deserialize, Serialize};

/// When it is enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub(crate) enum Enough {
    /// After so many rounds.
    Rounds {
        /// How many.
        rounds: u32,
    },
    /// When every arm's intervals are narrow enough, or after the most rounds.
    Width {
        /// Half-width of the 95 % interval as a share of the value.
        width: f64,
        /// At most so many rounds.
        most: u32,
    },
}

impl Enough {
    /// Rounds that there will be at most.
    pub(crate) fn most(self) -> u32 {
        match self {
            Self::Rounds { rounds } => rounds,
            Self::Width { most, .. } => most,
        }
    }
}

/// The order of the arms in a round.
pub(crate) fn order_of_round(seed: u64, round: u32, arms: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    shuffle(
        &mut order,
        Stream::new(seed).child(u64::from(round)).child(0x0bde5),
    );
    order
}

/// The seed of the operations and data of a round: the same for all arms, so that they do the same.
pub(crate) fn seed_of_round(seed: u64, round: u32) -> u64 {
    Stream::new(seed)
        .child(u64::from(round))
        .child(0x5eed)
        .seed()
}

/// Time still needed, from what has been done; `None` before there is anything to go by.
pub(crate) fn time_left(elapsed: Span, done: f64) -> Option<Span> {
    (done > 0.01).then(|| Span((elapsed.0 as f64 * (1.0 - done.min(1.0)) / done.min(1.0)) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_runs_each_arm_once_in_an_order_of_its_own() {
        let orders: Vec<_> = (0..20).map(|round| order_of_round(7, round, 4)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        let first: std::collections::BTreeSet<_> = orders.iter().map(|order| order[0]).collect();
        assert_eq!(first.len(), 4, "each arm comes first sometimes: {orders:?}");
        assert_eq!(
            orders,
            (0..20)
                .map(|round| order_of_round(7, round, 4))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn rounds_have_seeds_of_their_own_that_do_not_change() {
        assert_ne!(seed_of_round(1, 0), seed_of_round(1, 1));
        assert_eq!(seed_of_round(1, 3), seed_of_round(1, 3));
    }

    #[test]
    fn time_left_is_in_proportion() {
        assert_eq!(
            time_left(Span::from_secs(10), 0.25),
            Some(Span::from_secs(30))
        );
        assert_eq!(time_left(Span::from_secs(10), 0.0), None);
        assert_eq!(time_left(Span::from_secs(10), 1.5), Some(Span::ZERO));
    }
}

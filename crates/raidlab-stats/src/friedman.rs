//! Do more than two configurations differ at all?

use crate::error::{StatsError, at_least};
use crate::ranks::mid_ranks;
use crate::sample::Sample;
use crate::special::chi_squared_sf;
use serde::{Deserialize, Serialize};

/// Friedman's χ² over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Friedman {
    /// χ² with tie correction.
    pub chi_squared: f64,
    /// Upper tail with (configurations − 1) degrees of freedom.
    pub p: f64,
}

/// Friedman's test: each group is one configuration, the i-th value of each its run in round i.
/// The gate before Holm-adjusted comparisons of more than two configurations.
///
/// # Errors
/// [`StatsError::TooFew`] under three groups or two rounds, [`StatsError::UnequalLengths`].
pub fn friedman(groups: &[Sample]) -> Result<Friedman, StatsError> {
    at_least("Friedman's test (in configurations)", 3, groups.len())?;
    let rounds = groups[0].len();
    at_least("Friedman's test (in rounds)", 2, rounds)?;
    if let Some(odd) = groups.iter().find(|g| g.len() != rounds) {
        return Err(StatsError::UnequalLengths {
            left: rounds,
            right: odd.len(),
        });
    }
    let (k, n) = (groups.len() as f64, rounds as f64);
    let mut totals = vec![0.0; groups.len()];
    let mut tie_term = 0.0;
    for round in 0..rounds {
        let row: Vec<f64> = groups.iter().map(|g| g.values()[round]).collect();
        let (ranks, ties) = mid_ranks(&row);
        tie_term += ties;
        for (total, rank) in totals.iter_mut().zip(ranks) {
            *total += rank;
        }
    }
    let correction = 1.0 - tie_term / (n * k * (k * k - 1.0));
    if correction <= 0.0 {
        return Ok(Friedman {
            chi_squared: 0.0,
            p: 1.0,
        }); // every round all tied
    }
    let expected = n * (k + 1.0) / 2.0;
    let spread: f64 = totals.iter().map(|t| (t - expected) * (t - expected)).sum();
    let chi_squared = 12.0 * spread / (n * k * (k + 1.0)) / correction;
    Ok(Friedman {
        chi_squared,
        p: chi_squared_sf(chi_squared, k - 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked_and_ties_are_no_evidence() {
        let s = |v: &[f64]| Sample::new(v).unwrap();
        let pair = [s(&[1.0, 2.0]), s(&[1.0, 2.0])];
        assert!(friedman(&pair).is_err());
        assert!(friedman(&[s(&[1.0]), s(&[1.0]), s(&[1.0])]).is_err());
        assert!(friedman(&[s(&[1.0, 2.0]), s(&[1.0]), s(&[1.0, 2.0])]).is_err());
        let tied = [s(&[1.0, 2.0]), s(&[1.0, 2.0]), s(&[1.0, 2.0])];
        assert_eq!(
            friedman(&tied).unwrap(),
            Friedman {
                chi_squared: 0.0,
                p: 1.0
            }
        );
    }
}

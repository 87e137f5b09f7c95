//! Steady state over rounds: the SNIA rule, and Georges' coefficient-of-variation rule.

use crate::describe::least_squares_slope;
use crate::error::{StatsError, at_least};
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// The steady-state rule of the SNIA Performance Test Specification (PTS-E/C 1.1, PTS 2.0).
///
/// It is lenient (a drift of 10 % across the window passes): use it for "the device is
/// preconditioned", not as a criterion of precision. fio's `steadystate` options measure something
/// else (largest deviation, slope per second) and are not interchangeable with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SniaRule {
    /// Consecutive rounds looked at.
    pub window: usize,
    /// Largest (max − min)/average.
    pub range_limit: f64,
    /// Largest |least-squares slope| × (window − 1)/average.
    pub slope_limit: f64,
    /// Rounds after which it is given up.
    pub max_rounds: usize,
}

impl Default for SniaRule {
    fn default() -> Self {
        Self {
            window: 5,
            range_limit: 0.2,
            slope_limit: 0.1,
            max_rounds: 25,
        }
    }
}

/// One window under the rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SniaWindow {
    /// First round of the window, from 0.
    pub start: usize,
    /// Average of the window.
    pub average: f64,
    /// (max − min)/average.
    pub range_excursion: f64,
    /// Least-squares slope a round.
    pub slope: f64,
    /// |slope| × (window − 1)/average.
    pub slope_excursion: f64,
    /// Whether both excursions are within their limits.
    pub steady: bool,
}

/// Outcome of the search for the first steady window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SniaOutcome {
    /// The first window that passed.
    Steady(SniaWindow),
    /// Too few rounds so far, or the last window failed and rounds are left.
    NotYet(Option<SniaWindow>),
    /// The limit of rounds is used up: "steady state not reached", with the last window.
    NotReached(Option<SniaWindow>),
}

impl SniaRule {
    fn check(&self) -> Result<(), StatsError> {
        at_least("a steady-state window (in rounds)", 2, self.window)
    }

    /// Judges one window, whatever its length (at least two rounds).
    ///
    /// # Errors
    /// As [`Sample::new`]; [`StatsError::TooFew`]; [`StatsError::Parameter`] when the average is
    /// not above zero, for then no excursion is defined.
    pub fn window(&self, rounds: &[f64]) -> Result<SniaWindow, StatsError> {
        at_least("a steady-state window (in rounds)", 2, rounds.len())?;
        let sample = Sample::new(rounds)?;
        let average = crate::error::positive("average of the steady-state window", sample.mean())?;
        let range_excursion = (sample.max() - sample.min()) / average;
        let slope = least_squares_slope(rounds);
        let slope_excursion = slope.abs() * (rounds.len() - 1) as f64 / average;
        let steady = range_excursion <= self.range_limit && slope_excursion <= self.slope_limit;
        Ok(SniaWindow {
            start: 0,
            average,
            range_excursion,
            slope,
            slope_excursion,
            steady,
        })
    }

    /// Finds the first steady window of the rounds so far.
    ///
    /// A window without a positive average is not steady.
    ///
    /// # Errors
    /// As [`Sample::new`]; [`StatsError::TooFew`] for a rule whose window is under two rounds.
    pub fn first_steady(&self, rounds: &[f64]) -> Result<SniaOutcome, StatsError> {
        self.check()?;
        let checked = Sample::new(rounds)?;
        let rounds = checked.values();
        let mut last = None;
        for (start, window) in rounds.windows(self.window).enumerate() {
            if start + self.window > self.max_rounds {
                break;
            }
            last = self.window(window).ok().map(|w| SniaWindow { start, ..w });
            if let Some(found) = last.filter(|w| w.steady) {
                return Ok(SniaOutcome::Steady(found));
            }
        }
        if rounds.len() >= self.max_rounds {
            Ok(SniaOutcome::NotReached(last))
        } else {
            Ok(SniaOutcome::NotYet(last))
        }
    }
}

/// First window of `window` consecutive values whose coefficient of variation is below `cv_limit`
/// (Georges, Buytaert & Eeckhout 2007, who use 0.02): its first index, or `None`.
///
/// # Errors
/// As [`Sample::new`]; [`StatsError::TooFew`] for a window under two values;
/// [`StatsError::Parameter`] for a limit not above zero.
pub fn first_stable_window(
    values: &[f64],
    window: usize,
    cv_limit: f64,
) -> Result<Option<usize>, StatsError> {
    at_least("a stable window", 2, window)?;
    crate::error::positive("limit of the coefficient of variation", cv_limit)?;
    let checked = Sample::new(values)?;
    Ok(checked.values().windows(window).position(|w| {
        Sample::new(w)
            .ok()
            .and_then(|s| s.cv())
            .is_some_and(|cv| cv < cv_limit)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_device_is_not_steady() {
        let rule = SniaRule::default();
        assert!(rule.window(&[0.0; 5]).is_err());
        assert_eq!(
            rule.first_steady(&[0.0; 6]).unwrap(),
            SniaOutcome::NotYet(None)
        );
        assert_eq!(
            rule.first_steady(&[0.0; 25]).unwrap(),
            SniaOutcome::NotReached(None)
        );
        assert!(rule.first_steady(&[]).is_err());
    }

    #[test]
    fn rounds_beyond_the_limit_do_not_count() {
        let mut rounds: Vec<f64> = (0..25)
            .map(|i| if i % 2 == 0 { 100.0 } else { 200.0 })
            .collect();
        rounds.extend([150.0; 5]);
        let outcome = SniaRule::default().first_steady(&rounds).unwrap();
        assert!(
            matches!(outcome, SniaOutcome::NotReached(Some(w)) if w.start == 20),
            "{outcome:?}"
        );
    }

    #[test]
    fn too_few_rounds_is_not_a_verdict() {
        let rule = SniaRule::default();
        assert_eq!(
            rule.first_steady(&[1.0, 1.0]).unwrap(),
            SniaOutcome::NotYet(None)
        );
        assert!(rule.window(&[1.0]).is_err());
        assert!(SniaRule { window: 0, ..rule }.first_steady(&[1.0]).is_err());
    }

    #[test]
    fn georges_finds_where_the_noise_ends() {
        let values = [50.0, 80.0, 95.0, 100.0, 100.5, 99.5, 100.0];
        assert_eq!(first_stable_window(&values, 4, 0.02).unwrap(), Some(3));
        assert_eq!(first_stable_window(&values[..5], 4, 0.02).unwrap(), None);
        assert_eq!(first_stable_window(&values, 99, 0.02).unwrap(), None);
        assert!(first_stable_window(&values, 1, 0.02).is_err());
    }
}

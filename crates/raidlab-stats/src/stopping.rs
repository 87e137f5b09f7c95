//! When to stop repeating: a sequential rule, as a pure function of the values so far.
//!
//! Stopping at the first interval that is narrow enough costs coverage (simulation: .89 to .93
//! from 3 runs on). From 10 runs on, checking every second run and asking for two successive
//! passes, it is .935 to .951.

use crate::error::{StatsError, at_least, positive};
use crate::estimate::Confidence;
use crate::sample::Sample;
use crate::summary::{Aggregate, Headline, headline};
use serde::{Deserialize, Serialize};

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Relative half-width wanted: 0.02 is ±2 %.
    pub precision: f64,
    /// First check.
    pub min_runs: usize,
    /// Runs between checks.
    pub check_every: usize,
    /// Checks in a row that have to pass.
    pub successive_passes: usize,
    /// Runs after which it is given up.
    pub max_runs: usize,
    /// How the values are averaged.
    pub aggregate: Aggregate,
}

/// Why a series of runs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The interval is as narrow as was wanted.
    PrecisionReached,
    /// The largest number of runs is made: the result is imprecise, and is to be reported as such.
    MaxRuns,
    /// The time is used up: the result is imprecise, and is to be reported as such.
    BudgetSpent,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Make more runs.
    Continue {
        /// Number of runs in all at which the answer may change.
        next_check: usize,
        /// Relative half-width of the runs so far, where it exists.
        half_width: Option<f64>,
    },
    /// Enough.
    Stop {
        /// Why.
        reason: StopReason,
        /// Relative half-width reached; `None` when the runs allow no interval.
        half_width: Option<f64>,
    },
}

impl StoppingRule {
    /// 10 to 30 runs, checked every second one, two passes in a row.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] for a precision not above zero.
    pub fn standard(precision: f64, aggregate: Aggregate) -> Result<Self, StatsError> {
        let rule = Self {
            precision,
            min_runs: 10,
            check_every: 2,
            successive_passes: 2,
            max_runs: 30,
            aggregate,
        };
        rule.check().map(|()| rule)
    }

    /// As [`StoppingRule::standard`] from 5 runs on; its coverage is .92 to .94.
    ///
    /// # Errors
    /// As [`StoppingRule::standard`].
    pub fn quick(precision: f64, aggregate: Aggregate) -> Result<Self, StatsError> {
        Ok(Self {
            min_runs: 5,
            ..Self::standard(precision, aggregate)?
        })
    }

    fn check(&self) -> Result<(), StatsError> {
        positive("precision", self.precision)?;
        at_least("a stopping rule (first check, in runs)", 2, self.min_runs)?;
        at_least(
            "a stopping rule (in runs between checks)",
            1,
            self.check_every,
        )?;
        at_least("a stopping rule (in passes)", 1, self.successive_passes)?;
        at_least(
            "a stopping rule (in runs at most)",
            self.min_runs,
            self.max_runs,
        )
    }

    /// Decides from the values so far, in run order. The same values give the same answer: a
    /// resumed series stops where an unbroken one would have.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] or [`StatsError::TooFew`] for a rule that cannot work; as
    /// [`Sample::new`] (no values at all are no error) and, for means that need positive values,
    /// [`StatsError::NotPositive`].
    pub fn decide(&self, values: &[f64], budget_spent: bool) -> Result<Decision, StatsError> {
        self.check()?;
        let n = values.len();
        let mut passes = 0;
        let mut check = self.min_runs;
        while check <= n.min(self.max_runs) {
            let reached = self.half_width(&values[..check])?;
            passes = if reached.is_some_and(|w| w <= self.precision) {
                passes + 1
            } else {
                0
            };
            if passes >= self.successive_passes {
                let half_width = self.half_width(values)?;
                return Ok(Decision::Stop {
                    reason: StopReason::PrecisionReached,
                    half_width,
                });
            }
            check = check.saturating_add(self.check_every);
        }
        let half_width = if n == 0 {
            None
        } else {
            self.half_width(values)?
        };
        Ok(if n >= self.max_runs {
            Decision::Stop {
                reason: StopReason::MaxRuns,
                half_width,
            }
        } else if budget_spent {
            Decision::Stop {
                reason: StopReason::BudgetSpent,
                half_width,
            }
        } else {
            Decision::Continue {
                next_check: check.min(self.max_runs),
                half_width,
            }
        })
    }

    fn half_width(&self, values: &[f64]) -> Result<Option<f64>, StatsError> {
        let sample = Sample::new(values)?;
        Ok(
            headline(&sample, self.aggregate, Headline::Usual, Confidence::P95)?
                .relative_half_width(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(precision: f64) -> StoppingRule {
        StoppingRule::standard(precision, Aggregate::Arithmetic).unwrap()
    }

    /// 100 ± 1, alternating.
    fn steady(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| if i % 2 == 0 { 99.0 } else { 101.0 })
            .collect()
    }

    #[test]
    fn two_passes_in_a_row_are_asked_for() {
        let rule = rule(0.02);
        let at = |n| rule.decide(&steady(n), false).unwrap();
        assert!(matches!(
            at(0),
            Decision::Continue {
                next_check: 10,
                half_width: None
            }
        ));
        assert!(matches!(at(9), Decision::Continue { next_check: 10, .. }));
        assert!(matches!(at(10), Decision::Continue { next_check: 12, .. }));
        assert!(matches!(at(11), Decision::Continue { next_check: 12, .. }));
        assert!(matches!(
            at(12),
            Decision::Stop { reason: StopReason::PrecisionReached, half_width: Some(w) } if w < 0.02
        ));
    }

    #[test]
    fn a_failed_check_starts_the_count_again() {
        // Narrow at 10; the two wild runs 11 and 12 spoil the check at 12.
        let mut values = steady(10);
        values.extend([60.0, 60.0]);
        let decision = rule(0.02).decide(&values, false).unwrap();
        assert!(
            matches!(decision, Decision::Continue { next_check: 14, .. }),
            "{decision:?}"
        );
    }

    #[test]
    fn passes_that_are_not_in_a_row_do_not_add_up() {
        let mut values = steady(10);
        values.extend([97.0, 97.0, 100.0, 100.0]);
        let width = |n| rule(0.1).half_width(&values[..n]).unwrap().unwrap();
        let (ten, twelve, fourteen) = (width(10), width(12), width(14));
        assert!(
            twelve > 1.05 * ten.max(fourteen),
            "{ten} {twelve} {fourteen}"
        );
        let between = 0.5 * (twelve + ten.max(fourteen));
        let decision = rule(between).decide(&values, false).unwrap();
        assert!(
            matches!(decision, Decision::Continue { next_check: 16, .. }),
            "{decision:?}"
        );
    }

    #[test]
    fn the_cap_and_the_budget_report_what_was_reached() {
        let wild: Vec<f64> = (0..30)
            .map(|i| if i % 2 == 0 { 50.0 } else { 150.0 })
            .collect();
        let capped = rule(0.01).decide(&wild, false).unwrap();
        assert!(matches!(
            capped,
            Decision::Stop { reason: StopReason::MaxRuns, half_width: Some(w) } if w > 0.01
        ));
        let broke = rule(0.01).decide(&wild[..3], true).unwrap();
        assert!(matches!(
            broke,
            Decision::Stop {
                reason: StopReason::BudgetSpent,
                ..
            }
        ));
        assert!(matches!(
            rule(0.01).decide(&[], true).unwrap(),
            Decision::Stop {
                reason: StopReason::BudgetSpent,
                half_width: None
            }
        ));
    }

    #[test]
    fn the_quick_rule_starts_at_five() {
        let quick = StoppingRule::quick(0.5, Aggregate::Arithmetic).unwrap();
        assert!(matches!(
            quick.decide(&steady(7), false).unwrap(),
            Decision::Stop { .. }
        ));
    }

    #[test]
    fn a_mean_of_zero_runs_to_the_cap_and_bad_rules_are_refused() {
        let zeros = [0.0; 30];
        assert!(matches!(
            rule(0.1).decide(&zeros, false).unwrap(),
            Decision::Stop {
                reason: StopReason::MaxRuns,
                half_width: None
            }
        ));
        assert!(StoppingRule::standard(0.0, Aggregate::Arithmetic).is_err());
        let broken = StoppingRule {
            check_every: 0,
            ..rule(0.1)
        };
        assert!(broken.decide(&[], false).is_err());
        assert!(rule(0.1).decide(&[f64::NAN; 12], false).is_err());
    }
}

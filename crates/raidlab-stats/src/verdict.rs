//! Verdicts from an interval and a margin, and the gate for scripts.

use crate::compare::Comparison;
use crate::error::{StatsError, positive};
use crate::estimate::Interval;
use crate::multiple::holm;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Which way a figure improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Rates, IOPS.
    HigherIsBetter,
    /// Times, latencies, CPU.
    LowerIsBetter,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than the margin.
    Better,
    /// Worse by more than the margin.
    Worse,
    /// Within the margin, whichever way.
    Equivalent,
    /// Certainly different, but perhaps by less than the margin.
    DifferentButSmall,
    /// The data do not say.
    Inconclusive {
        /// About how many more rounds (of both sides) would settle it, if the scatter and the
        /// ratio stay what they are; `None` when that cannot be told.
        more_rounds: Option<u64>,
    },
}

impl Verdict {
    /// The word for a report.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::DifferentButSmall => "different, small",
            Self::Inconclusive { .. } => "inconclusive",
        }
    }

    /// Judges an interval of the gain (a ratio above 1 where the candidate is better) against the
    /// margin δ: wholly above 1 + δ, wholly below 1 − δ, wholly between them, else whether it
    /// excludes 1. Without more to go on, "inconclusive" names no number of rounds.
    #[must_use]
    pub fn of_gain(gain: &Interval, margin: f64) -> Self {
        if gain.lo > 1.0 + margin {
            Self::Better
        } else if gain.hi < 1.0 - margin {
            Self::Worse
        } else if gain.lo >= 1.0 - margin && gain.hi <= 1.0 + margin {
            Self::Equivalent
        } else if !gain.contains(1.0) {
            Self::DifferentButSmall
        } else {
            Self::Inconclusive { more_rounds: None }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What a regression gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// The candidate is not shown to be below the threshold, nor does it look so.
    Pass,
    /// It looks below the threshold, but the interval does not prove it.
    Warn,
    /// The whole interval is below the threshold.
    Fail,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// Regression gate: fails only if the *upper* bound of the gain (candidate over baseline, or its
/// inverse where lower is better) is below `threshold`; warns if only the point is, or if the gain
/// is not estimable. So neither noise nor n = 1 fails a build; 0.95 lets 5 % pass. Many figures: [`gates`].
///
/// # Errors
/// [`StatsError::Parameter`] for a threshold that is not a finite number above zero.
pub fn gate(comparison: &Comparison, threshold: f64) -> Result<Gate, StatsError> {
    positive("threshold of the gate", threshold)?;
    let Some(gain) = comparison.gain() else {
        return Ok(Gate::Warn);
    };
    Ok(match gain.interval {
        Some(interval) if interval.hi < threshold => Gate::Fail,
        _ if gain.value < threshold => Gate::Warn,
        _ => Gate::Pass,
    })
}

/// Gates of many figures, each with its threshold, as one decision: what [`gate`] would fail alone fails only if it is
/// surely below also as one of so many, by Holm's method; else it warns. The chance that anything fails without being
/// below its threshold is that of a single gate, however many figures there are.
///
/// # Errors
/// As [`gate`].
pub fn gates(family: &[(&Comparison, f64)]) -> Result<Vec<Gate>, StatsError> {
    let p: Vec<Option<f64>> = family.iter().map(|(c, t)| c.p_of_less(*t)).collect();
    let mut adjusted = holm(&p.iter().copied().flatten().collect::<Vec<f64>>())?.into_iter();
    let mut gates = Vec::with_capacity(family.len());
    for ((comparison, threshold), p) in family.iter().zip(p) {
        let alone = gate(comparison, *threshold)?;
        let adjusted = p.and_then(|_| adjusted.next());
        // The upper end of the interval leaves so much above.
        let beyond = comparison.criteria.confidence.lower();
        let certain = family.len() == 1 || adjusted.is_some_and(|p| p < beyond);
        gates.push(match alone {
            Gate::Fail if !certain => Gate::Warn,
            alone => alone,
        });
    }
    Ok(gates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lo: f64, hi: f64) -> Verdict {
        Verdict::of_gain(
            &Interval {
                lo,
                hi,
                confidence: 0.95,
            },
            0.02,
        )
    }

    #[test]
    fn every_position_of_the_interval() {
        assert_eq!(of(1.03, 1.05), Verdict::Better);
        assert_eq!(of(0.90, 0.97), Verdict::Worse);
        assert_eq!(of(0.99, 1.01), Verdict::Equivalent);
        assert_eq!(of(1.005, 1.015), Verdict::Equivalent);
        assert_eq!(of(1.01, 1.05), Verdict::DifferentButSmall);
        assert_eq!(of(0.95, 0.99), Verdict::DifferentButSmall);
        assert_eq!(of(0.97, 1.01), Verdict::Inconclusive { more_rounds: None });
        assert_eq!(of(0.5, 2.0), Verdict::Inconclusive { more_rounds: None });
        // The margin itself is still inside.
        assert_eq!(of(1.0 - 0.02, 1.0 + 0.02), Verdict::Equivalent);
    }

    #[test]
    fn words_are_the_fields_words() {
        assert_eq!(
            Verdict::Inconclusive {
                more_rounds: Some(3)
            }
            .to_string(),
            "inconclusive"
        );
        assert_eq!(format!("{:>8}", Verdict::Worse), "   worse");
        let json = serde_json::to_string(&Verdict::Inconclusive {
            more_rounds: Some(3),
        })
        .unwrap();
        assert_eq!(json, r#"{"word":"inconclusive","more_rounds":3}"#);
    }
}

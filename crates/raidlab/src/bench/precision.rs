//! How well each figure is known, for sessions that repeat until it is enough.
use super::schedule::Enough;
use raidlab_results::record::TrialRecord;
use raidlab_stats::{Aggregate, Decision, StopReason, StoppingRule};
use std::collections::BTreeSet;

/// A figure and the precision it has reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// `label phase`.
    pub(crate) what: String,
    /// Relative half-width of its interval; `None` when the trials allow none.
    pub(crate) half_width: Option<f64>,
    /// Two looks in a row found it narrow enough.
    pub(crate) settled: bool,
}

/// The figures of each group of trials (a label and its trials in run order). Invalid trials and
/// phases do not count.
pub(crate) fn known<'a>(
    groups: impl Iterator<Item = (&'a str, Vec<&'a TrialRecord>)>,
    width: f64,
    most: u32,
) -> Vec<Known> {
    let most = most as usize;
    // Ten rounds before the first look, as far as there are so many: fewer cost coverage.
    let Ok(rule) = StoppingRule::standard(width, Aggregate::Arithmetic).map(|rule| StoppingRule {
        min_runs: rule.min_runs.min(most),
        max_runs: most,
        ..rule
    }) else {
        return Vec::new();
    };
    let mut known = Vec::new();
    for (label, trials) in groups {
        let valid: Vec<_> = trials.into_iter().filter(|t| t.is_valid()).collect();
        let phases: BTreeSet<&str> = valid
            .iter()
            .flat_map(|t| &t.phases)
            .filter(|p| p.is_valid())
            .map(|p| p.phase.as_str())
            .collect();
        known.extend(phases.into_iter().map(|phase| {
            let values: Vec<f64> = valid
                .iter()
                .filter_map(|t| {
                    t.phases
                        .iter()
                        .find(|p| p.phase == phase && p.is_valid())?
                        .rate
                })
                .collect();
            figure(&rule, format!("{label} {phase}"), &values)
        }));
    }
    known
}

fn figure(rule: &StoppingRule, what: String, values: &[f64]) -> Known {
    let (half_width, settled) = match rule.decide(values, false) {
        Ok(Decision::Stop { reason, half_width }) => {
            (half_width, reason == StopReason::PrecisionReached)
        }
        Ok(Decision::Continue { half_width, .. }) => (half_width, false),
        Err(_) => (None, false),
    };
    Known {
        what,
        half_width,
        settled,
    }
}

/// What to say when the session ends after `rounds` rounds: nothing when all was reached.
pub(crate) fn remark(known: &[Known], enough: Enough, rounds: u32) -> Option<String> {
    match enough {
        Enough::Rounds { rounds: wanted } if rounds < wanted => Some(format!(
            "the time budget is used up after {rounds} of {wanted} rounds"
        )),
        Enough::Rounds { .. } => None,
        Enough::Width { width, .. } => {
            let open = known.iter().filter(|figure| !figure.settled);
            let worst = open.max_by(|a, b| {
                let of = |k: &Known| k.half_width.unwrap_or(f64::INFINITY);
                of(a).total_cmp(&of(b))
            })?;
            let reached = worst.half_width.map_or_else(
                || "no interval could be made".to_owned(),
                |reached| format!("±{:.1} % was reached", 100.0 * reached),
            );
            let wanted = 100.0 * width;
            if let Some(reached) = worst.half_width.filter(|reached| *reached <= width) {
                return Some(format!(
                    "after {rounds} rounds {} seems known well enough (±{:.1} % of ±{wanted:.1} %), but one look \
                     may be chance: two in a row were wanted, the first of them after ten rounds",
                    worst.what,
                    100.0 * reached
                ));
            }
            Some(format!(
                "after {rounds} rounds {} is not known well enough: {reached}, ±{wanted:.1} % was wanted",
                worst.what
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(width: f64) -> StoppingRule {
        StoppingRule::standard(width, Aggregate::Arithmetic).unwrap()
    }

    #[test]
    fn steady_figures_settle_and_wild_ones_do_not() {
        let steady: Vec<f64> = (0..14).map(|i| 100.0 + f64::from(i % 2)).collect();
        assert!(figure(&rule(0.02), "a read".into(), &steady).settled);
        let wild: Vec<f64> = (0..14).map(|i| 100.0 + 40.0 * f64::from(i % 2)).collect();
        let known = figure(&rule(0.02), "a read".into(), &wild);
        assert!(!known.settled);
        assert!(known.half_width.unwrap() > 0.02);
        assert!(
            !figure(&rule(0.02), "a read".into(), &steady[..5]).settled,
            "too few to look"
        );
    }

    #[test]
    fn an_imprecise_end_is_said() {
        let known = [
            Known {
                what: "a read".into(),
                half_width: Some(0.01),
                settled: true,
            },
            Known {
                what: "a write".into(),
                half_width: Some(0.08),
                settled: false,
            },
        ];
        let enough = Enough::Width {
            width: 0.02,
            most: 30,
        };
        assert_eq!(
            remark(&known, enough, 30).unwrap(),
            "after 30 rounds a write is not known well enough: ±8.0 % was reached, ±2.0 % was wanted"
        );
        assert_eq!(remark(&known[..1], enough, 12), None);
        // What was reached is not told to be less than what was wanted.
        let narrow = [Known {
            what: "a read".into(),
            half_width: Some(0.01),
            settled: false,
        }];
        assert_eq!(
            remark(&narrow, enough, 4).unwrap(),
            "after 4 rounds a read seems known well enough (±1.0 % of ±2.0 %), but one look may be chance: two in a \
             row were wanted, the first of them after ten rounds"
        );
        let fixed = Enough::Rounds { rounds: 5 };
        assert_eq!(remark(&[], fixed, 5), None);
        assert_eq!(
            remark(&[], fixed, 3).unwrap(),
            "the time budget is used up after 3 of 5 rounds"
        );
    }
}

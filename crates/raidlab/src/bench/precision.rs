//! How well each figure is known, for sessions that repeat until it is enough.
use super::schedule::Enough;
use raidlab_core::words::count;
use raidlab_results::record::{TrialRecord, Unit};
use raidlab_results::report::aggregate_of;
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

/// Trials of one profile in one place.
pub(crate) struct Group<'a> {
    pub(crate) label: &'a str,
    pub(crate) profile: &'a str,
    /// In run order.
    pub(crate) trials: Vec<&'a TrialRecord>,
}

/// The figures of each group. Invalid trials and phases do not count. What is judged is what the report will
/// show: of rates of a fixed amount of work the mean of the times.
pub(crate) fn known<'a>(
    groups: impl Iterator<Item = Group<'a>>,
    width: f64,
    most: u32,
) -> Vec<Known> {
    let most = most as usize;
    let mut known = Vec::new();
    for group in groups {
        let valid: Vec<_> = group.trials.into_iter().filter(|t| t.is_valid()).collect();
        let phases: BTreeSet<&str> = valid
            .iter()
            .flat_map(|t| &t.phases)
            // Of writes there may be few in a mixture, whose figures settle late.
            .filter(|p| p.is_valid() && p.whole().is_none())
            .map(|p| p.phase.as_str())
            .collect();
        for phase in phases {
            let runs = valid.iter().filter_map(|t| {
                let mut phases = t.phases.iter();
                let record = phases.find(|p| p.phase == phase && p.is_valid())?;
                Some((record.unit, record.rate?))
            });
            let runs: Vec<(Unit, f64)> = runs.collect();
            let Some((unit, _)) = runs.first() else {
                continue;
            };
            let values: Vec<f64> = runs.iter().map(|(_, value)| *value).collect();
            let aggregate = aggregate_of(group.profile, *unit);
            // As in the report: a rate of zero has no harmonic mean, but it was measured.
            let aggregate = match values.iter().all(|value| *value > 0.0) {
                true => aggregate,
                false => Aggregate::Arithmetic,
            };
            if let Some(rule) = rule(width, most, aggregate) {
                known.push(figure(&rule, format!("{} {phase}", group.label), &values));
            }
        }
    }
    known
}

/// Ten rounds before the first look, as far as there are so many: fewer cost coverage.
fn rule(width: f64, most: usize, aggregate: Aggregate) -> Option<StoppingRule> {
    let rule = StoppingRule::standard(width, aggregate).ok()?;
    Some(StoppingRule {
        min_runs: rule.min_runs.min(most),
        max_runs: most,
        ..rule
    })
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
            "the time budget is used up after {rounds} of {}",
            count(wanted, "round")
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
                    "after {} {} seems known well enough (±{:.1} % of ±{wanted:.1} %), but one look \
                     may be chance: two in a row were wanted, the first of them after ten rounds",
                    count(rounds, "round"),
                    worst.what,
                    100.0 * reached
                ));
            }
            Some(format!(
                "after {} {} is not known well enough: {reached}, ±{wanted:.1} % was wanted",
                count(rounds, "round"),
                worst.what
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::session::Turn;
    use crate::bench::tests::record;

    fn rule(width: f64) -> StoppingRule {
        super::rule(width, 30, Aggregate::Arithmetic).unwrap()
    }

    /// Twelve runs of a phase: mostly 100, and a slow one now and then, which weighs more in the mean of the times
    /// than in that of the rates.
    fn runs() -> Vec<f64> {
        let slow = [60.0, 45.0, 80.0, 50.0];
        let usual = [100.0, 102.0, 98.0, 101.0, 99.0, 100.0, 103.0, 97.0];
        slow.into_iter().chain(usual).collect()
    }

    #[test]
    fn what_is_judged_is_what_the_report_shows() {
        use raidlab_stats::summarise;
        let reported = |aggregate| {
            let summary = summarise(&runs(), aggregate).unwrap();
            summary.headline.relative_half_width().unwrap()
        };
        let (times, rates) = (
            reported(Aggregate::Harmonic),
            reported(Aggregate::Arithmetic),
        );
        assert!(
            times > 1.1 * rates,
            "{times} and {rates} tell the two apart"
        );
        for (profile, expected) in [
            ("dd", times),
            ("bonnie", times),
            ("tiobench", times),
            ("random", rates),
            ("fio", rates),
        ] {
            let judged = judged(profile, runs());
            assert!(
                (judged - expected).abs() < 1e-12,
                "{profile}: {judged}, {expected}"
            );
        }
        // A rate of zero has no harmonic mean.
        let mut with_none = runs();
        with_none[0] = 0.0;
        assert!(judged("dd", with_none) > 0.0);
    }

    /// The half-width that is judged of a phase with these rates.
    fn judged(profile: &str, rates: Vec<f64>) -> f64 {
        let trials: Vec<TrialRecord> = (0..)
            .zip(rates)
            .map(|(round, rate)| {
                let turn = Turn {
                    session: "s",
                    arm: 0,
                    round,
                    order: round,
                    seed: 1,
                };
                record("a", profile, turn, rate)
            })
            .collect();
        let group = Group {
            label: "a",
            profile,
            trials: trials.iter().collect(),
        };
        let known = known(std::iter::once(group), 0.01, 30);
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].what, "a read");
        known[0].half_width.unwrap()
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

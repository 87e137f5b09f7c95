//! From the runs of a cell to a figure, and from two cells to a ratio with a verdict. The statistics
//! themselves are `raidlab-stats`.
mod percentiles;

pub(crate) use percentiles::{LEAST_RUNS, compare_percentile, operations, tail_margin};

use super::experiment::Joined;
use super::group::{Group, RunValue, State};
use crate::record::{Better, Unit};
use raidlab_stats::compare::adjust_family;
use raidlab_stats::sessions::compare_sessions;
use raidlab_stats::summary::{summarise_at, summarise_sessions};
use raidlab_stats::{
    Aggregate, Comparison, Confidence, Criteria, Direction, Flag, Headline, Pairing, Sample,
    StatsError, Summary, Verdict, compare,
};
use std::collections::BTreeMap;

/// What figures and comparisons are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judging {
    pub(crate) margin: f64,
    pub(crate) confidence: Confidence,
    pub(crate) allow_mixed_streams: bool,
    /// How runs are joined when that was decided beforehand; else trimmed from five runs on, and the
    /// median below.
    pub(crate) joined: Option<Joined>,
}

impl Judging {
    /// How the figure of several runs is made, in words.
    pub(crate) fn how(&self) -> String {
        match self.joined {
            None => "mean of the runs without best and worst (median below 5 runs)".to_owned(),
            Some(Joined::Mean) => "mean of the runs".to_owned(),
            Some(Joined::Median) => "median of the runs".to_owned(),
            Some(Joined::Trimmed(1)) => "mean of the runs without best and worst".to_owned(),
            Some(Joined::Trimmed(n)) => format!("mean of the runs without the {n} best and worst"),
        }
    }

    /// Whether runs are dropped however many there are.
    pub(crate) fn drops_some(&self) -> bool {
        matches!(self.joined, Some(Joined::Trimmed(_)))
    }

    fn headline(&self) -> Headline {
        match self.joined {
            None => Headline::Usual,
            Some(Joined::Mean) => Headline::Mean,
            Some(Joined::Median) => Headline::Median,
            Some(Joined::Trimmed(n)) => Headline::Trimmed(n as usize),
        }
    }
}

/// How the runs of a profile are averaged: the old tools do a fixed amount of work, so that the
/// times are averaged (the harmonic mean of the rates); the others run for a fixed time.
#[must_use]
pub fn aggregate_of(profile: &str, unit: Unit) -> Aggregate {
    match (profile, unit) {
        (
            "bonnie" | "tiobench" | "hdbench" | "hdparm" | "dd",
            Unit::BytesPerSecond | Unit::PerSecond,
        ) => Aggregate::Harmonic,
        _ => Aggregate::Arithmetic,
    }
}

/// The figure of a phase over the valid runs; `None` when there is no valid run.
pub(crate) fn summarise(group: &Group<'_>, phase: &str, judging: &Judging) -> Option<Summary> {
    let runs = group.runs(phase);
    let sample = Sample::new(runs.iter().map(|run| run.value).collect::<Vec<_>>()).ok()?;
    let sessions: Vec<&str> = runs.iter().map(|run| run.session).collect();
    let aggregate = aggregate_of(group.profile, runs.first()?.phase.unit);
    let summary = |aggregate| {
        summarise_sessions(
            &sample,
            &sessions,
            aggregate,
            judging.headline(),
            judging.confidence,
        )
    };
    // A rate of zero has no harmonic mean, but it was measured.
    summary(aggregate)
        .or_else(|_| summary(Aggregate::Arithmetic))
        .ok()
}

/// What runs have beside their rate, joined as rates are: shares of a processor, operations a second, times. `None` of
/// nothing.
pub(crate) fn join(values: impl Iterator<Item = f64>, judging: &Judging) -> Option<f64> {
    let sample = Sample::new(values.collect::<Vec<_>>()).ok()?;
    let (which, confidence) = (judging.headline(), judging.confidence);
    let summary = summarise_at(&sample, Aggregate::Arithmetic, which, confidence).ok()?;
    Some(summary.headline.value)
}

/// What a comparison of two cells comes to in one phase.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// A side was not measured.
    Absent,
    /// A side's figure is not given.
    Withheld,
    /// A side was over before the tool could time it.
    TooFast,
    /// A side has no valid run.
    Invalid,
    /// The cell is its own baseline.
    IsBaseline,
    /// The sides did different things, and comparing such was not asked for.
    DifferentStreams,
    /// A ratio cannot be formed.
    Impossible(String),
    /// The comparison.
    Ratio(Box<Comparison>),
}

impl Outcome {
    /// Why there is no ratio, in words; nothing where there is one.
    pub(crate) fn why_none(&self) -> &str {
        match self {
            Self::Ratio(_) => "",
            Self::Absent => "not measured on one side",
            Self::Withheld => "withheld",
            Self::TooFast => "too fast",
            Self::Invalid => "no valid run on one side",
            Self::IsBaseline => "the same runs",
            Self::DifferentStreams => "different streams",
            Self::Impossible(why) => why,
        }
    }
}

/// Whether the candidate is better by more than the margin; for certain, where there is more than one run: of single runs
/// the figures are all there is.
pub(crate) fn is_better(comparison: &Comparison, judging: &Judging) -> bool {
    if comparison.ratio.flags.contains(&Flag::SingleValue) {
        let gain = comparison.gain();
        return gain.is_some_and(|gain| gain.value > 1.0 + judging.margin);
    }
    comparison.verdict == Verdict::Better
}

/// Compares `candidate` with `baseline` in one phase.
pub(crate) fn compare_phase(
    baseline: &Group<'_>,
    candidate: &Group<'_>,
    phase: &str,
    judging: &Judging,
) -> Outcome {
    let (a, b) = match (baseline.state(phase), candidate.state(phase)) {
        (State::Runs(a), State::Runs(b)) => (a, b),
        (State::Absent, _) | (_, State::Absent) => return Outcome::Absent,
        (State::Withheld, _) | (_, State::Withheld) => return Outcome::Withheld,
        (State::TooFast, _) | (_, State::TooFast) => return Outcome::TooFast,
        (State::Invalid, _) | (_, State::Invalid) => return Outcome::Invalid,
    };
    if !judging.allow_mixed_streams && !same_streams(baseline, candidate) {
        return Outcome::DifferentStreams;
    }
    let unit = a[0].phase.unit;
    if unit != b[0].phase.unit {
        return Outcome::Impossible("the figures have different units".to_owned());
    }
    match compare_runs(&a, &b, unit.better(), judging) {
        Ok(comparison) => Outcome::Ratio(Box::new(comparison)),
        Err(error) => Outcome::Impossible(error.to_string()),
    }
}

/// Whether all operation streams of the side with fewer were also run on the other; unknown ones
/// (imported and published figures) are not held against it.
pub(crate) fn same_streams(a: &Group<'_>, b: &Group<'_>) -> bool {
    let (a, b) = (a.digests(), b.digests());
    a.is_empty() || b.is_empty() || a.is_subset(&b) || b.is_subset(&a)
}

fn compare_runs(
    baseline: &[RunValue<'_>],
    candidate: &[RunValue<'_>],
    better: Better,
    judging: &Judging,
) -> Result<Comparison, StatsError> {
    let direction = match better {
        Better::Higher => Direction::HigherIsBetter,
        Better::Lower => Direction::LowerIsBetter,
    };
    let criteria = |pairing| {
        Criteria::new(pairing, direction)
            .with_margin(judging.margin)
            .with_confidence(judging.confidence)
    };
    if let Some((a, b)) = pairs(baseline, candidate) {
        let comparison = compare(&a, &b, &criteria(Pairing::Paired))?;
        return Ok(comparison.of_runs(baseline.len(), candidate.len()));
    }
    compare_sessions(
        &by_session(baseline),
        &by_session(candidate),
        &criteria(Pairing::Unpaired),
    )
}

/// The values of each session, in the order in which the sessions first come.
fn by_session(runs: &[RunValue<'_>]) -> Vec<Vec<f64>> {
    let mut sessions: Vec<(&str, Vec<f64>)> = Vec::new();
    for run in runs {
        match sessions.iter_mut().find(|(id, _)| *id == run.session) {
            Some((_, values)) => values.push(run.value),
            None => sessions.push((run.session, vec![run.value])),
        }
    }
    sessions.into_iter().map(|(_, values)| values).collect()
}

/// The values of the rounds in which both sides ran, when nearly all runs are in such rounds: runs
/// of one session are interleaved, so that what is common to a round cancels. Of models it is all that was drawn by lot, in
/// whichever sessions they ran.
fn pairs(baseline: &[RunValue<'_>], candidate: &[RunValue<'_>]) -> Option<(Vec<f64>, Vec<f64>)> {
    let interleaved = pairs_by(baseline, candidate, |run| Some((run.session, run.round)));
    interleaved.or_else(|| pairs_by(baseline, candidate, |run| run.drawn))
}

/// The values of the runs that have a key in common; `None` where a run has none, or two of a side the same.
fn pairs_by<'a, K: Ord>(
    baseline: &[RunValue<'a>],
    candidate: &[RunValue<'a>],
    key: impl Fn(&RunValue<'a>) -> Option<K>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let keyed = |runs: &[RunValue<'a>]| {
        let keys: Option<BTreeMap<K, f64>> = runs
            .iter()
            .map(|run| Some((key(run)?, run.value)))
            .collect();
        keys.filter(|keys| keys.len() == runs.len())
    };
    let (_, twins) = (keyed(baseline)?, keyed(candidate)?);
    let (a, b): (Vec<f64>, Vec<f64>) = baseline
        .iter()
        .filter_map(|run| Some((run.value, *twins.get(&key(run)?)?)))
        .unzip();
    let fewer = baseline.len().min(candidate.len());
    // Runs kept out of the aggregate may leave gaps; half of the pairs gone is no pairing any more.
    (a.len() >= 2 && 2 * a.len() > fewer).then_some((a, b))
}

/// Corrects the p values and verdicts of one table for their number.
pub(crate) fn adjust<'a>(outcomes: impl Iterator<Item = &'a mut Outcome>, judging: &Judging) {
    let mut held: Vec<&mut Box<Comparison>> = outcomes
        .filter_map(|outcome| match outcome {
            Outcome::Ratio(comparison) => Some(comparison),
            _ => None,
        })
        .collect();
    let mut family: Vec<Comparison> = held.iter().map(|c| (***c).clone()).collect();
    // The p values come from the comparisons themselves and are in range.
    if adjust_family(&mut family, judging.confidence).is_ok() {
        for (comparison, adjusted) in held.iter_mut().zip(family) {
            ***comparison = adjusted;
        }
    }
}

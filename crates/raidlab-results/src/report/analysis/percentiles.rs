//! Percentiles of response times, compared: of what raidlab timed operation by operation, and of what a tool tells of its own.
use super::{Judging, Outcome, compare_runs, same_streams};
use crate::record::{Better, PhaseRecord, Unit};
use crate::report::group::{Group, RunValue};
use crate::report::percentile::percentile_of;
use raidlab_core::time::Span;

/// A percentile of a run is more than a matter of luck from so many slower operations on.
const LEAST_BEYOND: f64 = 10.0;
/// Response times are skewed, and so are their tails from run to run: fewer runs on a side bear out no verdict. Of three and three even the
/// clearest order has a probability of a tenth by chance.
pub(crate) const LEAST_RUNS: usize = 4;
/// Histograms keep a response time within a hundredth, fio's within a 64th; a ratio of two is known no better.
const RESOLUTION: f64 = 0.02;

/// The margin by which percentiles are better or worse.
pub(crate) fn tail_margin(judging: &Judging) -> f64 {
    judging.margin.max(RESOLUTION)
}

/// A percentile of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    /// In seconds.
    Of(f64),
    /// Too few operations are slower.
    TooFew,
    /// A tool told others, or not of how many operations.
    NotTold,
    /// There are no response times.
    NotTimed,
}

/// A percentile of a phase's response times: of their histogram, else as the tool told it.
fn tail(phase: &PhaseRecord, percent: f64) -> Tail {
    // A rounding error must not ask for an eleventh.
    let beyond = |count: f64| count * (1.0 - percent / 100.0) + 1e-6 >= LEAST_BEYOND;
    if let Some(latencies) = &phase.latency {
        return match latencies.percentile(percent) {
            Some(time) if beyond(latencies.count() as f64) => Tail::Of(time.as_secs_f64()),
            _ => Tail::TooFew,
        };
    }
    let mut told = phase.figures.iter().filter_map(|figure| {
        let number = percentile_of(&figure.name)?;
        (figure.unit == Unit::Seconds).then_some((number, figure.value))
    });
    let Some(first) = told.next() else {
        return Tail::NotTimed;
    };
    let same = |(number, _): &(f64, f64)| (number - percent).abs() < 1e-9;
    let found = [first].into_iter().chain(told).find(same);
    match (found, operations(phase)) {
        (Some((_, time)), Some(count)) if beyond(count) => Tail::Of(time),
        (Some(_), Some(_)) => Tail::TooFew,
        _ => Tail::NotTold,
    }
}

/// How many operations a phase had: counted, or what its rate comes to.
pub(crate) fn operations(phase: &PhaseRecord) -> Option<f64> {
    if let Some(ops) = phase.ops {
        return Some(ops as f64);
    }
    let iops = phase.figures.iter().find(|figure| figure.name == "iops");
    let rate = match (iops, phase.unit) {
        (Some(figure), _) => Some(figure.value),
        (None, Unit::PerSecond) => phase.rate,
        (None, _) => None,
    };
    Some(rate? * Span(phase.elapsed_ns?).as_secs_f64())
}

impl Group<'_> {
    /// Whether some valid run of a phase has response times, operation by operation or as percentiles that a tool told.
    pub(crate) fn is_timed(&self, phase: &str) -> bool {
        // Which percentile makes no difference.
        let timed = |run: &RunValue<'_>| match &run.phase.latency {
            Some(latencies) => !latencies.is_empty(),
            None => tail(run.phase, 50.0) != Tail::NotTimed,
        };
        self.runs(phase).iter().any(timed)
    }
}

/// Compares a percentile of the response times of `candidate` with that of `baseline`. A run is the replicate: each has its own
/// percentile, and runs of the same round are compared with each other. Operations within a run are no replicates of each other.
pub(crate) fn compare_percentile(
    baseline: &Group<'_>,
    candidate: &Group<'_>,
    phase: &str,
    percent: f64,
    judging: &Judging,
) -> Outcome {
    if !baseline.is_timed(phase) || !candidate.is_timed(phase) {
        return Outcome::Absent;
    }
    if !judging.allow_mixed_streams && !same_streams(baseline, candidate) {
        return Outcome::DifferentStreams;
    }
    let sides = [baseline, candidate].map(|group| tails(group, phase, percent));
    let runs = sides[0].len().min(sides[1].len());
    if runs < LEAST_RUNS {
        let there = match runs {
            0 => "there are none".to_owned(),
            1 => "there is one".to_owned(),
            _ => format!("there are {runs}"),
        };
        return Outcome::Impossible(format!(
            "a verdict on response times wants {LEAST_RUNS} valid runs of each side, and {there}"
        ));
    }
    if let Some(why) = unusable(percent, &sides) {
        return Outcome::Impossible(why);
    }
    let [a, b] = sides.map(|side| side.into_iter().filter_map(valued).collect::<Vec<_>>());
    let judging = Judging {
        margin: tail_margin(judging),
        ..*judging
    };
    match compare_runs(&a, &b, Better::Lower, &judging) {
        Ok(comparison) => Outcome::Ratio(Box::new(comparison)),
        Err(error) => Outcome::Impossible(error.to_string()),
    }
}

type TimedRun<'a> = (RunValue<'a>, Tail);

/// The valid runs that were timed.
fn tails<'a>(group: &Group<'a>, phase: &str, percent: f64) -> Vec<TimedRun<'a>> {
    let runs = group.runs(phase).into_iter();
    let with = runs.map(|run| {
        let tail = tail(run.phase, percent);
        (run, tail)
    });
    with.filter(|(_, tail)| *tail != Tail::NotTimed).collect()
}

/// A run with its percentile as value.
fn valued((run, tail): TimedRun<'_>) -> Option<RunValue<'_>> {
    match tail {
        Tail::Of(value) => Some(RunValue { value, ..run }),
        Tail::TooFew | Tail::NotTold | Tail::NotTimed => None,
    }
}

/// Why the percentile cannot be compared, if a run does not have it. Runs that a slow device leaves with too few operations are not
/// passed over: the others are those in which it was fast.
fn unusable(percent: f64, sides: &[Vec<TimedRun<'_>>; 2]) -> Option<String> {
    let all = || sides.iter().flatten().map(|(_, tail)| *tail);
    let of = |what: Tail| all().filter(|tail| *tail == what).count();
    let (untold, fewer, runs) = (of(Tail::NotTold), of(Tail::TooFew), all().count());
    if untold > 0 {
        let which = match untold == runs {
            true => "no run was".to_owned(),
            false => format!("{untold} of {runs} runs were not"),
        };
        return Some(format!(
            "{which} imported with p{percent} and the number of its operations"
        ));
    }
    let there = match fewer {
        0 => return None,
        fewer if fewer == runs => "none has so many".to_owned(),
        fewer => format!("{fewer} of {runs} have fewer"),
    };
    let wanted = LEAST_BEYOND / (1.0 - percent / 100.0);
    Some(format!(
        "p{percent} wants {wanted:.0} operations in every run, of which ten are slower, and {there}"
    ))
}

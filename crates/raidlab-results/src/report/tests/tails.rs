//! Verdicts on response times.
use super::synthetic::trial;
use crate::record::{Figure, PhaseRecord, TrialRecord, Unit};
use crate::report::answers::{TailVerdict, answers};
use crate::report::document::{Block, Table};
use crate::report::{
    Baseline, CompareReport, CompareRequest, Document, GateResult, Percentile, ReportError,
    ReportRequest, Selector, compare_request, render_terminal, report,
};
use raidlab_core::histogram::Latencies;
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_stats::Confidence;
use std::collections::BTreeMap;

/// A uniform share of one.
fn share(stream: &Stream, at: u64) -> f64 {
    (stream.at(at) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Rounds of two cells: response times of the second are `times` those of the first; each run is slower or faster as a whole by up to
/// `scatter`, and has `operations`.
fn rounds(rounds: u32, times: f64, scatter: f64, operations: u64, seed: u64) -> Vec<TrialRecord> {
    let stream = Stream::new(seed);
    let mut all = Vec::new();
    for round in 0..rounds {
        for (cell, (label, times)) in [("one", 1.0), ("two", times)].into_iter().enumerate() {
            let own = stream.child(u64::from(round) * 2 + cell as u64);
            let of_run = 1.0 + scatter * (2.0 * share(&own, 0) - 1.0);
            let mut latency = Latencies::new();
            for i in 1..=operations {
                let tail = (1.0005 - share(&own, i)).powf(-0.4);
                latency.record(Span((80_000.0 * times * of_run * tail) as u64));
            }
            let mut phase = PhaseRecord::bare("read", Some(1e8 / of_run), Unit::BytesPerSecond);
            phase.latency = Some(latency);
            let mut trial = trial(label, &[], "random", round);
            trial.phases = vec![phase];
            all.push(trial);
        }
    }
    all
}

fn document(trials: Vec<TrialRecord>) -> Document {
    let mut request = ReportRequest::new("tails", trials);
    request.baseline = Some(Baseline::Cell(Selector::Label("one".to_owned())));
    report(&request).unwrap()
}

fn table(document: &Document) -> Option<&Table> {
    document.tables().find(|table| table.id == "random-tails")
}

/// The verdicts of the second cell on p50, p99 and p99.9; without one what stands instead of the ratio.
fn verdicts(trials: Vec<TrialRecord>) -> Vec<String> {
    let document = document(trials);
    let table = table(&document).expect("a table of tails");
    let of = |name: &str| {
        let of_group = |title: &str| {
            table
                .columns
                .iter()
                .position(|c| c.group.as_deref() == Some(name) && c.title == title)
        };
        // What is judged of no cell has no columns.
        let column = of_group("verdict").or_else(|| of_group("ratio"));
        column.map_or_else(|| "none".to_owned(), |at| table.rows[0][at].value.text())
    };
    ["p50", "p99", "p99.9"].map(of).to_vec()
}

#[test]
fn slower_tails_are_worse_and_faster_ones_better() {
    assert_eq!(
        verdicts(rounds(10, 1.3, 0.03, 20_000, 1))[..2],
        ["worse", "worse"]
    );
    assert_eq!(
        verdicts(rounds(10, 0.7, 0.03, 20_000, 1))[..2],
        ["better", "better"]
    );
    assert_eq!(verdicts(rounds(10, 1.0, 0.002, 20_000, 1))[0], "equivalent");
}

/// Ten of a thousand are slower than p99, and one than p99.9.
#[test]
fn a_tail_of_too_few_operations_is_not_judged() {
    let document = document(rounds(10, 1.3, 0.03, 1000, 1));
    let judged = table(&document).unwrap();
    let of = |name| {
        judged
            .columns
            .iter()
            .filter(|c| c.group.as_deref() == Some(name))
            .count()
    };
    assert_eq!((of("p50"), of("p99"), of("p99.9")), (2, 2, 0));
    let told = document.blocks.iter().any(|block| match block {
        Block::Paragraph { text } => {
            text == "random: p99.9 is judged of no cell: p99.9 wants 10000 operations in every run, of which ten are slower, \
                     and none has so many."
        }
        _ => false,
    });
    assert!(told, "{:?}", document.blocks);
}

#[test]
fn three_runs_are_too_few_and_that_is_said() {
    let single = document(rounds(1, 2.0, 0.01, 20_000, 1));
    let told = single.blocks.iter().any(|block| match block {
        Block::Paragraph { text } => text.ends_with("of each side, and there is one."),
        _ => false,
    });
    assert!(told, "{:?}", single.blocks);
    let document = document(rounds(3, 2.0, 0.01, 20_000, 1));
    assert!(table(&document).is_none());
    let told = document.blocks.iter().any(|block| match block {
        Block::Paragraph { text } => {
            text == "random: response times are not judged against the baseline: a verdict on response \
                     times wants 4 valid runs of each side, and there are 3."
        }
        _ => false,
    });
    assert!(told, "{:?}", document.blocks);
}

/// Of the same distribution hardly ever anything is found better or worse: the intervals hold, and they share their confidence.
#[test]
fn nothing_is_found_where_there_is_nothing() {
    let found = (0..150).filter(|seed| {
        let verdicts = verdicts(rounds(5, 1.0, 0.2, 1000, 1000 + seed));
        verdicts.iter().any(|v| v == "better" || v == "worse")
    });
    // Of 150 tables 7.5 may err at 95 %; 15 would be three standard deviations beyond that.
    let found = found.count();
    assert!(found <= 15, "{found} of 150");
}

#[test]
fn the_table_as_it_is_read() {
    let document = document(rounds(6, 1.1, 0.02, 12_000, 3));
    let mut alone = Document::new("t");
    alone
        .blocks
        .push(Block::Table(table(&document).unwrap().clone()));
    let options = crate::report::TerminalOptions::new(100, false);
    insta::assert_snapshot!(render_terminal(&alone, options));
}

/// One against two of the rounds, with gates.
fn compared(
    trials: Vec<TrialRecord>,
    gates: &[(Percentile, f64)],
) -> Result<CompareReport, ReportError> {
    let (baseline, candidate) = trials.into_iter().partition(|t| t.cell.label == "one");
    compare_request(&request(baseline, candidate, gates))
}

fn request(
    baseline: Vec<TrialRecord>,
    candidate: Vec<TrialRecord>,
    gates: &[(Percentile, f64)],
) -> CompareRequest {
    CompareRequest {
        names: ["before".to_owned(), "after".to_owned()],
        baseline,
        candidate,
        sessions: Vec::new(),
        environments: BTreeMap::new(),
        gate: None,
        gate_latency: gates.iter().copied().collect(),
        margin: 0.02,
        confidence: Confidence::P95,
        allow_mixed_streams: false,
        candidate_narrowed: false,
    }
}

#[test]
fn a_gate_of_response_times_fails_what_is_surely_longer() {
    use Percentile::{P50, P99, P999};
    let slower = || rounds(10, 1.3, 0.03, 20_000, 1);
    let overall = |trials, gates: &[_]| compared(trials, gates).unwrap().overall;
    assert_eq!(overall(slower(), &[]), GateResult::NotAsked);
    assert_eq!(overall(slower(), &[(P99, 1.1)]), GateResult::Fail);
    assert_eq!(overall(slower(), &[(P99, 1.6)]), GateResult::Pass);
    // One that is kept does not make up for one that is not.
    assert_eq!(
        overall(slower(), &[(P50, 1.1), (P99, 1.6)]),
        GateResult::Fail
    );
    assert_eq!(
        overall(rounds(10, 0.7, 0.03, 20_000, 1), &[(P99, 1.0)]),
        GateResult::Pass
    );
    // Looks longer, and is not certain.
    assert_eq!(
        overall(rounds(4, 1.6, 0.5, 2000, 5), &[(P50, 1.01)]),
        GateResult::Warn
    );
    // Nothing to judge by: too few operations, too few runs.
    let short = compared(rounds(10, 1.3, 0.03, 1000, 1), &[(P99, 1.6), (P999, 1.6)]).unwrap();
    assert_eq!(short.overall, GateResult::NotJudged);
    assert_eq!(
        overall(rounds(3, 2.0, 0.01, 20_000, 1), &[(P50, 1.1)]),
        GateResult::NotJudged
    );
    let wrong = compared(slower(), &[(P99, 0.0)]).unwrap_err();
    assert_eq!(wrong, ReportError::TailGate(P99, 0.0));
}

/// Runs that are too slow for enough operations are not left out: the gate cannot tell then, as the others are those that were
/// fast.
#[test]
fn slow_runs_with_few_operations_are_not_passed_over() {
    let mut trials = rounds(8, 1.0, 0.01, 2000, 1);
    let stalled = rounds(8, 100.0, 0.01, 500, 1);
    for (trial, stalled) in trials.iter_mut().zip(stalled) {
        if trial.cell.label == "two" && trial.round >= 4 {
            trial.phases = stalled.phases;
        }
    }
    let gates = [(Percentile::P99, 1.1)];
    let report = compared(trials.clone(), &gates).unwrap();
    assert_eq!(report.overall, GateResult::NotJudged);
    let p99 = &report.response_times[1];
    assert_eq!((p99.ratio, p99.gate), (None, GateResult::NotJudged));
    let why =
        "p99 wants 1000 operations in every run, of which ten are slower, and 4 of 16 have fewer";
    assert_eq!(p99.why, why);
    // Beside one that can be told of it is no pass either.
    let gates = [(Percentile::P50, 1e9), (Percentile::P99, 1.1)];
    assert_eq!(
        compared(trials.clone(), &gates).unwrap().overall,
        GateResult::NotJudged
    );
    let both = trials.iter().cloned().map(|mut trial| {
        let mut whole = trial.phases[0].clone();
        whole.phase = "write".to_owned();
        whole.latency = rounds(1, 1.0, 0.01, 2000, 9)[0].phases[0].latency.clone();
        trial.phases.push(whole);
        trial
    });
    let report = compared(both.collect(), &[(Percentile::P99, 1.1)]).unwrap();
    assert_eq!(report.overall, GateResult::Warn);
    // A run that completed nothing is slower still.
    trials[1].phases[0].latency = Some(Latencies::new());
    let report = compared(trials, &[(Percentile::P50, 1.1)]).unwrap();
    assert_eq!(report.overall, GateResult::NotJudged);
}

/// A side that has rates alone is not one that has too few runs.
#[test]
fn what_is_timed_on_one_side_is_told_as_that() {
    for untimed in ["one", "two"] {
        let mut trials = rounds(10, 1.3, 0.03, 2000, 1);
        for trial in trials.iter_mut().filter(|t| t.cell.label == untimed) {
            trial.phases[0].latency = None;
        }
        let report = compared(trials, &[(Percentile::P50, 1.1)]).unwrap();
        assert_eq!(report.overall, GateResult::NotJudged);
        assert_eq!(report.response_times[0].why, "timed on one side only");
    }
}

/// Response times are kept within a hundredth: a margin below what that lets tell is widened, and one above it holds.
#[test]
fn percentiles_are_judged_by_no_less_than_their_resolution() {
    let verdict = |margin: f64| {
        let trials = rounds(10, 1.012, 0.0005, 20_000, 1);
        let (baseline, candidate) = trials.into_iter().partition(|t| t.cell.label == "one");
        let report = compare_request(&CompareRequest {
            margin,
            ..request(baseline, candidate, &[])
        });
        report.unwrap().response_times[0].verdict.clone()
    };
    assert_eq!(verdict(0.001), "equivalent");
    assert_eq!(verdict(0.05), "equivalent");
}

#[test]
fn a_comparison_of_response_times_as_it_is_read() {
    let gates = [(Percentile::P99, 1.05), (Percentile::P999, 1.05)];
    let report = compared(rounds(6, 1.1, 0.02, 2000, 3), &gates).unwrap();
    let options = crate::report::TerminalOptions::new(110, false);
    insta::assert_snapshot!(render_terminal(&report.document, options));
}

/// Answers say what the table says.
#[test]
fn answers_have_the_verdicts() {
    let mut request = ReportRequest::new("tails", rounds(10, 1.3, 0.03, 1000, 1));
    request.baseline = Some(Baseline::Cell(Selector::Label("one".to_owned())));
    let told = answers(&request).unwrap().response_times;
    let verdicts: Vec<_> = told.iter().map(|t| (t.percentile, t.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            (Percentile::P50, TailVerdict::Worse),
            (Percentile::P99, TailVerdict::Worse),
            (Percentile::P999, TailVerdict::NotJudged)
        ]
    );
    let p99 = &told[1];
    assert_eq!((&p99.cell[..], &p99.baseline[..]), ("two", "one"));
    assert!(p99.low < p99.ratio && p99.ratio < p99.high && p99.low > Some(1.02));
    assert!(told[2].why.starts_with("p99.9 wants 10000"));
    assert_eq!((told[2].ratio, told[2].low), (None, None));
    request.baseline = None;
    assert!(answers(&request).unwrap().response_times.is_empty());
}

/// The times of both are those of queues that grew as long as the runs lasted.
#[test]
fn no_gate_of_response_times_judges_two_sides_that_do_not_keep_the_rate() {
    use raidlab_core::flag::{Flag, FlagKind};
    let gates = [(Percentile::P50, 1.05)];
    let overload = |of: &[&str]| {
        let mut trials = rounds(10, 1.3, 0.03, 2000, 1);
        for trial in &mut trials {
            if of.contains(&trial.cell.label.as_str()) {
                let flag = Flag::new(FlagKind::RateNotReached, "18156 of 500000");
                trial.phases[0].flags.push(flag);
            }
        }
        compared(trials, &gates).unwrap()
    };
    assert_eq!(overload(&[]).overall, GateResult::Fail);
    assert_eq!(overload(&["two"]).overall, GateResult::Fail);
    let both = overload(&["one", "two"]);
    assert_eq!(both.overall, GateResult::NotJudged);
    assert!(
        both.response_times[0].why.contains("neither side"),
        "{:?}",
        both.response_times[0]
    );
}

/// The same runs as a tool tells them that has no histogram: some percentiles, and how many operations there were.
fn as_told(mut trials: Vec<TrialRecord>, percentiles: &[f64], counted: bool) -> Vec<TrialRecord> {
    for phase in trials.iter_mut().flat_map(|trial| &mut trial.phases) {
        let latency = phase.latency.take().expect("response times");
        for percent in percentiles {
            phase.figures.push(Figure {
                name: format!("latency-p{percent}"),
                value: latency.percentile(*percent).unwrap().as_secs_f64(),
                unit: Unit::Seconds,
            });
        }
        phase.ops = counted.then(|| latency.count());
    }
    trials
}

#[test]
fn percentiles_that_a_tool_told_are_judged_as_those_of_histograms() {
    let timed = || rounds(10, 1.3, 0.03, 20_000, 1);
    let told = as_told(timed(), &[50.0, 90.0, 99.0, 99.9], true);
    assert_eq!(verdicts(told), verdicts(timed()));
    // Half of the runs one way and half the other.
    let mut mixed = timed();
    mixed[10..].clone_from_slice(&as_told(timed(), &[50.0, 99.0, 99.9], true)[10..]);
    assert_eq!(verdicts(mixed), verdicts(timed()));
    // By the rate, where operations are not counted.
    let mut told = as_told(timed(), &[50.0, 99.0, 99.9], false);
    for phase in told.iter_mut().flat_map(|trial| &mut trial.phases) {
        (phase.unit, phase.rate, phase.elapsed_ns) =
            (Unit::PerSecond, Some(2000.0), Some(10_000_000_000));
    }
    assert_eq!(verdicts(told), verdicts(timed()));
}

#[test]
fn a_percentile_that_was_not_told_is_not_judged() {
    let timed = || rounds(10, 1.3, 0.03, 20_000, 1);
    let why = |document: &Document| {
        document.blocks.iter().find_map(|block| match block {
            Block::Paragraph { text } if text.contains("judged") => Some(text.clone()),
            _ => None,
        })
    };
    let some = document(as_told(timed(), &[50.0, 99.0], true));
    insta::assert_snapshot!(
        why(&some).unwrap(),
        @"random: p99.9 is judged of no cell: no run was imported with p99.9 and the number of its operations."
    );
    let uncounted = document(as_told(timed(), &[50.0, 99.0, 99.9], false));
    assert!(table(&uncounted).is_none());
    let few = document(as_told(rounds(10, 1.3, 0.03, 1000, 1), &[50.0, 99.9], true));
    assert!(why(&few).unwrap().contains("p99 is judged of no cell"));
    let both = few.blocks.iter().any(|block| match block {
        Block::Paragraph { text } => text.contains("p99.9 wants 10000 operations in every run"),
        _ => false,
    });
    assert!(both, "{:?}", few.blocks);
    let mut mixed = timed();
    mixed[16..].clone_from_slice(&as_told(timed(), &[50.0, 99.0], true)[16..]);
    insta::assert_snapshot!(
        why(&document(mixed)).unwrap(),
        @"random: p99.9 is judged of no cell: 4 of 20 runs were not imported with p99.9 and the number of its operations."
    );
}

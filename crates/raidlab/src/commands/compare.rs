//! `raidlab compare`.
mod side;

use super::output::{check_stdout, emit, write_files};
use super::print_json;
use crate::args::CompareArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::place;
use crate::talk;
use raidlab_core::flag::FlagKind;
use raidlab_core::words::count;
use raidlab_results::record::TrialRecord;
use raidlab_results::report::{
    CompareReport, CompareRequest, GateResult, Percentile, PhaseGate, TailGate, compare_request,
};
use raidlab_stats::Confidence;
use serde_json::json;
use side::side;
use std::collections::{BTreeMap, BTreeSet};

/// So many figures are named that have no interval.
const TOLD: usize = 3;

pub(crate) fn run(args: &CompareArgs, place: &place::Store) -> Result<Outcome, Failure> {
    let mut store = None;
    let mut sides = Vec::new();
    for text in [&args.baseline, &args.candidate] {
        let mut bundle = side(text, place, &mut store)?;
        narrow(&mut bundle.trials, args, text)?;
        sides.push(bundle);
    }
    let (Some(candidate), Some(baseline)) = (sides.pop(), sides.pop()) else {
        return Err(Failure::bad_request("two sides are needed"));
    };
    different(&baseline.trials, &candidate.trials)?;
    let mut sessions = baseline.sessions;
    sessions.extend(candidate.sessions);
    let mut environments = baseline.environments;
    environments.extend(candidate.environments);
    let request = CompareRequest {
        names: [args.baseline.clone(), args.candidate.clone()],
        baseline: baseline.trials,
        candidate: candidate.trials,
        sessions,
        environments,
        gate: args.gate,
        gate_latency: latency_gates(args)?,
        margin: args.margin,
        confidence: Confidence::P95,
        allow_mixed_streams: args.allow_different_streams,
        candidate_narrowed: args.candidate.contains(':'),
    };
    let report =
        compare_request(&request).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    check_stdout(&args.output, args.output.json)?;
    if args.output.json {
        print_json(&json!({
            "format": "raidlab-comparison",
            "version": 1,
            "baseline": args.baseline,
            "candidate": args.candidate,
            "margin": args.margin,
            "gate": args.gate,
            "gate_latency": (!request.gate_latency.is_empty()).then_some(&request.gate_latency),
            "overall": report.overall,
            "phases": report.phases,
            "response_times": report.response_times,
            "not_compared": report.not_compared,
            "unfinished": report.unfinished,
        }))?;
        write_files(&report.document, &args.output)?;
    } else {
        emit(&report.document, &args.output)?;
    }
    Ok(outcome(args, &request, &report))
}

/// Each percentile has one gate.
fn latency_gates(args: &CompareArgs) -> Result<BTreeMap<Percentile, f64>, Failure> {
    let mut gates = BTreeMap::new();
    for (of, most) in &args.gate_latency {
        if gates.insert(*of, *most).is_some() {
            let message = format!("--gate-latency names {of} twice");
            return Err(Failure::bad_request(message).remedy("leave one of them"));
        }
    }
    Ok(gates)
}

fn outcome(args: &CompareArgs, request: &CompareRequest, report: &CompareReport) -> Outcome {
    // Whatever the gate says, it says of these.
    warn_doubted(report);
    if report.overall != GateResult::NotAsked {
        report.unfinished.iter().for_each(|text| talk::warn(text));
    }
    if report.overall == GateResult::Fail {
        return Outcome::Worse;
    }
    if report.overall != GateResult::NotAsked && is_unverified(request) {
        return Outcome::CannotTell;
    }
    if args.require_interval {
        // All tell what they lack.
        let lacking = [
            lacks_interval(args, report),
            lacks_percentile(args, report),
            lacks_cell(report),
        ];
        if lacking.contains(&true) {
            return Outcome::CannotTell;
        }
    }
    let phases = report.phases.iter().map(|phase| phase.gate);
    warn_of(
        report.throughput,
        phases,
        "the gate could judge nothing: no figure of both sides has a ratio",
        "it looks worse than the gate allows, but that is not certain; more repeats would settle it",
    );
    let timed = report.response_times.iter().map(|one| one.gate);
    warn_of(
        report.latency,
        timed,
        "the gate of response times could judge nothing of a percentile that it names",
        "response times look longer than the gate allows, but that is not certain; more repeats would settle it",
    );
    warn_unjudged(report);
    Outcome::Done
}

/// Says how many of the figures that a gate judges are in doubt.
fn warn_doubted(report: &CompareReport) {
    let (number, all, kinds) = report.doubted();
    if number == 0 {
        return;
    }
    let have = if number == 1 { "has" } else { "have" };
    let kinds: Vec<&str> = kinds.into_iter().map(FlagKind::name).collect();
    talk::warn(&format!(
        "{number} of the {} that the gate judges {have} doubts about the trials: {} (the notes of the comparison, or 'raidlab show')",
        count(all, "figure"),
        kinds.join(", ")
    ));
}

/// Whether a figure may be one of an array that holds something else than what was written to it, though that was to be
/// looked at; says how many.
fn is_unverified(request: &CompareRequest) -> bool {
    let unverified = |trial: &&TrialRecord| {
        let mut flags = trial.flags.iter();
        trial.is_valid() && flags.any(|flag| flag.kind == FlagKind::Unverified)
    };
    let both = request.baseline.iter().chain(&request.candidate);
    let number = both.filter(unverified).count();
    if number == 0 {
        return false;
    }
    talk::warn(&format!(
        "the gate cannot tell: whether the array was still consistent could not be told in {} (unverified)",
        count(number, "trial")
    ));
    true
}

fn warn_of(
    gate: GateResult,
    mut figures: impl Iterator<Item = GateResult>,
    not_judged: &str,
    looks_worse: &str,
) {
    match gate {
        GateResult::NotJudged => talk::warn(not_judged),
        GateResult::Warn if figures.any(|figure| figure == GateResult::Warn) => {
            talk::warn(looks_worse);
        }
        // What could not be judged beside others is told by itself.
        GateResult::Warn | GateResult::NotAsked | GateResult::Pass | GateResult::Fail => {}
    }
}

/// Names figures that a gate passes over, with the reason of each.
fn warn_unjudged(report: &CompareReport) {
    let told = |one: &(String, String)| (one.0.clone(), one.1.clone());
    let phases = report.phases.iter();
    let phases: Vec<_> = phases
        .filter(|phase| phase.gate == GateResult::NotJudged)
        .map(|phase| (name_of(phase), phase.why.clone()))
        .collect();
    if report.throughput != GateResult::NotJudged {
        for line in by_reason(phases.iter().map(told)) {
            talk::warn(&format!("the gate does not judge {line}"));
        }
    }
    if report.overall != GateResult::NotAsked {
        for line in by_reason(open_cells(report)) {
            talk::warn(&format!("the gate does not judge {line}"));
        }
    }
    let timed = report.response_times.iter();
    let timed: Vec<_> = timed
        .filter(|one| one.gate == GateResult::NotJudged)
        .map(|one| (tail_name(one), one.why.clone()))
        .collect();
    for line in by_reason(timed.iter().map(told)) {
        talk::warn(&format!("the gate of response times does not judge {line}"));
    }
}

fn name_of(phase: &PhaseGate) -> String {
    format!("{} of {}", phase.phase, phase.cell)
}

fn tail_name(one: &TailGate) -> String {
    format!("{} of {} of {}", one.percentile, one.phase, one.cell)
}

/// A line for each reason, with the first figures that have it.
fn by_reason(figures: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (name, why) in figures {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let line = |(why, names): &(String, Vec<String>)| format!("{}: {why}", some_of(names));
    reasons.iter().map(line).collect()
}

/// Whether a figure has no interval though the gate wants one; says which, and why.
fn lacks_interval(args: &CompareArgs, report: &CompareReport) -> bool {
    let phases = report.phases.iter().filter(|_| args.gate.is_some());
    let lacking: Vec<&PhaseGate> = phases.filter(|phase| phase.interval.is_none()).collect();
    let told = |phase: &&PhaseGate| {
        let single = phase.ratio.is_some() && phase.runs.is_some_and(|runs| runs.contains(&1));
        let why = match single {
            true => "two valid trials are needed on each side".to_owned(),
            false => phase.why.clone(),
        };
        (name_of(phase), why)
    };
    for line in by_reason(lacking.iter().map(told)) {
        talk::warn(&format!("the gate cannot tell: no interval of {line}"));
    }
    !lacking.is_empty()
}

/// Cells that a gate would have to judge and cannot, with why.
fn open_cells(report: &CompareReport) -> impl Iterator<Item = (String, String)> {
    let cells = report.not_compared.iter();
    let open = cells.filter(|cell| cell.leaves_open());
    open.map(|cell| {
        (
            format!("{} of {}", cell.profile, cell.cell),
            cell.why.clone(),
        )
    })
}

/// Whether the candidate lacks a cell of the baseline, or a cell may be on both sides, but which one it is there cannot be told.
fn lacks_cell(report: &CompareReport) -> bool {
    let lines = by_reason(open_cells(report));
    for line in &lines {
        talk::warn(&format!("the gate cannot tell of {line}"));
    }
    !lines.is_empty()
}

/// Whether a percentile that is gated has no verdict; says which, and why.
fn lacks_percentile(args: &CompareArgs, report: &CompareReport) -> bool {
    if args.gate_latency.is_empty() {
        return false;
    }
    let gated = |of: Percentile| args.gate_latency.iter().any(|(gated, _)| *gated == of);
    let timed = report.response_times.iter();
    let lacking: Vec<_> = timed
        .filter(|one| gated(one.percentile) && one.interval.is_none())
        .collect();
    if report.response_times.is_empty() {
        talk::warn(
            "the gate of response times cannot tell: no response times are in either result",
        );
        return true;
    }
    let figures = lacking.iter().map(|one| (tail_name(one), one.why.clone()));
    for line in by_reason(figures) {
        talk::warn(&format!(
            "the gate of response times cannot tell: no interval of {line}"
        ));
    }
    !lacking.is_empty()
}

/// The first few, and how many more there are.
fn some_of(lacking: &[String]) -> String {
    let told = &lacking[..lacking.len().min(TOLD)];
    let more = match lacking.len() - told.len() {
        0 => String::new(),
        n => format!(" and {}", count(n, "more figure")),
    };
    format!("{}{more}", told.join(", "))
}

/// A trial is always as fast as itself: a gate that looks at such a ratio passes.
fn different(baseline: &[TrialRecord], candidate: &[TrialRecord]) -> Result<(), Failure> {
    let known: BTreeSet<&str> = baseline.iter().map(|trial| trial.id.as_str()).collect();
    let both = candidate
        .iter()
        .filter(|trial| known.contains(trial.id.as_str()));
    let message = match both.count() {
        0 => return Ok(()),
        1 => "a trial is on both sides".to_owned(),
        n => format!("{n} trials are on both sides"),
    };
    Err(Failure::bad_request(message).remedy("name two sessions, or two cells: SESSION:LABEL"))
}

/// Leaves what is to be compared. A profile or phase that a side lacks is an error: a gate that looks
/// at nothing passes.
fn narrow(trials: &mut Vec<TrialRecord>, args: &CompareArgs, side: &str) -> Result<(), Failure> {
    let lacks = |what: &str, name: &str, has: BTreeSet<&str>| {
        let has: Vec<&str> = has.into_iter().collect();
        Failure::bad_request(format!("'{side}' has no {what} '{name}'"))
            .remedy(format!("it has: {}", has.join(", ")))
    };
    if let Some(profile) = &args.profile {
        let has: BTreeSet<&str> = trials.iter().map(|t| t.profile.as_str()).collect();
        if !has.contains(profile.as_str()) {
            return Err(lacks("profile", profile, has));
        }
        trials.retain(|trial| trial.profile == *profile);
    }
    let has: BTreeSet<&str> = trials
        .iter()
        .flat_map(|trial| &trial.phases)
        .map(|phase| phase.phase.as_str())
        .collect();
    if let Some(phase) = args.phase.iter().find(|name| !has.contains(name.as_str())) {
        return Err(lacks("phase", phase, has));
    }
    if !args.phase.is_empty() {
        for trial in trials.iter_mut() {
            trial
                .phases
                .retain(|phase| args.phase.contains(&phase.phase));
        }
        trials.retain(|trial| !trial.phases.is_empty());
    }
    Ok(())
}

//! `raidlab compare`.
use super::output::{emit, write_files};
use super::print_json;
use super::reference;
use crate::args::CompareArgs;
use crate::bench::{open_store, store_failure};
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::place;
use crate::talk;
use raidlab_core::flag::FlagKind;
use raidlab_core::words::count;
use raidlab_results::record::TrialRecord;
use raidlab_results::report::{
    CompareReport, CompareRequest, GateResult, Percentile, TailGate, compare_request,
};
use raidlab_results::store::{Bundle, Store, StoreError, TrialFilter};
use raidlab_stats::Confidence;
use serde_json::json;
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
    let mut environments = baseline.environments;
    environments.extend(candidate.environments);
    let request = CompareRequest {
        names: [args.baseline.clone(), args.candidate.clone()],
        baseline: baseline.trials,
        candidate: candidate.trials,
        environments,
        gate: args.gate,
        gate_latency: latency_gates(args)?,
        margin: args.margin,
        confidence: Confidence::P95,
        allow_mixed_streams: args.allow_different_streams,
    };
    let report =
        compare_request(&request).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
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
    if report.overall == GateResult::Fail {
        return Outcome::Worse;
    }
    if report.overall != GateResult::NotAsked && is_unverified(request) {
        return Outcome::CannotTell;
    }
    if args.require_interval {
        // Both tell what they lack.
        let lacking = [lacks_interval(args, report), lacks_percentile(args, report)];
        if lacking.contains(&true) {
            return Outcome::CannotTell;
        }
    }
    warn_of(
        report.throughput,
        "the gate could judge nothing: no figure is on both sides with more than one valid trial",
        "it looks worse than the gate allows, but that is not certain; more repeats would settle it",
    );
    warn_of(
        report.latency,
        "the gate of response times could judge nothing of a percentile that it names",
        "response times look longer than the gate allows, but that is not certain; more repeats would settle it",
    );
    Outcome::Done
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

fn warn_of(gate: GateResult, not_judged: &str, looks_worse: &str) {
    match gate {
        GateResult::NotJudged => talk::warn(not_judged),
        GateResult::Warn => talk::warn(looks_worse),
        GateResult::NotAsked | GateResult::Pass | GateResult::Fail => {}
    }
}

/// Whether a figure has no interval though the gate wants one; says which.
fn lacks_interval(args: &CompareArgs, report: &CompareReport) -> bool {
    let phases = report.phases.iter().filter(|_| args.gate.is_some());
    let lacking: Vec<String> = phases
        .filter(|phase| phase.interval.is_none())
        .map(|phase| format!("{} of {}", phase.phase, phase.cell))
        .collect();
    if lacking.is_empty() {
        return false;
    }
    talk::warn(&format!(
        "the gate cannot tell: no interval of {}; two valid trials are needed on each side",
        some_of(&lacking)
    ));
    true
}

/// Whether a percentile that is gated has no verdict; says which, and why the first has none.
fn lacks_percentile(args: &CompareArgs, report: &CompareReport) -> bool {
    if args.gate_latency.is_empty() {
        return false;
    }
    let gated = |of: Percentile| args.gate_latency.iter().any(|(gated, _)| *gated == of);
    let timed = report.response_times.iter();
    let lacking: Vec<_> = timed
        .filter(|one| gated(one.percentile) && one.interval.is_none())
        .collect();
    let told = match lacking.first() {
        _ if report.response_times.is_empty() => {
            "the gate of response times cannot tell: nothing was timed operation by operation"
                .to_owned()
        }
        None => return false,
        Some(first) => {
            let name =
                |one: &&TailGate| format!("{} of {} of {}", one.percentile, one.phase, one.cell);
            let names: Vec<String> = lacking.iter().map(name).collect();
            let (names, why) = (some_of(&names), &first.why);
            format!("the gate of response times cannot tell: no interval of {names}: {why}")
        }
    };
    talk::warn(&told);
    true
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

/// `SESSION`, `SESSION:LABEL`, `STUDY` or `STUDY:ROW`.
fn side(text: &str, place: &place::Store, store: &mut Option<Store>) -> Result<Bundle, Failure> {
    let (name, label) = match text.split_once(':') {
        Some((name, label)) => (name, Some(label)),
        None => (text, None),
    };
    let mut bundle = if let Ok(study) = reference::find(name) {
        Bundle {
            trials: study.trials(),
            ..Bundle::default()
        }
    } else {
        let store = match store {
            Some(store) => store,
            None => store.insert(open_store(place)?),
        };
        let session = store.find_session(name).map_err(|error| match error {
            StoreError::NotAnId(_) => Failure::bad_request(format!(
                "'{name}' is neither a session nor a study"
            ))
            .remedy("'raidlab list' shows the sessions, 'raidlab reference list' the studies"),
            other => store_failure(other),
        })?;
        store
            .bundle(&TrialFilter::of_session(&session.id))
            .map_err(store_failure)?
    };
    if let Some(label) = label {
        let labels: BTreeSet<String> = bundle
            .trials
            .iter()
            .map(|trial| trial.cell.label.clone())
            .collect();
        bundle.trials.retain(|trial| trial.cell.label == label);
        if bundle.trials.is_empty() {
            let known: Vec<_> = labels.into_iter().collect();
            return Err(
                Failure::bad_request(format!("{name} has no cell '{label}'"))
                    .remedy(format!("it has: {}", known.join("; "))),
            );
        }
    }
    Ok(bundle)
}

//! `raidlab compare`.
use super::output::{emit, write_files};
use super::print_json;
use super::reference;
use crate::args::CompareArgs;
use crate::bench::{open_store, store_failure};
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::place;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::record::TrialRecord;
use raidlab_results::report::{CompareReport, CompareRequest, GateResult, compare_request};
use raidlab_results::store::{Bundle, Store, StoreError, TrialFilter};
use raidlab_stats::Confidence;
use serde_json::json;
use std::collections::BTreeSet;

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
            "overall": report.overall,
            "phases": report.phases,
        }))?;
        write_files(&report.document, &args.output)?;
    } else {
        emit(&report.document, &args.output)?;
    }
    Ok(outcome(args, &report))
}

fn outcome(args: &CompareArgs, report: &CompareReport) -> Outcome {
    match report.overall {
        GateResult::Fail => Outcome::Worse,
        _ if args.require_interval && lacks_interval(report) => Outcome::CannotTell,
        GateResult::NotJudged => {
            talk::warn(
                "the gate could judge nothing: no figure is on both sides with more than one valid trial",
            );
            Outcome::Done
        }
        GateResult::Warn => {
            talk::warn(
                "it looks worse than the gate allows, but that is not certain; more repeats would settle it",
            );
            Outcome::Done
        }
        GateResult::NotAsked | GateResult::Pass => Outcome::Done,
    }
}

/// Whether a figure has no interval; says which.
fn lacks_interval(report: &CompareReport) -> bool {
    let phases = report.phases.iter();
    let lacking: Vec<String> = phases
        .filter(|phase| phase.interval.is_none())
        .map(|phase| format!("{} of {}", phase.phase, phase.cell))
        .collect();
    if lacking.is_empty() {
        return false;
    }
    let told = &lacking[..lacking.len().min(TOLD)];
    let more = match lacking.len() - told.len() {
        0 => String::new(),
        n => format!(" and {}", count(n, "more figure")),
    };
    talk::warn(&format!(
        "the gate cannot tell: no interval of {}{more}; two valid trials are needed on each side",
        told.join(", ")
    ));
    true
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

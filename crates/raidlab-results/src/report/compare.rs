//! Baseline against candidate with a gate, for scripts and CI.
mod doubted;
mod gates;
mod matching;
mod setups;
mod tails;
mod told;
mod types;

use super::analysis::{Judging, Outcome, adjust, compare_phase, same_streams};
use super::blocks::context;
use super::blocks::ratios::{basis, digits, verdict_text};
use super::document::{Block, Document};
use super::group::{Group, group, phases};
use super::{ReportError, ReportRequest, format};
use crate::record::Provenance;
use gates::{said, worst};
use matching::{Matching, Pair, matched};
use raidlab_stats::{Comparison, Flag, Pairing};
use setups::Setups;
pub use tails::TailGate;
use told::{closing, table};
pub use types::{CompareReport, CompareRequest, GateResult, NotCompared, PhaseGate};

/// Compares the sides phase by phase. Cells are matched by label, factors and settings, by fewer of these where that leaves
/// no choice, at the last by their label alone; when each side has one cell of a profile, these are compared whatever they are called.
///
/// # Errors
/// [`ReportError`]: a side without trials, nothing in common, a margin or gate that is none.
pub fn compare_request(request: &CompareRequest) -> Result<CompareReport, ReportError> {
    if request.baseline.is_empty() || request.candidate.is_empty() {
        return Err(ReportError::NoTrials);
    }
    check_gates(request)?;
    let shell = ReportRequest {
        margin: request.margin,
        confidence: request.confidence,
        allow_mixed_streams: request.allow_mixed_streams,
        ..ReportRequest::new("", Vec::new())
    };
    let judging = shell.judging()?;
    let (base, new) = (group(&request.baseline), group(&request.candidate));
    let setups = Setups::of(&request.sessions);
    let matching = matched(&base, &new, &setups, !request.candidate_narrowed);
    let pairs = &matching.pairs;
    let judged = outcomes(pairs, &judging);
    if judged.is_empty() {
        return Err(nothing_in_common(&base, &new, !pairs.is_empty()));
    }
    let one_session = one_session(pairs, &judged);
    let phases = judge(judged, request.gate);
    let timed = tails::response_times(pairs, &request.gate_latency, &judging);
    let gated: Vec<GateResult> = gated(request, &phases, &matching);
    let throughput = worst(gated.iter().copied());
    let open = matching.alone.iter().filter(|cell| cell.leaves_open());
    let open = open.count();
    let latency = match tails::overall(&timed, &request.gate_latency) {
        // Which percentiles a cell would have had is not known: it leaves them all open.
        GateResult::Pass if open > 0 => GateResult::Warn,
        said => said,
    };
    let all: Vec<Group<'_>> = base.iter().chain(&new).cloned().collect();
    let unfinished = told::unfinished(request);
    let document = {
        let mut document =
            Document::new(format!("{} against {}", request.names[1], request.names[0]));
        let out = &mut document.blocks;
        for told in context::provenance(&all) {
            // What holds of a cell on both sides is said once.
            if !out.contains(&told) {
                out.push(told);
            }
        }
        out.extend(
            unfinished
                .iter()
                .map(|text| Block::warning(format!("{text}."))),
        );
        let differ = pairs.iter().any(|(a, b)| !same_streams(a, b));
        out.extend(differ.then(|| context::told_of_streams(request.allow_mixed_streams)));
        out.push(Block::Table(table(request, &judging, &phases)));
        out.extend(tails::blocks(request, &judging, &timed));
        out.extend(one_session.then(|| Block::warning(ONE_SESSION)));
        out.extend(gates::blocks(
            request,
            &gated,
            (&timed, open),
            throughput,
            latency,
        ));
        out.extend(closing(request, [&base, &new], &matching));
        document.settle_ids();
        document
    };
    Ok(CompareReport {
        document,
        phases,
        response_times: timed,
        not_compared: matching.alone,
        unfinished,
        throughput,
        latency,
        overall: throughput.max(latency),
    })
}

/// Every phase of every pair, corrected for their number.
fn outcomes(pairs: &[Pair<'_, '_>], judging: &Judging) -> Vec<(PhaseGate, Outcome)> {
    let mut judged: Vec<(PhaseGate, Outcome)> = Vec::new();
    for (a, b) in pairs {
        for phase in phases(&[(*a).clone(), (*b).clone()]) {
            let outcome = compare_phase(a, b, phase, judging);
            judged.push((shell_of(a, b, phase), outcome));
        }
    }
    adjust(judged.iter_mut().map(|(_, outcome)| outcome), judging);
    judged
}

fn nothing_in_common(base: &[Group<'_>], new: &[Group<'_>], paired: bool) -> ReportError {
    let names = |groups: &[Group<'_>]| {
        let all = groups.iter();
        format::names(all.map(|g| format!("{} of {}", g.profile, g.label)))
    };
    let in_both = |group: &Group<'_>| new.iter().any(|other| other.profile == group.profile);
    let why = match (paired, base.iter().any(in_both)) {
        (true, _) => "no trial of either side got as far as its first figure",
        (false, true) => {
            "which cells of the two sides belong together cannot be told by their labels, factors and settings \
             (name one of each, as A:LABEL B:LABEL, and they are compared whatever they are)"
        }
        (false, false) => "the two sides ran different profiles",
    };
    ReportError::NothingInCommon {
        why,
        baseline: names(base),
        candidate: names(new),
    }
}

fn check_gates(request: &CompareRequest) -> Result<(), ReportError> {
    let wrong = |gate: &f64| !(gate.is_finite() && *gate > 0.0);
    if let Some(gate) = request.gate.filter(wrong) {
        return Err(ReportError::Gate(gate));
    }
    match request.gate_latency.iter().find(|(_, gate)| wrong(gate)) {
        Some((of, gate)) => Err(ReportError::TailGate(*of, *gate)),
        None => Ok(()),
    }
}

/// What the gate says of all phases, and of cells that it would have to judge.
fn gated(
    request: &CompareRequest,
    phases: &[PhaseGate],
    matching: &Matching<'_, '_>,
) -> Vec<GateResult> {
    let open = matching.alone.iter().filter(|cell| cell.leaves_open());
    let unjudged = match request.gate {
        Some(_) => GateResult::NotJudged,
        None => GateResult::NotAsked,
    };
    let phases = phases.iter().map(|phase| phase.gate);
    phases.chain(open.map(|_| unjudged)).collect()
}

const ONE_SESSION: &str = "Where a side was measured in one session and not in turns with the other, its intervals hold the \
     scatter within that session only, not what another one would add (a start of the machine, its neighbours, the time). \
     Surer: both in one session (raidlab bench A B), or several of each (raidlab compare A1,A2 B1,B2).";

/// Whether an interval rests on several runs of a single session that the other side is no part of. Simulated sessions differ
/// in nothing but their runs.
fn one_session(pairs: &[Pair<'_, '_>], judged: &[(PhaseGate, Outcome)]) -> bool {
    let unpaired = judged.iter().any(|(_, outcome)| match outcome {
        Outcome::Ratio(c) => c.criteria.pairing == Pairing::Unpaired && c.ratio.interval.is_some(),
        _ => false,
    });
    let single = |group: &Group<'_>| {
        let mut sessions = group.trials.iter().map(|trial| &trial.session);
        let first = sessions.next();
        let measured = matches!(
            group.provenance,
            Provenance::Measured { .. } | Provenance::Imported { .. }
        );
        measured && group.trials.len() > 1 && sessions.all(|session| Some(session) == first)
    };
    unpaired && pairs.iter().any(|(a, b)| single(a) || single(b))
}

fn shell_of(baseline: &Group<'_>, candidate: &Group<'_>, phase: &str) -> PhaseGate {
    PhaseGate {
        profile: candidate.profile.to_owned(),
        cell: candidate.label.clone(),
        phase: phase.to_owned(),
        ratio: None,
        interval: None,
        digits: None,
        verdict: String::new(),
        why: String::new(),
        runs: None,
        rounds: None,
        basis: None,
        flags: doubted::kinds([baseline, candidate], phase),
        remarks: doubted::remarks([baseline, candidate], phase),
        gate: GateResult::NotJudged,
        gate_why: None,
    }
}

fn judge(judged: Vec<(PhaseGate, Outcome)>, least: Option<f64>) -> Vec<PhaseGate> {
    let figures: Vec<_> = judged.iter().map(|(_, outcome)| (outcome, least)).collect();
    let said = said(&figures);
    let one = |((shell, outcome), (gate, gate_why)): (&(PhaseGate, Outcome), _)| {
        let mut phase = PhaseGate {
            verdict: outcome.why_none().to_owned(),
            why: why_in_full(outcome),
            gate,
            gate_why,
            ..shell.clone()
        };
        if let Outcome::Ratio(comparison) = outcome {
            fill(&mut phase, comparison, least);
        }
        phase
    };
    judged.iter().zip(said).map(one).collect()
}

fn why_in_full(outcome: &Outcome) -> String {
    match outcome {
        Outcome::DifferentStreams => {
            "the sides ran different operation streams; --allow-different-streams compares them"
                .into()
        }
        _ => outcome.why_none().to_owned(),
    }
}

fn fill(judged: &mut PhaseGate, comparison: &Comparison, least: Option<f64>) {
    judged.ratio = Some(comparison.ratio.value);
    judged.interval = interval(comparison);
    judged.digits = digits(comparison, |gain| {
        let below = |limit| gain.interval.is_some_and(|i| i.hi < limit);
        least.is_some_and(below)
    });
    judged.verdict = if comparison.ratio.flags.contains(&Flag::SingleValue) {
        "n=1, no interval".to_owned()
    } else {
        verdict_text(comparison.verdict).0
    };
    judged.why = comparison.why.clone();
    judged.basis = basis(comparison);
    judged.runs = Some([comparison.baseline_n, comparison.candidate_n]);
    judged.rounds = rounds(comparison);
}

/// One that does not order the sides is none to judge by.
fn interval(comparison: &Comparison) -> Option<(f64, f64)> {
    let interval = comparison.ratio.interval?;
    comparison.gain().map(|_| (interval.lo, interval.hi))
}

fn rounds(comparison: &Comparison) -> Option<usize> {
    let paired = comparison.criteria.pairing == Pairing::Paired;
    paired.then_some(comparison.replicates[0])
}

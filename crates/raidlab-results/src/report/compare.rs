//! Baseline against candidate with a gate, for scripts and CI.
mod doubted;
mod gates;
mod matching;
mod tails;

use super::analysis::{Judging, Outcome, adjust, compare_phase};
use super::blocks::context;
use super::blocks::doubts::Doubts;
use super::blocks::environment::environments;
use super::blocks::ratios::{basis, digits, verdict_text, with_basis};
use super::document::{Block, Cell, Column, Document, Table, Tone, Value};
use super::group::{Group, group, phases};
use super::percentile::Percentile;
use super::{ReportError, ReportRequest};
use crate::record::{Provenance, TrialRecord};
use gates::{said, worst};
use matching::{Matching, Pair, matched};
use raidlab_core::flag::FlagKind;
use raidlab_stats::{Comparison, Flag, Pairing, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
pub use tails::TailGate;

/// Two sets of trials to compare.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// What the report calls the sides: baseline, candidate.
    pub names: [String; 2],
    /// The baseline's trials.
    pub baseline: Vec<TrialRecord>,
    /// The candidate's trials.
    pub candidate: Vec<TrialRecord>,
    /// Environment records by digest.
    pub environments: BTreeMap<String, serde_json::Value>,
    /// Least gain (candidate over baseline, or its inverse where lower is better) that passes, such
    /// as 0.95; none: nothing is gated.
    pub gate: Option<f64>,
    /// The most that percentiles of response times may come to (candidate over baseline) to pass, such as 1.10; empty: none is
    /// gated.
    pub gate_latency: BTreeMap<Percentile, f64>,
    /// Practical margin: differences within it are equivalent.
    pub margin: f64,
    /// Confidence of all intervals.
    pub confidence: raidlab_stats::Confidence,
    /// Compare although the sides ran different operation streams.
    pub allow_mixed_streams: bool,
    /// Whether the candidate is some of its cells only: what it lacks of the baseline's was left out on purpose.
    pub candidate_narrowed: bool,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateResult {
    /// No gate was asked for.
    NotAsked,
    /// Not shown to be below the gate, nor does it look so.
    Pass,
    /// It looks below the gate, but the interval does not prove it (with n=1 nothing can); of several figures also: one
    /// of them could not be judged.
    Warn,
    /// No figure to judge: withheld, invalid, refused, without a ratio or missing on one side.
    NotJudged,
    /// The whole interval is below the gate.
    Fail,
}

impl GateResult {
    /// The word for a report.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotAsked => "not asked",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::NotJudged => "not judged",
            Self::Fail => "fail",
        }
    }
}

/// One phase of one cell, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseGate {
    /// The profile.
    pub profile: String,
    /// The candidate's cell.
    pub cell: String,
    /// The phase.
    pub phase: String,
    /// Candidate over baseline; `None` when there is no ratio.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Digits after the point with which the interval bears out verdict and gate, when two do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<usize>,
    /// `better`, `worse`, `equivalent`, `different, small`, `inconclusive`, or why there is none.
    pub verdict: String,
    /// The reason in a sentence.
    pub why: String,
    /// Valid runs of the baseline and of the candidate; `None` when there is no ratio.
    #[serde(default)]
    pub runs: Option<[usize; 2]>,
    /// The rounds that both have valid, where runs of a round are compared with each other.
    #[serde(default)]
    pub rounds: Option<usize>,
    /// What the ratio is of, where that is not simply all runs of both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// Kinds of doubt about the valid runs of the baseline and of the candidate.
    #[serde(default)]
    pub flags: [BTreeSet<FlagKind>; 2],
    /// The doubts in words, for the table: the side, the kind and the note.
    #[serde(skip)]
    pub(crate) remarks: Vec<(&'static str, FlagKind, String)>,
    /// What the gate says.
    pub gate: GateResult,
    /// Why it does not say what it would say of this figure alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_why: Option<String>,
}

/// A cell that has none to be compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// The profile.
    pub profile: String,
    /// The cell.
    pub cell: String,
    /// The reason in a sentence.
    pub why: String,
    /// Whether the other side has cells that it may belong to.
    pub ambiguous: bool,
    /// Whether it is one of the baseline's that the candidate should have.
    #[serde(default)]
    pub missing: bool,
}

impl NotCompared {
    /// Whether a gate would have to judge it, and cannot.
    #[must_use]
    pub const fn leaves_open(&self) -> bool {
        self.ambiguous || self.missing
    }
}

/// A comparison with its document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareReport {
    /// For a reader.
    pub document: Document,
    /// One a phase.
    pub phases: Vec<PhaseGate>,
    /// Percentiles of response times, of each phase that was timed on both sides.
    pub response_times: Vec<TailGate>,
    /// Cells that the other side lacks, or has more than once.
    pub not_compared: Vec<NotCompared>,
    /// The worst of all phases. A phase that could not be judged does not fail the gate, but does not let it pass without a
    /// warning either; when none was, the whole is [`GateResult::NotJudged`].
    pub throughput: GateResult,
    /// The worst of all gated percentiles, by the same rule for each percentile.
    pub latency: GateResult,
    /// The worse of both gates.
    pub overall: GateResult,
}

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
    let matching = matched(&base, &new, !request.candidate_narrowed);
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
        out.extend(context::streams(&all, request.allow_mixed_streams));
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
        out.extend(closing(request, &all, &matching));
        document.settle_ids();
        document
    };
    Ok(CompareReport {
        document,
        phases,
        response_times: timed,
        not_compared: matching.alone,
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
        let all: Vec<String> = groups
            .iter()
            .map(|g| format!("{} of {}", g.profile, g.label))
            .collect();
        all.join("; ")
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
            "the sides ran different operation streams; allow mixed streams to compare them".into()
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

fn closing(
    request: &CompareRequest,
    groups: &[Group<'_>],
    matching: &Matching<'_, '_>,
) -> Vec<Block> {
    let mut out = Vec::new();
    if !matching.differing.is_empty() {
        out.push(Block::paragraph("Compared although they differ:"));
        let items = matching.differing.clone();
        out.push(Block::List { items });
    }
    if !matching.alone.is_empty() {
        out.push(Block::paragraph("Not compared:"));
        let told = |one: &NotCompared| format!("{} of {}: {}", one.profile, one.cell, one.why);
        let items = matching.alone.iter().map(told).collect();
        out.push(Block::List { items });
    }
    out.extend(context::kept_out(groups));
    out.extend(environments(groups, &request.environments));
    out.extend(context::repeat(groups));
    out
}

fn table(request: &CompareRequest, judging: &Judging, phases: &[PhaseGate]) -> Table {
    let [base, new] = &request.names;
    let caption = format!(
        "{new} over {base}: ratio of the geometric means of the runs with {:.0} % interval; better or worse is by \
         more than {:.1} %",
        100.0 * judging.confidence.level(),
        100.0 * judging.margin
    );
    let mut columns = vec![
        Column::text("profile"),
        Column::text("cell"),
        Column::text("phase"),
        Column::number("ratio"),
        Column::text("verdict"),
    ];
    if request.gate.is_some() {
        columns.push(Column::text("gate"));
    }
    let mut table = Table::new("comparison", caption, columns).named_by(3);
    let mut doubts = Doubts::default();
    for phase in phases {
        let ratio: Cell = phase.ratio.map_or_else(Cell::absent, |value| {
            Value::Ratio {
                value,
                interval: phase.interval,
                digits: phase.digits,
            }
            .into()
        });
        let remarks = phase.remarks.iter().cloned();
        // Nothing is in doubt where there is no figure.
        let remarks = remarks.filter(|_| phase.ratio.is_some());
        let ratio = doubts.mark(&mut table, ratio, remarks);
        let mark = table.footnote(&phase.why);
        let tone = tone_of(&phase.verdict);
        let verdict = Cell::text(phase.verdict.clone()).tone(tone).mark(mark);
        let verdict = with_basis(&mut table, verdict, phase.basis.as_deref());
        let mut row = vec![
            Cell::text(phase.profile.clone()),
            Cell::text(phase.cell.clone()),
            Cell::text(phase.phase.clone()),
            ratio.tone(tone),
            verdict,
        ];
        if request.gate.is_some() {
            row.push(gate_cell(&mut table, phase.gate, phase.gate_why.as_deref()));
        }
        table.rows.push(row);
    }
    doubts.tell_how_many(&mut table);
    table
}

fn tone_of(verdict: &str) -> Tone {
    match verdict {
        v if v == Verdict::Better.word() => Tone::Good,
        v if v == Verdict::Worse.word() => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn gate_cell(table: &mut Table, gate: GateResult, why: Option<&str>) -> Cell {
    let tone = match gate {
        GateResult::Pass => Tone::Good,
        GateResult::Fail => Tone::Bad,
        _ => Tone::Plain,
    };
    let cell = Cell::text(gate.word()).tone(tone);
    match why {
        Some(why) => cell.mark(table.footnote(why)),
        None => cell,
    }
}

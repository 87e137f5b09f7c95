//! Baseline against candidate with a gate, for scripts and CI.
mod tails;

use super::analysis::{Judging, Outcome, adjust, compare_phase};
use super::blocks::context;
use super::blocks::environment::environments;
use super::blocks::ratios::{digits, verdict_text};
use super::document::{Block, Cell, Column, Document, Table, Tone, Value};
use super::group::{Group, group, phases};
use super::percentile::Percentile;
use super::{ReportError, ReportRequest};
use crate::record::TrialRecord;
use raidlab_stats::{Comparison, Flag, Gate, Verdict, gate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateResult {
    /// No gate was asked for.
    NotAsked,
    /// Not shown to be below the gate, nor does it look so.
    Pass,
    /// It looks below the gate, but the interval does not prove it (with n=1 nothing can).
    Warn,
    /// No figure to judge: withheld, invalid, refused or missing on one side.
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
    /// What the gate says.
    pub gate: GateResult,
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
    /// The worst of all phases. A phase that could not be judged does not fail the gate as long as
    /// others were judged; when none was, the whole is [`GateResult::NotJudged`].
    pub throughput: GateResult,
    /// The worst of all gated percentiles, by the same rule for each percentile.
    pub latency: GateResult,
    /// The worse of both gates.
    pub overall: GateResult,
}

/// Compares the sides phase by phase. Cells are matched by factors and label; when each side has
/// one cell of a profile, these are compared whatever they are called.
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
    let (pairs, alone) = matched(&base, &new);
    let mut judged: Vec<(PhaseGate, Outcome)> = Vec::new();
    for (a, b) in &pairs {
        for phase in phases(&[(*a).clone(), (*b).clone()]) {
            let outcome = compare_phase(a, b, phase, &judging);
            judged.push((shell_of(b, phase), outcome));
        }
    }
    if judged.is_empty() {
        let names = |groups: &[Group<'_>]| {
            let all: Vec<String> = groups
                .iter()
                .map(|g| format!("{} of {}", g.profile, g.label))
                .collect();
            all.join("; ")
        };
        let sides = format!("{} | {}", names(&base), names(&new));
        return Err(ReportError::NothingInCommon(sides));
    }
    adjust(judged.iter_mut().map(|(_, outcome)| outcome), &judging);
    let phases: Vec<PhaseGate> = judged
        .iter()
        .map(|(shell, outcome)| judge(shell, outcome, request.gate))
        .collect();
    let timed = tails::response_times(&pairs, &request.gate_latency, &judging);
    let throughput = worst(phases.iter().map(|phase| phase.gate));
    let latency = tails::overall(&timed, &request.gate_latency);
    let all: Vec<Group<'_>> = base.iter().chain(&new).cloned().collect();
    let document = {
        let mut document =
            Document::new(format!("{} against {}", request.names[1], request.names[0]));
        let out = &mut document.blocks;
        out.extend(context::provenance(&all));
        out.extend(context::streams(&all, request.allow_mixed_streams));
        out.push(Block::Table(table(request, &judging, &phases)));
        out.extend(tails::blocks(request, &judging, &timed));
        out.extend(gates(request, &timed, throughput, latency));
        out.extend(closing(request, &all, &alone));
        document.settle_ids();
        document
    };
    Ok(CompareReport {
        document,
        phases,
        response_times: timed,
        throughput,
        latency,
        overall: throughput.max(latency),
    })
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

type Pairs<'g, 'a> = Vec<(&'g Group<'a>, &'g Group<'a>)>;

/// The cells of both sides that belong together, and the names of those that stay alone.
fn matched<'g, 'a>(base: &'g [Group<'a>], new: &'g [Group<'a>]) -> (Pairs<'g, 'a>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    for candidate in new {
        let of_profile = |groups: &'g [Group<'a>]| -> Vec<&'g Group<'a>> {
            groups
                .iter()
                .filter(|g| g.profile == candidate.profile)
                .collect()
        };
        let (a, b) = (of_profile(base), of_profile(new));
        let same = a.iter().copied().find(|g| g.cell == candidate.cell);
        let factors = || {
            a.iter()
                .copied()
                .find(|g| !g.cell.factors.is_empty() && g.cell.factors == candidate.cell.factors)
        };
        let only = (a.len() == 1 && b.len() == 1).then(|| a[0]);
        match same.or_else(factors).or(only) {
            Some(baseline) => pairs.push((baseline, candidate)),
            None => alone.push(format!(
                "{} of {}: no such cell in the baseline",
                candidate.profile, candidate.label
            )),
        }
    }
    for baseline in base {
        if !pairs.iter().any(|(a, _)| std::ptr::eq(*a, baseline)) {
            alone.push(format!(
                "{} of {}: no such cell in the candidate",
                baseline.profile, baseline.label
            ));
        }
    }
    (pairs, alone)
}

fn shell_of(candidate: &Group<'_>, phase: &str) -> PhaseGate {
    PhaseGate {
        profile: candidate.profile.to_owned(),
        cell: candidate.label.clone(),
        phase: phase.to_owned(),
        ratio: None,
        interval: None,
        digits: None,
        verdict: String::new(),
        why: String::new(),
        gate: GateResult::NotJudged,
    }
}

fn judge(shell: &PhaseGate, outcome: &Outcome, threshold: Option<f64>) -> PhaseGate {
    let mut judged = shell.clone();
    if threshold.is_none() {
        judged.gate = GateResult::NotAsked;
    }
    if let Outcome::Ratio(comparison) = outcome {
        fill(&mut judged, comparison, threshold);
        return judged;
    }
    judged.verdict = outcome.why_none().to_owned();
    judged.why = why_in_full(outcome);
    judged
}

fn why_in_full(outcome: &Outcome) -> String {
    match outcome {
        Outcome::DifferentStreams => {
            "the sides ran different operation streams; allow mixed streams to compare them".into()
        }
        _ => outcome.why_none().to_owned(),
    }
}

fn fill(judged: &mut PhaseGate, comparison: &Comparison, threshold: Option<f64>) {
    judged.ratio = Some(comparison.ratio.value);
    judged.interval = comparison.ratio.interval.map(|i| (i.lo, i.hi));
    judged.digits = digits(comparison, |gain| {
        let below = |limit| gain.interval.is_some_and(|i| i.hi < limit);
        threshold.is_some_and(below)
    });
    judged.verdict = if comparison.ratio.flags.contains(&Flag::SingleValue) {
        "n=1, no interval".to_owned()
    } else {
        verdict_text(comparison.verdict).0
    };
    judged.why = comparison.why.clone();
    if let Some(threshold) = threshold {
        judged.gate = gated(comparison, threshold);
    }
}

/// What a gate says of a comparison; `threshold` is of the gain and was checked by the caller.
fn gated(comparison: &Comparison, threshold: f64) -> GateResult {
    match gate(comparison, threshold) {
        Ok(Gate::Pass) => GateResult::Pass,
        Ok(Gate::Warn) => GateResult::Warn,
        Ok(Gate::Fail) => GateResult::Fail,
        Err(_) => GateResult::NotJudged,
    }
}

/// The worst of what one gate says; what could not be judged does not count beside what could.
fn worst(gates: impl Iterator<Item = GateResult>) -> GateResult {
    gates
        .filter(|gate| *gate != GateResult::NotJudged)
        .max()
        .unwrap_or(GateResult::NotJudged)
}

/// What the gates that were asked for say.
fn gates(
    request: &CompareRequest,
    timed: &[TailGate],
    throughput: GateResult,
    latency: GateResult,
) -> Vec<Block> {
    let told = |text: String, said: GateResult| match said {
        GateResult::Pass => Block::paragraph(text),
        _ => Block::warning(text),
    };
    let mut out = Vec::new();
    if let Some(gate) = request.gate {
        let word = throughput.word();
        let text = format!(
            "Gate at {gate}: {word}. It fails only when a whole interval of the gain lies below {gate}."
        );
        out.push(told(text, throughput));
    }
    if !request.gate_latency.is_empty() {
        let of = |(of, most): (&Percentile, &f64)| {
            let said = tails::of_percentile(timed, *of).word();
            format!("{of} at {most}: {said}")
        };
        let each: Vec<String> = request.gate_latency.iter().map(of).collect();
        let text = format!(
            "Gate of response times, {}. It fails only when a whole interval of the ratio lies above that.",
            each.join("; ")
        );
        out.push(told(text, latency));
    }
    out
}

fn closing(request: &CompareRequest, groups: &[Group<'_>], alone: &[String]) -> Vec<Block> {
    let mut out = Vec::new();
    if !alone.is_empty() {
        out.push(Block::paragraph("Not compared:"));
        out.push(Block::List {
            items: alone.to_vec(),
        });
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
    for phase in phases {
        let ratio = phase.ratio.map_or_else(Cell::absent, |value| {
            Value::Ratio {
                value,
                interval: phase.interval,
                digits: phase.digits,
            }
            .into()
        });
        let mark = table.footnote(&phase.why);
        let tone = tone_of(&phase.verdict);
        let mut row = vec![
            Cell::text(phase.profile.clone()),
            Cell::text(phase.cell.clone()),
            Cell::text(phase.phase.clone()),
            ratio.tone(tone),
            Cell::text(phase.verdict.clone()).tone(tone).mark(mark),
        ];
        if request.gate.is_some() {
            row.push(gate_cell(phase.gate));
        }
        table.rows.push(row);
    }
    table
}

fn tone_of(verdict: &str) -> Tone {
    match verdict {
        v if v == Verdict::Better.word() => Tone::Good,
        v if v == Verdict::Worse.word() => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn gate_cell(gate: GateResult) -> Cell {
    let tone = match gate {
        GateResult::Pass => Tone::Good,
        GateResult::Fail => Tone::Bad,
        _ => Tone::Plain,
    };
    Cell::text(gate.word()).tone(tone)
}

//! Response times of two sides: percentiles with verdicts, and the gate for them.
use super::{
    CompareRequest, GateResult, doubted, interval, rounds, said,
    told::{gate_cell, tone_of},
    why_in_full, worst,
};
use crate::report::analysis::{
    Judging, LEAST_RUNS, Outcome, adjust, compare_percentile, tail_margin,
};
use crate::report::blocks::ratios::{basis, digits, verdict_text, with_basis};
use crate::report::document::{Block, Cell, Column, Table, Value};
use crate::report::group::{Group, phases};
use crate::report::percentile::Percentile;
use raidlab_core::flag::FlagKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One percentile of the response times of one phase of one cell, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailGate {
    /// The profile.
    pub profile: String,
    /// The candidate's cell.
    pub cell: String,
    /// The phase.
    pub phase: String,
    /// Which percentile.
    pub percentile: Percentile,
    /// Candidate over baseline, below 1 is faster; `None` when there is no ratio.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Digits after the point with which the interval bears out verdict and gate, when two do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<usize>,
    /// `better`, `worse`, `equivalent`, `different, small`, `inconclusive`, or `none`.
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
    /// What the gate says.
    pub gate: GateResult,
    /// Why it does not say what it would say of this figure alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_why: Option<String>,
}

/// All percentiles of the phases that were timed on a side, with verdicts that are corrected for their number.
pub(super) fn response_times(
    pairs: &[(&Group<'_>, &Group<'_>)],
    gates: &BTreeMap<Percentile, f64>,
    judging: &Judging,
) -> Vec<TailGate> {
    let mut judged: Vec<(&Group<'_>, &str, Percentile, Outcome)> = Vec::new();
    for (base, candidate) in pairs {
        for phase in phases(&[(*base).clone(), (*candidate).clone()]) {
            if !base.is_timed(phase) && !candidate.is_timed(phase) {
                continue;
            }
            for of in Percentile::ALL {
                let outcome = compare_percentile(base, candidate, phase, of.percent(), judging);
                judged.push((candidate, phase, of, outcome));
            }
        }
    }
    // Percentiles that are gated were chosen beforehand: their verdicts, as the gate, are of these alone.
    for gated in [true, false] {
        let family = judged
            .iter_mut()
            .filter(|(_, _, of, _)| gates.contains_key(of) == gated);
        adjust(family.map(|(_, _, _, outcome)| outcome), judging);
    }
    // The gain of response times is the inverse of their ratio.
    let least = |of: &Percentile| gates.get(of).map(|most| 1.0 / most);
    let figures: Vec<_> = judged
        .iter()
        .map(|(_, _, of, outcome)| (outcome, least(of)))
        .collect();
    let said = said(&figures);
    let mut timed = Vec::new();
    for ((candidate, phase, of, outcome), (gate, gate_why)) in judged.iter().zip(said) {
        let mut one = TailGate {
            profile: candidate.profile.to_owned(),
            cell: candidate.label.clone(),
            phase: (*phase).to_owned(),
            percentile: *of,
            ratio: None,
            interval: None,
            digits: None,
            verdict: "none".to_owned(),
            why: why_in_full(outcome),
            runs: None,
            rounds: None,
            basis: None,
            flags: Default::default(),
            gate,
            gate_why,
        };
        fill(&mut one, outcome, least(of));
        let mut sides = pairs.iter();
        let sides = sides.find(|(_, other)| std::ptr::eq(*other, *candidate));
        let base = sides.map(|(base, _)| *base);
        one.flags = base.map_or_else(Default::default, |base| {
            doubted::kinds([base, candidate], phase)
        });
        if base.is_some_and(|base| overloaded(base, phase) && overloaded(candidate, phase)) {
            one.why = OVERLOADED.to_owned();
            if one.gate != GateResult::NotAsked {
                one.gate = GateResult::NotJudged;
                one.gate_why = Some(OVERLOADED.to_owned());
            }
        }
        timed.push(one);
    }
    timed
}

const OVERLOADED: &str =
    "neither side keeps the rate: the times are those of queues that grow with the run";

/// Whether more operations were due in a phase than could be done. Of two sides of which one is, it is the slower one all the same.
fn overloaded(group: &Group<'_>, phase: &str) -> bool {
    let remarks = group.remarks(phase);
    remarks
        .iter()
        .any(|(kind, _)| *kind == FlagKind::RateNotReached)
}

/// `least` is the gain that passes.
fn fill(one: &mut TailGate, outcome: &Outcome, least: Option<f64>) {
    if matches!(outcome, Outcome::Absent) {
        one.why = "timed on one side only".to_owned();
    }
    let Outcome::Ratio(comparison) = outcome else {
        return;
    };
    one.ratio = Some(comparison.ratio.value);
    one.interval = interval(comparison);
    one.digits = digits(comparison, |gain| {
        let below = |limit| gain.interval.is_some_and(|i| i.hi < limit);
        least.is_some_and(below)
    });
    one.verdict = verdict_text(comparison.verdict).0;
    one.why.clone_from(&comparison.why);
    one.basis = basis(comparison);
    one.runs = Some([comparison.baseline_n, comparison.candidate_n]);
    one.rounds = rounds(comparison);
}

/// The worst of one percentile.
pub(super) fn of_percentile(timed: &[TailGate], percentile: Percentile) -> GateResult {
    let of = timed.iter().filter(|one| one.percentile == percentile);
    worst(of.map(|one| one.gate))
}

/// The worst of the gated percentiles; one that could be judged of no phase is not covered up by another that could.
pub(super) fn overall(timed: &[TailGate], gates: &BTreeMap<Percentile, f64>) -> GateResult {
    let all = gates.keys().map(|of| of_percentile(timed, *of));
    all.max().unwrap_or(GateResult::NotAsked)
}

/// The table, and why what it lacks is not in it; nothing where nothing was timed.
pub(super) fn blocks(
    request: &CompareRequest,
    judging: &Judging,
    timed: &[TailGate],
) -> Vec<Block> {
    let judged: Vec<Percentile> = Percentile::ALL
        .into_iter()
        .filter(|of| {
            timed
                .iter()
                .any(|t| t.percentile == *of && t.ratio.is_some())
        })
        .collect();
    let mut out = Vec::new();
    if !judged.is_empty() {
        out.push(Block::Table(table(request, judging, timed, &judged)));
    }
    if let (true, Some(first)) = (judged.is_empty(), timed.first()) {
        out.push(Block::paragraph(format!(
            "Response times are not judged: {}.",
            first.why
        )));
        return out;
    }
    for of in Percentile::ALL {
        let without = timed.iter().find(|t| t.percentile == of);
        if let (false, Some(first)) = (judged.contains(&of), without) {
            let why = &first.why;
            out.push(Block::paragraph(format!("{of} is not judged: {why}.")));
        }
    }
    out
}

fn table(
    request: &CompareRequest,
    judging: &Judging,
    timed: &[TailGate],
    judged: &[Percentile],
) -> Table {
    let [base, new] = &request.names;
    let caption = format!(
        "{new} over {base}: ratio of response times, below 1 is faster (of the percentiles of the runs, {LEAST_RUNS} or more of each \
         side, {:.0} % interval; better or worse is by more than {:.1} %)",
        100.0 * judging.confidence.level(),
        100.0 * tail_margin(judging)
    );
    let mut columns = vec![
        Column::text("profile"),
        Column::text("cell"),
        Column::text("phase"),
    ];
    for of in judged {
        columns.push(Column::number("ratio").under(of.name()));
        columns.push(Column::text("verdict").under(of.name()));
        if request.gate_latency.contains_key(of) {
            columns.push(Column::text("gate").under(of.name()));
        }
    }
    let mut table = Table::new("response-times", caption, columns).named_by(3);
    for line in
        timed.chunk_by(|a, b| (&a.profile, &a.cell, &a.phase) == (&b.profile, &b.cell, &b.phase))
    {
        let mut row: Vec<Cell> = [&line[0].profile, &line[0].cell, &line[0].phase]
            .map(|name| Cell::text(name.clone()))
            .into();
        for one in line.iter().filter(|one| judged.contains(&one.percentile)) {
            row.extend(cells(&mut table, one, request));
        }
        table.rows.push(row);
    }
    table
}

fn cells(table: &mut Table, one: &TailGate, request: &CompareRequest) -> Vec<Cell> {
    let mark = table.footnote(&one.why);
    let tone = tone_of(&one.verdict);
    let ratio = one.ratio.map_or_else(Cell::absent, |value| {
        Value::Ratio {
            value,
            interval: one.interval,
            digits: one.digits,
        }
        .into()
    });
    let verdict = Cell::text(one.verdict.clone()).tone(tone).mark(mark);
    let verdict = with_basis(table, verdict, one.basis.as_deref());
    let mut cells = vec![ratio.tone(tone), verdict];
    if request.gate_latency.contains_key(&one.percentile) {
        cells.push(gate_cell(table, one.gate, one.gate_why.as_deref()));
    }
    cells
}

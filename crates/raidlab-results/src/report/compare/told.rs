//! The table of a comparison, and what follows it.
use super::super::analysis::Judging;
use super::super::blocks::context;
use super::super::blocks::doubts::Doubts;
use super::super::blocks::environment::environments;
use super::super::blocks::ratios::with_basis;
use super::super::document::{Block, Cell, Column, Table, Tone, Value};
use super::super::group::Group;
use super::matching::Matching;
use super::types::{CompareRequest, GateResult, NotCompared, PhaseGate};
use crate::id;
use raidlab_stats::Verdict;

pub(super) fn closing(
    request: &CompareRequest,
    [base, new]: [&[Group<'_>]; 2],
    matching: &Matching<'_, '_>,
) -> Vec<Block> {
    // Cells of both sides are called the same as a rule.
    let mut groups = of_side("baseline", base);
    groups.extend(of_side("candidate", new));
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
    out.extend(context::kept_out(&groups));
    out.extend(environments(&groups, &request.environments));
    out.extend(context::repeat(&groups));
    out
}

/// Sessions that were killed or are still run: of what they have not measured yet nothing is compared.
pub(super) fn unfinished(request: &CompareRequest) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for session in request.sessions.iter().filter(|one| !one.finished) {
        let all = session
            .planned
            .map_or_else(String::new, |number| format!(" of its {number}"));
        let (id, title) = (id::short(&session.id), &session.title);
        let text = format!("session {id} ({title}) is unfinished: not all{all} trials were run");
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

/// The cells of a side, called by it.
fn of_side<'a>(side: &str, groups: &[Group<'a>]) -> Vec<Group<'a>> {
    let called = |group: &Group<'a>| Group {
        label: format!("{side}: {}", group.label),
        ..group.clone()
    };
    groups.iter().map(called).collect()
}

pub(super) fn table(request: &CompareRequest, judging: &Judging, phases: &[PhaseGate]) -> Table {
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

pub(super) fn tone_of(verdict: &str) -> Tone {
    match verdict {
        v if v == Verdict::Better.word() => Tone::Good,
        v if v == Verdict::Worse.word() => Tone::Bad,
        _ => Tone::Plain,
    }
}

pub(super) fn gate_cell(table: &mut Table, gate: GateResult, why: Option<&str>) -> Cell {
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

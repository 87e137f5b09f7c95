//! The figures under the tool's own column names.
use crate::record::{PhaseRecord, Unit};
use crate::report::analysis::{Judging, join, operations, summarise};
use crate::report::blocks::doubts::Doubts;
use crate::report::columns::{Source, ToolColumn, columns, unit_note};
use crate::report::document::{Cell, Column, Table, Value};
use crate::report::format;
use crate::report::group::{Group, RunValue, State, median_figure, phases, provenance_kind};
use crate::report::percentile::percentile_of;
use raidlab_core::histogram::{Latencies, is_told};
use raidlab_core::outcome::CpuTime;
use raidlab_core::time::Span;

/// The tool-style table of a profile's groups.
pub(crate) fn tool_table(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Table {
    let all = phases(groups);
    let unit = |phase: &str| {
        let mut units = groups.iter().filter_map(|g| g.unit(phase));
        units.next().unwrap_or(Unit::BytesPerSecond)
    };
    let tool = columns(profile, &all, &unit);
    let repeats = groups.iter().map(|g| g.trials.len()).max().unwrap_or(0);
    let of = match repeats {
        0 | 1 => "one run each: n=1, no interval".to_owned(),
        _ => judging.how() + how_times(groups, &tool),
    };
    let caption = format!("{profile}: {of}; {}", unit_note(profile));
    let mut headings = vec![Column::text("")];
    let kinds: Vec<String> = groups
        .iter()
        .map(|g| provenance_kind(g.provenance))
        .collect();
    let mixed = kinds.iter().any(|kind| *kind != kinds[0]);
    if mixed {
        headings.push(Column::text("source"));
    }
    headings.extend(
        tool.iter()
            .map(|c| Column::number(c.title.clone()).under(c.group.clone())),
    );
    let mut table = Table::new(format!("{profile}-figures"), caption, headings);
    let mut doubts = Doubts::default();
    for (group, kind) in groups.iter().zip(kinds) {
        let mut row = vec![Cell::text(group.label.clone())];
        if mixed {
            row.push(Cell::text(kind));
        }
        for column in &tool {
            let cell = cell_of(group, column, judging);
            row.push(doubted(&mut doubts, &mut table, cell, group, column));
        }
        table.rows.push(row);
    }
    doubts.tell_how_many(&mut table);
    table.drop_empty_columns();
    table
}

/// Marks a figure with the doubts about its runs; what a column has beside rates is in no doubt of its own.
fn doubted(
    doubts: &mut Doubts,
    table: &mut Table,
    cell: Cell,
    group: &Group<'_>,
    column: &ToolColumn,
) -> Cell {
    let rate = matches!(column.source, Source::Rate(_));
    if !rate || !matches!(cell.value, Value::Number { .. }) {
        return cell;
    }
    let remarks = group.remarks(&column.phase).into_iter();
    let remarks = remarks.map(|(kind, text)| ("", kind, text));
    doubts.mark(table, cell, remarks)
}

fn cell_of(group: &Group<'_>, column: &ToolColumn, judging: &Judging) -> Cell {
    let number = |value: f64| {
        let decimals = column.decimals.unwrap_or_else(|| format::decimals(value));
        Cell::number(value, decimals)
    };
    match column.source {
        Source::Rate(scale) => match group.state(&column.phase) {
            State::Absent => Cell::absent(),
            State::Withheld => Value::Withheld.into(),
            State::TooFast => Value::TooFast.into(),
            State::Invalid => Value::Invalid.into(),
            State::Runs(_) => match summarise(group, &column.phase, judging) {
                Some(summary) => number(summary.headline.value / scale),
                None => Value::Invalid.into(),
            },
        },
        Source::Cpu => cpu(group, &column.phase, judging).map_or_else(Cell::absent, number),
        Source::Figure(name, scale) => figure(group, &column.phase, name, judging)
            .map_or_else(Cell::absent, |v| number(v / scale)),
    }
}

/// How response times become one figure, for they are not joined as rates are.
fn how_times(groups: &[Group<'_>], columns: &[ToolColumn]) -> &'static str {
    let (mut together, mut apart) = (false, false);
    for column in columns {
        let Source::Figure(name, _) = column.source else {
            continue;
        };
        for group in groups.iter().filter(|group| group.trials.len() > 1) {
            match group.latencies(&column.phase) {
                Some(latencies) => together |= from_histogram(&latencies, name).is_some(),
                None if percentile_of(name).is_some() => {
                    apart |= median_figure(&group.runs(&column.phase), name).is_some();
                }
                None => {}
            }
        }
    }
    match (together, apart) {
        (true, true) => {
            "; response times of all runs together, or of percentiles the median of the runs'"
        }
        (true, false) => "; response times of all runs together",
        (false, true) => "; of percentiles the median of the runs'",
        (false, false) => "",
    }
}

/// Share of a processor; the tools' own figure.
fn cpu(group: &Group<'_>, phase: &str, judging: &Judging) -> Option<f64> {
    let runs = group.runs(phase);
    join(runs.iter().filter_map(|run| run.phase.cpu_percent), judging)
}

/// A figure in its stored unit: from the merged histogram when there is one, for percentiles are
/// never averaged.
fn figure(group: &Group<'_>, phase: &str, name: &str, judging: &Judging) -> Option<f64> {
    let latencies = group.latencies(phase);
    if let Some(value) = latencies.as_ref().and_then(|all| from_histogram(all, name)) {
        return Some(value);
    }
    let mut runs = group.runs(phase);
    // Percentiles of runs are never averaged.
    if let Some(percent) = percentile_of(name) {
        // Where there is a histogram it was asked.
        let told = |run: &RunValue<'_>| {
            latencies.is_none() && operations(run.phase).is_none_or(|count| is_told(count, percent))
        };
        runs.retain(told);
        return median_figure(&runs, name).map(|(value, _)| value);
    }
    join_figure(&runs, name, judging).or_else(|| worked_out(&runs, name, judging))
}

/// A figure that runs have, joined as their rates are; `None` where no run has it.
pub(super) fn join_figure(runs: &[RunValue<'_>], name: &str, judging: &Judging) -> Option<f64> {
    let figures = runs.iter().flat_map(|run| &run.phase.figures);
    let of_name = figures.filter(|figure| figure.name == name);
    join(of_name.map(|figure| figure.value), judging)
}

/// What can be worked out of a run, run by run.
fn worked_out(runs: &[RunValue<'_>], name: &str, judging: &Judging) -> Option<f64> {
    let over_time = |amount: &dyn Fn(&PhaseRecord) -> Option<f64>| {
        let of_run = |run: &RunValue<'_>| {
            let elapsed = run.phase.elapsed_ns.filter(|ns| *ns > 0)?;
            Some(amount(run.phase)? / (elapsed as f64 / 1e9))
        };
        join(runs.iter().filter_map(of_run), judging)
    };
    let share = |pick: &dyn Fn(&CpuTime) -> Span| {
        over_time(&|phase| Some(100.0 * pick(phase.cpu.as_ref()?).as_secs_f64()))
    };
    match name {
        "iops" => over_time(&|phase| phase.ops.map(|ops| ops as f64)),
        "cpu-user" => share(&|cpu| cpu.user),
        "cpu-system" => share(&|cpu| cpu.system),
        _ => None,
    }
}

/// A latency figure of the stable names, from a histogram.
fn from_histogram(latencies: &Latencies, name: &str) -> Option<f64> {
    let span = match name {
        "latency-mean" => latencies.mean(),
        "latency-max" => latencies.max(),
        "share-above-2s" => return Some(100.0 * latencies.share_above(Span::from_secs(2))),
        "share-above-10s" => return Some(100.0 * latencies.share_above(Span::from_secs(10))),
        _ => latencies.told_percentile(percentile_of(name)?),
    };
    span.map(Span::as_secs_f64)
}

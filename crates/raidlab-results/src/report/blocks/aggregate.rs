//! Every figure over its repeats: value, interval, median, scatter and doubts.
use crate::report::analysis::{Judging, aggregate_of, summarise};
use crate::report::document::{Cell, Column, Table, Value};
use crate::report::format;
use crate::report::group::{Group, State, phases};
use raidlab_stats::{Aggregate, Estimate, Flag, Method, Summary};
use std::collections::BTreeSet;

/// The table of aggregates; `None` when no cell has more than one run.
pub(crate) fn aggregates(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    if groups.iter().all(|g| g.trials.len() < 2) {
        return None;
    }
    let level = 100.0 * judging.confidence.level();
    let harmonic = groups.iter().any(|g| {
        let unit = phases(groups).first().and_then(|p| g.unit(p));
        unit.is_some_and(|unit| aggregate_of(profile, unit) == Aggregate::Harmonic)
    });
    let how = if harmonic {
        " of the times, for each run does the same work"
    } else {
        ""
    };
    let caption = format!(
        "{profile}: over the repeats. The figure is the {}{how}; intervals are {level:.0} % where no \
         other confidence is noted",
        judging.how()
    );
    let columns = vec![
        Column::text("phase"),
        Column::text("cell"),
        Column::text("unit"),
        Column::number("n"),
        Column::number("figure"),
        Column::number("interval"),
        Column::number("median"),
        Column::number("its interval"),
        Column::number("CV %"),
    ];
    let mut table = Table::new(format!("{profile}-aggregates"), caption, columns).named_by(2);
    for phase in phases(groups) {
        let summaries: Vec<_> = groups
            .iter()
            .map(|g| summarise(g, phase, judging))
            .collect();
        let largest = summaries
            .iter()
            .flatten()
            .map(|s| s.headline.value.abs())
            .fold(0.0, f64::max);
        for (group, summary) in groups.iter().zip(&summaries) {
            if let Some(row) = row(
                &mut table,
                (phase, largest),
                group,
                summary.as_ref(),
                judging,
            ) {
                table.rows.push(row);
            }
        }
    }
    Some(table)
}

fn row(
    table: &mut Table,
    (phase, largest): (&str, f64),
    group: &Group<'_>,
    summary: Option<&Summary>,
    judging: &Judging,
) -> Option<Vec<Cell>> {
    let shown = format::suited(group.unit(phase)?, largest);
    let mut cells = vec![
        Cell::text(phase),
        Cell::text(group.label.clone()),
        Cell::text(shown.name),
    ];
    let Some(summary) = summary else {
        let why = match group.state(phase) {
            State::Absent => return None,
            State::Withheld => Value::Withheld,
            State::TooFast => Value::TooFast,
            State::Invalid | State::Runs(_) => Value::Invalid,
        };
        cells.extend([Cell::number(0.0, 0), why.into()]);
        cells.resize(table.columns.len(), Cell::absent());
        return Some(cells);
    };
    let scale = shown.scale;
    let decimals = format::decimals(summary.headline.value / scale);
    let number = |value: f64| Cell::number(value / scale, decimals);
    let interval = |estimate: &Estimate| match estimate.interval {
        Some(i) => Value::Interval {
            lo: i.lo / scale,
            hi: i.hi / scale,
            decimals,
        }
        .into(),
        None => Cell::absent(),
    };
    let mut figure = number(summary.headline.value);
    // Doubts about the runs themselves are noted in the tool's own table above.
    for remark in &doubts(summary, scale, shown.name) {
        figure = figure.mark(table.footnote(remark));
    }
    let median = summary.n > 1 && summary.headline.method == Method::OrderStatistic;
    if judging.drops_some() && median {
        figure = figure.mark(table.footnote("the median: too few valid runs to drop any"));
    }
    let mut ends = interval(&summary.headline);
    if let Some(note) = sessions_note(&summary.headline, group, phase) {
        ends = ends.mark(table.footnote(&note));
    }
    if let Some(note) = confidence_note(&summary.headline, judging) {
        ends = ends.mark(table.footnote(&note));
    }
    let mut median_ends = interval(&summary.median);
    if let Some(note) = confidence_note(&summary.median, judging) {
        median_ends = median_ends.mark(table.footnote(&note));
    }
    if summary.headline.method == Method::TwoLevelT {
        median_ends = median_ends.mark(table.footnote("ignores that sessions differ"));
    }
    let cv = summary.cv.map(|cv| Cell::number(100.0 * cv, 1));
    cells.extend([
        Cell::number(summary.n as f64, 0),
        figure,
        ends,
        number(summary.median.value),
        median_ends,
        cv.unwrap_or_else(Cell::absent),
    ]);
    Some(cells)
}

/// Where sessions differ, the figure is of sessions.
fn sessions_note(estimate: &Estimate, group: &Group<'_>, phase: &str) -> Option<String> {
    let runs = group.runs(phase);
    let sessions: BTreeSet<&str> = runs.iter().map(|run| run.session).collect();
    (estimate.method == Method::TwoLevelT).then(|| {
        format!(
            "{} sessions differ by more than their runs explain: the mean of their figures, with the interval between sessions",
            sessions.len()
        )
    })
}

/// An order-statistic interval has the confidence it has, not the one asked for.
fn confidence_note(estimate: &Estimate, judging: &Judging) -> Option<String> {
    let interval = estimate.interval?;
    let exact = estimate.method == Method::OrderStatistic;
    let differs = (interval.confidence - judging.confidence.level()).abs() > 5e-4;
    (exact && differs).then(|| {
        format!(
            "exact interval of the median, confidence {:.1} %",
            100.0 * interval.confidence
        )
    })
}

/// What the statistics have to say of a sample.
fn doubts(summary: &Summary, scale: f64, unit: &str) -> Vec<String> {
    summary
        .headline
        .flags
        .iter()
        .filter(|flag| **flag != Flag::LowConfidence) // the interval says so itself
        .map(|flag| match (flag, summary.heavy_tail_median()) {
            (Flag::HeavyTail, Some(median)) => {
                let median = median / scale;
                let decimals = format::decimals(median);
                format!(
                    "heavy tail: median {} {unit}",
                    format::number(median, decimals)
                )
            }
            _ => flag.text().to_owned(),
        })
        .collect()
}

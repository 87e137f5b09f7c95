//! What happens inside the runs: latency percentiles of merged histograms, and the rate second by
//! second. Curves of response times are in [`cumulative`](super::cumulative).
use crate::record::{PhaseRecord, Unit};
use crate::report::document::{Axis, Cell, Chart, Column, LineChart, Point, Scale, Series, Table};
use crate::report::format;
use crate::report::group::{Group, phases};
use raidlab_core::time::Span;

/// Percentiles of the chart and the table.
const PERCENTILES: [(f64, &str); 6] = [
    (50.0, "p50"),
    (90.0, "p90"),
    (95.0, "p95"),
    (99.0, "p99"),
    (99.9, "p99.9"),
    (99.99, "p99.99"),
];

/// Most lines of one chart that can be told apart.
const MOST_LINES: usize = 8;

/// The table of latency percentiles; `None` without histograms.
pub(crate) fn latency_table(profile: &str, groups: &[Group<'_>]) -> Option<Table> {
    let mut columns = vec![Column::text("phase"), Column::text("cell")];
    columns.push(Column::number("operations"));
    columns.push(Column::number("mean"));
    columns.extend(PERCENTILES.map(|(_, name)| Column::number(name)));
    columns.push(Column::number("max"));
    let caption = format!("{profile}: response times, histograms of all valid runs merged");
    let mut table = Table::new(format!("{profile}-latency"), caption, columns).named_by(2);
    for phase in phases(groups) {
        for group in groups {
            let Some(latencies) = group.latencies(phase) else {
                continue;
            };
            let span = |s: Option<Span>| s.map_or_else(Cell::absent, |s| Cell::text(s.to_string()));
            let mut row = vec![Cell::text(phase), Cell::text(group.label.clone())];
            row.push(Cell::number(latencies.count() as f64, 0));
            row.push(span(latencies.mean()));
            row.extend(PERCENTILES.map(|(percent, _)| span(latencies.told_percentile(percent))));
            row.push(span(latencies.max()));
            table.rows.push(row);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// A line over time has so many whole windows or more.
const LEAST_WINDOWS: usize = 3;

/// A line of a chart: what one phase did in one cell.
pub(super) struct Strand<'p, 'g> {
    pub(super) name: String,
    pub(super) group: &'p Group<'g>,
    pub(super) phase: &'g str,
}

/// Strands that are charted together.
pub(super) struct Panel<'p, 'g> {
    /// What they have in common; the last part of the chart's id.
    pub(super) title: String,
    pub(super) strands: Vec<Strand<'p, 'g>>,
}

impl Panel<'_, '_> {
    /// What the lines that are drawn have in common: of phases that share a panel, those that have a line.
    pub(super) fn title_of<'n>(&self, drawn: impl Iterator<Item = &'n str>) -> String {
        if self
            .strands
            .iter()
            .all(|strand| strand.name == strand.phase)
        {
            drawn.collect::<Vec<_>>().join(", ")
        } else {
            self.title.clone()
        }
    }
}

/// One panel a phase with a line for each cell; the phases of a single cell share panels.
pub(super) fn panels<'p, 'g>(groups: &'p [Group<'g>]) -> Vec<Panel<'p, 'g>> {
    let strand = |name: &str, group, phase| Strand {
        name: name.to_owned(),
        group,
        phase,
    };
    if let [only] = groups {
        let mut by_unit: Vec<(Option<Unit>, Vec<&'g str>)> = Vec::new();
        for phase in phases(groups) {
            match by_unit
                .iter_mut()
                .find(|(unit, _)| *unit == only.unit(phase))
            {
                Some((_, list)) => list.push(phase),
                None => by_unit.push((only.unit(phase), vec![phase])),
            }
        }
        let chunks = by_unit.iter().flat_map(|(_, list)| list.chunks(MOST_LINES));
        return chunks
            .map(|list| Panel {
                title: list.join(", "),
                strands: list.iter().map(|p| strand(p, only, p)).collect(),
            })
            .collect();
    }
    phases(groups)
        .into_iter()
        .map(|phase| Panel {
            title: phase.to_owned(),
            strands: groups.iter().map(|g| strand(&g.label, g, phase)).collect(),
        })
        .collect()
}

/// Says so when lines had to be left out.
pub(super) fn left_out(drawn: usize, all: usize) -> String {
    if drawn < all {
        format!(" The first {drawn} of {all} are drawn.")
    } else {
        String::new()
    }
}

/// Says which lines a chart over time has not, for want of points.
fn too_short(names: &[&str]) -> String {
    match names.len() {
        0 => String::new(),
        1..=MOST_LINES => format!(" Too short for a line: {}.", names.join(", ")),
        more => format!(" Too short for a line: {more} others."),
    }
}

/// The rate over the run, in the first valid run of each cell.
pub(crate) fn series_charts(profile: &str, groups: &[Group<'_>]) -> Vec<Chart> {
    let panels = panels(groups);
    panels
        .iter()
        .filter_map(|panel| series_chart(profile, panel))
        .collect()
}

fn series_chart(profile: &str, panel: &Panel<'_, '_>) -> Option<Chart> {
    let mut strands = panel.strands.iter();
    let unit = strands.find_map(|s| s.group.unit(s.phase))?;
    let mut short = Vec::new();
    let mut series: Vec<Series> = panel
        .strands
        .iter()
        .filter_map(|strand| {
            let run = strand.group.runs(strand.phase).into_iter().next()?;
            let points = windows(run.phase, unit);
            if points.len() < LEAST_WINDOWS {
                // What kept no windows has none to be too few.
                if run.phase.series_width_ns > 0 {
                    short.push(strand.name.as_str());
                }
                return None;
            }
            Some(Series {
                name: strand.name.clone(),
                points,
            })
        })
        .collect();
    let all = series.len();
    series.truncate(MOST_LINES);
    let points = series.iter().flat_map(|s| &s.points);
    let largest = points.map(|p| p.y).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let shown = format::suited(unit, largest);
    for point in series.iter_mut().flat_map(|s| &mut s.points) {
        point.y /= shown.scale;
    }
    Some(Chart::Lines(LineChart {
        id: format!("{profile}-series-{}", panel.title),
        title: format!(
            "{profile}: {} over time",
            panel.title_of(series.iter().map(|line| line.name.as_str()))
        ),
        description: format!(
            "Rate window by window in the first valid run of each.{}{}",
            left_out(series.len(), all),
            too_short(&short)
        ),
        x: Axis {
            label: "time, s".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: format!("rate, {}", shown.name),
            scale: Scale::Linear,
        },
        series,
    }))
}

/// The rate of each whole window of a phase in its stored unit.
pub(crate) fn windows(record: &PhaseRecord, unit: Unit) -> Vec<Point> {
    let counts = match unit {
        Unit::BytesPerSecond => &record.series_bytes,
        _ => &record.series_ops,
    };
    if record.series_width_ns == 0 {
        return Vec::new();
    }
    // The last window is cut off by the end of the phase; its rate would be a false dip.
    let whole = match record.elapsed_ns {
        Some(ns) => usize::try_from(ns / record.series_width_ns).unwrap_or(usize::MAX),
        None => counts.len(),
    };
    let width = record.series_width_ns as f64 / 1e9;
    counts
        .iter()
        .take(whole)
        .zip(1_u32..)
        .map(|(count, window)| Point {
            x: f64::from(window) * width,
            y: *count as f64 / width,
            interval: None,
        })
        .collect()
}

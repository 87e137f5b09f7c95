//! Charts in text: bars, a table of a sweep's values, sparklines of what happened over time.
use super::printable;
use crate::report::document::{BarChart, Chart, LineChart, Scale, Series};
use crate::report::format;
use raidlab_core::units::Bytes;
use std::collections::BTreeSet;

/// A chart as text of at most so many columns (more when the labels alone need more). Empty when a
/// table beside it says the same.
pub(super) fn render(chart: &Chart, width: usize, ascii: bool) -> String {
    match chart {
        Chart::Bars(chart) => bars(chart, width, ascii),
        Chart::Lines(chart) => match chart.x.scale {
            Scale::Log2 => sweep(chart, width),
            Scale::Linear => sparklines(chart, width, ascii),
            // Latency percentiles stand in the table of latencies.
            Scale::Named(_) | Scale::Log10 => String::new(),
        },
    }
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// One line of a bar chart.
struct Line {
    group: String,
    series: String,
    value: Option<f64>,
    figure: String,
}

fn bar_lines(chart: &BarChart) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in &chart.groups {
        let mut name = printable(&group.label);
        if let Some(note) = group.common_note() {
            lines.push(Line {
                group: name,
                series: String::new(),
                value: None,
                figure: note.to_owned(),
            });
            continue;
        }
        for (bar, series) in group.bars.iter().zip(&chart.series) {
            let figure = match bar.value {
                Some(value) => {
                    let decimals = format::decimals(value);
                    let interval = bar
                        .interval
                        .map(|(lo, hi)| format!(" {}", format::interval(lo, hi, decimals)));
                    format::number(value, decimals) + &interval.unwrap_or_default()
                }
                None => bar.note.clone().unwrap_or_default(),
            };
            lines.push(Line {
                // The name of the group stands on its first line only.
                group: std::mem::take(&mut name),
                series: if chart.series.len() > 1 {
                    printable(series)
                } else {
                    String::new()
                },
                value: bar.value,
                figure,
            });
        }
    }
    lines
}

fn bars(chart: &BarChart, width: usize, ascii: bool) -> String {
    let lines = bar_lines(chart);
    let longest = |pick: &dyn Fn(&Line) -> &str| {
        let widths = lines.iter().map(|line| width_of(pick(line)));
        widths.max().unwrap_or(0)
    };
    let (group, series) = (longest(&|l| &l.group), longest(&|l| &l.series));
    let figure = longest(&|l| &l.figure);
    let room = width
        .saturating_sub(group + series + figure + 4)
        .clamp(10, 60);
    let largest = lines.iter().filter_map(|l| l.value).fold(0.0, f64::max);
    let mut out = format!("{} ({})\n", chart.title, chart.axis);
    for line in &lines {
        let mut text = format!("{:group$} {:series$} ", line.group, line.series);
        if let Some(value) = line.value {
            text += &bar(value / largest * room as f64, ascii);
            text.push(' ');
        }
        text += &line.figure;
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

fn bar(length: f64, ascii: bool) -> String {
    if ascii {
        return "#".repeat(length.round() as usize);
    }
    let eighths = (length * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// A line a block size, a column a layout; cut into several tables when too wide.
fn sweep(chart: &LineChart, width: usize) -> String {
    let sizes: BTreeSet<u64> = chart
        .series
        .iter()
        .flat_map(|s| &s.points)
        .map(|p| p.x as u64)
        .collect();
    let at = |series: &Series, size: u64| {
        let point = series.points.iter().find(|p| p.x as u64 == size);
        point.map_or_else(
            || "-".to_owned(),
            |p| format::number(p.y, format::decimals(p.y)),
        )
    };
    let label = sizes
        .iter()
        .map(|s| width_of(&Bytes(*s).to_string()))
        .max()
        .unwrap_or(0);
    let mut out = format!("{} ({})\n", chart.title, chart.y.label);
    let mut rest = chart.series.as_slice();
    while !rest.is_empty() {
        let mut used = label;
        let columns: Vec<usize> = rest
            .iter()
            .map(|s| width_of(&printable(&s.name)).max(9) + 2)
            .take_while(|column| {
                used += column;
                used <= width
            })
            .collect();
        let now = columns.len().max(1);
        let width_at = |i: usize| {
            columns
                .get(i)
                .copied()
                .unwrap_or(width.saturating_sub(label))
        };
        out.push_str(&" ".repeat(label));
        for (i, series) in rest[..now].iter().enumerate() {
            out.push_str(&format!(
                "{:>width$}",
                printable(&series.name),
                width = width_at(i)
            ));
        }
        out.push('\n');
        for size in &sizes {
            out.push_str(&format!("{:>label$}", Bytes(*size).to_string()));
            for (i, series) in rest[..now].iter().enumerate() {
                out.push_str(&format!(
                    "{:>width$}",
                    at(series, *size),
                    width = width_at(i)
                ));
            }
            out.push('\n');
        }
        rest = &rest[now..];
    }
    out
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LEVELS_ASCII: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// A line a cell: the rate over time from zero to the largest of the chart, and its range.
fn sparklines(chart: &LineChart, width: usize, ascii: bool) -> String {
    let levels = if ascii { LEVELS_ASCII } else { LEVELS };
    let label = chart
        .series
        .iter()
        .map(|s| width_of(&printable(&s.name)))
        .max()
        .unwrap_or(0);
    let ys = || chart.series.iter().flat_map(|s| &s.points).map(|p| p.y);
    let largest = ys().fold(0.0, f64::max);
    let room = width.saturating_sub(label + 24).clamp(10, 80);
    let mut out = format!("{} ({})\n", chart.title, chart.y.label);
    for series in &chart.series {
        let values: Vec<f64> = series.points.iter().map(|p| p.y).collect();
        let per = values.len().div_ceil(room).max(1);
        let line: String = values
            .chunks(per)
            .map(|chunk| {
                let mean = chunk.iter().sum::<f64>() / chunk.len() as f64;
                levels[((mean / largest * 8.0) as usize).min(7)]
            })
            .collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let decimals = format::decimals(high);
        let (low, high) = (
            format::number(low, decimals),
            format::number(high, decimals),
        );
        out.push_str(&format!(
            "{:label$} {line} {low} to {high}\n",
            printable(&series.name)
        ));
    }
    out
}

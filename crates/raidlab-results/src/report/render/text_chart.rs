//! Charts in text: bars, a table of a sweep's values, sparklines of what happened over time.
use super::printable;
use crate::report::document::{BarChart, Chart, LineChart, Scale, Series, along_decades};
use crate::report::format;
use raidlab_core::units::Bytes;
use std::collections::BTreeSet;

/// Columns that a bar or sparkline has at the least beside its label; with fewer the label gets a line of its own.
const LEAST: usize = 10;

/// A chart as text of at most so many columns. Empty when a table beside it says the same.
pub(super) fn render(chart: &Chart, width: usize, ascii: bool) -> String {
    match chart {
        Chart::Bars(chart) => bars(chart, width, ascii),
        Chart::Lines(chart) => match chart.x.scale {
            Scale::Log2 | Scale::Log2Count => sweep(chart, width),
            Scale::Linear => sparklines(chart, width, ascii),
            Scale::Named(_) => String::new(),
        },
        // Percentiles stand in the table of response times.
        Chart::Distribution(_) => String::new(),
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
    let pen = Pen {
        largest: lines.iter().filter_map(|l| l.value).fold(0.0, f64::max),
        decades: chart.decades(),
        ascii,
    };
    let mut axis = chart.axis.clone();
    if pen.decades.is_some() {
        axis += ", logarithmic";
    }
    if let Some(intervals) = &chart.intervals {
        axis += &format!("; {intervals}");
    }
    let mut out = title(&chart.title, &axis, width);
    if group + series + figure + 4 + LEAST > width {
        for line in &lines {
            stacked(&mut out, line, (series, figure), &pen, width);
        }
        return out;
    }
    let room = (width - (group + series + figure + 4)).min(60);
    for line in &lines {
        let mut text = format!("{:group$} {:series$} ", line.group, line.series);
        if let Some(value) = line.value {
            text += &pen.draw(value, room);
            text.push(' ');
        }
        text += &line.figure;
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// The title of a chart and what its values are.
fn title(title: &str, axis: &str, width: usize) -> String {
    fold(&printable(&format!("{title} ({axis})")), width).join("\n") + "\n"
}

/// A line of a bar chart where labels, bar and figure do not fit beside each other: the name of the group above, the
/// bar below, and the figure behind it or, on the narrowest, below that.
fn stacked(
    out: &mut String,
    line: &Line,
    (series, figure): (usize, usize),
    pen: &Pen,
    width: usize,
) {
    let mut put = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    if !line.group.is_empty() {
        fold(&line.group, width).iter().for_each(|part| put(part));
    }
    let mut before = format!("  {:series$} ", line.series);
    if series == 0 || series + 3 + LEAST > width {
        if !line.series.is_empty() {
            let parts = fold(&line.series, width.saturating_sub(2));
            parts.iter().for_each(|part| put(&format!("  {part}")));
        }
        before = "  ".to_owned();
    }
    let left = width.saturating_sub(width_of(&before));
    let behind = left > figure + LEAST / 2;
    let drawn = line.value.map_or_else(String::new, |value| {
        let room = if behind { left - figure - 1 } else { left };
        pen.draw(value, room.min(60)) + " "
    });
    if behind || line.value.is_none() {
        put(&format!("{before}{drawn}{}", line.figure));
    } else {
        put(&format!("{before}{drawn}"));
        let parts = fold(&line.figure, width.saturating_sub(2));
        parts.iter().for_each(|part| put(&format!("  {part}")));
    }
}

/// Lines of at most so many columns: broken at spaces, and within words that are longer than a line.
fn fold(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(last) if width_of(last) + 1 + width_of(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => {
                let letters: Vec<char> = word.chars().collect();
                lines.extend(letters.chunks(width).map(|part| part.iter().collect()));
            }
        }
    }
    lines
}

/// What stands for a value in so many columns.
struct Pen {
    largest: f64,
    /// Values are dots along a logarithmic axis, on which a length means nothing.
    decades: Option<(i32, i32)>,
    ascii: bool,
}

impl Pen {
    fn draw(&self, value: f64, room: usize) -> String {
        let Some(decades) = self.decades else {
            return bar(value / self.largest * room as f64, self.ascii);
        };
        let before = along_decades(value, decades) * room.saturating_sub(1) as f64;
        let dot = if self.ascii { "o" } else { "●" };
        " ".repeat(before.round() as usize) + dot
    }
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
    let name = |size: u64| match chart.x.scale {
        Scale::Log2Count => size.to_string(),
        _ => Bytes(size).to_string(),
    };
    let label = sizes.iter().map(|s| width_of(&name(*s))).max().unwrap_or(0);
    let what = match chart.title.contains(&chart.x.label) {
        true => chart.y.label.clone(),
        false => format!("{}, by {}", chart.y.label, chart.x.label),
    };
    let mut out = title(&chart.title, &what, width);
    // A name that is wider than the screen is folded above its column.
    let most = width.saturating_sub(label).max(11);
    let mut rest = chart.series.as_slice();
    while !rest.is_empty() {
        let mut used = label;
        let columns: Vec<usize> = rest
            .iter()
            .map(|s| (width_of(&printable(&s.name)).max(9) + 2).min(most))
            .take_while(|column| {
                used += column;
                used <= width
            })
            .collect();
        let now = columns.len().max(1);
        let width_at = |i: usize| columns.get(i).copied().unwrap_or(most);
        let names: Vec<Vec<String>> = (0..now)
            .map(|i| fold(&printable(&rest[i].name), width_at(i) - 2))
            .collect();
        let tall = names.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..tall {
            out.push_str(&" ".repeat(label));
            for (i, name) in names.iter().enumerate() {
                // The last lines of all names stand together.
                let part = (row + name.len()).checked_sub(tall).map(|at| &name[at]);
                let part = part.map_or("", String::as_str);
                out.push_str(&format!("{part:>width$}", width = width_at(i)));
            }
            out.push('\n');
        }
        for size in &sizes {
            out.push_str(&format!("{:>label$}", name(*size)));
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
    // Names that leave too little room stand above.
    let above = label + 24 + LEAST > width;
    let before = if above { 2 } else { label };
    let room = width.saturating_sub(before + 24).clamp(LEAST, 80);
    let mut out = title(&chart.title, &chart.y.label, width);
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
        let mut name = printable(&series.name);
        if above {
            for part in fold(&name, width) {
                out.push_str(&part);
                out.push('\n');
            }
            name.clear();
        }
        out.push_str(&format!("{name:before$} {line} {low} to {high}\n"));
    }
    out
}

#[cfg(test)]
mod tests;

//! Charts as an experiment's file describes them.
use crate::report::analysis::{Judging, summarise};
use crate::report::blocks::error_bars::ErrorBars;
use crate::report::blocks::many::{CHARTS, independent, parts};
use crate::report::blocks::{bars, cumulative};
use crate::report::document::{Axis, Chart, LineChart, Point, Scale, Series};
use crate::report::experiment::{ChartForm, WantedChart};
use crate::report::format;
use crate::report::group::{Group, phases};
use raidlab_core::units::Bytes;

/// The charts that one wish comes to: one for each level of `per`, and for each phase when none is named.
pub(crate) fn charts(
    profile: &str,
    number: usize,
    chart: &WantedChart,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Vec<Chart> {
    let mut all = Vec::new();
    for (level, groups) in divided(groups, chart.per.as_deref()) {
        let title = |what: &str| {
            let whole = match &chart.title {
                Some(title) => title.clone(),
                None => format!("{profile}: {what}"),
            };
            match (&chart.per, &level) {
                (Some(factor), Some(level)) => format!("{whole}, {factor} {level}"),
                _ => whole,
            }
        };
        let id = match &level {
            Some(level) => format!("{profile}-chart-{number}-{level}"),
            None => format!("{profile}-chart-{number}"),
        };
        match chart.form {
            ChartForm::Distribution => {
                let phase = chart.y.as_deref();
                let drawn = cumulative::curves(profile, &groups, phase);
                all.extend(drawn.into_iter().map(|mut drawn| {
                    let what = drawn.title.strip_prefix(&format!("{profile}: "));
                    drawn.title = title(what.unwrap_or(&drawn.title));
                    Chart::Distribution(drawn)
                }));
            }
            ChartForm::Bars if chart.y.is_none() && chart.lines.is_none() => {
                all.extend(bars::bars(profile, &groups, judging));
            }
            form => {
                for phase in phases(&groups) {
                    if chart.y.as_deref().is_some_and(|y| y != phase) {
                        continue;
                    }
                    let of_phase = OfPhase {
                        id: &format!("{id}-{phase}"),
                        title: &title(phase),
                        phase,
                        x: chart.x.as_deref(),
                        lines: chart.lines.as_deref(),
                    };
                    match form {
                        ChartForm::Lines => all.extend(one_point_each(&of_phase, &groups, judging)),
                        _ => all.extend(grouped_bars(&of_phase, &groups, judging)),
                    }
                }
            }
        }
    }
    all
}

/// One chart of one phase.
pub(super) struct OfPhase<'c> {
    pub(super) id: &'c str,
    pub(super) title: &'c str,
    pub(super) phase: &'c str,
    pub(super) x: Option<&'c str>,
    pub(super) lines: Option<&'c str>,
}

/// Groups by the level of a factor, in the order in which levels come; all of them without a factor.
pub(super) fn divided<'a>(
    groups: &[Group<'a>],
    factor: Option<&str>,
) -> Vec<(Option<String>, Vec<Group<'a>>)> {
    let Some(factor) = factor else {
        return vec![(None, groups.to_vec())];
    };
    let mut all: Vec<(Option<String>, Vec<Group<'a>>)> = Vec::new();
    for group in groups {
        let level = group.cell.factors.get(factor).map(|text| shown(text));
        match all.iter_mut().find(|(known, _)| *known == level) {
            Some((_, list)) => list.push(group.clone()),
            None => all.push((level, vec![group.clone()])),
        }
    }
    all
}

/// Sizes are kept in bytes; a reader wants units.
fn shown(level: &str) -> String {
    match level.parse::<u64>() {
        Ok(bytes) if bytes >= 512 && bytes.is_multiple_of(512) => Bytes(bytes).to_string(),
        _ => level.to_owned(),
    }
}

fn grouped_bars(chart: &OfPhase<'_>, groups: &[Group<'_>], judging: &Judging) -> Option<Chart> {
    let unit = groups.iter().find_map(|g| g.unit(chart.phase))?;
    let names = (chart.id, chart.title);
    let Some(factor) = chart.lines else {
        return bars::chart(names, &[chart.phase], unit, groups, judging);
    };
    bars::coloured(names, chart.phase, factor, groups, judging)
}

/// Lines of one phase on which each place has one point: another factor that varies makes the lines where none is named, and
/// each level of what varies beside a chart, as many as are drawn.
fn one_point_each(chart: &OfPhase<'_>, groups: &[Group<'_>], judging: &Judging) -> Vec<Chart> {
    let mut by: Vec<&str> = [chart.x, chart.lines].into_iter().flatten().collect();
    let mut rest = Vec::new();
    for factor in independent(groups) {
        if parts(groups, &by).iter().all(|(_, part)| part.len() < 2) {
            break;
        }
        if !by.contains(&factor.name) {
            by.push(factor.name);
            rest.push(factor.name);
        }
    }
    let named = match chart.lines {
        None if !rest.is_empty() => Some(rest.remove(0)),
        named => named,
    };
    let all = parts(groups, &rest).into_iter().take(CHARTS).enumerate();
    all.filter_map(|(number, (what, part))| {
        let id = match number {
            0 => chart.id.to_owned(),
            n => format!("{}-{n}", chart.id),
        };
        let of_part = OfPhase {
            id: &id,
            title: &format!("{}{what}", chart.title),
            lines: named,
            ..*chart
        };
        lines(&of_part, &part, judging)
    })
    .collect()
}

/// Lines of one phase along a factor; `None` where no line would have two points.
pub(super) fn lines(chart: &OfPhase<'_>, groups: &[Group<'_>], judging: &Judging) -> Option<Chart> {
    let x = chart.x?;
    let unit = groups.iter().find_map(|g| g.unit(chart.phase))?;
    let levels: Vec<String> = divided(groups, Some(x))
        .into_iter()
        .filter_map(|d| d.0)
        .collect();
    let numbers: Option<Vec<f64>> = levels_of(groups, x);
    let scale = match &numbers {
        Some(all) if is_geometric(all) && are_sizes(all) => Scale::Log2,
        Some(all) if is_geometric(all) => Scale::Log2Count,
        Some(_) => Scale::Linear,
        None => Scale::Named(levels.clone()),
    };
    let mut series = Vec::new();
    let mut largest = 0.0_f64;
    let mut ends = ErrorBars::default();
    for (name, of_line) in divided(groups, chart.lines) {
        let mut points: Vec<Point> = of_line
            .iter()
            .filter_map(|group| {
                let level = group.cell.factors.get(x)?;
                let place = || levels.iter().position(|known| *known == shown(level));
                let at = match &numbers {
                    Some(_) => level.parse().ok()?,
                    None => place()? as f64,
                };
                let headline = summarise(group, chart.phase, judging)?.headline;
                ends.add(&headline);
                Some(Point {
                    x: at,
                    y: headline.value,
                    interval: headline.interval.map(|i| (i.lo, i.hi)),
                })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        largest = points.iter().map(|p| p.y).fold(largest, f64::max);
        if !points.is_empty() {
            let name = name.unwrap_or_else(|| chart.phase.to_owned());
            series.push(Series { name, points });
        }
    }
    if largest <= 0.0 || series.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let suited = format::suited(unit, largest);
    for point in series.iter_mut().flat_map(|line| &mut line.points) {
        point.y /= suited.scale;
        point.interval = point
            .interval
            .map(|(lo, hi)| (lo / suited.scale, hi / suited.scale));
    }
    let of_lines = chart
        .lines
        .map_or_else(String::new, |f| format!(", a line for each {f}"));
    Some(Chart::Lines(LineChart {
        id: chart.id.to_owned(),
        title: chart.title.to_owned(),
        description: format!("{} against {x}{of_lines}; {}.", chart.phase, ends.told()),
        x: Axis {
            label: x.to_owned(),
            scale,
        },
        y: Axis {
            label: format!("{}, {}", chart.phase, suited.name),
            scale: Scale::Linear,
        },
        series,
    }))
}

/// The levels of a factor as numbers, when they all are.
fn levels_of(groups: &[Group<'_>], factor: &str) -> Option<Vec<f64>> {
    let levels = groups.iter().filter_map(|g| g.cell.factors.get(factor));
    levels
        .map(|level| level.parse().ok().filter(|n| *n > 0.0))
        .collect()
}

/// Whether numbers are sizes, as [`shown`] takes them.
fn are_sizes(numbers: &[f64]) -> bool {
    numbers.iter().all(|n| *n >= 512.0 && n % 512.0 == 0.0)
}

/// Whether numbers span so much that a logarithmic axis suits them.
fn is_geometric(numbers: &[f64]) -> bool {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(0.0, f64::max);
    high >= 8.0 * low
}

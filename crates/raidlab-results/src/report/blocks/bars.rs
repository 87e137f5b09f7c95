//! Bars with error bars: the rates of a family of phases, cell by cell.
use crate::record::Unit;
use crate::report::analysis::{Judging, summarise};
use crate::report::blocks::error_bars::ErrorBars;
use crate::report::columns::families;
use crate::report::document::{Bar, BarChart, BarGroup, Chart};
use crate::report::format;
use crate::report::group::{Group, State, phases};

/// Most cells of one chart; a sweep of more is a line chart.
pub(super) const MOST: usize = 24;

/// Phases whose figures are all below this part of another one's have a chart of their own: all bars of theirs would be stumps.
const STUMP: f64 = 0.1;

/// The bar charts of a profile's groups.
pub(crate) fn bars(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Vec<Chart> {
    let all = phases(groups);
    let unit = |phase: &str| {
        let mut units = groups.iter().filter_map(|g| g.unit(phase));
        units.next().unwrap_or(Unit::BytesPerSecond)
    };
    if groups.len() > MOST {
        return Vec::new();
    }
    let largest = |phase: &str| {
        let all = groups.iter().filter_map(|g| summarise(g, phase, judging));
        all.map(|s| s.headline.value).fold(0.0, f64::max)
    };
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, phases) in families(profile, &all, &unit) {
        match &by_size(&phases, largest)[..] {
            [_] => parts.push((format!("{profile}: {name}"), phases)),
            sizes => parts.extend(sizes.iter().map(|phases| {
                let title = format!("{profile}: {name}: {}", phases.join(", "));
                (title, phases.clone())
            })),
        }
    }
    let parts = parts.into_iter().zip(1..);
    let charts = parts.filter_map(|((title, phases), number)| {
        let of_part = unit(phases.first()?);
        let id = format!("{profile}-bars-{number}");
        chart((&id, &title), &phases, of_part, groups, judging)
    });
    charts.collect()
}

/// Phases whose bars can stand in one chart, in the order in which they come; the chart of the first phase first.
fn by_size<'p>(phases: &[&'p str], largest: impl Fn(&str) -> f64) -> Vec<Vec<&'p str>> {
    let mut sorted: Vec<(f64, &str)> = phases.iter().map(|p| (largest(p), *p)).collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sizes: Vec<(f64, Vec<&str>)> = Vec::new();
    for (value, phase) in sorted {
        match sizes.last_mut() {
            // What has no figure goes with the rest.
            Some((most, of_size)) if value >= *most * STUMP || value <= 0.0 => of_size.push(phase),
            _ => sizes.push((value, vec![phase])),
        }
    }
    let place = |phase: &str| phases.iter().position(|known| *known == phase);
    let in_order = |(_, mut of_size): (f64, Vec<&'p str>)| {
        of_size.sort_by_key(|phase| place(phase));
        of_size
    };
    let mut sizes: Vec<Vec<&str>> = sizes.into_iter().map(in_order).collect();
    sizes.sort_by_key(|of_size| of_size.first().and_then(|phase| place(phase)));
    sizes
}

pub(crate) fn chart(
    (id, title): (&str, &str),
    phases: &[&str],
    unit: Unit,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Option<Chart> {
    let measured: Vec<&Group<'_>> = groups
        .iter()
        .filter(|g| phases.iter().any(|p| !matches!(g.state(p), State::Absent)))
        .collect();
    let summaries: Vec<Vec<_>> = measured
        .iter()
        .map(|g| phases.iter().map(|p| summarise(g, p, judging)).collect())
        .collect();
    let largest = summaries
        .iter()
        .flatten()
        .flatten()
        .map(|s| s.headline.value)
        .fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let shown = format::suited(unit, largest);
    let mut ends = ErrorBars::default();
    for summary in summaries.iter().flatten().flatten() {
        ends.add(&summary.headline);
    }
    let bar_groups = measured
        .iter()
        .zip(&summaries)
        .map(|(group, summaries)| BarGroup {
            label: group.label.clone(),
            bars: phases
                .iter()
                .zip(summaries)
                .map(|(phase, summary)| {
                    let interval = summary.as_ref().and_then(|s| s.headline.interval);
                    Bar {
                        value: summary.as_ref().map(|s| s.headline.value / shown.scale),
                        interval: interval.map(|i| (i.lo / shown.scale, i.hi / shown.scale)),
                        note: note(&group.state(phase)),
                    }
                })
                .collect(),
        })
        .collect();
    Some(Chart::Bars(BarChart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "{} by cell in {}; {}.",
            phases.join(", "),
            shown.name,
            ends.told()
        ),
        axis: shown.name.to_owned(),
        intervals: ends.intervals(),
        series: phases.iter().map(|p| (*p).to_owned()).collect(),
        groups: bar_groups,
    }))
}

/// Bars of one phase: a group for what cells have in common, a colour for each level of a factor.
pub(crate) fn coloured(
    (id, title): (&str, &str),
    phase: &str,
    factor: &str,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Option<Chart> {
    let unit = groups.iter().find_map(|g| g.unit(phase))?;
    let mut levels: Vec<&str> = Vec::new();
    let mut rest: Vec<(String, Vec<(&str, &Group<'_>)>)> = Vec::new();
    for group in groups {
        let Some(level) = group.cell.factors.get(factor) else {
            continue;
        };
        if !levels.contains(&level.as_str()) {
            levels.push(level);
        }
        // A label is the levels of what varies: what is left without this one is the group.
        let parts = group.label.split(", ").filter(|part| {
            let named = part.strip_prefix(factor).map(str::trim_start);
            *part != level.as_str() && named != Some(level.as_str())
        });
        let name = parts.collect::<Vec<_>>().join(", ");
        match rest.iter_mut().find(|(known, _)| *known == name) {
            Some((_, bars)) => bars.push((level, group)),
            None => rest.push((name, vec![(level, group)])),
        }
    }
    let value = |group: &Group<'_>| summarise(group, phase, judging).map(|s| s.headline);
    let mut ends = ErrorBars::default();
    let mut largest = 0.0_f64;
    for headline in rest
        .iter()
        .flat_map(|(_, bars)| bars)
        .filter_map(|(_, group)| value(group))
    {
        ends.add(&headline);
        largest = largest.max(headline.value);
    }
    if largest <= 0.0 || rest.len() > MOST {
        return None;
    }
    let shown = format::suited(unit, largest);
    let bar = |group: Option<&Group<'_>>| {
        let headline = group.and_then(value);
        let interval = headline.as_ref().and_then(|h| h.interval);
        Bar {
            value: headline.map(|h| h.value / shown.scale),
            interval: interval.map(|i| (i.lo / shown.scale, i.hi / shown.scale)),
            note: group.map_or_else(
                || Some("no such cell".to_owned()),
                |group| note(&group.state(phase)),
            ),
        }
    };
    let bar_groups = rest.into_iter().map(|(label, of_rest)| BarGroup {
        label,
        bars: levels
            .iter()
            .map(|level| {
                let found = of_rest.iter().find(|(known, _)| known == level);
                bar(found.map(|(_, group)| *group))
            })
            .collect(),
    });
    Some(Chart::Bars(BarChart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "{phase} in {}, a colour for each {factor}; {}.",
            shown.name,
            ends.told()
        ),
        axis: shown.name.to_owned(),
        intervals: ends.intervals(),
        series: levels.iter().map(|level| (*level).to_owned()).collect(),
        groups: bar_groups.collect(),
    }))
}

fn note(state: &State<'_>) -> Option<String> {
    let why = match state {
        State::Runs(_) => return None,
        State::Absent => "not measured",
        State::Withheld => "withheld",
        State::TooFast => "too fast",
        State::Invalid => "invalid",
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_another_order_of_magnitude_have_a_chart_of_their_own() {
        let figures = [
            ("create", 60.0),
            ("stat", 1100.0),
            ("delete", 80.0),
            ("none", 0.0),
            ("read", 900.0),
        ];
        let largest = |phase: &str| figures.iter().find(|(name, _)| *name == phase).unwrap().1;
        let all = figures.map(|(name, _)| name);
        assert_eq!(
            by_size(&all, largest),
            [vec!["create", "delete", "none"], vec!["stat", "read"]]
        );
        assert_eq!(by_size(&["none"], largest), [vec!["none"]]);
        assert_eq!(
            by_size(&["create", "delete"], largest),
            [vec!["create", "delete"]]
        );
        // Each is near to the one above it, and yet the last is a stump beside the first.
        let steps = |phase: &str| phase.parse::<f64>().unwrap();
        assert_eq!(
            by_size(&["4", "16", "64"], steps),
            [vec!["4"], vec!["16", "64"]]
        );
    }
}

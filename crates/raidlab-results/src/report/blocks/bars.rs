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
    families(profile, &all, &unit)
        .into_iter()
        .zip(1..)
        .filter_map(|((name, phases), number)| {
            let of_family = unit(phases.first()?);
            chart(
                (
                    &format!("{profile}-bars-{number}"),
                    &format!("{profile}: {name}"),
                ),
                &phases,
                of_family,
                groups,
                judging,
            )
        })
        .collect()
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

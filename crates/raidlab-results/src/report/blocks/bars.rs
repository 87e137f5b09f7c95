//! Bars with error bars: the rates of a family of phases, cell by cell.
use crate::record::Unit;
use crate::report::analysis::{Judging, summarise};
use crate::report::columns::families;
use crate::report::document::{Bar, BarChart, BarGroup, Chart};
use crate::report::format;
use crate::report::group::{Group, State, phases};

/// Most cells of one chart; a sweep of more is a line chart.
const MOST: usize = 24;

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

fn chart(
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
    let mut intervals = false;
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
                    intervals |= interval.is_some();
                    Bar {
                        value: summary.as_ref().map(|s| s.headline.value / shown.scale),
                        interval: interval.map(|i| (i.lo / shown.scale, i.hi / shown.scale)),
                        note: note(&group.state(phase)),
                    }
                })
                .collect(),
        })
        .collect();
    let ends = if intervals {
        format!(
            "error bars: {:.0} % intervals, or of the confidence that the table notes",
            100.0 * judging.confidence.level()
        )
    } else {
        "n=1, no uncertainty".to_owned()
    };
    Some(Chart::Bars(BarChart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{} by cell in {}; {ends}.", phases.join(", "), shown.name),
        axis: shown.name.to_owned(),
        series: phases.iter().map(|p| (*p).to_owned()).collect(),
        groups: bar_groups,
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

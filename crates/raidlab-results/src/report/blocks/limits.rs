//! What limited each phase of each cell: the sentence of the model, and what was busiest.
use crate::record::{Better, Explained, Resource};
use crate::report::analysis::{Judging, summarise};
use crate::report::document::{Cell, Column, Table};
use crate::report::group::{Group, phases};

/// Busy shares that are shown beside the sentence.
const SHOWN: usize = 3;

/// More cells than this are told of by the best and the worst of each phase: nobody reads hundreds of lines.
const ALL: usize = 24;

/// A line for each phase of each cell, or of its best and its worst where there are many; `None` when no trial was
/// explained.
pub(crate) fn limits(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    let columns = vec![
        Column::text("cell"),
        Column::text("phase"),
        Column::text("what limits it"),
        Column::text("busiest"),
    ];
    let repeats = groups.iter().any(|g| g.trials.len() > 1);
    let of = if repeats { ", in the first trial" } else { "" };
    let few = groups.len() <= ALL;
    let which = match few {
        true => String::new(),
        false => format!(
            "; of {} cells the best and the worst of each phase ('raidlab show' tells of all)",
            groups.len()
        ),
    };
    let caption = format!("{profile}: what limits each phase{of}, and the busy shares{which}");
    let mut table = Table::new(format!("{profile}-limits"), caption, columns).named_by(2);
    let told: Vec<(&Group<'_>, &str)> = if few {
        let of_group = |group| phases(groups).into_iter().map(move |phase| (group, phase));
        groups.iter().flat_map(of_group).collect()
    } else {
        ends(groups, judging)
    };
    table.rows = told
        .into_iter()
        .filter_map(|(group, phase)| row(group, phase))
        .collect();
    (!table.rows.is_empty()).then_some(table)
}

fn row(group: &Group<'_>, phase: &str) -> Option<Vec<Cell>> {
    let records = group.trials.iter().flat_map(|t| &t.phases);
    let mut of_phase = records.filter(|p| p.phase == phase);
    let (explained, elapsed) =
        of_phase.find_map(|p| Some((p.explained.as_ref()?, p.elapsed_ns?)))?;
    Some(vec![
        Cell::text(group.label.clone()),
        Cell::text(phase),
        Cell::text(explained.why.clone()),
        Cell::text(busiest(explained, elapsed)),
    ])
}

/// The cells with the best and the worst figure of each phase.
fn ends<'g, 'a>(groups: &'g [Group<'a>], judging: &Judging) -> Vec<(&'g Group<'a>, &'g str)> {
    let mut ends = Vec::new();
    for phase in phases(groups) {
        let figure = |group: &'g Group<'a>| {
            let value = summarise(group, phase, judging)?.headline.value;
            Some((group, value))
        };
        let mut figures: Vec<_> = groups.iter().filter_map(figure).collect();
        figures.sort_by(|a, b| a.1.total_cmp(&b.1));
        let unit = groups.iter().find_map(|group| group.unit(phase));
        if unit.is_some_and(|unit| unit.better() == Better::Higher) {
            figures.reverse();
        }
        if let [(best, _), .., (worst, _)] = figures[..] {
            ends.extend([(best, phase), (worst, phase)]);
        }
    }
    ends
}

/// Busy share in per cent of all units.
pub(crate) fn share(resource: &Resource, elapsed_ns: u64) -> f64 {
    let all = elapsed_ns as f64 * f64::from(resource.units.max(1));
    if all > 0.0 {
        (100.0 * resource.busy_ns as f64 / all).min(100.0)
    } else {
        0.0
    }
}

fn busiest(explained: &Explained, elapsed_ns: u64) -> String {
    let mut all: Vec<(&str, f64)> = explained
        .resources
        .iter()
        .map(|resource| (resource.name.as_str(), share(resource, elapsed_ns)))
        .filter(|(_, share)| *share >= 0.5)
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = all.iter().take(SHOWN);
    let shown: Vec<String> = shown
        .map(|(name, share)| format!("{name} {share:.0} %"))
        .collect();
    shown.join(", ")
}

//! What limited each phase of each cell: the sentence of the model, and what was busiest.
use crate::record::{Explained, Resource};
use crate::report::document::{Cell, Column, Table};
use crate::report::group::{Group, phases};

/// Busy shares that are shown beside the sentence.
const SHOWN: usize = 3;

/// A line for each phase of each cell; `None` when no trial was explained.
pub(crate) fn limits(profile: &str, groups: &[Group<'_>]) -> Option<Table> {
    let columns = vec![
        Column::text("cell"),
        Column::text("phase"),
        Column::text("what limits it"),
        Column::text("busiest"),
    ];
    let repeats = groups.iter().any(|g| g.trials.len() > 1);
    let of = if repeats { ", in the first trial" } else { "" };
    let caption = format!("{profile}: what limits each phase{of}, and the busy shares");
    let mut table = Table::new(format!("{profile}-limits"), caption, columns).named_by(2);
    for group in groups {
        for phase in phases(groups) {
            let records = group.trials.iter().flat_map(|t| &t.phases);
            let mut of_phase = records.filter(|p| p.phase == phase);
            let Some((explained, elapsed)) =
                of_phase.find_map(|p| Some((p.explained.as_ref()?, p.elapsed_ns?)))
            else {
                continue;
            };
            table.rows.push(vec![
                Cell::text(group.label.clone()),
                Cell::text(phase),
                Cell::text(explained.why.clone()),
                Cell::text(busiest(explained, elapsed)),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
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

//! Rate against block size, a line for each layout.
use crate::record::Unit;
use crate::report::analysis::{Judging, summarise};
use crate::report::blocks::error_bars::ErrorBars;
use crate::report::document::{Axis, Chart, LineChart, Point, Scale, Series};
use crate::report::format;
use crate::report::group::{Group, phases};
use std::collections::BTreeMap;

/// The factor that is swept, in bytes.
const SWEPT: &str = "block-size";

/// One chart a phase, when the cells have at least two block sizes.
pub(crate) fn sweeps(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Vec<Chart> {
    let sizes: std::collections::BTreeSet<u64> = groups.iter().filter_map(size_of).collect();
    if sizes.len() < 2 {
        return Vec::new();
    }
    phases(groups)
        .into_iter()
        .filter_map(|phase| sweep(profile, phase, groups, judging))
        .collect()
}

fn size_of(group: &Group<'_>) -> Option<u64> {
    let of_cell = group.cell.factors.get(SWEPT);
    of_cell
        .or_else(|| group.settings.get(SWEPT))?
        .parse()
        .ok()
        .filter(|size| *size > 0)
}

fn sweep(profile: &str, phase: &str, groups: &[Group<'_>], judging: &Judging) -> Option<Chart> {
    let unit = groups.iter().find_map(|g| g.unit(phase))?;
    let mut lines: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut largest = 0.0_f64;
    let mut ends = ErrorBars::default();
    for group in groups {
        let (Some(size), Some(summary)) = (size_of(group), summarise(group, phase, judging)) else {
            continue;
        };
        let name = line_of(group);
        if !order.contains(&name) {
            order.push(name.clone());
        }
        let value = summary.headline.value;
        largest = largest.max(value);
        ends.add(&summary.headline);
        lines.entry(name).or_default().push(Point {
            x: size as f64,
            y: value,
            interval: summary.headline.interval.map(|i| (i.lo, i.hi)),
        });
    }
    if lines.values().all(|points| points.len() < 2) {
        return None;
    }
    let shown = format::suited(unit, largest);
    let series = order
        .into_iter()
        .map(|name| {
            let mut points = lines.remove(&name).unwrap_or_default();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            for point in &mut points {
                point.y /= shown.scale;
                point.interval = point
                    .interval
                    .map(|(lo, hi)| (lo / shown.scale, hi / shown.scale));
            }
            Series { name, points }
        })
        .collect();
    let what = match unit {
        Unit::BytesPerSecond => "throughput",
        _ => "rate",
    };
    Some(Chart::Lines(LineChart {
        id: format!("{profile}-sweep-{phase}"),
        title: format!("{profile}: {phase} against block size"),
        description: format!(
            "{what} of {phase} against the size of each call, a line for each layout; {}.",
            ends.told()
        ),
        x: Axis {
            label: "block size".to_owned(),
            scale: Scale::Log2,
        },
        y: Axis {
            label: format!("{what}, {}", shown.name),
            scale: Scale::Linear,
        },
        series,
    }))
}

/// The line a cell belongs to: its `layout`, else its other factors, else its label.
fn line_of(group: &Group<'_>) -> String {
    if let Some(layout) = group.cell.factors.get("layout") {
        return layout.clone();
    }
    let rest: Vec<String> = group
        .cell
        .factors
        .iter()
        .filter(|(name, _)| *name != SWEPT && *name != "capacity-disks")
        .map(|(name, level)| match name.as_str() {
            "level" | "engine" => level.clone(),
            "disks" => format::plural(level.parse().unwrap_or(0), "disk"),
            _ => format!("{name} {level}"),
        })
        .collect();
    if rest.is_empty() {
        group.cell.label.clone()
    } else {
        rest.join(", ")
    }
}

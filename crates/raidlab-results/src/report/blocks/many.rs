//! Charts of so many cells that bars would be no picture: lines along a number that is varied, or bars part by part.
use super::bars::{self, MOST};
use super::wanted::{OfPhase, divided, lines};
use crate::report::analysis::Judging;
use crate::report::document::{Block, Chart};
use crate::report::group::{Group, phases};
use std::collections::BTreeSet;

/// Lines that can be told apart by their colours.
const LINES: usize = 8;
/// Charts that are drawn without being asked for.
pub(super) const CHARTS: usize = 12;
/// What follows from the array that is chosen comes after what is chosen.
const DERIVED: [&str; 5] = ["engine", "channels", "level", "disks", "capacity-disks"];

/// What bars cannot show, with a word on what would show more; nothing where bars can.
pub(crate) fn instead_of_bars(
    profile: &str,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Vec<Block> {
    if groups.len() <= MOST {
        return Vec::new();
    }
    let factors = independent(groups);
    let along = factors
        .iter()
        .filter(|factor| factor.is_number && factor.levels > 2)
        .max_by_key(|factor| factor.levels);
    let (drawn, left) = match along {
        Some(x) => along_a_number(profile, x, &factors, groups, judging),
        None => in_parts(profile, &factors, groups, judging),
    };
    let more = match left {
        0 => String::new(),
        n => format!(" {n} more are left out."),
    };
    let told = format!(
        "Charts: {} cells are too many for bars of all.{more} Those that are wanted can be named in [report], as {}",
        groups.len(),
        "charts = [{ kind = \"lines\", x = \"chunk\", lines = \"layout\", y = \"read\" }]."
    );
    let charts = drawn.into_iter().map(Block::Chart);
    std::iter::once(Block::paragraph(told))
        .chain(charts)
        .collect()
}

/// A factor that is varied by itself.
pub(super) struct Factor<'g> {
    pub(super) name: &'g str,
    levels: usize,
    is_number: bool,
}

/// Factors that vary and do not follow from another one, as the level follows from the layout.
pub(super) fn independent<'g>(groups: &'g [Group<'_>]) -> Vec<Factor<'g>> {
    let level = |group: &'g Group<'_>, name: &str| group.cell.factors.get(name).map(String::as_str);
    let names: BTreeSet<&str> = groups
        .iter()
        .flat_map(|group| group.cell.factors.keys().map(String::as_str))
        .collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| {
        DERIVED
            .iter()
            .position(|derived| derived == name)
            .map_or(0, |n| n + 1)
    });
    let distinct = |wanted: &[&str]| {
        let levels = groups.iter().map(|group| {
            wanted
                .iter()
                .map(|name| level(group, name))
                .collect::<Vec<_>>()
        });
        levels.collect::<BTreeSet<_>>().len()
    };
    let mut kept: Vec<Factor<'_>> = Vec::new();
    for name in names {
        let levels = distinct(&[name]);
        // It follows from another one when the two together have no more levels than that one.
        let follows = kept
            .iter()
            .any(|other| distinct(&[other.name, name]) == other.levels);
        if levels > 1 && !follows {
            let mut all = groups.iter().map(|group| level(group, name));
            let is_number =
                all.all(|level| level.is_some_and(|l| l.parse::<f64>().is_ok_and(|n| n > 0.0)));
            kept.push(Factor {
                name,
                levels,
                is_number,
            });
        }
    }
    kept
}

/// Parts of the groups in which all these factors have one level, each with what that is.
pub(super) fn parts<'a>(groups: &[Group<'a>], by: &[&str]) -> Vec<(String, Vec<Group<'a>>)> {
    let mut all = vec![(String::new(), groups.to_vec())];
    for factor in by {
        let mut finer = Vec::new();
        for (title, groups) in all {
            for (level, part) in divided(&groups, Some(factor)) {
                let level = level.unwrap_or_else(|| "-".to_owned());
                finer.push((format!("{title}, {factor} {level}"), part));
            }
        }
        all = finer;
    }
    all
}

/// A chart of each phase and each level of what is neither its axis nor its lines; and how many there would be more.
fn along_a_number(
    profile: &str,
    x: &Factor<'_>,
    factors: &[Factor<'_>],
    groups: &[Group<'_>],
    judging: &Judging,
) -> (Vec<Chart>, usize) {
    let others = || factors.iter().filter(|factor| factor.name != x.name);
    let coloured = others()
        .filter(|factor| factor.levels <= LINES)
        .max_by_key(|factor| factor.levels)
        .map(|factor| factor.name);
    let rest: Vec<&str> = others()
        .map(|factor| factor.name)
        .filter(|name| Some(*name) != coloured)
        .collect();
    let mut charts = Vec::new();
    for phase in phases(groups) {
        for (number, (title, part)) in parts(groups, &rest).iter().enumerate() {
            let of_phase = OfPhase {
                id: &format!("{profile}-many-{phase}-{number}"),
                title: &format!("{profile}: {phase}{title}"),
                phase,
                x: Some(x.name),
                lines: coloured,
            };
            charts.extend(lines(&of_phase, part, judging));
        }
    }
    let left = charts.len().saturating_sub(CHARTS);
    charts.truncate(CHARTS);
    (charts, left)
}

/// Bars of each level of as few factors as leave no part with too many cells.
fn in_parts(
    profile: &str,
    factors: &[Factor<'_>],
    groups: &[Group<'_>],
    judging: &Judging,
) -> (Vec<Chart>, usize) {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name).collect();
    let fits = |by: &usize| {
        parts(groups, &names[..*by])
            .iter()
            .all(|(_, part)| part.len() <= MOST)
    };
    let Some(by) = (1..=names.len()).find(fits) else {
        return (Vec::new(), 0);
    };
    let mut charts = Vec::new();
    for (number, (title, part)) in parts(groups, &names[..by]).iter().enumerate() {
        for mut chart in bars::bars(profile, part, judging) {
            if let Chart::Bars(bars) = &mut chart {
                bars.title.push_str(title);
                bars.id = format!("{}-part-{number}", bars.id);
            }
            charts.push(chart);
        }
    }
    let left = charts.len().saturating_sub(CHARTS);
    charts.truncate(CHARTS);
    (charts, left)
}

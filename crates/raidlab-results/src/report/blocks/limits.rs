//! What limited each phase of each cell: the sentence of the model, and what was busiest.
mod sentence;

use super::fastest::NAMES;
use crate::record::{Better, Explained, Resource};
use crate::report::analysis::{Judging, summarise};
use crate::report::document::{Cell, Column, Table};
use crate::report::group::{Group, phases};
use sentence::{Sentence, told};

/// Busy shares that are shown beside the sentence.
const SHOWN: usize = 3;

/// With more lines than these the best and the worst of each phase are told of: nobody reads hundreds.
const LINES: usize = 48;

/// Cells of which the same is told in a phase.
struct Limited<'a> {
    phase: &'a str,
    why: Sentence<'a>,
    cells: Vec<&'a str>,
    busy: Vec<Busy<'a>>,
}

/// A resource, and the least and most that it was busy, in per cent.
struct Busy<'a> {
    name: &'a str,
    least: f64,
    most: f64,
}

/// A line for each phase and what limits it, with the cells of which that is so; of the best and the worst of each phase where that
/// were too many. `None` when no trial was explained.
pub(crate) fn limits(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    let phases = phases(groups);
    let all = phases.iter().flat_map(|phase| {
        let of_phase = groups.iter().map(|group| (group, *phase));
        limited(&of_phase.collect::<Vec<_>>())
    });
    let all: Vec<Limited<'_>> = all.collect();
    let few = all.len() <= LINES;
    let (lines, which) = match few {
        true => (all, String::new()),
        false => {
            let ends = phases
                .iter()
                .flat_map(|phase| limited(&ends(groups, phase, judging)));
            let which = format!(
                "; of {} cells the best and the worst of each phase ('raidlab show' tells of all)",
                groups.len()
            );
            (ends.collect(), which)
        }
    };
    let repeats = groups.iter().any(|g| g.trials.len() > 1);
    let of = if repeats { ", in the first trial" } else { "" };
    let caption = format!("{profile}: what limits each phase{of}, and the busy shares{which}");
    let several = lines.iter().any(|line| line.cells.len() > 1);
    let columns = vec![
        Column::text("phase"),
        Column::text(if several { "cells" } else { "cell" }),
        Column::text("what limits it"),
        Column::text("busiest"),
    ];
    let mut table = Table::new(format!("{profile}-limits"), caption, columns).named_by(2);
    table.rows = lines.iter().map(|line| row(line, groups.len())).collect();
    (!table.rows.is_empty()).then_some(table)
}

/// What is told of these cells in a phase, each that was explained with those of which the same is told, in the order in which they
/// come.
fn limited<'a>(of_phase: &[(&'a Group<'_>, &'a str)]) -> Vec<Limited<'a>> {
    let mut all: Vec<Limited<'a>> = Vec::new();
    for (group, phase) in of_phase {
        let records = group.trials.iter().flat_map(|t| &t.phases);
        let mut records = records.filter(|p| p.phase == *phase);
        let explained = records.find_map(|p| Some((p.explained.as_ref()?, p.elapsed_ns?)));
        let Some((explained, elapsed)) = explained else {
            continue;
        };
        let why = Sentence::of(&explained.why);
        let busy = busy(explained, elapsed);
        match all.iter().position(|line| line.why.says(&why)) {
            Some(place) => all[place].join(&group.label, &why, busy),
            None => all.push(Limited {
                phase,
                why,
                cells: vec![&group.label],
                busy,
            }),
        }
    }
    all
}

impl<'a> Limited<'a> {
    /// Takes in another cell of which the same is told.
    fn join(&mut self, cell: &'a str, why: &Sentence<'_>, busy: Vec<Busy<'a>>) {
        self.cells.push(cell);
        self.why.join(why);
        for other in busy {
            match self.busy.iter_mut().find(|own| own.name == other.name) {
                Some(own) => {
                    own.least = own.least.min(other.least);
                    own.most = own.most.max(other.most);
                }
                None => self.busy.push(other),
            }
        }
    }

    /// Its cells by name, where they are not all that there are.
    fn names(&self, all: usize) -> String {
        match &self.cells[..] {
            [cell] => (*cell).to_owned(),
            cells if cells.len() == all => format!("all {all}"),
            cells if cells.len() > NAMES + 1 => {
                let rest = cells.len() - NAMES;
                format!("{}; and {rest} more", cells[..NAMES].join("; "))
            }
            cells => cells.join("; "),
        }
    }
}

fn row(line: &Limited<'_>, all: usize) -> Vec<Cell> {
    vec![
        Cell::text(line.phase),
        Cell::text(line.names(all)),
        Cell::text(line.why.to_string()),
        Cell::text(busiest(&line.busy)),
    ]
}

/// The cells with the best and the worst figure of a phase.
fn ends<'g, 'a>(
    groups: &'g [Group<'a>],
    phase: &'g str,
    judging: &Judging,
) -> Vec<(&'g Group<'a>, &'g str)> {
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
    match figures[..] {
        [(best, _), .., (worst, _)] => vec![(best, phase), (worst, phase)],
        _ => Vec::new(),
    }
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

/// The shares of what was busy at all.
fn busy(explained: &Explained, elapsed_ns: u64) -> Vec<Busy<'_>> {
    let shares = explained.resources.iter().map(|resource| {
        let share = share(resource, elapsed_ns);
        Busy {
            name: &resource.name,
            least: share,
            most: share,
        }
    });
    shares.filter(|busy| busy.most >= 0.5).collect()
}

fn busiest(busy: &[Busy<'_>]) -> String {
    let mut all: Vec<&Busy<'_>> = busy.iter().collect();
    all.sort_by(|a, b| b.most.total_cmp(&a.most));
    let shown = all.iter().take(SHOWN).map(|busy| {
        let [least, most] = [busy.least, busy.most].map(|share| format!("{share:.0}"));
        format!("{} {} %", busy.name, told(&least, &most))
    });
    shown.collect::<Vec<_>>().join(", ")
}

//! The answer first: which cell is fastest in each phase, which ones cannot be told from it, and by how much it is ahead
//! of the next.
use crate::record::{Better, Unit};
use crate::report::analysis::{Judging, Outcome, adjust, compare_phase, is_better, summarise};
use crate::report::answers::BestVerdict;
use crate::report::document::{Cell, Column, Table, Tone, Value};
use crate::report::experiment::ArrayFacts;
use crate::report::format;
use crate::report::group::{Group, State, phases, provenance_kind};
use crate::report::load::{Load, loads};
use raidlab_stats::{Comparison, Flag, Verdict};

/// Names of cells that are told in a line.
pub(super) const NAMES: usize = 3;

/// How a phase came out.
pub(crate) struct Contest {
    pub(crate) unit: Unit,
    /// The cell with the best figure, and that figure.
    pub(crate) winner: usize,
    pub(crate) figure: f64,
    /// Cells that it is not better than by more than the margin, as far as can be told; the best first.
    pub(crate) alike: Vec<usize>,
    /// All that have a figure are shown to be as good; else the runs may just be too few to tell.
    equivalent: bool,
    /// The best of those that it is better than, and the winner compared with it.
    pub(crate) next: Option<(usize, Box<Comparison>)>,
    /// Cells that it is not compared with, and why: those that have a figure first.
    pub(crate) apart: Vec<(usize, String)>,
}

impl Contest {
    /// Only what is better than another one is the best: that no ratio can be formed decides nothing.
    pub(crate) fn verdict(&self) -> BestVerdict {
        match (&self.next, self.equivalent) {
            (Some(_), _) => BestVerdict::Decided,
            (None, true) => BestVerdict::NoDifference,
            (None, false) => BestVerdict::CannotBeTold,
        }
    }
}

/// A table for each kind of provenance and each state of the arrays; none where there is nothing to choose from.
pub(crate) fn fastest(
    profile: &str,
    groups: &[Group<'_>],
    arrays: &[ArrayFacts],
    judging: &Judging,
) -> Vec<Table> {
    let all = rivals(groups, arrays);
    let mut told: Vec<&[String]> = Vec::new();
    for part in &all {
        if !told.contains(&&part.among[..]) {
            told.push(&part.among);
        }
    }
    let tables = told.into_iter().filter_map(|among| {
        let parts: Vec<&Rivals<'_>> = all.iter().filter(|part| part.among == among).collect();
        let among: String = among.iter().map(|word| format!(", {word}")).collect();
        in_order(profile, &among, &parts, judging)
    });
    tables.collect()
}

/// Groups among which somebody chooses.
pub(crate) struct Rivals<'r> {
    /// What they have in common where there are others: their source, the state of their arrays.
    pub(crate) among: Vec<String>,
    /// What they do, where others do something else.
    pub(crate) load: Option<String>,
    pub(crate) groups: Vec<Group<'r>>,
}

/// A prediction is not ahead of a measurement, many requests in flight are not ahead of one, and nobody chooses between a
/// clean array and a degraded one.
pub(crate) fn rivals<'r>(groups: &[Group<'r>], arrays: &[ArrayFacts]) -> Vec<Rivals<'r>> {
    let mut all = Vec::new();
    for (kind, of_kind) in apart(groups, |group| provenance_kind(group.provenance)) {
        for load in loads(&of_kind, arrays) {
            all.extend(in_states(kind.as_ref(), load));
        }
    }
    all
}

/// Groups that do the same, by the states of their arrays.
fn in_states<'r>(kind: Option<&String>, load: Load<'r>) -> Vec<Rivals<'r>> {
    let states = apart(&load.groups, |group| group.array_state().to_owned());
    // Where each array has a state of its own, the states are what is compared.
    let compares_states = states.iter().all(|(_, groups)| groups.len() < 2);
    let parts = if compares_states {
        vec![(None, load.groups)]
    } else {
        states
    };
    let rivals = parts.into_iter().map(|(state, groups)| Rivals {
        among: kind.into_iter().chain(&state).cloned().collect(),
        load: load.name.clone(),
        groups,
    });
    rivals.collect()
}

/// The groups that are alike in something, in the order in which they come, with what they are alike in where it is not
/// the same for all.
fn apart<'r>(
    groups: &[Group<'r>],
    by: impl Fn(&Group<'r>) -> String,
) -> Vec<(Option<String>, Vec<Group<'r>>)> {
    let mut parts: Vec<(Option<String>, Vec<Group<'r>>)> = Vec::new();
    for group in groups {
        let word = Some(by(group));
        match parts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, part)) => part.push(group.clone()),
            None => parts.push((word, vec![group.clone()])),
        }
    }
    if let [(word, _)] = &mut parts[..] {
        *word = None;
    }
    parts
}

/// A line for each load and phase; `None` when there is nothing to choose from.
fn in_order(profile: &str, among: &str, parts: &[&Rivals<'_>], judging: &Judging) -> Option<Table> {
    let of_part = |part: &&'_ Rivals<'_>| -> Vec<(String, Contest)> {
        let phases = phases(&part.groups).into_iter();
        phases
            .filter_map(|phase| Some((phase.to_owned(), contest(&part.groups, phase, judging)?)))
            .collect()
    };
    let contests: Vec<Vec<(String, Contest)>> = parts.iter().map(of_part).collect();
    if contests.iter().all(Vec::is_empty) {
        return None;
    }
    let caption = format!(
        "{profile}{among}: the best of each phase. Not told apart is what it is not for certain better than by more than {:.1} %",
        100.0 * judging.margin
    );
    let loads = parts.iter().any(|part| part.load.is_some());
    let mut columns = vec![
        Column::text("phase"),
        Column::text("best"),
        Column::number("figure"),
        Column::text("unit"),
        Column::text("not told apart"),
        Column::text("not compared"),
        Column::number("ratio").under("ahead of the next"),
        Column::text("which is").under("ahead of the next"),
    ];
    if loads {
        columns.insert(0, Column::text("load"));
    }
    let mut table =
        Table::new(format!("{profile}-fastest"), caption, columns).named_by(1 + usize::from(loads));
    for (part, contests) in parts.iter().zip(&contests) {
        for (phase, contest) in contests {
            let mut cells = row(&mut table, phase, contest, &part.groups);
            if loads {
                let name = part.load.clone().unwrap_or_default();
                cells.insert(0, Cell::text(name));
            }
            table.rows.push(cells);
        }
    }
    table.drop_empty_columns();
    Some(table)
}

/// How a phase came out among rivals; `None` where fewer than two have a figure.
pub(crate) fn contest(groups: &[Group<'_>], phase: &str, judging: &Judging) -> Option<Contest> {
    let mut figures: Vec<(usize, f64)> = groups
        .iter()
        .enumerate()
        .filter_map(|(i, group)| Some((i, summarise(group, phase, judging)?.headline.value)))
        .collect();
    let unit = groups[figures.first()?.0].unit(phase)?;
    // Of equal ones the first stays first.
    figures.sort_by(|a, b| match unit.better() {
        Better::Higher => b.1.total_cmp(&a.1),
        Better::Lower => a.1.total_cmp(&b.1),
    });
    let [(winner, figure), others @ ..] = &figures[..] else {
        return None;
    };
    if others.is_empty() {
        return None;
    }
    // As the winner's gain, which is what the margin is of: of the reverse ratio a fifth is another difference.
    let ahead_of = |other: usize| compare_phase(&groups[other], &groups[*winner], phase, judging);
    let mut outcomes: Vec<Outcome> = others.iter().map(|other| ahead_of(other.0)).collect();
    adjust(outcomes.iter_mut(), judging);
    let mut contest = Contest {
        unit,
        winner: *winner,
        figure: *figure,
        alike: Vec::new(),
        equivalent: true,
        next: None,
        apart: Vec::new(),
    };
    for ((other, _), outcome) in others.iter().zip(outcomes) {
        match outcome {
            Outcome::Ratio(ahead) if !is_better(&ahead, judging) => {
                contest.alike.push(*other);
                contest.equivalent &= is_equivalent(&ahead);
            }
            Outcome::Ratio(ahead) => {
                contest.next.get_or_insert((*other, ahead));
            }
            none => {
                contest.equivalent = false;
                contest.apart.push((*other, none.why_none().to_owned()));
            }
        }
    }
    for (place, group) in groups.iter().enumerate() {
        if let Some(why) = no_figure(group, phase) {
            contest.apart.push((place, why.to_owned()));
        }
    }
    Some(contest)
}

/// Why a cell that was to have a figure has none.
fn no_figure(group: &Group<'_>, phase: &str) -> Option<&'static str> {
    match group.state(phase) {
        State::Runs(_) => None,
        // What ran without that phase was not to have it.
        State::Absent if group.trials.iter().any(|trial| trial.is_valid()) => None,
        State::Absent | State::Invalid => Some("no valid run"),
        State::Withheld => Some("withheld"),
        State::TooFast => Some("too fast"),
    }
}

/// Whether a cell is shown to be within the margin of the best one. Of single runs the figures are all there is.
fn is_equivalent(comparison: &Comparison) -> bool {
    comparison.ratio.flags.contains(&Flag::SingleValue) || comparison.verdict == Verdict::Equivalent
}

fn row(table: &mut Table, phase: &str, contest: &Contest, groups: &[Group<'_>]) -> Vec<Cell> {
    let shown = format::suited(contest.unit, contest.figure.abs());
    let value = contest.figure / shown.scale;
    let undecided = |word: &str| Cell::text(word).tone(Tone::Muted);
    let best = match contest.verdict() {
        BestVerdict::NoDifference => undecided("no difference"),
        BestVerdict::CannotBeTold => undecided("cannot be told"),
        BestVerdict::Decided => Cell::text(groups[contest.winner].label.clone()).tone(Tone::Strong),
    };
    let mut figure = Cell::number(value, format::decimals(value));
    for (kind, _) in groups[contest.winner].remarks(phase) {
        let doubt = format!("{}: see the figures below", kind.name());
        figure = figure.mark(table.footnote(&doubt));
    }
    let mut cells = vec![
        Cell::text(phase),
        best,
        figure,
        Cell::text(shown.name),
        alike(contest, groups),
        not_compared(table, contest, groups),
    ];
    match &contest.next {
        Some((next, comparison)) => {
            let ratio = Value::Ratio {
                value: comparison.ratio.value,
                interval: comparison.ratio.interval.map(|i| (i.lo, i.hi)),
                digits: None,
            };
            cells.extend([ratio.into(), Cell::text(groups[*next].label.clone())]);
        }
        None => cells.extend([Cell::absent(), Cell::absent()]),
    }
    cells
}

fn alike(contest: &Contest, groups: &[Group<'_>]) -> Cell {
    if contest.alike.len() + 1 == groups.len() {
        return Cell::text(format!("all {}", groups.len()));
    }
    // Where none is named as the best, the cell with the best figure is one of those.
    let unnamed = contest.verdict() != BestVerdict::Decided && !contest.alike.is_empty();
    let winner = unnamed.then_some(contest.winner);
    named(
        winner.into_iter().chain(contest.alike.iter().copied()),
        groups,
    )
}

fn not_compared(table: &mut Table, contest: &Contest, groups: &[Group<'_>]) -> Cell {
    // And where it is compared with nothing, one of these.
    let unnamed = contest.next.is_none() && contest.alike.is_empty();
    let winner = unnamed.then_some(contest.winner);
    let others = contest.apart.iter().map(|(place, _)| *place);
    let mut cell = named(winner.into_iter().chain(others), groups);
    let mut told: Vec<&str> = Vec::new();
    for (_, why) in &contest.apart {
        if !told.contains(&why.as_str()) {
            cell = cell.mark(table.footnote(&format!("not compared with the best figure: {why}")));
            told.push(why);
        }
    }
    cell
}

fn named(places: impl Iterator<Item = usize>, groups: &[Group<'_>]) -> Cell {
    let mut names: Vec<&str> = places.map(|i| groups[i].label.as_str()).collect();
    if names.is_empty() {
        return Cell::absent();
    }
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let mut text = names.join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    Cell::text(text)
}

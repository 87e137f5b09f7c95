//! The answer first: which cell is fastest in each phase, which ones cannot be told from it, and by how much it is ahead
//! of the next.
use crate::record::{Better, Unit};
use crate::report::analysis::{Judging, Outcome, adjust, compare_phase, is_worse, summarise};
use crate::report::document::{Cell, Column, Table, Tone, Value};
use crate::report::format;
use crate::report::group::{Group, phases, provenance_kind};
use raidlab_stats::{Comparison, Flag, Verdict};

/// Names of cells that are told in a line.
const NAMES: usize = 3;

/// How a phase came out.
pub(crate) struct Contest {
    pub(crate) unit: Unit,
    /// The cell with the best figure, and that figure.
    pub(crate) winner: usize,
    pub(crate) figure: f64,
    /// Cells that are not worse than it by more than the margin, as far as can be told; the best first.
    pub(crate) alike: Vec<usize>,
    /// All of those are shown to be as good; else the runs may just be too few to tell.
    pub(crate) equivalent: bool,
    /// The best of the others, and the winner compared with it.
    pub(crate) next: Option<(usize, Box<Comparison>)>,
}

/// A table for each kind of provenance and each state of the arrays; none where there is nothing to choose from.
pub(crate) fn fastest(profile: &str, groups: &[Group<'_>], judging: &Judging) -> Vec<Table> {
    let tables = rivals(groups).into_iter().filter_map(|(among, part)| {
        let among: String = among.iter().map(|word| format!(", {word}")).collect();
        in_order(profile, &among, &part, judging)
    });
    tables.collect()
}

/// Groups among which somebody chooses, with what they have in common where there are others: a prediction is not ahead of
/// a measurement, and nobody chooses between a clean array and a degraded one.
pub(crate) fn rivals<'r>(groups: &[Group<'r>]) -> Vec<(Vec<String>, Vec<Group<'r>>)> {
    let mut all = Vec::new();
    for (kind, of_kind) in apart(groups, |group| provenance_kind(group.provenance)) {
        let states = apart(&of_kind, |group| group.array_state().to_owned());
        // Where each array has a state of its own, the states are what is compared.
        let compares_states = states.iter().all(|(_, groups)| groups.len() < 2);
        let parts = if compares_states {
            vec![(None, of_kind)]
        } else {
            states
        };
        for (state, part) in parts {
            let among = [&kind, &state].into_iter().flatten().cloned().collect();
            all.push((among, part));
        }
    }
    all
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

/// A line for each phase; `None` when there is nothing to choose from.
fn in_order(profile: &str, among: &str, groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    let contests: Vec<(&str, Contest)> = phases(groups)
        .into_iter()
        .filter_map(|phase| Some((phase, contest(groups, phase, judging)?)))
        .collect();
    if contests.is_empty() {
        return None;
    }
    let caption = format!(
        "{profile}{among}: the best of each phase. Not told apart is what is not for certain worse by more than {:.1} %",
        100.0 * judging.margin
    );
    let columns = vec![
        Column::text("phase"),
        Column::text("best"),
        Column::number("figure"),
        Column::text("unit"),
        Column::text("not told apart"),
        Column::number("ratio").under("ahead of the next"),
        Column::text("which is").under("ahead of the next"),
    ];
    let mut table = Table::new(format!("{profile}-fastest"), caption, columns);
    for (phase, contest) in &contests {
        let cells = row(&mut table, phase, contest, groups);
        table.rows.push(cells);
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
    let against = |other: usize| compare_phase(&groups[*winner], &groups[other], phase, judging);
    let mut outcomes: Vec<Outcome> = others.iter().map(|other| against(other.0)).collect();
    adjust(outcomes.iter_mut(), judging);
    let (mut alike, mut next, mut equivalent) = (Vec::new(), None, true);
    for ((other, _), outcome) in others.iter().zip(&outcomes) {
        match outcome {
            Outcome::Ratio(comparison) if !is_worse(comparison, judging) => {
                alike.push(*other);
                equivalent &= is_equivalent(comparison);
            }
            Outcome::Ratio(_) if next.is_none() => {
                // Told as the winner's gain.
                let ahead = compare_phase(&groups[*other], &groups[*winner], phase, judging);
                if let Outcome::Ratio(ahead) = ahead {
                    next = Some((*other, ahead));
                }
            }
            _ => {}
        }
    }
    Some(Contest {
        unit,
        winner: *winner,
        figure: *figure,
        alike,
        equivalent,
        next,
    })
}

/// Whether a cell is shown to be within the margin of the best one. Of single runs the figures are all there is.
fn is_equivalent(comparison: &Comparison) -> bool {
    comparison.ratio.flags.contains(&Flag::SingleValue) || comparison.verdict == Verdict::Equivalent
}

fn row(table: &mut Table, phase: &str, contest: &Contest, groups: &[Group<'_>]) -> Vec<Cell> {
    let shown = format::suited(contest.unit, contest.figure.abs());
    let value = contest.figure / shown.scale;
    let all = contest.alike.len() + 1 == groups.len();
    let best = if all {
        let word = match contest.equivalent {
            true => "no difference",
            false => "cannot be told",
        };
        Cell::text(word).tone(Tone::Muted)
    } else {
        Cell::text(groups[contest.winner].label.clone()).tone(Tone::Strong)
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
        alike(contest, groups, all),
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

fn alike(contest: &Contest, groups: &[Group<'_>], all: bool) -> Cell {
    if all {
        return Cell::text(format!("all {}", groups.len()));
    }
    let mut names: Vec<&str> = contest
        .alike
        .iter()
        .map(|i| groups[*i].label.as_str())
        .collect();
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

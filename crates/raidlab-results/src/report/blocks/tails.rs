//! Response times of every cell against its baseline: percentiles with interval and verdict.
use super::ratios::cells_of;
use crate::report::analysis::{
    Judging, LEAST_RUNS, Outcome, adjust, compare_percentile, tail_margin,
};
use crate::report::document::{Block, Cell, Column, Table, Tone};
use crate::report::group::{Group, phases};
use crate::report::percentile::Percentile;
use crate::report::select::Baseline;

/// A cell and its baseline in one phase.
pub(crate) struct Line<'p> {
    pub(crate) phase: &'p str,
    /// Places of the cell and of its baseline.
    pub(crate) group: usize,
    pub(crate) base: usize,
    /// One of each of [`Percentile::ALL`].
    pub(crate) outcomes: Vec<Outcome>,
}

/// The table of verdicts on response times, or what it wants; nothing where nothing was timed or nothing is compared. A percentile
/// that is judged of no cell has no columns.
pub(crate) fn tails(
    profile: &str,
    baseline: &Baseline,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Vec<Block> {
    let lines = judged(baseline, groups, judging);
    if lines.is_empty() {
        return Vec::new();
    }
    let outcomes = lines.iter().flat_map(|line| &line.outcomes);
    if !outcomes.clone().any(|o| matches!(o, Outcome::Ratio(_))) {
        let told = unjudged(outcomes).map(|why| {
            let told = "response times are not judged against the baseline";
            Block::paragraph(format!("{profile}: {told}: {why}."))
        });
        return told.into_iter().collect();
    }
    let mut blocks = vec![Block::Table(table(profile, groups, &lines, judging))];
    for (at, name) in Percentile::ALL.into_iter().enumerate() {
        let why = unjudged(lines.iter().map(|line| &line.outcomes[at]));
        let told = why.map(|why| format!("{profile}: {name} is judged of no cell: {why}."));
        blocks.extend(told.map(Block::paragraph));
    }
    blocks
}

/// Why a percentile is judged of no cell; `None` when it is of one.
fn unjudged<'o>(outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> Option<String> {
    if outcomes.clone().any(|o| matches!(o, Outcome::Ratio(_))) {
        return None;
    }
    outcomes.clone().find_map(|outcome| match outcome {
        Outcome::Impossible(why) => Some(why.clone()),
        Outcome::DifferentStreams => Some("the operation streams differ".to_owned()),
        _ => None,
    })
}

/// Every cell and phase that was timed on both sides, with the verdicts corrected for their number.
pub(crate) fn judged<'a>(
    baseline: &Baseline,
    groups: &[Group<'a>],
    judging: &Judging,
) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for phase in phases(groups) {
        for (group, candidate) in groups.iter().enumerate() {
            let base = baseline.of(candidate, groups);
            let Some(base) = base.filter(|base| *base != group) else {
                continue;
            };
            let of = |of: Percentile| {
                compare_percentile(&groups[base], candidate, phase, of.percent(), judging)
            };
            let outcomes: Vec<Outcome> = Percentile::ALL.into_iter().map(of).collect();
            if outcomes.iter().all(|o| matches!(o, Outcome::Absent)) {
                continue;
            }
            lines.push(Line {
                phase,
                group,
                base,
                outcomes,
            });
        }
    }
    adjust(
        lines.iter_mut().flat_map(|line| &mut line.outcomes),
        judging,
    );
    lines
}

fn table(profile: &str, groups: &[Group<'_>], lines: &[Line<'_>], judging: &Judging) -> Table {
    let first = lines[0].base;
    let one = lines.iter().all(|line| line.base == first);
    let to = match one {
        true => format!(" to {}", groups[first].label),
        false => String::new(),
    };
    let caption = format!(
        "{profile}: ratio of response times{to}, below 1 is faster (of the percentiles of the runs, {LEAST_RUNS} or more of each side, \
         {:.0} % interval; better or worse is by more than {:.1} %)",
        100.0 * judging.confidence.level(),
        100.0 * tail_margin(judging)
    );
    let mut columns = vec![Column::text("phase"), Column::text("cell")];
    if !one {
        columns.push(Column::text("against"));
    }
    let names = columns.len();
    let judged = |at: usize| {
        let mut outcomes = lines.iter().map(|line| &line.outcomes[at]);
        outcomes.any(|outcome| matches!(outcome, Outcome::Ratio(_)))
    };
    let judged = [judged(0), judged(1), judged(2)];
    for (_, of) in judged
        .iter()
        .zip(Percentile::ALL)
        .filter(|(judged, _)| **judged)
    {
        columns.push(Column::number("ratio").under(of.name()));
        columns.push(Column::text("verdict").under(of.name()));
    }
    let mut table = Table::new(format!("{profile}-tails"), caption, columns).named_by(names);
    for line in lines {
        let mut row = vec![
            Cell::text(line.phase),
            Cell::text(groups[line.group].label.clone()),
        ];
        if !one {
            row.push(Cell::text(groups[line.base].label.clone()).tone(Tone::Muted));
        }
        for (_, outcome) in judged
            .iter()
            .zip(&line.outcomes)
            .filter(|(judged, _)| **judged)
        {
            row.extend(cells_of(&mut table, outcome));
        }
        table.rows.push(row);
    }
    table.drop_empty_columns();
    table
}

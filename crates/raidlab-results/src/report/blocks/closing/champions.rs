//! Who is the best of each column of the closing table.
use super::Line;
use crate::report::analysis::{Judging, Outcome};
use crate::report::blocks::fastest;
use crate::report::group::Group;

/// Capacities within this share of the largest are the same.
const SAME_CAPACITY: f64 = 1e-3;

/// The best of each column with the places of the lines that reach it (to two decimals; of capacity, to a thousandth; of ratios
/// with intervals, as far as can be told). Ratios count where they are known; cost and capacity are known of withheld rows, too.
pub(super) fn champions(
    columns: &[(&str, String)],
    lines: &[Line<'_>],
    judging: &Judging,
) -> Vec<(String, Vec<usize>)> {
    let within = |share: f64, key: &dyn Fn(&Line<'_>) -> Option<f64>| -> Vec<usize> {
        let keys: Vec<Option<f64>> = lines.iter().map(key).collect();
        let best = keys
            .iter()
            .flatten()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        (0..lines.len())
            .filter(|i| {
                keys[*i].is_some_and(|k| (k - best).abs() < 0.005_f64.min(share * best.abs()))
            })
            .collect()
    };
    let winners = |key: &dyn Fn(&Line<'_>) -> Option<f64>| within(f64::INFINITY, key);
    let mut all: Vec<(String, Vec<usize>)> = columns
        .iter()
        .enumerate()
        .map(|(column, (name, phase))| {
            let of_runs = not_told_apart(lines, column, phase, judging);
            let of_column = of_runs.unwrap_or_else(|| winners(&|line| line.ratio(column)));
            ((*name).to_owned(), of_column)
        })
        .collect();
    let priced = lines.iter().all(|line| line.price.is_some());
    let cost = winners(&|line| match line.price.filter(|_| priced) {
        Some(price) => Some(-price.amount()),
        None => Some(-f64::from(line.disks)),
    });
    all.push(("cost".to_owned(), cost));
    let capacity = within(SAME_CAPACITY, &|line| line.capacity);
    all.push(("capacity".to_owned(), capacity));
    all
}

/// Whether a ratio of a column has an interval: there are repeats.
pub(super) fn has_interval(lines: &[Line<'_>], column: usize) -> bool {
    let mut ratios = lines.iter().map(|line| &line.ratios[column]);
    ratios.any(|outcome| matches!(outcome, Outcome::Ratio(told) if told.ratio.interval.is_some()))
}

/// The best of a column and those that cannot be told from it; `None` where no ratio has an interval.
fn not_told_apart(
    lines: &[Line<'_>],
    column: usize,
    phase: &str,
    judging: &Judging,
) -> Option<Vec<usize>> {
    if !has_interval(lines, column) {
        return None;
    }
    let groups: Vec<Group<'_>> = lines.iter().map(|line| line.group.clone()).collect();
    let contest = fastest::contest(&groups, phase, judging)?;
    let mut places = contest.alike;
    // What is compared with nothing is the best of nothing.
    if contest.next.is_some() || !places.is_empty() {
        places.push(contest.winner);
    }
    Some(places)
}

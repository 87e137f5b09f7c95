//! Every cell as a ratio to its baseline, with interval and verdict.
use super::at_odds::at_odds;
use crate::report::analysis::{Judging, Outcome, adjust, compare_phase};
use crate::report::columns::heading;
use crate::report::document::{Cell, Column, Table, Tone, Value};
use crate::report::format;
use crate::report::group::{Group, phases};
use crate::report::select::Baseline;
use raidlab_stats::compare::Gain;
use raidlab_stats::{Comparison, Flag, Interval, Method, Pairing, Verdict};

/// What a table of ratios is about.
pub(crate) struct Ratios<'r> {
    /// Unique in the document.
    pub(crate) id: String,
    /// What is compared with what.
    pub(crate) title: &'r str,
    /// Who is whose baseline.
    pub(crate) baseline: &'r Baseline,
}

/// A row before it is set: the cell, its baseline and one outcome a phase.
struct Line {
    group: usize,
    base: Option<usize>,
    outcomes: Vec<Outcome>,
}

/// The table of ratios; `None` when no cell has a baseline.
pub(crate) fn ratios(what: &Ratios<'_>, groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    let phases = phases(groups);
    if phases.is_empty() {
        return None;
    }
    let mut lines = lines(what.baseline, groups, &phases, judging);
    if !lines
        .iter()
        .any(|line| line.base.is_some_and(|base| base != line.group))
    {
        return None;
    }
    // A rule for some cells alone says nothing of the others, which other tables show.
    lines.retain(|line| match what.baseline {
        Baseline::Cell(_) => true,
        Baseline::Cases(_) => line.base.is_some(),
        Baseline::Factor(_) => line.base.is_some_and(|base| base != line.group),
    });
    adjust(
        lines.iter_mut().flat_map(|line| &mut line.outcomes),
        judging,
    );
    // Whether any ratio has an interval; none when there is no ratio at all.
    let intervals = lines
        .iter()
        .flat_map(|line| &line.outcomes)
        .filter_map(|outcome| match outcome {
            Outcome::Ratio(comparison) => Some(comparison.ratio.interval.is_some()),
            _ => None,
        })
        .max();
    let mut bases: Vec<usize> = lines.iter().filter_map(|line| line.base).collect();
    bases.sort_unstable();
    bases.dedup();
    let caption = caption(what.title, &bases, groups, intervals, judging);
    let verdicts = intervals == Some(true);
    let profile = groups[0].profile;
    let columns = headings(profile, &phases, bases.len() > 1, verdicts);
    let mut table = Table::new(what.id.clone(), caption, columns);
    for line in &lines {
        let mut row = vec![Cell::text(groups[line.group].label.clone())];
        if bases.len() > 1 {
            row.push(match line.base {
                Some(base) if base == line.group => Cell::text("itself").tone(Tone::Muted),
                Some(base) => Cell::text(groups[base].label.clone()),
                None => Cell::text("no baseline").tone(Tone::Muted),
            });
        }
        for (phase, outcome) in phases.iter().zip(&line.outcomes) {
            let [mut ratio, verdict] = cells_of(&mut table, outcome);
            if let (Some(base), Outcome::Ratio(comparison)) = (line.base, outcome) {
                let sides = (&groups[base], &groups[line.group]);
                if let Some(why) = at_odds(sides.0, sides.1, phase, comparison, judging) {
                    ratio = ratio.mark(table.footnote(&why));
                }
            }
            row.push(ratio);
            if verdicts {
                row.push(verdict);
            }
        }
        table.rows.push(row);
    }
    table.drop_empty_columns();
    Some(table)
}

fn headings(profile: &str, phases: &[&str], against: bool, verdicts: bool) -> Vec<Column> {
    let mut columns = vec![Column::text("")];
    if against {
        columns.push(Column::text("against"));
    }
    for phase in phases {
        if verdicts {
            columns.push(Column::number("ratio").under(*phase));
            columns.push(Column::text("verdict").under(*phase));
        } else {
            columns.push(heading(profile, phase));
        }
    }
    columns
}

fn lines(
    baseline: &Baseline,
    groups: &[Group<'_>],
    phases: &[&str],
    judging: &Judging,
) -> Vec<Line> {
    groups
        .iter()
        .enumerate()
        .map(|(index, group)| {
            let base = baseline.of(group, groups);
            let outcomes = phases
                .iter()
                .map(|phase| match base {
                    Some(base) if base == index => match group.runs(phase).is_empty() {
                        true => compare_phase(group, group, phase, judging),
                        false => Outcome::IsBaseline,
                    },
                    Some(base) => compare_phase(&groups[base], group, phase, judging),
                    None => Outcome::Absent,
                })
                .collect();
            Line {
                group: index,
                base,
                outcomes,
            }
        })
        .collect()
}

fn caption(
    title: &str,
    bases: &[usize],
    groups: &[Group<'_>],
    intervals: Option<bool>,
    judging: &Judging,
) -> String {
    let to = match bases {
        [base] => format!(" to {}", groups[*base].label),
        _ => String::new(),
    };
    let sure = match intervals {
        Some(true) => format!(
            " (of the geometric means of the runs, {:.0} % interval; better or worse is by more than {:.1} %)",
            100.0 * judging.confidence.level(),
            100.0 * judging.margin
        ),
        Some(false) => " (n=1, no interval)".to_owned(),
        None => String::new(),
    };
    format!("{title}: ratio{to}{sure}")
}

/// Digits with which the printed interval bears out the verdict, and what else is read from its gain.
pub(crate) fn digits<T: PartialEq>(
    comparison: &Comparison,
    read: impl Fn(Gain) -> T,
) -> Option<usize> {
    let interval = comparison.ratio.interval?;
    format::telling_digits((interval.lo, interval.hi), |lo, hi| {
        let mut printed = comparison.clone();
        printed.ratio.interval = Some(Interval { lo, hi, ..interval });
        let gain = printed.gain()?;
        let verdict = Verdict::of_gain(&gain.interval?, comparison.criteria.margin);
        Some((verdict, read(gain)))
    })
}

/// The cells of a ratio and its verdict.
pub(super) fn cells_of(table: &mut Table, outcome: &Outcome) -> [Cell; 2] {
    let nothing = Cell::absent;
    match outcome {
        Outcome::Absent => [nothing(), nothing()],
        Outcome::Withheld => [Value::Withheld.into(), nothing()],
        Outcome::TooFast => [Value::TooFast.into(), nothing()],
        Outcome::Invalid => [Value::Invalid.into(), nothing()],
        Outcome::IsBaseline => {
            let one = Value::Ratio {
                value: 1.0,
                interval: None,
                digits: None,
            };
            [
                Cell::from(one).tone(Tone::Muted),
                Cell::text("baseline").tone(Tone::Muted),
            ]
        }
        Outcome::DifferentStreams => {
            let note = "the operation streams differ (other seed or settings), so that the figures \
                        answer different questions; --allow-different-streams compares them anyway";
            let mark = table.footnote(note);
            let refused = Cell::text("refused").tone(Tone::Muted).mark(mark);
            [refused, Cell::text("different streams").tone(Tone::Muted)]
        }
        Outcome::Impossible(why) => {
            let mark = table.footnote(why);
            [Cell::text("none").tone(Tone::Muted).mark(mark), nothing()]
        }
        Outcome::Ratio(comparison) => ratio_cells(table, comparison),
    }
}

fn ratio_cells(table: &mut Table, comparison: &Comparison) -> [Cell; 2] {
    let value = Value::Ratio {
        value: comparison.ratio.value,
        interval: comparison.ratio.interval.map(|i| (i.lo, i.hi)),
        digits: digits(comparison, |_| ()),
    };
    if comparison.ratio.flags.contains(&Flag::SingleValue) {
        let alone = Cell::text("n=1, no interval").tone(Tone::Muted);
        return [value.into(), alone];
    }
    let (text, tone) = verdict_text(comparison.verdict);
    let mark = table.footnote(&comparison.why);
    let ratio = Cell::from(value).tone(tone);
    let verdict = Cell::text(text).tone(tone).mark(mark);
    [
        ratio,
        with_basis(table, verdict, basis(comparison).as_deref()),
    ]
}

/// A verdict with the mark of what its ratio is of.
pub(crate) fn with_basis(table: &mut Table, verdict: Cell, basis: Option<&str>) -> Cell {
    match basis {
        Some(basis) => verdict.mark(table.footnote(basis)),
        None => verdict,
    }
}

/// What a ratio is of, where that is not simply all runs of both sides.
pub(crate) fn basis(comparison: &Comparison) -> Option<String> {
    let [a, b] = comparison.replicates;
    let (all_a, all_b) = (comparison.baseline_n, comparison.candidate_n);
    let mut parts = Vec::new();
    match comparison.criteria.pairing {
        Pairing::Paired if a < all_a.max(all_b) => {
            let rounds = format::plural(a, "round");
            parts.push(format!("of the {rounds} that both have valid"));
        }
        Pairing::Unpaired if a < all_a || b < all_b => {
            let of = |values: usize, runs: usize| match values < runs {
                true => format!("the means of {}", format::plural(values, "session")),
                false => format::plural(values, "run"),
            };
            parts.push(format!("of {} against {}", of(b, all_b), of(a, all_a)));
        }
        _ => {}
    }
    if comparison.ratio.method == Method::Fieller {
        parts.push("of the arithmetic means, as a run is not above 0".to_owned());
    }
    (!parts.is_empty()).then(|| format!("ratio {}", parts.join("; ")))
}

/// A verdict in words, with the number of further runs that would settle it.
pub(crate) fn verdict_text(verdict: Verdict) -> (String, Tone) {
    match verdict {
        Verdict::Better => ("better".to_owned(), Tone::Good),
        Verdict::Worse => ("worse".to_owned(), Tone::Bad),
        Verdict::Inconclusive {
            more_rounds: Some(more),
        } => {
            let more = format::plural(more as usize, "more run");
            (format!("inconclusive, {more}"), Tone::Muted)
        }
        other => (other.word().to_owned(), Tone::Plain),
    }
}

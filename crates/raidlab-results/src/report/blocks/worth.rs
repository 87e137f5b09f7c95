//! Which cells are worth a look: those that no other one beats in everything, and what each gives for its price.
mod money;

pub(crate) use money::{amount, tebibytes};

use crate::record::Better;
use crate::report::analysis::{Judging, Outcome, adjust, compare_phase, is_better, summarise};
use crate::report::document::{Block, Cell, Column, Table, Tone};
use crate::report::experiment::ArrayFacts;
use crate::report::format;
use crate::report::group::{Group, phases, provenance_kind};
use money::{Money, cost, cost_heading, for_money, money};
use raidlab_core::flag::FlagKind;
use raidlab_stats::Comparison;

/// Capacities within this share are the same: what is left over of a chunk is no reason.
const SAME_CAPACITY: f64 = 1e-3;
/// What a cell is better in that is told of it.
const REASONS: usize = 3;

/// A cell with what decides about it.
struct Entry<'g> {
    group: &'g Group<'g>,
    facts: &'g ArrayFacts,
    /// In the currency, or in disks.
    cost: f64,
    /// Of each phase.
    figures: Vec<Option<Figure>>,
}

/// A cell's figure of a phase.
#[derive(Clone, Copy)]
struct Figure {
    value: f64,
    /// It tells little of the arrays, which is flagged at some of its runs.
    doubted: bool,
}

/// Doubts that a figure tells of the arrays at all: over before it was timed soundly, or a cache's. Other flags tell of
/// something that slows a cell down as it would the next time.
const NOT_OF_THE_ARRAY: [FlagKind; 3] = [
    FlagKind::TooShort,
    FlagKind::PartlyCached,
    FlagKind::FitsInMemory,
];

/// Who beats a cell: its place, and what it is better in, the most first.
struct Beaten {
    by: usize,
    reasons: Vec<String>,
    /// Logarithm of the product of all gains.
    gain: f64,
}

/// What is worth a look, and figures for money where prices differ; nothing where there is nothing to choose from.
pub(crate) fn worth(
    profile: &str,
    groups: &[Group<'_>],
    arrays: &[ArrayFacts],
    judging: &Judging,
) -> Vec<Block> {
    let phases = phases(groups);
    let money = money(arrays);
    let entries: Vec<Entry<'_>> = groups
        .iter()
        .filter_map(|group| entry(group, arrays, &phases, &money, judging))
        .collect();
    let all: Vec<Option<Beaten>> = (0..entries.len())
        .map(|place| beaten(place, &entries, &phases, &money, judging))
        .collect();
    let has_rival = |entry: &Entry<'_>| {
        let others = entries.iter().filter(|other| are_rivals(entry, other));
        others.count() > 0
    };
    let mut blocks = Vec::new();
    if entries.iter().any(has_rival) {
        let doubted = doubted(&entries, &phases);
        blocks.push(Block::paragraph(answer(&entries, &all, &doubted)));
        if all.iter().any(Option::is_some) {
            let table = table(profile, &entries, &all, &money, judging);
            blocks.push(Block::Table(table));
        }
    }
    blocks.extend(for_money(profile, groups, &entries, &phases, &money).map(Block::Table));
    blocks
}

fn entry<'g>(
    group: &'g Group<'g>,
    arrays: &'g [ArrayFacts],
    phases: &[&str],
    money: &Money,
    judging: &Judging,
) -> Option<Entry<'g>> {
    let mut of_cell = arrays.iter();
    let facts = of_cell.find(|facts| facts.cells.contains(&group.cell.label))?;
    let cost = match money {
        Money::Currency(_) => facts.price?.amount(),
        Money::Disks => facts.disks as f64,
    };
    let figure = |phase: &&str| {
        let mut remarks = group.remarks(phase).into_iter();
        Some(Figure {
            value: summarise(group, phase, judging)?.headline.value,
            doubted: remarks.any(|(kind, _)| NOT_OF_THE_ARRAY.contains(&kind)),
        })
    };
    let figures: Vec<Option<Figure>> = phases.iter().map(figure).collect();
    // Of what has no figure at all nothing is known.
    figures.iter().any(Option::is_some).then_some(Entry {
        group,
        facts,
        cost,
        figures,
    })
}

/// Whether somebody chooses between the two: both do the same in the same state, and were found out in the same way.
fn are_rivals(a: &Entry<'_>, b: &Entry<'_>) -> bool {
    let condition = |entry: &Entry<'_>, name: &str| entry.group.cell.factors.get(name).cloned();
    !std::ptr::eq(a.group, b.group)
        && a.group.settings == b.group.settings
        && provenance_kind(a.group.provenance) == provenance_kind(b.group.provenance)
        && a.group.array_state() == b.group.array_state()
        && condition(a, "allocated") == condition(b, "allocated")
}

/// Who beats a cell; of several the one that gains most.
fn beaten(
    place: usize,
    entries: &[Entry<'_>],
    phases: &[&str],
    money: &Money,
    judging: &Judging,
) -> Option<Beaten> {
    let loser = &entries[place];
    let mut best: Option<Beaten> = None;
    for (by, winner) in entries.iter().enumerate() {
        if !are_rivals(winner, loser) || !costs_no_more_and_holds_no_less(winner, loser) {
            continue;
        }
        let Some(gain) = gain(winner, loser, phases, judging) else {
            continue;
        };
        let reasons = better_in(winner, loser, phases, money, judging);
        if !reasons.is_empty() && best.as_ref().is_none_or(|best| gain > best.gain) {
            best = Some(Beaten { by, reasons, gain });
        }
    }
    best
}

fn costs_no_more_and_holds_no_less(winner: &Entry<'_>, loser: &Entry<'_>) -> bool {
    let second = |entry: &Entry<'_>| entry.facts.second.unwrap_or(0.0);
    let survives = (winner.facts.survives, loser.facts.survives);
    winner.cost <= loser.cost
        && capacity(winner, loser) >= 1.0 - SAME_CAPACITY
        && survives.0 >= survives.1
        && (survives.0 > survives.1 || second(winner) >= second(loser) - 1e-9)
}

/// Usable capacity as a ratio: of bytes, or of disks where the bytes of one are not known; no number where those are not either.
fn capacity(winner: &Entry<'_>, loser: &Entry<'_>) -> f64 {
    let (one, other) = (winner.facts, loser.facts);
    match (one.capacity, other.capacity) {
        (Some(one), Some(other)) => one as f64 / other as f64,
        _ => {
            let disks = |facts: &ArrayFacts| facts.capacity_disks.parse().unwrap_or(f64::NAN);
            disks(one) / disks(other)
        }
    }
}

/// Whether a phase tells two cells apart: not where both figures are doubted. Where one alone is, the other one was timed
/// soundly, and what was over sooner is not beaten for that.
fn decides(one: Option<Figure>, other: Option<Figure>) -> bool {
    let doubted = |figure: Option<Figure>| figure.is_some_and(|figure| figure.doubted);
    !(doubted(one) && doubted(other))
}

/// Phases that decide between no two cells, each figure being doubted.
fn doubted<'p>(entries: &[Entry<'_>], phases: &[&'p str]) -> Vec<&'p str> {
    let of_all = |number: usize| {
        let mut figures = entries.iter().filter_map(|entry| entry.figures[number]);
        figures.all(|figure| figure.doubted)
    };
    let numbered = phases.iter().enumerate();
    let doubted = numbered.filter(|(number, _)| of_all(*number));
    doubted.map(|(_, phase)| *phase).collect()
}

/// Logarithm of the product of all gains; `None` when a phase is slower by more than the margin, or was not measured
/// on both sides.
fn gain(winner: &Entry<'_>, loser: &Entry<'_>, phases: &[&str], judging: &Judging) -> Option<f64> {
    let (mut sum, mut compared) = (0.0, false);
    for (number, phase) in phases.iter().enumerate() {
        let (one, other) = (winner.figures[number], loser.figures[number]);
        if !decides(one, other) {
            continue;
        }
        let (one, other) = match (one, other) {
            (Some(one), Some(other)) => (one.value, other.value),
            (None, None) => continue,
            _ => return None,
        };
        let ratio = match winner.group.unit(phase)?.better() {
            Better::Higher => one / other,
            Better::Lower => other / one,
        };
        if !(ratio.is_finite() && ratio >= 1.0 - judging.margin) {
            return None;
        }
        sum += ratio.ln();
        compared = true;
    }
    compared.then_some(sum)
}

/// What the winner is better in, for certain; the most first.
fn better_in(
    winner: &Entry<'_>,
    loser: &Entry<'_>,
    phases: &[&str],
    money: &Money,
    judging: &Judging,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if winner.cost < loser.cost {
        let less = loser.cost - winner.cost;
        reasons.push(match money {
            Money::Currency(letters) => format!("{} {letters} less", amount(less)),
            Money::Disks => format!("{} less", format::plural(less as usize, "disk")),
        });
    }
    let more = capacity(winner, loser);
    if more > 1.0 + SAME_CAPACITY {
        reasons.push(format!("{}x the capacity", format::ratio(more)));
    }
    let survives = (winner.facts.survives, loser.facts.survives);
    let second = (winner.facts.second, loser.facts.second);
    if survives.0 > survives.1 {
        let more = format::plural(survives.0 - survives.1, "more failure");
        reasons.push(format!("survives {more}"));
    } else if let (Some(one), Some(other)) = second
        && one > other + 1e-9
    {
        let (one, other) = (100.0 * one, 100.0 * other);
        reasons.push(format!(
            "survives {one:.0} % of second failures, not {other:.0} %"
        ));
    }
    let mut faster = faster_in(winner, loser, phases, judging);
    faster.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = |(phase, gain): &(&str, f64)| format!("{phase} {}x", format::ratio(*gain));
    reasons.extend(faster.iter().map(words));
    reasons
}

/// Phases in which the winner is better by more than the margin, for certain where there is more than one run: 95 %
/// over all phases of the two together.
fn faster_in<'p>(
    winner: &Entry<'_>,
    loser: &Entry<'_>,
    phases: &[&'p str],
    judging: &Judging,
) -> Vec<(&'p str, f64)> {
    let against = |phase: &&str| compare_phase(loser.group, winner.group, phase, judging);
    let decide = |number: &usize| decides(winner.figures[*number], loser.figures[*number]);
    let deciding = (0..phases.len()).filter(decide);
    let phases: Vec<&'p str> = deciding.map(|number| phases[number]).collect();
    let mut outcomes: Vec<Outcome> = phases.iter().map(against).collect();
    adjust(outcomes.iter_mut(), judging);
    let better = |comparison: &Comparison| {
        let sure = is_better(comparison, judging);
        comparison.gain().filter(|_| sure).map(|gain| gain.value)
    };
    let phases = phases.iter().zip(&outcomes);
    phases
        .filter_map(|(phase, outcome)| match outcome {
            Outcome::Ratio(comparison) => Some((*phase, better(comparison)?)),
            _ => None,
        })
        .collect()
}

fn answer(entries: &[Entry<'_>], all: &[Option<Beaten>], doubted: &[&str]) -> String {
    let without = match doubted {
        [] => String::new(),
        phases => format!(
            " Decided without {}, whose figures are flagged as over too soon to be timed soundly, or as a cache's.",
            phases.join(", ")
        ),
    };
    let pairs = || entries.iter().zip(all);
    let beaten = all.iter().flatten().count();
    if beaten == 0 {
        return format!(
            "All {} are worth a look: beside any other that does the same in the same state, each costs less, holds or \
             survives more, or is faster in some phase.{without}",
            format::plural(entries.len(), "cell")
        );
    }
    let left: Vec<&str> = pairs()
        .filter(|(_, beaten)| beaten.is_none())
        .map(|(entry, _)| entry.group.label.as_str())
        .collect();
    let others = match beaten {
        1 => "The other one has a cell".to_owned(),
        n => format!("Each of the other {n} has a cell"),
    };
    let left = left.join("; ");
    format!(
        "Worth a look: {left}. {others} beside it that is as good in everything, and better in something.{without}"
    )
}

fn table(
    profile: &str,
    entries: &[Entry<'_>],
    all: &[Option<Beaten>],
    money: &Money,
    judging: &Judging,
) -> Table {
    let caption = format!(
        "{profile}: cells that are beaten, by one that costs no more, holds and survives no less, is in no phase slower \
         by more than {:.1} %, and better in something",
        100.0 * judging.margin
    );
    let columns = vec![
        Column::text("cell"),
        Column::number(cost_heading(money)),
        Column::text("is beaten by"),
        Column::number(cost_heading(money)).under("that one"),
        Column::text("which is better").under("that one"),
    ];
    let mut table = Table::new(format!("{profile}-worth"), caption, columns);
    // What all cost the same is no news.
    let differs = entries.iter().any(|entry| entry.cost < entries[0].cost)
        || entries.iter().any(|entry| entry.cost > entries[0].cost);
    let cost = |entry: &Entry<'_>| match differs {
        true => cost(entry.cost, money),
        false => Cell::absent(),
    };
    for (entry, beaten) in entries.iter().zip(all) {
        let Some(beaten) = beaten else {
            continue;
        };
        let winner = &entries[beaten.by];
        table.rows.push(vec![
            Cell::text(entry.group.label.clone()),
            cost(entry),
            Cell::text(winner.group.label.clone()).tone(Tone::Strong),
            cost(winner),
            Cell::text(told(&beaten.reasons)),
        ]);
    }
    table.drop_empty_columns();
    table
}

fn told(reasons: &[String]) -> String {
    let more = reasons.len().saturating_sub(REASONS);
    let shown = reasons[..reasons.len() - more].join("; ");
    match more {
        0 => shown,
        _ => format!("{shown}; and {more} more"),
    }
}

//! Which cells are worth a look: those that no other one beats in everything, and what each gives for its price.
mod duel;
mod money;

use duel::{beaten, doubted};
pub(crate) use money::{amount, tebibytes};

use crate::report::analysis::{Judging, summarise};
use crate::report::document::{Block, Cell, Column, Table, Tone};
use crate::report::experiment::ArrayFacts;
use crate::report::format;
use crate::report::group::{Group, phases, provenance_kind};
use crate::report::load::work;
use money::{Money, cost, cost_heading, for_money, money};
use raidlab_core::flag::FlagKind;
use std::collections::BTreeMap;

/// What a cell is better in that is told of it.
const REASONS: usize = 3;

/// A cell with what decides about it.
struct Entry<'g> {
    group: &'g Group<'g>,
    facts: &'g ArrayFacts,
    /// What it does.
    work: BTreeMap<String, String>,
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

/// Doubts that a figure tells of the arrays at all: over before it was timed soundly, a cache's, or of an array of which
/// nobody knows whether it keeps what is written. Other flags tell of something that slows a cell down as it would the
/// next time.
const NOT_OF_THE_ARRAY: [FlagKind; 4] = [
    FlagKind::Unverified,
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
    let Judged {
        phases,
        money,
        entries,
        beaten: all,
    } = judge(groups, arrays, judging);
    let mut blocks = Vec::new();
    if !all.is_empty() {
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

/// What is told of a cell that has rivals.
pub(crate) struct Told {
    /// Its label.
    pub(crate) cell: String,
    /// Who beats it.
    pub(crate) by: Option<String>,
    /// What that one is better in, the most first.
    pub(crate) reasons: Vec<String>,
}

/// Who beats whom; nothing where there is nothing to choose from.
pub(crate) fn who_beats(
    groups: &[Group<'_>],
    arrays: &[ArrayFacts],
    judging: &Judging,
) -> Vec<Told> {
    let judged = judge(groups, arrays, judging);
    let label = |place: usize| judged.entries[place].group.label.clone();
    let beaten = judged.beaten.iter().enumerate();
    let told = beaten.map(|(place, beaten)| Told {
        cell: label(place),
        by: beaten.as_ref().map(|beaten| label(beaten.by)),
        reasons: beaten
            .as_ref()
            .map_or_else(Vec::new, |beaten| beaten.reasons.clone()),
    });
    told.collect()
}

/// The cells of a profile with who beats them.
struct Judged<'g> {
    phases: Vec<&'g str>,
    money: Money,
    entries: Vec<Entry<'g>>,
    /// Of each entry; empty where no two are rivals.
    beaten: Vec<Option<Beaten>>,
}

fn judge<'g>(groups: &'g [Group<'g>], arrays: &'g [ArrayFacts], judging: &Judging) -> Judged<'g> {
    let phases = phases(groups);
    let money = money(arrays);
    let entries: Vec<Entry<'_>> = groups
        .iter()
        .filter_map(|group| entry(group, arrays, &phases, &money, judging))
        .collect();
    let has_rival = |entry: &Entry<'_>| entries.iter().any(|other| are_rivals(entry, other));
    let places = match entries.iter().any(has_rival) {
        true => 0..entries.len(),
        false => 0..0,
    };
    let beaten = places
        .map(|place| beaten(place, &entries, &phases, &money, judging))
        .collect();
    Judged {
        phases,
        money,
        entries,
        beaten,
    }
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
        work: work(group, arrays),
        cost,
        figures,
    })
}

/// Whether somebody chooses between the two: both do the same in the same state, and were found out in the same way.
fn are_rivals(a: &Entry<'_>, b: &Entry<'_>) -> bool {
    let condition = |entry: &Entry<'_>, name: &str| entry.group.cell.factors.get(name).cloned();
    !std::ptr::eq(a.group, b.group)
        && a.work == b.work
        && provenance_kind(a.group.provenance) == provenance_kind(b.group.provenance)
        && a.group.array_state() == b.group.array_state()
        && condition(a, "allocated") == condition(b, "allocated")
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

//! The closing table: throughput as ratios to the baseline, what it costs, what it holds, who is
//! champion of each column, and two picks.
mod champions;
mod picks;

use crate::report::analysis::{Judging, Outcome, compare_phase, summarise};
use crate::report::capacity;
use crate::report::document::{Block, Cell, Column, Table, Tone, Value};
use crate::report::experiment::{ArrayFacts, second_cell};
use crate::report::format;
use crate::report::group::Group;
use crate::report::load::{Load, loads};
use crate::report::select::Selector;
use champions::{champions, has_interval};
use raidlab_core::price::Price;

/// What the table is made of.
pub(crate) struct Closing<'c> {
    pub(crate) profile: &'c str,
    pub(crate) baseline: &'c Selector,
    /// The file size of the columns, for profiles that measure several (`2GB`).
    pub(crate) size: &'c str,
    /// What is known of the arrays; of those that are not among them the level tells.
    pub(crate) arrays: &'c [ArrayFacts],
}

/// Ratio columns of a profile: heading and phase.
fn ratio_columns(profile: &str, size: &str) -> Vec<(&'static str, String)> {
    let sized = |name: &str| format!("{name}-{}", size.to_ascii_lowercase());
    match profile {
        "hdbench" => vec![
            ("read", sized("read")),
            ("write", sized("write")),
            ("copy", sized("copy")),
        ],
        "bonnie" => vec![
            ("read", "block-read".to_owned()),
            ("write", "block-write".to_owned()),
            ("rewrite", "rewrite".to_owned()),
        ],
        _ => vec![("read", "read".to_owned()), ("write", "write".to_owned())],
    }
}

/// One layout of the table.
struct Line<'g> {
    label: &'g str,
    group: &'g Group<'g>,
    disks: u32,
    /// What it costs in the experiment's currency.
    price: Option<Price>,
    /// Usable, in disks: of the smallest member of its array.
    in_disks: Option<f64>,
    /// Usable bytes, where they are known.
    bytes: Option<u64>,
    /// Usable, in what the table counts it in.
    capacity: Option<f64>,
    /// What is told of how much of its disks a level leaves, where it is not plain.
    rule: Option<String>,
    /// Failures, after those there are already, that it survives whichever they are.
    survives: usize,
    /// Share of second failures that it survives; told of clean arrays.
    second: Option<f64>,
    /// One a ratio column.
    ratios: Vec<Outcome>,
}

impl Line<'_> {
    fn ratio(&self, column: usize) -> Option<f64> {
        match &self.ratios[column] {
            Outcome::Ratio(comparison) => Some(comparison.ratio.value),
            Outcome::IsBaseline => Some(1.0),
            _ => None,
        }
    }

    /// Geometric mean of the ratios; `None` unless all are known.
    fn throughput(&self) -> Option<f64> {
        let logs: Option<Vec<f64>> = (0..self.ratios.len())
            .map(|column| self.ratio(column).map(f64::ln))
            .collect();
        let logs = logs?;
        Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Throughput and capacity that a disk brings: throughput × capacity / disks.
    fn value(&self) -> Option<f64> {
        Some(self.throughput()? * self.capacity? / f64::from(self.disks))
    }

    /// The same for money.
    fn value_for_money(&self) -> Option<f64> {
        let amount = self.price?.amount();
        let value = self.throughput()? * self.capacity? / amount;
        value.is_finite().then_some(value)
    }
}

/// Usable capacities that are this share of a disk apart are of disks of one size: what partition tables, metadata and
/// rounding take is less.
const SAME_DISKS: f64 = 0.05;

/// What usable capacity is counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Disks,
    /// Where arrays have disks of different sizes: four of 24 TB hold more than six of 160 GB.
    Tebibytes,
}

impl Counted {
    fn of(lines: &[Line<'_>]) -> Self {
        let of_disk = |line: &Line<'_>| Some(line.bytes? as f64 / line.in_disks?);
        let sizes: Option<Vec<f64>> = lines.iter().map(of_disk).collect();
        let Some(sizes) = sizes else {
            return Self::Disks;
        };
        let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let most = sizes.iter().copied().fold(0.0, f64::max);
        match most > least * (1.0 + SAME_DISKS) {
            true => Self::Tebibytes,
            false => Self::Disks,
        }
    }

    fn capacity(self, line: &Line<'_>) -> Option<f64> {
        match self {
            Self::Disks => line.in_disks,
            Self::Tebibytes => line.bytes.map(super::worth::tebibytes),
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Disks => "capacity (disks)",
            Self::Tebibytes => "capacity (TiB)",
        }
    }

    /// In the words of the picks.
    fn name(self) -> &'static str {
        match self {
            Self::Disks => "capacity",
            Self::Tebibytes => "TiB",
        }
    }
}

/// The closing table and the picks; empty when the cells do not tell level and disks or have no
/// figures in common.
pub(crate) fn closing(what: &Closing<'_>, groups: &[Group<'_>], judging: &Judging) -> Vec<Block> {
    let Some(base) = groups.iter().find(|g| what.baseline.names(*g)) else {
        return Vec::new();
    };
    let loads = loads(groups, what.arrays);
    let parts = loads.iter().filter_map(|load| {
        let base = counterpart(base, &load.groups)?;
        Some(of_load(what, load, base, judging))
    });
    let blocks: Vec<Block> = parts.flatten().collect();
    match blocks.is_empty() {
        true => blocks,
        false => std::iter::once(Block::heading("Closing table"))
            .chain(blocks)
            .collect(),
    }
}

/// The baseline among cells of a load: itself, or the one that is most like it, which does something else.
fn counterpart<'l, 'a>(base: &Group<'a>, groups: &'l [Group<'a>]) -> Option<&'l Group<'a>> {
    let alike = |group: &Group<'_>| {
        let factors = base.cell.factors.iter();
        let same = factors.filter(|(name, level)| group.cell.factors.get(*name) == Some(level));
        (group.label == base.label, same.count())
    };
    // Of equal ones the last is the most.
    groups.iter().rev().max_by_key(|group| alike(group))
}

/// The table and the picks of cells that do the same.
fn of_load(what: &Closing<'_>, load: &Load<'_>, base: &Group<'_>, judging: &Judging) -> Vec<Block> {
    let columns = ratio_columns(what.profile, what.size);
    let measured = |phase: &String| summarise(base, phase, judging).is_some();
    if !columns.iter().all(|(_, phase)| measured(phase)) {
        return Vec::new();
    }
    let mut lines: Vec<Line<'_>> = load
        .groups
        .iter()
        .filter_map(|group| line(what, group, base, &columns, judging))
        .collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    let counted = Counted::of(&lines);
    for line in &mut lines {
        line.capacity = counted.capacity(line);
    }
    let picks = picks::Picks {
        lines: &lines,
        columns: &columns,
        load: load.name.as_deref(),
        judging,
    };
    let items = picks.told(&base.label, counted);
    let table = table(what, base, &columns, &lines, counted, judging);
    vec![Block::Table(table), Block::List { items }]
}

fn line<'g>(
    what: &Closing<'_>,
    group: &'g Group<'g>,
    base: &Group<'_>,
    columns: &[(&str, String)],
    judging: &Judging,
) -> Option<Line<'g>> {
    let level = group.cell.factors.get("level")?;
    let disks = group.cell.factors.get("disks")?.parse().ok()?;
    let told = group.cell.factors.get("capacity-disks");
    let mut arrays = what.arrays.iter();
    let facts = arrays.find(|facts| facts.cells.contains(&group.cell.label));
    let survives = facts.map_or_else(
        || capacity::survives(level, disks) as usize,
        |facts| facts.survives,
    );
    let ratios = columns
        .iter()
        .map(|(_, phase)| {
            if std::ptr::eq(group, base) {
                Outcome::IsBaseline
            } else {
                compare_phase(base, group, phase, judging)
            }
        })
        .collect();
    let usual = capacity::usable_disks(level, disks).map(f64::from);
    let in_disks = told.and_then(|n| n.parse().ok()).or(usual);
    // Of three copies the rule is another.
    let rule = capacity::rule(level).filter(|_| in_disks == usual);
    let what = match group.cell.factors.get("engine").map(String::as_str) {
        Some("zfs") => "a pool of mirrors",
        _ => level,
    };
    Some(Line {
        label: &group.label,
        group,
        disks,
        price: facts.and_then(|facts| facts.price),
        in_disks,
        bytes: facts.and_then(|facts| facts.capacity),
        capacity: None,
        rule: rule.map(|rule| format!("{what}: {rule}")),
        survives: survives.saturating_sub(failed(group)),
        second: facts
            .and_then(|facts| facts.second)
            .filter(|_| group.array_state() == "clean"),
        ratios,
    })
}

/// Members that a cell's array lacks while it is measured: `1` of the state `degraded 1`, and of a raid5 in its initial sync.
fn failed(group: &Group<'_>) -> usize {
    if group.array_state() == "initial-sync" {
        // mdadm makes raid4 and raid5 with the last member as a spare, which is being filled.
        let level = group.cell.factors.get("level").map_or("", String::as_str);
        return usize::from(level.contains(['4', '5']));
    }
    match group.array_state().split_once(' ') {
        Some(("degraded" | "rebuilding", number)) => number.parse().unwrap_or(1),
        _ => 0,
    }
}

fn table(
    what: &Closing<'_>,
    base: &Group<'_>,
    columns: &[(&str, String)],
    lines: &[Line<'_>],
    counted: Counted,
    judging: &Judging,
) -> Table {
    let mut headings = vec![Column::text("")];
    headings.extend(
        columns
            .iter()
            .map(|(name, _)| Column::number(format!("{name} ratio"))),
    );
    headings.push(Column::number("cost (disks)"));
    let currency = lines.iter().find_map(|line| line.price);
    if let Some(price) = &currency {
        headings.push(Column::number(format!("cost ({})", price.currency())));
    }
    headings.push(Column::number(counted.heading()));
    let second = lines.iter().any(|line| line.second.is_some());
    if second {
        headings.push(Column::text("second failures survived"));
    }
    headings.push(Column::text("champion of"));
    let at = if what.size.is_empty() {
        String::new()
    } else {
        format!(" at {}", what.size)
    };
    let mut caption = format!(
        "Every layout as a ratio to {}{at}, with its cost and usable capacity",
        base.label
    );
    if (0..columns.len()).any(|column| has_interval(lines, column)) {
        caption += "; champions of a ratio are all that are not told apart from its best";
    }
    let mut table = Table::new(format!("{}-closing", what.profile), caption, headings);
    let best = champions(columns, lines, judging);
    for (index, line) in lines.iter().enumerate() {
        let won = |column: usize| best[column].1.contains(&index);
        let tone = |column: usize| {
            if won(column) {
                Tone::Strong
            } else {
                Tone::Plain
            }
        };
        let mut row = vec![Cell::text(line.label)];
        for column in 0..columns.len() {
            row.push(ratio_cell(line, column, tone(column)));
        }
        let cost = columns.len();
        let in_disks = if currency.is_some() {
            Tone::Plain
        } else {
            tone(cost)
        };
        row.push(Cell::number(f64::from(line.disks), 0).tone(in_disks));
        if currency.is_some() {
            let amount = |price: Price| {
                let text = super::worth::amount(price.amount());
                Cell::text(text).tone(tone(cost))
            };
            row.push(line.price.map_or_else(Cell::absent, amount));
        }
        row.push(capacity_cell(&mut table, line, counted).tone(tone(cost + 1)));
        if second {
            row.push(second_cell(line.second));
        }
        let names: Vec<&str> = best
            .iter()
            .filter(|(_, winners)| winners.contains(&index))
            .map(|(name, _)| name.as_str())
            .collect();
        row.push(if names.is_empty() {
            Cell::absent()
        } else {
            Cell::text(names.join(", ")).tone(Tone::Strong)
        });
        table.rows.push(row);
    }
    table
}

fn ratio_cell(line: &Line<'_>, column: usize, tone: Tone) -> Cell {
    match &line.ratios[column] {
        Outcome::Ratio(comparison) => Cell::from(Value::Ratio {
            value: comparison.ratio.value,
            interval: comparison.ratio.interval.map(|i| (i.lo, i.hi)),
            digits: None,
        })
        .tone(tone),
        Outcome::IsBaseline => Cell::from(Value::Ratio {
            value: 1.0,
            interval: None,
            digits: None,
        })
        .tone(tone),
        Outcome::Withheld => Value::Withheld.into(),
        Outcome::TooFast => Value::TooFast.into(),
        Outcome::Invalid => Value::Invalid.into(),
        Outcome::DifferentStreams => Cell::text("different streams").tone(Tone::Muted),
        Outcome::Absent | Outcome::Impossible(_) => Cell::absent(),
    }
}

fn capacity_cell(table: &mut Table, line: &Line<'_>, counted: Counted) -> Cell {
    let Some(capacity) = line.capacity else {
        return Cell::absent();
    };
    if counted == Counted::Tebibytes {
        return Cell::number(capacity, format::decimals(capacity));
    }
    // As many digits as it was told with: two at the most.
    let decimals = (0..2).find(|d| {
        let scaled = capacity * 10_f64.powi(*d);
        (scaled - scaled.round()).abs() < 1e-6
    });
    let cell = Cell::number(capacity, decimals.unwrap_or(2) as usize);
    match &line.rule {
        Some(rule) => cell.mark(table.footnote(rule)),
        None => cell,
    }
}

//! What things cost, and what as much money gives.
use super::Entry;
use crate::record::Better;
use crate::report::document::{Cell, Column, Table, Tone};
use crate::report::experiment::ArrayFacts;
use crate::report::format;
use crate::report::group::Group;

/// What costs are counted in.
pub(super) enum Money {
    /// The letters of a currency.
    Currency(String),
    Disks,
}

/// The currency, where all arrays have a price.
pub(super) fn money(arrays: &[ArrayFacts]) -> Money {
    let prices: Option<Vec<_>> = arrays.iter().map(|facts| facts.price).collect();
    match prices.as_deref() {
        Some([first, ..]) => Money::Currency(first.currency().to_owned()),
        _ => Money::Disks,
    }
}

pub(super) fn cost_heading(money: &Money) -> String {
    match money {
        Money::Currency(letters) => format!("cost ({letters})"),
        Money::Disks => "cost (disks)".to_owned(),
    }
}

pub(super) fn cost(cost: f64, money: &Money) -> Cell {
    match money {
        Money::Currency(_) => Cell::text(amount(cost)),
        Money::Disks => Cell::number(cost, 0),
    }
}

/// An amount of money: hundredths only where there are any.
pub(crate) fn amount(amount: f64) -> String {
    let whole = (amount - amount.round()).abs() < 0.005;
    format::number(amount, if whole { 0 } else { 2 })
}

/// Rates for as much money as suits the cheapest; `None` without prices, and where all arrays have the same one, for
/// that would be the figures once more.
pub(super) fn for_money(
    profile: &str,
    groups: &[Group<'_>],
    entries: &[Entry<'_>],
    phases: &[&str],
    money: &Money,
) -> Option<Table> {
    let Money::Currency(letters) = money else {
        return None;
    };
    let paid = entries.iter().map(|entry| entry.cost).filter(|c| *c > 0.0);
    let least = paid.clone().reduce(f64::min)?;
    if paid.reduce(f64::max)? <= least {
        return None;
    }
    let unit = 10_f64.powf(least.log10().floor());
    let caption = format!("{profile}: what {} {letters} give", amount(unit));
    // Of each cell so much for the money, by columns; nothing of what costs nothing.
    let for_unit = |entry: &Entry<'_>, figure: Option<f64>| {
        let paid = (entry.cost > 0.0).then_some(entry.cost)?;
        Some(figure? / paid * unit)
    };
    let held = |entry: &Entry<'_>| for_unit(entry, entry.facts.capacity.map(tebibytes));
    let mut given = vec![(
        "TiB".to_owned(),
        entries.iter().map(held).collect::<Vec<_>>(),
    )];
    for (number, phase) in phases.iter().enumerate() {
        let of_phase = groups.iter().find_map(|group| group.unit(phase));
        let Some(of_phase) = of_phase.filter(|unit| unit.better() == Better::Higher) else {
            continue;
        };
        let all = entries.iter();
        let mut values: Vec<Option<f64>> = all
            .map(|entry| for_unit(entry, entry.figures[number].map(|f| f.value)))
            .collect();
        let scale = format::suited(of_phase, most(&values));
        values
            .iter_mut()
            .flatten()
            .for_each(|value| *value /= scale.scale);
        given.push((format!("{phase} ({})", scale.name), values));
    }
    // Each load has its own best, unless it is the loads that are compared.
    let peers = |a: &Entry<'_>, b: &Entry<'_>| !std::ptr::eq(a, b) && a.work == b.work;
    let any = entries
        .iter()
        .any(|entry| entries.iter().any(|other| peers(entry, other)));
    let most_of = |values: &[Option<f64>], entry: &Entry<'_>| {
        let all = entries.iter().zip(values);
        let alike = all.filter(|(other, _)| !any || other.work == entry.work);
        most(&alike.map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let mut columns = vec![Column::text("cell"), Column::number(cost_heading(money))];
    columns.extend(given.iter().map(|(heading, _)| Column::number(heading)));
    let mut table = Table::new(format!("{profile}-for-money"), caption, columns);
    for (place, entry) in entries.iter().enumerate() {
        let mut row = vec![
            Cell::text(entry.group.label.clone()),
            cost(entry.cost, money),
        ];
        row.extend(given.iter().map(|(_, values)| match values[place] {
            Some(value) if value >= most_of(values, entry) => shown(value).tone(Tone::Strong),
            Some(value) => shown(value),
            None => Cell::absent(),
        }));
        table.rows.push(row);
    }
    Some(table)
}

fn most(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

fn shown(value: f64) -> Cell {
    Cell::number(value, format::decimals(value))
}

/// Bytes in TiB.
pub(crate) fn tebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1_u64 << 40) as f64
}

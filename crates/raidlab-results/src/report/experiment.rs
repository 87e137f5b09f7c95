//! The report of an experiment: the tables and charts that its file asks for, in its order.
use super::analysis::Judging;
use super::blocks::rebuild::SyncFloor;
use super::blocks::{self, closing::Closing, limits, published, ratios::Ratios, rebuild, wanted};
use super::document::{Block, Cell, Column, Document, Table};
use super::group::{self, Group};
use super::select::{Baseline, Selector};
use super::{ReportError, ReportRequest, by_profile, check_baseline};
use crate::record::TrialRecord;
use crate::reference::Study;
use raidlab_core::price::Price;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the trials of a cell become one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// Their mean without so many at each end.
    Trimmed(u32),
}

/// A table that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedTable {
    /// The tool's own columns.
    Figures,
    /// Ratios to the baseline, with verdicts.
    Ratios,
    /// Figures with their intervals.
    Aggregate,
    /// Latency percentiles.
    Distribution,
    /// Ratios with cost and capacity in disks.
    Capacity,
    /// Which cells another one beats in everything, and what each gives for its price.
    Worth,
    /// Which failures are survived.
    Survival,
    /// What limits each cell.
    Limits,
    /// Beside published figures.
    Published,
    /// Time and rate of resync and rebuild.
    Rebuild,
    /// Machine and settings.
    Environment,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartForm {
    /// A bar a cell.
    Bars,
    /// A line a level.
    Lines,
    /// Cumulative curves of response times.
    Distribution,
}

/// A chart that is wanted. Factors go by the names that trials have them under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedChart {
    /// What is drawn.
    pub form: ChartForm,
    /// Its title; made from the rest when absent.
    pub title: Option<String>,
    /// The factor along the horizontal axis, of lines.
    pub x: Option<String>,
    /// The phase; all when absent.
    pub y: Option<String>,
    /// The factor whose levels are the lines or colours.
    pub lines: Option<String>,
    /// The factor that has a chart for each level.
    pub per: Option<String>,
}

impl WantedChart {
    /// Bars of all phases and cells, which is what is drawn when nothing is said.
    fn is_of_all(&self) -> bool {
        let named = [&self.y, &self.lines, &self.per];
        self.form == ChartForm::Bars && named.iter().all(|name| name.is_none())
    }
}

/// Published figures to show beside.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The study.
    pub study: Study,
    /// Label of the cell by name of the row.
    pub rows: BTreeMap<String, String>,
}

/// What an array costs and holds, and what it survives.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayFacts {
    /// Labels of the cells that have it.
    pub cells: Vec<String>,
    /// What it is: `raid5, 4 disks`.
    pub name: String,
    /// Disks.
    pub disks: usize,
    /// What its disks cost, with their controllers; `None` where a price is not known.
    pub price: Option<Price>,
    /// Usable, in disks.
    pub capacity_disks: String,
    /// Usable bytes, where it is known.
    pub capacity: Option<u64>,
    /// Failures that it survives whichever they are.
    pub survives: usize,
    /// Share of second failures that it survives; `None` when it survives no first one or that is not
    /// known.
    pub second: Option<f64>,
    /// What it survives, in lines.
    pub tolerance: Vec<String>,
}

/// What the report of an experiment is made of.
#[derive(Clone, Debug)]
pub struct ExperimentRequest {
    /// Title, trials, environments, baseline, margin.
    pub base: ReportRequest,
    /// What is to be found out.
    pub question: Option<String>,
    /// How trials are joined.
    pub joined: Joined,
    /// Tables in order.
    pub tables: Vec<WantedTable>,
    /// Charts in order.
    pub charts: Vec<WantedChart>,
    /// Published figures.
    pub beside: Option<Beside>,
    /// The arrays.
    pub arrays: Vec<ArrayFacts>,
    /// What md lets a resync or rebuild do beside others, by the labels of the cells whose array is md's.
    pub sync_floors: BTreeMap<String, SyncFloor>,
    /// Per cent of the time that controllers give a resync or rebuild beside the host, of cells whose array is their own.
    pub rebuild_rates: BTreeMap<String, u32>,
    /// The states of the arrays (`rebuilding 1`) by the labels of their cells: one that all cells have is no factor.
    pub states: BTreeMap<String, String>,
    /// What identifies the results: seed, digest.
    pub identity: String,
}

/// The report of an experiment.
///
/// # Errors
/// As [`report`](super::report).
pub fn experiment_report(request: &ExperimentRequest) -> Result<Document, ReportError> {
    let base = &request.base;
    if base.trials.is_empty() {
        return Err(ReportError::NoTrials);
    }
    let judging = judging_of(request)?;
    let mut groups = group::group(&base.trials);
    for group in &mut groups {
        group.state = request.states.get(&group.cell.label).map(String::as_str);
    }
    check_baseline(base.baseline.as_ref(), &groups)?;
    let mut document = Document::new(base.title.clone());
    let out = &mut document.blocks;
    if let Some(question) = &request.question {
        out.push(Block::paragraph(question.clone()));
    }
    out.extend(blocks::context::provenance(&groups));
    out.push(Block::paragraph(request.identity.clone()));
    out.extend(blocks::context::verified(&groups));
    if base.trials.iter().all(|trial| trial.round == 0) && base.is_simulated() {
        out.push(Block::paragraph(
            "One trial of each cell: a figure of the model without an interval. --repeats gives several, \
             with other operations and other positions of the disks.",
        ));
    }
    for groups in by_profile(&groups) {
        let profile = groups[0].profile;
        out.push(Block::heading(format!("Results: {profile}")));
        let answer = blocks::fastest::fastest(profile, &groups, &request.arrays, &judging);
        out.extend(answer.into_iter().map(Block::Table));
        out.extend(blocks::context::settings(&groups));
        for table in &request.tables {
            of_profile(out, *table, request, profile, &groups, &judging);
        }
        out.extend(blocks::courses::courses(profile, &groups));
        if base.charts {
            for (number, chart) in (1..).zip(&request.charts) {
                let drawn = wanted::charts(profile, number, chart, &groups, &judging);
                if drawn.is_empty() && chart.is_of_all() {
                    out.extend(blocks::many::instead_of_bars(profile, &groups, &judging));
                }
                out.extend(drawn.into_iter().map(Block::Chart));
            }
        }
    }
    for table in &request.tables {
        of_all(out, *table, request, &groups, &judging);
    }
    if !request.tables.contains(&WantedTable::Survival) {
        out.push(Block::heading("What the arrays cost, hold and survive"));
        out.push(Block::Table(arrays(&request.arrays)));
    }
    out.extend(blocks::context::kept_out(&groups));
    out.extend(blocks::context::repeat(&groups));
    document.settle_ids();
    Ok(document)
}

/// What an experiment's figures are judged by.
pub(crate) fn judging_of(request: &ExperimentRequest) -> Result<Judging, ReportError> {
    Ok(Judging {
        joined: Some(request.joined),
        // The file says what is compared with what; it may vary what is done.
        allow_mixed_streams: true,
        ..request.base.judging()?
    })
}

/// Tables that each profile has of its own.
fn of_profile(
    out: &mut Vec<Block>,
    table: WantedTable,
    request: &ExperimentRequest,
    profile: &str,
    groups: &[Group<'_>],
    judging: &Judging,
) {
    let figures = !group::phases(groups).is_empty();
    match table {
        WantedTable::Figures if !figures => {
            out.push(Block::warning("No trial got as far as its first figure."));
        }
        WantedTable::Figures => {
            let table = blocks::tool_table::tool_table(profile, groups, judging);
            out.push(Block::Table(table));
        }
        WantedTable::Aggregate => {
            let table = blocks::aggregate::aggregates(profile, groups, judging);
            out.extend(table.map(Block::Table));
        }
        WantedTable::Distribution => {
            let table = blocks::distribution::latency_table(profile, groups);
            out.extend(table.map(Block::Table));
        }
        WantedTable::Ratios => {
            if let Some(baseline) = &request.base.baseline {
                let what = Ratios {
                    id: format!("{profile}-ratios"),
                    title: profile,
                    baseline,
                };
                out.extend(blocks::ratios::ratios(&what, groups, judging).map(Block::Table));
                out.extend(blocks::tails::tails(profile, baseline, groups, judging));
            }
        }
        WantedTable::Limits => {
            let table = limits::limits(profile, groups, judging);
            out.extend(table.map(Block::Table));
        }
        WantedTable::Capacity => {
            let baseline = match &request.base.baseline {
                Some(Baseline::Cell(selector)) => Some(selector.clone()),
                _ => groups.first().map(|g| Selector::Label(g.label.clone())),
            };
            if let Some(baseline) = baseline {
                let size = super::largest_size(profile);
                let what = Closing {
                    profile,
                    baseline: &baseline,
                    size,
                    arrays: &request.arrays,
                };
                out.extend(blocks::closing::closing(&what, groups, judging));
            }
        }
        WantedTable::Worth => {
            let arrays = &request.arrays;
            out.extend(blocks::worth::worth(profile, groups, arrays, judging));
        }
        WantedTable::Survival
        | WantedTable::Published
        | WantedTable::Rebuild
        | WantedTable::Environment => {}
    }
}

/// Tables over all profiles.
fn of_all(
    out: &mut Vec<Block>,
    table: WantedTable,
    request: &ExperimentRequest,
    groups: &[Group<'_>],
    judging: &Judging,
) {
    match table {
        WantedTable::Survival => {
            out.push(Block::heading("What the arrays cost, hold and survive"));
            out.push(Block::Table(arrays(&request.arrays)));
            for facts in &request.arrays {
                out.push(Block::paragraph(format!("{}:", facts.name)));
                let items = facts.tolerance.clone();
                out.push(Block::List { items });
            }
        }
        WantedTable::Published => {
            if let Some(beside) = &request.beside {
                let of = |facts: &ArrayFacts| {
                    let cells = facts.cells.clone();
                    let share = facts.second;
                    cells
                        .into_iter()
                        .filter_map(move |cell| Some((cell, share?)))
                };
                let second = request.arrays.iter().flat_map(of).collect();
                let trials = &request.base.trials;
                let prediction = beside.study.predicted(&beside.rows, &second, trials);
                let source = if request.base.is_simulated() {
                    published::Source::Model
                } else {
                    published::Source::Measured
                };
                out.extend(published::beside(&beside.study, &prediction, source));
            }
        }
        WantedTable::Rebuild => {
            if let Some(table) = rebuild::rebuilds(groups, judging) {
                out.push(Block::heading("Resync and rebuild"));
                out.push(Block::Table(table));
                let (floors, rates) = (&request.sync_floors, &request.rebuild_rates);
                let why = rebuild::why_so_long(groups, floors, rates, judging);
                out.extend(why.into_iter().map(Block::paragraph));
            }
        }
        WantedTable::Environment => {
            let environments = &request.base.environments;
            out.extend(blocks::environment::environments(groups, environments));
        }
        _ => {}
    }
}

impl ReportRequest {
    fn is_simulated(&self) -> bool {
        let simulated = |t: &TrialRecord| t.provenance == crate::record::Provenance::Simulated;
        self.trials.iter().all(simulated)
    }
}

/// The share of second failures that is survived.
pub(super) fn second_cell(share: Option<f64>) -> Cell {
    share.map_or_else(Cell::absent, |share| {
        Cell::text(match 100.0 * share {
            0.0 => "none".to_owned(),
            100.0 => "all".to_owned(),
            percent => format!("{percent:.0} %"),
        })
    })
}

fn arrays(arrays: &[ArrayFacts]) -> Table {
    let currency = arrays.iter().find_map(|facts| facts.price);
    let mut columns = vec![Column::text("array"), Column::number("cost (disks)")];
    if let Some(price) = &currency {
        let currency = price.currency();
        columns.push(Column::number(format!("cost ({currency})")));
        columns.push(Column::number(format!("{currency} a TiB")));
    }
    columns.extend([
        Column::number("capacity (disks)"),
        Column::text("capacity"),
        Column::number("survives any"),
        Column::text("of second failures"),
    ]);
    let caption = "Disks paid for, usable capacity, failed disks that are survived whichever they are, and the share of \
                   second failures that is";
    let mut table = Table::new("arrays", caption, columns);
    for facts in arrays {
        let capacity = facts
            .capacity
            .map(|bytes| raidlab_core::units::Bytes(bytes).to_string());
        let mut row = vec![
            Cell::text(facts.name.clone()),
            Cell::number(facts.disks as f64, 0),
        ];
        if currency.is_some() {
            row.extend(cost(facts));
        }
        row.extend([
            in_disks(facts),
            capacity.map_or_else(Cell::absent, Cell::text),
            Cell::number(facts.survives as f64, 0),
            second_cell(facts.second),
        ]);
        table.rows.push(row);
    }
    table
}

/// Usable, in disks. It is counted in the smallest member: of unlike ones that are used to their ends that may be more than there are,
/// and says nothing.
fn in_disks(facts: &ArrayFacts) -> Cell {
    let counted = facts.capacity_disks.parse::<f64>();
    match counted.is_ok_and(|counted| counted > facts.disks as f64) {
        true => Cell::absent(),
        false => Cell::text(facts.capacity_disks.clone()),
    }
}

/// The price of an array, and for a TiB that can be used.
fn cost(facts: &ArrayFacts) -> [Cell; 2] {
    let Some(price) = facts.price else {
        return [Cell::absent(), Cell::absent()];
    };
    let amount = price.amount();
    let each = facts
        .capacity
        .filter(|bytes| *bytes > 0)
        .map(|bytes| amount / blocks::worth::tebibytes(bytes));
    [
        Cell::text(blocks::worth::amount(amount)),
        each.map_or_else(Cell::absent, |each| Cell::number(each, 2)),
    ]
}

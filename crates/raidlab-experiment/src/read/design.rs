//! `[design]`, `[report]` and `[expected]`.
use super::factors::{Selection, selection};
use super::tree::{At, Entry, Node};
use crate::Known;
use crate::experiment::{Aggregate, ChartKind, Order, TableKind};
use toml::de::DeValue;

/// `[design]` as declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftDesign {
    pub(crate) repeats: Option<At<u32>>,
    pub(crate) order: Option<Order>,
    pub(crate) aggregate: Option<Aggregate>,
    pub(crate) trim: Option<At<u32>>,
    pub(crate) margin: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) verify: Option<bool>,
    pub(crate) baseline: Option<CellChoice>,
}

/// A cell by its label, or cells by levels.
#[derive(Clone, Debug)]
pub(crate) enum CellChoice {
    Label(At<String>),
    Levels(Selection),
}

/// `[report]` as declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftReport {
    pub(crate) tables: Option<Vec<At<TableKind>>>,
    pub(crate) charts: Option<Vec<DraftChart>>,
}

/// A chart as declared.
#[derive(Clone, Debug)]
pub(crate) struct DraftChart {
    pub(crate) at: std::ops::Range<usize>,
    pub(crate) kind: ChartKind,
    pub(crate) title: Option<String>,
    pub(crate) x: Option<At<String>>,
    pub(crate) y: Option<At<String>>,
    pub(crate) lines: Option<At<String>>,
    pub(crate) per: Option<At<String>>,
}

/// `[expected]` as declared.
#[derive(Clone, Debug)]
pub(crate) struct DraftExpected {
    pub(crate) study: At<String>,
    /// Row and cell; `None`: rows are named as the cells are.
    pub(crate) rows: Option<Vec<(At<String>, CellChoice)>>,
}

/// The most repeats of a cell.
const MOST_REPEATS: u32 = 10_000;

pub(crate) fn design(root: &Node<'_, '_>) -> DraftDesign {
    let Some(node) = root.node("design") else {
        return DraftDesign::default();
    };
    let problems = node.problems;
    let count = |key: &str, least, most| {
        let entry = node.entry(key)?;
        let n = problems.count32(key, entry, least..=most)?;
        Some(At::new(n, entry.span()))
    };
    let design = DraftDesign {
        repeats: count("repeats", 1, MOST_REPEATS),
        order: node.entry("order").and_then(|e| problems.word("order", e)),
        aggregate: node
            .entry("aggregate")
            .and_then(|e| problems.word("aggregate", e)),
        trim: count("trim", 1, MOST_REPEATS),
        margin: node
            .entry("margin")
            .and_then(|e| problems.share("margin", e)),
        seed: node
            .entry("seed")
            .and_then(|e| problems.count("seed", e, 0..=i64::MAX as u64)),
        verify: node
            .entry("verify")
            .and_then(|e| problems.flag("verify", e)),
        baseline: node
            .entry("baseline")
            .and_then(|e| cell_choice(&node, "baseline", e)),
    };
    node.close();
    design
}

/// `"its label"`, or `{ layout = "raid5", chunk = "64KiB" }`.
fn cell_choice(node: &Node<'_, '_>, key: &str, entry: Entry<'_, '_>) -> Option<CellChoice> {
    let Some(table) = entry.get_ref().as_table() else {
        return node.problems.text(key, entry).map(CellChoice::Label);
    };
    let child = node.child(key, table, entry.span());
    let chosen = selection(&child);
    if chosen.levels.is_empty() {
        let message = format!("'{key}' names no levels");
        let help = "name a cell by its label, or by levels: { layout = \"raid5\" }";
        node.problems.wrong(&entry.span(), message, help);
        return None;
    }
    Some(CellChoice::Levels(chosen))
}

pub(crate) fn report(root: &Node<'_, '_>) -> DraftReport {
    let Some(node) = root.node("report") else {
        return DraftReport::default();
    };
    let problems = node.problems;
    let tables = node.entry("tables").map(|entry| {
        let items = crate::diagnostic::Problems::items(entry);
        let read = items.into_iter();
        read.filter_map(|i| Some(At::new(problems.word("tables", i)?, i.span())))
            .collect()
    });
    let charts = node.entry("charts").map(|entry| {
        let items = crate::diagnostic::Problems::items(entry);
        items.into_iter().filter_map(|i| chart(&node, i)).collect()
    });
    node.close();
    DraftReport { tables, charts }
}

/// `"bars"`, or `{ kind = "lines", x = "chunk", y = "write", lines = "layout" }`.
fn chart(node: &Node<'_, '_>, entry: Entry<'_, '_>) -> Option<DraftChart> {
    let problems = node.problems;
    let mut chart = DraftChart {
        at: entry.span(),
        kind: ChartKind::Bars,
        title: None,
        x: None,
        y: None,
        lines: None,
        per: None,
    };
    let DeValue::Table(table) = entry.get_ref() else {
        chart.kind = problems.word("charts", entry)?;
        return Some(chart);
    };
    let child = node.child("report.charts", table, entry.span());
    child.missing("kind", "write kind = \"bars\" or \"lines\"");
    let text = |key: &str| child.entry(key).and_then(|e| problems.text(key, e));
    let kind = child.entry("kind").and_then(|e| problems.word("kind", e));
    chart.title = text("title").map(|t| t.value);
    (chart.x, chart.y) = (text("x"), text("y"));
    (chart.lines, chart.per) = (text("lines"), text("per"));
    child.close();
    chart.kind = kind?;
    Some(chart)
}

pub(crate) fn expected(root: &Node<'_, '_>, known: &Known<'_>) -> Option<DraftExpected> {
    let node = root.node("expected")?;
    let problems = node.problems;
    node.missing("study", "name the published study");
    let study = node.entry("study").and_then(|e| problems.text("study", e));
    let rows = node.node("rows").map(|rows| {
        let pairs = rows.pairs().into_iter();
        pairs
            .filter_map(|(row, entry)| Some((row.clone(), cell_choice(&rows, &row.value, entry)?)))
            .collect()
    });
    node.close();
    let study = study?;
    let ids = known.studies.iter().map(|s| s.id);
    problems
        .reference(&study, "study", ids)
        .then_some(DraftExpected { study, rows })
}

//! A document as one HTML file that needs nothing else: styles and charts are inside, nothing is
//! loaded, no script runs.
use super::chart::{GRID, INK, MUTED, PAPER, SERIES, svg};
use super::images::ImageError;
use super::{bound, commands, shown};
use crate::report::document::{Block, Cell, Chart, Column, Document, Table, Tone, Value};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::style::RGBColor;

const STYLE: &str = include_str!("report.css");

/// Series colours on a dark ground, in the order of the charts' own.
const SERIES_DARK: [&str; 8] = [
    "#6aa9ee", "#f2b04d", "#52c9b8", "#e9799a", "#a996ea", "#a9cdf2", "#c9a961", "#a3adba",
];

/// With more columns a table is set smaller, and its names stay in sight when it is scrolled.
const WIDE: usize = 12;
/// Most letters of a name that is kept on one line.
const SHORT: usize = 40;

/// The document as a self-contained HTML file, for light and dark screens and for print.
///
/// # Errors
/// [`ImageError`] when a chart cannot be drawn.
pub fn render_html(document: &Document) -> Result<String, ImageError> {
    let mut body = Vec::new();
    for block in &document.blocks {
        body.push(render_block(block)?);
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("raidlab ", env!("CARGO_PKG_VERSION")));
                title { (document.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(chart_style())) }
            }
            body {
                main {
                    h1 { (document.title) }
                    @for block in &body { (block) }
                }
            }
        }
    };
    Ok(shown(&page.into_string()))
}

/// plotters writes colours into attributes; these rules turn them for a dark ground.
fn chart_style() -> String {
    let hex = |c: RGBColor| format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2);
    let mut rules = String::new();
    let mut rule = |from: RGBColor, to: &str| {
        let from = hex(from);
        rules += &format!(
            ".chart [fill=\"{from}\"]{{fill:{to}}}.chart [stroke=\"{from}\"]{{stroke:{to}}}"
        );
    };
    rule(PAPER, "var(--paper)");
    rule(INK, "var(--ink)");
    rule(MUTED, "var(--muted)");
    rule(GRID, "var(--grid)");
    let mut dark = String::new();
    for (light, to) in SERIES.into_iter().zip(SERIES_DARK) {
        let from = hex(light);
        dark += &format!(
            ".chart [fill=\"{from}\"]{{fill:{to}}}.chart [stroke=\"{from}\"]{{stroke:{to}}}"
        );
    }
    format!("{rules}@media (prefers-color-scheme:dark){{{dark}}}")
}

fn render_block(block: &Block) -> Result<Markup, ImageError> {
    Ok(match block {
        Block::Heading { text } => html! { h2 { (text) } },
        Block::Paragraph { text } => html! { p { (text) } },
        Block::Warning { text } => html! { p.warning role="note" { (text) } },
        Block::List { items } => html! { ul { @for item in items { li { (item) } } } },
        Block::Commands { lines } => html! { pre { code { (commands(lines)) } } },
        Block::Table(table) => render_table(&table.read_by_rows()),
        Block::Chart(chart) => render_chart(chart)?,
    })
}

fn render_chart(chart: &Chart) -> Result<Markup, ImageError> {
    // Inside HTML the name space is known, and the file names no address at all.
    let svg = svg(chart)?.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    Ok(html! {
        figure.chart id=(chart.id()) {
            (PreEscaped(svg))
            figcaption { (chart.description()) }
        }
    })
}

fn render_table(table: &Table) -> Markup {
    let numbers = table.columns.iter().any(|c| c.right);
    let note = |number: usize| format!("{}-note-{number}", table.id);
    html! {
        div.table tabindex="0" role="region" aria-labelledby=(format!("{}-caption", table.id)) {
            table.numbers[numbers].wide[table.columns.len() > WIDE] id=(table.id) {
                caption id=(format!("{}-caption", table.id)) { span { (table.caption) } }
                @if table.columns.iter().any(|c| !c.title.is_empty()) {
                    thead { (header(&table.columns)) }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
                                @if index < table.names {
                                    th scope="row" class=(length(cell)) { (content(table, cell)) }
                                } @else {
                                    td class=(class(cell, column)) { (content(table, cell)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !table.footnotes.is_empty() {
            ol.notes {
                @for (index, text) in table.footnotes.iter().enumerate() {
                    li id=(note(index + 1)) { (text) }
                }
            }
        }
    }
}

/// One row of headings, or two when columns have common ones.
fn header(columns: &[Column]) -> Markup {
    if columns.iter().all(|c| c.group.is_none()) {
        return html! { tr { @for c in columns { th scope="col" class=(side(c)) { (c.title) } } } };
    }
    let mut groups: Vec<(Option<&str>, usize)> = Vec::new();
    for column in columns {
        let group = column.group.as_deref();
        match groups.last_mut() {
            Some((last, count)) if group.is_some() && *last == group => *count += 1,
            _ => groups.push((group, 1)),
        }
    }
    html! {
        tr {
            @for (group, count) in groups {
                @match group {
                    Some(group) => th.group scope="colgroup" colspan=(count) { (group) },
                    None => td {},
                }
            }
        }
        tr { @for c in columns { th scope="col" class=(side(c)) { (c.title) } } }
    }
}

/// Words that are kept on one line, or some that may need more.
fn length(cell: &Cell) -> &'static str {
    if cell.value.text().chars().count() <= SHORT {
        "short"
    } else {
        "long"
    }
}

fn side(column: &Column) -> &'static str {
    if column.right { "right" } else { "left" }
}

fn class(cell: &Cell, column: &Column) -> String {
    let tone = match cell.tone {
        Tone::Plain => "",
        Tone::Strong => " strong",
        Tone::Good => " good",
        Tone::Bad => " bad",
        Tone::Muted => " muted",
    };
    let long = match length(cell) {
        "long" if !column.right => " long",
        _ => "",
    };
    format!("{}{long}{tone}", side(column))
}

fn content(table: &Table, cell: &Cell) -> Markup {
    html! {
        @match &cell.value {
            Value::Absent => span.muted title="not measured" { "–" },
            Value::Ratio { value, interval: interval @ Some(_), digits } => {
                @let (ratio, interval) = crate::report::format::ratio_parts(*value, *interval, *digits);
                (ratio)
                " "
                span.interval { (interval.unwrap_or_default()) }
            },
            value => (bound(&value.text())),
        }
        @for mark in &cell.marks {
            sup { a href=(format!("#{}-note-{mark}", table.id)) { (mark) } }
        }
    }
}

//! bonnie++: text tables and CSV lines of 1.03, 1.9x (format 1.96, 1.97) and 2.00 (format 1.98).
//!
//! A run usually prints both; the CSV line then decides, because it is not rounded and not cut.
mod columns;
mod csv;
mod row;
mod table;

use super::Reading;
use super::draft::Harvest;
use super::text::{Line, Text, quoted};
use row::{Origin, Row};

/// Lines of progress and advice that go to standard error.
const CHATTER: [&str; 16] = [
    "Using uid:",
    "Writing with putc",
    "Writing a byte at a time",
    "Writing intelligently",
    "Rewriting...",
    "Reading with getc",
    "Reading a byte at a time",
    "Reading intelligently",
    "start 'em",
    "Create files in ",
    "Stat files in ",
    "Delete files in ",
    "Delete leftover",
    "Please run this program",
    "WARNING: ",
    "format_version,bonnie_version",
];

/// Most rows of text remembered as awaiting their CSV line.
const PENDING: usize = 64;

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut table: Option<table::Table> = None;
    for line in text.lines() {
        if line.text.trim().is_empty() {
            continue;
        }
        if csv::is_header(line.text) || CHATTER.iter().any(|c| line.text.trim().starts_with(c)) {
            continue;
        }
        if csv::is_row(line.text) {
            close(&mut table, &mut rows, line)?;
            let row = csv::row(line, &mut harvest)?;
            supersede(&mut rows, row);
        } else if table::begins(line.text) {
            let going_on = table.as_ref().is_some_and(table::Table::awaits_files);
            if !going_on {
                close(&mut table, &mut rows, line)?;
            }
            table.get_or_insert_default().begin(line)?;
        } else if let Some(open) = &mut table {
            open.take(line, &mut harvest)?;
        } else {
            harvest.remark(line.number, format!("{} is left out", quoted(line.text)));
        }
    }
    text.whole_last_line()?;
    if let Some(open) = table {
        rows.extend(open.end().map_err(|what| text.end().expected(what))?);
    }
    if rows.iter().any(|row| row.origin == Origin::Table) {
        harvest.remark_once(
            "read from the text table (no CSV line of the run): machine names may be cut short, and \
             figures from 10 MiB/s in version 2.00 are rounded",
        );
    }
    if !rows.is_empty() {
        harvest.remark_once(
            "bonnie++ writes compressible data: not to be compared on compressing storage; its %CP \
             leaves kernel threads out",
        );
    }
    for row in rows {
        harvest.drafts.push(row.into_draft()?);
    }
    Ok(harvest)
}

fn close(
    table: &mut Option<table::Table>,
    rows: &mut Vec<Row>,
    line: Line<'_>,
) -> Result<(), super::Fault> {
    if let Some(open) = table.take() {
        rows.extend(
            open.end()
                .map_err(|what| line.fault(0, line.quoted()).expected(what))?,
        );
    }
    Ok(())
}

/// Puts the CSV line in the place of the table row of the same run.
fn supersede(rows: &mut Vec<Row>, mut row: Row) {
    let from = rows.len().saturating_sub(PENDING);
    let twin = rows[from..]
        .iter()
        .rposition(|other| other.is_table_of(&row))
        .map(|at| from + at);
    match twin {
        Some(at) => {
            row.complete_from(&rows[at]);
            rows[at] = row;
        }
        None => rows.push(row),
    }
}

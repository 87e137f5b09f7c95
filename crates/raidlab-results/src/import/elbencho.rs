//! elbencho's CSV file (`--csvfile`): a row a phase, columns by their titles.
//!
//! Figures are those at the time the last worker was done: what the whole set took. Those at the
//! time of the first are kept beside them.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short};
use super::error::Fault;
use super::scan::number;
use super::text::{Line, Text, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::units::MIB;
use std::collections::BTreeSet;

/// Columns without which a row says nothing.
const NEEDED: [&str; 3] = ["ISO date", "operation", "time ms [last]"];
/// Settings that make another cell, and the factors they become.
const FACTORS: [(&str, &str); 10] = [
    ("hosts", "hosts"),
    ("threads", "threads"),
    ("dirs", "directories"),
    ("files", "files"),
    ("file size", "file-size"),
    ("block size", "block-size"),
    ("direct IO", "direct"),
    ("random", "random"),
    ("IO depth", "depth"),
    ("path type", "path-type"),
];

/// One row: its titles and cells.
struct Row<'a> {
    line: Line<'a>,
    titles: &'a csv::StringRecord,
    cells: &'a csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, title: &str) -> Option<&str> {
        let at = self.titles.iter().position(|t| t == title)?;
        self.cells.get(at).filter(|cell| !cell.is_empty())
    }

    fn number(&self, title: &str) -> Result<Option<f64>, Fault> {
        let Some(cell) = self.text(title) else {
            return Ok(None);
        };
        number(self.line, cell, title)
            .map(Some)
            .map_err(|mut fault| {
                // The cell is a copy, so its place is looked for in the line.
                let at = self.line.text.find(cell).unwrap_or(0);
                fault.column = self.line.fault(at, "").column;
                fault
            })
    }

    /// Everything that tells one run from another but the operation and its figures.
    fn configuration(&self) -> Vec<&str> {
        let own = ["ISO date", "operation"];
        let mut cells = Vec::new();
        for (title, cell) in self.titles.iter().zip(self.cells) {
            if title.contains('[') || title.contains("/s") || own.contains(&title) {
                continue;
            }
            cells.push(cell);
        }
        cells
    }
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    text.whole_last_line()?;
    let lines: Vec<Line<'_>> = text.lines().collect();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_str().as_bytes());
    let mut titles: Option<csv::StringRecord> = None;
    let mut open: Option<(Draft, Vec<String>, BTreeSet<String>)> = None;
    let mut cells = csv::StringRecord::new();
    loop {
        let more = reader.read_record(&mut cells).map_err(|e| csv_fault(&e))?;
        if !more {
            break;
        }
        let number = cells.position().map_or(1, csv::Position::line) as usize;
        let line = lines
            .get(number - 1)
            .copied()
            .unwrap_or(Line { number, text: "" });
        if cells.get(0) == Some("ISO date") {
            check_titles(line, &cells)?;
            titles = Some(cells.clone());
            continue;
        }
        let Some(titles) = &titles else {
            return Err(line
                .fault(0, line.quoted())
                .expected("column titles (ISO date,…)"));
        };
        line.has_cells(cells.len(), titles.len())?;
        let row = Row {
            line,
            titles,
            cells: &cells,
        };
        take(&row, &mut open, &mut harvest)?;
    }
    harvest.drafts.extend(open.map(|(draft, _, _)| draft));
    if !harvest.drafts.is_empty() {
        harvest.remark_once("rates are those when the last worker was done ([last])");
    }
    Ok(harvest)
}

fn csv_fault(error: &csv::Error) -> Fault {
    let line = error.position().map_or(1, csv::Position::line) as usize;
    Fault::at(line, 1, error.to_string()).expected("comma-separated values")
}

fn check_titles(line: Line<'_>, titles: &csv::StringRecord) -> Result<(), Fault> {
    let missing = |title: &&&str| !titles.iter().any(|t| t == **title);
    let rates = titles.iter().any(|t| t == "MiB/s [last]");
    match NEEDED.iter().find(missing) {
        Some(title) => Err(line
            .cut("the column titles end")
            .expected(format!("'{title}'"))),
        None if !rates => Err(line.cut("the column titles end").expected("'MiB/s [last]'")),
        None => Ok(()),
    }
}

/// Puts a row into the open run, or into a new one when it cannot belong to it.
fn take(
    row: &Row<'_>,
    open: &mut Option<(Draft, Vec<String>, BTreeSet<String>)>,
    harvest: &mut Harvest,
) -> Result<(), Fault> {
    let operation = row
        .text("operation")
        .ok_or_else(|| {
            row.line
                .fault(0, row.line.quoted())
                .expected("an operation")
        })?
        .to_lowercase();
    let configuration: Vec<String> = row
        .configuration()
        .iter()
        .map(ToString::to_string)
        .collect();
    let fits = open.as_ref().is_some_and(|(_, own, operations)| {
        *own == configuration && !operations.contains(&operation)
    });
    if !fits {
        harvest
            .drafts
            .extend(open.take().map(|(draft, _, _)| draft));
        *open = Some((begin(row), configuration, BTreeSet::new()));
    }
    if let Some((draft, _, operations)) = open {
        // `--rwmixpct`: the reads of a mix have columns of their own.
        let reads = format!("{operation}-read");
        let reads = phase(row, &reads, "rwmix read ")?;
        if let Some(phase) = phase(row, &operation, "")? {
            draft.phases.push(phase);
        } else if reads.is_none() {
            harvest.remark(
                row.line.number,
                format!("{operation} has no rate: left out"),
            );
        }
        draft.phases.extend(reads);
        let identity = draft.identity.get_or_insert_default();
        // Its date is in it.
        draft.is_one_run = true;
        identity.push_str(row.line.text);
        identity.push('\n');
        operations.insert(operation);
    }
    Ok(())
}

fn begin(row: &Row<'_>) -> Draft {
    let label = row.text("label").unwrap_or("");
    let mut draft = Draft::new("elbencho", "elbencho", label);
    for (title, factor) in FACTORS {
        if let Some(value) = row.text(title) {
            draft.factor(factor, value);
        }
    }
    for (title, setting) in [
        ("ISO date", "date"),
        ("paths", "paths"),
        ("random aligned", "aligned"),
    ] {
        if let Some(value) = row.text(title) {
            draft.setting(setting, value);
        }
    }
    // Without an offset the date is local time, which cannot be placed.
    let date = row
        .text("ISO date")
        .and_then(|d| d.parse::<jiff::Timestamp>().ok());
    draft.started = date.map(|d| d.to_string());
    draft.version = row.text("version").map(str::to_owned);
    draft.command = row.text("command").map(str::to_owned);
    draft
}

/// The phase of the columns whose titles begin with `of`.
fn phase(row: &Row<'_>, operation: &str, of: &str) -> Result<Option<PhaseRecord>, Fault> {
    let told = |title: &str| row.number(&format!("{of}{title}"));
    let milliseconds = row.number("time ms [last]")?.ok_or_else(|| {
        row.line
            .cut("the row has no time")
            .expected("'time ms [last]'")
    })?;
    let [bytes, iops, entries] = ["MiB/s [last]", "IOPS [last]", "entries/s [last]"];
    let (bytes, iops, entries) = (told(bytes)?, told(iops)?, told(entries)?);
    let (mut phase, per) = match (bytes, entries) {
        (Some(rate), _) => (bytes_phase(operation, rate * MIB as f64), "IO"),
        (None, Some(rate)) => (
            PhaseRecord::bare(operation, Some(rate), Unit::PerSecond),
            "Ent",
        ),
        (None, None) => return Ok(None),
    };
    phase.elapsed_ns = Some(super::draft::nanoseconds(milliseconds / 1e3));
    flag_if_short(&mut phase, milliseconds / 1e3);
    phase.bytes = told("MiB [last]")?.map(|n| (n * MIB as f64) as u64);
    if per == "Ent" {
        phase.ops = told("entries [last]")?.map(|n| n as u64);
        phase.bytes = None;
    }
    if let Some(iops) = iops {
        figure(&mut phase, "iops", iops, Unit::PerSecond);
    }
    let first = told(if per == "IO" {
        "MiB/s [first]"
    } else {
        "entries/s [first]"
    })?;
    if let Some(first) = first {
        let scale = if per == "IO" { MIB as f64 } else { 1.0 };
        let unit = phase.unit;
        figure(&mut phase, "rate-first-done", first * scale, unit);
    }
    for (what, name) in [("avg", "latency-mean"), ("max", "latency-max")] {
        if let Some(us) = told(&format!("{per} lat us [{what}]"))? {
            figure(&mut phase, name, us / 1e6, Unit::Seconds);
        }
    }
    // Of all processors of the hosts together, so not the share of one that cpu_percent is.
    if let Some(percent) = row.number("CPU% [last]")? {
        figure(&mut phase, "cpu-host", percent, Unit::Percent);
    }
    if !operation
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return Err(row
            .line
            .fault(0, quoted(operation))
            .expected("an operation such as WRITE or READ"));
    }
    Ok(Some(phase))
}

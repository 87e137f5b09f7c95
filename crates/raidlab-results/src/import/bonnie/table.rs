//! The text table, line by line.
use super::columns::{CELLS, HEAD, split_head, split_io};
use super::row::{
    FIRST_OF_FILES, FIRST_OF_OPS, Measured, Origin, PHASES, Rate, Row, cpu, files, is_1_9x,
    latency, paired, plain_rate, size,
};
use crate::import::draft::Harvest;
use crate::import::error::Fault;
use crate::import::scan::{number, parse_part, split_chars};
use crate::import::text::{Line, quoted};
use raidlab_core::units::{GIB, KIB, MIB};
use raidlab_core::words::count;

/// Columns before the first latency, and of each.
const LATENCY_HEAD: usize = 17;
const LATENCY_WIDTH: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// The column titles of the big file's phases.
    #[default]
    IoTitles,
    /// Their rows.
    Io,
    /// The column titles of the small files' phases.
    FileTitles,
    /// Their one row.
    Files,
    Done,
}

/// One table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    version: String,
    part: Part,
    rows: Vec<Row>,
    heading: Option<String>,
    /// Lines of column titles still to come.
    titles: usize,
    awaits_latency: bool,
}

pub(super) fn begins(line: &str) -> bool {
    line.starts_with("Version ")
        && (line.contains("------Sequential Output") || line.contains("------Sequential Create"))
}

impl Table {
    /// Whether a second `Version` line goes on with this table (1.9x and later print one above the
    /// small files).
    pub(super) fn awaits_files(&self) -> bool {
        self.part == Part::Io && !self.rows.is_empty() && has_latencies(&self.version)
    }

    /// Takes the line with the version.
    pub(super) fn begin(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let version = line.words().nth(1).unwrap_or("");
        if !version.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(line
                .fault_at(version, quoted(version))
                .expected("a version such as 1.03e or 2.00a"));
        }
        if line.text.contains("------Sequential Create") {
            if !self.rows.is_empty() && self.version != version {
                return Err(line
                    .fault_at(version, quoted(version))
                    .expected(&self.version));
            }
            self.missing_latency()
                .map_err(|what| line.fault(0, line.quoted()).expected(what))?;
            self.part = Part::FileTitles;
        } else {
            self.part = Part::IoTitles;
        }
        self.titles = 2;
        self.version = version.to_owned();
        Ok(())
    }

    /// Takes any other line.
    pub(super) fn take(&mut self, line: Line<'_>, harvest: &mut Harvest) -> Result<(), Fault> {
        let unexpected = |what: &str| Err(line.fault(0, line.quoted()).expected(what));
        if self.awaits_latency {
            return self.take_latency(line);
        }
        match self.part {
            Part::IoTitles | Part::FileTitles => self.take_title(line),
            Part::Io if line.text.contains("------Sequential Create") => {
                self.part = Part::FileTitles;
                self.titles = 2;
                Ok(())
            }
            Part::Io if is_heading(line.text) => {
                let heading = line.text.trim().to_owned();
                harvest.remark(
                    line.number,
                    format!(
                        "{} is taken as a heading of the rows below",
                        quoted(&heading)
                    ),
                );
                self.heading = Some(heading);
                Ok(())
            }
            Part::Io => self.take_io(line, harvest),
            Part::Files => self.take_files(line),
            Part::Done if is_heading(line.text) => {
                harvest.remark(line.number, format!("{} is left out", line.quoted()));
                Ok(())
            }
            Part::Done => unexpected("a CSV line or the next table"),
        }
    }

    /// The rows, or what is missing.
    pub(super) fn end(self) -> Result<Vec<Row>, String> {
        self.missing_latency()?;
        let missing = match self.part {
            Part::IoTitles | Part::FileTitles => Some("the column titles of the table"),
            Part::Files => Some("the row of small files"),
            Part::Io if self.rows.is_empty() => Some("a row of the table"),
            Part::Io | Part::Done => None,
        };
        match missing {
            Some(what) => Err(what.to_owned()),
            None => Ok(self.rows),
        }
    }

    fn missing_latency(&self) -> Result<(), String> {
        if self.awaits_latency {
            Err("a line of latencies".to_owned())
        } else {
            Ok(())
        }
    }

    fn take_title(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let second = self.titles == 2;
        let known: &[&str] = match (self.part, second) {
            (Part::FileTitles, true) => &["-Create-- --Read--- -Delete--"],
            (Part::IoTitles, true) => &["-Per Chr- --Block-- -Rewrite-"],
            (Part::FileTitles, false) => &["files"],
            _ => &[
                "Size K/sec %CP",
                "Size:chnk K/sec %CP",
                "Name:Size etc",
                "Size:chnk:",
            ],
        };
        if !known.iter().any(|title| line.text.contains(title)) {
            return Err(line
                .fault(0, line.quoted())
                .expected(format!("column titles ({})", known[0])));
        }
        if self.part == Part::FileTitles && second && self.rows.is_empty() {
            // Without a big file the machine is named here.
            let mut row = Row::new(Origin::Table, line.number, &self.version);
            let name = split_chars(line.text, HEAD + 1).map_or("", |(name, _)| name);
            row.name = name.trim().to_owned();
            row.heading.clone_from(&self.heading);
            self.rows.push(row);
        }
        self.titles -= 1;
        if self.titles == 0 {
            let io = self.part == Part::IoTitles;
            self.part = if io { Part::Io } else { Part::Files };
        }
        Ok(())
    }

    fn take_io(&mut self, line: Line<'_>, harvest: &mut Harvest) -> Result<(), Fault> {
        let (head, cells) = split_io(line)?;
        let (name, size_text) = split_head(head).ok_or_else(|| {
            line.fault(0, quoted(head))
                .expected("a machine name and a size such as 2G")
        })?;
        if name.ends_with(|c: char| !c.is_whitespace()) {
            harvest.remark(
                line.number,
                format!(
                    "the machine name touches the size: read as {} and {size_text}",
                    quoted(name)
                ),
            );
        }
        let mut row = Row::new(Origin::Table, line.number, &self.version);
        row.name = name.trim().to_owned();
        row.heading.clone_from(&self.heading);
        row.size = Some(parse_part(line, size_text, "a size such as 1G", size)?);
        read_cells(line, &cells, 0, &self.version, &mut row)?;
        if matches!(row.phases[FIRST_OF_OPS].rate, Rate::Skipped) {
            // bonnie++ can leave out the per-character phases only; a row ends with the seeks.
            return Err(line.cut("the row ends").expected("a figure for the seeks"));
        }
        self.rows.push(row);
        self.awaits_latency = has_latencies(&self.version);
        Ok(())
    }

    fn take_files(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let mut words: Vec<&str> = line.words().collect();
        if words.len() != CELLS + 1 {
            return Err(line
                .cut(count(words.len(), "value"))
                .expected(format!("a number of files and {CELLS} values")));
        }
        let spec = words.remove(0);
        let told = parse_part(
            line,
            spec,
            "a number of files such as 16 or 64:1024:128/4",
            files,
        )?;
        let version = self.version.clone();
        let Some(row) = self.rows.last_mut() else {
            return Err(line.fault(0, line.quoted()).expected("a row above"));
        };
        row.files = Some(told);
        read_cells(line, &words, FIRST_OF_FILES, &version, row)?;
        self.part = Part::Done;
        self.awaits_latency = has_latencies(&self.version);
        Ok(())
    }

    fn take_latency(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let fault = || line.fault(0, line.quoted()).expected("a line of latencies");
        if !line.text.starts_with("Latency ") {
            return Err(fault());
        }
        let first = if self.part == Part::Done {
            FIRST_OF_FILES
        } else {
            0
        };
        let words: Vec<&str> = line.words().skip(1).collect();
        let cells = if words.len() == 6 {
            words
        } else {
            let (_, mut rest) = split_chars(line.text, LATENCY_HEAD).ok_or_else(fault)?;
            let mut cells = Vec::new();
            while !rest.is_empty() {
                let (cell, after) = split_chars(rest, LATENCY_WIDTH).unwrap_or((rest, ""));
                cells.push(cell.trim());
                rest = after;
            }
            cells
        };
        if cells.len() > 6 {
            return Err(fault());
        }
        let row = self.rows.last_mut().ok_or_else(fault)?;
        for (i, measured) in row.phases[first..first + 6].iter_mut().enumerate() {
            let cell = cells.get(i).copied().unwrap_or("");
            measured.latency_max = latency(line, cell)?;
            let ran = measured.rate != Rate::Skipped;
            if ran != measured.latency_max.is_some() && i >= cells.len() {
                return Err(line
                    .cut("the line of latencies ends")
                    .expected(format!("the latency of {}", PHASES[first + i])));
            }
        }
        self.awaits_latency = false;
        Ok(())
    }
}

/// 1.9x and later print latencies, each after its row.
fn has_latencies(version: &str) -> bool {
    !version.starts_with("1.0")
}

/// A line that a person wrote between rows: no figures, no column gaps.
fn is_heading(line: &str) -> bool {
    let line = line.trim_end();
    let figures = line
        .split_whitespace()
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '+'))
        .count();
    !line.contains("   ") && figures < 2
}

fn read_cells(
    line: Line<'_>,
    cells: &[&str],
    first: usize,
    version: &str,
    row: &mut Row,
) -> Result<(), Fault> {
    let plain = version.starts_with("1.0") || is_1_9x(version);
    for (i, pair) in cells.chunks(2).enumerate() {
        let (i, [rate, percent]) = (first + i, [pair[0], pair[1]]);
        let mut measured = Measured {
            rate: if plain || i >= FIRST_OF_OPS {
                plain_rate(line, rate, i)?
            } else {
                scaled_rate(line, rate, i)?
            },
            cpu_percent: cpu(line, percent)?,
            latency_max: None,
        };
        paired(line, (rate, measured.rate), percent)?;
        if !plain && i >= FIRST_OF_FILES && matches!(measured.rate, Rate::Value(_)) {
            measured.rate = Rate::Garbage;
        }
        row.phases[i] = measured;
    }
    Ok(())
}

/// `2419k`, `298m`, `1.5g`: KiB, MiB and GiB a second.
fn scaled_rate(line: Line<'_>, cell: &str, i: usize) -> Result<Rate, Fault> {
    let scale = match cell.chars().next_back() {
        Some('k') => KIB,
        Some('m') => MIB,
        Some('g') => GIB,
        _ if matches!(cell, "" | "+++++") => return plain_rate(line, cell, i),
        _ => {
            return Err(line
                .fault_at(cell, quoted(cell))
                .expected(format!("a rate with k, m or g ({})", PHASES[i])));
        }
    };
    number(line, &cell[..cell.len() - 1], PHASES[i]).map(|n| Rate::Value(n * scale as f64))
}

//! iozone's table. Its kB are 1024 bytes, and a test that was not run is blank, so that values are
//! told apart by the column titles they end under.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase};
use super::error::Fault;
use super::scan::whole;
use super::text::{Line, Text, quoted};
use raidlab_core::units::KIB;

/// Phases in the order of the columns; the titles repeat, so they are told apart by their place.
const PHASES: [&str; 13] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
];

/// The second line of titles, from `reclen` on.
const TITLES: [&str; 14] = [
    "reclen", "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read",
    "fwrite", "frewrite", "fread", "freread",
];

/// How far the end of a value may be from the end of its title. They are at most one apart in every
/// version, and a value of eight digits shifts those after it by one more.
const TOLERANCE: usize = 2;

/// What the lines above the table say.
#[derive(Default)]
struct Preamble {
    version: Option<String>,
    command: Option<String>,
    direct: bool,
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut preamble = Preamble::default();
    // Ends of the columns of the table that is open.
    let mut columns: Option<Vec<usize>> = None;
    let mut spreadsheet = false;
    for line in text.lines() {
        let trimmed = line.text.trim();
        if trimmed.starts_with("iozone test complete") {
            if columns.take().is_none() {
                return Err(line.fault(0, "the end of a test").expected("a table above"));
            }
            (preamble, spreadsheet) = (Preamble::default(), false);
        } else if let Some(ends) = titles(line) {
            if columns.is_some() {
                return Err(line
                    .fault(0, line.quoted())
                    .expected("'iozone test complete.'"));
            }
            columns = Some(ends);
        } else if trimmed.is_empty() || spreadsheet {
        } else if let Some(ends) = &columns {
            if trimmed.starts_with('"') || trimmed.starts_with("Excel") {
                spreadsheet = true;
            } else {
                harvest.drafts.push(row(line, ends, &preamble)?);
            }
        } else {
            preamble.take(line)?;
        }
    }
    if columns.is_some() {
        return Err(text.end().expected("the line 'iozone test complete.'"));
    }
    Ok(harvest)
}

impl Preamble {
    fn take(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let trimmed = line.text.trim();
        let refuse = |what: &str| {
            Err(line
                .fault(0, line.quoted())
                .expected("rates in kBytes/sec")
                .remedy(what))
        };
        if let Some((_, rest)) = trimmed.split_once("$Revision:") {
            self.version = rest.split_whitespace().next().map(str::to_owned);
        } else if let Some(command) = trimmed.strip_prefix("Command line used:") {
            self.command = Some(command.trim().to_owned());
        } else if trimmed.starts_with("O_DIRECT feature enabled") {
            self.direct = true;
        } else if trimmed.starts_with("Output is in ops/sec") || trimmed.contains("per op") {
            return refuse("Run iozone without -O and -N");
        } else if trimmed.starts_with("Children see throughput") {
            return refuse("Run iozone without -t: its throughput mode has no table");
        }
        Ok(())
    }
}

/// The ends of the columns when the line is the second line of titles.
fn titles(line: Line<'_>) -> Option<Vec<usize>> {
    let words = ends(line.text);
    let unit = words.first()?.0;
    let rest = words[1..].iter().map(|(word, _)| *word);
    let known = unit.eq_ignore_ascii_case("kB") && rest.eq(TITLES);
    known.then(|| words.iter().map(|(_, end)| *end).collect())
}

/// Words and the columns they end in; a tab stands for up to eight.
fn ends(text: &str) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let (mut column, mut start) = (0, None);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if let Some(from) = start.take() {
                words.push((&text[from..at], column));
            }
            column = if c == '\t' {
                (column / 8 + 1) * 8
            } else {
                column + 1
            };
        } else {
            start.get_or_insert(at);
            column += 1;
        }
    }
    if let Some(from) = start {
        words.push((&text[from..], column));
    }
    words
}

fn row(line: Line<'_>, columns: &[usize], preamble: &Preamble) -> Result<Draft, Fault> {
    let words = ends(line.text);
    if words.len() < 3 || words.len() > columns.len() {
        return Err(line
            .fault(0, line.quoted())
            .expected("size, record length and at least one rate, or 'iozone test complete.'"));
    }
    let kibibytes = |cell: &str, what: &str| {
        whole(line, cell, what)?
            .checked_mul(KIB)
            .ok_or_else(|| line.fault_at(cell, quoted(cell)).expected(what.to_owned()))
    };
    let mut draft = Draft::new("iozone", "iozone", "");
    let size = kibibytes(words[0].0, "the file size in kB")?;
    draft.factor("file-size", size);
    draft.factor(
        "block-size",
        kibibytes(words[1].0, "the record length in kB")?,
    );
    if preamble.direct {
        draft.factor("direct", 1);
    }
    draft.version.clone_from(&preamble.version);
    draft.command.clone_from(&preamble.command);
    let all = words.len() == columns.len();
    let mut last = None;
    for (i, (cell, end)) in words.iter().enumerate().skip(2) {
        let column = if all { Some(i) } else { nearest(*end, columns) };
        let column = column
            .filter(|c| *c >= 2 && last.is_none_or(|before| *c > before))
            .ok_or_else(|| {
                line.fault_at(cell, quoted(cell))
                    .expected("a value under the end of a column title")
                    .remedy("Keep the table's spaces when saving it: blanks are tests not run")
            })?;
        last = Some(column);
        let rate = whole(line, cell, PHASES[column - 2])?;
        draft
            .phases
            .push(bytes_phase(PHASES[column - 2], rate as f64 * KIB as f64));
    }
    Ok(draft)
}

/// The column whose title ends nearest, when it is near enough and no other is as near.
fn nearest(end: usize, columns: &[usize]) -> Option<usize> {
    let mut by_distance: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| (column.abs_diff(end), i))
        .collect();
    by_distance.sort_unstable();
    let [(least, which), (second, _), ..] = by_distance.as_slice() else {
        return None;
    };
    (*least <= TOLERANCE && least < second).then_some(*which)
}

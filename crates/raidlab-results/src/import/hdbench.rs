//! HDBENCH clone: its text, in the form of 0.14 and later or of before, and its tab-separated "CSV".
//!
//! READ and WRITE are bytes a millisecond, which it calls kB/s; processor and display figures are
//! left out.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase};
use super::error::Fault;
use super::scan::whole;
use super::text::{Line, Text, quoted};
use raidlab_core::words::count;

/// Bytes of its kB and MB.
const KB: u64 = 1000;
const MB: u64 = 1_000_000;

/// Keys of the machine's description, and the settings they become.
const KEYS: [(&str, &str); 9] = [
    ("M/B Name", "mainboard"),
    ("Processor", "processor"),
    ("Vendor", "processor-details"),
    ("Resolution", "resolution"),
    ("Display", "display"),
    ("Memory(KBytes)", "memory"),
    ("Memory", "memory"),
    ("OS", "os"),
    ("Date", "date"),
];

/// What is known of the record that is being read.
#[derive(Default)]
struct Record {
    begun: Option<usize>,
    version: Option<String>,
    settings: Vec<(&'static str, String)>,
    /// Column titles that a row of values must follow.
    titles: Option<Vec<String>>,
    pairs: Vec<(String, String)>,
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut record = Record::default();
    for line in text.lines() {
        let trimmed = line.text.trim();
        let is_rule = trimmed.len() > 2 && trimmed.bytes().all(|b| b == b'-');
        let is_banner = trimmed.contains("HDBENCH clone Ver");
        if is_rule || is_banner {
            record.finished(line)?;
            record = Record::default();
        }
        if is_banner {
            let version = trimmed.split("Ver").nth(1).unwrap_or("");
            record.version = version.split_whitespace().next().map(str::to_owned);
            record.begun = Some(line.number);
        } else if !trimmed.is_empty() && !is_rule {
            harvest.drafts.extend(take(line, &mut record)?);
        }
    }
    if let Err(fault) = record.finished(Line {
        number: 1,
        text: "",
    }) {
        return Err(text.end().expected(fault.expected));
    }
    text.whole_last_line()?;
    Ok(harvest)
}

impl Record {
    /// Refuses to go on when a record has begun and its figures have not come.
    fn finished(&self, line: Line<'_>) -> Result<(), Fault> {
        let waiting = self.begun.is_some() || self.titles.is_some() || !self.pairs.is_empty();
        if waiting {
            return Err(line
                .fault(0, line.quoted())
                .expected("the values of READ, WRITE and DRIVE"));
        }
        Ok(())
    }
}

fn take(line: Line<'_>, record: &mut Record) -> Result<Option<Draft>, Fault> {
    let trimmed = line.text.trim();
    // Indentation by a tab is none of its own.
    let own = line.text.trim_start();
    let tabbed = own.contains('\t');
    let cells: Vec<&str> = if tabbed {
        own.split('\t').map(str::trim).collect()
    } else {
        line.words().collect()
    };
    if cells.contains(&"READ") && cells.contains(&"WRITE") && cells.contains(&"DRIVE") {
        record.titles = Some(cells.iter().map(ToString::to_string).collect());
        return Ok(None);
    }
    if let Some(titles) = record.titles.take() {
        return row(line, &titles, &cells, record).map(Some);
    }
    if let (true, [key, value]) = (tabbed, cells.as_slice()) {
        record.pairs.push(((*key).to_owned(), (*value).to_owned()));
        if *key != "DRIVE" {
            return Ok(None);
        }
        let pairs = std::mem::take(&mut record.pairs);
        let find = |name: &str| {
            let found = pairs.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str()).ok_or_else(|| {
                line.fault(0, line.quoted())
                    .expected(format!("a line for {name} above"))
            })
        };
        return draft(line, record, find("READ")?, find("WRITE")?, value).map(Some);
    }
    // TOTAL to MEMORY and their figures are not about disks; the rest describes the machine.
    if let Some((key, name)) = KEYS.iter().find(|(key, _)| trimmed.starts_with(key)) {
        let value = trimmed[key.len()..].trim();
        let value = if *key == "Vendor" { trimmed } else { value };
        record.settings.push((name, value.to_owned()));
    }
    Ok(None)
}

fn row(
    line: Line<'_>,
    titles: &[String],
    cells: &[&str],
    record: &mut Record,
) -> Result<Draft, Fault> {
    // The drive's path is last and may have spaces.
    if cells.len() < titles.len() {
        return Err(line
            .cut(count(cells.len(), "value"))
            .expected(count(titles.len(), "value")));
    }
    let find = |name: &str| {
        titles
            .iter()
            .position(|title| title == name)
            .map(|at| cells[at])
    };
    let known = titles.iter().zip(cells);
    for (title, cell) in known {
        if let Some((_, name)) = KEYS.iter().find(|(key, _)| key == title) {
            record.settings.push((name, (*cell).to_owned()));
        } else if title == "Ver" {
            record.version = Some((*cell).to_owned());
        }
    }
    let drive = cells[titles.len() - 1..].join(" ");
    let (Some(read), Some(write)) = (find("READ"), find("WRITE")) else {
        return Err(line.fault(0, line.quoted()).expected("READ and WRITE"));
    };
    draft(line, record, read, write, &drive)
}

fn draft(
    line: Line<'_>,
    record: &mut Record,
    read: &str,
    write: &str,
    drive: &str,
) -> Result<Draft, Fault> {
    let what = "a drive such as /home:100MB";
    let wrong = || line.cut(quoted(drive)).expected(what);
    let (path, size) = drive.rsplit_once(':').ok_or_else(wrong)?;
    let megabytes = size.strip_suffix("MB").ok_or_else(wrong)?;
    let bytes = megabytes
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(MB))
        .ok_or_else(wrong)?;
    let mut draft = Draft::new("hdbench-clone", "HDBENCH clone", path);
    draft.factor("file-size", bytes);
    draft.version = record.version.take();
    for (name, value) in record
        .settings
        .drain(..)
        .filter(|(_, value)| !value.is_empty())
    {
        draft.setting(name, value);
    }
    for (name, cell) in [("read", read), ("write", write)] {
        let rate = whole(line, cell, &name.to_uppercase())?;
        draft
            .phases
            .push(bytes_phase(name, rate as f64 * KB as f64));
    }
    *record = Record::default();
    Ok(draft)
}

//! vdbench's flatfile.html. Only the averages of a run (`avg_2-30`) are taken, as its own parser
//! does; MB are 2^20 bytes, response times milliseconds.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, figure};
use super::error::Fault;
use super::scan::number;
use super::text::{Line, Text, quoted};
use crate::record::Unit;
use raidlab_core::units::MIB;

/// Columns without which a row says nothing.
const NEEDED: [&str; 5] = ["Run", "Interval", "rate", "MB/sec", "read%"];
/// Columns that make another cell, and the factors they become.
const FACTORS: [(&str, &str); 6] = [
    ("xfersize", "block-size"),
    ("threads", "threads"),
    ("rdpct", "read-percent"),
    ("seekpct", "seek-percent"),
    ("whpct", "write-hit-percent"),
    ("rhpct", "read-hit-percent"),
];
/// Response times and the figures they become.
const LATENCIES: [(&str, &str); 6] = [
    ("resp", "latency-mean"),
    ("resp_max", "latency-max"),
    ("read_resp", "latency-mean-read"),
    ("write_resp", "latency-mean-write"),
    ("read_max", "latency-max-read"),
    ("write_max", "latency-max-write"),
];

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut titles: Option<Vec<&str>> = None;
    // The run whose intervals have come and whose average has not.
    let mut running: Option<(&str, usize)> = None;
    let mut formats = false;
    for line in text.lines() {
        let trimmed = line.text.trim();
        if trimmed.is_empty() || trimmed.starts_with(['*', '<']) {
            continue;
        }
        let cells: Vec<&str> = line.words().collect();
        if cells.contains(&"Run") && cells.contains(&"Interval") {
            if let Some(title) = NEEDED.iter().find(|title| !cells.contains(title)) {
                return Err(line
                    .cut("the column titles end")
                    .expected(format!("a column '{title}'")));
            }
            titles = Some(cells);
            continue;
        }
        let Some(titles) = &titles else {
            return Err(line
                .fault(0, line.quoted())
                .expected("column titles (Run Interval …)"));
        };
        line.has_cells(cells.len(), titles.len())?;
        let row = Row {
            line,
            titles,
            cells: &cells,
        };
        let (run, interval) = (row.need("Run")?, row.need("Interval")?);
        if let Some((before, _)) = running.filter(|(before, _)| *before != run) {
            return Err(line
                .fault(0, format!("run {run}"))
                .expected(format!("the average of run {before}")));
        }
        if run.starts_with("format") {
            formats = true;
        } else if interval.starts_with("avg") {
            running = None;
            harvest.drafts.push(draft(&row, run)?);
        } else {
            number(line, interval, "an interval or avg_…")?;
            running = Some((run, line.number));
        }
    }
    text.whole_last_line()?;
    if let Some((run, _)) = running {
        return Err(text
            .end()
            .expected(format!("the average of run {run} (Interval avg_…)")));
    }
    if formats {
        harvest.remark_once("format runs make the files and are left out");
    }
    Ok(harvest)
}

struct Row<'a, 'b> {
    line: Line<'a>,
    titles: &'b [&'a str],
    cells: &'b [&'a str],
}

impl<'a> Row<'a, '_> {
    fn get(&self, title: &str) -> Option<&'a str> {
        let at = self.titles.iter().position(|t| *t == title)?;
        let absent = |cell: &&str| matches!(*cell, "?" | "n/a" | "NaN" | "-");
        Some(self.cells[at]).filter(|cell| !absent(cell))
    }

    fn need(&self, title: &str) -> Result<&'a str, Fault> {
        self.get(title).ok_or_else(|| {
            self.line
                .fault(0, "no value")
                .expected(format!("a value of {title}"))
        })
    }

    fn number(&self, title: &str) -> Result<Option<f64>, Fault> {
        self.get(title)
            .map(|cell| number(self.line, cell, title))
            .transpose()
    }
}

fn draft(row: &Row<'_, '_>, run: &str) -> Result<Draft, Fault> {
    let mut draft = Draft::new("vdbench", "vdbench", "");
    draft.factor("run", run);
    for (title, factor) in FACTORS {
        if let Some(value) = row.get(title) {
            draft.factor(factor, value);
        }
    }
    for title in ["reqrate", "Interval", "lunsize", "version", "queue_depth"] {
        if let Some(value) = row.get(title) {
            draft.setting(&title.to_lowercase().replace('_', "-"), value);
        }
    }
    let needed = |title: &str| number(row.line, row.need(title)?, title);
    let rate = needed("MB/sec")? * MIB as f64;
    let read_percent = needed("read%")?;
    let name = if read_percent >= 100.0 {
        "read"
    } else if read_percent <= 0.0 {
        "write"
    } else {
        "mixed"
    };
    if read_percent > 100.0 {
        let cell = row.need("read%")?;
        return Err(row.line.fault_at(cell, quoted(cell)).expected("per cent"));
    }
    let mut phase = bytes_phase(name, rate);
    figure(&mut phase, "iops", needed("rate")?, Unit::PerSecond);
    for (title, name) in LATENCIES {
        // A direction that was not used has zeros.
        let of_direction = title.starts_with("read_") || title.starts_with("write_");
        if let Some(ms) = row.number(title)?.filter(|ms| !of_direction || *ms > 0.0) {
            figure(&mut phase, name, ms / 1e3, Unit::Seconds);
        }
    }
    // Of all processors of the host together.
    for (title, name) in [
        ("cpu_used", "cpu-host"),
        ("cpu_user", "cpu-user"),
        ("cpu_kernel", "cpu-system"),
    ] {
        if let Some(percent) = row.number(title)? {
            figure(&mut phase, name, percent, Unit::Percent);
        }
    }
    phase.mean_in_flight = row.number("queue_depth")?;
    draft.phases.push(phase);
    Ok(draft)
}

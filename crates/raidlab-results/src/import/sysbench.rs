//! `sysbench fileio` 1.0. Its latencies are of all operations together, so they belong to a phase
//! of their own, `events`.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short, nanoseconds};
use super::error::Fault;
use super::scan::{number, whole};
use super::text::{Line, Text, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::units::{Bytes, MIB};

/// The lines of a report that are needed, in order: section, title and what becomes of them.
const LINES: [(&str, &str); 12] = [
    ("File operations:", "reads/s:"),
    ("File operations:", "writes/s:"),
    ("File operations:", "fsyncs/s:"),
    ("Throughput:", "read, MiB/s:"),
    ("Throughput:", "written, MiB/s:"),
    ("General statistics:", "total time:"),
    ("General statistics:", "total number of events:"),
    ("Latency (ms):", "min:"),
    ("Latency (ms):", "avg:"),
    ("Latency (ms):", "max:"),
    ("Latency (ms):", "percentile:"),
    ("Latency (ms):", "sum:"),
];

/// One run as far as it has been read.
#[derive(Default)]
struct Run {
    version: Option<String>,
    settings: Vec<(&'static str, String)>,
    values: Vec<f64>,
    percentile: Option<u64>,
    fairness: bool,
    ended: bool,
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut run: Option<Run> = None;
    for line in text.lines() {
        let trimmed = line.text.trim();
        if let Some(rest) = trimmed.strip_prefix("sysbench ") {
            finish(run.take(), || line.fault(0, line.quoted()), &mut harvest)?;
            let version = rest
                .split([' ', ':'])
                .next()
                .unwrap_or("")
                .trim_start_matches('v');
            if version.starts_with(|first: char| first.is_ascii_digit())
                && version != "1.0"
                && !version.starts_with("1.0.")
            {
                return Err(line
                    .fault(0, format!("sysbench {version}"))
                    .expected("sysbench 1.0")
                    .remedy(
                        "Run sysbench 1.0: versions 0.4 and 0.5 print another report, and 1.1, which \
                         was never released, one that does not say how long the run took",
                    ));
            }
            run = Some(Run {
                version: Some(version.to_owned()),
                ..Run::default()
            });
        } else if !trimmed.is_empty() {
            run.get_or_insert_default().take(line, trimmed)?;
        }
    }
    finish(run, || text.end(), &mut harvest)?;
    if !harvest.drafts.is_empty() {
        harvest.remark_once(
            "sysbench writes compressible data: not to be compared on compressing storage",
        );
    }
    Ok(harvest)
}

fn finish(run: Option<Run>, fault: impl Fn() -> Fault, harvest: &mut Harvest) -> Result<(), Fault> {
    // What stands above the first line, such as the command, is no run.
    let Some(run) = run.filter(|run| run.version.is_some() || !run.is_empty()) else {
        return Ok(());
    };
    if let Some((section, title)) = LINES.get(run.values.len()) {
        return Err(fault().expected(format!("'{title}' in the section '{section}'")));
    }
    if !run.ended {
        return Err(fault().expected("'execution time (avg/stddev):' in 'Threads fairness:'"));
    }
    harvest.drafts.push(run.draft());
    Ok(())
}

impl Run {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.settings.is_empty()
    }

    fn take(&mut self, line: Line<'_>, trimmed: &str) -> Result<(), Fault> {
        if self.values.is_empty() {
            self.take_setting(line, trimmed)?;
        }
        if self.ended || self.is_section(trimmed) || trimmed.starts_with("[ ") {
            return Ok(());
        }
        if self.values.len() == LINES.len() {
            return self.take_fairness(line, trimmed);
        }
        let (section, title) = LINES[self.values.len()];
        let value = match (title, trimmed.split_once(title)) {
            ("percentile:", Some((before, value))) => {
                let percent = before.trim().trim_end_matches("th");
                self.percentile = Some(whole(line, percent, "a percentile such as 95th")?);
                value.trim()
            }
            (_, Some(("", value))) => value.trim(),
            _ if self.values.is_empty() => return Ok(()),
            _ => {
                return Err(line
                    .fault(0, line.quoted())
                    .expected(format!("'{title}' in the section '{section}'")));
            }
        };
        let value = if title == "total time:" {
            value.strip_suffix('s').ok_or_else(|| {
                line.fault_at(value, quoted(value))
                    .expected("seconds such as 2.0s")
            })?
        } else {
            value
        };
        self.values.push(number(line, value, title)?);
        Ok(())
    }

    /// Headings between the lines; the next line's must be its own.
    fn is_section(&self, trimmed: &str) -> bool {
        match LINES.get(self.values.len()) {
            Some((section, _)) => trimmed == *section,
            None => trimmed == "Threads fairness:",
        }
    }

    fn take_fairness(&mut self, line: Line<'_>, trimmed: &str) -> Result<(), Fault> {
        let wanted = if self.fairness {
            "execution time (avg/stddev):"
        } else {
            "events (avg/stddev):"
        };
        let wrong = || {
            line.fault(0, line.quoted())
                .expected(format!("'{wanted} N/N'"))
        };
        let value = trimmed.strip_prefix(wanted).ok_or_else(wrong)?.trim();
        let (mean, deviation) = value.split_once('/').ok_or_else(wrong)?;
        number(line, mean, wanted)?;
        number(line, deviation, wanted)?;
        // The deviation has two decimals: fewer are a line that was cut.
        if deviation
            .split_once('.')
            .is_none_or(|(_, decimals)| decimals.len() < 2)
        {
            return Err(wrong());
        }
        self.ended = self.fairness;
        self.fairness = true;
        Ok(())
    }

    fn take_setting(&mut self, line: Line<'_>, trimmed: &str) -> Result<(), Fault> {
        if let Some(threads) = trimmed.strip_prefix("Number of threads:") {
            let threads = whole(line, threads.trim(), "the number of threads")?;
            self.settings.push(("threads", threads.to_string()));
        } else if let Some(size) = trimmed.strip_prefix("Block size ") {
            self.settings.push(("block-size", bytes(line, size)?));
        } else if let Some(size) = trimmed.strip_suffix(" total file size") {
            self.settings.push(("file-size", bytes(line, size)?));
        } else if let Some(mode) = trimmed
            .strip_prefix("Doing ")
            .and_then(|rest| rest.strip_suffix(" test"))
        {
            self.settings.push(("mode", mode.to_owned()));
        } else if let Some(mode) = trimmed
            .strip_prefix("Using ")
            .and_then(|rest| rest.strip_suffix(" I/O mode"))
        {
            self.settings.push(("io-mode", mode.to_owned()));
        } else if let Some(flags) = trimmed.strip_prefix("Extra file open flags:") {
            self.settings.push(("open-flags", flags.trim().to_owned()));
        } else if trimmed.starts_with("CPU speed:") || trimmed.starts_with("SQL statistics:") {
            return Err(line
                .fault(0, line.quoted())
                .expected("the report of sysbench fileio")
                .remedy("Run sysbench fileio: other tests do not measure disks"));
        }
        Ok(())
    }

    fn draft(self) -> Draft {
        let mut draft = Draft::new("sysbench", "sysbench", "");
        draft.version = self.version;
        for (name, value) in &self.settings {
            draft.factor(name, value);
        }
        let v = &self.values;
        let directions = [("read", v[0], v[3]), ("write", v[1], v[4])];
        for (name, iops, rate) in directions.into_iter().filter(|(_, iops, _)| *iops > 0.0) {
            let mut phase = bytes_phase(name, rate * MIB as f64);
            figure(&mut phase, "iops", iops, Unit::PerSecond);
            draft.phases.push(phase);
        }
        if v[2] > 0.0 {
            draft
                .phases
                .push(PhaseRecord::bare("fsync", Some(v[2]), Unit::PerSecond));
        }
        let (seconds, events) = (v[5], v[6]);
        let rate = (seconds > 0.0).then(|| events / seconds);
        let mut all = PhaseRecord::bare("events", rate, Unit::PerSecond);
        all.ops = Some(events as u64);
        figure(&mut all, "latency-mean", v[8] / 1e3, Unit::Seconds);
        figure(&mut all, "latency-max", v[9] / 1e3, Unit::Seconds);
        if let Some(percent) = self.percentile {
            figure(
                &mut all,
                &format!("latency-p{percent}"),
                v[10] / 1e3,
                Unit::Seconds,
            );
        }
        draft.phases.push(all);
        for phase in &mut draft.phases {
            phase.elapsed_ns = Some(nanoseconds(seconds));
            flag_if_short(phase, seconds);
        }
        draft.elapsed_ns = Some(nanoseconds(seconds));
        draft
    }
}

/// `16KiB`: bytes.
fn bytes(line: Line<'_>, size: &str) -> Result<String, Fault> {
    size.trim()
        .parse::<Bytes>()
        .map(|bytes| bytes.0.to_string())
        .map_err(|error| {
            line.fault_at(size, error.to_string())
                .expected("a size such as 16KiB")
        })
}

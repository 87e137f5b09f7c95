//! JSON, JSON+ and client mode: each object in the file is one run, its jobs are phases of one
//! trial because they ran together.
use super::jobs::{flag_repeated_offsets, grouped, settings};
use super::model::{Direction, Job, Latency, Output};
use crate::import::Reading;
use crate::import::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short};
use crate::import::error::Fault;
use crate::import::text::{Text, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::histogram::Latencies;
use raidlab_core::time::Span;
use raidlab_core::units::KIB;
use raidlab_core::words::count;

/// The percentiles that are kept where there is no histogram.
const PERCENTILES: [(f64, &str); 4] = [
    (50.0, "latency-p50"),
    (90.0, "latency-p90"),
    (99.0, "latency-p99"),
    (99.9, "latency-p99.9"),
];

/// The row of client mode that sums all others.
const SUM_ROW: &str = "All clients";

pub(in crate::import) fn read_json(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let body = text.as_str();
    let mut place = Place { at: 0, line: 1 };
    // Notes and errors stand before, between and after the objects: an object begins with a line
    // that is `{` alone.
    while let Some(start) = next_object(body, place.at) {
        place.skip_chatter(body, start, &mut harvest);
        let mut stream = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Output>();
        let output = match stream.next() {
            Some(Ok(output)) => output,
            Some(Err(error)) => return Err(fault(&error, place.line)),
            None => return Err(text.end().expected("an object of JSON")),
        };
        let raw = &body[start..start + stream.byte_offset()];
        let draft = run(output, raw, place.line, &mut harvest)?;
        harvest.drafts.push(draft);
        place.pass(raw);
    }
    place.skip_chatter(body, body.len(), &mut harvest);
    Ok(harvest)
}

/// How far a file has been read.
struct Place {
    at: usize,
    line: usize,
}

impl Place {
    fn pass(&mut self, part: &str) {
        self.at += part.len();
        self.line += part.bytes().filter(|b| *b == b'\n').count();
    }

    fn skip_chatter(&mut self, body: &str, to: usize, harvest: &mut Harvest) {
        let part = &body[self.at..to];
        let mut lines = part
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        if let Some((i, first)) = lines.next() {
            let told = match lines.count() {
                0 => format!("not JSON, left out: {}", quoted(first)),
                more => format!(
                    "not JSON, left out: {} and {}",
                    quoted(first),
                    count(more, "more line")
                ),
            };
            harvest.remark(self.line + i, told);
        }
        self.pass(part);
    }
}

fn next_object(body: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in body[from..].split_inclusive('\n') {
        let whole = at == 0 || body.as_bytes()[at - 1] == b'\n';
        if whole && line.trim_end() == "{" {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn fault(error: &serde_json::Error, first_line: usize) -> Fault {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    Fault::at(
        first_line + error.line().max(1) - 1,
        error.column().max(1),
        what,
    )
    .expected("fio's JSON (--output-format=json or json+)")
    .remedy("Save fio's whole output again, with --output=FILE so that nothing is mixed in")
}

fn run(output: Output, raw: &str, line: usize, harvest: &mut Harvest) -> Result<Draft, Fault> {
    let missing = |what: &str| Fault::at(line, 1, "the object has none").expected(what.to_owned());
    let is_client = output.jobs.is_none();
    let mut jobs = output
        .jobs
        .or(output.client_stats)
        .ok_or_else(|| missing("jobs or client_stats"))?;
    let before = jobs.len();
    jobs.retain(|job| job.jobname != SUM_ROW || !is_client);
    if jobs.len() < before {
        harvest.remark(
            line,
            format!("the row '{SUM_ROW}' is a sum of the others: left out"),
        );
    }
    let groups = grouped(&jobs);
    if groups.is_empty() {
        return Err(missing("a job"));
    }
    let mut draft = Draft::new("fio", "fio", "");
    let names: Vec<&str> = groups.iter().map(|g| g.jobs[0].jobname.as_str()).collect();
    draft.factor("jobs", names.join(","));
    draft.version = Some(output.version.clone());
    draft.identity = Some(raw.to_owned());
    let runtime = jobs.iter().map(|job| job.job_runtime).max().unwrap_or(0);
    draft.elapsed_ns = runtime.checked_mul(1_000_000).filter(|ns| *ns > 0);
    // fio tells the time of its end.
    let end_ms = output
        .timestamp_ms
        .or(output.timestamp.and_then(|s| s.checked_mul(1000)));
    draft.started = end_ms.and_then(|end| started(end, runtime));
    settings(&mut draft, &output.global, &groups);
    for group in &groups {
        let prefix = &group.prefix;
        let directions: [(&str, Pick); 3] = [
            ("read", |job| &job.read),
            ("write", |job| &job.write),
            ("trim", |job| &job.trim),
        ];
        for (direction, pick) in directions {
            let phase = phase(&format!("{prefix}{direction}"), &group.jobs, pick, harvest);
            draft.phases.extend(phase);
        }
    }
    let failed = jobs.iter().find(|job| job.error != 0);
    draft.failed =
        failed.map(|job| format!("fio job {} ended with error {}", job.jobname, job.error));
    if draft.phases.is_empty() && draft.failed.is_none() {
        return Err(missing("a job that read, wrote or trimmed"));
    }
    flag_repeated_offsets(&mut draft, &output.global, &jobs);
    Ok(draft)
}

fn started(end_ms: u64, runtime_ms: u64) -> Option<String> {
    let begun = i64::try_from(end_ms.checked_sub(runtime_ms)?).ok()?;
    let time = jiff::Timestamp::from_millisecond(begun).ok()?;
    Some(time.to_string())
}

/// One direction of a job.
type Pick = fn(&Job) -> &Direction;

fn phase(name: &str, group: &[&Job], pick: Pick, harvest: &mut Harvest) -> Option<PhaseRecord> {
    let active: Vec<&Direction> = group
        .iter()
        .map(|job| pick(job))
        .filter(|d| d.total_ios > 0 || d.io_bytes > 0)
        .collect();
    let sum = |of: &dyn Fn(&Direction) -> u64| {
        active
            .iter()
            .fold(0_u64, |sum, d| sum.saturating_add(of(d)))
    };
    let runtime = active.iter().map(|d| d.runtime).max()?;
    let rate = |d: &&Direction| d.bw_bytes.unwrap_or(d.bw * KIB as f64);
    if active.iter().any(|d| d.bw_bytes.is_none()) {
        harvest.remark_once("this fio gives no bw_bytes: rates are from bw, whole KiB a second");
    }
    let mut phase = bytes_phase(name, active.iter().map(rate).sum());
    phase.bytes = Some(sum(&|d| d.io_bytes));
    phase.ops = Some(sum(&|d| d.total_ios));
    phase.elapsed_ns = runtime.checked_mul(1_000_000);
    flag_if_short(&mut phase, runtime as f64 / 1e3);
    phase.cpu_percent = Some(group.iter().map(|job| job.usr_cpu + job.sys_cpu).sum());
    figure(
        &mut phase,
        "iops",
        active.iter().map(|d| d.iops).sum(),
        Unit::PerSecond,
    );
    add_latency(&mut phase, &active, harvest);
    Some(phase)
}

/// The latency that has a distribution: of the whole operation when fio was asked for it
/// (`lat_percentiles=1`), otherwise of its completion.
fn add_latency(phase: &mut PhaseRecord, active: &[&Direction], harvest: &mut Harvest) {
    let pick = |of: fn(&Direction) -> Option<&Latency>| -> Option<Vec<&Latency>> {
        let all: Option<Vec<&Latency>> = active.iter().map(|d| of(d)).collect();
        all.filter(|all| all.iter().all(|l| l.has_distribution()))
    };
    let whole = pick(|d| d.lat_ns.as_ref());
    if whole.is_none() {
        harvest.remark_once(
            "latencies are fio's completion latencies (clat): without the time of submission",
        );
    }
    let Some(parts) = whole.or_else(|| pick(|d| d.clat_ns.as_ref())) else {
        return;
    };
    if parts.iter().all(|l| !l.bins.0.is_empty()) {
        let mut merged = Latencies::new();
        for part in parts {
            merged.merge(&histogram(part, &phase.phase, harvest));
        }
        phase.latency = Some(merged);
        return;
    }
    if let [only] = parts.as_slice() {
        for (percent, name) in PERCENTILES {
            if let Some(ns) = only.percentile(percent) {
                figure(phase, name, ns as f64 / 1e9, Unit::Seconds);
            }
        }
    } else {
        harvest.remark_once(
            "percentiles of several jobs cannot be joined: left out (json+ has histograms, which can)",
        );
    }
    let max = parts.iter().map(|l| l.max).max().unwrap_or(0);
    figure(phase, "latency-max", max as f64 / 1e9, Unit::Seconds);
    let n: f64 = parts.iter().map(|l| l.n as f64).sum();
    let mean = parts.iter().map(|l| l.mean * (l.n as f64 / n)).sum::<f64>();
    figure(phase, "latency-mean", mean / 1e9, Unit::Seconds);
}

fn histogram(latency: &Latency, phase: &str, harvest: &mut Harvest) -> Latencies {
    let mut counts = Latencies::new();
    let bins = latency.bins.0.iter().filter(|(_, count)| *count > 0);
    let top = bins.clone().map(|(ns, _)| *ns).fold(0.0, f64::max);
    let mut total = 0_u64;
    for (ns, count) in bins {
        let mut count = *count;
        total = total.saturating_add(count);
        // fio tells the maximum exactly, its bucket only to 1 %.
        if ns.to_bits() == top.to_bits() && latency.max > 0 {
            counts.record(Span(latency.max));
            count -= 1;
        }
        let middle = Span((*ns as u64).min(if latency.max > 0 {
            latency.max
        } else {
            u64::MAX
        }));
        counts.record_n(middle, count);
    }
    if total != latency.n {
        harvest.remark_once(format!(
            "the histogram of {phase} counts {total} operations, fio says {}",
            latency.n
        ));
    }
    counts
}

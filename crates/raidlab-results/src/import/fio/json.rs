//! JSON, JSON+ and client mode: each object in the file is one run, its jobs are phases of one
//! trial because they ran together.
use super::check::{CHANGED, contradiction};
use super::jobs::{Group, flag_repeated_offsets, grouped, settings};
use super::latency::add_latency;
use super::model::{Direction, Job, Output};
use super::objects::Objects;
use super::progress::{Progress, earlier, last_reports};
use super::row::Row;
use super::servers::{leave_earlier_rows, runtime, what};
use super::terse::take_rows;
use crate::import::Reading;
use crate::import::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short, no_figure};
use crate::import::error::Fault;
use crate::import::text::{Line, Text};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::flag::FlagKind;
use raidlab_core::units::KIB;
use raidlab_core::words::count;
use std::collections::BTreeSet;

/// The row of client mode that sums all others.
const SUM_ROW: &str = "All clients";

/// What the file lacks when there is nothing of fio's in it.
const JSON: &str = "fio's JSON (--output-format=json or json+)";

pub(in crate::import) fn read_json(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut objects = Objects::of(text.as_str());
    let mut runs: Vec<Run> = Vec::new();
    while let Some(raw) = objects.next(&mut harvest) {
        let mut stream = serde_json::Deserializer::from_str(raw).into_iter::<Output>();
        let output = match stream.next() {
            Some(Ok(output)) => output,
            Some(Err(error)) => return Err(fault(&error, &objects)),
            None => return Err(text.end().expected("an object of JSON")),
        };
        let raw = &raw[..stream.byte_offset()];
        let place = |offset: usize| objects.fault(offset);
        runs.push(run(output, raw, &place)?);
        objects.pass(raw.len());
    }
    if runs.is_empty() {
        return Err(text
            .lines()
            .find(|line| !line.text.trim().is_empty())
            .map_or_else(|| text.end(), |line| line.fault(0, line.quoted()))
            .expected(JSON)
            .remedy("Run fio with --output-format=json+ and --output=FILE, and import that file"));
    }
    let told: BTreeSet<Told> = runs.iter_mut().flat_map(|run| run.told.drain(..)).collect();
    keep_last_reports(runs, &mut harvest)?;
    add_terse(&objects.terse, &told, text, &mut harvest)?;
    Ok(harvest)
}

/// A job's name and group, and the KiB and milliseconds of its reads and writes.
type Told = (String, u64, [(u64, u64); 2]);

/// Adds the runs that are told in terse lines only.
fn add_terse(
    lines: &[Line<'_>],
    told: &BTreeSet<Told>,
    text: &Text<'_>,
    harvest: &mut Harvest,
) -> Result<(), Fault> {
    if lines.is_empty() {
        return Ok(());
    }
    text.whole_last_line()?;
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        rows.push(Row::of(*line)?);
    }
    rows.retain(|row| !told.contains(&(row.name.to_owned(), row.group, row.moved())));
    if rows.len() < lines.len() {
        let left = count(lines.len() - rows.len(), "line");
        harvest.remark_once(format!(
            "{left} of terse output tell what the JSON tells: left out"
        ));
    }
    take_rows(&rows, harvest)
}

/// Of each run the last report, without those that fio made on the way.
fn keep_last_reports(mut runs: Vec<Run>, harvest: &mut Harvest) -> Result<(), Fault> {
    let reports: Vec<Progress> = runs
        .iter_mut()
        .map(|run| std::mem::take(&mut run.progress))
        .collect();
    let last = last_reports(&reports);
    let earlier = earlier(&last);
    for (at, run) in runs.into_iter().enumerate() {
        if last[at] != at {
            continue;
        }
        tell_earlier(harvest, run.line, earlier[at], reports[at].told.is_some());
        if let Some(fault) = run.idle {
            return Err(fault);
        }
        harvest.absorb(run.harvest);
    }
    Ok(())
}

/// Says that reports on the way were left out.
pub(super) fn tell_earlier(harvest: &mut Harvest, line: usize, earlier: usize, is_timed: bool) {
    if earlier == 0 {
        return;
    }
    let what = count(earlier, "earlier report");
    let told = format!(
        "the last report of a run: {what} of it on the way (--status-interval) left out, since each \
         counts from the run's beginning"
    );
    harvest.remark(line, told);
    if !is_timed {
        harvest.remark_once(
            "reports without times are taken as those of one run when all counters go on at even \
             intervals; runs of their own belong in files of their own",
        );
    }
}

fn fault(error: &serde_json::Error, objects: &Objects<'_>) -> Fault {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    objects
        .fault_at(error.line(), error.column(), what)
        .expected(JSON)
        .remedy("Save fio's whole output again, with --output=FILE so that nothing is mixed in")
}

/// One report of fio's.
struct Run {
    /// Its trial, and what is to be known about it.
    harvest: Harvest,
    progress: Progress,
    line: usize,
    /// What terse output has of its jobs.
    told: Vec<Told>,
    /// Why it is no trial: no job has moved anything, as in a report before the first job began.
    idle: Option<Fault>,
}

/// One object as a trial. `place` is a fault at a byte of `raw`, the object's text.
fn run(output: Output, raw: &str, place: &dyn Fn(usize) -> Fault) -> Result<Run, Fault> {
    let line = place(0).line;
    let mut harvest = Harvest::default();
    let missing = |what: &str| {
        let mut fault = place(0).expected(what.to_owned());
        fault.found = "the object has none".to_owned();
        fault
    };
    let is_client = output.jobs.is_none();
    let mut jobs = output
        .jobs
        .or(output.client_stats)
        .ok_or_else(|| missing("jobs or client_stats"))?;
    refuse_contradictions(&jobs, raw, place)?;
    let before = jobs.len();
    jobs.retain(|job| job.jobname != SUM_ROW || !is_client);
    if jobs.len() < before {
        harvest.remark(
            line,
            format!("the row '{SUM_ROW}' is a sum of the others: left out"),
        );
    }
    let told = jobs.iter().map(|job| {
        let moved = [&job.read, &job.write].map(|d| (d.bytes() / KIB, d.runtime));
        (job.jobname.clone(), job.groupid, moved)
    });
    let told = told.collect();
    if is_client {
        leave_earlier_rows(&mut jobs, &output.global, line, &mut harvest);
    }
    let groups = grouped(&jobs);
    if groups.is_empty() {
        return Err(missing("a job"));
    }
    let mut draft = Draft::new("fio", "fio", "");
    let names: Vec<&str> = groups.iter().map(|g| g.jobs[0].jobname.as_str()).collect();
    draft.factor("jobs", names.join(","));
    draft.version = Some(output.version.clone());
    let runtime = runtime(&jobs, &output.global);
    draft.elapsed_ns = runtime.checked_mul(1_000_000).filter(|ns| *ns > 0);
    let told_ms = output
        .timestamp_ms
        .or(output.timestamp.and_then(|s| s.checked_mul(1000)));
    // fio tells the time of its end; a client of several hosts that of its start.
    let run_ms = if is_client { 0 } else { runtime };
    draft.started = told_ms.and_then(|told| started(told, run_ms));
    draft.identity = Some(raw.to_owned());
    // Versions before 2.2.5 tell no time.
    draft.is_one_run = told_ms.is_some();
    settings(&mut draft, &output.global, &groups);
    for group in &groups {
        add_phases(&mut draft, group, &mut harvest);
    }
    let failed = jobs.iter().find(|job| job.error != 0);
    draft.failed =
        failed.map(|job| format!("fio job {} ended with error {}", job.jobname, job.error));
    let is_idle = draft.phases.is_empty() && draft.failed.is_none();
    flag_repeated_offsets(&mut draft, &output.global, &jobs);
    let ramps = |job: &Job| job.option(&output.global, "ramp_time").is_some();
    let syncs = |job: &Job| {
        let mut options = job.options.keys().chain(output.global.keys());
        options.any(|option| option.contains("sync"))
    };
    let whats: Vec<String> = jobs.iter().map(what).collect();
    let progress = Progress {
        what: format!(
            "{}\n{:?}\n{}",
            output.version,
            output.global,
            whats.join("\n")
        ),
        told: told_ms,
        told_to: if output.timestamp_ms.is_some() {
            1
        } else {
            1000
        },
        elapsed: jobs.iter().filter_map(|job| job.elapsed).max(),
        ramps: jobs.iter().any(ramps),
        syncs: jobs.iter().any(syncs),
        failed: jobs.iter().any(|job| job.error != 0),
        jobs: jobs.iter().map(Job::counters).collect(),
    };
    harvest.drafts.push(draft);
    Ok(Run {
        harvest,
        progress,
        line,
        told,
        idle: is_idle.then(|| missing("a job that read, wrote or trimmed")),
    })
}

fn refuse_contradictions(
    jobs: &[Job],
    raw: &str,
    place: &dyn Fn(usize) -> Fault,
) -> Result<(), Fault> {
    for (number, job) in jobs.iter().enumerate() {
        if let Some(found) = contradiction(job, number, raw) {
            let mut fault = place(found.at).expected(found.expected).remedy(CHANGED);
            fault.found = found.found;
            return Err(fault);
        }
    }
    Ok(())
}

fn started(end_ms: u64, runtime_ms: u64) -> Option<String> {
    let begun = i64::try_from(end_ms.checked_sub(runtime_ms)?).ok()?;
    let time = jiff::Timestamp::from_millisecond(begun).ok()?;
    Some(time.to_string())
}

/// One direction of a job.
type Pick = fn(&Job) -> &Direction;

/// The directions of a group that moved something.
fn add_phases(draft: &mut Draft, group: &Group<'_>, harvest: &mut Harvest) {
    let directions: [(&str, Pick); 4] = [
        ("read", |job| &job.read),
        ("write", |job| &job.write),
        ("trim", |job| &job.trim),
        ("mixed", |job| &job.mixed),
    ];
    let before = draft.phases.len();
    for (direction, pick) in directions {
        let name = format!("{}{direction}", group.prefix);
        let phase = phase(&name, &group.jobs, pick, harvest);
        if direction == "mixed" && phase.is_some() && draft.phases.len() > before {
            harvest.remark_once("mixed is a sum of the other directions: left out");
        } else {
            draft.phases.extend(phase);
        }
    }
}

fn phase(name: &str, group: &[&Job], pick: Pick, harvest: &mut Harvest) -> Option<PhaseRecord> {
    let active: Vec<&Direction> = group
        .iter()
        .map(|job| pick(job))
        .filter(|d| d.is_active())
        .collect();
    let runtime = active.iter().map(|d| d.runtime).max()?;
    if active.iter().any(|d| d.is_in_kib()) {
        harvest.remark_once(
            "this fio (before 2.21) tells io_bytes in KiB: bytes are whole KiB, and rates are those \
             by the runtime",
        );
    } else if active.iter().any(|d| d.bw_bytes.is_none()) {
        harvest.remark_once(
            "this fio (before 3.2) tells no bw_bytes: rates are io_bytes by the runtime",
        );
    }
    let rate = active.iter().map(|d| d.rate()).sum();
    let mut phase = if runtime > 0 {
        bytes_phase(name, rate)
    } else {
        let reason = "fio counts no whole millisecond of it";
        no_figure(name, Unit::BytesPerSecond, FlagKind::TooShort, reason)
    };
    let sum = |of: &dyn Fn(&Direction) -> Option<u64>| {
        active
            .iter()
            .try_fold(0_u64, |sum, d| Some(sum.saturating_add(of(d)?)))
    };
    phase.bytes = sum(&|d| Some(d.bytes()));
    phase.ops = sum(&|d| d.total_ios);
    phase.elapsed_ns = runtime.checked_mul(1_000_000);
    if runtime > 0 {
        flag_if_short(&mut phase, runtime as f64 / 1e3);
    }
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

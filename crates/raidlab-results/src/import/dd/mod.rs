//! dd's report on standard error: GNU's of any coreutils version and in any language, BusyBox's, and
//! that of BSD and macOS.
//!
//! The rate that dd prints has two or three digits, in units of 1000 (GNU) or 1024 (BusyBox); it is
//! computed from bytes and seconds instead, which it may not contradict.
mod command;
mod transfer;

use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, flag_if_short, nanoseconds, no_figure};
use super::error::Fault;
use super::format::dd_records;
use super::scan::parse_part;
use super::text::{Line, Text, quoted};
use crate::record::Unit;
use command::{Command, OF_ONE_SIDE};
use raidlab_core::flag::{Flag, FlagKind};
use std::collections::{BTreeMap, VecDeque};
use transfer::{foreign, transfer};

const LOCALE: &str = "Run dd with LC_ALL=C, so that its report is in English with decimal points";

/// One report of dd, line by line.
#[derive(Clone, Debug, Default)]
struct Report {
    line: usize,
    /// What dd had to complain of before it.
    complaint: Option<String>,
    records_in: Option<u64>,
    records_out: Option<u64>,
    whole_block: u64,
    bytes: u64,
    seconds: f64,
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut reports: Vec<(Report, Option<Command>)> = Vec::new();
    let mut open = Report::default();
    let mut commands: VecDeque<Command> = VecDeque::new();
    for line in text.lines() {
        // status=progress writes over its line with carriage returns.
        for part in line.text.split('\r') {
            let trimmed = part.trim();
            if let Some((full, told)) = dd_records(trimmed) {
                take_records(line, part, (full, told), &mut open)?;
            } else if let Some(found) = Command::all_of(trimmed) {
                unfinished(&open, line)?;
                open.complaint = None;
                commands = found;
            } else if open.records_out.is_some() && !trimmed.is_empty() && !is_truncated(trimmed) {
                take_transfer(line, part, &mut open)?;
                let report = std::mem::take(&mut open);
                reports.push((report, commands.front().cloned()));
                // A command line serves a repeated run too, unless it calls dd several times.
                if commands.len() > 1 {
                    commands.pop_front();
                }
            } else if !trimmed.is_empty() && !is_progress(trimmed) && !is_truncated(trimmed) {
                if is_complaint(trimmed) {
                    open.complaint.get_or_insert_with(|| trimmed.to_owned());
                }
                harvest.remark(line.number, format!("{} is left out", quoted(part)));
            }
        }
    }
    if open.records_in.is_some() {
        return Err(text
            .end()
            .expected("the line '… bytes … copied, …'")
            .remedy("Run dd without status=noxfer; if it was not given, the output is cut short"));
    }
    let kept = without_progress(reports, &mut harvest);
    if kept.iter().any(|(_, command)| command.is_none()) {
        harvest.remark_once(
            "dd does not say whether it read or wrote: the phase is called copy. With its command \
             line above (`sh -x` prints it) it is called read or write",
        );
    }
    for (report, command) in kept {
        join(&mut harvest.drafts, draft(report, command));
    }
    Ok(harvest)
}

/// What the end of a full device is told as.
const FULL: &str = "No space left on device";

/// Whether dd says that it could not read or write, which it reports of up to there.
fn is_complaint(trimmed: &str) -> bool {
    let what = [
        "error reading",
        "error writing",
        "read error",
        "write error",
        "Input/output error",
        FULL,
    ];
    trimmed.starts_with("dd: ") && what.iter().any(|words| trimmed.contains(words))
}

fn unfinished(open: &Report, line: Line<'_>) -> Result<(), Fault> {
    if open.records_in.is_none() {
        return Ok(());
    }
    Err(line
        .fault(0, line.quoted())
        .expected("the line '… bytes … copied, …'")
        .remedy("Run dd without status=noxfer"))
}

fn take_records(
    line: Line<'_>,
    part: &str,
    (full, told): (u64, Option<bool>),
    open: &mut Report,
) -> Result<(), Fault> {
    // Whatever the language, those that were read come first.
    let is_in = told.unwrap_or(open.records_in.is_none() || open.records_out.is_some());
    match (is_in, open.records_in, open.records_out) {
        (true, None, None) => {
            open.line = line.number;
            open.records_in = Some(full);
        }
        (false, Some(_), None) => open.records_out = Some(full),
        (true, _, Some(_)) => unfinished(open, line)?,
        _ => {
            let missing = if is_in {
                "'records out'"
            } else {
                "'records in' above"
            };
            return Err(line.fault_at(part, quoted(part)).expected(missing));
        }
    }
    Ok(())
}

fn take_transfer(line: Line<'_>, part: &str, open: &mut Report) -> Result<(), Fault> {
    let what = "'N bytes (…) copied, N s, N MB/s'";
    let told = match parse_part(line, part.trim(), what, transfer) {
        Ok(told) => told,
        Err(fault) => match foreign(part.trim()) {
            Some(told) if told.contradicted().is_none() => told,
            found => {
                let is_foreign = found.is_some() || part.contains(" s, ") || part.contains("/s");
                return Err(if is_foreign {
                    fault.remedy(LOCALE)
                } else {
                    fault
                });
            }
        },
    };
    if let Some(should) = told.contradicted() {
        return Err(line
            .fault_at(part.trim(), quoted(part))
            .expected(format!(
                "a rate of about {should:.0} B/s, which is {} bytes by {} s",
                told.bytes, told.seconds
            ))
            .remedy(
                "Save dd's whole output again: bytes, seconds or rate are not as dd wrote them",
            ));
    }
    open.bytes = told.bytes;
    open.seconds = told.seconds;
    open.whole_block = open
        .records_out
        .filter(|records| *records > 0)
        .map_or(0, |records| told.bytes / records);
    Ok(())
}

fn is_progress(trimmed: &str) -> bool {
    let of_bsd = trimmed.contains(" transferred ") && !trimmed.contains(" transferred in ");
    (trimmed.contains(" copied, ") || of_bsd) && trimmed.ends_with("/s")
        || foreign(trimmed).is_some()
}

fn is_truncated(trimmed: &str) -> bool {
    trimmed.ends_with(" truncated record") || trimmed.ends_with(" truncated records")
}

/// Leaves out the reports that dd makes on the way when it is sent SIGUSR1: fewer records out than
/// in, and the next report goes on from there.
fn without_progress(
    reports: Vec<(Report, Option<Command>)>,
    harvest: &mut Harvest,
) -> Vec<(Report, Option<Command>)> {
    let mut kept: Vec<(Report, Option<Command>)> = Vec::new();
    let mut grows = false;
    for (report, command) in reports {
        if let Some((before, _)) = kept.last() {
            let goes_on = before.records_out < report.records_out
                && before.seconds < report.seconds
                && before.whole_block == report.whole_block;
            if goes_on && before.records_out < before.records_in {
                harvest.remark(before.line, "a report on the way (SIGUSR1) is left out");
                kept.pop();
            } else if goes_on && command.is_none() {
                grows = true;
            }
        }
        kept.push((report, command));
    }
    if grows {
        harvest.remark_once(
            "some reports could be made on the way by one dd (SIGUSR1); they are taken as runs of \
             their own, since their sizes differ",
        );
    }
    kept
}

/// Puts a write and a read of the same thing that follow each other into one trial.
fn join(drafts: &mut Vec<Draft>, next: Draft) {
    if let Some(last) = drafts.last_mut() {
        let shared = |draft: &Draft| -> BTreeMap<String, String> {
            let mut factors = draft.factors.clone();
            factors.retain(|name, _| !OF_ONE_SIDE.contains(&name.as_str()));
            factors
        };
        let same =
            !next.label.is_empty() && last.label == next.label && shared(last) == shared(&next);
        let new = next
            .phases
            .iter()
            .all(|p| last.phases.iter().all(|q| p.phase != q.phase));
        if same && new {
            last.phases.extend(next.phases);
            last.factors.extend(next.factors);
            last.settings.extend(next.settings);
            last.elapsed_ns = last
                .elapsed_ns
                .zip(next.elapsed_ns)
                .map(|(a, b)| a.saturating_add(b));
            last.command = last
                .command
                .take()
                .zip(next.command)
                .map(|(a, b)| format!("{a}; {b}"));
            return;
        }
    }
    drafts.push(next);
}

fn draft(report: Report, command: Option<Command>) -> Draft {
    let command = command.unwrap_or_default();
    let (phase, path) = command.direction();
    let mut draft = Draft::new("dd", "dd", path.unwrap_or(""));
    draft.factor("file-size", report.bytes);
    command.settings(&mut draft);
    draft.command = Some(command.text).filter(|text| !text.is_empty());
    let mut record = if report.seconds > 0.0 && report.bytes > 0 {
        let mut record = bytes_phase(phase, report.bytes as f64 / report.seconds);
        flag_if_short(&mut record, report.seconds);
        record
    } else {
        let reason = format!("{} bytes in {} s", report.bytes, report.seconds);
        no_figure(phase, Unit::BytesPerSecond, FlagKind::TooShort, &reason)
    };
    // As many blocks were read as written when dd is done; a report on the way comes between.
    if report.records_out.map(|out| out.saturating_add(1)) == report.records_in {
        record.flags.push(Flag::new(
            FlagKind::Interrupted,
            "dd had read a block more than it had written: a report on the way (SIGUSR1), or dd \
             ended early",
        ));
    }
    match report.complaint {
        // What went before is the device's own rate.
        Some(full) if full.contains(FULL) => {
            let reason = format!("dd wrote as much as there was room for: {full}");
            record.flags.push(Flag::new(FlagKind::Other, reason));
        }
        failed => draft.failed = failed,
    }
    record.bytes = Some(report.bytes);
    record.elapsed_ns = Some(nanoseconds(report.seconds));
    draft.elapsed_ns = record.elapsed_ns;
    draft.phases.push(record);
    draft
}

//! dd's report on standard error: GNU's of any coreutils version, in the C locale, BusyBox's, and that
//! of BSD and macOS.
//!
//! The rate that dd prints has two or three digits, in units of 1000 (GNU) or 1024 (BusyBox); it is
//! computed from bytes and seconds instead, which it may not contradict.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, flag_if_short, nanoseconds, no_figure};
use super::error::Fault;
use super::format::is_dd_records;
use super::scan::{decimal, expected, integer, parse_part, words};
use super::text::{Line, Text, quoted};
use crate::record::Unit;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::{GIB, KIB, MIB};
use std::collections::VecDeque;
use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, opt, preceded};
use winnow::prelude::*;
use winnow::token::take_till;

const LOCALE: &str = "Run dd with LC_ALL=C, so that its report is in English with decimal points";

/// One report of dd, line by line.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    line: usize,
    records_in: Option<u64>,
    records_out: Option<u64>,
    whole_block: u64,
    bytes: u64,
    seconds: f64,
}

/// A command line found above a report.
#[derive(Clone, Debug, Default)]
struct Command {
    text: String,
    input: Option<String>,
    output: Option<String>,
    block: Option<String>,
    count: Option<String>,
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
            if is_dd_records(trimmed) {
                take_records(line, part, &mut open)?;
            } else if let Some(found) = Command::all_of(trimmed) {
                unfinished(&open, line)?;
                commands = found;
            } else if open.records_out.is_some() && !trimmed.is_empty() && !is_truncated(trimmed) {
                take_transfer(line, part, &mut open)?;
                reports.push((open, commands.front().cloned()));
                // A command line serves a repeated run too, unless it calls dd several times.
                if commands.len() > 1 {
                    commands.pop_front();
                }
                open = Report::default();
            } else if !trimmed.is_empty() && !is_progress(trimmed) && !is_truncated(trimmed) {
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

fn unfinished(open: &Report, line: Line<'_>) -> Result<(), Fault> {
    if open.records_in.is_none() {
        return Ok(());
    }
    Err(line
        .fault(0, line.quoted())
        .expected("the line '… bytes … copied, …'")
        .remedy("Run dd without status=noxfer"))
}

fn take_records(line: Line<'_>, part: &str, open: &mut Report) -> Result<(), Fault> {
    let direction = alt(("in".value(true), "out".value(false)));
    let records = (
        integer,
        preceded('+', digit1),
        preceded(words("records"), direction),
    );
    let what = "'N+N records in' or 'N+N records out'";
    let (full, _, is_in) =
        parse_part(line, part.trim(), what, records).map_err(|fault| fault.remedy(LOCALE))?;
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

/// What the line of the transfer tells.
struct Transfer {
    bytes: u64,
    seconds: f64,
    /// Bytes a second and the step they were rounded to; `None` where dd could not divide.
    rate: Option<(f64, f64)>,
}

/// `2997 bytes (3.0 kB, 2.9 KiB) copied, 3.2217e-05 s, 93.0 MB/s` of GNU's,
/// `2997 bytes (2.9KB) copied, 0.000032 seconds, 88.7MB/s` of BusyBox's,
/// `2997 bytes transferred in 0.000032 secs (93003227 bytes/sec)` of BSD's and macOS's.
fn transfer(input: &mut &str) -> winnow::Result<Transfer> {
    let bytes = integer.parse_next(input)?;
    (' ', alt(("bytes", "byte")), ' ')
        .context(expected("bytes"))
        .parse_next(input)?;
    let is_bsd = opt("transferred in ").parse_next(input)?.is_some();
    if is_bsd {
        let seconds = decimal.parse_next(input)?;
        let rate = delimited(" secs (", told_rate, " bytes/sec)");
        let rate = rate
            .context(expected("secs and a rate such as (93003227 bytes/sec)"))
            .parse_next(input)?;
        return Ok(Transfer {
            bytes,
            seconds,
            rate: Some(rate),
        });
    }
    opt(delimited('(', take_till(1.., ')'), ") ")).parse_next(input)?;
    words("copied,").parse_next(input)?;
    let seconds = decimal.parse_next(input)?;
    (' ', alt(("seconds", "s")), ", ")
        .context(expected("s,"))
        .parse_next(input)?;
    let rate = alt((
        "Infinity B/s".value(None),
        (told_rate, alt((decimal_unit, binary_unit)))
            .map(|((rate, step), unit)| Some((rate * unit, step * unit))),
    ));
    let rate = rate
        .context(expected("a rate such as 93.0 MB/s"))
        .parse_next(input)?;
    Ok(Transfer {
        bytes,
        seconds,
        rate,
    })
}

/// A number and the step of its last digit.
fn told_rate(input: &mut &str) -> winnow::Result<(f64, f64)> {
    let (rate, digits) = decimal.with_taken().parse_next(input)?;
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len().min(20));
    Ok((rate, 0.1_f64.powi(decimals as i32)))
}

/// GNU's units are powers of 1000 after a space.
fn decimal_unit(input: &mut &str) -> winnow::Result<f64> {
    let prefix = alt((
        "k".value(1e3),
        "M".value(1e6),
        "G".value(1e9),
        "T".value(1e12),
        "P".value(1e15),
        "E".value(1e18),
        "".value(1.0),
    ));
    delimited(' ', prefix, "B/s").parse_next(input)
}

/// BusyBox's are powers of 1024 without one.
fn binary_unit(input: &mut &str) -> winnow::Result<f64> {
    let prefix = alt((
        alt(("K", "k")).value(KIB as f64),
        "M".value(MIB as f64),
        "G".value(GIB as f64),
        "T".value(GIB as f64 * 1024.0),
        "".value(1.0),
    ));
    (prefix, "B/s").map(|(unit, _)| unit).parse_next(input)
}

fn take_transfer(line: Line<'_>, part: &str, open: &mut Report) -> Result<(), Fault> {
    let what = "'N bytes (…) copied, N s, N MB/s'";
    let told = parse_part(line, part.trim(), what, transfer).map_err(|fault| {
        let foreign = part.contains(" s, ") || part.contains("octets") || part.contains("/s");
        if foreign { fault.remedy(LOCALE) } else { fault }
    })?;
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

impl Transfer {
    /// What the rate should be when it is not bytes by seconds. Seconds have six digits (GNU) or six
    /// decimals, the rate a last digit that is rounded one way or the other.
    fn contradicted(&self) -> Option<f64> {
        let (rate, step) = self.rate?;
        let bytes = self.bytes as f64;
        if self.seconds <= 0.0 || bytes <= 0.0 {
            return None;
        }
        let slack = (self.seconds * 1e-5).max(1e-6);
        let least = bytes / (self.seconds + slack) - step;
        let most = bytes / (self.seconds - slack).max(0.0) + step;
        (rate < least || rate > most).then_some(bytes / self.seconds)
    }
}

fn is_progress(trimmed: &str) -> bool {
    let of_bsd = trimmed.contains(" transferred ") && !trimmed.contains(" transferred in ");
    (trimmed.contains(" copied, ") || of_bsd) && trimmed.ends_with("/s")
}

fn is_truncated(trimmed: &str) -> bool {
    trimmed.ends_with(" truncated record") || trimmed.ends_with(" truncated records")
}

impl Command {
    /// The calls of dd on a shell's line, with or without a prompt.
    fn all_of(trimmed: &str) -> Option<VecDeque<Self>> {
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        let calls = words.iter().enumerate();
        let starts: Vec<usize> = calls
            .filter(|(_, word)| **word == "dd" || word.ends_with("/dd"))
            .map(|(at, _)| at)
            .collect();
        let ends = starts.iter().skip(1).copied().chain([words.len()]);
        let found: VecDeque<Self> = starts
            .iter()
            .zip(ends)
            .map(|(from, to)| Self::of(&words[*from..to]))
            .filter(|command| command.input.is_some() || command.output.is_some())
            .collect();
        (!found.is_empty()).then_some(found)
    }

    fn of(words: &[&str]) -> Self {
        let mut command = Self::default();
        let mut own = Vec::new();
        for word in words {
            let ends = word.ends_with([';', ',']);
            let word = word.trim_end_matches([';', ',']);
            if matches!(word, "&&" | "||" | "|" | "&" | "") || word.starts_with("2>") {
                break;
            }
            own.push(word);
            if let Some((key, value)) = word.split_once('=') {
                let slot = match key {
                    "if" => Some(&mut command.input),
                    "of" => Some(&mut command.output),
                    "bs" => Some(&mut command.block),
                    "count" => Some(&mut command.count),
                    _ => None,
                };
                if let Some(slot) = slot {
                    *slot = Some(value.to_owned());
                }
            }
            if ends {
                break;
            }
        }
        command.text = own.join(" ");
        command
    }

    /// The phase, and what was read or written.
    fn direction(&self) -> (&'static str, Option<&str>) {
        let input = self.input.as_deref();
        let output = self.output.as_deref();
        let made = ["/dev/zero", "/dev/urandom", "/dev/random"];
        match (input, output) {
            (Some(from), to) if made.contains(&from) && to != Some("/dev/null") => ("write", to),
            (Some(from), Some("/dev/null")) if !made.contains(&from) => ("read", Some(from)),
            _ => ("copy", output),
        }
    }
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
        let same =
            !next.label.is_empty() && last.label == next.label && last.factors == next.factors;
        let new = next
            .phases
            .iter()
            .all(|p| last.phases.iter().all(|q| p.phase != q.phase));
        if same && new {
            last.phases.extend(next.phases);
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

/// A size as dd's operands have it: `4096k`, `1M` and `1MiB` are binary, `1kB` and `1MB` decimal.
fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let scale = match suffix {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "kB" | "KB" => 1000,
        "k" | "K" | "KiB" => KIB,
        "MB" => 1_000_000,
        // BSD's m and g are GNU's M and G.
        "M" | "m" | "MiB" => MIB,
        "GB" => 1_000_000_000,
        "G" | "g" | "GiB" => GIB,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

fn draft(report: Report, command: Option<Command>) -> Draft {
    let command = command.unwrap_or_default();
    let (phase, path) = command.direction();
    let mut draft = Draft::new("dd", "dd", path.unwrap_or(""));
    draft.factor("file-size", report.bytes);
    if let Some(block) = command.block.as_deref().and_then(size) {
        draft.factor("block-size", block);
    }
    if let Some(count) = &command.count {
        draft.setting("count", count);
    }
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
    record.bytes = Some(report.bytes);
    record.elapsed_ns = Some(nanoseconds(report.seconds));
    draft.elapsed_ns = record.elapsed_ns;
    draft.phases.push(record);
    draft
}

//! tiotest: its two tables, and its terse lines (`-T`).
//!
//! MB are 2^20 bytes. The table's times are rounded to 0.1 s, so the rate is its rate column and
//! never MB by time; the terse form has both at full precision.
use super::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short, nanoseconds};
use super::error::Fault;
use super::scan::{decimal, expected, integer, number, parse_line, words};
use super::text::{Line, Text};
use super::{Reading, Source};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::MIB;
use raidlab_core::words::count;
use winnow::Result;
use winnow::ascii::space0;
use winnow::combinator::{alt, delimited, preceded, terminated};
use winnow::prelude::*;

/// Phases in the order of the profile, with their names in the table and in terse lines.
const PHASES: [(&str, &str, &str); 4] = [
    ("write", "Write", "write"),
    ("random-write", "Random Write", "rwrite"),
    ("read", "Read", "read"),
    ("random-read", "Random Read", "rread"),
];

/// The four latency columns.
type Latency = [f64; 4];

/// What is known about a phase before it becomes a record.
struct Measured {
    which: usize,
    /// Bytes as printed: whole MB in the table.
    bytes: f64,
    exact: bool,
    rate: f64,
    seconds: f64,
    cpu: Option<(f64, f64)>,
    latency: Option<Latency>,
}

pub(super) fn read_table(text: &Text<'_>, source: &Source<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut lines = text
        .lines()
        .filter(|line| !line.text.trim().is_empty())
        .peekable();
    while let Some(line) = lines.next() {
        if !line.text.starts_with("Tiotest results for ") {
            harvest.remark(line.number, format!("{} is left out", line.quoted()));
            continue;
        }
        let title = delimited(
            words("Tiotest results for"),
            integer,
            words("concurrent io threads:"),
        );
        let threads = parse_line(line, "Tiotest results for N concurrent io threads:", title)?;
        let mut ended = false;
        let mut measured: Vec<Measured> = Vec::new();
        for line in lines.by_ref() {
            if line.text.starts_with('`') {
                ended = true;
                break;
            }
            if !is_frame(line.text) && !line.text.contains("Usr CPU") {
                let row = parse_line(line, "a row of the table", table_row)?;
                refuse_contradiction(line, &row)?;
                measured.push(row);
            }
        }
        if !ended {
            return Err(text.end().expected("the lower edge of the table"));
        }
        let latencies = lines.next_if(|line| line.text.starts_with("Tiotest latency results:"));
        if latencies.is_some() {
            read_latencies(text, &mut lines, &mut measured)?;
        }
        let mut draft = draft(&measured, source, &mut harvest, line, threads > 1)?;
        draft.factor("threads", threads);
        harvest.drafts.push(draft);
    }
    text.whole_last_line()?;
    if !harvest.drafts.is_empty() {
        harvest.remark_once("the table rounds times to 0.1 s and sizes to MB: bytes and times are not kept, `tiotest -T` has them");
        about_data(&mut harvest);
    }
    Ok(harvest)
}

fn about_data(harvest: &mut Harvest) {
    harvest.remark_once("tiotest writes zeros: not to be compared on compressing storage");
}

/// The rate is MB by time: sizes are rounded to MB, times to 0.1 s and rates to 0.001 MB/s.
fn refuse_contradiction(line: Line<'_>, row: &Measured) -> Result<(), Fault> {
    let (size, rate) = (row.bytes / MIB as f64, row.rate / MIB as f64);
    let least = (size - 0.501).max(0.0) / (row.seconds + 0.051) - 0.001;
    let most = (size + 0.501) / (row.seconds - 0.051).max(0.0) + 0.001;
    if (least..=most).contains(&rate) {
        return Ok(());
    }
    Err(line
        .fault(0, format!("{rate} MB/s"))
        .expected(format!(
            "{least:.3} to {most:.3} MB/s, which is {size} MB by {} s",
            row.seconds
        ))
        .remedy(
            "Save tiotest's whole output again: its size, time or rate is not as tiotest wrote it",
        ))
}

fn is_frame(text: &str) -> bool {
    text.starts_with([',', '+']) || text.starts_with("|---")
}

fn read_latencies<'a>(
    text: &Text<'_>,
    lines: &mut impl Iterator<Item = Line<'a>>,
    measured: &mut [Measured],
) -> Result<(), Fault> {
    let mut total = false;
    for line in lines {
        if line.text.starts_with('`') {
            if let Some(without) = measured.iter().find(|m| m.latency.is_none()) {
                let name = PHASES[without.which].1;
                return Err(line
                    .fault(0, "the table ends")
                    .expected(format!("a row for {name}")));
            }
            return if total {
                Ok(())
            } else {
                Err(line.fault(0, "the table ends").expected("a row for Total"))
            };
        }
        if is_frame(line.text) || line.text.contains("Average latency") {
            continue;
        }
        let (which, latency) = parse_line(line, "a row of the latency table", latency_row)?;
        let Some(which) = which else {
            total = true;
            continue;
        };
        let Some(phase) = measured.iter_mut().find(|m| m.which == which) else {
            return Err(line
                .fault(0, line.quoted())
                .expected("a phase of the table above"));
        };
        phase.latency = Some(latency);
    }
    Err(text.end().expected("the lower edge of the latency table"))
}

fn name(input: &mut &str) -> Result<usize> {
    // The longer names first: they begin with the shorter ones.
    preceded(
        space0,
        alt((
            PHASES[1].1.value(1_usize),
            PHASES[3].1.value(3),
            PHASES[0].1.value(0),
            PHASES[2].1.value(2),
        )),
    )
    .context(expected("Write, Random Write, Read or Random Read"))
    .parse_next(input)
}

/// A number and the unit and bar after it.
fn cell<'s>(unit: &'static str) -> impl Parser<&'s str, f64, winnow::error::ContextError> {
    terminated(preceded(space0, decimal), words(unit))
}

fn table_row(input: &mut &str) -> Result<Measured> {
    let (which, megabytes) = preceded('|', (name, cell("MBs |"))).parse_next(input)?;
    let (seconds, rate) = (cell("s |"), cell("MB/s |")).parse_next(input)?;
    let cpu = (cell("% |"), cell("% |")).parse_next(input)?;
    Ok(Measured {
        which,
        bytes: megabytes * MIB as f64,
        exact: false,
        rate: rate * MIB as f64,
        seconds,
        cpu: Some(cpu),
        latency: None,
    })
}

fn latency_row(input: &mut &str) -> Result<(Option<usize>, Latency)> {
    let total = preceded(space0, "Total").value(None);
    let (_, which, _) = ('|', alt((total, name.map(Some))), words("|")).parse_next(input)?;
    let (mean, max) = (cell("ms |"), cell("ms |")).parse_next(input)?;
    let (above_2, above_10) = (cell("|"), cell("|")).parse_next(input)?;
    Ok((which, [mean, max, above_2, above_10]))
}

pub(super) fn read_terse(text: &Text<'_>, source: &Source<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut measured: Vec<Measured> = Vec::new();
    let mut first = None;
    for line in text.lines().filter(|line| !line.text.trim().is_empty()) {
        let Some((name, values)) = line.text.split_once(':') else {
            harvest.remark(line.number, format!("{} is left out", line.quoted()));
            continue;
        };
        let values: Vec<&str> = values.split(',').collect();
        let counted = |n: usize| {
            if values.len() == n {
                return Ok(());
            }
            Err(line
                .cut(count(values.len(), "value"))
                .expected(format!("{} after '{name}:'", count(n, "value"))))
        };
        if name == "total" {
            counted(4)?;
            latency(line, &values)?;
            let Some(begun) = first.take() else {
                return Err(line
                    .fault(0, line.quoted())
                    .expected("the phases before the total"));
            };
            let draft = draft(&measured, source, &mut harvest, begun, true)?;
            harvest.drafts.push(draft);
            measured.clear();
        } else if let Some(which) = PHASES.iter().position(|(_, _, terse)| *terse == name) {
            counted(8)?;
            if measured.iter().any(|m| m.which >= which) {
                return Err(line.fault(0, line.quoted()).expected("the line 'total:'"));
            }
            first.get_or_insert(line);
            measured.push(terse(line, which, &values)?);
        } else {
            harvest.remark(line.number, format!("{} is left out", line.quoted()));
        }
    }
    if first.is_some() {
        return Err(text.end().expected("the line 'total:'"));
    }
    text.whole_last_line()?;
    about_data(&mut harvest);
    Ok(harvest)
}

fn latency(line: Line<'_>, values: &[&str]) -> Result<Latency, Fault> {
    let mut latency = [0.0; 4];
    for (value, cell) in latency.iter_mut().zip(values) {
        *value = number(line, cell, "a latency")?;
    }
    Ok(latency)
}

fn terse(line: Line<'_>, which: usize, values: &[&str]) -> Result<Measured, Fault> {
    let bytes = number(line, values[0], "MB")? * MIB as f64;
    let seconds = number(line, values[1], "seconds")?;
    let user = number(line, values[2], "user seconds")?;
    let system = number(line, values[3], "system seconds")?;
    if seconds <= 0.0 {
        return Err(line
            .fault_at(values[1], "no time")
            .expected("seconds above 0"));
    }
    Ok(Measured {
        which,
        bytes,
        exact: true,
        rate: bytes / seconds,
        seconds,
        cpu: Some((100.0 * user / seconds, 100.0 * system / seconds)),
        latency: Some(latency(line, &values[4..])?),
    })
}

/// `threaded`: several threads, or a number of threads that is not known.
fn draft(
    measured: &[Measured],
    source: &Source<'_>,
    harvest: &mut Harvest,
    line: Line<'_>,
    threaded: bool,
) -> Result<Draft, Fault> {
    if measured.is_empty() {
        return Err(line
            .fault(0, line.quoted())
            .expected("at least one phase below"));
    }
    let mut draft = Draft::new("tiobench", "tiotest", "");
    let whole = |which: usize| measured.iter().find(|m| m.which == which).map(|m| m.bytes);
    for one in measured {
        let mut phase = bytes_phase(PHASES[one.which].0, one.rate);
        if one.exact {
            phase.bytes = Some(one.bytes.round() as u64);
            phase.elapsed_ns = Some(nanoseconds(one.seconds));
        }
        flag_if_short(&mut phase, one.seconds);
        add_cpu(&mut phase, one.cpu, threaded);
        if let Some(latency) = one.latency {
            add_latency(&mut phase, latency);
        }
        let sequential = whole(one.which - one.which % 2);
        if one.which % 2 == 1 && sequential.is_some_and(|bytes| bytes <= one.bytes) {
            credit(&mut phase, one.bytes, None, source);
            harvest.remark(
                line.number,
                format!(
                    "{} moved as much as the sequential phase: read as the defect of tiotest 0.3.5 \
                     to 0.4.2, which credits the whole file",
                    phase.phase
                ),
            );
        }
        draft.phases.push(phase);
    }
    draft
        .phases
        .sort_by_key(|phase| PHASES.iter().position(|p| p.0 == phase.phase));
    Ok(draft)
}

/// Adds processor use, unless the tool sums it wrongly.
pub(super) fn add_cpu(phase: &mut PhaseRecord, cpu: Option<(f64, f64)>, threaded: bool) {
    let Some((user, system)) = cpu else { return };
    if threaded {
        phase.flags.push(Flag::new(
            FlagKind::ToolDefect,
            "tiotest adds the processor use of the whole process once a thread: left out (unless \
             the run is known to have had one thread)",
        ));
        return;
    }
    phase.cpu_percent = Some(user + system);
    figure(phase, "cpu-user", user, Unit::Percent);
    figure(phase, "cpu-system", system, Unit::Percent);
}

/// Adds the mean and largest latency (ms) and the shares above 2 and 10 s (per cent).
pub(super) fn add_latency(phase: &mut PhaseRecord, latency: Latency) {
    let [mean, max, above_2, above_10] = latency;
    figure(phase, "latency-mean", mean / 1e3, Unit::Seconds);
    figure(phase, "latency-max", max / 1e3, Unit::Seconds);
    figure(phase, "share-above-2s", above_2, Unit::Percent);
    figure(phase, "share-above-10s", above_10, Unit::Percent);
}

/// Deals with a random rate for which the whole file was credited: computes it from the operations
/// when their number and size are known, and voids it otherwise.
pub(super) fn credit(
    phase: &mut PhaseRecord,
    credited: f64,
    block: Option<u64>,
    source: &Source<'_>,
) {
    let known = source
        .tiotest_random_ops
        .zip(block)
        .filter(|_| credited > 0.0);
    let (Some((ops, block)), Some(rate)) = (known, phase.rate) else {
        let mut flag = Flag::new(
            FlagKind::ToolDefect,
            "tiotest 0.3.5 to 0.4.2 credits a random phase with the whole file: the rate is too \
             high by an unknown factor",
        );
        flag.voids = true;
        phase.flags.push(flag);
        phase.bytes = None;
        return;
    };
    let done = ops.saturating_mul(block);
    phase.rate = Some(rate * (done as f64 / credited));
    phase.bytes = Some(done);
    phase.ops = Some(ops);
    phase.flags.push(Flag::new(
        FlagKind::ToolDefect,
        format!("tiotest credited the whole file: computed from {ops} operations of {block} bytes"),
    ));
}

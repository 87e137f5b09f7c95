//! Terse version 3 (`--minimal`): a line a job, fields separated by semicolons.
use super::check::{CHANGED, wrong_kib};
use crate::import::Reading;
use crate::import::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short, nanoseconds};
use crate::import::error::Fault;
use crate::import::scan::{number, whole};
use crate::import::text::{Line, Text, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::units::KIB;

/// First field of each direction.
const READ: usize = 5;
const WRITE: usize = 46;
/// User and system processor use, in per cent.
const CPU: usize = 87;
/// Fields without those of disks (nine each) and the job's description.
const FIELDS: usize = 121;

/// Where things are in a direction, from its first field.
const LATENCIES: std::ops::Range<usize> = 4..12;
const PERCENTILES: std::ops::Range<usize> = 12..32;
/// Fields of a direction.
const DIRECTION: usize = 41;

pub(in crate::import) fn read_terse(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    for line in text.lines().filter(|line| !line.text.trim().is_empty()) {
        let fields: Vec<&str> = line.text.trim_end().split(';').collect();
        let is_terse = fields.get(1).is_some_and(|f| f.starts_with("fio-"));
        if !is_terse {
            if line.text.contains(';') {
                return Err(line.fault(0, line.quoted()).expected("a line '3;fio-…'"));
            }
            harvest.remark(line.number, format!("{} is left out", line.quoted()));
            continue;
        }
        harvest.drafts.push(job(line, &fields)?);
    }
    text.whole_last_line()?;
    if !harvest.drafts.is_empty() {
        harvest.remark_once(
            "terse output has whole KiB/s and µs and no options; jobs of one name are taken as \
             repeats. --output-format=json+ has it all",
        );
    }
    Ok(harvest)
}

fn job(line: Line<'_>, fields: &[&str]) -> Result<Draft, Fault> {
    if fields[0] != "3" {
        return Err(line
            .fault(0, format!("terse version {}", quoted(fields[0])))
            .expected("terse version 3")
            .remedy("Run fio with --output-format=json+ instead"));
    }
    if fields.len() < FIELDS {
        return Err(line
            .cut(format!("{} fields", fields.len()))
            .expected(format!("at least {FIELDS} fields")));
    }
    let mut draft = Draft::new("fio", "fio", "");
    draft.factor("jobs", fields[2]);
    draft.version = Some(fields[1].to_owned());
    let error = whole(line, fields[4], "the job's error")?;
    if error != 0 {
        draft.failed = Some(format!("fio job {} ended with error {error}", fields[2]));
    }
    let cpu = percent(line, fields[CPU])? + percent(line, fields[CPU + 1])?;
    for (name, first) in [("read", READ), ("write", WRITE)] {
        if let Some(mut phase) = direction(line, name, &fields[first..first + DIRECTION])? {
            phase.cpu_percent = Some(cpu);
            draft.phases.push(phase);
        }
    }
    if draft.phases.is_empty() && draft.failed.is_none() {
        return Err(line
            .fault(0, "a job without I/O")
            .expected("KiB read or written"));
    }
    Ok(draft)
}

fn direction(line: Line<'_>, name: &str, fields: &[&str]) -> Result<Option<PhaseRecord>, Fault> {
    let kibibytes = whole(line, fields[0], "KiB")?;
    let rate = number(line, fields[1], "KiB/s")?;
    let iops = number(line, fields[2], "IOPS")?;
    let milliseconds = number(line, fields[3], "ms")?;
    let mut values = [0.0; 8];
    for (value, cell) in values.iter_mut().zip(&fields[LATENCIES]) {
        *value = number(line, cell, "a latency in µs")?;
    }
    // Submission: least, largest, mean, deviation; then completion.
    let [_, _, _, _, _, completion_max, completion_mean, _] = values;
    let mut percentiles = Vec::with_capacity(PERCENTILES.len());
    for cell in &fields[PERCENTILES] {
        percentiles.push(percentile(line, cell)?);
    }
    if kibibytes == 0 {
        return Ok(None);
    }
    if let Some(should) = wrong_kib(kibibytes, rate, milliseconds.round() as u64) {
        return Err(line
            .fault_at(fields[1], format!("{} KiB/s", fields[1]))
            .expected(format!(
                "about {should:.0} KiB/s, which is {kibibytes} KiB by {milliseconds} ms"
            ))
            .remedy(CHANGED));
    }
    let mut phase = bytes_phase(name, rate * KIB as f64);
    phase.bytes = kibibytes.checked_mul(KIB);
    phase.elapsed_ns = Some(nanoseconds(milliseconds / 1e3));
    flag_if_short(&mut phase, milliseconds / 1e3);
    figure(&mut phase, "iops", iops, Unit::PerSecond);
    let wanted = [
        (50.0, "latency-p50"),
        (90.0, "latency-p90"),
        (99.0, "latency-p99"),
        (99.9, "latency-p99.9"),
    ];
    for (percent, name) in wanted {
        let same = |p: &&(f64, f64)| (p.0 - percent).abs() < 1e-6;
        if let Some((_, us)) = percentiles.iter().find(same) {
            figure(&mut phase, name, us / 1e6, Unit::Seconds);
        }
    }
    figure(
        &mut phase,
        "latency-max",
        completion_max / 1e6,
        Unit::Seconds,
    );
    figure(
        &mut phase,
        "latency-mean",
        completion_mean / 1e6,
        Unit::Seconds,
    );
    Ok(Some(phase))
}

/// `99.000000%=1`: per cent and µs.
fn percentile(line: Line<'_>, cell: &str) -> Result<(f64, f64), Fault> {
    let (percent, us) = cell.split_once("%=").ok_or_else(|| {
        line.fault_at(cell, quoted(cell))
            .expected("a percentile such as 99.0%=12")
    })?;
    Ok((number(line, percent, "per cent")?, number(line, us, "µs")?))
}

fn percent(line: Line<'_>, cell: &str) -> Result<f64, Fault> {
    let digits = cell
        .strip_suffix('%')
        .ok_or_else(|| line.fault_at(cell, quoted(cell)).expected("per cent"))?;
    number(line, digits, "per cent")
}

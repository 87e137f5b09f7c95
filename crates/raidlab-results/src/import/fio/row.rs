//! A line of terse output, field by field.
use super::check::{CHANGED, wrong_kib};
use super::progress::{Counters, Moved};
use crate::import::error::Fault;
use crate::import::scan::{number, whole};
use crate::import::text::{Line, quoted};
use raidlab_core::units::KIB;

/// First field of each direction.
const READ: usize = 5;
const WRITE: usize = 46;
/// User and system processor use, in per cent.
const CPU: usize = 87;
/// Context switches, major and minor page faults.
const COUNTERS: std::ops::Range<usize> = 89..92;
/// Fields without those of disks (nine each) and the job's description.
const FIELDS: usize = 121;

/// Fields of a disk.
const DISK: usize = 9;

/// Where things are in a direction, from its first field.
const LATENCIES: std::ops::Range<usize> = 4..12;
const PERCENTILES: std::ops::Range<usize> = 12..32;
/// The mean of the rates that were sampled, and its share in the rate of the group.
const SHARE: usize = 38;
const MEAN: usize = 39;
/// Fields of a direction.
const DIRECTION: usize = 41;

/// Whether a line is one of terse output, of whatever version.
pub(super) fn is_terse(line: &str) -> bool {
    let second = line.split(';').nth(1);
    second.is_some_and(|field| field.starts_with("fio-"))
}

/// One direction of a row.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kibibytes: u64,
    pub(super) rate: f64,
    pub(super) iops: f64,
    pub(super) milliseconds: f64,
    /// Completion, in µs.
    min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) percentiles: Vec<(f64, f64)>,
    pub(super) group: Option<GroupRate>,
}

/// What a row tells about the rate of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GroupRate {
    /// It is the row's.
    Own,
    /// KiB/s.
    Of(f64),
}

/// One line.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) line: Line<'a>,
    pub(super) version: &'a str,
    pub(super) name: &'a str,
    pub(super) group: u64,
    pub(super) error: u64,
    pub(super) read: Told,
    pub(super) write: Told,
    pub(super) cpu: f64,
    others: Vec<u64>,
    /// What follows of disks, as it is.
    disks: &'a str,
}

impl<'a> Row<'a> {
    pub(super) fn of(line: Line<'a>) -> Result<Self, Fault> {
        let text = line.text.trim_end();
        let fields: Vec<&str> = text.split(';').collect();
        if fields[0].trim_start() != "3" {
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
        let others = fields[COUNTERS].iter();
        let disks = fields[FIELDS..].first().map_or("", |first| {
            &text[first.as_ptr() as usize - text.as_ptr() as usize..]
        });
        Ok(Self {
            line,
            version: fields[1],
            name: fields[2],
            group: whole(line, fields[3], "the job's group")?,
            error: whole(line, fields[4], "the job's error")?,
            read: direction(line, &fields[READ..READ + DIRECTION])?,
            write: direction(line, &fields[WRITE..WRITE + DIRECTION])?,
            cpu: percent(line, fields[CPU])? + percent(line, fields[CPU + 1])?,
            others: others
                .map(|cell| whole(line, cell, "a counter"))
                .collect::<Result<_, _>>()?,
            disks,
        })
    }

    /// KiB and milliseconds of both directions, as JSON has them, too.
    pub(super) fn moved(&self) -> [(u64, u64); 2] {
        [&self.read, &self.write].map(|told| (told.kibibytes, told.milliseconds.round() as u64))
    }

    /// Whether its job has moved nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.read.kibibytes == 0 && self.write.kibibytes == 0
    }

    pub(super) fn counters(&self) -> Counters {
        let moved = |told: &Told| Moved {
            bytes: told.kibibytes.saturating_mul(KIB),
            runtime: told.milliseconds.round() as u64,
            ops: 0,
            min: told.min,
            max: told.max,
            mean: told.mean,
        };
        Counters {
            group: self.group,
            begun: 0,
            directions: vec![moved(&self.read), moved(&self.write)],
            others: self.others.clone(),
        }
    }

    /// Whether disks have done the same when both lines were printed, and something.
    pub(super) fn is_of_one_moment(&self, other: &Self) -> bool {
        let worked = |cell: &&str| cell.bytes().any(|b| (b'1'..=b'9').contains(&b));
        let cells: Vec<&str> = self.disks.split(';').collect();
        // A name, and how much it has done; a description of the job may follow the disks.
        let disks = cells.chunks_exact(DISK);
        let mut disks = disks.take_while(|disk| disk[DISK - 1].ends_with('%'));
        let has_worked = disks.any(|disk| disk[1..].iter().any(worked));
        has_worked && self.disks == other.disks && self.line.text != other.line.text
    }
}

fn direction(line: Line<'_>, fields: &[&str]) -> Result<Told, Fault> {
    let kibibytes = whole(line, fields[0], "KiB")?;
    let rate = number(line, fields[1], "KiB/s")?;
    let iops = number(line, fields[2], "IOPS")?;
    let milliseconds = number(line, fields[3], "ms")?;
    let mut values = [0.0; 8];
    for (value, cell) in values.iter_mut().zip(&fields[LATENCIES]) {
        *value = number(line, cell, "a latency in µs")?;
    }
    // Submission: least, largest, mean, deviation; then completion.
    let [_, _, _, _, min, max, mean, _] = values;
    let mut percentiles = Vec::with_capacity(PERCENTILES.len());
    for cell in &fields[PERCENTILES] {
        percentiles.push(percentile(line, cell)?);
    }
    if kibibytes > 0
        && let Some(should) = wrong_kib(kibibytes, rate, milliseconds.round() as u64)
    {
        return Err(line
            .fault_at(fields[1], format!("{} KiB/s", fields[1]))
            .expected(format!(
                "about {should:.0} KiB/s, which is {kibibytes} KiB by {milliseconds} ms"
            ))
            .remedy(CHANGED));
    }
    // Both only tell rows apart.
    let told = |cell: &str| cell.trim_end_matches('%').parse::<f64>().unwrap_or(0.0);
    let (share, sampled) = (told(fields[SHARE]), told(fields[MEAN]));
    let group = if share >= 100.0 {
        Some(GroupRate::Own)
    } else {
        (share > 0.0).then_some(GroupRate::Of(sampled * 100.0 / share))
    };
    Ok(Told {
        kibibytes,
        rate,
        iops,
        milliseconds,
        min,
        max,
        mean,
        percentiles,
        group,
    })
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

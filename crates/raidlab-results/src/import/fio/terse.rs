//! Terse version 3 (`--minimal`): a line a job, fields separated by semicolons.
//!
//! Clones of a job (`numjobs` without `group_reporting`) have a line each, which looks like that of a
//! repeated run. They are told apart by what each line says of its whole group: the share that it has
//! in the group's rate.
use super::progress::{Progress, earlier, last_reports};
use super::row::{GroupRate, Row, Told, is_terse};
use super::tell_earlier;
use crate::import::Reading;
use crate::import::draft::{Draft, Harvest, bytes_phase, figure, flag_if_short, nanoseconds};
use crate::import::error::Fault;
use crate::import::text::Text;
use crate::record::{PhaseRecord, Unit};
use raidlab_core::units::KIB;

/// Most jobs that fio runs at once.
const MOST_JOBS: usize = 4096;

/// The percentiles that are kept.
const WANTED: [(f64, &str); 4] = [
    (50.0, "latency-p50"),
    (90.0, "latency-p90"),
    (99.0, "latency-p99"),
    (99.9, "latency-p99.9"),
];

pub(in crate::import) fn read_terse(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.text.trim().is_empty()) {
        if is_terse(line.text) {
            rows.push(Row::of(line)?);
        } else if line.text.contains(';') {
            return Err(line.fault(0, line.quoted()).expected("a line '3;fio-…'"));
        } else {
            harvest.remark(line.number, format!("{} is left out", line.quoted()));
        }
    }
    text.whole_last_line()?;
    take_rows(&rows, &mut harvest)?;
    Ok(harvest)
}

/// Makes trials of rows in the order of the file.
pub(super) fn take_rows(rows: &[Row<'_>], harvest: &mut Harvest) -> Result<(), Fault> {
    let reports = reports(rows);
    let progress: Vec<Progress> = reports.iter().map(|units| progress(units)).collect();
    let last = last_reports(&progress);
    let earlier = earlier(&last);
    for (at, units) in reports
        .iter()
        .enumerate()
        .filter(|(at, _)| last[*at] == *at)
    {
        tell_earlier(harvest, units[0][0].line.number, earlier[at], false);
        for unit in units {
            for clones in by_name(unit) {
                let draft = trial(&clones, harvest)?;
                harvest.drafts.push(draft);
            }
        }
    }
    if !rows.is_empty() {
        harvest.remark_once(
            "terse output has whole KiB/s and µs and no options; jobs of one name are taken as \
             repeats unless their shares in the group's rate tell them to have run together. \
             --output-format=json+ has it all",
        );
    }
    Ok(())
}

/// Rows of one group that were printed at once.
type Printed<'r, 'a> = &'r [Row<'a>];

/// The groups of each report: their numbers grow within one.
fn reports<'r, 'a>(rows: &'r [Row<'a>]) -> Vec<Vec<Printed<'r, 'a>>> {
    let mut reports: Vec<Vec<Printed<'r, 'a>>> = Vec::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let (unit, after) = rest.split_at(printed_together(rest));
        let open = reports.last_mut().filter(|units| {
            let before = &units[units.len() - 1][0];
            before.group < first.group && before.version == first.version
        });
        match open {
            Some(units) => units.push(unit),
            None => reports.push(vec![unit]),
        }
        rest = after;
    }
    reports
}

/// How many rows from the first on are of its group and report.
fn printed_together(rows: &[Row<'_>]) -> usize {
    let first = &rows[0];
    let alike = |row: &&Row<'_>| row.group == first.group && row.version == first.version;
    let most = rows.iter().take(MOST_JOBS).take_while(alike).count();
    if let Some(found) = of_one_rate(&rows[..most]) {
        return found;
    }
    // Rows of jobs that have not begun are of one report with each other, and of no run.
    if first.is_idle() {
        return rows[..most].iter().take_while(|row| row.is_idle()).count();
    }
    let others = rows[1..most].iter();
    1 + others.take_while(|row| first.is_of_one_moment(row)).count()
}

/// How many rows from the first on have together the rate that it tells of its group.
fn of_one_rate(rows: &[Row<'_>]) -> Option<usize> {
    let first = rows.first()?;
    let mut sums = [Sum::of(first.read.group), Sum::of(first.write.group)];
    if sums.iter().all(|sum| sum.group.is_none()) {
        return None;
    }
    let mut counts = 1..=rows.len();
    counts.find(|count| {
        let row = &rows[*count - 1];
        sums[0].add(&row.read);
        sums[1].add(&row.write);
        sums.iter().all(Sum::is_whole)
    })
}

/// Rows of a group added up in one direction.
struct Sum {
    group: Option<GroupRate>,
    rows: f64,
    kibibytes: f64,
    longest: f64,
}

impl Sum {
    fn of(group: Option<GroupRate>) -> Self {
        Self {
            group,
            rows: 0.0,
            kibibytes: 0.0,
            longest: 1.0,
        }
    }

    fn add(&mut self, told: &Told) {
        self.rows += 1.0;
        self.kibibytes += told.kibibytes as f64;
        self.longest = self.longest.max(told.milliseconds);
    }

    /// Whether the group's rate is what fio makes of these: their sum by the longest time.
    fn is_whole(&self) -> bool {
        let rate = match self.group {
            None => return true,
            Some(GroupRate::Own) => return self.rows < 1.5,
            Some(GroupRate::Of(rate)) => rate,
        };
        // Each row's KiB are rounded down, and the rate is.
        let slack = 2.0 + rate * 1e-5;
        let least = self.kibibytes * 1e3 / self.longest - slack;
        let most = (self.kibibytes + self.rows) * 1e3 / self.longest + slack;
        (least..=most).contains(&rate)
    }
}

fn progress(units: &[Printed<'_, '_>]) -> Progress {
    let rows = || units.iter().flat_map(|unit| unit.iter());
    let names: Vec<String> = rows()
        .map(|row| format!("{} {:?}", row.group, row.name))
        .collect();
    Progress {
        what: format!("{}\n{}", units[0][0].version, names.join("\n")),
        failed: rows().any(|row| row.error != 0),
        jobs: rows().map(Row::counters).collect(),
        ..Progress::default()
    }
}

/// Rows of one name each, in the order of their first.
fn by_name<'r, 'a>(unit: Printed<'r, 'a>) -> Vec<Vec<&'r Row<'a>>> {
    let mut names: Vec<Vec<&Row<'a>>> = Vec::new();
    for row in unit {
        match names.iter_mut().find(|rows| rows[0].name == row.name) {
            Some(rows) => rows.push(row),
            None => names.push(vec![row]),
        }
    }
    names
}

/// A job with its clones.
fn trial(clones: &[&Row<'_>], harvest: &mut Harvest) -> Result<Draft, Fault> {
    let first = clones[0];
    let mut draft = Draft::new("fio", "fio", "");
    draft.factor("jobs", first.name);
    if clones.len() > 1 {
        draft.factor("numjobs", clones.len());
        harvest.remark_once(
            "rows of one job that ran together (numjobs) are added up; percentiles of several \
             cannot be joined and are left out (json+ has histograms, which can)",
        );
    }
    draft.version = Some(first.version.to_owned());
    if let Some(row) = clones.iter().find(|row| row.error != 0) {
        let (name, error) = (row.name, row.error);
        draft.failed = Some(format!("fio job {name} ended with error {error}"));
    }
    let cpu = clones.iter().map(|row| row.cpu).sum();
    let directions = [
        (
            "read",
            clones.iter().map(|row| &row.read).collect::<Vec<_>>(),
        ),
        ("write", clones.iter().map(|row| &row.write).collect()),
    ];
    for (name, mut told) in directions {
        told.retain(|told| told.kibibytes > 0);
        if let Some(mut phase) = phase(name, &told) {
            phase.cpu_percent = Some(cpu);
            draft.phases.push(phase);
        }
    }
    if draft.phases.is_empty() && draft.failed.is_none() {
        return Err(first
            .line
            .fault(0, "a job without I/O")
            .expected("KiB read or written"));
    }
    Ok(draft)
}

fn phase(name: &str, told: &[&Told]) -> Option<PhaseRecord> {
    let longest = told.iter().map(|told| told.milliseconds).reduce(f64::max)?;
    let sum = |of: fn(&Told) -> f64| told.iter().map(|told| of(told)).sum::<f64>();
    let mut phase = bytes_phase(name, sum(|told| told.rate) * KIB as f64);
    let kibibytes = told.iter().map(|told| told.kibibytes);
    let kibibytes = kibibytes.fold(0_u64, u64::saturating_add);
    phase.bytes = kibibytes.checked_mul(KIB);
    phase.elapsed_ns = Some(nanoseconds(longest / 1e3));
    flag_if_short(&mut phase, longest / 1e3);
    figure(&mut phase, "iops", sum(|told| told.iops), Unit::PerSecond);
    if let [only] = told {
        for (percent, name) in WANTED {
            let same = |p: &&(f64, f64)| (p.0 - percent).abs() < 1e-6;
            if let Some((_, us)) = only.percentiles.iter().find(same) {
                figure(&mut phase, name, us / 1e6, Unit::Seconds);
            }
        }
    }
    let max = told.iter().map(|told| told.max).fold(0.0, f64::max);
    figure(&mut phase, "latency-max", max / 1e6, Unit::Seconds);
    // As many operations as their rate made in their time.
    let ops = |told: &Told| told.iops * told.milliseconds;
    let all = told.iter().map(|told| ops(told)).sum::<f64>();
    let mean = match told {
        [only] => only.mean,
        _ if all > 0.0 => told.iter().map(|told| told.mean * (ops(told) / all)).sum(),
        _ => return Some(phase),
    };
    figure(&mut phase, "latency-mean", mean / 1e6, Unit::Seconds);
    Some(phase)
}

//! Phases whose rate changed within runs: their figure is a mean of different paces.
use super::distribution::windows;
use crate::record::{PhaseRecord, Provenance, Unit};
use crate::report::document::{Block, Cell, Column, Table};
use crate::report::format;
use crate::report::group::{Group, RunValue, median, phases};
use raidlab_core::time::Span;
use raidlab_stats::course::{Course, LEAST_WINDOWS};

/// Most rows of the table.
const MOST_LINES: usize = 40;

/// A run that is long enough to tell, with the width of its windows in seconds.
struct Run {
    course: Course,
    width: f64,
}

impl Run {
    /// `None` of a run that is too short, or whose unit is none of the windows.
    fn of(record: &PhaseRecord, unit: Unit) -> Option<Self> {
        if !matches!(unit, Unit::BytesPerSecond | Unit::PerSecond) {
            return None;
        }
        let windows = windows(record, unit);
        let rates: Vec<f64> = windows.iter().map(|point| point.y).collect();
        Some(Self {
            course: Course::of(&rates).ok()?,
            width: record.series_width_ns as f64 / 1e9,
        })
    }
}

/// How the rate of one run of a phase changed, in words; `None` when it did not, or the run is too short to tell.
#[must_use]
pub fn course_of(record: &PhaseRecord) -> Option<String> {
    let run = Run::of(record, record.unit)?;
    (run.course != Course::Even).then(|| words(&[&run], record.unit))
}

/// The table of phases whose rate did not stay at one level; nothing where all did, or were too short to tell.
pub(crate) fn courses(profile: &str, groups: &[Group<'_>]) -> Vec<Block> {
    let columns = vec![
        Column::text("phase"),
        Column::text("cell"),
        Column::text("runs"),
        Column::text("rate"),
    ];
    let caption = format!(
        "{profile}: phases whose rate changed within runs by more than 5 %, levels of {} windows or more, medians of the runs",
        LEAST_WINDOWS / 2
    );
    let lines = changed(groups);
    if lines.is_empty() {
        return Vec::new();
    }
    // The least change that is told, where there are too many of them.
    let mut changes: Vec<f64> = lines.iter().map(|line| line.change).collect();
    changes.sort_by(|a, b| b.total_cmp(a));
    let least = changes.get(MOST_LINES - 1).copied().unwrap_or(0.0);
    let all = lines.len();
    let mut table = Table::new(format!("{profile}-courses"), caption, columns).named_by(2);
    let told = lines.into_iter().filter(|line| line.change >= least);
    table
        .rows
        .extend(told.take(MOST_LINES).map(|line| line.cells()));
    let mut why = why(groups).to_owned();
    if all > MOST_LINES {
        why.push_str(&format!(
            " {} lesser changes are left out.",
            all - MOST_LINES
        ));
    }
    vec![Block::Table(table), Block::paragraph(why)]
}

/// What the reader is to make of it.
fn why(groups: &[Group<'_>]) -> &'static str {
    if groups
        .iter()
        .all(|group| *group.provenance == Provenance::Simulated)
    {
        "The figure of such a phase is the mean over paces: a longer or shorter run has another one. So it is when a cache is \
         full, when what is dirty is old enough to be written, when reading comes to what is cached, and from zone to zone of a hard disk."
    } else {
        "The figure of such a phase is the mean over paces: a longer or shorter run has another one. So it is when a cache is \
         full, when what is dirty is old enough to be written, when reading comes to what is cached, when a drive is too hot, when \
         others use the disk, and from zone to zone of a hard disk."
    }
}

/// How a phase went in the runs of a cell.
pub(crate) struct Line<'g> {
    pub(crate) phase: &'g str,
    pub(crate) cell: String,
    /// Runs that are long enough to tell.
    pub(crate) runs: usize,
    /// Those of them whose rate changed.
    pub(crate) changed: usize,
    /// Those of these that went the same way, which is told.
    pub(crate) alike: usize,
    /// Of the levels.
    pub(crate) unit: Unit,
    /// Which way: of the first of those that are alike.
    pub(crate) course: Course,
    /// Rate and first second of each level of steps, ends of what rises or falls, extremes of what swings: medians of those
    /// that are alike.
    pub(crate) levels: Vec<(f64, Option<f64>)>,
    pub(crate) words: String,
    /// The greatest of its levels over the least.
    change: f64,
}

impl Line<'_> {
    fn cells(&self) -> Vec<Cell> {
        let also = match self.changed - self.alike {
            0 => String::new(),
            others => format!("; otherwise in {others}"),
        };
        vec![
            Cell::text(self.phase),
            Cell::text(self.cell.clone()),
            Cell::text(format!("{} of {}", self.changed, self.runs)),
            Cell::text(format!("{}{also}", self.words)),
        ]
    }
}

/// The phases whose rate did not stay at one level, phase by phase.
pub(crate) fn changed<'g>(groups: &[Group<'g>]) -> Vec<Line<'g>> {
    let phases = phases(groups);
    let of_phase = |phase: &&'g str| {
        let phase = *phase;
        groups.iter().filter_map(move |group| line(group, phase))
    };
    phases.iter().flat_map(of_phase).collect()
}

fn line<'g>(group: &Group<'g>, phase: &'g str) -> Option<Line<'g>> {
    let unit = group.unit(phase)?;
    let of = |run: RunValue<'_>| Run::of(run.phase, unit);
    let runs: Vec<Run> = group.runs(phase).into_iter().filter_map(of).collect();
    let changed: Vec<&Run> = runs
        .iter()
        .filter(|run| run.course != Course::Even)
        .collect();
    // What most of them did; of what as many did, the first.
    let many = |run: &Run| changed.iter().filter(|other| alike(other, run)).count();
    let first = changed.iter().rev().max_by_key(|run| many(run))?;
    let same: Vec<&Run> = changed
        .iter()
        .copied()
        .filter(|run| alike(run, first))
        .collect();
    Some(Line {
        phase,
        cell: group.label.clone(),
        runs: runs.len(),
        changed: changed.len(),
        alike: same.len(),
        unit,
        course: same[0].course.clone(),
        levels: levels(&same),
        words: words(&same, unit),
        change: median(same.iter().map(|run| change(&run.course)))?,
    })
}

/// The levels of runs that went the same way, by the medians of each.
fn levels(same: &[&Run]) -> Vec<(f64, Option<f64>)> {
    let middle = |of: &dyn Fn(&Run) -> Option<f64>| {
        median(same.iter().filter_map(|run| of(run))).unwrap_or(f64::NAN)
    };
    let level = |at: usize| {
        middle(&|run| match &run.course {
            Course::Steps(levels) => levels.get(at).map(|level| level.mean),
            Course::Gradual { first, last } => [*first, *last].get(at).copied(),
            Course::Swings { least, most, .. } => [*least, *most].get(at).copied(),
            Course::Even => None,
        })
    };
    let since = |at: usize| {
        middle(&|run| match &run.course {
            Course::Steps(levels) => Some(levels.get(at)?.start as f64 * run.width),
            _ => None,
        })
    };
    match &same[0].course {
        Course::Even => Vec::new(),
        Course::Steps(levels) => (0..levels.len())
            .map(|at| (level(at), Some(since(at))))
            .collect(),
        Course::Gradual { .. } | Course::Swings { .. } => {
            (0..2).map(|at| (level(at), None)).collect()
        }
    }
}

/// The greatest level over the least.
fn change(course: &Course) -> f64 {
    let (least, most) = match course {
        Course::Even => return 1.0,
        Course::Steps(levels) => levels
            .iter()
            .fold((f64::INFINITY, 0.0), |(least, most), level| {
                (f64::min(least, level.mean), f64::max(most, level.mean))
            }),
        Course::Gradual { first, last } => (first.min(*last), first.max(*last)),
        Course::Swings { least, most, .. } => (*least, *most),
    };
    most / least
}

/// Whether two runs went the same way: as many levels, or falling, rising, swinging both.
fn alike(a: &Run, b: &Run) -> bool {
    match (&a.course, &b.course) {
        (Course::Steps(a), Course::Steps(b)) => a.len() == b.len(),
        (Course::Gradual { first, last }, Course::Gradual { first: f, last: l }) => {
            (last > first) == (l > f)
        }
        (Course::Swings { .. }, Course::Swings { .. }) => true,
        _ => false,
    }
}

/// What runs that went the same way did, by the medians of each figure.
fn words(same: &[&Run], unit: Unit) -> String {
    let levels = levels(same);
    let rate = |at: usize| rate(levels.get(at).map_or(f64::NAN, |level| level.0), unit);
    match &same[0].course {
        Course::Even => String::new(),
        Course::Steps(_) => {
            let mut text = rate(0);
            for (at, (_, since)) in levels.iter().enumerate().skip(1) {
                let since = Span((since.unwrap_or(f64::NAN) * 1e9) as u64);
                text.push_str(&format!(", from {since} on {}", rate(at)));
            }
            text
        }
        Course::Gradual { first, last } => {
            let way = if last > first { "rises" } else { "falls" };
            format!("{way} all the while, from {} to {}", rate(0), rate(1))
        }
        Course::Swings { .. } => {
            let many = same.iter().filter_map(|run| match &run.course {
                Course::Swings { levels, .. } => Some(*levels as f64),
                _ => None,
            });
            let many = median(many).unwrap_or(f64::NAN);
            format!(
                "swings between {} and {}, {many:.0} levels",
                rate(0),
                rate(1)
            )
        }
    }
}

fn rate(value: f64, unit: Unit) -> String {
    let shown = format::suited(unit, value);
    let value = value / shown.scale;
    format!(
        "{} {}",
        format::number(value, format::decimals(value)),
        shown.name
    )
}

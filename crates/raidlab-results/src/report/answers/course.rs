//! How rates changed within runs, for programs.
use crate::record::Unit;
use crate::report::blocks::courses;
use crate::report::group::Group;
use raidlab_stats::course::Course;
use serde::Serialize;

/// A phase whose rate changed within runs of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CourseAnswer {
    /// What was run.
    pub profile: String,
    /// The phase.
    pub phase: String,
    /// The cell.
    pub cell: String,
    /// Valid runs that are long enough to tell.
    pub runs: usize,
    /// Those of them whose rate changed.
    pub changed: usize,
    /// Those of these that went the way that is told.
    pub alike: usize,
    /// Which way.
    pub course: CourseKind,
    /// Medians of those that are alike.
    pub levels: Vec<LevelAnswer>,
    /// Of the levels.
    pub unit: Unit,
    /// The same in words.
    pub words: String,
}

/// How a rate went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CourseKind {
    /// Two or three levels, one after the other.
    Steps,
    /// Up all the while.
    Rises,
    /// Down all the while.
    Falls,
    /// Up and down between levels.
    Swings,
}

/// A level of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelAnswer {
    /// In the unit of the course.
    pub rate: f64,
    /// The second of the run from which on it is at this level; none where it is the beginning or end of what rises or falls, or
    /// the least or greatest of what swings.
    pub from_seconds: Option<f64>,
}

impl CourseKind {
    fn of(course: &Course) -> Option<Self> {
        match course {
            Course::Even => None,
            Course::Steps(_) => Some(Self::Steps),
            Course::Gradual { first, last } if last > first => Some(Self::Rises),
            Course::Gradual { .. } => Some(Self::Falls),
            Course::Swings { .. } => Some(Self::Swings),
        }
    }
}

/// The phases of a profile whose rate did not stay the same, all of them.
pub(super) fn courses(profile: &str, groups: &[Group<'_>]) -> Vec<CourseAnswer> {
    let lines = courses::changed(groups).into_iter();
    let answer = |line: courses::Line<'_>| {
        let level = |&(rate, from_seconds): &(f64, Option<f64>)| LevelAnswer { rate, from_seconds };
        Some(CourseAnswer {
            profile: profile.to_owned(),
            phase: line.phase.to_owned(),
            cell: line.cell,
            runs: line.runs,
            changed: line.changed,
            alike: line.alike,
            course: CourseKind::of(&line.course)?,
            levels: line.levels.iter().map(level).collect(),
            unit: line.unit,
            words: line.words,
        })
    };
    lines.filter_map(answer).collect()
}

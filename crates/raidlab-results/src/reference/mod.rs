//! Published measurements of real arrays as data, read so that every report can be made from them
//! alone.
//!
//! The files are in `/reference` of the repository and are part of the program. A row that was
//! measured but whose figures are not given becomes a trial without figures (`withheld`), never one
//! of zeros.
mod checks;
mod order;
mod parse;
mod predicted;
mod rows;
mod sweeps;
mod tree;
mod trials;

#[cfg(test)]
mod tests;

pub use checks::{Checked, Own, Told};
pub use order::{Misordered, Ordering};
pub use predicted::{PredictedFigure, Prediction, median_error};
pub use tree::{Problem, ProblemKind, StudyError};
pub use trials::WITHHELD;

use crate::record::Unit;
use raidlab_core::units::Bytes;
use std::collections::BTreeMap;

/// The files, in the order of a listing.
const FILES: [(&str, &str); 5] = [
    (
        "reference/pata-raid0.toml",
        include_str!("../../../../reference/pata-raid0.toml"),
    ),
    (
        "reference/pata-blocksize.toml",
        include_str!("../../../../reference/pata-blocksize.toml"),
    ),
    (
        "reference/scsi-hdbench.toml",
        include_str!("../../../../reference/scsi-hdbench.toml"),
    ),
    (
        "reference/sata-md-levels.toml",
        include_str!("../../../../reference/sata-md-levels.toml"),
    ),
    (
        "reference/zfs-ashift.toml",
        include_str!("../../../../reference/zfs-ashift.toml"),
    ),
];

/// A published study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Stable id, such as `pata-raid0`.
    pub id: String,
    /// What was compared, in a sentence.
    pub title: String,
    /// Day of publication, `2006-09-25`.
    pub date: String,
    /// Tools and their versions.
    pub tools: Vec<String>,
    /// The profile that does what the tool did; `None` when the study gives no figures.
    pub profile: Option<String>,
    /// Command lines as published.
    pub commands: Vec<String>,
    /// Size of the file, where there was one size.
    pub file_size: Option<Bytes>,
    /// Runs behind each figure.
    pub runs: Option<u32>,
    /// How the runs were joined to one figure.
    pub aggregate: Option<String>,
    /// Machine, disks and settings.
    pub setup: Vec<Fact>,
    /// What was varied and done: layouts, block sizes, arrays.
    pub plans: Vec<Plan>,
    /// What the study concluded, in its own words.
    pub findings: Vec<Finding>,
    /// Row and file size of the study's own closing table (`single external` at `2GB`).
    pub closing: Option<(String, String)>,
    /// The rows; empty when no figures are given.
    pub rows: Vec<Row>,
}

/// One thing known of the machine, the disks or the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub name: String,
    /// The study's words.
    pub text: String,
}

/// A list that describes the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is listed.
    pub name: String,
    /// The list.
    pub items: Vec<String>,
}

/// A conclusion of the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its number in the file.
    pub number: u32,
    /// Its words.
    pub text: String,
}

/// One layout that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the study calls it.
    pub name: String,
    /// The cell's factors, `capacity-disks` included.
    pub factors: BTreeMap<String, String>,
    /// None of its figures are given.
    pub withheld: bool,
    /// One a phase.
    pub figures: Vec<PublishedFigure>,
}

/// What is given of one phase of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// Stable name of the phase.
    pub phase: String,
    /// Unit of the value.
    pub unit: Unit,
    /// The value.
    pub value: Published,
    /// Share of one processor in per cent.
    pub cpu_percent: Option<f64>,
}

/// A published value or why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// The value in the unit of its figure.
    Value(f64),
    /// The tool printed `+++++`: shorter than it can time.
    TooFast,
    /// Measured, but not given.
    Withheld,
}

/// All studies.
///
/// # Errors
/// The first file that cannot be read (they are part of the program; a test reads them all).
pub fn studies() -> Result<Vec<Study>, StudyError> {
    FILES
        .iter()
        .map(|(file, text)| Study::parse(file, text))
        .collect()
}

/// The study of that id; `None` when there is none.
///
/// # Errors
/// As [`studies`].
pub fn study(id: &str) -> Result<Option<Study>, StudyError> {
    Ok(studies()?.into_iter().find(|study| study.id == id))
}

impl Study {
    /// The value of a phase of the row of that name.
    #[must_use]
    pub fn figure(&self, row: &str, phase: &str) -> Option<Published> {
        let row = self.rows.iter().find(|r| r.name == row)?;
        let figure = row.figures.iter().find(|f| f.phase == phase)?;
        Some(figure.value)
    }
}

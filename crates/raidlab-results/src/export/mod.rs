//! Exporting trials as JSON lines and CSV, and reading the JSON lines back.
//!
//! The schema is written down in `docs/schema/results-v1.md` and, for machines, in
//! `docs/schema/results-v1.schema.json`; tests hold both against what is written here. JSON lines
//! keep everything and come back exactly. CSV is for spreadsheets: one phase a row, units in the
//! column names, and an empty cell, never 0, where there is no figure.
mod csv;
mod exact;
mod jsonl;

#[cfg(test)]
mod tests;

pub use csv::{export_csv, write_csv};
pub use jsonl::{FORMAT, JsonlError, JsonlProblem, export_jsonl, import_jsonl, write_jsonl};

use crate::record::TrialRecord;
use crate::store::{Store, StoreError, TrialFilter};
use std::io;

/// Why an export was not written or not finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A record that must not be exported; nothing was written.
    #[error(transparent)]
    Record(#[from] StoreError),
    /// The output cannot be written.
    #[error("the export cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Trials that can be gone through more than once: to see what they are, then to write them.
trait Trials {
    /// Hands over each of them.
    fn each(
        &self,
        see: &mut dyn FnMut(&TrialRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError>;
}

impl Trials for [TrialRecord] {
    fn each(
        &self,
        see: &mut dyn FnMut(&TrialRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        self.iter().try_for_each(see)
    }
}

/// Trials of a store, of which one is in memory at a time.
struct Stored<'a>(&'a Store, &'a TrialFilter);

impl Trials for Stored<'_> {
    fn each(
        &self,
        see: &mut dyn FnMut(&TrialRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        self.0.each_trial(self.1, |trial| see(&trial))
    }
}

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

pub use csv::write_csv;
pub use jsonl::{FORMAT, JsonlError, JsonlProblem, import_jsonl, write_jsonl};

use crate::store::StoreError;
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

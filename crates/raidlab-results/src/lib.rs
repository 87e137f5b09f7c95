//! Results: records with their provenance, the store, importers, exporters and report documents.
#![forbid(unsafe_code)]

pub mod export;
pub mod id;
pub mod import;
pub mod record;
pub mod reference;
pub mod report;
pub mod store;

//! The importers, against samples of every format, their pitfalls and their damage.
mod damage;
mod pitfalls;
mod render;
mod samples;

use raidlab_results::import::{ImportError, Imported, Source, import};
use raidlab_results::record::{PhaseRecord, TrialRecord};
use std::path::PathBuf;

/// Every sample, by its path under `tests`.
fn sample_files() -> Vec<String> {
    [files_in("raw"), files_in("samples")].concat()
}

/// The files of a directory under `tests`.
fn files_in(directory: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join(directory)).expect("samples are there") {
        let name = entry.expect("a directory entry").file_name();
        let name = name.to_string_lossy().into_owned();
        if name != "README.md" {
            names.push(format!("{directory}/{name}"));
        }
    }
    names.sort();
    names
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn bytes_of(sample: &str) -> Vec<u8> {
    std::fs::read(root().join(sample)).expect(sample)
}

fn text_of(sample: &str) -> String {
    String::from_utf8(bytes_of(sample)).expect(sample)
}

fn read(text: &str) -> Result<Imported, ImportError> {
    import(text.as_bytes(), &Source::new("sample"))
}

#[track_caller]
fn taken(text: &str) -> Imported {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    match read(text) {
        Ok(imported) => panic!("taken as {}: {:?}", imported.format, imported.trials),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn phase<'a>(trial: &'a TrialRecord, name: &str) -> &'a PhaseRecord {
    let found = trial.phases.iter().find(|phase| phase.phase == name);
    found.unwrap_or_else(|| panic!("no phase {name} in {:?}", trial.phases))
}

#[track_caller]
fn rate(trial: &TrialRecord, name: &str) -> f64 {
    phase(trial, name)
        .rate
        .unwrap_or_else(|| panic!("no rate of {name}"))
}

#[track_caller]
fn figure(phase: &PhaseRecord, name: &str) -> f64 {
    let found = phase.figures.iter().find(|figure| figure.name == name);
    found
        .unwrap_or_else(|| panic!("no figure {name} in {:?}", phase.figures))
        .value
}

/// Whether a remark has these words.
fn says(imported: &Imported, what: &str) -> bool {
    imported.remarks.iter().any(|r| r.text.contains(what))
}

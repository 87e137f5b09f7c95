//! What every fuzz target checks: an importer never panics, refuses with a place, and gives only
//! possible figures, the same ones each time.
#![forbid(unsafe_code)]
use raidlab_results::import::{Format, ImportError, Imported, Source, import};

/// Imports the bytes as each of the formats.
pub fn import_as(bytes: &[u8], formats: &[Format]) {
    for format in formats {
        for tiotest_random_ops in [None, Some(4000)] {
            let mut source = Source::new("fuzz").format(*format);
            source.tiotest_random_ops = tiotest_random_ops;
            check(&import(bytes, &source));
        }
    }
}

/// Imports the bytes as what they look like.
pub fn import_guessed(bytes: &[u8]) {
    let source = Source::new("fuzz");
    let one = import(bytes, &source);
    check(&one);
    assert_eq!(one, import(bytes, &source), "twice the same bytes");
}

fn check(result: &Result<Imported, ImportError>) {
    match result {
        Ok(imported) => {
            assert!(!imported.trials.is_empty(), "an import of nothing");
            for trial in &imported.trials {
                assert_eq!(trial.session, imported.session);
                assert!(raidlab_results::id::is_id(&trial.id));
            }
            for phase in imported.trials.iter().flat_map(|trial| &trial.phases) {
                let figures = phase.figures.iter().map(|figure| figure.value);
                for value in figures.chain(phase.rate).chain(phase.cpu_percent) {
                    assert!(value.is_finite() && value >= 0.0, "{value} in {}", phase.phase);
                }
                assert!(phase.rate.is_some() || !phase.flags.is_empty(), "no reason given");
            }
        }
        Err(error) => {
            assert!(error.line > 0 && error.column > 0, "{error}");
            assert!(!error.expected.is_empty() && !error.remedy.is_empty(), "{error}");
        }
    }
}

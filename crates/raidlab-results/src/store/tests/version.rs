//! Stores of every version that there was must open for ever.
use super::samples::{environment, full_trial, id_of, session, trial};
use crate::export::{import_jsonl, write_jsonl};
use crate::record::Session;
use crate::store::{Bundle, SessionFilter, Store, StoreError, TrialFilter, environment_digest};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Set to write the files of the current version anew.
const MAKE: &str = "RAIDLAB_MAKE_STORE_FIXTURE";

fn file(version: u32, ending: &str) -> PathBuf {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/tests/versions");
    Path::new(directory).join(format!("v{version}.{ending}"))
}

/// What is in the store of version 1.
fn content() -> Bundle {
    let digest = environment_digest(&environment());
    let mut first = full_trial("a", 0);
    first.environment = Some(digest.clone());
    let noted = Session {
        notes: vec!["first".to_owned(), "second".to_owned()],
        ..session("a")
    };
    Bundle {
        sessions: vec![noted],
        environments: [(digest, environment())].into(),
        trials: vec![first, trial("a", 1)],
    }
}

fn make(version: u32) {
    let path = file(version, "db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    let mut store = Store::open(&path).unwrap();
    store.import(&content()).unwrap();
    store.connection.execute_batch("VACUUM").unwrap();
    let out = fs::File::create(file(version, "jsonl")).unwrap();
    write_jsonl(out, &content()).unwrap();
}

#[test]
fn a_store_of_version_1_opens_and_its_export_can_be_read() {
    if env::var_os(MAKE).is_some() {
        make(1);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    fs::copy(file(1, "db"), &path).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.check().unwrap();
    let found = store.bundle(&TrialFilter::default()).unwrap();
    assert_eq!(found, content());
    let exported = fs::read(file(1, "jsonl")).unwrap();
    let exported = import_jsonl("v1.jsonl", exported.as_slice()).unwrap();
    assert_eq!(exported, found);
    store.append_trial(&trial("a", 2), None).unwrap();
    let all = TrialFilter::of_session(&id_of("a"));
    assert_eq!(store.trials(&all).unwrap().len(), 3);
}

/// SQLite opens such a file for reading alone, and who may write to it was told that he may not.
#[test]
fn a_damaged_format_is_not_taken_for_a_lack_of_permission() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut bytes = fs::read(file(1, "db")).unwrap();
    bytes[18] = 3;
    fs::write(&path, bytes).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever a failing disk makes of the file: an error that says so, and never a panic.
    #[test]
    fn a_damaged_file_is_an_error_or_does_not_matter(
        damage in prop::collection::vec((0_usize..90_112, any::<u8>()), 1..20)
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let mut bytes = fs::read(file(1, "db")).unwrap();
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        fs::write(&path, bytes).unwrap();
        let read = |store: Result<Store, StoreError>| {
            let mut store = store?;
            store.sessions(&SessionFilter::default())?;
            store.check()?;
            store.bundle(&TrialFilter::default())
        };
        for store in [Store::open_read_only(&path), Store::open(&path)] {
            if let Err(error) = read(store) {
                let named = matches!(
                    error,
                    StoreError::Corrupt { .. }
                        | StoreError::NotSqlite { .. }
                        | StoreError::Foreign { .. }
                        | StoreError::Newer { .. }
                );
                prop_assert!(named, "{:?}", error);
            }
        }
    }
}

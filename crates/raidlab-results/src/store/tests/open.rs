use super::samples::{full_trial, session};
use crate::record::SCHEMA_VERSION;
use crate::store::schema::{APPLICATION_ID, Identity, MIGRATIONS, Migration, identify, migrate};
use crate::store::{Store, StoreError, TrialFilter};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    (directory, path)
}

/// Both ways of opening refuse, and leave every byte and the directory as they were.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err();
    let also = Store::open_read_only(path).unwrap_err();
    assert_eq!(error.to_string(), also.to_string());
    assert!(error.to_string().contains("results.db"), "{error}");
    assert_eq!(fs::read(path).unwrap(), before);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    error
}

/// The message without the directory, which is another one each time.
fn told(error: &StoreError, path: &Path) -> String {
    let directory = path.parent().unwrap().to_str().unwrap();
    error.to_string().replace(directory, "DIR")
}

#[test]
fn a_new_store_is_marked_and_durable() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    let pragma = |name: &str| {
        store
            .connection
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap()
    };
    assert_eq!(pragma("application_id"), i64::from(APPLICATION_ID).into());
    assert_eq!(pragma("user_version"), i64::from(SCHEMA_VERSION).into());
    assert_eq!(pragma("journal_mode"), "delete".to_owned().into());
    assert_eq!(pragma("synchronous"), 3.into(), "EXTRA");
    assert_eq!(pragma("foreign_keys"), 1.into());
    store.check().unwrap();
}

#[test]
fn the_tables_reach_the_version_of_the_records() {
    assert_eq!(MIGRATIONS.last().unwrap().to, SCHEMA_VERSION);
    assert!(
        MIGRATIONS
            .windows(2)
            .all(|pair| pair[0].to + 1 == pair[1].to)
    );
    assert_eq!(MIGRATIONS[0].to, 1);
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let (_directory, path) = place();
    drop(Store::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let error = refused(&path);
    assert!(matches!(
        error,
        StoreError::Newer {
            found: 7,
            known: 1,
            ..
        }
    ));
    insta::assert_snapshot!(told(&error, &path), @"DIR/results.db: this store has version 7, but this raidlab knows versions up to 1; use a newer raidlab, or name another store with --store");
}

#[test]
fn a_database_of_something_else_is_refused_and_left_alone() {
    let (_directory, path) = place();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE people (name)")
        .unwrap();
    drop(connection);
    let error = refused(&path);
    insta::assert_snapshot!(told(&error, &path), @"DIR/results.db: an SQLite database, but not a raidlab store (it has a table 'people' and no application id); name another file with --store");
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "application_id", 42)
        .unwrap();
    drop(connection);
    let error = refused(&path);
    assert!(matches!(error, StoreError::Foreign { .. }));
    insta::assert_snapshot!(told(&error, &path), @"DIR/results.db: an SQLite database, but not a raidlab store (its application id is 0x0000002a); name another file with --store");
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let (_directory, path) = place();
    for content in [
        "x",
        "SQLite format 3",
        "two\n",
        &"a text of some length\n".repeat(500),
    ] {
        fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::NotSqlite { .. }), "{error:?}");
        insta::allow_duplicates!(
            insta::assert_snapshot!(told(&error, &path), @"DIR/results.db: not a raidlab store (not an SQLite database); name another file with --store")
        );
    }
}

#[test]
fn a_damaged_store_is_told() {
    let (_directory, path) = place();
    let mut store = Store::open(&path).unwrap();
    store.begin_session(&session("s")).unwrap();
    for order in 0..5 {
        store.append_trial(&full_trial("s", order), None).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let found = Store::open_read_only(&path).and_then(|store| store.check());
    assert!(
        matches!(found, Err(StoreError::Corrupt { .. })),
        "{found:?}"
    );

    let connection = {
        fs::write(&path, &whole).unwrap();
        Connection::open(&path).unwrap()
    };
    connection
        .execute(
            "UPDATE trials SET record = substr(record, 1, 99) WHERE position = 3",
            [],
        )
        .unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    let error = store.trials(&TrialFilter::default()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }));
    assert!(
        error.to_string().contains(&full_trial("s", 3).id),
        "{error}"
    );

    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("DROP TABLE flags").unwrap();
    drop((store, connection));
    insta::assert_snapshot!(told(&refused(&path), &path), @"DIR/results.db: the store is damaged (the table 'flags' is missing); restore it from a backup or save what can be read with 'sqlite3 FILE .recover'");
}

#[test]
fn only_a_file_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    for path in [
        directory.path(),
        Path::new("/dev/null"),
        Path::new("/dev/zero"),
    ] {
        for found in [Store::open(path), Store::open_read_only(path)] {
            assert!(
                matches!(found, Err(StoreError::NotAFile { .. })),
                "{found:?}"
            );
        }
    }
    let path = directory.path().join("none/results.db");
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::NoDirectory { .. }), "{error:?}");
    let error = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn an_empty_file_becomes_a_store_and_is_none_before() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    let error = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    drop(Store::open(&path).unwrap());
    Store::open_read_only(&path).unwrap();
}

#[test]
fn names_that_mean_something_to_sqlite_are_plain_names() {
    let directory = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a%20b#c.db", "grün .db"] {
        let path = directory.path().join(name);
        drop(Store::open(&path).unwrap());
        assert!(path.is_file(), "{name}");
    }
}

#[test]
fn reading_only_does_not_write() {
    let (_directory, path) = place();
    drop(Store::open(&path).unwrap());
    let mut store = Store::open_read_only(&path).unwrap();
    let error = store.begin_session(&session("s")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn a_store_that_is_taken_away_while_in_use_is_told_as_that() {
    let (_directory, path) = place();
    let mut store = Store::open(&path).unwrap();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    let error = store.begin_session(&session("s")).unwrap_err();
    assert!(matches!(error, StoreError::Removed { .. }), "{error:?}");
    fs::rename(&aside, &path).unwrap();
    store.begin_session(&session("s")).unwrap();
}

#[test]
fn a_lock_is_waited_for_and_told() {
    let (_directory, path) = place();
    let mut store = Store::open(&path).unwrap();
    store.set_busy_timeout(Duration::from_millis(20)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = store.begin_session(&session("s")).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    insta::assert_snapshot!(told(&error, &path), @"DIR/results.db: locked by another process for more than 0.0 s; wait until that has ended and try again");
    other.execute_batch("ROLLBACK").unwrap();
    store.begin_session(&session("s")).unwrap();
}

/// An earlier raidlab and a later one, with a made-up history of versions.
#[test]
fn migrations_run_in_order_once_and_all_or_none() {
    let step = |to, sql: &'static str| -> Migration {
        match (to, sql) {
            (2, "") => Migration {
                to,
                apply: |t| t.execute_batch("ALTER TABLE sessions ADD COLUMN colour TEXT"),
            },
            (3, "") => Migration {
                to,
                apply: |t| t.execute_batch("UPDATE sessions SET colour = 'red'"),
            },
            _ => Migration {
                to,
                apply: |t| t.execute_batch("UPDATE sessions SET colour = 'blue'; nonsense"),
            },
        }
    };
    let (_directory, path) = place();
    let mut store = Store::open(&path).unwrap();
    store.begin_session(&session("s")).unwrap();
    let c = &mut store.connection;
    let steps = [step(1, ""), step(2, ""), step(3, "")];
    assert_eq!(migrate(c, &steps).unwrap(), Identity::Store(3));
    assert_eq!(migrate(c, &steps).unwrap(), Identity::Store(3), "again");
    migrate(c, &[step(2, ""), step(3, ""), step(4, "broken")]).unwrap_err();
    assert_eq!(identify(c).unwrap(), Identity::Store(3));
    let colour: String = c
        .query_row("SELECT colour FROM sessions", [], |row| row.get(0))
        .unwrap();
    assert_eq!(colour, "red", "the failed step left nothing");
}

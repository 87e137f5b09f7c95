//! What can go wrong with a store, each with its remedy.
use crate::id;
use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// sqlite3.h: `SQLITE_READONLY | (4 << 8)`.
const SQLITE_READONLY_DBMOVED: i32 = 8 | (4 << 8);

/// Why the store could not do what was asked. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Made by a later raidlab.
    #[error(
        "{}: this store has version {found}, but this raidlab knows versions up to {known}; use a newer raidlab, or name another store with --store", path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The latest version that can be read.
        known: u32,
    },
    /// Made by an earlier raidlab, and opened for reading only.
    #[error(
        "{}: this store has version {found} and must be brought to version {known} first; run any raidlab command that writes to it, such as 'raidlab import'", path.display()
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version needed.
        known: u32,
    },
    /// An SQLite database of something else.
    #[error(
        "{}: an SQLite database, but not a raidlab store ({detail}); name another file with --store", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it has instead.
        detail: String,
    },
    /// Not an SQLite database at all.
    #[error("{}: not a raidlab store (not an SQLite database); name another file with --store", path.display())]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// A directory, a device or the like.
    #[error("{}: {kind}, not a file; name a file with --store", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Nothing there.
    #[error("{}: there is no store; measure (raidlab bench), predict (raidlab run) or import something first, or name another with --store", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The directory for it is missing.
    #[error("{}: the directory {} does not exist; create it, or name another store with --store", path.display(), directory.display())]
    NoDirectory {
        /// The store.
        path: PathBuf,
        /// The missing directory.
        directory: PathBuf,
    },
    /// Cannot be opened or created.
    #[error("{}: cannot be opened ({detail}); check the permissions of the file and its directory, or name another store with --store", path.display())]
    CannotOpen {
        /// The store.
        path: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// Damaged.
    #[error("{}: the store is damaged ({detail}); restore it from a backup or save what can be read with 'sqlite3 FILE .recover'", path.display())]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Another process kept it locked.
    #[error("{}: locked by another process for more than {:.1} s; wait until that has ended and try again", path.display(), waited.as_secs_f64())]
    Locked {
        /// The store.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// May be read but not written.
    #[error("{}: the store cannot be written ({detail}); check the permissions of the file and its directory, or name another store with --store", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// Its file was removed or renamed while it was in use.
    #[error("{}: the file of the store was removed or renamed while it was in use, and nothing more can be stored in it; if it was renamed, move it back and resume, else what it held is gone", path.display())]
    Removed {
        /// The store.
        path: PathBuf,
    },
    /// No space left.
    #[error("{}: no space is left on the file system of the store; make room and try again: nothing stored before is lost", path.display())]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The file system reported an error.
    #[error("{}: reading or writing the store failed: {detail}; look for the cause in the kernel log", path.display())]
    Io {
        /// The store.
        path: PathBuf,
        /// What was being done.
        detail: String,
    },
    /// A record that must not be stored.
    #[error("{what}: {reason}")]
    BadRecord {
        /// Which record and which part of it.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No session begins with that.
    #[error("no session '{0}'; 'raidlab list' shows them")]
    NoSuchSession(String),
    /// No trial begins with that.
    #[error("no trial '{0}'; 'raidlab show SESSION' shows those of a session")]
    NoSuchTrial(String),
    /// Several identifiers begin with that.
    #[error("'{prefix}' is ambiguous: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Those it could be: short identifier and what it is.
        candidates: Vec<String>,
    },
    /// Not the beginning of an identifier.
    #[error(
        "'{0}' is not an identifier: write the first hexadecimal digits of one, or last, last~1, ... of a session"
    )]
    NotAnId(String),
    /// A session of that identifier exists.
    #[error("session {} is in the store already", id::short(.0))]
    SessionExists(String),
    /// Another trial of that identifier exists.
    #[error(
        "another trial {0} is in the store already; every trial needs an identifier of its own"
    )]
    TrialExists(String),
    /// Another process is at work on the session.
    #[error(
        "session {} is being run by process {process}; wait for it or stop it first",
        id::short(session)
    )]
    SessionRunning {
        /// The session.
        session: String,
        /// Its process id.
        process: u32,
    },
    /// Anything else that SQLite reports.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// What it says.
        #[source]
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Gives an error of SQLite its meaning. `waited` is the busy timeout.
    pub(super) fn of_sqlite(path: &Path, waited: Duration, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        use rusqlite::Error;
        let (failure, message) = match &error {
            Error::SqliteFailure(failure, message) => (failure, message),
            // The queries fit the tables that a store has: these are others, or hold other things.
            Error::SqlInputError { msg, .. } => {
                let detail = msg.clone();
                return Self::Corrupt { path, detail };
            }
            Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..) => {
                let detail = error.to_string();
                return Self::Corrupt { path, detail };
            }
            _ => {
                return Self::Sqlite {
                    path,
                    source: error,
                };
            }
        };
        let detail = message.clone().unwrap_or_else(|| failure.to_string());
        match failure.code {
            // SQLITE_ERROR itself: again tables that are not those of a store.
            ErrorCode::Unknown if failure.extended_code == 1 => Self::Corrupt { path, detail },
            ErrorCode::NotADatabase => Self::NotSqlite { path },
            ErrorCode::DatabaseCorrupt => Self::Corrupt { path, detail },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked { path, waited },
            ErrorCode::ReadOnly if failure.extended_code == SQLITE_READONLY_DBMOVED => {
                Self::Removed { path }
            }
            ErrorCode::ReadOnly => Self::ReadOnly { path, detail },
            ErrorCode::DiskFull => Self::Full { path },
            ErrorCode::SystemIoFailure => Self::Io { path, detail },
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Self::CannotOpen { path, detail }
            }
            _ => Self::Sqlite {
                path,
                source: error,
            },
        }
    }
}

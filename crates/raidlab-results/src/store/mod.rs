//! The store: one SQLite file with every session and trial.
//!
//! **No finished trial is ever lost.** A trial is one transaction, and [`Store::append_trial`]
//! returns when it is on the medium (`synchronous=EXTRA`: the file and, for the journal, its
//! directory are synced), so neither `kill -9` nor a power cut takes back a trial that was
//! acknowledged.
//!
//! The journal is SQLite's rollback journal, not the write-ahead log: a trial comes every few
//! seconds, so the log's speed is worth nothing here, while its price is real. A log needs shared
//! memory between processes, which network file systems do not give; a store on a read-only medium
//! could not be opened; and a copy of the one file would lack what is still in the log. With the
//! rollback journal the store at rest is one file.
//!
//! Two processes may use a store at once: writers take turns and wait for each other up to
//! [`BUSY_TIMEOUT`].
//!
//! The tables (`v1.sql`) are for queries, also with the `sqlite3` shell; the view `results` is the
//! one to begin with. The column `trials.record` holds the whole record as JSON and is what
//! [`Store::trials`] reads, so that a record comes back exactly, histograms included.
mod bundle;
mod check;
mod error;
mod filter;
mod import;
mod known;
mod place;
mod read;
mod rows;
mod runner;
mod schema;
mod write;

#[cfg(test)]
pub(crate) mod tests;

pub use bundle::{Bundle, Imported};
pub use check::environment_digest;
pub use error::StoreError;
pub use filter::{SessionFilter, Source, TrialFilter};
pub use known::{Kept, figures_digest};
pub use read::SessionInfo;
pub use schema::APPLICATION_ID;
pub use write::{Appended, Removed};

pub(crate) use check::{check_bundle, check_possible, check_session, check_trial};
pub(crate) use rows::Origin;

use crate::record::SCHEMA_VERSION;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use schema::{Identity, MIGRATIONS, identify, migrate};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one process waits for another that has the store locked.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    busy: Duration,
}

impl Store {
    /// Opens the store at `path` for reading and writing, creates it when there is none, and brings
    /// an older one up to date. The directory must exist.
    ///
    /// # Errors
    /// When the file is no store, of a newer version, damaged, locked, read-only or on a full disk;
    /// such a file is left as it is.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = place::absolute(path)?;
        if !place::is_there(&path)? {
            place::create(&path)?;
        }
        let mut store = Self::connect(path)?;
        let identity = store.identify()?;
        if let Identity::Store(_) | Identity::Empty = identity
            && store.sql(|c| c.is_readonly(MAIN_DB))?
        {
            return Err(place::only_read(store.path));
        }
        store.prepare_for_writing()?;
        match identity {
            Identity::Store(version) if version == SCHEMA_VERSION => Ok(store),
            _ => {
                let reached = store.sql_mut(|c| migrate(c, MIGRATIONS))?;
                store.expect_current(reached)?;
                Ok(store)
            }
        }
    }

    /// Opens an existing store for reading; nothing is written, not even to bring it up to date.
    /// Only what a killed process left half-written is undone, where the file may be written.
    ///
    /// # Errors
    /// When there is none, or it is no store, of another version, damaged or locked.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let path = place::absolute(path)?;
        if !place::is_there(&path)? {
            return Err(StoreError::Missing { path });
        }
        let mut store = Self::connect(path)?;
        store.sql(|c| c.pragma_update(None, "query_only", true))?;
        match store.identify()? {
            Identity::Empty => Err(StoreError::Missing { path: store.path }),
            Identity::Store(version) if version < SCHEMA_VERSION => Err(StoreError::Older {
                path: store.path,
                found: version,
                known: SCHEMA_VERSION,
            }),
            _ => Ok(store),
        }
    }

    /// A store in memory, which is gone with the value: for reports from files alone.
    ///
    /// # Errors
    /// When memory is short.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = PathBuf::from("(in memory)");
        let connection = Connection::open_in_memory()
            .map_err(|e| StoreError::of_sqlite(&path, BUSY_TIMEOUT, e))?;
        let mut store = Self {
            connection,
            path,
            busy: BUSY_TIMEOUT,
        };
        store.prepare_for_writing()?;
        store.sql_mut(|c| migrate(c, MIGRATIONS))?;
        Ok(store)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long to wait for another process instead of [`BUSY_TIMEOUT`].
    ///
    /// # Errors
    /// None that SQLite documents.
    pub fn set_busy_timeout(&mut self, timeout: Duration) -> Result<(), StoreError> {
        self.busy = timeout;
        self.sql(|c| c.busy_timeout(timeout))
    }

    /// Reads the whole file and checks its structure; takes time in a large store.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the first damage found.
    pub fn check(&self) -> Result<(), StoreError> {
        let found: String =
            self.sql(|c| c.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)))?;
        let orphan: Option<String> = self.sql(|c| {
            c.prepare("PRAGMA foreign_key_check")?
                .query_map([], |row| row.get(0))?
                .next()
                .transpose()
        })?;
        match (found.as_str(), orphan) {
            ("ok", None) => Ok(()),
            ("ok", Some(table)) => {
                Err(self.corrupt(format!("a row of the table '{table}' belongs to nothing")))
            }
            _ => Err(self.corrupt(found)),
        }
    }

    /// Connects to an existing file, for writing too if that is permitted: a connection that only
    /// reads could not undo what a killed process left half-written, and would fail.
    fn connect(path: PathBuf) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let busy = BUSY_TIMEOUT;
        let failed = |e| StoreError::of_sqlite(&path, busy, e);
        let connection = Connection::open_with_flags(&path, flags).map_err(failed)?;
        connection.busy_timeout(busy).map_err(failed)?;
        Ok(Self {
            connection,
            path,
            busy,
        })
    }

    /// What the file is; an error when it is none that this version may touch.
    fn identify(&mut self) -> Result<Identity, StoreError> {
        let identity = self.sql_mut(identify)?;
        match identity {
            Identity::Empty => Ok(identity),
            Identity::Store(version) if version <= SCHEMA_VERSION => Ok(identity),
            other => self.expect_current(other).map(|()| Identity::Empty),
        }
    }

    fn expect_current(&self, identity: Identity) -> Result<(), StoreError> {
        let path = self.path.clone();
        match identity {
            Identity::Store(version) if version == SCHEMA_VERSION => Ok(()),
            Identity::Store(version) if version > SCHEMA_VERSION => Err(StoreError::Newer {
                path,
                found: version,
                known: SCHEMA_VERSION,
            }),
            Identity::Foreign(detail) => Err(StoreError::Foreign { path, detail }),
            Identity::Damaged(detail) => Err(StoreError::Corrupt { path, detail }),
            Identity::Store(_) | Identity::Empty => {
                Err(self.corrupt("bringing it up to date had no effect".to_owned()))
            }
        }
    }

    fn prepare_for_writing(&mut self) -> Result<(), StoreError> {
        self.sql(|c| {
            c.pragma_update(None, "synchronous", "EXTRA")?;
            c.pragma_update(None, "foreign_keys", true)?;
            // Sorting must not write to the disk that is being measured.
            c.pragma_update(None, "temp_store", "MEMORY")
        })
    }

    /// Runs what reads or writes, and gives its error a meaning.
    fn sql<T>(
        &self,
        run: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        run(&self.connection).map_err(|e| StoreError::of_sqlite(&self.path, self.busy, e))
    }

    fn sql_mut<T>(
        &mut self,
        run: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        run(&mut self.connection).map_err(|e| StoreError::of_sqlite(&self.path, self.busy, e))
    }

    fn corrupt(&self, detail: String) -> StoreError {
        StoreError::Corrupt {
            path: self.path.clone(),
            detail,
        }
    }
}

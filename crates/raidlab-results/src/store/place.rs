//! The file of a store: what may be opened, and how a new one comes into being.
use super::{BUSY_TIMEOUT, MIGRATIONS, StoreError, migrate};
use rusqlite::Connection;
use rustix::fs::{Access, access};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// An absolute path never has a special meaning to SQLite, as `:memory:` and `file:x?mode=ro` have.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|e| of_io(path, &e))
}

/// Whether there is a file that SQLite may open; an error for anything else. A device above all
/// must never be opened: SQLite would write to one that begins with zeros.
///
/// The file is not opened to find out: closing it would drop the locks that another connection of
/// this process may hold on it.
pub(super) fn is_there(path: &Path) -> Result<bool, StoreError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(of_io(path, &e)),
    };
    let kind = metadata.file_type();
    let kind = if kind.is_dir() {
        "a directory"
    } else if kind.is_block_device() {
        "a block device"
    } else if !kind.is_file() {
        "a special file"
    } else if metadata.len() == 1 {
        // SQLite takes a file of one byte for an empty one and would overwrite it.
        return Err(StoreError::NotSqlite {
            path: path.to_owned(),
        });
    } else {
        return Ok(true);
    };
    Err(StoreError::NotAFile {
        path: path.to_owned(),
        kind,
    })
}

/// Makes a new store, which appears at `path` whole or not at all: it is built under another name
/// beside it. When another process is faster, its store stays.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let directory = path.parent().unwrap_or(path);
    if !directory.exists() {
        return Err(StoreError::NoDirectory {
            path: path.to_owned(),
            directory: directory.to_owned(),
        });
    }
    let file = tempfile::Builder::new()
        .prefix(".raidlab-store-")
        // The user's umask decides, as for any file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(|e| of_io(path, &e))?
        .into_temp_path();
    let build = || {
        let mut connection = Connection::open(&file)?;
        connection.pragma_update(None, "synchronous", "EXTRA")?;
        migrate(&mut connection, MIGRATIONS)
    };
    build().map_err(|e| StoreError::of_sqlite(path, BUSY_TIMEOUT, e))?;
    // The first transaction in the store syncs the directory, and with it the new name.
    match file.persist_noclobber(path) {
        Ok(()) => Ok(()),
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(of_io(path, &e.error)),
    }
}

/// Why SQLite would only read the store. It takes a format in the file's header that it does not know for one of a later
/// SQLite; no store has such a format. The name is asked about, and not the file: see [`is_there`].
pub(super) fn only_read(path: PathBuf) -> StoreError {
    match access(&path, Access::WRITE_OK) {
        Ok(()) => StoreError::Corrupt {
            path,
            detail: "its header names a format that SQLite does not write".to_owned(),
        },
        Err(_) => StoreError::ReadOnly {
            path,
            detail: "no permission to write, or a read-only file system".to_owned(),
        },
    }
}

fn of_io(path: &Path, error: &io::Error) -> StoreError {
    let path = path.to_owned();
    // Without the name of the file beside, which says nothing to a user.
    let detail = error.to_string();
    let detail = detail
        .split(" at path ")
        .next()
        .unwrap_or_default()
        .to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
        io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path, detail },
        _ => StoreError::CannotOpen { path, detail },
    }
}

//! Where results are kept.
use crate::exit::{Failure, MISSING};
use std::path::PathBuf;

/// The store's file: what `--store` says, or the XDG data directory.
#[derive(Debug)]
pub(crate) struct Store {
    given: Option<PathBuf>,
}

impl Store {
    pub(crate) fn new(given: Option<PathBuf>) -> Self {
        Self { given }
    }

    /// Whether the user named the file.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// The path, with its directory made when it is the default one.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.given {
            return Ok(path.clone());
        }
        let directories = directories::ProjectDirs::from("", "", "raidlab").ok_or_else(|| {
            Failure::new(MISSING, "no home directory to keep results in")
                .remedy("name a file with --store, or set HOME or XDG_DATA_HOME")
        })?;
        let directory = directories.data_dir();
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::new(
                MISSING,
                format!("cannot make {}: {error}", directory.display()),
            )
            .remedy(
                "name a file with --store, or set XDG_DATA_HOME to a directory that can be written",
            )
        })?;
        Ok(directory.join("results.sqlite"))
    }
}

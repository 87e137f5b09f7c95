//! Where results are kept.
use crate::args::Cli;
use crate::exit::{Failure, MISSING};
use crate::talk;
use std::path::{Path, PathBuf};

/// The environment's say about the store.
const VARIABLE: &str = "RAIDLAB_STORE";

/// The store's file: what `--store` says, or the XDG data directory.
#[derive(Debug)]
pub(crate) struct Store {
    given: Option<PathBuf>,
}

impl Store {
    /// The nearest word counts: `--store` after the command, before it, the environment.
    ///
    /// A command that has no use for it is carried out all the same, and says so: refused, it hid what else was wrong with it, and
    /// whoever has `--store` in an alias had no such command.
    pub(crate) fn new(cli: &Cli) -> Self {
        let own = cli.command.store();
        if own.is_none() && cli.store.store.is_some() {
            talk::note("--store means nothing to this command: results are neither read nor kept");
        }
        let own = own.and_then(|args| args.store.as_ref());
        let said = own.or(cli.store.store.as_ref());
        let environment = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        Self {
            given: said.cloned().or_else(|| environment.map(PathBuf::from)),
        }
    }

    /// Whether the user named the file.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Where it is, or would be: nothing is made.
    ///
    /// # Errors
    /// When nobody says where this user keeps data.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.given {
            return Ok(path.clone());
        }
        let directories = directories::ProjectDirs::from("", "", "raidlab").ok_or_else(|| {
            Failure::new(MISSING, "no home directory to keep results in")
                .remedy("name a file with --store, or set HOME or XDG_DATA_HOME")
        })?;
        Ok(directories.data_dir().join("results.sqlite"))
    }

    /// The path for one who is going to write, with its directory made when it is the default one.
    ///
    /// # Errors
    /// As [`path`](Self::path), and when the directory cannot be made.
    pub(crate) fn to_write(&self) -> Result<PathBuf, Failure> {
        let path = self.path()?;
        if let (false, Some(directory)) = (self.is_given(), path.parent()) {
            made(directory)?;
        }
        Ok(path)
    }
}

fn made(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::new(
            MISSING,
            format!("cannot make {}: {error}", directory.display()),
        )
        .remedy("name a file with --store, or set XDG_DATA_HOME to a directory that can be written")
    })
}

//! Where a trial takes place: a working directory, an existing file, or a device.
use super::error::RunError;
use super::workdir::{Stale, WorkDir};
use crate::engine::{data_name, size_of};
use crate::observe::{ObserveError, PathKind, Resolved, Roots, resolve};
use raidlab_core::op::FileId;
use raidlab_core::phase::Needed;
use raidlab_core::units::Bytes;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Size of a file or block device; [`NULL_SIZE`] for a character device.
///
/// # Errors
/// When it cannot be opened for reading.
pub fn size_of_place(path: &Path) -> Result<Bytes, RunError> {
    let file = File::open(path).map_err(RunError::path("open", path))?;
    let size = size_of(&file).map_err(RunError::path("find the size of", path))?;
    // What `size_of` says of something without an end.
    Ok(Bytes(if size == i64::MAX as u64 {
        NULL_SIZE
    } else {
        size
    }))
}

/// Bytes that a character device such as `/dev/zero` is taken to have.
pub const NULL_SIZE: u64 = 1 << 30;

#[derive(Debug)]
enum Kind {
    Directory(WorkDir),
    Given { size: u64, writable: bool },
}

/// Where phases run. Dropping it removes what raidlab made there.
#[derive(Debug)]
pub struct Place {
    kind: Kind,
    resolved: Resolved,
    stale: Stale,
    /// Data files that were laid out, as long as no phase has run since.
    laid_out: Mutex<Vec<Needed>>,
}

impl Place {
    /// Opens a directory (in which a working directory is made, and those of raidlabs that are gone
    /// are removed), an existing file, a block device, or a character device such as `/dev/zero`.
    /// Phases write in a directory alone: what exists is only read.
    ///
    /// # Errors
    /// When the path does not exist, is of another kind, or a directory cannot be written to.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let resolved = resolve(&Roots::system(), path)?;
        let mut stale = Stale::default();
        let kind = if resolved.kind == PathKind::Directory {
            stale = WorkDir::remove_stale(&resolved.path);
            Kind::Directory(WorkDir::create(&resolved.path)?)
        } else {
            Kind::Given {
                size: size_of_place(&resolved.path)?.0,
                writable: false,
            }
        };
        Ok(Self {
            kind,
            resolved,
            stale,
            laid_out: Mutex::default(),
        })
    }

    /// Opens a block device to be written to. `held` is an open descriptor of that very device by which whoever calls
    /// holds it against others for as long as the place is used: this is where the right to write to a device comes
    /// from, and nothing here can give it.
    ///
    /// # Errors
    /// When the path is no block device, or another one than the descriptor's.
    pub fn on_held_device(path: &Path, held: &File) -> Result<Self, RunError> {
        let resolved = resolve(&Roots::system(), path)?;
        let number = |file: std::io::Result<std::fs::Metadata>| file.map(|found| found.rdev());
        let same =
            number(held.metadata()).and_then(|held| Ok(held == number(std::fs::metadata(path))?));
        if resolved.kind != PathKind::BlockDevice
            || !same.map_err(RunError::path("inspect", path))?
        {
            return Err(ObserveError::WrongKind {
                path: path.to_owned(),
                expected: "the block device that is held",
            }
            .into());
        }
        let size = size_of_place(path)?.0;
        Ok(Self {
            kind: Kind::Given {
                size,
                writable: true,
            },
            resolved,
            stale: Stale::default(),
            laid_out: Mutex::default(),
        })
    }

    /// Remembers data files that were just laid out.
    pub(super) fn laid_out(&self, files: &[Needed]) {
        let known = self.laid_out.lock();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(files);
    }

    /// The data files that are known to be there, once: what comes may change them.
    pub(super) fn take_laid_out(&self) -> Vec<Needed> {
        let known = self.laid_out.lock();
        std::mem::take(&mut *known.unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of the working directory, with what is in it, while `remount` has its file system unmounted and mounted again, and
    /// finds it again there. When that fails it is left to what becomes of the file system.
    ///
    /// # Errors
    /// When it is not found again.
    pub fn while_remounted<T, E>(
        &mut self,
        remount: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, RunError> {
        let Kind::Directory(work) = &mut self.kind else {
            return Ok(remount());
        };
        work.leave();
        let came = remount();
        if came.is_ok() {
            work.come_back()?;
            self.resolved = resolve(&Roots::system(), &self.resolved.path)?;
        }
        Ok(came)
    }

    /// The path that was opened, its mount and the devices underneath.
    #[must_use]
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The working directory; `None` for a given file or device.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Directory(work) => Some(work.path()),
            Kind::Given { .. } => None,
        }
    }

    /// What became of working directories of earlier runs that were killed when this place was opened.
    #[must_use]
    pub fn stale(&self) -> &Stale {
        &self.stale
    }

    /// Where a data file is: in the working directory, or the given file or device itself.
    #[must_use]
    pub fn data(&self, file: FileId) -> PathBuf {
        match &self.kind {
            Kind::Directory(work) => work.path().join(data_name(file)),
            Kind::Given { .. } => self.resolved.path.clone(),
        }
    }

    /// The working directory for this process, by a way that does not go by its name; `None` for a given file or device.
    pub(super) fn inside(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Directory(work) => Some(work.way()),
            Kind::Given { .. } => None,
        }
    }

    /// A data file for this process: as [`Self::inside`].
    pub(super) fn way(&self, file: FileId) -> PathBuf {
        match &self.kind {
            Kind::Directory(work) => work.way().join(data_name(file)),
            Kind::Given { .. } => self.resolved.path.clone(),
        }
    }

    /// Bytes of a given file or device; `None` for a directory, in which files are made as large as
    /// needed.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::Directory(_) => None,
            Kind::Given { size, .. } => Some(size),
        }
    }

    /// Whether phases may write here.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        match self.kind {
            Kind::Directory(_) => true,
            Kind::Given { writable, .. } => writable,
        }
    }

    /// Why phases may not write here, with the remedy.
    pub(super) fn why_not_writable(&self) -> &'static str {
        if self.resolved.kind == PathKind::BlockDevice {
            "is a device, and devices are only read; measure a directory on a file system on it"
        } else {
            "is a file that exists, and such files are only read; measure the directory that it is in"
        }
    }

    /// Whether no storage is behind it (`/dev/zero`).
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.resolved.kind == PathKind::CharacterDevice
    }

    /// Removes the working directory now and tells when that fails (dropping does not tell).
    ///
    /// # Errors
    /// When something in it cannot be removed, or is not raidlab's.
    pub fn close(self) -> Result<(), RunError> {
        match self.kind {
            Kind::Directory(work) => work.remove(),
            Kind::Given { .. } => Ok(()),
        }
    }
}

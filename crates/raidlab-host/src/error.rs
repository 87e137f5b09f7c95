//! What can go wrong with devices, and which kind of answer it is.
use raidlab_io::observe::ObserveError;
use std::io;
use std::path::{Path, PathBuf};

/// Which kind of answer an error is: callers turn it into an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request makes no sense.
    BadRequest,
    /// Refused, because someone's data could be lost.
    Refused,
    /// Something that is needed is missing: a tool, a permission, a part of the kernel.
    Missing,
    /// It was tried, and it failed.
    Failed,
    /// The user asked to stop.
    Interrupted,
}

/// An error of devices and of what is built on them.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A device may not be written to.
    #[error("{device} may not be used: {why}")]
    Refused {
        /// The device, by its path.
        device: String,
        /// Why, with what is on it.
        why: String,
    },
    /// The request makes no sense here.
    #[error("{0}")]
    BadRequest(String),
    /// Something is missing.
    #[error("{what}; {remedy}")]
    Missing {
        /// What.
        what: String,
        /// What would help.
        remedy: String,
    },
    /// A tool failed.
    #[error("'{command}' failed ({status}): {output}")]
    Tool {
        /// The command line.
        command: String,
        /// `exit status: 1`
        status: String,
        /// The last lines that it wrote.
        output: String,
    },
    /// Something is not as it must be after a step.
    #[error("{0}")]
    Unexpected(String),
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Call {
        /// What was attempted, in words that stand between "cannot" and the path.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The machine could not be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Of this crate's operations.
pub type Result<T, E = HostError> = std::result::Result<T, E>;

impl HostError {
    /// Which kind of answer it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { .. } => ErrorKind::Refused,
            Self::BadRequest(_) => ErrorKind::BadRequest,
            Self::Missing { .. } => ErrorKind::Missing,
            Self::Call { source, .. } if lacks_something(source) => ErrorKind::Missing,
            Self::Tool { .. } | Self::Unexpected(_) | Self::Call { .. } | Self::Observe(_) => {
                ErrorKind::Failed
            }
            Self::Interrupted => ErrorKind::Interrupted,
        }
    }

    pub(crate) fn refused(device: &Path, why: impl Into<String>) -> Self {
        Self::Refused {
            device: device.display().to_string(),
            why: why.into(),
        }
    }

    pub(crate) fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn call<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |source| Self::Call {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Permission, or room to write.
fn lacks_something(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}

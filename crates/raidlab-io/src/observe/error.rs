//! What can go wrong while looking at the machine.

use super::privilege;
use std::io;
use std::path::{Path, PathBuf};

/// A failed look at the machine, with the place and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file of `/proc` or `/sys`, or the inspected path, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of `/proc` or `/sys` does not have the documented form.
    #[error("{file}: line {line}: {problem}")]
    Malformed {
        /// The file, as its usual path.
        file: &'static str,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Call {
        /// What was attempted, in words that stand between "cannot" and the path.
        action: &'static str,
        /// The object of the call.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is of a kind that cannot be looked at in the way asked for.
    #[error("{} is not {expected}", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// What it would have to be, with its article.
        expected: &'static str,
    },
    /// The kernel does not know the block device.
    #[error("block device {major}:{minor} is not listed in {}; is /sys mounted?", sys.display())]
    UnknownDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// Where it was looked for.
        sys: PathBuf,
    },
}

fn remedy(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            let otherwise = "run as root, or leave this step out";
            format!("; {}", privilege::remedy(privilege::is_root(), otherwise))
        }
        _ => String::new(),
    }
}

impl ObserveError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn call<'a, E: Into<io::Error> + 'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + 'a {
        move |source| Self::Call {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    pub(crate) fn malformed(file: &'static str, line: usize, problem: impl Into<String>) -> Self {
        Self::Malformed {
            file,
            line,
            problem: problem.into(),
        }
    }
}

/// Result of an observation.
pub type Result<T> = std::result::Result<T, ObserveError>;

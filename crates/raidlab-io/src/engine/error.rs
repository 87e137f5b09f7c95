//! What can go wrong while a target is made.
use crate::descriptor::by_name;
use crate::observe::privilege;
use std::io;
use std::path::{Path, PathBuf};

/// A target could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file or device could not be opened or looked at.
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Open {
        /// What was attempted, in words that stand between "cannot" and the path.
        action: &'static str,
        /// The file, directory or device.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system has no direct I/O.
    #[error("{}: direct I/O is not supported here; measure buffered, or name a path on another file system", path.display())]
    NoDirect {
        /// The file.
        path: PathBuf,
    },
    /// io_uring is missing or forbidden.
    #[error("io_uring is not available: {source}{}", uring_remedy(source))]
    NoUring {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's io_uring lacks a feature.
    #[error("this kernel's io_uring lacks {feature} ({since}); use the blocking engine")]
    OldUring {
        /// What is missing.
        feature: &'static str,
        /// Since when it exists: `Linux 5.11`.
        since: &'static str,
    },
    /// Memory for buffers.
    #[error(
        "cannot allocate {bytes} bytes of I/O buffers: {source}; give a smaller depth or block size"
    )]
    Memory {
        /// How many bytes.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
}

fn remedy(source: &io::Error) -> String {
    if source.kind() == io::ErrorKind::PermissionDenied {
        let otherwise = "run as a user who may, or name another path";
        return format!("; {}", privilege::remedy(privilege::is_root(), otherwise));
    }
    other_remedy(source).to_owned()
}

fn other_remedy(source: &io::Error) -> &'static str {
    if let Some(libc::EMFILE | libc::ENFILE) = source.raw_os_error() {
        return "; raise the limit of open files (ulimit -n), or give fewer jobs";
    }
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "; remount it for writing, or name another path",
        io::ErrorKind::StorageFull => "; free some space, or give a smaller size",
        _ => "",
    }
}

fn uring_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOSYS) => " (the kernel was built without it); use the blocking engine",
        // What a seccomp filter (Docker, systemd) and the sysctl of Linux 6.6 answer.
        Some(libc::EPERM) => {
            " (a seccomp filter or kernel.io_uring_disabled forbids it); allow it, or use the blocking engine"
        }
        Some(libc::ENOMEM) => {
            "; raise the limit of locked memory (ulimit -l), or use the blocking engine"
        }
        // A ring is an open file too.
        Some(libc::EMFILE | libc::ENFILE) => {
            "; raise the limit of open files (ulimit -n), or give fewer jobs"
        }
        _ => "; use the blocking engine",
    }
}

impl EngineError {
    pub(crate) fn open<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |source| Self::Open {
            action,
            path: by_name(path),
            source: source.into(),
        }
    }
}

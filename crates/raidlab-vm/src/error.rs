//! What can go wrong on the host's side, each with what would help.
use std::io;
use std::path::{Path, PathBuf};

/// An error of the virtual machine's host side.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// A file or directory.
    #[error("cannot {what} {}: {source}", path.display())]
    Path {
        /// What was to be done with it.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program that is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// Which.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// A program that could not be started or failed.
    #[error("{command} failed: {said}")]
    Command {
        /// As a shell takes it.
        command: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// There is no kernel to boot.
    #[error("there is no kernel to boot: {0}")]
    NoKernel(String),
    /// A program or module that cannot go into the image.
    #[error("cannot put {} into the guest's image: {why}", path.display())]
    Image {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// ZFS cannot be built.
    #[error("cannot build ZFS: {0}")]
    NoZfs(String),
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The machine is of another kind.
    #[error("the virtual machine runs on x86-64 alone")]
    Architecture,
    /// The system has no more of something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl VmError {
    /// An error of a path.
    pub(crate) fn path(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Path { what, path, source }
    }

    /// An error of the system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// What would help.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Missing { package, .. } => Some(format!(
                "apt-get install {package} (with a newer qemu-utils on the machine: name qemu-utils, \
                 too, in the version of {package}, and --allow-downgrades)"
            ))
            .filter(|_| package.starts_with("qemu"))
            .or_else(|| Some(format!("apt-get install {package}"))),
            Self::NoKernel(_) => Some(
                "'apt-get update' lets apt find kernel packages; a package's file can be given as \
                 raidlab vm setup --package FILE.deb"
                    .to_owned(),
            ),
            Self::NoZfs(_) => Some(
                "it takes Debian's contrib component on a reachable mirror, and a kernel that its zfs-dkms knows; \
                 '--on host' uses the ZFS of this machine"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

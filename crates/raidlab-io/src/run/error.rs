//! Why a phase could not be run: each error says what to do.
use super::remedy::{remedy, shortened};
use crate::descriptor::by_name;
use crate::engine::EngineError;
use crate::observe::ObserveError;
use raidlab_core::drive::DriveError;
use raidlab_core::target::{Errno, TargetError};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::io;
use std::path::{Path, PathBuf};

/// A phase could not be run, or a place not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file system call failed.
    #[error("cannot {action} {}: {source}{remedy}", path.display())]
    Path {
        /// What was attempted, in words that stand between "cannot" and the path.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What helps, as it was then: `; free some space`, or nothing. Later the working directory is gone.
        remedy: String,
    },
    /// A working directory is not removed: something of someone's would go with it.
    #[error("{} stays: {why}", path.display())]
    Stays {
        /// The working directory.
        path: PathBuf,
        /// What is in it, with the remedy.
        why: String,
    },
    /// Not enough space for the data files.
    #[error(
        "{}: {needed} are needed, {available} are available{}; free some space, or give a smaller size",
        path.display(),
        by_quota(limit.as_deref())
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Bytes still to be written.
        needed: Bytes,
        /// Bytes this user may use.
        available: Bytes,
        /// The quota that allows no more, in words.
        limit: Option<String>,
    },
    /// The given file or device is too small for the workload.
    #[error("{} has {size}, the workload needs {needed}; give a smaller size or block size, or a larger file", path.display())]
    TooSmall {
        /// The file or device.
        path: PathBuf,
        /// Its size.
        size: Bytes,
        /// What the workload addresses.
        needed: Bytes,
    },
    /// The phase writes to something that is only read.
    #[error("phase '{phase}' writes, but {} {why}", path.display())]
    NotWritable {
        /// Stable name of the phase.
        phase: String,
        /// The file or device.
        path: PathBuf,
        /// Why, with the remedy.
        why: &'static str,
    },
    /// An operation failed while the phase ran.
    #[error("{}: {what}: {source}{remedy}", path.display())]
    Operation {
        /// Where.
        path: PathBuf,
        /// Which operation of which job.
        what: String,
        /// What the system said.
        source: io::Error,
        /// What helps, as in [`Path`](Self::Path).
        remedy: String,
    },
    /// An operation moved fewer bytes than asked for.
    #[error("{}: {what}; {why}", path.display())]
    Short {
        /// Where.
        path: PathBuf,
        /// Which operation of which job.
        what: String,
        /// What may have caused it, as it was then.
        why: String,
    },
    /// The target does not take such an operation.
    #[error("{}: {source}", path.display())]
    Target {
        /// Where.
        path: PathBuf,
        /// What it refused.
        source: TargetError,
    },
    /// Nothing ended for too long.
    #[error(
        "{}: nothing ended for {waited} (job {job}, {in_flight}, thread state {state}); the device or the network behind it does not answer: see the kernel's log (dmesg)",
        path.display()
    )]
    Stalled {
        /// Where.
        path: PathBuf,
        /// Number of the job.
        job: usize,
        /// How long.
        waited: Span,
        /// `3 operations in flight`, or `in a system call`.
        in_flight: String,
        /// State of the job's thread as `/proc` gives it: `D` is uninterruptible sleep.
        state: char,
    },
    /// The job's operations wait for one another.
    #[error(
        "job {job} of phase '{phase}' waits for an operation that it never asked for; this is a fault of the workload"
    )]
    Deadlock {
        /// Stable name of the phase.
        phase: String,
        /// Number of the job.
        job: usize,
    },
    /// A target could not be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The machine could not be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}; give fewer jobs")]
    Thread(io::Error),
    /// A job's thread ended without a result.
    #[error("job {job} of phase '{phase}' died; this is a fault of raidlab")]
    Died {
        /// Stable name of the phase.
        phase: String,
        /// Number of the job.
        job: usize,
    },
    /// All had ended before anything was counted.
    #[error(
        "phase '{phase}' ended within its ramp of {ramp}: nothing was counted; give a longer time, a larger size, or a shorter ramp"
    )]
    EndedInRamp {
        /// Stable name of the phase.
        phase: String,
        /// Not counted at its start.
        ramp: Span,
    },
    /// Ended by the user before there was a result.
    #[error("cancelled")]
    Cancelled,
}

fn by_quota(limit: Option<&str>) -> String {
    limit.map_or(String::new(), |limit| format!(" by {limit}"))
}

impl RunError {
    pub(super) fn path<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |source| {
            let source = source.into();
            let path = by_name(path);
            Self::Path {
                action,
                remedy: remedy(&source, &path),
                path,
                source,
            }
        }
    }

    /// What a drive's failure means for the user.
    pub(super) fn from_drive(error: DriveError, path: &Path, phase: &str, job: usize) -> Self {
        let path = by_name(path);
        match error {
            DriveError::Op { index, op, errno } => Self::Operation {
                remedy: remedy(&system(errno), &path),
                path,
                what: format!("operation {index} of job {job} ({op}) failed"),
                source: system(errno),
            },
            DriveError::Refused { index, op, times } => Self::Operation {
                path,
                what: format!("operation {index} of job {job} ({op}) was refused {times} times"),
                source: system(Errno::AGAIN),
                remedy:
                    "; the kernel was asked to wait for the device each time: see its log (dmesg)"
                        .to_owned(),
            },
            DriveError::Short { index, op, moved } => Self::Short {
                why: shortened(&path, u64::from(op.bytes())),
                path,
                what: format!(
                    "operation {index} of job {job} ({op}) moved {moved} of {} bytes",
                    op.bytes()
                ),
            },
            DriveError::Stalled { waited, in_flight } => Self::Stalled {
                path,
                job,
                waited,
                in_flight: format!("{in_flight} in flight"),
                state: 'S',
            },
            DriveError::Deadlock => Self::Deadlock {
                phase: phase.to_owned(),
                job,
            },
            DriveError::Target(source) => Self::Target { path, source },
        }
    }
}

fn system(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

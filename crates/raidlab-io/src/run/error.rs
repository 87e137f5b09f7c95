//! Why a phase could not be run: each error says what to do.
use crate::engine::EngineError;
use crate::observe::environment::space_at;
use crate::observe::stack::DeviceStack;
use crate::observe::{ObserveError, PathKind, Roots, privilege, quota, resolve};
use raidlab_core::drive::DriveError;
use raidlab_core::target::{Errno, TargetError};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
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

/// Why fewer of `wanted` bytes were moved: a device that is pulled out has no bytes from then on, and soon no name; a file system
/// writes what a quota or its space still allows, and only then says so.
fn shortened(path: &Path, wanted: u64) -> String {
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return "the device has gone, or has become smaller: see the kernel's log (dmesg)"
            .to_owned();
    }
    let roots = Roots::system();
    if quota::tightest(&roots, path).is_some_and(|quota| quota.left() < Some(wanted)) {
        return quota::told(&roots, path);
    }
    match space_at(path) {
        Ok(space) if space.available < wanted => {
            "the disk is full: free some space, or give a smaller size".to_owned()
        }
        _ => "is the file shorter than the workload believes, or the disk full?".to_owned(),
    }
}

fn by_quota(limit: Option<&str>) -> String {
    limit.map_or(String::new(), |limit| format!(" by {limit}"))
}

pub(super) fn remedy(source: &io::Error, path: &Path) -> String {
    if let Some(libc::EACCES | libc::EPERM) = source.raw_os_error() {
        let otherwise = "run as a user who may, or name another path";
        return format!("; {}", privilege::remedy(privilege::is_root(), otherwise));
    }
    if source.raw_os_error() == Some(libc::EDQUOT) {
        return format!("; {}", quota::told(&Roots::system(), path));
    }
    let is_device =
        || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if source.raw_os_error() == Some(libc::ENOSPC) && is_device() {
        return "; what the device gets its space from is full (a thin pool, the file system of a loop file): make room there"
            .to_owned();
    }
    if source.raw_os_error() == Some(libc::EIO) {
        return failed(&beneath(path));
    }
    other_remedy(source).to_owned()
}

/// What gave an I/O error: of a file, and of a device on others, the path alone does not say which to look at.
fn failed(beneath: &[String]) -> String {
    let named = match beneath {
        [] => String::new(),
        names => format!(" beneath it ({})", names.join(" on ")),
    };
    format!("; the device{named} failed: see the kernel's log (dmesg)")
}

/// The devices beneath a file or device, from the uppermost to the lowest, by the kernel's names. None of a device that stands on no
/// other: the path names it.
fn beneath(path: &Path) -> Vec<String> {
    let resolved = resolve(&Roots::system(), path).ok();
    let levels = resolved.and_then(|resolved| {
        let own = usize::from(resolved.kind == PathKind::BlockDevice);
        Some(levels(resolved.stack()?).split_off(own))
    });
    levels.unwrap_or_default()
}

/// The names of each level of a stack.
fn levels(stack: &DeviceStack) -> Vec<String> {
    let mut levels = Vec::new();
    let mut level: Vec<&str> = stack.top_names().collect();
    // No stack is higher than it has devices.
    while !level.is_empty() && levels.len() < stack.devices.len() {
        levels.push(level.join(", "));
        let below = level.iter().filter_map(|name| stack.device(name));
        level = below
            .flat_map(|device| &device.below)
            .map(String::as_str)
            .collect();
        level.sort_unstable();
        level.dedup();
    }
    levels
}

fn other_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EROFS) => "; remount it for writing, or name another path",
        Some(libc::ENOSPC) => "; free some space, or give a smaller size",
        Some(libc::EFBIG) => "; the file system or a limit (ulimit -f) allows no file of this size",
        Some(libc::ENXIO | libc::ENODEV) => "; the device has gone: see the kernel's log (dmesg)",
        Some(libc::ENOTCONN) => {
            "; the program that served the file system has ended: mount it again"
        }
        Some(libc::ESTALE) => "; the server has another file system there by now: mount it again",
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n)",
        Some(libc::ENOENT) => "; is the path right?",
        _ => "",
    }
}

impl RunError {
    pub(super) fn path<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |source| {
            let source = source.into();
            Self::Path {
                action,
                path: path.to_owned(),
                remedy: remedy(&source, path),
                source,
            }
        }
    }

    /// What a drive's failure means for the user.
    pub(super) fn from_drive(error: DriveError, path: &Path, phase: &str, job: usize) -> Self {
        let path = path.to_owned();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::resolve::device_stack;

    #[test]
    fn an_io_error_names_the_devices_beneath() {
        let tree = tempfile::tempdir().expect("a tree");
        std::fs::create_dir_all(tree.path().join("proc/self")).expect("made");
        std::fs::write(tree.path().join("proc/self/mountinfo"), "").expect("made");
        let class = tree.path().join("sys/class/block");
        std::fs::create_dir_all(&class).expect("made");
        for (name, slaves) in [("md0", &["sdb", "sda"][..]), ("sda", &[]), ("sdb", &[])] {
            let dir = tree.path().join("sys/devices").join(name);
            std::fs::create_dir_all(dir.join("slaves")).expect("made");
            for slave in slaves {
                std::fs::write(dir.join("slaves").join(slave), "").expect("made");
            }
            std::os::unix::fs::symlink(&dir, class.join(name)).expect("made");
        }
        let stack = device_stack(&Roots::under(tree.path()), vec!["md0".to_owned()]);
        let levels = levels(&stack.expect("a stack"));
        assert_eq!(levels, ["md0", "sda, sdb"]);
        assert_eq!(
            failed(&levels),
            "; the device beneath it (md0 on sda, sdb) failed: see the kernel's log (dmesg)"
        );
        assert_eq!(
            failed(&[]),
            "; the device failed: see the kernel's log (dmesg)"
        );
    }

    #[test]
    fn a_device_that_has_gone_is_not_taken_for_a_short_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let told = |path: &Path| {
            let what = "operation 852 moved 0 of 4096 bytes".to_owned();
            let (path, why) = (path.to_owned(), shortened(path, 4096));
            RunError::Short { path, what, why }.to_string()
        };
        assert!(told(file.path()).contains("is the file shorter"));
        // Seen with a disk of scsi_debug: its node goes with it.
        let gone = told(Path::new("/dev/sd-no-more"));
        assert!(gone.contains("the device has gone"), "{gone}");
    }
}

//! Opening a device for itself alone.
use crate::error::{HostError, Result};
use raidlab_io::observe::privilege;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Opens a device so that nobody else can take it: not the kernel for a mount, swap or array, nor another program that
/// asks in the same way.
///
/// # Errors
/// [`HostError::Refused`] when someone has it.
pub(crate) fn open_exclusively(path: &Path) -> Result<File> {
    open_with(path, true)
}

/// How long a device may be busy: whoever looks for a free loop device, or at a device that is new, holds it for a moment.
const MOMENT: Duration = Duration::from_millis(500);

pub(super) fn open_with(path: &Path, exclusively: bool) -> Result<File> {
    let exclusive = if exclusively { libc::O_EXCL } else { 0 };
    let begun = Instant::now();
    loop {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(exclusive | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begun.elapsed() < MOMENT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other.map_err(|error| not_opened(path, error)),
        }
    }
}

fn not_opened(path: &Path, error: std::io::Error) -> HostError {
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            HostError::refused(path, "it is busy: the kernel or another program holds it")
        }
        Some(libc::EROFS) => HostError::refused(path, "it is write-protected"),
        Some(libc::EACCES | libc::EPERM) => HostError::missing(
            format!(
                "{} may not be written to by this user: {error}",
                path.display()
            ),
            privilege::remedy(privilege::is_root(), "run as root"),
        ),
        _ => HostError::call("open", path)(error),
    }
}

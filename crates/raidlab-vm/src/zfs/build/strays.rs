//! Compilers of a build whose raidlab was killed.
use super::LOOK;
use crate::cache::names;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

/// Variable in the environment of all that a build starts: the directory that it works in. A shell that somebody has in
/// there has none.
pub(in crate::zfs) const MARK: &str = "RAIDLAB_BUILD";

/// Ends what works in this directory: compilers of a build whose raidlab was killed may go on for a moment.
pub(super) fn end_strays(work: &Path) {
    let Ok(work) = work.canonicalize() else {
        return;
    };
    let begun = Instant::now();
    for signal in [Signal::TERM, Signal::KILL] {
        while signal_all(&work, signal) && begun.elapsed() < 10 * LOOK {
            std::thread::sleep(LOOK / 10);
        }
    }
}

/// Whether there was any process of a build in this directory.
fn signal_all(work: &Path, signal: Signal) -> bool {
    let mark = [MARK.as_bytes(), b"=", work.as_os_str().as_bytes()].concat();
    let mut any = false;
    for name in names(Path::new("/proc")) {
        let Some(pid) = name.parse().ok().and_then(Pid::from_raw) else {
            continue;
        };
        // The handle is of one process for good: looked at afterwards, it is the one.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let environment = fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|word| word == mark)
        {
            any |= pidfd_send_signal(&handle, signal).is_ok();
        }
    }
    any
}

//! Compilers of a build whose raidlab was killed.
use super::{LOOK, names};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::path::Path;
use std::time::Instant;

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

/// Whether there was any process with its working directory in this one.
fn signal_all(work: &Path, signal: Signal) -> bool {
    let mut any = false;
    for name in names(Path::new("/proc")) {
        let Some(pid) = name.parse().ok().and_then(Pid::from_raw) else {
            continue;
        };
        // The handle is of one process for good: looked at afterwards, it is the one.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let at = fs::read_link(format!("/proc/{name}/cwd"));
        if at.is_ok_and(|at| at.starts_with(work)) {
            any |= pidfd_send_signal(&handle, signal).is_ok();
        }
    }
    any
}

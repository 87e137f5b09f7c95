//! Signals that are heard whatever the program is doing.
//!
//! The kernel gives a signal of a process to its first thread where that does not block it, also when that one is held in the kernel
//! by a dead disk: then nobody hears of it until the disk answers. So all threads block it but one, which does nothing else.
use std::io;

/// Has a thread of its own hear these signals. To be called before there are other threads: those that come later block them, as
/// the caller does from here on. Programs that are started do not: the standard library sees to that.
///
/// # Errors
/// When there is no thread to be had, or the kernel knows no such signal.
pub fn in_a_thread_of_its_own(signals: &[i32]) -> io::Result<()> {
    let set = set_of(signals)?;
    mask(libc::SIG_BLOCK, &set)?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let listening = thread.spawn(move || {
        if mask(libc::SIG_UNBLOCK, &set).is_ok() {
            loop {
                std::thread::park();
            }
        }
    });
    if listening.is_err() {
        // Better heard late than not at all.
        mask(libc::SIG_UNBLOCK, &set)?;
    }
    listening.map(drop)
}

fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    // SAFETY: sigset_t is plain data, for which all zeros are a value; sigemptyset and sigaddset write to nothing but it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            if libc::sigaddset(&raw mut set, *signal) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(set)
    }
}

/// Changes which signals the calling thread blocks.
fn mask(how: i32, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set lives over the call, and what was blocked before is not asked for.
    match unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

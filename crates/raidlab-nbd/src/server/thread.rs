//! What the server's thread asks of the kernel: time, sleep, and its turn.
use super::Scheduling;
use raidlab_core::time::Span;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::os::fd::RawFd;

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds on the clock that is never set. In a virtual machine that counts instructions this is
/// virtual time.
pub(super) fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time that this thread has used.
pub(super) fn own_cpu() -> Span {
    Span(nanos(ClockId::ThreadCPUTime))
}

/// Asks for the scheduling, and for timers that fire when they are due; whether it was granted.
pub(super) fn settle(scheduling: Scheduling) -> bool {
    // Without it ordinary threads are woken up to 50 us late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let (policy, priority) = match scheduling {
        // Above ordinary work, below the kernel's own threads of this class.
        Scheduling::First => (libc::SCHED_FIFO, 10),
        Scheduling::Ordinary => return true,
        Scheduling::Batch => (libc::SCHED_BATCH, 0),
    };
    // SAFETY: all zeroes is a valid `sched_param`, which has plain numbers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the parameters live across the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) == 0 }
}

/// One descriptor to wait for.
pub(super) const fn wanted(fd: RawFd, read: bool, write: bool) -> libc::pollfd {
    let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
    libc::pollfd {
        // A negative one is passed over: nobody is told of a hang-up again and again.
        fd: if events == 0 { -1 } else { fd },
        events,
        revents: 0,
    }
}

/// Sleeps until one of the descriptors has something, or so long.
pub(super) fn wait(descriptors: &mut [libc::pollfd], at_most: Option<Span>) {
    let time = at_most.map(|span| libc::timespec {
        tv_sec: (span.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the descriptors and the time live across the call; no signal mask is given.
    let ready = unsafe { libc::ppoll(descriptors.as_mut_ptr(), count, time, std::ptr::null()) };
    if ready < 0 {
        // Interrupted: nothing is known to be ready, and the caller looks at the clock again.
        descriptors.iter_mut().for_each(|d| d.revents = 0);
    }
}

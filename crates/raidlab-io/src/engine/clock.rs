//! One time axis for all targets of a run.
use raidlab_core::time::Instant;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC` with a zero of its own, so that the targets of several threads share an axis.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

/// Nanoseconds of `CLOCK_MONOTONIC`; through the vDSO, so no system call where the TSC is sound.
#[inline]
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // The kernel counts from boot: neither field is negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

impl Clock {
    /// An axis whose zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: monotonic(),
        }
    }

    /// The present on this axis.
    #[inline]
    #[must_use]
    pub fn now(self) -> Instant {
        Instant(monotonic().saturating_sub(self.origin))
    }

    /// Sleeps until `until`, or returns at once when that has passed.
    pub fn sleep_until(self, until: Instant) {
        let at = self.origin.saturating_add(until.0);
        let request = libc::timespec {
            tv_sec: libc::time_t::try_from(at / 1_000_000_000).unwrap_or(libc::time_t::MAX),
            tv_nsec: (at % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `request` lives over the call; the remaining time is not asked for.
        let sleep = || unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const request,
                std::ptr::null_mut(),
            )
        };
        // An absolute sleep is simply begun again after a signal.
        while sleep() == libc::EINTR {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::time::Span;

    #[test]
    fn sleeping_ends_at_or_after_the_time_on_the_same_axis() {
        let clock = Clock::start();
        let until = clock.now() + Span::from_millis(2);
        clock.sleep_until(until);
        assert!(clock.now() >= until);
        clock.sleep_until(Instant::ZERO);
    }
}

//! Times at which this process did not run: stopped (Ctrl-Z), frozen with its control group, or the machine with it; or the machine
//! was suspended, which the clock of a phase does not count.
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::time::Span;
use std::time::Duration;

/// From this on a wait that is longer than asked for is a standstill; a busy machine keeps nobody waiting as long who
/// wakes fifty times a second, and what it does is told apart by the kernel's own count.
const NOTICED: Span = Span::from_millis(200);
/// Share of a phase from which a standstill voids its figure.
const VOIDS: f64 = 0.01;

/// What is noticed by a thread that sleeps for a while again and again.
#[derive(Debug)]
pub(super) struct Standstill {
    lost: Span,
    waited: Duration,
    asleep: Span,
}

impl Standstill {
    /// To be asked by the thread that is to notice.
    pub(super) fn new() -> Self {
        Self {
            lost: Span::ZERO,
            waited: waited_for_a_processor(),
            asleep: asleep(),
        }
    }

    /// Takes note of a sleep of at most `asked` that took `took`; whether nothing ran meanwhile.
    pub(super) fn slept(&mut self, asked: Span, took: Span) -> bool {
        let late = took - asked;
        if late < NOTICED {
            return false;
        }
        let waited = waited_for_a_processor();
        let busy = Span::from(waited.saturating_sub(self.waited));
        self.waited = waited;
        self.add(late - busy)
    }

    fn add(&mut self, lost: Span) -> bool {
        let noticed = lost >= NOTICED;
        if noticed {
            self.lost += lost;
        }
        noticed
    }

    /// The doubt about a phase that took so long by the clock.
    pub(super) fn flag(&self, elapsed: Span) -> Option<Flag> {
        self.suspended(asleep()).or_else(|| self.stood(elapsed))
    }

    /// A machine that was suspended has no time of it on its clock, but disks that spin up again, and caches that are empty.
    fn suspended(&self, asleep: Span) -> Option<Flag> {
        let slept = Span(asleep.0.saturating_sub(self.asleep.0));
        (slept >= NOTICED).then(|| {
            let reason = format!(
                "the machine was suspended for {:.1} s meanwhile, which its clock does not count: what it takes to come back is in \
                 the figure",
                slept.as_secs_f64()
            );
            Flag {
                voids: true,
                ..Flag::new(FlagKind::Other, reason)
            }
        })
    }

    fn stood(&self, elapsed: Span) -> Option<Flag> {
        if self.lost == Span::ZERO {
            return None;
        }
        let (lost, elapsed) = (self.lost.as_secs_f64(), elapsed.as_secs_f64());
        let reason = format!(
            "raidlab stood still for {lost:.1} s of {elapsed:.1} s: it was stopped (Ctrl-Z), frozen, or the machine was"
        );
        Some(Flag {
            voids: lost >= VOIDS * elapsed,
            ..Flag::new(FlagKind::Other, reason)
        })
    }
}

/// How long the machine has been suspended since its boot: what is between these clocks (clock_gettime(2)).
fn asleep() -> Span {
    use rustix::time::{ClockId, clock_gettime};
    let now = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let awake = now(ClockId::Monotonic);
    Span(now(ClockId::Boottime).saturating_sub(awake))
}

/// How long this thread was ready and had no processor, which is no standstill: the second number of `schedstat`
/// (Linux `Documentation/scheduler/sched-stats.rst`), ns. Nothing where the kernel keeps none.
fn waited_for_a_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_ascii_whitespace().nth(1);
    Duration::from_nanos(waited.and_then(|number| number.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_is_told_and_voids_what_it_is_a_part_of() {
        let ms = Span::from_millis;
        let mut still = Standstill::new();
        assert!(!still.slept(ms(20), ms(120)), "a machine that is busy");
        assert_eq!(still.flag(ms(1000)), None);
        assert!(still.slept(ms(20), ms(1_020)));
        let flag = still.flag(ms(5_000)).expect("a doubt");
        assert!(
            flag.voids && flag.reason.contains("1.0 s of 5.0 s"),
            "{flag}"
        );
        assert!(!still.flag(Span::from_secs(500)).expect("a doubt").voids);
    }

    #[test]
    fn a_machine_that_was_suspended_is_told() {
        let still = Standstill::new();
        assert_eq!(still.flag(Span::from_secs(10)), None, "it was awake");
        let flag = still.suspended(still.asleep + Span::from_secs(90));
        let flag = flag.expect("a doubt");
        assert!(flag.voids && flag.reason.contains("90.0 s"), "{flag}");
    }

    #[test]
    fn what_a_busy_machine_takes_is_no_standstill() {
        let mut still = Standstill::new();
        // As if this thread had had no processor for all of it.
        still.waited = Duration::ZERO;
        let ever = Span::from(waited_for_a_processor());
        assert!(!still.slept(Span::ZERO, ever + Span::from_millis(100)));
    }
}

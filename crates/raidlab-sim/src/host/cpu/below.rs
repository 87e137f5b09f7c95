//! Threads of the kernel that the device below has, as that of a parity array: they work on the same cores.
//!
//! Whoever is woken, by such a thread perhaps, goes before what has run for longer (`check_preempt_wakeup`): a process
//! that comes to a core where a thread is at work has it at once. The thread goes on on another core that is idle, and
//! waits where there is none. Of two threads on one core what was given first is done first.
//!
//! Left out: the turn of a thread whose core a process has without ever sleeping. It waits as long as that goes on, and a resync with it.
use super::Cores;
use raidlab_core::time::{Instant, Span};

/// One thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Below {
    /// The core that it is on, or was last.
    core: usize,
    /// When it is through with what it was given.
    until: Instant,
    /// Work that it was given so far.
    given: Span,
    /// It is through so much later than the device knows.
    late: Span,
}

impl Cores {
    /// The device below has so many threads.
    pub(in crate::host) fn with_below(mut self, count: usize) -> Self {
        self.below = vec![Below::default(); count];
        self
    }

    /// How many threads the device below has.
    #[inline]
    pub(in crate::host) fn below(&self) -> usize {
        self.below.len()
    }

    /// A thread of the device was given so much work until now. Returns how much later it is through with all of it than
    /// the device, which knows nothing of the cores, takes it to be.
    pub(in crate::host) fn give(&mut self, number: usize, now: Instant, given: Span) -> Span {
        let thread = self.below[number];
        let work = given - thread.given;
        let mut late = std::mem::take(&mut self.below[number].late);
        if work > Span::ZERO {
            self.used.kernel += work;
            let begin = now.max(thread.until);
            let core = self.core_of(number, begin);
            let until = begin.max(self.free_of(core, number)) + work;
            // It has not heard of `late` yet.
            let known = now.max(Instant(thread.until.0 - late.0)) + work;
            late = until.since(known);
            self.below[number] = Below {
                core,
                until,
                given,
                late: Span::ZERO,
            };
        }
        late
    }

    /// Until when a core is taken by whomever.
    pub(super) fn taken(&self, core: usize) -> Instant {
        let on = self.below.iter().filter(|thread| thread.core == core);
        on.fold(self.free[core], |until, thread| until.max(thread.until))
    }

    /// When processes and all other threads leave a core.
    fn free_of(&self, core: usize, number: usize) -> Instant {
        let others = self.below.iter().enumerate();
        let others = others.filter(|(other, thread)| *other != number && thread.core == core);
        others.fold(self.free[core], |free, (_, thread)| free.max(thread.until))
    }

    /// The core that a thread goes on on: its own, or the first that is free earlier.
    fn core_of(&self, number: usize, begin: Instant) -> usize {
        let mut core = self.below[number].core;
        let mut free = self.free_of(core, number);
        for other in 0..self.free.len() {
            if free <= begin {
                break;
            }
            let its = self.free_of(other, number);
            if its < free {
                (core, free) = (other, its);
            }
        }
        core
    }

    /// A process works on a core from `begin` on: threads that are at work there go elsewhere, or wait.
    pub(super) fn displace(&mut self, core: usize, begin: Instant, cost: Span) {
        for number in 0..self.below.len() {
            let thread = self.below[number];
            if thread.core != core || thread.until <= begin {
                continue;
            }
            let idle = (0..self.free.len()).find(|other| self.free_of(*other, number) <= begin);
            let thread = &mut self.below[number];
            match idle {
                Some(other) => thread.core = other,
                None => {
                    thread.until += cost;
                    thread.late += cost;
                }
            }
        }
    }
}

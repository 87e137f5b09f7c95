//! Processor time: what the work of a call costs on a core, and who has the cores.
mod below;

use self::below::Below;
use super::fs::plan::REFERENCE_MHZ;
use raidlab_core::time::{Instant, Span};

/// A processor: how fast its cores are at the kernel's work and at copying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuModel {
    /// Its name.
    pub name: String,
    /// Clock of a core in MHz.
    pub mhz: u32,
    /// Work done in a clock, in thousandths of what the core of the reference (Athlon 64) does.
    pub per_clock: u32,
    /// Bytes a second that a core copies between places in memory.
    pub copy: u64,
    /// The same between places in its cache, at its own clock.
    pub copy_cached: u64,
    /// Bytes of its largest cache.
    pub cache: u64,
    /// Bytes a second that its memory gives or takes at the most, for all cores and devices; 0: not known.
    pub peak: u64,
}

impl CpuModel {
    /// Work that a core does in a microsecond, in thousandths of what the reference does in a clock; at `mhz` where that is given.
    #[must_use]
    pub fn speed(&self, mhz: Option<u32>) -> u64 {
        let clock = mhz.unwrap_or(self.mhz);
        u64::from(clock.max(1)) * u64::from(self.per_clock.max(1))
    }
}

/// Time of each kind of work in nanoseconds on the reference processor, an Athlon 64 at 2000 MHz.
///
/// The sums were checked against the published processor shares of reading and writing 8 KiB calls
/// (study pata-raid0: 4 % at 47.3 MB/s, 9 % at 37.7 MB/s); each part is assumed by the usual
/// proportions of lmbench and kernel profiles of 2006.
struct Reference {
    /// Entering and leaving a system call, finding the file.
    call: u64,
    /// Finding a page in the cache.
    page: u64,
    /// Making room for a page, taking it into the cache.
    fill: u64,
    /// Preparing a page for writing, marking it dirty.
    dirty: u64,
    /// Taking a dirty page to the device.
    flush: u64,
    /// Building and submitting a request.
    submit: u64,
    /// An interrupt, ending a request, waking who waits.
    end: u64,
    /// Going to sleep and another process coming up.
    switch: u64,
    /// `putc` on a buffered stream. Fitted on both rows of zfs-ashift: 45832 and 43242 KiB/s put. In
    /// picoseconds.
    put: u64,
    /// `getc` on one. Fitted on both rows of zfs-ashift: 41445 and 43621 KiB/s got, which includes the
    /// wait for each record.
    get: u64,
    /// Looking at a byte of a sector.
    look: u64,
}

const REFERENCE: Reference = Reference {
    call: 400,
    page: 200,
    fill: 900,
    dirty: 1200,
    flush: 1500,
    submit: 2000,
    end: 4000,
    switch: 2000,
    put: 18_300,
    get: 14_500,
    look: 5,
};

/// Time of each kind of work on a core of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) call: Span,
    pub(super) page: u64,
    pub(super) fill: u64,
    pub(super) dirty: u64,
    pub(super) flush: u64,
    pub(super) submit: Span,
    pub(super) end: Span,
    pub(super) switch: Span,
    /// Picoseconds.
    put: u64,
    get: u64,
    look: u64,
    /// Time of this core for what takes the reference 1, in 2^-16.
    scale: u64,
    /// Nanoseconds a byte in 2^-20.
    copy: u64,
    copy_cached: u64,
    /// Bytes that are copied at the cached rate when all that is used fits in them.
    pub(super) cache: u64,
}

impl Costs {
    pub(super) fn of(model: &CpuModel, mhz: Option<u32>) -> Self {
        let clock = u64::from(mhz.unwrap_or(model.mhz).max(1));
        let scale = ((u64::from(REFERENCE_MHZ) * 1000) << 16) / model.speed(mhz);
        let of = |ns: u64| (ns * scale) >> 16;
        let per_byte = |rate: u64| (1_000_000_000 << 20) / rate.max(1);
        let cached =
            u128::from(model.copy_cached) * u128::from(clock) / u128::from(model.mhz.max(1));
        Self {
            call: Span(of(REFERENCE.call)),
            page: of(REFERENCE.page),
            fill: of(REFERENCE.fill),
            dirty: of(REFERENCE.dirty),
            flush: of(REFERENCE.flush),
            submit: Span(of(REFERENCE.submit)),
            end: Span(of(REFERENCE.end)),
            switch: Span(of(REFERENCE.switch)),
            put: of(REFERENCE.put),
            get: of(REFERENCE.get),
            look: of(REFERENCE.look * 1000),
            scale,
            copy: per_byte(model.copy),
            copy_cached: per_byte(cached as u64),
            cache: model.cache,
        }
    }

    /// Work counted on the reference processor.
    #[inline]
    pub(super) const fn scaled(&self, reference: Span) -> Span {
        Span((reference.0 * self.scale) >> 16)
    }

    /// Copying between a process and the page cache.
    #[inline]
    pub(super) const fn copy(&self, bytes: u64, in_cache: bool) -> u64 {
        (bytes
            * if in_cache {
                self.copy_cached
            } else {
                self.copy
            })
            >> 20
    }

    pub(super) const fn puts(&self, count: u64) -> u64 {
        count * self.put / 1000
    }

    pub(super) const fn gets(&self, count: u64) -> u64 {
        count * self.get / 1000
    }

    pub(super) const fn looks(&self, sectors: u64) -> u64 {
        sectors * self.look / 1000
    }
}

/// Time of building and submitting a request on a core.
pub(crate) fn submit_time(model: &CpuModel, mhz: Option<u32>) -> Span {
    Costs::of(model, mhz).submit
}

/// Processor time that was used, added over the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// By processes, in user mode: looking at data, `putc` and `getc`.
    pub user: Span,
    /// By processes, in their system calls.
    pub system: Span,
    /// By the kernel beside them: interrupts, flusher, journal, threads of arrays.
    pub kernel: Span,
}

impl CpuUse {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Span {
        self.user + self.system + self.kernel
    }
}

/// The cores of the machine.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// When each is free.
    free: Vec<Instant>,
    /// Processes with several calls under way, by number.
    threads: Vec<Thread>,
    /// Threads of the device below.
    below: Vec<Below>,
    used: CpuUse,
}

/// The only thread of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// When it is through with all that it has begun.
    free: Instant,
    /// The core that it was on last, and stays on unless another has it.
    core: usize,
    /// What it has worked since something had to wait for it first; nothing, unless something had.
    busy: Option<Span>,
}

impl Cores {
    pub(super) fn new(count: u32) -> Self {
        Self {
            free: vec![Instant::ZERO; count.max(1) as usize],
            threads: Vec::new(),
            below: Vec::new(),
            used: CpuUse::default(),
        }
    }

    pub(super) const fn count(&self) -> u32 {
        self.free.len() as u32
    }

    /// The first free core works for so long; returns when it is done.
    #[inline]
    fn run(&mut self, now: Instant, cost: Span) -> Instant {
        let core = self.first(now);
        let begin = now.max(self.free[core]);
        self.take(core, begin, cost)
    }

    /// A core is taken from `begin` on, before any thread of the device; returns until when.
    #[inline]
    fn take(&mut self, core: usize, begin: Instant, cost: Span) -> Instant {
        self.free[core] = begin + cost;
        if !self.below.is_empty() && cost > Span::ZERO {
            self.displace(core, begin, cost);
        }
        begin + cost
    }

    /// The first core that is free, or will be.
    #[inline]
    fn first(&self, now: Instant) -> usize {
        let mut first = 0;
        if self.free.len() > 1 {
            for (core, free) in self.free.iter().enumerate() {
                if *free <= now {
                    first = core;
                    break;
                }
                if *free < self.free[first] {
                    first = core;
                }
            }
        }
        first
    }

    /// Work of a process.
    #[inline]
    pub(super) fn process(&mut self, now: Instant, system: Span, user: Span) -> Instant {
        self.used.system += system;
        self.used.user += user;
        self.run(now, system + user)
    }

    /// Work of a process that is one thread, and does one thing after the other whatever cores there are.
    #[inline]
    pub(super) fn thread(
        &mut self,
        number: u16,
        now: Instant,
        system: Span,
        user: Span,
    ) -> Instant {
        let number = usize::from(number);
        if self.threads.len() <= number {
            self.threads.resize(number + 1, Thread::default());
        }
        let Thread {
            free,
            mut core,
            mut busy,
        } = self.threads[number];
        if free > now {
            busy = busy.or(Some(Span::ZERO));
        }
        let begin = now.max(free);
        if self.free[core] > begin {
            core = self.first(begin);
        }
        let free = self.take(core, begin.max(self.free[core]), system + user);
        self.used.system += system;
        self.used.user += user;
        let busy = busy.map(|busy| busy + system + user);
        self.threads[number] = Thread { free, core, busy };
        free
    }

    /// How long each process has worked for which something had to wait, by its number.
    pub(super) fn threads(&self) -> impl Iterator<Item = (usize, Span)> + '_ {
        let threads = self.threads.iter().enumerate();
        threads.filter_map(|(number, thread)| Some((number, thread.busy?)))
    }

    /// Time that cores are taken for beyond `now`.
    pub(super) fn ahead(&self, now: Instant) -> Span {
        let each = (0..self.free.len()).map(|core| self.taken(core).since(now));
        each.fold(Span::ZERO, |sum, more| sum + more)
    }

    /// Time that was used until `now`: what cores are taken for beyond has not passed yet. It is the kernel's first, since processes that
    /// have ended are through.
    pub(super) fn used(&self, now: Instant) -> CpuUse {
        let mut ahead = self.ahead(now);
        let mut used = self.used;
        for part in [&mut used.kernel, &mut used.system, &mut used.user] {
            let of = ahead.min(*part);
            (*part, ahead) = (*part - of, ahead - of);
        }
        used
    }

    /// Work of the kernel beside the processes.
    #[inline]
    pub(super) fn kernel(&mut self, now: Instant, cost: Span) -> Instant {
        self.used.kernel += cost;
        self.run(now, cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn athlon() -> CpuModel {
        CpuModel {
            name: "Athlon".into(),
            mhz: 2000,
            per_clock: 1000,
            copy: 2_000_000_000,
            copy_cached: 4_000_000_000,
            cache: 512 << 10,
            peak: 0,
        }
    }

    #[test]
    fn the_clock_scales_work_and_cached_copies_but_not_memory() {
        let (full, half) = (Costs::of(&athlon(), None), Costs::of(&athlon(), Some(1000)));
        assert_eq!((full.call, half.call), (Span(400), Span(800)));
        assert_eq!(full.copy(2_000_000, false), half.copy(2_000_000, false));
        assert_eq!(2 * full.copy(4_000_000, true), half.copy(4_000_000, true));
        assert!(full.copy(2_000_000, false).abs_diff(1_000_000) < 100);
    }

    #[test]
    fn the_first_free_core_serves() {
        let mut cores = Cores::new(2);
        let at = |cores: &mut Cores, now, cost| cores.process(Instant(now), Span(cost), Span(0)).0;
        assert_eq!(at(&mut cores, 0, 10), 10);
        assert_eq!(at(&mut cores, 0, 20), 20);
        assert_eq!(at(&mut cores, 5, 1), 11);
        assert_eq!(cores.kernel(Instant(30), Span(7)), Instant(37));
        assert_eq!(cores.used.total(), Span(38));
    }

    #[test]
    fn a_thread_below_goes_where_no_process_is_and_waits_where_there_is_no_such_place() {
        let mut cores = Cores::new(2).with_below(2);
        let run = |cores: &mut Cores, now, cost| cores.kernel(Instant(now), Span(cost)).0;
        assert_eq!(cores.give(0, Instant(0), Span(100)), Span(0));
        // It has the first core, and goes to the other when a process comes; then there is none.
        assert_eq!(run(&mut cores, 10, 20), 30);
        assert_eq!(cores.give(0, Instant(10), Span(100)), Span(0));
        assert_eq!(run(&mut cores, 15, 20), 35);
        assert_eq!(cores.give(0, Instant(15), Span(100)), Span(20));
        // Another thread begins where the first process has ended, and has to wait for that.
        assert_eq!(cores.give(1, Instant(20), Span(50)), Span(10));
        // Both are at work, and there is nowhere to go when a process comes to the first core.
        assert_eq!(run(&mut cores, 40, 5), 45);
        assert_eq!(cores.give(1, Instant(40), Span(50)), Span(5));
        // More work of the other comes after what it has, which ends at 120.
        assert_eq!(cores.give(0, Instant(50), Span(130)), Span(0));
        assert_eq!(cores.used.kernel, Span(20 + 20 + 5 + 130 + 50));
    }

    #[test]
    fn what_a_core_is_taken_for_later_has_not_been_used() {
        let mut cores = Cores::new(2).with_below(1);
        cores.process(Instant(0), Span(10), Span(2));
        cores.kernel(Instant(0), Span(20));
        cores.kernel(Instant(0), Span(8));
        let used = |cores: &Cores, now| cores.used(Instant(now)).total();
        // Of the first core 12 and 8, of the other 20.
        assert_eq!(used(&cores, 5), Span(5 + 5));
        assert_eq!(used(&cores, 15), Span(15 + 15));
        assert_eq!(used(&cores, 30), Span(40));
        // A thread goes on from 30 to 40, and from 45 to 50, when a process and the kernel have had both cores.
        cores.give(0, Instant(30), Span(15));
        cores.process(Instant(40), Span(5), Span(0));
        cores.kernel(Instant(40), Span(5));
        assert_eq!(used(&cores, 40), Span(40 + 10));
        assert_eq!(used(&cores, 44), Span(40 + 10 + 8));
        assert_eq!(used(&cores, 60), Span(40 + 25));
    }

    #[test]
    fn threads_below_share_the_one_core() {
        let mut cores = Cores::new(1).with_below(2);
        assert_eq!(cores.give(0, Instant(0), Span(10)), Span(0));
        assert_eq!(cores.give(1, Instant(0), Span(10)), Span(10));
        cores.process(Instant(5), Span(3), Span(0));
        assert_eq!(cores.give(0, Instant(5), Span(10)), Span(3));
        // It takes the new work for done at 6 + 7, the core is free from 23 on.
        assert_eq!(cores.give(1, Instant(6), Span(10)), Span(3));
        assert_eq!(cores.give(0, Instant(6), Span(20)), Span(10));
    }

    #[test]
    fn a_thread_does_one_thing_after_the_other() {
        let mut cores = Cores::new(4);
        let at = |cores: &mut Cores, number, now, cost| {
            cores.thread(number, Instant(now), Span(cost), Span(0)).0
        };
        assert_eq!(at(&mut cores, 1, 0, 10), 10);
        assert_eq!(cores.threads().count(), 0);
        assert_eq!(at(&mut cores, 1, 0, 20), 30);
        assert_eq!(at(&mut cores, 2, 0, 5), 5);
        assert_eq!(at(&mut cores, 1, 50, 1), 51);
        assert_eq!(cores.threads().collect::<Vec<_>>(), [(1, Span(21))]);
    }
}

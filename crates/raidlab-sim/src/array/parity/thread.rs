//! The thread of a parity array: one computation after the other, or as many at a time as it has workers.
use crate::array::NEVER;
use crate::array::spec::ParityCost;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use std::collections::VecDeque;

/// What is to be computed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::array) struct Job {
    /// Sectors on each member.
    pub(in crate::array) sectors: u32,
    /// Blocks that are summed, and whether for both parities.
    pub(in crate::array) sums: u32,
    pub(in crate::array) syndrome: bool,
    /// Blocks that are copied from or to a request.
    pub(in crate::array) copies: u32,
    /// The thread comes to the stripes once more before it is through with them, by [`Thread::leave`].
    pub(in crate::array) comes_again: bool,
    /// It comes to them twice more than to others: to check a parity, and when that is done.
    pub(in crate::array) checks: bool,
}

/// What the thread does with a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum Work {
    /// It comes to see what is to be done.
    Look,
    /// It computes.
    Compute,
    /// It sends what it has asked for.
    Send,
}

/// Time for summing, copying, handling.
type Parts = [Span; 3];

fn sum(parts: &Parts) -> Span {
    parts.iter().fold(Span::ZERO, |sum, part| sum + *part)
}

/// Of handling alone.
const fn handled(time: Span) -> Parts {
    [Span::ZERO, Span::ZERO, time]
}

/// Something to be done.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// When it is through with it, but for what all have been put off since: see [`Worker::ends`].
    due: Instant,
    band: u32,
    work: Work,
    /// What it takes.
    time: Parts,
    /// Stripes, 4 KiB of each member, that it is for.
    rows: u32,
}

/// One that handles stripes: the thread (`raid5d`), or a worker beside it.
#[derive(Clone, Debug, Default)]
struct Worker {
    /// What it has to do, by their ends, ascending.
    tasks: VecDeque<Task>,
    /// What all of them have been put off by: a process that has the core puts off thousands, call by call.
    off: Span,
    /// Time that all of them take.
    left: Span,
    free: Instant,
    /// It has no core until then.
    stands: Instant,
    /// Time of all that it was ever given.
    given: Parts,
    /// Since when it waits for something else, and what was left then of the first thing that it has to do.
    blocked: Option<(Instant, Option<Span>)>,
}

impl Worker {
    fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// What it has to do still at `now`. Part of the time until then may be waiting for a core.
    fn open(&self, now: Instant) -> Span {
        let now = match self.blocked {
            Some((since, _)) => since.min(now),
            None => now.max(self.stands),
        };
        self.free.since(now).min(self.left)
    }

    /// Takes off what it has to do still.
    fn less_open(&self, now: Instant, spent: &mut Parts) {
        let mut open = self.open(now);
        for task in self.tasks.iter().rev() {
            let whole = sum(&task.time);
            let part = open.min(whole);
            for (spent, time) in spent.iter_mut().zip(task.time) {
                *spent = *spent - share(time, part, whole);
            }
            open = open - part;
        }
    }

    /// When it is through with one of its tasks.
    #[inline]
    fn ends(&self, task: &Task) -> Instant {
        task.due + self.off
    }

    /// All that it has to do comes so much later.
    #[inline]
    fn put_off(&mut self, time: Span) {
        self.off += time;
        self.free += time;
    }

    /// It is through with the first of its tasks.
    fn pop(&mut self) -> Option<Task> {
        let task = self.tasks.pop_front()?;
        self.left = self.left - sum(&task.time);
        if self.tasks.is_empty() {
            self.off = Span::ZERO;
        }
        Some(task)
    }

    fn next(&self) -> Instant {
        if self.blocked.is_some() {
            return NEVER;
        }
        self.tasks.front().map_or(NEVER, |task| self.ends(task))
    }
}

/// The thread and its workers (`group_thread_cnt`): all take stripes from the same list (`raid5.c:handle_active_stripes`).
#[derive(Clone, Debug)]
pub(in crate::array) struct Thread {
    cost: ParityCost,
    free_of_cost: bool,
    /// The thread itself first.
    workers: Vec<Worker>,
    /// Whose work ended last: it asks the members.
    current: usize,
    /// Stripes that are to be handled.
    rows: u32,
}

/// Stripes for each of which another worker is woken (`raid5.h:MAX_STRIPE_BATCH`, `raid5.c:raid5_wakeup_stripe_thread`).
const BATCH: u32 = 8;

fn time(bytes: u64, rate: u64) -> Span {
    if rate == 0 {
        return Span::ZERO;
    }
    Span((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64)
}

/// What `part` of `whole` is of a time.
fn share(time: Span, part: Span, whole: Span) -> Span {
    if part == whole {
        return time;
    }
    let times = u128::from(time.0) * u128::from(part.0);
    Span((times / u128::from(whole.0)) as u64)
}

impl Thread {
    pub(in crate::array) fn new(cost: ParityCost, workers: u16) -> Self {
        Self {
            cost,
            free_of_cost: cost == ParityCost::default(),
            workers: vec![Worker::default(); 1 + usize::from(workers)],
            current: 0,
            rows: 0,
        }
    }

    /// Threads that may need a core each.
    pub(in crate::array) fn count(&self) -> usize {
        self.workers.len()
    }

    /// Whether nothing costs anything, so that there is nothing to wait for.
    #[inline]
    pub(in crate::array) fn is_free(&self) -> bool {
        self.free_of_cost
    }

    /// Takes a job.
    pub(in crate::array) fn run(&mut self, now: Instant, band: u32, job: Job) {
        let block = u64::from(job.sectors) * SECTOR;
        let rate = if job.syndrome {
            self.cost.syndrome
        } else {
            self.cost.xor
        };
        let sum = time(block * u64::from(job.sums), rate);
        let copy = time(block * u64::from(job.copies), self.cost.copy);
        let again = if job.comes_again {
            self.leaving(job.sectors)
        } else {
            Span::ZERO
        };
        let checking = if job.checks {
            self.checking(job.sectors)
        } else {
            Span::ZERO
        };
        let handle = self.handling(job.sectors) - again + checking;
        let rows = job.sectors.div_ceil(super::cache::ROW);
        self.give(now, band, Work::Compute, ([sum, copy, handle], rows));
    }

    fn handling(&self, sectors: u32) -> Span {
        Span(self.cost.stripe * u64::from(sectors.div_ceil(super::cache::ROW)))
    }

    /// Of three times that it comes to a stripe that is read: when it asks for the blocks, when they have come, and
    /// when they have been handed over.
    fn leaving(&self, sectors: u32) -> Span {
        Span(self.handling(sectors).0 / 3)
    }

    /// Of six times that it comes to a stripe of raid6 that lacks one member and is synchronised, two more than to one of raid5: when it
    /// has the other parity checked, and when that is done (`raid5.c:handle_parity_checks6`, `check_state_run_q` and `..._check_result`).
    fn checking(&self, sectors: u32) -> Span {
        Span(self.handling(sectors).0 / 2)
    }

    /// It comes to a band a last time, after all that it has to do before.
    pub(in crate::array) fn leave(&mut self, now: Instant, band: u32, sectors: u32) {
        let time = self.leaving(sectors);
        let rows = sectors.div_ceil(super::cache::ROW);
        self.give(now, band, Work::Look, (handled(time), rows));
    }

    /// To whoever is through first of those that are awake.
    fn give(&mut self, now: Instant, band: u32, work: Work, (time, rows): (Parts, u32)) {
        self.rows += rows;
        let awake = 1 + (self.rows / BATCH).max(1) as usize;
        let workers = self.workers.iter().take(awake).enumerate();
        let first = workers.min_by_key(|(_, of)| (of.blocked.is_some(), of.free.max(now)));
        let first = first.map_or(0, |(index, _)| index);
        self.give_to(first, now, (band, work, time, rows));
    }

    fn give_to(
        &mut self,
        worker: usize,
        now: Instant,
        (band, work, time, rows): (u32, Work, Parts, u32),
    ) {
        let worker = &mut self.workers[worker];
        worker.free = worker.free.max(now) + sum(&time);
        worker.left += sum(&time);
        for (given, more) in worker.given.iter_mut().zip(time) {
            *given += more;
        }
        worker.tasks.push_back(Task {
            // It is put off only while it has something to do, and is free so much later then.
            due: Instant(worker.free.0 - worker.off.0),
            band,
            work,
            time,
            rows,
        });
    }

    /// It has sent a request to a member, which takes it from all else for a while.
    pub(in crate::array) fn send(&mut self, now: Instant) {
        let time = Span(self.cost.submit);
        let current = &mut self.workers[self.current];
        let Some(first) = current.tasks.front_mut() else {
            let band = super::cache::NONE;
            return self.give_to(self.current, now, (band, Work::Send, handled(time), 0));
        };
        first.time[2] += time;
        current.left += time;
        current.given[2] += time;
        current.put_off(time);
    }

    /// One of them has no core for so long. Returns when it would have been through with what it has to do first.
    pub(in crate::array) fn wait(&mut self, now: Instant, worker: usize, time: Span) -> Instant {
        let Some(worker) = self.workers.get_mut(worker) else {
            return NEVER;
        };
        let next = worker.next();
        if worker.is_busy() {
            worker.free = worker.free.max(now);
            worker.put_off(time);
            worker.stands = worker.stands.max(now) + time;
        }
        next
    }

    /// The thread waits for something else from now on; its workers go on.
    pub(in crate::array) fn block(&mut self, now: Instant) {
        let thread = &mut self.workers[0];
        let left = thread.tasks.front();
        let left = left.map(|task| thread.ends(task).since(now));
        thread.blocked.get_or_insert((now, left));
    }

    /// It goes on.
    pub(in crate::array) fn unblock(&mut self, now: Instant) {
        let thread = &mut self.workers[0];
        let Some((_, mut left)) = thread.blocked.take() else {
            return;
        };
        let mut free = now;
        (thread.off, thread.stands) = (Span::ZERO, now);
        for task in &mut thread.tasks {
            free += left.take().unwrap_or_else(|| sum(&task.time));
            task.due = free;
        }
        if thread.is_busy() {
            thread.free = free;
        }
    }

    /// It is to look at a band when it has come that far.
    pub(in crate::array) fn look(&mut self, now: Instant, band: u32) {
        self.give(now, band, Work::Look, (Parts::default(), 0));
    }

    /// One of them is woken for it, which takes what a request does (assumed).
    pub(in crate::array) fn wake(&mut self, now: Instant, band: u32) {
        let of = handled(Span(self.cost.submit));
        self.give(now, band, Work::Look, (of, 0));
    }

    /// Whether whoever asks the members has not come to the end of what it was given.
    #[inline]
    pub(in crate::array) fn is_busy(&self) -> bool {
        self.workers[self.current].is_busy()
    }

    /// Whether nobody would come to a stripe at once.
    #[inline]
    pub(in crate::array) fn all_busy(&self) -> bool {
        self.workers.iter().all(Worker::is_busy)
    }

    /// Whether anybody has something to do.
    #[inline]
    pub(in crate::array) fn any_busy(&self) -> bool {
        self.workers.iter().any(Worker::is_busy)
    }

    #[inline]
    pub(in crate::array) fn next(&self) -> Instant {
        match &self.workers[..] {
            [thread] => thread.next(),
            all => all.iter().map(Worker::next).min().unwrap_or(NEVER),
        }
    }

    /// A band whose computation has ended, or that one of them has come to.
    pub(in crate::array) fn done(&mut self, now: Instant) -> Option<(u32, Work)> {
        let next = self.next();
        if next > now {
            return None;
        }
        self.current = self.workers.iter().position(|of| of.next() == next)?;
        let worker = &mut self.workers[self.current];
        let task = worker.pop()?;
        self.rows -= task.rows;
        Some((task.band, task.work))
    }

    /// Work that one of them was given so far.
    pub(in crate::array) fn given(&self, worker: usize) -> Span {
        self.workers
            .get(worker)
            .map_or(Span::ZERO, |worker| sum(&worker.given))
    }

    /// Time in use until `now`: what is booked beyond has not passed yet.
    pub(in crate::array) fn busy(&self, now: Instant) -> Span {
        let busy = |worker: &Worker| sum(&worker.given) - worker.open(now);
        self.workers
            .iter()
            .map(busy)
            .fold(Span::ZERO, |sum, part| sum + part)
    }

    /// What that was spent on: summing, copying, handling.
    pub(in crate::array) fn spent(&self, now: Instant) -> Parts {
        let mut spent = Parts::default();
        for worker in &self.workers {
            for (spent, given) in spent.iter_mut().zip(worker.given) {
                *spent += given;
            }
            worker.less_open(now, &mut spent);
        }
        spent
    }
}

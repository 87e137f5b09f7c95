//! The anticipatory scheduler: after a read of a process it keeps the disk idle for a moment, because
//! the process is likely to ask for what lies next. `block/as-iosched.c`, 2.6.0 to 2.6.32.
//!
//! Synchronous and asynchronous requests take turns in batches limited by time; a batch of writes
//! also by a number of requests that adapts so that it takes the time it should.
use super::history::{History, Mean, entry, nearest, process};
use super::store::{NIL, Rq, Store};
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};

const ASYNC: u16 = 0;
const SYNC: u16 = 1;

/// `default_antic_expire` HZ/150: 6 jiffies of a millisecond.
const ANTIC_EXPIRE: Span = Span::from_millis(6);
/// `default_write_expire` HZ/4 and `default_read_expire` HZ/8.
const FIFO_EXPIRE: [Span; 2] = [Span::from_millis(250), Span::from_millis(125)];
/// `default_write_batch_expire` HZ/8 and `default_read_batch_expire` HZ/2.
const BATCH_EXPIRE: [Span; 2] = [Span::from_millis(125), Span::from_millis(500)];
/// `MAX_THINKTIME` HZ/50: longer ones count as this.
const LONGEST_THOUGHT: Span = Span::from_millis(20);
/// `MAXBACK`: sectors that the elevator goes back.
const BACK: u64 = 1024 * 1024;
/// A request this near (in sectors) to the last one is as good as the one waited for; it doubles with
/// each millisecond of waiting (`as_close_req`).
const CLOSE: u64 = 8192;
/// Writes in the first batch: a tenth of the batch's milliseconds (`as_init_queue`).
const FIRST_WRITES: u64 = 12;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Longest time that the disk is kept idle.
    pub antic_expire: Span,
    /// Age from which an asynchronous and a synchronous request is preferred.
    pub fifo_expire: [Span; 2],
    /// Length of an asynchronous and a synchronous batch.
    pub batch_expire: [Span; 2],
}

impl Default for Tunables {
    fn default() -> Self {
        Self {
            antic_expire: ANTIC_EXPIRE,
            fifo_expire: FIFO_EXPIRE,
            batch_expire: BATCH_EXPIRE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Off,
    /// For the end of the last read.
    WaitEnd,
    /// For the process's next read, until then at most.
    WaitNext(u64),
    /// It came, or the time is up.
    Over,
}

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    history: History,
    queued: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Anticipatory {
    with: Tunables,
    processes: Vec<Process>,
    /// First think times and seek distances of all processes.
    new_think: Mean,
    new_seek: Mean,
    status: Status,
    /// The process whose read was given out last, unless a write was.
    whose: Option<usize>,
    /// When that read ended.
    ended_at: Option<u64>,
    class: u16,
    /// The batch has been chosen; the device has still to end the one before.
    changed: bool,
    /// No read of the batch has ended yet: its time does not run.
    fresh: bool,
    batch_ends: u64,
    checked: [u64; 2],
    position: [u64; 2],
    writes_allowed: u64,
    writes_left: u64,
    writes_idled: bool,
    in_device: u32,
}

impl Anticipatory {
    pub(super) fn new(with: Tunables) -> Self {
        Self {
            with,
            processes: Vec::new(),
            new_think: Mean::default(),
            new_seek: Mean::default(),
            status: Status::Off,
            whose: None,
            ended_at: None,
            class: SYNC,
            changed: false,
            fresh: false,
            batch_ends: 0,
            checked: [0; 2],
            position: [0; 2],
            writes_allowed: FIRST_WRITES,
            writes_left: 0,
            writes_idled: false,
            in_device: 0,
        }
    }

    #[inline]
    pub(super) fn class(kind: BlockKind, sync: bool) -> u16 {
        if sync || kind == BlockKind::Read {
            SYNC
        } else {
            ASYNC
        }
    }

    /// A request has come in.
    pub(super) fn added(&mut self, now: Instant, rq: &Rq) {
        self.settle(now);
        let number = process(&rq.origin);
        self.remember(now, number, rq);
        entry(&mut self.processes, number).queued += 1;
        let waits = matches!(self.status, Status::WaitEnd | Status::WaitNext(_));
        if waits && self.gives_up_for(now, Some(rq)) {
            self.status = Status::Over;
        }
    }

    /// A request was joined to another.
    pub(super) fn leaves(&mut self, rq: &Rq) {
        entry(&mut self.processes, process(&rq.origin)).queued -= 1;
    }

    fn remember(&mut self, now: Instant, number: usize, rq: &Rq) {
        if rq.class != SYNC {
            return;
        }
        let process = entry(&mut self.processes, number);
        let first = process.history.think.is_empty();
        // A request next to others of the process took no thinking.
        let thought = process.history.started().then(|| {
            let idle = process.queued == 0;
            let since = process.history.last_end.filter(|_| idle);
            since.map_or(0, |end| now.0.saturating_sub(end).min(LONGEST_THOUGHT.0))
        });
        let far = process.history.request(rq.lba, rq.end(), thought);
        if let (true, Some(thought), Some(far)) = (first, thought, far) {
            self.new_think.add(thought);
            self.new_seek.add(far);
        }
    }

    /// The time is up.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if matches!(self.status, Status::WaitNext(until) if now.0 >= until) {
            self.status = Status::Over;
        }
    }

    /// Whether waiting for the process's next read makes no sense, or `rq` is as good.
    fn gives_up_for(&mut self, now: Instant, rq: Option<&Rq>) -> bool {
        let Some(number) = self.whose else {
            return true;
        };
        if rq.is_some_and(|rq| process(&rq.origin) == number) {
            return true;
        }
        let limit = self.with.antic_expire.0;
        if self.ended_at.is_some_and(|at| now.0 - at >= limit) {
            return true;
        }
        if entry(&mut self.processes, number).queued > 0 {
            return true;
        }
        let other = rq.filter(|rq| rq.class == SYNC);
        if let Some(rq) = other.filter(|rq| self.close(now, number, rq)) {
            // Processes that work at one place together count as one.
            self.remember(now, number, rq);
            return true;
        }
        let think = &self.processes[number].history.think;
        if think.is_empty() {
            self.new_think.mean > limit
        } else {
            think.mean > limit
        }
    }

    /// Whether a request of another process lies as near as the one waited for is expected to.
    fn close(&self, now: Instant, number: usize, rq: &Rq) -> bool {
        let idle = match (self.status, self.ended_at) {
            (Status::Off, _) | (_, None) => 0,
            (_, Some(at)) => (now.0 - at) / 1_000_000,
        };
        if idle > 20 {
            return true;
        }
        let reach = CLOSE << idle;
        let last = self.position[usize::from(self.class)];
        if last <= rq.lba + reach / 2 && rq.lba <= last + reach {
            return true;
        }
        let seek = &self.processes[number].history.seek;
        let expected = if seek.is_empty() {
            self.new_seek.mean
        } else {
            seek.mean
        };
        expected > last.abs_diff(rq.lba)
    }

    /// Whether the oldest of a class has waited too long; looked at once in that time only, lest many
    /// old requests make the disk seek for each.
    fn expired(&mut self, store: &Store, now: Instant, class: u16) -> bool {
        let index = usize::from(class);
        let limit = self.with.fifo_expire[index].0;
        if now.0 - self.checked[index] < limit {
            return false;
        }
        self.checked[index] = now.0;
        let oldest = store.oldest(class);
        oldest != NIL && now.0 > store.get(oldest).since + limit
    }

    fn batch_over(&self, now: Instant) -> bool {
        if self.changed || self.fresh {
            return false;
        }
        now.0 > self.batch_ends || (self.class == ASYNC && self.writes_left == 0)
    }

    /// The request to be given out now; [`NIL`] when none is to be.
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        self.settle(now);
        let reads = store.oldest(SYNC) != NIL;
        let writes = store.oldest(ASYNC) != NIL;
        if self.class == ASYNC && !reads && (self.writes_left == 0 || !writes) {
            self.writes_idled = true;
        }
        if matches!(self.status, Status::WaitEnd | Status::WaitNext(_)) || self.changed {
            return NIL;
        }
        let mut slot = NIL;
        if !(reads && writes && self.batch_over(now)) {
            slot = nearest(
                store,
                self.class,
                self.position[usize::from(self.class)],
                BACK,
            );
            if self.class == SYNC {
                if self.expired(store, now, SYNC) {
                    return self.give(store, now, store.oldest(SYNC));
                }
                let rq = (slot != NIL).then(|| *store.get(slot));
                let wait = self.whose.is_some()
                    && self.status != Status::Over
                    && !self.gives_up_for(now, rq.as_ref());
                if wait {
                    self.wait();
                    return NIL;
                }
            }
            if slot != NIL && reads && !writes {
                self.batch_ends = now.0 + self.with.batch_expire[1].0;
            }
        }
        if slot == NIL {
            slot = self.turn(store, now, reads, writes);
        }
        if self.expired(store, now, self.class) {
            slot = store.oldest(self.class);
        }
        self.give(store, now, slot)
    }

    /// Begins to wait: the time runs from the end of the last read.
    fn wait(&mut self) {
        self.status = match self.ended_at {
            Some(at) => Status::WaitNext(at + self.with.antic_expire.0),
            None => Status::WaitEnd,
        };
    }

    /// Chooses the class of a new batch; its first request.
    fn turn(&mut self, store: &Store, now: Instant, reads: bool, writes: bool) -> u32 {
        if reads && !(writes && self.class == SYNC) {
            self.changed = self.class == ASYNC;
            self.class = SYNC;
            self.checked[1] = now.0;
            return store.oldest(SYNC);
        }
        if self.class == SYNC {
            self.changed = true;
            self.fresh = false;
        }
        self.class = ASYNC;
        self.writes_left = self.writes_allowed;
        self.writes_idled = false;
        nearest(store, ASYNC, self.position[0], BACK)
    }

    fn give(&mut self, store: &Store, now: Instant, slot: u32) -> u32 {
        if self.changed {
            if self.in_device > 0 {
                return NIL;
            }
            self.begin(now);
        }
        let rq = store.get(slot);
        self.status = Status::Off;
        self.position[usize::from(rq.class)] = rq.end();
        if rq.class == SYNC {
            self.whose = Some(process(&rq.origin));
        } else {
            self.whose = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.ended_at = None;
        self.in_device += 1;
        entry(&mut self.processes, process(&rq.origin)).queued -= 1;
        slot
    }

    /// The batch begins: the device has nothing of the one before any more.
    fn begin(&mut self, now: Instant) {
        self.changed = false;
        if self.class == SYNC {
            self.fresh = true;
        } else {
            self.batch_ends = now.0 + self.with.batch_expire[0].0;
        }
    }

    /// The device has ended a request.
    pub(super) fn ended(&mut self, store: &Store, now: Instant, rq: &Rq) {
        if self.changed && self.in_device == 1 {
            self.begin(now);
        }
        self.in_device -= 1;
        if self.fresh && rq.class == SYNC && self.class == SYNC {
            self.adapt(now);
            self.batch_ends = now.0 + self.with.batch_expire[1].0;
            self.fresh = false;
        }
        let number = process(&rq.origin);
        if self.whose == Some(number) {
            self.ended_at = Some(now.0);
            if self.status == Status::WaitEnd {
                self.wait();
            }
        }
        if rq.class == SYNC {
            entry(&mut self.processes, number).history.last_end = Some(now.0);
        }
        if self.class == ASYNC && store.waiting() == 0 {
            self.writes_idled = true;
        }
    }

    /// Sets the number of writes in a batch by how long the last one took.
    fn adapt(&mut self, now: Instant) {
        let batch = self.with.batch_expire[0].0;
        let took = (now.0 + batch).saturating_sub(self.batch_ends);
        let allowed = self.writes_allowed;
        self.writes_allowed = if took > batch && !self.writes_idled {
            if took > batch * 3 {
                allowed / 2
            } else {
                allowed - 1
            }
        } else if took < batch && self.writes_left == 0 {
            if batch > took * 3 {
                allowed * 2
            } else {
                allowed + 1
            }
        } else {
            allowed
        }
        .clamp(1, u64::from(u32::MAX));
    }

    /// When waiting for a read ends by itself.
    pub(super) fn wake(&self) -> Option<Instant> {
        match self.status {
            Status::WaitNext(until) => Some(Instant(until)),
            _ => None,
        }
    }
}

//! A hard disk: one arm, one buffer, one queue.
//!
//! There are no events inside a request: when the arm is free the disk picks what it does next and
//! works out at once when that will have ended. So the only moments at which anything happens are
//! the ends of requests and the moments at which the arm becomes free with work waiting.
//!
//! Left out: a write is taken to update copies of its sectors in read segments (drives differ; some
//! drop them), and the buffer is split between reads and writes once for all.
mod commands;
mod destage;
mod mechanics;
mod queue;
mod stream;

use super::counters::Counters;
use super::dirty::{Dirty, Run};
use super::fault::{BadSectors, Fault};
use super::geometry::Place;
use super::link::Link;
use super::ready::Ready;
use super::rotation::{REVOLUTION, Spindle};
use super::segments::Segments;
use super::spec::HddModel;
use super::{DiskError, Done, Request};
use queue::Queue;
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream as Numbers;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;
use std::sync::Arc;
use stream::Stream;

/// A request that needs the arm.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u64,
    lba: u64,
    sectors: u64,
    /// When the drive took it; of one that had to wait until it was compared with others, since when it is.
    since: u64,
    /// When the drive's processor is through with it; of a write whose data have been sent, when they begin to be there.
    ready: u64,
    write: bool,
    /// The data of a write are in the buffer while it waits for the arm.
    sent: bool,
    /// Its first physical sector.
    place: Place,
    /// Coordinate where its last physical sector has passed.
    end: u64,
}

/// A write or flush that waits for the write buffer.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    id: u64,
    run: Run,
    flush: bool,
}

/// A hard disk.
#[derive(Clone, Debug)]
pub(super) struct Hdd {
    model: Arc<HddModel>,
    spindle: Spindle,
    cylinder: u32,
    head: u32,
    /// When the arm has done what it is at.
    free_at: u64,
    /// Latest time heard of.
    clock: u64,
    stream: Stream,
    segments: Segments,
    queue: Queue,
    ready: Ready,
    /// When the drive's processor is free.
    processor_free: u64,
    link: Link,
    /// Sectors of writes that wait for the arm with their data in the buffer.
    sent: u64,
    dirty: Dirty,
    /// Sectors on their way from the buffer to the media; they end at `free_at`.
    destaging: u64,
    /// Nanoseconds in which it passes one of them at most.
    sector_nanos: u64,
    /// Sectors destaged ever; runs are as old as what was destaged since they came. A small run counts for the share of the
    /// buffer that it keeps others from.
    destaged: u64,
    /// No dirty run came before so many were.
    oldest: u64,
    /// A destage is under way (of no dirty sectors any more, perhaps).
    destage_active: bool,
    blocked: VecDeque<Blocked>,
    /// Flushes at the front of `blocked` or being worked off.
    flushing: bool,
    /// Destaging takes turns with reads until the low mark.
    pressing: bool,
    destaged_last: bool,
    /// First sector after the last that the arm dealt with.
    position: u64,
    last_read: u64,
    /// Destaging waits until then, so that what the head has begun to read ahead is worth the way.
    ahead_until: u64,
    /// A part of a physical sector left over at the end of a written stream, and until when it is
    /// kept back for the write that will complete it.
    leftover: Option<(u64, u64)>,
    /// Physical sectors that were written in part lately, the latest first: the buffer has them whole.
    parts: VecDeque<(u64, u64)>,
    bad: BadSectors,
    failed: bool,
    counters: Counters,
}

impl Hdd {
    pub(super) fn new(model: Arc<HddModel>, seed: u64) -> Self {
        let numbers = Numbers::new(seed);
        let cache = &model.spec.cache;
        Self {
            spindle: model.spindle(numbers.below(0, REVOLUTION)),
            segments: Segments::new(cache.segments, cache.segment_sectors, cache.adaptive),
            cylinder: 0,
            head: 0,
            free_at: 0,
            clock: 0,
            stream: Stream::default(),
            queue: Queue::new(model.spec.queue.window, model.rough.settling()),
            ready: Ready::default(),
            processor_free: 0,
            link: Link::default(),
            sent: 0,
            dirty: Dirty::default(),
            destaging: 0,
            sector_nanos: 0,
            destaged: 0,
            oldest: 0,
            destage_active: false,
            blocked: VecDeque::new(),
            flushing: false,
            pressing: false,
            destaged_last: false,
            position: 0,
            last_read: 0,
            ahead_until: 0,
            leftover: None,
            parts: VecDeque::new(),
            bad: BadSectors::default(),
            failed: false,
            counters: Counters::default(),
            model,
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.dirty.sectors() + self.destaging
    }

    #[inline]
    pub(super) fn submit(&mut self, now: Instant, request: Request) {
        // What was due up to the clock is worked off.
        if self.clock < now.0 {
            self.run(now.0);
        }
        let (lba, sectors) = (request.lba.0, u64::from(request.sectors));
        if self.failed {
            return self.refuse(request.id, now.0, DiskError::Failed);
        }
        if request.kind == BlockKind::Flush {
            return self.flush(now.0, request.id);
        }
        let capacity = self.model.spec.sectors;
        if sectors == 0 || lba >= capacity || sectors > capacity - lba {
            return self.refuse(request.id, now.0, DiskError::OutOfRange);
        }
        match request.kind {
            BlockKind::Read => self.read(now.0, request.id, lba, sectors),
            _ => self.write(now.0, request.id, lba, sectors, request.fua),
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        let (due, end) = (self.due().unwrap_or(u64::MAX), self.ready.next());
        if end.0 <= due {
            return end;
        }
        // What is picked at `due` ends no earlier than a sector on the link after it. So when that is
        // not before a known end, the picking can be made up for then, with the same outcome.
        let bookkeeping = self.destage_active || self.queue.is_empty() || !self.blocked.is_empty();
        if !bookkeeping && end.0 <= due + self.model.link_nanos(1) {
            return end;
        }
        Instant(due)
    }

    /// Lets time pass until `now`.
    #[inline]
    pub(super) fn pass_time(&mut self, now: Instant) {
        self.run(now.0);
    }

    /// The next request that has ended by `now`, a time that it was told of.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<Done> {
        self.ready.pop(now)
    }

    /// The same when it is the only one, else `None`.
    #[inline]
    pub(super) fn pop_only(&mut self, now: Instant) -> Option<Done> {
        self.ready.pop_only(now)
    }

    pub(super) fn inject(&mut self, now: Instant, fault: Fault) {
        self.run(now.0);
        match fault {
            Fault::Unreadable { .. } | Fault::Slow { .. } => self.bad.note(&fault),
            Fault::Stall(span) => {
                let until = now.0.saturating_add(span.0);
                self.processor_free = self.processor_free.max(until);
                if !self.destage_active {
                    self.free_at = self.free_at.max(until);
                }
            }
            Fault::Dead => self.die(now),
        }
    }

    fn die(&mut self, now: Instant) {
        self.failed = true;
        self.ready.fail(now, DiskError::Failed);
        let waiting = self.queue.drain();
        let blocked: Vec<u64> = self.blocked.drain(..).map(|b| b.id).collect();
        for id in waiting.into_iter().chain(blocked) {
            self.end_now(id, now.0, Err(DiskError::Failed));
        }
        (self.dirty, self.destaging, self.destage_active) = (Dirty::default(), 0, false);
        (self.flushing, self.pressing, self.leftover) = (false, false, None);
        (self.stream.active, self.sent) = (false, 0);
    }

    #[cold]
    fn refuse(&mut self, id: u64, at: u64, error: DiskError) {
        self.end_now(id, at, Err(error));
    }

    fn end_now(&mut self, id: u64, at: u64, result: Result<(), DiskError>) {
        let at = Instant(at);
        self.ready.push(Done {
            id,
            at,
            first: at,
            result,
            hit: false,
        });
    }

    /// The drive's processor deals with a command that came at `now`; when it is through.
    #[inline]
    fn decode(&mut self, now: u64, overhead: Span) -> u64 {
        let through = now.max(self.processor_free).saturating_add(overhead.0);
        self.processor_free = through;
        self.counters.overhead.0 += overhead.0;
        through
    }

    /// `sectors` go over the link from `from` on, which may be in the future; begin and end. What
    /// comes later but is ready sooner does not wait behind it.
    #[inline]
    fn transfer(&mut self, from: u64, sectors: u64) -> (u64, u64) {
        let nanos = self.model.link_nanos(sectors);
        self.counters.link.0 += nanos;
        self.link.take(self.clock, from, nanos)
    }

    /// First and last sector widened to physical ones.
    #[inline]
    fn widen(&self, lba: u64, sectors: u64) -> (u64, u64) {
        let physical = u64::from(self.model.spec.physical);
        if physical == 1 {
            return (lba, sectors);
        }
        let mask = physical - 1;
        let from = lba & !mask;
        (from, ((lba + sectors + mask) & !mask) - from)
    }

    #[inline(always)]
    fn waiting(&self, id: u64, lba: u64, sectors: u64, since: u64, write: bool) -> Waiting {
        let (from, count) = self.widen(lba, sectors);
        let geometry = &self.model.geometry;
        let place = geometry.place_of(from);
        Waiting {
            id,
            lba,
            sectors,
            since,
            ready: since,
            write,
            sent: false,
            place,
            end: geometry.end_of(&place, from, count),
        }
    }

    /// Works off what was to be decided until `now`.
    #[inline]
    fn run(&mut self, now: u64) {
        // Nothing is due before the arm is free.
        while self.free_at <= now
            && let Some(due) = self.due().filter(|due| *due <= now)
        {
            self.decide(due);
        }
        self.clock = self.clock.max(now);
    }

    /// When the arm is free for something that waits.
    #[inline]
    fn due(&self) -> Option<u64> {
        if self.destage_active {
            return Some(self.free_at);
        }
        if !self.queue.is_empty() {
            return Some(self.free_at.max(self.clock));
        }
        if self.dirty.is_empty() {
            return None;
        }
        let from = self.destage_from().max(self.ahead_until);
        Some(self.free_at.max(self.clock).max(from))
    }

    fn decide(&mut self, at: u64) {
        self.clock = self.clock.max(at);
        if self.destage_active {
            return self.finish_destage(at);
        }
        let destage = !self.dirty.is_empty()
            && (self.queue.is_empty()
                || (self.urgent() && !self.destaged_last && self.ahead_until <= at));
        self.destaged_last = destage;
        if destage {
            self.destage(at);
        } else {
            let waiting = self.pick(at);
            if waiting.write {
                self.start_write(&waiting, at);
            } else {
                self.start_read(&waiting, at);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! A solid-state disk: dies behind channels, a write buffer, and garbage collection as an amount of
//! extra work.
//!
//! What is modelled: command time (of writes apart, where the drive takes fewer or more of them), reads that occupy a die and then its channel, reading ahead of runs of reads
//! (`ahead`), programs of whole units that occupy a die (a read can suspend one), physical sectors that are written in part and read
//! for the rest of them (`parts`), a buffer that acknowledges writes until it is full, flushes that write the map of pages, one at a
//! time (`flush`), a fast (SLC) area that can run out, and the write amplification of a full disk.
//!
//! What is left out: the mapping of single pages (rows over the dies stand for it, see `dies`), which blocks
//! garbage collection picks (the closed form for uniformly random writes stands for it, weighted by
//! the share of writes that do not follow the one before), the refilling of the SLC area in idle
//! time, TRIM, that writes to few places leave collection less to copy, wear, heat, and read retries that grow with age. So steady states are right in level,
//! not in their fluctuation.
mod ahead;
mod dies;
mod flush;
mod parts;
mod spec;

pub use spec::{SsdError, SsdModel, SsdSpec};

use super::counters::Counters;
use super::fault::{BadSectors, Fault};
use super::ready::Ready;
use super::{DiskError, Done, Request};
use crate::block::Way;
use ahead::Ahead;
use dies::Dies;
use flush::Map;
use parts::Part;
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream as Numbers;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;
use std::sync::Arc;

/// A solid-state disk.
#[derive(Clone, Debug)]
pub(super) struct Ssd {
    model: Arc<SsdModel>,
    /// When each die has read what was asked of it.
    reading: Box<[u64]>,
    /// When each die has programmed what was asked of it.
    programming: Box<[u64]>,
    channels: Box<[u64]>,
    dies: Dies,
    /// Die of the next program; where it begins is the seed's choice.
    next_die: usize,
    ready: Ready,
    ahead: Ahead,
    controller_free: u64,
    /// When the link is free for reads and for writes; of one that goes one way at a time the first is for both.
    link_free: [u64; 2],
    /// Sectors in the buffer that do not fill a program unit yet.
    pending: u64,
    /// The physical sector that the last write ended within.
    part: Option<Part>,
    /// Physical sectors of which the rest is to be read before they are programmed.
    rests: u64,
    /// Programs under way: when each ends and how many sectors it frees, ascending.
    programs: VecDeque<(u64, u64)>,
    buffered: u64,
    map: Map,
    /// Sectors that can be written before garbage collection sets in.
    fresh: u64,
    fast: u64,
    /// End of the last write, and the share of writes that did not begin there, in 2^-16.
    last_end: u64,
    random: u64,
    bad: BadSectors,
    failed: bool,
    counters: Counters,
}

impl Ssd {
    pub(super) fn new(model: Arc<SsdModel>, seed: u64) -> Self {
        let spec = &model.spec;
        let spare = spec.sectors / 1000 * u64::from(spec.spare_permille);
        let empty = spec.sectors / 100 * u64::from(100 - spec.filled);
        Self {
            reading: vec![0; spec.dies as usize].into(),
            programming: vec![0; spec.dies as usize].into(),
            channels: vec![0; spec.channels as usize].into(),
            dies: Dies::new(spec.dies, seed),
            next_die: Numbers::new(seed).below(0, u64::from(spec.dies)) as usize,
            ready: Ready::default(),
            ahead: Ahead::new(spec.runs as usize),
            controller_free: 0,
            link_free: [0; 2],
            pending: 0,
            part: None,
            rests: 0,
            programs: VecDeque::new(),
            buffered: 0,
            map: Map::default(),
            // A full disk has no spare blocks left beyond what the closed form counts on.
            fresh: if spec.filled == 100 { 0 } else { empty + spare },
            fast: spec.fast,
            last_end: 0,
            random: 0,
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
        self.buffered
    }

    pub(super) fn next(&self) -> Instant {
        self.ready.next()
    }

    /// Lets time pass until `now`.
    pub(super) fn pass_time(&mut self, now: Instant) {
        self.free(now.0);
    }

    /// The next request that has ended by `now`, a time that it was told of.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Done> {
        self.ready.pop(now)
    }

    pub(super) fn inject(&mut self, now: Instant, fault: Fault) {
        match fault {
            Fault::Unreadable { .. } | Fault::Slow { .. } => self.bad.note(&fault),
            Fault::Stall(span) => {
                self.controller_free = self.controller_free.max(now.0.saturating_add(span.0));
            }
            Fault::Dead => {
                self.failed = true;
                self.ready.fail(now, DiskError::Failed);
            }
        }
    }

    /// Sectors that it can take in its fast area, and before it collects garbage.
    pub(super) fn room(&self) -> [u64; 2] {
        [self.fast, self.fresh]
    }

    /// So many sectors of each have been taken.
    pub(super) fn fill(&mut self, taken: [u64; 2]) {
        self.fast -= taken[0].min(self.fast);
        self.fresh -= taken[1].min(self.fresh);
    }

    pub(super) fn dies(&self) -> u32 {
        self.model.spec.dies
    }

    /// Time of the turns of its commands.
    pub(super) fn taking(&self) -> Span {
        let counters = &self.counters;
        let of = |kind, count| self.model.turn(kind).0 * count;
        let others = of(BlockKind::Read, counters.reads + counters.flushes);
        Span(others + of(BlockKind::Write, counters.writes))
    }

    pub(super) fn submit(&mut self, now: Instant, request: Request) {
        let now = now.0;
        if self.failed {
            return self.end(request.id, now, now, Err(DiskError::Failed), false);
        }
        let begin = now.max(self.controller_free);
        // The controller works on many commands at a time, but begins them one after another.
        self.controller_free = begin + self.model.turn(request.kind).0;
        self.counters.overhead += self.model.spec.overhead;
        let decoded = begin + self.model.spec.overhead.0;
        let (lba, sectors) = (request.lba.0, u64::from(request.sectors));
        let capacity = self.model.spec.sectors;
        match request.kind {
            BlockKind::Flush | BlockKind::FlushData => self.flush(request.id, decoded),
            _ if sectors == 0 || lba >= capacity || sectors > capacity - lba => {
                self.end(request.id, now, now, Err(DiskError::OutOfRange), false);
            }
            BlockKind::Read => self.read(request.id, lba, sectors, decoded),
            BlockKind::Write => self.write(&request, lba, sectors, decoded),
        }
    }

    fn end(&mut self, id: u64, first: u64, at: u64, result: Result<(), DiskError>, hit: bool) {
        self.ready.push(Done {
            id,
            at: Instant(at),
            first: Instant(first),
            result,
            hit,
        });
    }

    /// `sectors` go over the link when they are there at time `there`; when they have gone. Link and
    /// channels are shared by bandwidth from the arrival of the command on: what is ready sooner does
    /// not wait behind what came before it.
    fn transfer(&mut self, way: Way, from: u64, there: u64, sectors: u64) -> u64 {
        let nanos = self.model.link_nanos(sectors);
        let (free, used) = match way {
            Way::Writes if self.model.spec.duplex => {
                (&mut self.link_free[1], &mut self.counters.link_writes)
            }
            Way::Reads | Way::Writes => (&mut self.link_free[0], &mut self.counters.link),
        };
        *free = from.max(*free) + nanos;
        *used += Span(nanos);
        (*free).max(there + nanos)
    }

    /// The same for the channel of a die.
    fn channel(&mut self, die: usize, from: u64, there: u64, sectors: u64) -> u64 {
        let nanos = self.model.channel_nanos(sectors);
        let count = self.channels.len();
        let channel = &mut self.channels[die % count];
        *channel = from.max(*channel) + nanos;
        (*channel).max(there + nanos)
    }

    fn read(&mut self, id: u64, lba: u64, sectors: u64, from: u64) {
        self.counters.reads += 1;
        self.counters.sectors_read += sectors;
        let (retries, result) = if self.bad.is_empty() {
            (0, Ok(()))
        } else {
            self.bad.read(lba, sectors)
        };
        let page = u64::from(self.model.spec.page);
        let (mut at, end) = (lba, lba + sectors);
        let (mut first, mut last) = (u64::MAX, from);
        let run = if self.model.spec.ahead > 0 {
            self.ahead.run(lba, end)
        } else {
            None
        };
        let mut hit = run.is_some();
        while at < end {
            let count = (page - at % page).min(end - at);
            let number = at / page;
            let asked = run.and_then(|run| self.ahead.there(run, number));
            let there =
                asked.map_or_else(|| self.read_page(number, count, from), |at| at.max(from));
            if let (Some(run), None) = (run, asked) {
                hit = false;
                self.ahead.put(run, number, there);
            }
            (first, last) = (first.min(there), last.max(there));
            at += count;
        }
        if let Some(run) = run {
            self.read_ahead(run, end, from);
        }
        self.counters.read_hits += u64::from(hit);
        last += retries * self.model.spec.read.0;
        let sent = self
            .transfer(Way::Reads, from, first, sectors)
            .max(last + self.model.link_nanos(1));
        self.end(id, first, sent, result, hit);
    }

    /// Reads the pages behind the end of a run, as far as they have not been read yet.
    fn read_ahead(&mut self, run: usize, end: u64, from: u64) {
        let spec = &self.model.spec;
        let (page, capacity) = (u64::from(spec.page), spec.sectors);
        let last = (end + spec.ahead).min(capacity).div_ceil(page);
        // The page that the run ends in has been read whole, or is on its way.
        for number in self.ahead.missing(run, end.div_ceil(page), last) {
            let there = self.read_page(number, page.min(capacity - number * page), from);
            self.ahead.put(run, number, there);
        }
    }

    /// Reads part of a page from time `from` on; when it is in the controller.
    fn read_page(&mut self, page: u64, sectors: u64, from: u64) -> u64 {
        let spec = &self.model.spec;
        let die = self.dies.of(page);
        let free = from.max(self.reading[die]);
        // A program under way is suspended after a while, and goes on after the read.
        let wait = self.programming[die]
            .saturating_sub(free)
            .min(spec.suspend.0);
        let sensed = free + wait + spec.read.0;
        let moved = self.channel(die, from, sensed, sectors);
        self.reading[die] = moved;
        if self.programming[die] > free + wait {
            self.programming[die] += moved - free - wait;
        }
        self.counters.transfer += self.model.spec.read;
        moved
    }

    fn write(&mut self, request: &Request, lba: u64, sectors: u64, from: u64) {
        self.counters.writes += 1;
        self.counters.sectors_written += sectors;
        if !self.bad.is_empty() {
            self.bad.write(lba, sectors);
        }
        let page = u64::from(self.model.spec.page);
        self.ahead.written(lba / page, (lba + sectors - 1) / page);
        let follows = lba == self.last_end;
        self.last_end = lba + sectors;
        // An average over about the last 64 writes.
        self.random = self.random - (self.random >> 6) + if follows { 0 } else { (1 << 16) >> 6 };
        let sent = self.transfer(Way::Writes, from, from, sectors);
        let sectors = self.whole(lba, sectors, follows);
        let room = self.make_room(sectors, sent);
        self.buffered += sectors;
        self.pending += sectors;
        let unit = u64::from(self.model.spec.program_unit);
        let mut end = room;
        while self.pending >= unit {
            end = end.max(self.program(unit, sent, room));
        }
        self.map.changes(room);
        if request.fua && !self.model.spec.protected {
            let rest = self.pending;
            if rest > 0 {
                self.complete();
                end = end.max(self.program(rest, sent, room));
            }
            let end = self.map.written(room, end, self.model.spec.flush);
            return self.end(request.id, end, end, Ok(()), false);
        }
        self.counters.write_hits += 1;
        self.end(request.id, room, room, Ok(()), true);
    }

    /// When the buffer has room for more sectors, `from` at the earliest.
    fn make_room(&mut self, sectors: u64, from: u64) -> u64 {
        self.free(from);
        let mut at = from;
        while self.buffered + sectors > self.model.spec.buffer {
            let Some((end, freed)) = self.programs.pop_front() else {
                break;
            };
            self.buffered -= freed;
            at = at.max(end);
        }
        at
    }

    fn free(&mut self, now: u64) {
        while let Some((_, freed)) = self.programs.front().filter(|(end, _)| *end <= now) {
            self.buffered -= freed;
            self.programs.pop_front();
        }
    }

    /// Programs `sectors` of the buffer on the next die, as they came at time `from` and were in the buffer at `there`; when that
    /// ends. They take their part of the channel's bandwidth as everything does, from when they came on: reads that come before there
    /// is room for them do not wait for that.
    fn program(&mut self, sectors: u64, from: u64, there: u64) -> u64 {
        let model = &self.model;
        let spec = &model.spec;
        self.pending -= sectors;
        let fast = self.fast >= sectors;
        let once = if fast {
            spec.program_fast.0
        } else {
            spec.program.0
        };
        self.fast -= if fast { sectors } else { self.fast };
        // The rests of sectors are read as the firmware gets to them, which no read of the host's waits for.
        let mut work = once + spec.read.0 * std::mem::take(&mut self.rests);
        if self.fresh >= sectors {
            self.fresh -= sectors;
        } else {
            self.fresh = 0;
            // Each further copy is read, and programmed into the dense area.
            let extra = ((model.amplification - (1 << 16)) * self.random) >> 16;
            work += ((spec.read.0 + spec.program.0) * extra) >> 16;
        }
        let die = self.next_die;
        self.next_die = (die + 1) % self.programming.len();
        let moved = self.channel(die, from, there, sectors);
        let end = moved.max(self.programming[die]).max(self.reading[die]) + work;
        self.programming[die] = end;
        self.counters.transfer += Span(work);
        self.counters.destages += 1;
        self.counters.sectors_destaged += sectors;
        let at = self.programs.partition_point(|(other, _)| *other <= end);
        self.programs.insert(at, (end, sectors));
        end
    }

    fn flush(&mut self, id: u64, from: u64) {
        self.counters.flushes += 1;
        self.free(from);
        let mut at = from;
        if !self.model.spec.protected {
            if self.pending > 0 {
                self.complete();
                at = self.program(self.pending, from, from);
            }
            at = at.max(self.programs.back().map_or(0, |(end, _)| *end));
            at = self.map.written(from, at, self.model.spec.flush);
        }
        self.end(id, at, at, Ok(()), false);
    }
}

//! RAID behind a cache: the host's requests end in the controller's memory; the controller reads ahead
//! and writes behind.
//!
//! A command takes the processor's time. A read ends when its data, from the cache or the disks, have
//! gone to the host. With write-back, a write ends when its data are in the cache, which has battery:
//! a flush costs nothing. Whatever comes from and goes to host and disks passes the memory, and parity is
//! computed in it.
//!
//! Members are filled and made to agree beside that ([`refill`]).
//!
//! Left out: the cache's contents are lost to nobody (no power failure), and the cache is not split
//! between the volumes of a controller: each has all of it.
mod destage;
mod gate;
mod lines;
mod read;
mod refill;
mod task;

use super::members::{Members, stripe};
use crate::block::{Bio, Ended};
use crate::catalogue::controller::CacheModel;
use crate::disk::DiskError;
use crate::fabric::build::Card;
use crate::fabric::line::LineEnd;
use crate::fabric::plant::Plant;
use crate::fabric::time::{Agenda, NEVER};
use destage::Dirty;
use gate::Gate;
use lines::Lines;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_layout::{Layout, MemberSet};
use read::Streams;
use std::collections::VecDeque;
use task::Task;

/// Commands of the host that are worked off at a time.
const COMMANDS: usize = 256;

/// Runs to and from the disks are about as long as this at least, in sectors, where the layout does
/// not want longer ones. Assumed: usual for commands of controllers.
const RUN: u64 = 256;

/// A request of the host.
#[derive(Clone, Copy, Debug)]
struct Asked {
    bio: Bio,
    /// Sectors that have gone to the host or have come from it.
    moved: u64,
    /// When the last of them had.
    moved_at: u64,
    result: Result<(), DiskError>,
}

/// What happens without a disk.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// The processor has decoded a request.
    Decoded(u32),
    /// A request ends.
    Ended(u32),
    /// The data of a write that goes through have come.
    Came(u32),
    /// A task is over: its data have been computed from parity, or it could not be begun.
    Computed(u32),
    /// Nothing may have come from the host for a while.
    Quiet,
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Cached {
    members: Members,
    gate: Gate,
    model: CacheModel,
    card: Card,
    /// Nanoseconds for a sector of parity's operands, in 2^-20 ns.
    xor_sector: u64,
    /// Sectors of the volume.
    capacity: u64,
    /// Sectors of a run to the disks, a whole number of stripes.
    group: u64,
    lines: Lines,
    dirty: Dirty,
    streams: Streams,
    asked: Vec<Asked>,
    free: Vec<u32>,
    waiting: VecDeque<Bio>,
    in_work: usize,
    /// Reads that wait for the disks, writes that wait for room.
    reading: Vec<u32>,
    writing: VecDeque<u32>,
    tasks: Vec<Task>,
    free_tasks: Vec<u32>,
    agenda: Agenda<Due>,
}

impl Cached {
    pub(in crate::fabric) fn new(members: Members, model: CacheModel, card: &Card) -> Self {
        let layout = &members.layout;
        let stripe = stripe(layout).unwrap_or(RUN).max(1);
        let group = stripe * RUN.div_ceil(stripe).max(1);
        let lines = Lines::new(for_data(layout, model.sectors), model.line);
        Self {
            capacity: layout.capacity().0,
            gate: Gate::new(model.at_disk, members.disks.len()),
            members,
            xor_sector: crate::fabric::time::sector_units(model.xor_rate),
            group,
            lines,
            dirty: Dirty::new(&model),
            streams: Streams::default(),
            model,
            card: *card,
            asked: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            in_work: 0,
            reading: Vec::new(),
            writing: VecDeque::new(),
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            agenda: Agenda::default(),
        }
    }

    pub(super) const fn members(&self) -> &Members {
        &self.members
    }

    pub(super) const fn members_mut(&mut self) -> &mut Members {
        &mut self.members
    }

    pub(super) fn submit(&mut self, now: u64, bio: &Bio, plant: &mut Plant) {
        if self.in_work >= COMMANDS {
            return self.waiting.push_back(*bio);
        }
        self.begin(now, bio, plant);
    }

    fn begin(&mut self, now: u64, bio: &Bio, plant: &mut Plant) {
        self.in_work += 1;
        self.seen(now);
        let asked = Asked {
            bio: *bio,
            moved: 0,
            moved_at: now,
            result: Ok(()),
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.asked[number as usize] = asked;
                number
            }
            None => {
                self.asked.push(asked);
                (self.asked.len() - 1) as u32
            }
        };
        let processor = &mut plant.pipes.list[usize::from(self.card.processor)];
        let decoded = processor.work(now, self.model.command.0);
        self.agenda.push(decoded, Due::Decoded(number));
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        let refill = self.members.refill.as_ref();
        let refill = refill.map_or(NEVER, |refill| refill.next());
        self.agenda.next().min(refill)
    }

    pub(super) fn advance(&mut self, now: u64, plant: &mut Plant, done: &mut Vec<Ended>) {
        while let Some((at, due)) = self.agenda.pop(now) {
            match due {
                Due::Decoded(number) => self.decoded(at, number, plant),
                Due::Ended(number) => self.over(at, number, plant, done),
                Due::Came(number) => self.write_through(at, number, plant),
                Due::Computed(task) => self.finish(at, task, plant),
                Due::Quiet => self.quiet(at, plant),
            }
        }
        self.refill(now, plant);
    }

    /// A command to a disk has ended.
    pub(super) fn ended(&mut self, end: &LineEnd, plant: &mut Plant) {
        self.part_ended(end, plant);
    }

    fn decoded(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let asked = &mut self.asked[number as usize];
        asked.moved_at = now;
        let bio = asked.bio;
        let sectors = u64::from(bio.sectors);
        if bio.kind == BlockKind::Flush {
            if self.model.write_back {
                return self.agenda.push(now, Due::Ended(number));
            }
            return self.flush_disks(now, number, plant);
        }
        if sectors == 0 || bio.lba.0 >= self.capacity || sectors > self.capacity - bio.lba.0 {
            return self.fail(now, number, DiskError::OutOfRange);
        }
        if self.members.lost_without(MemberSet::EMPTY) {
            return self.fail(now, number, DiskError::Failed);
        }
        match bio.kind {
            BlockKind::Read => self.read(now, number, plant),
            _ if self.model.write_back => {
                self.writing.push_back(number);
                self.written(now, plant);
            }
            _ => {
                let came = self.card.host(self.card.host_write, now, sectors, plant);
                self.agenda.push(came, Due::Came(number));
            }
        }
    }

    fn fail(&mut self, now: u64, number: u32, error: DiskError) {
        self.asked[number as usize].result = Err(error);
        self.agenda.push(now, Due::Ended(number));
    }

    /// A request has ended: its place is free for one that waits.
    fn over(&mut self, now: u64, number: u32, plant: &mut Plant, done: &mut Vec<Ended>) {
        let asked = &self.asked[number as usize];
        done.push(Ended {
            id: asked.bio.id,
            at: Instant(now),
            result: asked.result,
        });
        self.free.push(number);
        self.in_work -= 1;
        self.seen(now);
        if let Some(bio) = self.waiting.pop_front() {
            self.begin(now, &bio, plant);
        }
    }
}

/// Sectors of the cache that are left for data: parity takes part in the same lines, because a stripe
/// that is written in part next time needs it again. Assumed of controllers that write back; a file of
/// 0.1 GB does not fit 128 MiB on 'raid5 3 external' of scsi-hdbench.
fn for_data(layout: &Layout, sectors: u64) -> u64 {
    match layout {
        Layout::Parity(parity) => {
            sectors * parity.data_members() as u64 / layout.members().max(1) as u64
        }
        Layout::Nested(nested) => nested
            .inner()
            .first()
            .map_or(sectors, |inner| for_data(inner, sectors)),
        _ => sectors,
    }
}

//! RAID in the firmware of a card that has no cache: the host sees one disk that takes one command at
//! a time. A command takes a fixed time of the firmware, and then as long as the slowest channel needs
//! for its parts (MODELS 5.2, equation 10).
//!
//! What is filled or made to agree beside that takes its turn with the host's commands: a group is read as one command, and
//! written as the next.
use super::members::{Members, Part};
use super::refill::Group;
use crate::block::{Bio, Busy, Ended, Origin, ResourceKind};
use crate::catalogue::controller::FirmwareModel;
use crate::disk::{DiskError, Request};
use crate::fabric::line::LineEnd;
use crate::fabric::plant::Plant;
use crate::fabric::time::NEVER;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;
use raidlab_layout::MemberSet;
use std::collections::VecDeque;

/// What a group is first: something that is read. Which parts of it is in its plan.
const OF_GROUP: Bio = Bio {
    id: 0,
    kind: BlockKind::Read,
    lba: Lba(0),
    sectors: 0,
    fua: false,
    origin: Origin::resync(BlockKind::Read),
};

/// A command that is being worked off, at most the firmware's largest at a time.
#[derive(Clone, Copy, Debug)]
struct Current {
    bio: Bio,
    /// It is none of the host's, but the reads or, then, the writes of this group; of `bio` only the kind counts.
    group: Option<Group>,
    /// Sectors done, and being done.
    done: u32,
    length: u32,
    /// Commands to disks that have not ended.
    left: u32,
    /// Members that cannot give what is asked for.
    avoid: MemberSet,
    error: Option<DiskError>,
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Firmware {
    /// What a report calls it.
    name: String,
    members: Members,
    model: FirmwareModel,
    processor: u16,
    waiting: VecDeque<Bio>,
    current: Option<Current>,
    /// When the firmware has done its part of the command.
    ready: u64,
    parts: Vec<Part>,
    /// What is left of a group's commands when its reads have gone out.
    rest: Vec<Part>,
    /// A group was done last, and the host's turn has come.
    hosts_turn: bool,
    /// Time with a command in service up to the end of the last one, when the current one began, and
    /// time that the firmware has worked itself.
    served: u64,
    since: u64,
    worked: u64,
}

impl Firmware {
    pub(in crate::fabric) fn new(
        name: String,
        members: Members,
        model: FirmwareModel,
        processor: u16,
    ) -> Self {
        Self {
            name,
            members,
            model,
            processor,
            waiting: VecDeque::new(),
            current: None,
            ready: NEVER,
            parts: Vec::new(),
            rest: Vec::new(),
            hosts_turn: false,
            served: 0,
            since: 0,
            worked: 0,
        }
    }

    pub(super) const fn members(&self) -> &Members {
        &self.members
    }

    pub(super) const fn members_mut(&mut self) -> &mut Members {
        &mut self.members
    }

    pub(super) fn submit(&mut self, now: u64, bio: &Bio, plant: &mut Plant) {
        if let Some(refill) = &mut self.members.refill {
            refill.seen(now);
        }
        if self.current.is_some() {
            return self.waiting.push_back(*bio);
        }
        self.begin(now, bio, plant);
    }

    /// How long a command was in service until `now`.
    pub(super) fn busy(&self, now: u64) -> Busy {
        let current = self.current.map_or(0, |_| now.saturating_sub(self.since));
        let busy = self.served + current;
        let firmware = self.worked.min(busy);
        let mut parts = vec![
            ("in the firmware", Span(firmware)),
            ("on the disks", Span(busy - firmware)),
        ];
        parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        Busy {
            name: self.name.clone(),
            kind: ResourceKind::Volume,
            units: 1,
            busy: Span(busy),
            parts,
            way: None,
        }
    }

    fn begin(&mut self, now: u64, bio: &Bio, plant: &mut Plant) {
        self.start(now, *bio, None, plant);
    }

    fn start(&mut self, now: u64, bio: Bio, group: Option<Group>, plant: &mut Plant) {
        self.since = now;
        self.hosts_turn = group.is_some();
        self.current = Some(Current {
            bio,
            group,
            done: 0,
            length: 0,
            left: 0,
            avoid: MemberSet::EMPTY,
            error: None,
        });
        self.decode(now, bio.kind, plant);
    }

    fn decode(&mut self, now: u64, kind: BlockKind, plant: &mut Plant) {
        let time = match kind {
            BlockKind::Read => self.model.read,
            _ => self.model.write,
        };
        self.ready = plant.pipes.list[usize::from(self.processor)].work(now, time.0);
        self.worked += self.ready - now;
    }

    pub(super) fn next(&self) -> u64 {
        match (&self.current, &self.members.refill) {
            (None, Some(refill)) => self.ready.min(refill.next()),
            _ => self.ready,
        }
    }

    /// The next group begins, if one may.
    fn refill(&mut self, now: u64, plant: &mut Plant) {
        let wanted = !self.waiting.is_empty();
        while let Some(refill) = &mut self.members.refill
            && refill.next() <= now
        {
            let Some(begun) = refill.take(now, wanted) else {
                continue;
            };
            if self.members.plan_group(&begun, &mut self.rest).is_ok() && !self.rest.is_empty() {
                return self.start(now, OF_GROUP, Some(begun), plant);
            }
            self.refilled(now, &begun);
        }
    }

    fn refilled(&mut self, now: u64, group: &Group) {
        let wanted = !self.waiting.is_empty();
        if let Some(refill) = &mut self.members.refill {
            refill.ended(now, group, wanted);
        }
    }

    /// The commands of one step of a group, reads or writes.
    fn take_step(&mut self) {
        let step = self.rest.first().map_or(0, |part| part.step);
        let parts = self
            .rest
            .iter()
            .take_while(|part| part.step == step)
            .count();
        self.parts.clear();
        self.parts.extend(self.rest.drain(..parts));
    }

    /// The firmware has decoded the command: its parts go to the disks.
    pub(super) fn advance(&mut self, now: u64, plant: &mut Plant, done: &mut Vec<Ended>) {
        if self.current.is_none() {
            self.refill(now, plant);
        }
        if self.ready > now {
            return;
        }
        self.ready = NEVER;
        let Some(mut current) = self.current else {
            return;
        };
        let bio = current.bio;
        let lba = bio.lba.0 + u64::from(current.done);
        current.length = (bio.sectors - current.done.min(bio.sectors)).min(self.model.max_sectors);
        let run = (lba, u64::from(current.length));
        let planned = match bio.kind {
            _ if current.group.is_some() => {
                self.take_step();
                Ok(())
            }
            BlockKind::Flush | BlockKind::FlushData => {
                self.flush_all();
                Ok(())
            }
            _ if run.1 == 0 || lba.saturating_add(run.1) > self.members.layout.capacity().0 => {
                Err(DiskError::OutOfRange)
            }
            BlockKind::Read => self
                .members
                .read(run, current.avoid, &plant.slots, &mut self.parts)
                .map_err(|_| DiskError::Failed),
            BlockKind::Write => self
                .members
                .write(run, current.avoid, &mut self.parts)
                .map(|_| ())
                .map_err(|_| DiskError::Failed),
        };
        current.left = self.parts.len() as u32;
        self.current = Some(current);
        if let Err(error) = planned {
            return self.end(now, Err(error), plant, done);
        }
        for part in self.parts.drain(..) {
            let request = Request {
                id: 0,
                kind: match bio.kind {
                    BlockKind::Flush | BlockKind::FlushData => BlockKind::Flush,
                    _ if part.write => BlockKind::Write,
                    _ => BlockKind::Read,
                },
                lba: Lba(part.lba),
                sectors: part.sectors,
                fua: bio.fua && part.write,
            };
            plant.submit(now, self.members.disks[usize::from(part.role)], request);
        }
    }

    fn flush_all(&mut self) {
        self.parts.clear();
        let roles = MemberSet::first(self.members.disks.len()).without(self.members.failed);
        self.parts.extend(roles.iter().map(|role| Part {
            step: 0,
            role: role.0,
            write: false,
            lba: 0,
            sectors: 0,
        }));
    }

    pub(super) fn ended(&mut self, end: &LineEnd, plant: &mut Plant, done: &mut Vec<Ended>) {
        let Some(mut current) = self.current else {
            return;
        };
        current.left -= 1;
        if let Err(error) = end.result {
            let role = self.members.role(end.disk);
            match error {
                DiskError::Failed => self.members.lose(role),
                _ => current.avoid.insert(role),
            }
            current.error = Some(error);
        }
        self.current = Some(current);
        if current.left == 0 {
            self.finish(end.at, plant, done);
        }
    }

    /// All parts have ended: the command has, or goes on.
    fn finish(&mut self, now: u64, plant: &mut Plant, done: &mut Vec<Ended>) {
        let Some(mut current) = self.current else {
            return;
        };
        if let Some(group) = current.group {
            if current.error.is_none() && !self.rest.is_empty() {
                current.bio.kind = BlockKind::Write;
                self.current = Some(current);
                return self.decode(now, BlockKind::Write, plant);
            }
            self.rest.clear();
            self.refilled(now, &group);
            return self.end(now, Ok(()), plant, done);
        }
        let flush = current.bio.kind == BlockKind::Flush;
        let again = current.error.is_some() && !self.members.lost_without(current.avoid);
        if current.error.is_none() {
            current.done += current.length;
        }
        let more = current.error.is_none() && !flush && current.done < current.bio.sectors;
        if (again && !flush) || more {
            current.error = None;
            self.current = Some(current);
            return self.decode(now, current.bio.kind, plant);
        }
        let error = current.error.filter(|_| !(flush && again));
        self.end(now, error.map_or(Ok(()), Err), plant, done);
    }

    /// The command ends, and the next one begins.
    fn end(
        &mut self,
        now: u64,
        result: Result<(), DiskError>,
        plant: &mut Plant,
        done: &mut Vec<Ended>,
    ) {
        if let Some(current) = self.current.take() {
            self.served += now.saturating_sub(self.since);
            if current.group.is_none() {
                done.push(Ended {
                    id: current.bio.id,
                    at: Instant(now),
                    result,
                });
                if let Some(refill) = &mut self.members.refill {
                    refill.seen(now);
                }
            }
        }
        if !self.hosts_turn || self.waiting.is_empty() {
            self.refill(now, plant);
        }
        if self.current.is_some() {
            return;
        }
        if let Some(next) = self.waiting.pop_front() {
            self.begin(now, &next, plant);
        }
    }
}

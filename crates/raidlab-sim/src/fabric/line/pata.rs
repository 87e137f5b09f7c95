//! A parallel ATA channel: one command at a time for both drives, held from the command to its
//! status. A drive that seeks keeps the other one waiting (MODELS 5.2, equation 8).
use super::{Gear, LineEnd, at, channel, next_of};
use crate::block::Busy;
use crate::disk::{Disk, DiskError, Request};
use crate::fabric::pipe::Path;
use crate::fabric::time::{NEVER, sector_units};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use std::collections::VecDeque;

/// What a command costs on the channel of one drive, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Drive {
    pub(in crate::fabric) disk: u32,
    /// Registers, status, and what the firmware adds: of a read, of a write.
    pub(in crate::fabric) command: [u64; 2],
    /// When the command before went to the other drive: of a read, of a write.
    pub(in crate::fabric) switch: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct Current {
    drive: usize,
    id: u64,
    sectors: u64,
    read: bool,
    since: u64,
    /// When it ends; `NEVER` while its drive has it.
    end: u64,
    result: Result<(), DiskError>,
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Pata {
    name: String,
    drives: Vec<Drive>,
    /// Time of a sector on the channel in 2^-20 ns.
    per_sector: u64,
    read: Path,
    write: Path,
    waiting: VecDeque<(u8, Request)>,
    current: Option<Current>,
    last: Option<usize>,
    told: u64,
    /// Time held by commands that have ended, and what it was for.
    held: u64,
    switching: u64,
    moving: u64,
    /// Time of that in which a command for another drive waited; and since when one does.
    kept: u64,
    keeps: Option<u64>,
}

impl Pata {
    pub(in crate::fabric) fn new(
        name: String,
        drives: Vec<Drive>,
        rate: u64,
        (read, write): (Path, Path),
    ) -> Self {
        Self {
            name,
            drives,
            per_sector: sector_units(rate),
            read,
            write,
            waiting: VecDeque::new(),
            current: None,
            last: None,
            told: 0,
            held: 0,
            switching: 0,
            moving: 0,
            kept: 0,
            keeps: None,
        }
    }

    pub(super) const fn told(&self) -> u64 {
        self.told
    }

    pub(super) fn submit(&mut self, now: u64, disk: u32, request: Request, gear: &mut Gear<'_>) {
        let drive = self.drives.iter().position(|d| d.disk == disk);
        let Some(drive) = drive else { return };
        self.waiting.push_back((drive as u8, request));
        match &self.current {
            None => self.start(now, gear),
            Some(current) if current.drive != drive && self.keeps.is_none() => {
                self.keeps = Some(now);
            }
            Some(_) => {}
        }
    }

    /// The oldest command gets the channel at `now`.
    ///
    /// Its drive is told at once, for the time at which the command, or its data, will have crossed:
    /// nothing else can reach the drive until then.
    fn start(&mut self, now: u64, gear: &mut Gear<'_>) {
        let Some((drive, request)) = self.waiting.pop_front() else {
            return;
        };
        let drive = usize::from(drive);
        let costs = &self.drives[drive];
        let write = request.kind == BlockKind::Write;
        let changed = self.last.is_some_and(|last| last != drive);
        let switch = if changed {
            costs.switch[usize::from(write)]
        } else {
            0
        };
        self.switching += switch;
        let sectors = u64::from(request.sectors);
        let mut ready = now + switch + costs.command[usize::from(write)];
        if write {
            let wire = (sectors * self.per_sector) >> 20;
            self.moving += wire;
            ready = (ready + wire).max(gear.pipes.pass(self.write, ready, sectors));
        }
        gear.disks[costs.disk as usize].submit(at(ready), request);
        self.told = ready;
        self.last = Some(drive);
        if self
            .waiting
            .iter()
            .any(|(other, _)| usize::from(*other) != drive)
        {
            self.keeps = Some(now);
        }
        self.current = Some(Current {
            drive,
            id: request.id,
            sectors,
            read: request.kind == BlockKind::Read,
            since: now,
            end: NEVER,
            result: Ok(()),
        });
    }

    #[inline]
    pub(super) fn next(&self, disks: &[Disk]) -> u64 {
        match &self.current {
            None => NEVER,
            Some(current) if current.end == NEVER => {
                let disk = self.drives[current.drive].disk;
                next_of(&disks[disk as usize]).max(self.told)
            }
            Some(current) => current.end,
        }
    }

    pub(super) fn advance(&mut self, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
        let Some(mut current) = self.current else {
            return;
        };
        let disk = self.drives[current.drive].disk;
        if current.end == NEVER && now >= self.told {
            gear.disks[disk as usize].advance(at(now), gear.scratch);
            self.told = now;
            let Some(done) = gear.scratch.pop() else {
                return;
            };
            current.result = done.result;
            current.end = done.at.0;
            if current.read && done.result.is_ok() {
                let wire = (current.sectors * self.per_sector) >> 20;
                self.moving += wire;
                let passed = gear.pipes.pass(self.read, done.first.0, current.sectors);
                current.end = (done.first.0 + wire)
                    .max(done.at.0 + (self.per_sector >> 20))
                    .max(passed);
            }
            self.current = Some(current);
        }
        if current.end <= now {
            self.held += current.end - current.since;
            if let Some(since) = self.keeps.take() {
                self.kept += current.end.saturating_sub(since);
            }
            self.current = None;
            ends.push(LineEnd {
                disk,
                id: current.id,
                at: current.end,
                result: current.result,
            });
            self.start(now, gear);
        }
    }

    pub(super) fn busy(&self, now: u64) -> Busy {
        let held = self.held + self.current.map_or(0, |c| now.saturating_sub(c.since));
        let (switching, moving) = (self.switching.min(held), self.moving.min(held));
        // A channel that waits for a drive is in the way only of what waits for the other one. What of that time the wire was
        // in use is not known apart, and taken to be none as long as the rest has room for it.
        let kept = self.kept + self.keeps.map_or(0, |since| now.saturating_sub(since));
        let rest = kept.min(held.saturating_sub(switching + moving));
        channel(
            &self.name,
            rest + switching + moving,
            vec![
                ("waiting for the drive", Span(rest)),
                ("data", Span(moving)),
                ("change of drive", Span(switching)),
            ],
        )
    }
}

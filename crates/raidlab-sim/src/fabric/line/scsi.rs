//! A parallel SCSI bus: a command holds it for its phases alone; a disk that works on a command has
//! disconnected and comes back for the data and the status. Who wants the bus when it is free gets it
//! by SCSI priority, and by age among the commands of the host adapter. From Ultra2 on a disk that has had it lets those go
//! first that have lost against it (SPI-2, annex B; Maxtor's manuals have it on as drives come, of other makers it is assumed):
//! else, on a bus that is full, those with less priority would get nothing as long as others want all of it.
use super::{Gear, LineEnd, at, channel, next_of};
use crate::block::Busy;
use crate::disk::{Disk, DiskError, Request};
use crate::fabric::pipe::Path;
use crate::fabric::time::{Agenda, Flight, Flights, NEVER, sector_units};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;

/// Times of a SCSI bus.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Times {
    /// Bytes a second of the data phase.
    pub(in crate::fabric) rate: u64,
    /// Arbitration, selection, message and command phase.
    pub(in crate::fabric) command: u64,
    /// Arbitration, reselection, status and messages of a disk that comes back.
    pub(in crate::fabric) reconnect: u64,
}

/// What somebody wants the bus for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A command, with the data of a write, to a target.
    Command(Request),
    /// Data and status of a read, or only the status, from a target.
    Back {
        flight: Flight,
        result: Result<(), DiskError>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    target: u8,
    /// From when on it could use the bus.
    since: u64,
    phase: Phase,
}

#[derive(Clone, Debug)]
struct Target {
    disk: u32,
    /// Commands that the disk has.
    busy: u32,
    /// Latest time the disk was told of.
    told: u64,
    /// When it wants to be looked at; `NEVER` while it has no command.
    next: u64,
    /// Those with less priority that it lets go first when they have lost, a bit for each; none where it does not.
    lets: u16,
    /// Those that have lost against it and have not had the bus since, a bit for each.
    losers: u16,
}

impl Target {
    #[inline]
    fn look(&mut self, disks: &[Disk]) {
        self.next = match self.busy {
            0 => NEVER,
            _ => next_of(&disks[self.disk as usize]).max(self.told),
        };
    }
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Scsi {
    name: String,
    targets: Vec<Target>,
    per_sector: u64,
    command: u64,
    reconnect: u64,
    /// Time of the adapter for a command, and its processor.
    adapter: u64,
    processor: u16,
    read: Path,
    write: Path,
    waiting: Vec<Waiting>,
    free: u64,
    flights: Flights,
    ends: Agenda<LineEnd>,
    /// Earliest time at which a disk wants to be looked at.
    disks_next: u64,
    used: u64,
    moving: u64,
}

impl Scsi {
    /// A bus for these disks, of each whether it arbitrates fairly.
    pub(in crate::fabric) fn new(
        name: String,
        disks: &[(u32, bool)],
        times: Times,
        (adapter, processor): (u64, u16),
        (read, write): (Path, Path),
    ) -> Self {
        let lower = |than: u8| {
            let lower = (0..disks.len() as u8).filter(|target| rank(*target) > rank(than));
            lower.fold(0, |all, target| all | 1 << target)
        };
        let target = |(number, &(disk, fair)): (usize, &(u32, bool))| Target {
            disk,
            busy: 0,
            told: 0,
            next: NEVER,
            lets: if fair { lower(number as u8) } else { 0 },
            losers: 0,
        };
        Self {
            name,
            targets: disks.iter().enumerate().map(target).collect(),
            per_sector: sector_units(times.rate),
            command: times.command,
            reconnect: times.reconnect,
            adapter,
            processor,
            read,
            write,
            waiting: Vec::new(),
            free: 0,
            flights: Flights::default(),
            ends: Agenda::default(),
            disks_next: NEVER,
            used: 0,
            moving: 0,
        }
    }

    pub(super) fn told(&self, disk: u32) -> u64 {
        let target = self.targets.iter().find(|t| t.disk == disk);
        target.map_or(0, |target| target.told)
    }

    #[inline]
    fn wire(&self, sectors: u64) -> u64 {
        (sectors * self.per_sector) >> 20
    }

    pub(super) fn submit(&mut self, now: u64, disk: u32, request: Request, gear: &mut Gear<'_>) {
        let target = self.targets.iter().position(|t| t.disk == disk);
        let Some(target) = target else { return };
        let mut since = now;
        if self.adapter > 0 {
            since = gear.pipes.list[usize::from(self.processor)].work(now, self.adapter);
        }
        if request.kind == BlockKind::Write && !self.write.is_empty() {
            // The data must come through what is shared; the data phase ends no earlier than they do.
            let sectors = u64::from(request.sectors);
            let through = gear.pipes.pass(self.write, since, sectors);
            since = since.max(through.saturating_sub(self.command + self.wire(sectors)));
        }
        let wanted = Waiting {
            target: target as u8,
            since,
            phase: Phase::Command(request),
        };
        if since <= now && self.free <= now && self.waiting.is_empty() {
            self.grant(wanted, gear);
        } else {
            self.waiting.push(wanted);
            self.arbitrate(now, gear);
        }
    }

    /// The bus is free for `wanted`: works out how long it holds it, and tells the disk.
    ///
    /// A disk is told at once of a command whose phase ends in the future: nothing else can reach it
    /// before the bus is free again.
    #[inline]
    fn grant(&mut self, wanted: Waiting, gear: &mut Gear<'_>) {
        let begin = self.free.max(wanted.since);
        let target = &mut self.targets[usize::from(wanted.target)];
        match wanted.phase {
            Phase::Command(mut request) => {
                let mut end = begin + self.command;
                if request.kind == BlockKind::Write {
                    let data = (u64::from(request.sectors) * self.per_sector) >> 20;
                    (end, self.moving) = (end + data, self.moving + data);
                }
                request.id = self.flights.put(Flight {
                    id: request.id,
                    sectors: request.sectors,
                    kind: request.kind,
                });
                // A disk that came free in the meantime was told of a time after the last grant.
                gear.disks[target.disk as usize].submit(at(end.max(target.told)), request);
                (target.told, target.busy) = (end.max(target.told), target.busy + 1);
                // Only this disk has anything new to say.
                let before = target.next;
                target.look(gear.disks);
                let after = target.next;
                if after <= self.disks_next {
                    self.disks_next = after;
                } else if before == self.disks_next {
                    self.disks_next = self.earliest();
                }
                (self.free, self.used) = (end, self.used + end - begin);
            }
            Phase::Back { flight, result } => {
                let mut hold = self.reconnect;
                let mut end = begin + hold;
                if flight.kind == BlockKind::Read && result.is_ok() {
                    let sectors = u64::from(flight.sectors);
                    let data = (sectors * self.per_sector) >> 20;
                    hold += data;
                    self.moving += data;
                    end = (begin + hold).max(gear.pipes.pass(self.read, begin, sectors));
                }
                (self.free, self.used) = (begin + hold, self.used + hold);
                let back = LineEnd {
                    disk: target.disk,
                    id: flight.id,
                    at: end,
                    result,
                };
                self.ends.push(end, back);
            }
        }
    }

    /// Gives the bus to those who want it, as long as it is free at `now`.
    fn arbitrate(&mut self, now: u64, gear: &mut Gear<'_>) {
        while self.free <= now {
            let Some((index, wanted)) = self.first(now) else {
                break;
            };
            let winner = self.waiting.remove(index);
            if matches!(winner.phase, Phase::Back { .. }) {
                self.won(winner.target, wanted);
            }
            self.grant(winner, gear);
        }
    }

    /// Who gets the bus at `now`, and which disks want to come back, a bit for each.
    fn first(&self, now: u64) -> Option<(usize, u16)> {
        // Mostly there is one, and nobody loses against it.
        match &self.waiting[..] {
            [] => return None,
            [only] => return (only.since <= now).then_some((0, 0)),
            _ => {}
        }
        // The oldest command, and what each disk has wanted to come back with for longest.
        let mut command = (NEVER, usize::MAX);
        let mut back = [(NEVER, usize::MAX); TARGETS];
        let mut wanted = 0;
        for (index, waiting) in self.waiting.iter().enumerate() {
            if waiting.since > now {
                continue;
            }
            let oldest = match waiting.phase {
                Phase::Command(_) => &mut command,
                Phase::Back { .. } => {
                    wanted |= 1 << waiting.target;
                    &mut back[usize::from(waiting.target)]
                }
            };
            if waiting.since < oldest.0 {
                *oldest = (waiting.since, index);
            }
        }
        if command.0 < NEVER {
            return Some((command.1, wanted));
        }
        // Whoever has lost wants to come back, too, and does not give way to who won.
        let targets = self.targets.iter().zip(back).enumerate();
        let backs = targets.filter(|(_, (_, back))| back.0 < NEVER);
        let first = backs
            .min_by_key(|(number, (target, _))| (target.losers & wanted != 0, rank(*number as u8)));
        first.map(|(_, (_, back))| (back.1, wanted))
    }

    /// A disk comes back: of those that wanted to, the ones with less priority have lost against it, and it against nobody.
    fn won(&mut self, winner: u8, wanted: u16) {
        for target in &mut self.targets {
            target.losers &= !(1 << winner);
        }
        let target = &mut self.targets[usize::from(winner)];
        target.losers = target.lets & wanted;
    }

    /// Asks all disks when they want to be looked at.
    pub(super) fn look(&mut self, disks: &[Disk]) {
        self.targets
            .iter_mut()
            .for_each(|target| target.look(disks));
        self.disks_next = self.earliest();
    }

    #[inline]
    fn earliest(&self) -> u64 {
        self.targets
            .iter()
            .fold(NEVER, |next, target| next.min(target.next))
    }

    #[inline]
    pub(super) fn next(&self, _: &[Disk]) -> u64 {
        let mut next = self.disks_next.min(self.ends.next());
        for waiting in &self.waiting {
            next = next.min(waiting.since.max(self.free));
        }
        next
    }

    pub(super) fn advance(&mut self, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
        if self.disks_next <= now {
            self.reselect(now, gear);
        }
        if !self.waiting.is_empty() {
            self.arbitrate(now, gear);
        }
        while let Some((_, end)) = self.ends.pop(now) {
            ends.push(end);
        }
    }

    /// Disks that have something ready want the bus.
    fn reselect(&mut self, now: u64, gear: &mut Gear<'_>) {
        for index in 0..self.targets.len() {
            let target = &mut self.targets[index];
            if target.next > now {
                continue;
            }
            gear.disks[target.disk as usize].advance(at(now), gear.scratch);
            target.told = now;
            target.busy -= gear.scratch.len() as u32;
            target.look(gear.disks);
            for done in gear.scratch.drain(..) {
                let flight = self.flights.take(done.id);
                let mut since = done.at.0;
                if flight.kind == BlockKind::Read && done.result.is_ok() {
                    // It comes back as late as its data allow to go at the full rate of the bus.
                    let data = (u64::from(flight.sectors) * self.per_sector) >> 20;
                    let sector = self.per_sector >> 20;
                    let latest = (since + sector).saturating_sub(self.reconnect + data);
                    since = latest.max(done.first.0).min(since);
                }
                self.waiting.push(Waiting {
                    target: index as u8,
                    since,
                    phase: Phase::Back {
                        flight,
                        result: done.result,
                    },
                });
            }
        }
        self.disks_next = self.earliest();
    }

    pub(super) fn busy(&self, now: u64) -> Busy {
        let used = self.used - self.free.saturating_sub(now).min(self.used);
        let moving = self.moving.min(used);
        channel(
            &self.name,
            used,
            vec![("data", Span(moving)), ("phases", Span(used - moving))],
        )
    }
}

/// Disks on a bus at the most.
const TARGETS: usize = 15;

/// Place in arbitration of a target: the host adapter has number 7, the highest; then 6 down to 0,
/// then 15 down to 8 (SPI-3). Disks are numbered in their order, leaving out the adapter's.
fn rank(target: u8) -> u8 {
    let id = if target < 7 { target } else { target + 1 };
    if id < 8 { 7 - id } else { 8 + 15 - id }
}

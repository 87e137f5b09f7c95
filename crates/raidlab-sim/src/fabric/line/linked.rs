//! A disk with a link of its own behind something that is shared: a bus, a cap, the adapter's
//! processor. Commands and data to the disk cross the link in order; data from it have their own
//! direction.
use super::{Gear, LineEnd, at, next_of};
use crate::disk::{Disk, Request};
use crate::fabric::pipe::Path;
use crate::fabric::time::{Agenda, Flight, Flights, sector_units};
use raidlab_core::op::BlockKind;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Linked {
    disk: u32,
    /// Time of a sector on the link in 2^-20 ns.
    per_sector: u64,
    /// Time of the adapter for a command, and its processor.
    command: u64,
    processor: u16,
    read: Path,
    write: Path,
    /// When the link is free in each direction.
    down_free: u64,
    up_free: u64,
    /// Commands on their way to the disk.
    to_disk: VecDeque<(u64, Request)>,
    flights: Flights,
    /// Requests on their way back.
    ends: Agenda<LineEnd>,
    told: u64,
}

impl Linked {
    pub(in crate::fabric) fn new(
        disk: u32,
        rate: u64,
        (command, processor): (u64, u16),
        (read, write): (Path, Path),
    ) -> Self {
        Self {
            disk,
            per_sector: sector_units(rate),
            command,
            processor,
            read,
            write,
            down_free: 0,
            up_free: 0,
            to_disk: VecDeque::new(),
            flights: Flights::default(),
            ends: Agenda::default(),
            told: 0,
        }
    }

    pub(super) const fn told(&self) -> u64 {
        self.told
    }

    #[inline]
    pub(super) fn submit(&mut self, now: u64, _: u32, mut request: Request, gear: &mut Gear<'_>) {
        let sectors = u64::from(request.sectors);
        let mut ready = now;
        if self.command > 0 {
            let processor = &mut gear.pipes.list[usize::from(self.processor)];
            ready = processor.work(now, self.command);
        }
        ready = ready.max(self.down_free);
        if request.kind == BlockKind::Write {
            let link = ready + ((sectors * self.per_sector) >> 20);
            ready = link.max(gear.pipes.pass(self.write, ready, sectors));
        }
        self.down_free = ready;
        request.id = self.flights.put(Flight {
            id: request.id,
            sectors: request.sectors,
            kind: request.kind,
        });
        if ready <= now && self.to_disk.is_empty() {
            gear.disks[self.disk as usize].submit(at(now), request);
            self.told = now;
        } else {
            self.to_disk.push_back((ready, request));
        }
    }

    #[inline]
    pub(super) fn next(&self, disks: &[Disk]) -> u64 {
        let own = next_of(&disks[self.disk as usize]).min(self.ends.next());
        self.to_disk.front().map_or(own, |(at, _)| own.min(*at))
    }

    pub(super) fn advance(&mut self, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
        let disk = &mut gear.disks[self.disk as usize];
        while let Some((ready, request)) = self.to_disk.front().filter(|(ready, _)| *ready <= now) {
            disk.submit(at(*ready), *request);
            self.to_disk.pop_front();
        }
        self.told = now;
        disk.advance(at(now), gear.scratch);
        for done in gear.scratch.drain(..) {
            let flight = self.flights.take(done.id);
            let mut end = done.at.0;
            if flight.kind == BlockKind::Read && done.result.is_ok() {
                let sectors = u64::from(flight.sectors);
                let begin = done.first.0.max(self.up_free);
                let link = begin + ((sectors * self.per_sector) >> 20);
                end = link.max(end + (self.per_sector >> 20));
                end = end.max(gear.pipes.pass(self.read, begin, sectors));
                self.up_free = end;
            }
            let back = LineEnd {
                disk: self.disk,
                id: flight.id,
                at: end,
                result: done.result,
            };
            self.ends.push(end, back);
        }
        while let Some((_, end)) = self.ends.pop(now) {
            ends.push(end);
        }
    }
}

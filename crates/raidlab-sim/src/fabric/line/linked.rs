//! A disk with a link of its own behind something that is shared: a bus, a cap, the adapter's
//! processor. The link is the disk's, as it is of one with nothing before it: what is shared can only take away. Commands and
//! data to the disk come in order.
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
    /// When the last command has come to the disk, and when the last data of a read were through.
    down: u64,
    up: u64,
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
            down: 0,
            up: 0,
            to_disk: VecDeque::new(),
            flights: Flights::default(),
            ends: Agenda::default(),
            told: 0,
        }
    }

    fn link_nanos(&self, sectors: u64) -> u64 {
        (sectors * self.per_sector) >> 20
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
        if request.kind == BlockKind::Write {
            // The disk's link takes data as they come, and the last when they have.
            let passed = gear.pipes.pass(self.write, ready, sectors);
            ready = ready.max(passed.saturating_sub(self.link_nanos(sectors)));
        }
        ready = ready.max(self.down);
        self.down = ready;
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
                // What was there early waited for the link, the longer the more was before it.
                let link = end.saturating_sub(self.link_nanos(sectors));
                let begin = done.first.0.max(link.min(self.up));
                end = end.max(gear.pipes.pass(self.read, begin, sectors));
                self.up = end;
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

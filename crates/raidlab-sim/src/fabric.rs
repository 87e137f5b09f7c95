//! Channels, links, buses and controllers between the host and the disks.
//!
//! A [`Fabric`] is asked, not called back, like all layers (see [`block`](crate::block)). The host sees
//! [ports](PortInfo): a disk, or a volume that a controller makes of several.
//!
//! | part | model |
//! |---|---|
//! | link of a disk's own | the disk's, with or without something shared behind it; one way at a time or both |
//! | ATA channel | one command at a time for both drives, from the command to the status |
//! | SCSI bus | held for the phases of a command alone; arbitration by priority, in turns from Ultra2 on |
//! | bus of controllers, caps of a controller | capacity that whole transfers take in turn, cut through; PCI Express has it each way |
//! | RAID in the firmware of a card | one command at a time, a fixed time and the slowest channel's parts |
//! | RAID behind a cache | lines, least recently used; destaging in order; reading ahead |
//!
//! Left out: errors of the lines themselves, and a second initiator.
mod build;
mod check;
mod earliest;
mod line;
mod models;
mod pipe;
mod plant;
mod refill;
mod slab;
mod spec;
mod time;
mod volume;

pub use spec::{BusSpec, ControllerSpec, DiskSlot, FabricError, FabricSpec, VolumeSpec};

use crate::block::{Bio, Busy, Ended, ResourceKind, Way};
use crate::disk::{Disk, Fault};
use line::LineEnd;
use plant::{Owner, Plant};
use raidlab_core::time::{Instant, Span};
use time::NEVER;
use volume::Volume;

/// What the host knows of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// What reports call it: the disk or the volume.
    pub name: String,
    /// Logical sectors of 512 bytes.
    pub sectors: u64,
    /// Logical sectors in a physical one.
    pub physical: u32,
    /// Commands that it takes at a time.
    pub tags: u32,
    /// Whether it turns, or has members that do.
    pub rotational: bool,
    /// Largest request in sectors; a larger one is served all the same, as one command.
    pub max_sectors: u32,
    /// Stretches of memory that the adapter's driver takes in a request; of volumes it is not known.
    pub segments: u32,
    /// It writes past its buffer when asked to. NVMe has that for certain; libata leaves it off (`libata.fua`), and of others
    /// nothing is known.
    pub fua: bool,
    /// The disk, where the port is one.
    pub disk: Option<u32>,
}

/// A request that has ended at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortEnd {
    /// The port.
    pub port: u32,
    /// The end.
    pub end: Ended,
}

/// All that is between the host and the disks, and the disks.
#[derive(Clone, Debug)]
pub struct Fabric {
    ports: Vec<PortInfo>,
    /// What is behind each port.
    behind: Vec<Behind>,
    plant: Plant,
    volumes: Vec<Volume>,
    /// Port of the first volume; the others follow.
    first_volume: u32,
    /// When the first of the volumes has something to do by itself.
    volumes_next: u64,
    ends: Vec<LineEnd>,
    ended: Vec<Ended>,
    /// Ends that are still to be handed over, the last first; empty between calls.
    port_ends: Vec<PortEnd>,
}

/// What is behind a port.
#[derive(Clone, Copy, Debug)]
enum Behind {
    Disk(u32),
    Volume(u32),
}

impl Fabric {
    /// Builds a fabric; `seed` decides the angle of each disk at time zero.
    ///
    /// # Errors
    /// A part that is missing or does not fit.
    pub fn new(spec: &FabricSpec, seed: u64) -> Result<Self, FabricError> {
        build::build(spec, seed)
    }
}

impl Fabric {
    fn assemble(plant: Plant, ports: Vec<PortInfo>, volumes: Vec<Volume>) -> Self {
        let first_volume = ports.len() - volumes.len();
        let behind = |(index, port): (usize, &PortInfo)| {
            let volume = index.saturating_sub(first_volume) as u32;
            port.disk.map_or(Behind::Volume(volume), Behind::Disk)
        };
        let mut fabric = Self {
            behind: ports.iter().enumerate().map(behind).collect(),
            ports,
            plant,
            volumes,
            first_volume: first_volume as u32,
            volumes_next: NEVER,
            ends: Vec::new(),
            ended: Vec::new(),
            port_ends: Vec::new(),
        };
        fabric.look_at_volumes();
        fabric
    }

    /// The ports: disks in their order, then volumes.
    #[must_use]
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Takes a request for a port at `now`, which must not be earlier than any time given before. Any
    /// number may wait; the port works off at most its tags at a time.
    ///
    /// # Panics
    /// When there is no such port.
    #[inline(always)]
    pub fn submit(&mut self, now: Instant, port: u32, bio: Bio) {
        match self.behind[port as usize] {
            Behind::Disk(disk) => {
                self.plant.submit(now.0, disk, bio);
            }
            Behind::Volume(volume) => {
                let volume = &mut self.volumes[volume as usize];
                volume.submit(now.0, &bio, &mut self.plant);
                self.volumes_next = self.volumes_next.min(volume.next());
            }
        }
    }

    /// When to call [`advance`](Self::advance) next; `None` when nothing will happen by itself.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let next = self.next();
        (next.0 != NEVER).then_some(next)
    }

    /// The same, later than anything when nothing will happen by itself.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        Instant(self.plant.next().min(self.volumes_next))
    }

    /// Lets time pass until `now` and appends what has ended, in the order of (time, port).
    #[inline]
    pub fn advance(&mut self, now: Instant, done: &mut Vec<PortEnd>) {
        while let Some(end) = self.pop(now) {
            done.push(end);
        }
    }

    /// The one end by `now`, the time of the next event or later, if it is of a single command and nothing else happens by
    /// then, as nearly always. `None` when it is not: then the ends are all still to be [popped](Self::pop).
    #[inline]
    pub(crate) fn pop_alone(&mut self, now: Instant) -> Option<PortEnd> {
        if self.plant.next() > self.volumes_next || !self.port_ends.is_empty() {
            return None;
        }
        let end = self.plant.step_alone()?;
        if let Owner::Port(port) = self.plant.slots[end.disk as usize].owner
            && self.next() > now
        {
            return Some(port_end(port, &end));
        }
        self.ends.push(end);
        None
    }

    /// The same one by one: to be called until there is none.
    #[inline(never)]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<PortEnd> {
        if self.port_ends.is_empty() && (!self.ends.is_empty() || self.next() <= now) {
            return self.pop_of_several(now);
        }
        self.port_ends.pop()
    }

    /// The same for all that ends by `now`, one end or none of which has been noted.
    #[inline(never)]
    fn pop_of_several(&mut self, now: Instant) -> Option<PortEnd> {
        if self.ends.is_empty() && self.plant.next() <= self.volumes_next {
            self.plant.step(&mut self.ends);
            if let [end] = self.ends[..]
                && let Owner::Port(port) = self.plant.slots[end.disk as usize].owner
                && self.next() > now
            {
                self.ends.clear();
                return Some(port_end(port, &end));
            }
        }
        self.hand_over();
        self.advance_all(now);
        self.port_ends.pop()
    }

    /// Lets time pass until `now`, whatever happens meanwhile; what has ended is in `port_ends` then, the last first.
    #[inline(never)]
    fn advance_all(&mut self, now: Instant) {
        loop {
            let next = self.plant.next();
            if next.min(self.volumes_next) > now.0 {
                break;
            }
            if self.volumes_next < next {
                self.advance_volumes();
                continue;
            }
            self.plant.step(&mut self.ends);
            self.hand_over();
        }
        let new = &mut self.port_ends;
        if new.len() > 1 && !new.is_sorted_by_key(|end| (end.end.at, end.port)) {
            new.sort_by_key(|end| (end.end.at, end.port));
        }
        new.reverse();
    }

    /// What has ended on a line goes to whom it belongs.
    #[inline(never)]
    fn hand_over(&mut self) {
        for index in 0..self.ends.len() {
            let end = self.ends[index];
            match self.plant.slots[end.disk as usize].owner {
                Owner::Port(port) => self.port_ends.push(port_end(port, &end)),
                Owner::Volume(volume) => self.tell(volume, &end),
                Owner::Nobody => {}
            }
        }
        self.ends.clear();
    }

    /// A command to a disk of a volume has ended.
    fn tell(&mut self, volume: u32, end: &LineEnd) {
        let port = self.first_volume + volume;
        let volume = &mut self.volumes[volume as usize];
        volume.ended(end, &mut self.plant, &mut self.ended);
        let ended = self.ended.drain(..);
        let ended = ended.map(|end| PortEnd { port, end });
        self.port_ends.extend(ended);
        self.look_at_volumes();
    }

    /// The first of the volumes does what it has to do by itself.
    fn advance_volumes(&mut self) {
        let now = self.volumes_next;
        for (volume, port) in self.volumes.iter_mut().zip(self.first_volume..) {
            if volume.next() <= now {
                volume.advance(now, &mut self.plant, &mut self.ended);
                let ended = self.ended.drain(..);
                let ended = ended.map(|end| PortEnd { port, end });
                self.port_ends.extend(ended);
            }
        }
        self.look_at_volumes();
    }

    fn look_at_volumes(&mut self) {
        let all = self.volumes.iter().map(Volume::next);
        self.volumes_next = all.min().unwrap_or(NEVER);
    }

    /// Something breaks in a disk at `now`, or when the command that is crossing to it has.
    ///
    /// # Panics
    /// When there is no such disk.
    pub fn inject(&mut self, now: Instant, disk: u32, fault: Fault) {
        self.plant.inject(now.0, disk, fault);
    }

    /// A disk, for its counters.
    ///
    /// # Panics
    /// When there is no such disk.
    #[must_use]
    pub fn disk(&self, index: u32) -> &Disk {
        &self.plant.disks[index as usize]
    }

    /// See [`Disk::fill`].
    pub(crate) fn fill(&mut self, disk: u32, taken: [u64; 2]) {
        self.plant.disks[disk as usize].fill(taken);
    }

    /// Whether a controller has volumes of its own.
    pub(crate) fn has_volumes(&self) -> bool {
        !self.volumes.is_empty()
    }

    /// Sectors that caches of controllers have taken and disks have not.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.volumes.iter().map(Volume::dirty).sum()
    }

    /// Appends the busy time until `now` of every disk and what takes its commands, link, channel, controller and bus.
    pub fn busy(&self, now: Instant, out: &mut Vec<Busy>) {
        for (slot, disk) in self.plant.slots.iter().zip(&self.plant.disks) {
            let counters = disk.counters();
            let mut parts = vec![
                ("seek", counters.seek),
                ("rotation", counters.rotation),
                ("transfer", counters.transfer),
            ];
            parts.retain(|(_, span)| span.0 > 0);
            parts.sort_by_key(|(_, span)| std::cmp::Reverse(*span));
            let of = |kind, busy| Busy {
                name: slot.name.clone(),
                kind,
                units: 1,
                busy,
                parts: Vec::new(),
                way: None,
            };
            out.push(Busy {
                units: disk.units(),
                parts,
                ..of(ResourceKind::Disk, counters.busy())
            });
            out.push(of(ResourceKind::Electronics, disk.taking()));
            if self.plant.lines[slot.line as usize].is_own() {
                let link = |way: Option<Way>, busy| Busy {
                    name: format!("link of {}", slot.name),
                    way,
                    parts: way.map(|way| (way.name(), busy)).into_iter().collect(),
                    ..of(ResourceKind::Channel, busy)
                };
                if disk.duplex() {
                    out.push(link(Some(Way::Reads), counters.link));
                    out.push(link(Some(Way::Writes), counters.link_writes));
                } else {
                    out.push(link(None, counters.link));
                }
            }
        }
        out.extend(self.plant.lines.iter().filter_map(|line| line.busy(now.0)));
        let volumes = self.volumes.iter().filter_map(|volume| volume.busy(now.0));
        out.extend(volumes.filter(|busy| busy.busy > Span::ZERO));
        let pipes = self.plant.pipes.list.iter();
        out.extend(pipes.filter_map(|pipe| pipe.busy(now.0)));
    }
}

/// The end of a command as the end of the request at the port of its disk.
#[inline]
fn port_end(port: u32, end: &LineEnd) -> PortEnd {
    PortEnd {
        port,
        end: Ended {
            id: end.id,
            at: Instant(end.at),
            result: end.result,
        },
    }
}

#[cfg(test)]
mod tests;

//! Requests of clients on the ports of a fabric.
//!
//! A request may be longer than a port takes at once (zeroes for a whole disk, to begin with): it goes
//! down in pieces as large as the port allows, as many at a time as the port works on. It knows no
//! clock; whoever calls says what time it is.
use crate::session::Action;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::{Lba, SECTOR};
use raidlab_sim::block::{Bio, Origin};
use raidlab_sim::disk::{DiskError, Fault};
use raidlab_sim::fabric::{Fabric, PortEnd};

/// A request to a port in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The port.
    pub port: u32,
    /// What is to be done.
    pub kind: BlockKind,
    /// First sector.
    pub lba: u64,
    /// Sectors; none for a flush.
    pub sectors: u64,
    /// Durable when it ends.
    pub fua: bool,
}

impl Job {
    /// What a request of a client asks of a disk; `None`: nothing. Bytes within sectors ask for the
    /// whole of them. A disk writes zeroes as it writes anything else; trimming costs it nothing.
    #[must_use]
    pub fn of(port: u32, action: Action, offset: u64, len: u32, fua: bool) -> Option<Self> {
        let kind = match action {
            Action::Read => BlockKind::Read,
            Action::Write | Action::Zeroes { .. } => BlockKind::Write,
            Action::Flush => BlockKind::Flush,
            Action::Trim => return None,
        };
        let (from, to) = (offset / SECTOR, (offset + u64::from(len)).div_ceil(SECTOR));
        Some(Self {
            port,
            kind,
            lba: from,
            sectors: to - from,
            fua,
        })
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// As given with it.
    pub token: u64,
    /// When.
    pub at: Instant,
    /// How; the first error, where there were several.
    pub result: Result<(), DiskError>,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Work {
    token: u64,
    job: Job,
    /// Pieces that are at the port.
    pieces: u32,
    error: Option<DiskError>,
}

/// A fabric with the requests that are on their way through it.
#[derive(Clone, Debug)]
pub struct Engine {
    fabric: Fabric,
    work: Vec<Option<Work>>,
    free: Vec<u32>,
    /// The latest time heard of; layers below must not be given an earlier one.
    clock: Instant,
    ends: Vec<PortEnd>,
    /// Disks that have failed for good.
    dead: Vec<u32>,
}

impl Engine {
    /// A fabric that nothing has been asked of.
    #[must_use]
    pub fn new(fabric: Fabric) -> Self {
        Self {
            fabric,
            work: Vec::new(),
            free: Vec::new(),
            clock: Instant::ZERO,
            ends: Vec::new(),
            dead: Vec::new(),
        }
    }

    /// The fabric, for its ports and counters.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Requests under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.work.len() - self.free.len()
    }

    /// Takes a request at `now`, or at the latest time heard of where that is later: a server may
    /// have looked ahead. Ends up to `now` must have been fetched before.
    pub fn submit(&mut self, now: Instant, token: u64, job: Job) {
        self.clock = self.clock.max(now);
        let work = Work {
            token,
            job,
            pieces: 0,
            error: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.work.push(None);
            self.work.len() as u32 - 1
        });
        let work = self.send(slot, work);
        self.work[slot as usize] = Some(work);
    }

    /// Sends as many pieces as the port works on at a time.
    fn send(&mut self, slot: u32, mut work: Work) -> Work {
        let port = &self.fabric.ports()[work.job.port as usize];
        let (most, window) = (u64::from(port.max_sectors.max(1)), port.tags.max(1));
        let flush = work.job.kind == BlockKind::Flush && work.pieces == 0;
        while (work.job.sectors > 0 || flush) && work.pieces < window {
            let sectors = work.job.sectors.min(most);
            let bio = Bio {
                id: u64::from(slot),
                kind: work.job.kind,
                lba: Lba(work.job.lba),
                sectors: sectors as u32,
                fua: work.job.fua,
                origin: Origin::default(),
            };
            self.fabric.submit(self.clock, work.job.port, bio);
            work.pieces += 1;
            work.job.lba += sectors;
            work.job.sectors -= sectors;
            if flush {
                break;
            }
        }
        work
    }

    /// When to call [`advance`](Self::advance) next; `None` when nothing will happen by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        self.fabric.next_event()
    }

    /// Lets time pass until `now` and appends what has ended, in the order of the ends.
    pub fn advance(&mut self, now: Instant, done: &mut Vec<Finished>) {
        while let Some(next) = self.fabric.next_event().filter(|next| *next <= now) {
            // Event by event: what ends may send the next piece, at that time.
            self.clock = self.clock.max(next);
            let mut ends = std::mem::take(&mut self.ends);
            self.fabric.advance(next, &mut ends);
            for end in ends.drain(..) {
                self.ended(&end, done);
            }
            self.ends = ends;
        }
        // The clock stays at the last event: whoever looked ahead may still bring what came before.
    }

    fn ended(&mut self, PortEnd { end, .. }: &PortEnd, done: &mut Vec<Finished>) {
        let slot = end.id as u32;
        let Some(mut work) = self.work[slot as usize].take() else {
            return;
        };
        work.pieces -= 1;
        if let Err(error) = end.result {
            work.error.get_or_insert(error);
            work.job.sectors = 0;
        }
        if work.job.sectors > 0 {
            work = self.send(slot, work);
        }
        if work.pieces > 0 {
            self.work[slot as usize] = Some(work);
            return;
        }
        self.free.push(slot);
        done.push(Finished {
            token: work.token,
            at: end.at,
            result: work.error.map_or(Ok(()), Err),
        });
    }

    /// Something breaks in a disk at `now`.
    pub fn inject(&mut self, now: Instant, disk: u32, fault: Fault) {
        self.clock = self.clock.max(now);
        self.fabric.inject(self.clock, disk, fault);
        if fault == Fault::Dead {
            self.dead.push(disk);
        }
    }

    /// Whether a port is a disk that has failed for good: all that it is asked from now on fails.
    #[must_use]
    pub fn is_dead(&self, port: u32) -> bool {
        let disk = self.fabric.ports()[port as usize].disk;
        disk.is_some_and(|disk| self.dead.contains(&disk))
    }
}

#[cfg(test)]
pub(crate) mod tests;

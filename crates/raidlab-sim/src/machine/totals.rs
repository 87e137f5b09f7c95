//! All that a machine counts, as one value that can be subtracted and scaled.
use crate::array::Array;
use crate::block::Busy;
use crate::disk::Counters;
use crate::host::{CpuUse, DeviceCounters, Host};
use crate::storage::Storage;
use raidlab_core::target::Target;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;

/// All that a machine has counted since its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) busy: Vec<Busy>,
    pub(super) cpu: CpuUse,
    /// Over the edge of the block device.
    pub(super) device: DeviceCounters,
    /// Bytes that the disks have moved.
    pub(super) moved: u64,
    /// Bytes of these that they were given to write.
    pub(super) written: u64,
    /// Bytes of read-ahead for which stripe caches had no room.
    pub(super) refused: u64,
    /// Bytes that were asked of disks to make the members of the array agree.
    pub(super) refilled: u64,
}

/// `value` times `number` over `of`.
fn part(value: u64, (number, of): (u64, u64)) -> u64 {
    (u128::from(value) * u128::from(number) / u128::from(of.max(1))) as u64
}

impl Totals {
    /// As the layers have it.
    pub(super) fn of(host: &Host<Storage>) -> Self {
        let storage = host.device();
        let mut busy = Vec::new();
        storage.busy(host.now(), &mut busy);
        busy.push(host.busy());
        busy.extend(host.threads());
        let sectors = |c: &Counters| c.sectors_read + c.sectors_written;
        let moved: u64 = storage.disks().map(|disk| sectors(disk.counters())).sum();
        let written = storage.disks().map(|disk| disk.counters().sectors_written);
        let written: u64 = written.sum();
        Self {
            busy,
            cpu: host.cpu(),
            device: host.counters(),
            moved: moved * SECTOR,
            written: written * SECTOR,
            refused: storage.array().map_or(0, Array::refused) * SECTOR,
            refilled: storage.refilled().0 * SECTOR,
        }
    }

    /// Adds all of another.
    pub(super) fn add(&mut self, other: &Self) {
        for more in &other.busy {
            let known = self.busy.iter_mut().find(|b| b.is_of(more));
            match known {
                Some(known) => add(known, more),
                None => self.busy.push(more.clone()),
            }
        }
        let (cpu, more) = (&mut self.cpu, &other.cpu);
        cpu.user += more.user;
        cpu.system += more.system;
        cpu.kernel += more.kernel;
        let (device, more) = (&mut self.device, &other.device);
        device.reads += more.reads;
        device.writes += more.writes;
        device.flushes += more.flushes;
        device.read += more.read;
        device.written += more.written;
        self.moved += other.moved;
        self.written += other.written;
        self.refused += other.refused;
        self.refilled += other.refilled;
    }

    /// What has come to it since `earlier`, times a share.
    pub(super) fn since(&self, earlier: &Self, share: (u64, u64)) -> Self {
        let span = |now: Span, then: Span| Span(part((now - then).0, share));
        let count = |now: u64, then: u64| part(now.saturating_sub(then), share);
        let busy = self.busy.iter().map(|now| {
            let then = earlier.busy.iter().find(|b| b.is_of(now));
            let mut more = now.clone();
            more.busy = span(now.busy, then.map_or(Span::ZERO, |b| b.busy));
            for (name, time) in &mut more.parts {
                let parts = then.iter().flat_map(|b| &b.parts);
                let before = parts.into_iter().find(|(n, _)| n == name);
                *time = span(*time, before.map_or(Span::ZERO, |(_, t)| *t));
            }
            more
        });
        let (cpu, before) = (&self.cpu, &earlier.cpu);
        let (device, at) = (&self.device, &earlier.device);
        Self {
            busy: busy.collect(),
            cpu: CpuUse {
                user: span(cpu.user, before.user),
                system: span(cpu.system, before.system),
                kernel: span(cpu.kernel, before.kernel),
            },
            device: DeviceCounters {
                reads: count(device.reads, at.reads),
                writes: count(device.writes, at.writes),
                flushes: count(device.flushes, at.flushes),
                read: count(device.read, at.read),
                written: count(device.written, at.written),
            },
            moved: count(self.moved, earlier.moved),
            written: count(self.written, earlier.written),
            refused: count(self.refused, earlier.refused),
            refilled: count(self.refilled, earlier.refilled),
        }
    }
}

fn add(known: &mut Busy, more: &Busy) {
    known.busy += more.busy;
    for (name, time) in &more.parts {
        match known.parts.iter_mut().find(|(n, _)| n == name) {
            Some((_, known)) => *known += *time,
            None => known.parts.push((name, *time)),
        }
    }
}

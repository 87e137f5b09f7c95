//! For how long operations by chance go on as they have: what changes while they do, and how fast.
//!
//! Nothing inside the machine is moved but how much of their fast and fresh areas the disks have taken: every other state that a raw
//! device with direct calls has by then comes back again and again. What does not is run to its end: a cache of a controller that fills
//! or warms up, members that are filled, a bitmap that is written every few seconds.
use super::leap::{Leaping, refills};
use super::totals::Totals;
use crate::disk::{Disk, DiskModel};
use crate::host::Host;
use crate::storage::Storage;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use raidlab_core::workload::Chance;

/// Caches of hard disks may hold more or less than before by this part of what was written; more, and they are filling up, after
/// which they take no more than their arms can write. Buffers of solid-state disks are full or empty after some milliseconds.
const HELD: u64 = 20;

/// Operations of the device that must be to come for them to be passed over, unless said otherwise. So many are run in a second or two.
pub const WORTH: u64 = 1 << 20;

/// Of the time until a disk goes on in another way so many tenths are passed over: no two disks get exactly alike much.
const TENTHS: u64 = 9;

/// State of the machine where what is repeated begins.
#[derive(Clone, Debug)]
struct Mark {
    at: Instant,
    totals: Totals,
    /// Bytes that caches of hard disks hold.
    held: u64,
    /// Of each disk, see [`Disk::room`].
    rooms: Vec<[u64; 2]>,
}

impl Mark {
    fn of(host: &Host<Storage>) -> Self {
        let disks = || host.device().disks();
        Self {
            at: host.now(),
            totals: Totals::of(host),
            held: disks().map(held).sum::<u64>() * SECTOR,
            rooms: disks().map(Disk::room).collect(),
        }
    }
}

/// Sectors that the cache of a hard disk holds.
fn held(disk: &Disk) -> u64 {
    match disk.model() {
        DiskModel::Hdd(_) => disk.unwritten(),
        DiskModel::Ssd(_) => 0,
    }
}

/// What may be repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    /// When the phase began, and operations of the device before it.
    begun: (Instant, u64),
    first: Option<Box<Mark>>,
    /// What was taken of the rooms of each disk since then, and in what time.
    taken: (Vec<[u64; 2]>, Span),
}

impl Repeats {
    /// Another phase begins.
    pub(super) fn of(host: &Host<Storage>) -> Self {
        Self {
            begun: (host.now(), operations(host)),
            ..Self::default()
        }
    }
}

fn operations(host: &Host<Storage>) -> u64 {
    let counters = host.counters();
    counters.reads + counters.writes
}

impl Leaping {
    /// Whether enough is to come within `rest` at the rate that so many operations have had in so much time.
    fn is_worth(&self, rest: Span, (operations, time): (u64, Span)) -> bool {
        let to_come = u128::from(operations) * u128::from(rest.0) / u128::from(time.0.max(1));
        self.least == 0 || to_come >= u128::from(WORTH)
    }

    /// See [`Target::stays`].
    pub(super) fn stays(
        &mut self,
        host: &Host<Storage>,
        chance: &Chance,
        first: bool,
    ) -> Option<Span> {
        if !self.on
            || !host.file_system().is_raw()
            || !host.is_direct()
            || host.device().fabric().has_volumes()
            || refills(host)
            || (chance.writes && self.is_noted())
        {
            return None;
        }
        let rest = chance.until.since(host.now() + self.forward);
        if first {
            let (since, before) = self.repeats.begun;
            let so_far = (operations(host) - before, host.now().since(since));
            // By all that was done, which may not have come to its pace.
            let worth = self.is_worth(Span(rest.0.saturating_mul(2)), so_far);
            self.repeats.first = worth.then(|| Box::new(Mark::of(host)));
            return worth.then_some(rest);
        }
        let here = Mark::of(host);
        let first = self.repeats.first.take()?;
        let time = here.at.since(first.at);
        let window = here.totals.since(&first.totals, (1, 1));
        if here.held.abs_diff(first.held) * HELD > window.written {
            return None;
        }
        let (mut stays, mut taken) = (Span::MAX, Vec::new());
        for (before, after) in first.rooms.iter().zip(&here.rooms) {
            let of_disk = [0, 1].map(|area| before[area] - after[area]);
            for (taken, left) in of_disk.into_iter().zip(*after) {
                stays = stays.min(lasts(left, (taken, time))?);
            }
            taken.push(of_disk);
        }
        let seen = window.device.reads + window.device.writes;
        if !self.is_worth(stays.min(rest), (seen, time)) {
            return None;
        }
        self.repeats.taken = (taken, time);
        self.look_at((time, window));
        Some(stays)
    }

    /// See [`Target::pass_alike`]; what it has taken of the rooms of each disk.
    pub(super) fn pass_alike(&mut self, time: Span) -> Vec<[u64; 2]> {
        self.pass(time);
        let (taken, of) = std::mem::take(&mut self.repeats.taken);
        let part = |sectors: u64| {
            (u128::from(sectors) * u128::from(time.0) / u128::from(of.0.max(1))) as u64
        };
        taken.into_iter().map(|areas| areas.map(part)).collect()
    }
}

/// How long what is `left` of an area lasts of which so much was taken in some time; `None` when it came to its end in that time.
fn lasts(left: u64, (taken, time): (u64, Span)) -> Option<Span> {
    match (left, taken) {
        (_, 0) => Some(Span::MAX),
        (0, _) => None,
        (left, taken) => {
            let lasts = u128::from(left) * u128::from(time.0) / u128::from(taken);
            Some(Span(
                u64::try_from(lasts / 10 * u128::from(TENTHS)).unwrap_or(u64::MAX),
            ))
        }
    }
}

//! What several transfers share: a bus, a cap of a controller, the memory behind its cache.
//!
//! A pipe passes whole transfers first come, first served, cut through: a transfer ends when the pipe
//! has passed all of it, and no earlier than its own link does. Capacity is conserved exactly, in
//! closed form: a transfer never has to be timed again because another one starts. Against sharing by
//! bursts the total is the same, and one transfer is off by at most the time of those beside it.
use super::time::sector_units;
use crate::block::{Busy, ResourceKind, Way};
use raidlab_core::time::Span;

/// A shared capacity.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    pub(super) name: String,
    pub(super) kind: ResourceKind,
    /// Time of a sector in 2^-20 ns.
    per_sector: u64,
    /// The direction that it is of what goes both ways at a time.
    way: Option<Way>,
    /// When all that was given to it has passed.
    free: u64,
    /// When what passes first has.
    first: u64,
    /// When the last two stretches of use begin and end, the later one first. What is there later than all before it has passed
    /// begins another.
    stretches: [(u64, u64); 2],
    /// Of the time until `free`, what it was in use.
    busy: u64,
    /// Of that, other work than passing sectors.
    other: u64,
}

impl Pipe {
    /// A pipe of `rate` bytes a second; 0: passing takes no time.
    pub(super) fn new(name: String, kind: ResourceKind, rate: u64) -> Self {
        Self {
            name,
            kind,
            per_sector: sector_units(rate),
            way: None,
            free: 0,
            first: 0,
            stretches: [(0, 0); 2],
            busy: 0,
            other: 0,
        }
    }

    /// The same, of one direction.
    pub(super) fn one_way(self, way: Way) -> Self {
        Self {
            way: Some(way),
            ..self
        }
    }

    /// `sectors` that are there from `from` on; when the last has passed.
    #[inline]
    pub(super) fn pass(&mut self, from: u64, sectors: u64) -> u64 {
        self.take(from, (sectors * self.per_sector) >> 20)
    }

    /// `sectors` that others make way for, as a pipe does that is shared by the burst when a short transfer
    /// meets long ones: it waits for its like alone, and the others for as much longer.
    #[inline]
    pub(super) fn pass_first(&mut self, from: u64, sectors: u64) -> u64 {
        let nanos = (sectors * self.per_sector) >> 20;
        self.take(from, nanos);
        self.first = self.first.max(from) + nanos;
        self.first
    }

    /// Other work of so many nanoseconds.
    #[inline]
    pub(super) fn work(&mut self, from: u64, nanos: u64) -> u64 {
        self.other += nanos;
        self.take(from, nanos)
    }

    #[inline]
    fn take(&mut self, from: u64, nanos: u64) -> u64 {
        self.busy += nanos;
        if from > self.free {
            self.stretches = [(from, from), self.stretches[0]];
        }
        self.free = self.free.max(from) + nanos;
        self.stretches[0].1 = self.free;
        self.free
    }

    /// Time in use until `now`, and of that for other work.
    pub(super) fn used(&self, now: u64) -> (u64, u64) {
        let ahead = |(begin, end): (u64, u64)| end.saturating_sub(begin.max(now));
        let ahead = ahead(self.stretches[0]) + ahead(self.stretches[1]);
        let busy = self.busy.saturating_sub(ahead);
        (busy, self.other.min(busy))
    }

    /// What it was in use for until `now`, unless it was not.
    pub(super) fn busy(&self, now: u64) -> Option<Busy> {
        let (busy, other) = self.used(now);
        let data = self.way.map_or("data", Way::name);
        let mut parts = vec![(data, Span(busy - other)), ("commands", Span(other))];
        parts.retain(|(_, span)| span.0 > 0);
        (busy > 0).then(|| Busy {
            name: self.name.clone(),
            kind: self.kind,
            units: 1,
            busy: Span(busy),
            parts,
            way: self.way,
        })
    }
}

/// The pipes that a transfer goes through, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path([u16; 3]);

const NONE: u16 = u16::MAX;

impl Path {
    pub(super) const EMPTY: Self = Self([NONE; 3]);

    /// With one more pipe; at most three.
    pub(super) fn and(mut self, pipe: Option<u16>) -> Self {
        if let (Some(pipe), Some(place)) = (pipe, self.0.iter_mut().find(|p| **p == NONE)) {
            *place = pipe;
        }
        self
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

/// All pipes of a fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipes {
    pub(super) list: Vec<Pipe>,
}

impl Pipes {
    pub(super) fn add(&mut self, pipe: Pipe) -> u16 {
        self.list.push(pipe);
        (self.list.len() - 1) as u16
    }

    /// `sectors` that are there from `from` on go through all pipes of the path; when the last has
    /// passed the slowest.
    #[inline]
    pub(super) fn pass(&mut self, path: Path, from: u64, sectors: u64) -> u64 {
        let mut end = from;
        for pipe in path.0 {
            if pipe == NONE {
                break;
            }
            end = end.max(self.list[usize::from(pipe)].pass(from, sectors));
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_conserved_and_gaps_are_not_made_up_for() {
        let mut pipe = Pipe::new("pci".to_owned(), ResourceKind::Bus, 51_200_000);
        assert_eq!(pipe.pass(0, 10), 100_000);
        assert_eq!(pipe.pass(50_000, 10), 200_000);
        assert_eq!(pipe.pass(400_000, 10), 500_000);
        assert_eq!(pipe.used(450_000), (250_000, 0));
        assert_eq!(pipe.used(500_000), (300_000, 0));
    }

    #[test]
    fn a_gap_ahead_is_no_use_that_is_taken_back() {
        let mut pipe = Pipe::new("way".to_owned(), ResourceKind::Controller, 51_200_000);
        pipe.pass(0, 10);
        assert_eq!(pipe.used(100_000), (100_000, 0));
        // Two transfers that come later, with nothing between.
        pipe.pass(300_000, 10);
        pipe.pass(600_000, 10);
        let used: Vec<u64> = [1, 3, 4, 6, 7].map(|n| pipe.used(n * 100_000).0).into();
        assert_eq!(used, [100_000, 100_000, 200_000, 200_000, 300_000]);
    }

    #[test]
    fn what_passes_first_takes_its_time_from_the_others() {
        let mut pipe = Pipe::new("memory".to_owned(), ResourceKind::Controller, 51_200_000);
        assert_eq!(pipe.pass(0, 10), 100_000);
        assert_eq!(pipe.pass_first(20_000, 2), 40_000);
        // Among themselves they take turns: together they are no faster than the pipe.
        assert_eq!(pipe.pass_first(20_000, 2), 60_000);
        assert_eq!(pipe.pass(20_000, 10), 240_000);
        assert_eq!(pipe.pass_first(100_000, 1), 110_000);
        assert_eq!(pipe.used(250_000), (250_000, 0));
    }
}

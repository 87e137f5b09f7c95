//! What carries commands to disks: a link of a disk's own, an ATA channel, a SCSI bus.
mod direct;
mod linked;
mod pata;
mod scsi;

pub(super) use direct::Direct;
pub(super) use linked::Linked;
pub(super) use pata::{Drive, Pata};
pub(super) use scsi::{Scsi, Times};

use super::pipe::Pipes;
use crate::block::{Busy, ResourceKind};
use crate::disk::{Disk, DiskError, Done, Request};
use raidlab_core::time::{Instant, Span};

/// A command of a disk that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineEnd {
    pub(super) disk: u32,
    pub(super) id: u64,
    pub(super) at: u64,
    pub(super) result: Result<(), DiskError>,
}

/// What all lines work on.
#[derive(Debug)]
pub(super) struct Gear<'a> {
    pub(super) disks: &'a mut [Disk],
    pub(super) pipes: &'a mut Pipes,
    /// For the ends of disks; empty between calls.
    pub(super) scratch: &'a mut Vec<Done>,
}

/// A line with its disks.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Direct(Direct),
    Linked(Linked),
    Pata(Pata),
    Scsi(Scsi),
}

macro_rules! each {
    ($which:ident, $line:ident => $call:expr) => {
        match $which {
            Line::Direct($line) => $call,
            Line::Linked($line) => $call,
            Line::Pata($line) => $call,
            Line::Scsi($line) => $call,
        }
    };
}

impl Line {
    /// Takes a command of one of its disks; the disk has a tag free for it.
    #[inline]
    pub(super) fn submit(&mut self, now: u64, disk: u32, request: Request, gear: &mut Gear<'_>) {
        if let Self::Direct(line) = self {
            return line.submit(now, disk, request, gear);
        }
        submit(self, now, disk, request, gear);
    }

    /// When to look at it next.
    #[inline]
    pub(super) fn next(&self, disks: &[Disk]) -> u64 {
        if let Self::Direct(line) = self {
            return line.next(disks);
        }
        next(self, disks)
    }

    /// Lets time pass until `now`, its next event or earlier, and appends what has ended.
    #[inline]
    pub(super) fn advance(&mut self, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
        if let Self::Direct(line) = self {
            return line.advance(now, gear, ends);
        }
        advance(self, now, gear, ends);
    }

    /// The latest time that `disk` was told of.
    pub(super) fn told(&self, disk: u32) -> u64 {
        match self {
            Self::Direct(_) => 0,
            Self::Linked(line) => line.told(),
            Self::Pata(line) => line.told(),
            Self::Scsi(line) => line.told(disk),
        }
    }

    /// A disk has something else to say than what was known.
    pub(super) fn look(&mut self, disks: &[Disk]) {
        if let Self::Scsi(line) = self {
            line.look(disks);
        }
    }

    /// Whether it is a link of a disk's own.
    pub(super) const fn is_own(&self) -> bool {
        matches!(self, Self::Direct(_) | Self::Linked(_))
    }

    /// Its busy time, unless it is a link of a disk's own.
    pub(super) fn busy(&self, now: u64) -> Option<Busy> {
        match self {
            Self::Direct(_) | Self::Linked(_) => None,
            Self::Pata(line) => Some(line.busy(now)),
            Self::Scsi(line) => Some(line.busy(now)),
        }
    }
}

// What each line does, apart from the one that adds nothing, which is part of the caller.

#[inline(never)]
fn submit(line: &mut Line, now: u64, disk: u32, request: Request, gear: &mut Gear<'_>) {
    each!(line, line => line.submit(now, disk, request, gear));
}

#[inline(never)]
fn next(line: &Line, disks: &[Disk]) -> u64 {
    each!(line, line => line.next(disks))
}

#[inline(never)]
fn advance(line: &mut Line, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
    each!(line, line => line.advance(now, gear, ends));
}

/// When a disk that has something to do wants to be looked at.
#[inline]
fn next_of(disk: &Disk) -> u64 {
    disk.next().0
}

/// The busy time of a channel by its parts.
fn channel(name: &str, busy: u64, mut parts: Vec<(&'static str, Span)>) -> Busy {
    parts.retain(|(_, span)| span.0 > 0);
    parts.sort_by_key(|(_, span)| std::cmp::Reverse(*span));
    Busy {
        name: name.to_owned(),
        kind: ResourceKind::Channel,
        units: 1,
        busy: Span(busy),
        parts,
        way: None,
    }
}

#[inline]
fn at(nanos: u64) -> Instant {
    Instant(nanos)
}

//! Volumes that a controller makes of several disks.
mod cached;
mod firmware;
mod members;
mod refill;

pub(super) use cached::Cached;
pub(super) use firmware::Firmware;
pub(super) use members::Members;
pub(super) use refill::Refill;

use super::line::LineEnd;
use super::plant::Plant;
use crate::block::{Bio, Busy, Ended};

/// A volume.
#[derive(Clone, Debug)]
pub(super) enum Volume {
    Firmware(Box<Firmware>),
    Cached(Box<Cached>),
}

impl Volume {
    /// Takes a request of the host.
    pub(super) fn submit(&mut self, now: u64, bio: &Bio, plant: &mut Plant) {
        match self {
            Self::Firmware(volume) => volume.submit(now, bio, plant),
            Self::Cached(volume) => volume.submit(now, bio, plant),
        }
    }

    /// When something happens in it that no disk brings about.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        match self {
            Self::Firmware(volume) => volume.next(),
            Self::Cached(volume) => volume.next(),
        }
    }

    /// What was to happen by `now` happens.
    pub(super) fn advance(&mut self, now: u64, plant: &mut Plant, done: &mut Vec<Ended>) {
        match self {
            Self::Firmware(volume) => volume.advance(now, plant, done),
            Self::Cached(volume) => volume.advance(now, plant, done),
        }
    }

    /// Whether it was in use until `now`, where it takes one command at a time.
    pub(super) fn busy(&self, now: u64) -> Option<Busy> {
        match self {
            Self::Firmware(volume) => Some(volume.busy(now)),
            Self::Cached(_) => None,
        }
    }

    /// Sectors that its cache has taken and the disks have not.
    pub(super) fn dirty(&self) -> u64 {
        match self {
            Self::Firmware(_) => 0,
            Self::Cached(volume) => volume.dirty(),
        }
    }

    /// What makes its members agree.
    pub(super) fn refill(&self) -> Option<&Refill> {
        let members = match self {
            Self::Firmware(volume) => volume.members(),
            Self::Cached(volume) => volume.members(),
        };
        members.refill.as_deref()
    }

    pub(super) fn refill_mut(&mut self) -> Option<&mut Refill> {
        let members = match self {
            Self::Firmware(volume) => volume.members_mut(),
            Self::Cached(volume) => volume.members_mut(),
        };
        members.refill.as_deref_mut()
    }

    /// A command to one of its disks has ended.
    pub(super) fn ended(&mut self, end: &LineEnd, plant: &mut Plant, done: &mut Vec<Ended>) {
        match self {
            Self::Firmware(volume) => volume.ended(end, plant, done),
            Self::Cached(volume) => volume.ended(end, plant),
        }
    }
}

//! Modelled disks: asked, not called back.
//!
//! A [`Disk`] is an owned state machine. `submit` gives it a request, `next_event` says when it wants
//! to be looked at again, `advance` lets time pass and hands over what has ended. It knows neither
//! threads nor clocks, so the same disk serves a simulation in virtual time and a server in wall
//! time. Same specification, seed and requests: same answers, to the nanosecond.
pub mod asked;
mod counters;
mod dirty;
mod fault;
pub mod geometry;
mod hdd;
mod link;
mod ready;
pub mod rotation;
mod rough;
pub mod seek;
mod segments;
pub mod spec;
pub mod ssd;

pub use counters::Counters;
pub use fault::Fault;

use crate::block::{Alone, Bio, BlockTarget, Ended};
use hdd::Hdd;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;
use spec::HddModel;
use ssd::{Ssd, SsdModel};
use std::sync::Arc;

/// Something asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Given back with the end; the disk does not look at it.
    pub id: u64,
    /// Read, write or flush.
    pub kind: BlockKind,
    /// First sector; not looked at for a flush.
    pub lba: Lba,
    /// Sectors, at least 1; not looked at for a flush.
    pub sectors: u32,
    /// A write that must be on the media before it ends.
    pub fua: bool,
}

impl From<Bio> for Request {
    /// Of a bio what a disk looks at.
    #[inline]
    fn from(bio: Bio) -> Self {
        Self {
            id: bio.id,
            kind: bio.kind,
            lba: bio.lba,
            sectors: bio.sectors,
            fua: bio.fua,
        }
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// As given with the request.
    pub id: u64,
    /// When it ended. For a disk without a link of its own (rate 0) a read ends when its last sector
    /// is in the disk's buffer.
    pub at: Instant,
    /// When the first sector of a read was in the buffer and could go over the link; for other
    /// requests the same as `at`.
    pub first: Instant,
    /// How it ended.
    pub result: Result<(), DiskError>,
    /// It was served from the buffer, without the media.
    pub hit: bool,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// A sector could not be read.
    #[error("a sector cannot be read")]
    Unreadable,
    /// The disk does not answer.
    #[error("the disk has failed")]
    Failed,
    /// Beyond the end of the disk, or of no length.
    #[error("the request is empty or reaches beyond the end of the disk")]
    OutOfRange,
}

/// A model to make disks of; cheap to clone.
#[derive(Clone, Debug)]
pub enum DiskModel {
    /// A hard disk.
    Hdd(Arc<HddModel>),
    /// A solid-state disk.
    Ssd(Arc<SsdModel>),
}

impl DiskModel {
    /// Whether both were made once and are shared, so that disks of them are alike.
    #[must_use]
    pub fn is_shared_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Hdd(one), Self::Hdd(other)) => Arc::ptr_eq(one, other),
            (Self::Ssd(one), Self::Ssd(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Name of the model.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Hdd(model) => &model.spec.name,
            Self::Ssd(model) => &model.spec.name,
        }
    }

    /// Logical sectors of 512 bytes.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        match self {
            Self::Hdd(model) => model.spec.sectors,
            Self::Ssd(model) => model.spec.sectors,
        }
    }

    /// Logical sectors in a physical one.
    #[must_use]
    pub fn physical(&self) -> u32 {
        match self {
            Self::Hdd(model) => model.spec.physical,
            Self::Ssd(model) => model.spec.physical,
        }
    }

    /// Commands that the disk takes at a time.
    #[must_use]
    pub fn tags(&self) -> u32 {
        match self {
            Self::Hdd(model) => model.spec.queue.tags,
            Self::Ssd(model) => model.spec.tags,
        }
    }

    /// Whether it turns.
    #[must_use]
    pub fn rotational(&self) -> bool {
        matches!(self, Self::Hdd(_))
    }

    /// The same model without a link of its own: transfers take no time, and a request ends when its
    /// data are in the buffer. For whoever models the link or the channel.
    #[must_use]
    pub fn without_link(&self) -> Self {
        match self {
            Self::Hdd(model) => {
                let mut model = HddModel::clone(model);
                (model.spec.link, model.link_sector) = (0, 0);
                Self::Hdd(Arc::new(model))
            }
            Self::Ssd(model) => {
                let mut model = SsdModel::clone(model);
                (model.spec.link, model.link_sector) = (0, 0);
                Self::Ssd(Arc::new(model))
            }
        }
    }
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a disk is asked often and moved never: no indirection"
)]
enum Kind {
    Hdd(Hdd),
    Ssd(Ssd),
}

/// One disk.
#[derive(Clone, Debug)]
pub struct Disk {
    model: DiskModel,
    kind: Kind,
}

/// A disk that block operations go to directly: no host, no channel but the drive's own link.
pub type DiskTarget = BlockTarget<Disk>;

macro_rules! on_kind {
    ($self:ident, $disk:ident => $call:expr) => {
        match &mut $self.kind {
            Kind::Hdd($disk) => $call,
            Kind::Ssd($disk) => $call,
        }
    };
}

impl Disk {
    /// A disk of `model`; `seed` decides the angle under its heads (or its garbage collection's luck)
    /// at time zero.
    #[must_use]
    pub fn new(model: &DiskModel, seed: u64) -> Self {
        let kind = match model {
            DiskModel::Hdd(model) => Kind::Hdd(Hdd::new(Arc::clone(model), seed)),
            DiskModel::Ssd(model) => Kind::Ssd(Ssd::new(Arc::clone(model), seed)),
        };
        Self {
            model: model.clone(),
            kind,
        }
    }

    /// What it is a disk of.
    #[must_use]
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// Takes a request at `now`, which must not be earlier than any time given before. Any number
    /// may wait; the drive looks at its [`tags`](DiskModel::tags) oldest.
    #[inline]
    pub fn submit(&mut self, now: Instant, request: Request) {
        on_kind!(self, disk => disk.submit(now, request));
    }

    /// When to call [`advance`](Self::advance) next; `None` when nothing will happen by itself.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let next = self.next();
        (next != Instant(u64::MAX)).then_some(next)
    }

    /// The same, later than anything when nothing will happen by itself.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match &self.kind {
            Kind::Hdd(disk) => disk.next(),
            Kind::Ssd(disk) => disk.next(),
        }
    }

    /// Lets time pass until `now` and appends what has ended, in the order of the ends.
    #[inline]
    pub fn advance(&mut self, now: Instant, done: &mut Vec<Done>) {
        self.each_end(now, |end| done.push(end));
    }

    /// The same, handing over one by one.
    #[inline(always)]
    pub(crate) fn each_end(&mut self, now: Instant, mut each: impl FnMut(Done)) {
        on_kind!(self, disk => {
            disk.pass_time(now);
            while let Some(done) = disk.pop(now) {
                each(done);
            }
        });
    }

    /// Lets time pass until `now` and takes out what has ended, if that is one request of a hard disk; `None` when
    /// it is not, and all ends are still to be handed over.
    #[inline]
    pub(crate) fn only_end(&mut self, now: Instant) -> Option<Done> {
        let Kind::Hdd(disk) = &mut self.kind else {
            return None;
        };
        disk.pass_time(now);
        disk.pop_only(now)
    }

    /// Something breaks at `now`.
    pub fn inject(&mut self, now: Instant, fault: Fault) {
        on_kind!(self, disk => disk.inject(now, fault));
    }

    /// Sectors that it can take before it goes on in another way: in the fast area of an SSD, and before that collects garbage.
    pub(crate) fn room(&self) -> [u64; 2] {
        match &self.kind {
            Kind::Hdd(_) => [0; 2],
            Kind::Ssd(disk) => disk.room(),
        }
    }

    /// So many sectors of each [room](Self::room) have been taken, by what was passed over.
    pub(crate) fn fill(&mut self, taken: [u64; 2]) {
        if let Kind::Ssd(disk) = &mut self.kind {
            disk.fill(taken);
        }
    }

    /// Where its time went so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        match &self.kind {
            Kind::Hdd(disk) => disk.counters(),
            Kind::Ssd(disk) => disk.counters(),
        }
    }

    /// Things in it that work at a time: an arm, or dies.
    #[must_use]
    pub fn units(&self) -> u32 {
        match &self.kind {
            Kind::Hdd(_) => 1,
            Kind::Ssd(disk) => disk.dies(),
        }
    }

    /// Time in which it could take no other command, as it took one.
    #[must_use]
    pub fn taking(&self) -> Span {
        match &self.kind {
            Kind::Hdd(disk) => disk.counters().overhead,
            Kind::Ssd(disk) => disk.taking(),
        }
    }

    /// Whether its link carries reads and writes at a time. What a hard disk's media give leaves room for both on any.
    #[must_use]
    pub fn duplex(&self) -> bool {
        match &self.model {
            DiskModel::Hdd(_) => false,
            DiskModel::Ssd(model) => model.spec.duplex,
        }
    }

    /// Sectors that are acknowledged but not on the media.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        match &self.kind {
            Kind::Hdd(disk) => disk.unwritten(),
            Kind::Ssd(disk) => disk.unwritten(),
        }
    }
}

impl Alone for Disk {
    fn sectors(&self) -> u64 {
        self.model.sectors()
    }

    #[inline]
    fn submit_alone(&mut self, now: Instant, bio: Bio) {
        self.submit(now, bio.into());
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.next_event()
    }

    #[inline]
    fn advance_each(&mut self, now: Instant, mut each: impl FnMut(Ended)) {
        self.each_end(now, |end| {
            each(Ended {
                id: end.id,
                at: end.at,
                result: end.result,
            });
        });
    }
}

#[cfg(test)]
mod tests;

//! What passes between the layers of the block path, and how each layer accounts for its time.
//!
//! Every layer from the host's array down to a disk is asked, not called back: `submit(now, ..)` takes
//! a request, `next_event()` says when to look again, `advance(now, ..)` lets time pass and hands over
//! what has ended. No layer may be given a time earlier than one it was given before. Ties are decided
//! by (time, index), never by the order of an unordered container.
mod refill;
mod standstill;
mod tally;
mod target;

pub use refill::{Progress, Refill};
pub(crate) use standstill::Standstill;
pub(crate) use tally::Tally;
pub use target::{Alone, BlockTarget};

use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;
use std::ops::ControlFlow;

/// What is asked whether something that takes long is to go on.
pub type Watch<'w> = &'w mut dyn FnMut() -> ControlFlow<()>;

/// The process of a resync or rebuild, as [`Origin::task`]: one of its own, as far as schedulers see.
pub const RESYNC: u16 = u16::MAX;

/// Who asked, and how urgently: what I/O schedulers and read balancing look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The process: jobs of a workload are `1..`, 0 is the kernel (flusher, journal, md), [`RESYNC`] a resync.
    pub task: u16,
    /// Somebody waits for it: reads, direct and durable writes. Write-back is not.
    pub sync: bool,
    /// A write that somebody waits for and after which nothing is to be expected nearby, so that CFQ keeps no disk idle for it: what
    /// `fsync` and the journal write (`REQ_NOIDLE`; since 4.10 `REQ_SYNC` without `REQ_IDLE`).
    pub last: bool,
    /// For a resync or rebuild, which gives way when it sees anything else.
    pub background: bool,
    /// Asked for by read-ahead, which does without what would take waiting for room (`REQ_RAHEAD`).
    pub ahead: bool,
    /// It stands for a request of each page, in their order: write-back of a block device itself, whose pages have buffers
    /// that are submitted one by one (`fs/buffer.c:__block_write_full_page`, `submit_bh`), and what md asks of members for
    /// its stripes, each of which has pages of its own. Queues join them; what is above queues meets them one after the other.
    pub paged: bool,
    /// What the file system says of a write that nobody waits for, and of a read who asks.
    pub marked: Marked,
}

/// What Linux since 4.10 is told of write-back, by which it is held back (`block/blk-wbt.c:get_limit`). Of md's arrays only those
/// without copies and parity pass it on to their members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Marked {
    /// Nothing.
    #[default]
    Plain,
    /// Of the flusher (`REQ_BACKGROUND`).
    Background,
    /// Metadata (`REQ_META`).
    Metadata,
    /// Of a read: a worker asks for it, by whose number it has the other copy than by that of the process.
    Worker,
}

impl Origin {
    /// Of a resync, rebuild or resilver that is nobody's process: it waits for what it reads.
    #[inline]
    #[must_use]
    pub const fn resync(kind: BlockKind) -> Self {
        Self {
            task: RESYNC,
            sync: matches!(kind, BlockKind::Read),
            last: false,
            background: true,
            ahead: false,
            paged: false,
            marked: Marked::Plain,
        }
    }
}

/// Stretches in their order, each from its first sector to the one after its last; those that meet as one.
pub(crate) fn joined(mut all: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    // Mostly in order already, which the stable one is quick with.
    all.sort();
    all.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
    all
}

/// One request to a block device: an array, a member behind its queue, or a port of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Given back with the end; the device does not look at it.
    pub id: u64,
    /// Read, write or flush.
    pub kind: BlockKind,
    /// First sector; not looked at for a flush.
    pub lba: Lba,
    /// Sectors, at least 1; not looked at for a flush.
    pub sectors: u32,
    /// A write that must be on the media before it ends.
    pub fua: bool,
    /// Who asked.
    pub origin: Origin,
}

impl Bio {
    /// First sector after it.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.lba.0 + self.sectors as u64
    }

    /// Stretches of memory that its data are taken to lie in: one for each request that it stands for. What comes as one request has
    /// pages that may lie anywhere, too; how many of them side by side nobody can say.
    #[must_use]
    #[inline]
    pub const fn segments(&self) -> u32 {
        if self.origin.paged {
            self.sectors.div_ceil(8)
        } else {
            1
        }
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// As given with the request.
    pub id: u64,
    /// When it ended.
    pub at: Instant,
    /// How it ended.
    pub result: Result<(), DiskError>,
}

/// Blocks of a file system that lie side by side, in the order in which a walk through it meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub start: u64,
    /// Sectors, without parity.
    pub len: u64,
    /// Sectors of each block but the last, which may have fewer; at least 1.
    pub unit: u32,
    /// The walk itself reads them, to know what comes below.
    pub walked: bool,
}

/// What sort of thing was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// Arm and platters, or the dies of the flash, of one disk.
    Disk,
    /// What takes the commands of one disk, one after the other.
    Electronics,
    /// A cable with one or more disks.
    Channel,
    /// A bus that controllers share.
    Bus,
    /// A controller's processor, memory or cache.
    Controller,
    /// A card's own RAID that takes one command at a time: whether one is in service.
    Volume,
    /// Processor time of the host.
    Cpu,
    /// Something the kernel does one at a time, such as the thread of a parity array.
    Thread,
}

/// Busy time of one resource since the start: the difference of two readings over the time between
/// them is its busy share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// What a report calls it: `disk2`, `channel 0 of card`, `pci`, `CPU`.
    pub name: String,
    /// What sort of thing it is.
    pub kind: ResourceKind,
    /// How many of it there are; a share is of all of them (cores).
    pub units: u32,
    /// Time in use so far, added over the units.
    pub busy: Span,
    /// Of that, by what it was in use for, largest first where known: ("seek", ..), ("transfer", ..).
    pub parts: Vec<(&'static str, Span)>,
    /// Which direction of the thing it is, where both are in use at a time; the other one has the same name.
    pub way: Option<Way>,
}

/// A direction of a link or bus that is full duplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the disks.
    Reads,
    /// To the disks.
    Writes,
}

impl Way {
    /// What reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }
}

impl Busy {
    /// Whether both are readings of one thing, and of the same direction of it.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.way == other.way && self.name == other.name
    }
}

//! Rows of a chunk that are treated alike: what is known of them, and what is under way.
use super::ROW;
use raidlab_layout::MemberSet;

/// What a band is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array::parity) enum Phase {
    /// Nothing; kept for what it knows.
    Idle,
    /// Has something to write, and waits before it reads what it needs for that.
    Delayed,
    /// Reads from members.
    Reading,
    /// Waits for the thread or is being computed.
    Computing(Purpose),
    /// Writes to members.
    Writing(Purpose),
}

/// What is computed and written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array::parity) enum Purpose {
    /// Blocks that somebody wants to read.
    Read,
    /// New data and its parity.
    Write,
    /// A resync or rebuild.
    Sync,
}

/// Rows of one chunk that are treated alike.
#[derive(Clone, Copy, Debug)]
pub(in crate::array::parity) struct Band {
    /// Stripe of chunks, and the sectors within the chunk.
    pub(in crate::array::parity) stripe: u64,
    pub(in crate::array::parity) from: u32,
    pub(in crate::array::parity) to: u32,
    pub(in crate::array::parity) phase: Phase,
    /// Counted as one that reads before it writes.
    pub(in crate::array::parity) preread: bool,
    /// The thread is to look at it, which may find more in it then.
    pub(in crate::array::parity) queued: bool,
    pub(in crate::array::parity) fua: bool,
    /// Somebody waits for what is written.
    pub(in crate::array::parity) sync: bool,
    /// Members whose blocks cannot be read here.
    pub(in crate::array::parity) bad: MemberSet,
    pub(in crate::array::parity) parity: MemberSet,
    /// Blocks whose content is in memory.
    pub(in crate::array::parity) cached: MemberSet,
    /// Data blocks that are to be written: wholly, in part.
    pub(in crate::array::parity) full: MemberSet,
    pub(in crate::array::parity) part: MemberSet,
    /// Blocks that somebody wants to read.
    pub(in crate::array::parity) want: MemberSet,
    /// What is under way: blocks that are being read, or data blocks that are being written.
    pub(in crate::array::parity) moving: MemberSet,
    /// Member requests in flight.
    pub(in crate::array::parity) flight: u32,
    /// Lists of waiters: for a read, for the next write, for the write under way, for the resync.
    pub(in crate::array::parity) readers: u32,
    pub(in crate::array::parity) writers: u32,
    pub(in crate::array::parity) current: u32,
    pub(in crate::array::parity) syncers: u32,
    /// Next band of the same bucket.
    pub(super) chain: u32,
    /// Neighbours among the idle, the least recently used first.
    pub(super) older: u32,
    pub(super) newer: u32,
}

impl Band {
    /// What it does cannot be divided.
    pub(in crate::array::parity) const fn in_flight(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Delayed)
    }

    /// A write of these blocks, wholly or in part, has to wait until the one of the same blocks that has not begun has
    /// (`raid5.c:add_stripe_bio`, `R5_Overlap`). Which sectors of a block two parts are is not known: they are taken for different ones.
    #[inline]
    pub(in crate::array::parity) fn overlaps(&self, full: MemberSet, part: MemberSet) -> bool {
        let with = full.intersection(self.full.union(self.part));
        !with.union(part.intersection(self.full)).is_empty()
    }

    pub(in crate::array::parity) const fn rows(&self) -> u32 {
        (self.to - self.from) / ROW
    }
}

//! Where a disk's time went.
use raidlab_core::time::{Instant, Span};

/// What a disk has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads taken.
    pub reads: u64,
    /// Writes taken.
    pub writes: u64,
    /// Flushes taken.
    pub flushes: u64,
    /// Sectors of the reads.
    pub sectors_read: u64,
    /// Sectors of the writes.
    pub sectors_written: u64,
    /// Reads served whole from the buffer.
    pub read_hits: u64,
    /// Reads served by the reading-ahead that was going on, without a seek.
    pub stream_hits: u64,
    /// Writes acknowledged from the buffer.
    pub write_hits: u64,
    /// Sectors that took the place of what was still in the buffer, which never goes to the media; for an SSD 0.
    pub sectors_replaced: u64,
    /// Runs written from the buffer to the media.
    pub destages: u64,
    /// Sectors of those.
    pub sectors_destaged: u64,
    /// Writes that had to read a physical sector first.
    pub read_modify_writes: u64,
    /// Time of the arm moving, heads switching and settling; for an SSD 0.
    pub seek: Span,
    /// Time waiting for a sector to come round, and passing over sectors between those of a stream; for an SSD 0. A turn lost by
    /// reading ahead into a full buffer is in it when a read then had to wait for the head.
    pub rotation: Span,
    /// Time sectors passed under a head for a request or for destaging; for an SSD the time of its
    /// dies, summed over them. Reading ahead is in it once a request has come for the sectors, whether or not they had passed by then;
    /// what is thrown away is not. So a mechanism that a slow host or channel keeps from reading on is as busy as
    /// what they take makes it.
    pub transfer: Span,
    /// Time of the drive's processor; for an SSD, whose processor works on many commands at a time,
    /// summed over them.
    pub overhead: Span,
    /// Time of the link; of one that is full duplex, for reads.
    pub link: Span,
    /// Time of a link that is full duplex, for writes.
    pub link_writes: Span,
}

impl Counters {
    /// Time that the mechanism worked for a request or for destaging.
    #[must_use]
    pub fn busy(&self) -> Span {
        self.seek + self.rotation + self.transfer
    }

    /// Time from zero to `now` that the mechanism did not (reading ahead that nobody wanted included).
    #[must_use]
    pub fn idle(&self, now: Instant) -> Span {
        now.since(Instant::ZERO) - self.busy()
    }
}

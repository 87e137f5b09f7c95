//! deadline and mq-deadline: reads and writes apart, each sorted and each in order of arrival; short
//! batches in sorted order, unless the oldest of a direction has waited too long.
use super::store::{NIL, Store};
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;

const READS: u16 = 0;
const WRITES: u16 = 1;

/// `read_expire`, `write_expire`, `fifo_batch`, `writes_starved`: `block/deadline-iosched.c` and
/// `mq-deadline.c`, the same in all versions.
const READ_EXPIRE: Span = Span::from_millis(500);
const WRITE_EXPIRE: Span = Span::from_secs(5);
const FIFO_BATCH: u32 = 16;
const WRITES_STARVED: u32 = 2;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Longest wait of a read and of a write before it is preferred.
    pub expire: [Span; 2],
    /// Requests in a batch.
    pub fifo_batch: u32,
    /// Batches of reads that may pass a waiting write.
    pub writes_starved: u32,
    /// To 2.6.23: a batch goes on only while requests follow each other on the disk, and a new one
    /// begins at the lowest sector. Since 2.6.24 a batch follows the order of sectors whatever the
    /// distance, and begins at the oldest request.
    pub strict: bool,
}

impl Tunables {
    /// As a kernel has them.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        Self {
            expire: [READ_EXPIRE, WRITE_EXPIRE],
            fifo_batch: FIFO_BATCH,
            writes_starved: WRITES_STARVED,
            strict: kernel < Kernel::Linux(2, 6, 24),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Deadline {
    with: Tunables,
    /// The request that follows the last one given out, by direction.
    next: [u32; 2],
    batched: u32,
    starved: u32,
    /// First sector after the last one given out.
    position: u64,
}

impl Deadline {
    pub(super) fn new(with: Tunables) -> Self {
        Self {
            with,
            next: [NIL; 2],
            batched: 0,
            starved: 0,
            position: 0,
        }
    }

    #[inline]
    pub(super) fn class(kind: BlockKind) -> u16 {
        if kind == BlockKind::Read {
            READS
        } else {
            WRITES
        }
    }

    /// `slot` is about to leave the queue because it was joined to another.
    pub(super) fn leaves(&mut self, store: &Store, slot: u32) {
        for next in &mut self.next {
            if *next == slot {
                *next = store.after(slot);
            }
        }
    }

    /// The request to be given out now; [`NIL`] only when none waits.
    #[inline]
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        let ahead = if self.next[1] == NIL {
            self.next[0]
        } else {
            self.next[1]
        };
        let mut slot = NIL;
        if ahead != NIL {
            if self.with.strict && store.get(ahead).lba != self.position {
                self.batched = self.batched.saturating_add(self.with.fifo_batch);
            }
            if self.batched < self.with.fifo_batch {
                slot = ahead;
            }
        }
        if slot == NIL {
            slot = self.start(store, now);
        }
        if slot == NIL {
            return NIL;
        }
        self.batched = self.batched.saturating_add(1);
        let rq = store.get(slot);
        self.next = [NIL; 2];
        self.next[usize::from(rq.class)] = store.after(slot);
        self.position = rq.end();
        slot
    }

    /// The first request of a new batch.
    fn start(&mut self, store: &Store, now: Instant) -> u32 {
        let writes = store.oldest(WRITES);
        let mut class = READS;
        if store.oldest(READS) == NIL {
            class = WRITES;
        } else if writes != NIL {
            if self.starved >= self.with.writes_starved {
                class = WRITES;
            } else {
                self.starved += 1;
            }
        }
        if class == WRITES {
            self.starved = 0;
        }
        let oldest = store.oldest(class);
        if oldest == NIL {
            return NIL;
        }
        let limit = self.with.expire[usize::from(class)].0;
        let expired = now.0 > store.get(oldest).since.saturating_add(limit);
        let ahead = self.next[usize::from(class)];
        if ahead != NIL && !expired {
            if !self.with.strict {
                self.batched = 0;
            }
            return ahead;
        }
        self.batched = 0;
        if expired || !self.with.strict {
            oldest
        } else {
            store.lowest(class)
        }
    }
}

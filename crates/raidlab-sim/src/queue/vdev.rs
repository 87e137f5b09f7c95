//! The queue that ZFS before 0.6.3 keeps for each disk (`vdev_queue.c`): requests by deadline, those of
//! one deadline by place.
//!
//! A deadline is when a request came, in steps of 64 ms, plus its priority. So what somebody waits for
//! passes the writes of a transaction group for a quarter of a second; after that, what is left of the
//! group goes first, without a seek between.
//!
//! Left out: that of a burst only four are given out before one of them has ended, and from then on
//! two for each that ends (`zfs_vdev_min_pending`, `zfs_vdev_ramp_rate`).
use super::store::{NIL, Store};
use crate::block::Bio;
use raidlab_core::op::BlockKind;

/// `zfs_vdev_time_shift` 6, of ticks of 1 ms.
const STEP: u64 = 64_000_000;
/// Steps that a request may be behind others, by class: what somebody waits for, write-back
/// (`ZIO_PRIORITY_ASYNC_WRITE`), and reading ahead (`ZIO_PRIORITY_ASYNC_READ`).
const PRIORITY: [u64; 3] = [0, 4, 6];

/// The class of a bio.
#[inline]
pub(super) fn class(bio: &Bio) -> u16 {
    match (bio.origin.ahead, bio.kind) {
        (true, _) => 2,
        (false, BlockKind::Write) if !bio.origin.sync => 1,
        _ => 0,
    }
}

/// The request to be given out now; [`NIL`] only when none waits.
pub(super) fn pick(store: &Store) -> u32 {
    let mut best = (u64::MAX, u64::MAX, NIL);
    for (class, priority) in PRIORITY.iter().enumerate() {
        let mut slot = store.oldest(class as u16);
        if slot == NIL {
            continue;
        }
        let step = store.get(slot).since / STEP;
        while slot != NIL && store.get(slot).since / STEP == step {
            best = best.min((step + priority, store.get(slot).lba, slot));
            slot = store.younger(slot);
        }
    }
    best.2
}

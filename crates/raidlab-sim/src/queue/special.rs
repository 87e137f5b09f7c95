//! Flushes, durable writes and barriers.
use super::Queue;
use super::store::Bios;
use crate::block::{Bio, Origin};
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;

impl Queue {
    #[cold]
    pub(super) fn submit_special(&mut self, now: Instant, bio: Bio) {
        let ordered = bio.kind == BlockKind::Flush || (bio.fua && bio.kind == BlockKind::Write);
        if !self.behind.is_empty() {
            self.behind.push_back(bio);
        } else if ordered && self.spec.barriers {
            self.behind.push_back(bio);
            self.unplug(now);
        } else if bio.kind == BlockKind::Flush {
            self.flushes.push(bio.id);
        } else {
            self.take_in(now, bio);
        }
    }

    /// One flush for all who wait for one.
    #[cold]
    pub(super) fn flush(&mut self, now: Instant) -> u32 {
        std::mem::swap(&mut self.flushes, &mut self.flushing);
        let bio = Bio {
            id: self.flushing[0],
            kind: BlockKind::Flush,
            lba: Lba(0),
            sectors: 0,
            fua: false,
            origin: Origin::default(),
        };
        self.used[0] += 1;
        self.store.alloc(now, &bio, 0, 0)
    }

    /// The barrier, once all before it has ended.
    #[cold]
    pub(super) fn barrier(&mut self, now: Instant) -> Option<u32> {
        if self.barrier || self.in_device > 0 || !self.flushing.is_empty() {
            return None;
        }
        let bio = *self.behind.front()?;
        let group = self.group(bio.kind, bio.origin.sync);
        self.used[group] += 1;
        self.barrier = true;
        Some(self.store.alloc(now, &bio, 0, group as u8))
    }

    /// A flush or a durable write has ended; the bios that end with it, if any do.
    #[cold]
    pub(super) fn special_ended(
        &mut self,
        now: Instant,
        slot: u32,
        result: Result<(), DiskError>,
    ) -> Option<Bios> {
        let rq = *self.store.get(slot);
        let bios = if rq.kind == BlockKind::Flush && !self.flushing.is_empty() {
            self.store.forget(slot);
            self.store.bios_of(self.flushing.drain(..).rev())
        } else if rq.fua && rq.kind == BlockKind::Write && !self.spec.fua && result.is_ok() {
            // The device may still have it in its buffer: it ends with a flush.
            self.flushes.push(self.store.first_bio(slot));
            self.store.forget(slot);
            return None;
        } else {
            Some(self.store.take(slot))
        };
        if std::mem::take(&mut self.barrier) {
            self.pass_barrier(now);
        }
        bios
    }

    /// The barrier has ended: what came after it goes on, up to the next one.
    pub(super) fn pass_barrier(&mut self, now: Instant) {
        self.behind.pop_front();
        while let Some(&bio) = self.behind.front() {
            if bio.kind == BlockKind::Flush || (bio.fua && bio.kind == BlockKind::Write) {
                break;
            }
            self.behind.pop_front();
            self.take_in(now, bio);
        }
        self.unplug(now);
    }
}

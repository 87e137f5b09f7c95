//! Joining bios that lie side by side.
use super::Queue;
use super::spec::Policy;
use super::store::NIL;
use super::vdev;
use crate::block::Bio;

/// Youngest requests that a bio may join without a scheduler (`blk_bio_list_merge`, `blk-merge.c`).
const NONE_LOOKS_BACK: usize = 8;

impl Queue {
    /// Sectors that a request may be joined to.
    #[inline]
    fn joins(&self) -> u32 {
        match self.spec.policy {
            Policy::Vdev(with) => with.joins.min(self.spec.max_sectors),
            _ => self.spec.max_sectors,
        }
    }

    /// Joins to a request that is about to be given out what ZFS takes along.
    pub(super) fn gather(&mut self, slot: u32) -> u32 {
        let (joins, used, merges) = (self.joins(), &mut self.used, &mut self.merges);
        vdev::gather(&mut self.store, slot, joins, |rq| {
            used[rq.group()] -= 1;
            *merges += 1;
        })
    }

    /// Whether a bio may be part of a request.
    #[inline]
    pub(super) fn fits(&self, slot: u32, bio: &Bio) -> bool {
        let rq = self.store.get(slot);
        let small = rq.sectors + bio.sectors <= self.joins();
        rq.kind == bio.kind && !rq.fua && small && rq.takes(bio.segments(), self.spec.segments)
    }

    /// Joins a bio to a waiting request that it lies next to.
    pub(super) fn merge(&mut self, bio: &Bio, class: u16) -> bool {
        if self.last != NIL && self.store.get(self.last).class == class {
            // Most bios follow the one before.
            let rq = self.store.get(self.last);
            if rq.end() == bio.lba.0 && self.fits(self.last, bio) {
                self.merge_back(self.last, bio);
                return true;
            }
            if rq.lba == bio.end() && self.fits(self.last, bio) {
                self.merge_front(self.last, bio);
                return true;
            }
        }
        let (back, front) = match self.spec.policy {
            Policy::None => self.recent(bio),
            // Only those that keep requests sorted find one by its beginning.
            Policy::Noop => (self.store.ending_at(class, bio.lba.0), NIL),
            _ => (
                self.store.ending_at(class, bio.lba.0),
                self.store.beginning_at(class, bio.end()),
            ),
        };
        if back != NIL && self.fits(back, bio) {
            self.merge_back(back, bio);
            true
        } else if front != NIL && self.fits(front, bio) {
            self.merge_front(front, bio);
            true
        } else {
            false
        }
    }

    /// Neighbours of a bio among the last few requests: ending where it begins, beginning where it
    /// ends.
    fn recent(&self, bio: &Bio) -> (u32, u32) {
        for slot in self.store.youngest_first(0).take(NONE_LOOKS_BACK) {
            let rq = self.store.get(slot);
            if rq.end() == bio.lba.0 {
                return (slot, NIL);
            }
            if rq.lba == bio.end() {
                return (NIL, slot);
            }
        }
        (NIL, NIL)
    }

    fn merge_back(&mut self, slot: u32, bio: &Bio) {
        self.store.merge_back(slot, bio);
        self.last = slot;
        let next = self.store.after(slot);
        if next != NIL {
            self.join(slot, next);
        }
    }

    fn merge_front(&mut self, slot: u32, bio: &Bio) {
        self.store.merge_front(slot, bio);
        self.last = slot;
        let rq = self.store.get(slot);
        let before = self.store.ending_at(rq.class, rq.lba);
        if before != NIL {
            self.join(before, slot);
        }
    }

    /// Joins two requests when the gap between them has been filled.
    fn join(&mut self, slot: u32, next: u32) {
        let (rq, tail) = (self.store.get(slot), self.store.get(next));
        let small = rq.sectors + tail.sectors <= self.joins();
        let fits = small && rq.takes(tail.segments(), self.spec.segments);
        if rq.end() != tail.lba || rq.kind != tail.kind || rq.fua || tail.fua || !fits {
            return;
        }
        self.used[tail.group()] -= 1;
        if let Some(wbt) = self.wbt.as_mut().filter(|_| tail.is_tracked()) {
            wbt.joined();
        }
        self.order.leaves(&self.store, next);
        self.store.join(slot, next);
        self.last = slot;
    }
}

//! Members are filled or made to agree while the host is served.
use super::Cached;
use super::task::Kind;
use crate::fabric::plant::Plant;
use crate::fabric::volume::refill::Group;

impl Cached {
    /// The host has asked for something, or got it.
    pub(super) fn seen(&mut self, now: u64) {
        if let Some(refill) = &mut self.members.refill {
            refill.seen(now);
        }
    }

    /// What the host has asked for is at work, or what it has written waits for the disks.
    const fn is_wanted(&self) -> bool {
        self.in_work > 0 || self.dirty() > 0
    }

    /// Groups begin that may.
    pub(super) fn refill(&mut self, now: u64, plant: &mut Plant) {
        let wanted = self.is_wanted();
        while let Some(refill) = &mut self.members.refill
            && refill.next() <= now
        {
            if let Some(group) = refill.take(now, wanted) {
                // Its sectors are those of an array of the volume.
                self.start(now, Kind::Refill(group), 0, 0, plant);
            }
        }
    }

    /// A group is done.
    pub(super) fn refilled(&mut self, now: u64, group: &Group, plant: &mut Plant) {
        let wanted = self.is_wanted();
        if let Some(refill) = &mut self.members.refill {
            refill.ended(now, group, wanted);
        }
        self.refill(now, plant);
    }
}

//! Resyncs and rebuilds of the volumes of controllers, as whoever runs or leaps through them sees them.
use super::Fabric;
use super::volume::{Refill, Volume};
use crate::block::{self, Progress};
use raidlab_core::time::Instant;

impl Fabric {
    fn refills(&self) -> impl Iterator<Item = &Refill> {
        self.volumes.iter().filter_map(Volume::refill)
    }

    /// Does something to each, after which it may have something to do.
    fn each_refill(&mut self, act: impl Fn(&mut Refill)) {
        for volume in &mut self.volumes {
            if let Some(refill) = volume.refill_mut() {
                act(refill);
            }
        }
        self.look_at_volumes();
    }

    /// How far resync or rebuild are, added over the volumes that have one; `None` when everything agrees.
    #[must_use]
    pub fn resync(&self) -> Option<Progress> {
        Progress::sum(self.refills().filter_map(Refill::progress))
    }

    /// How many sectors each of them has gone through at least, counted as [`Progress`] does for one array.
    #[must_use]
    pub fn resync_position(&self) -> Option<u64> {
        self.refills().filter_map(Refill::position).min()
    }

    /// The sector at which they end, counted as that.
    #[must_use]
    pub fn resync_end(&self) -> Option<u64> {
        self.refills().filter_map(Refill::end).max()
    }

    /// Whether they are paused and nothing of them is under way.
    #[must_use]
    pub fn resync_drained(&self) -> bool {
        self.refills().all(Refill::is_drained)
    }

    /// They begin nothing more.
    pub fn resync_pause(&mut self) {
        self.each_refill(Refill::pause);
    }

    /// They go on, at `now`.
    pub fn resync_resume(&mut self, now: Instant) {
        self.each_refill(|refill| refill.resume(now.0));
    }

    /// Takes everything before sector `to`, rounded down to what is worked on together, for done. They must be
    /// [drained](Self::resync_drained).
    pub fn resync_skip(&mut self, to: u64) {
        self.each_refill(|refill| refill.skip(to));
    }

    /// Sectors that they have asked of disks, and which of these it was.
    #[must_use]
    pub fn refilled(&self) -> (u64, block::Refill) {
        let all = self.refills().map(Refill::refilled);
        all.reduce(|sum, more| (sum.0 + more.0, more.1))
            .unwrap_or_default()
    }
}

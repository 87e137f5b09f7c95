//! The resync or rebuild of what makes one device of the members: of the kernel's array, or of a controller's volume.
use super::Storage;
use crate::array::Array;
use crate::block::{Progress, Refill};
use raidlab_core::time::{Instant, Span};

impl Storage {
    /// How far resync or rebuild are; `None` when everything agrees.
    #[must_use]
    pub fn resync(&self) -> Option<Progress> {
        match &self.array {
            Some(array) => array.resync(),
            None => self.fabric.resync(),
        }
    }

    /// The same, of which only what is done is told.
    #[must_use]
    pub fn resync_done(&self) -> Option<u64> {
        match &self.array {
            Some(array) => array.resync_done(),
            None => self.fabric.resync().map(|progress| progress.done),
        }
    }

    /// See [`Array::resync_position`].
    #[must_use]
    pub fn resync_position(&self) -> Option<u64> {
        match &self.array {
            Some(array) => array.resync_position(),
            None => self.fabric.resync_position(),
        }
    }

    /// See [`Array::resync_end`].
    #[must_use]
    pub fn resync_end(&self) -> Option<u64> {
        match &self.array {
            Some(array) => array.resync_end(),
            None => self.fabric.resync_end(),
        }
    }

    /// See [`Array::resync_rate`].
    #[must_use]
    pub fn resync_rate(&self) -> Option<u64> {
        match &self.array {
            Some(array) => array.resync_rate(),
            None => self.fabric.resync().map(|progress| progress.rate),
        }
    }

    /// See [`Array::resync_drained`].
    #[must_use]
    pub fn resync_drained(&self) -> bool {
        match &self.array {
            Some(array) => array.resync_drained(),
            None => self.fabric.resync_drained(),
        }
    }

    /// Sectors that resyncs, rebuilds and resilvers have asked of disks, and which of these it was.
    #[must_use]
    pub fn refilled(&self) -> (u64, Refill) {
        match &self.array {
            Some(array) => array.refilled(),
            None => self.fabric.refilled(),
        }
    }

    /// See [`Array::resync_limit`]. Controllers have no limit but the disks.
    pub fn resync_limit(&mut self, now: Instant, most: Option<u64>) {
        self.with_array(now, |array| array.resync_limit(now, most));
    }

    /// See [`Array::resync_pause`].
    pub fn resync_pause(&mut self, now: Instant) {
        if self.array.is_none() {
            self.fabric.resync_pause();
            return self.look();
        }
        self.with_array(now, |array| array.resync_pause(now));
    }

    /// See [`Array::resync_resume`].
    pub fn resync_resume(&mut self, now: Instant) {
        if self.array.is_none() {
            self.fabric.resync_resume(now);
            return self.look();
        }
        self.with_array(now, |array| array.resync_resume(now));
    }

    /// Puts the position of one that is drained ahead to a sector, and lets it go on at `now`; by how many sectors. See
    /// [`Array::resync_skip`].
    pub fn resync_skip(&mut self, now: Instant, target: u64) -> u64 {
        let at = self.resync_position().unwrap_or(0);
        if self.array.is_none() {
            self.fabric.resync_skip(target.max(at));
            self.resync_resume(now);
            return self.resync_position().unwrap_or(at) - at;
        }
        let skip = |array: &mut Array| {
            let to = array.resync_skip(target.max(at), Span::ZERO).unwrap_or(at);
            array.resync_resume(now);
            to - at
        };
        self.with_array(now, skip).unwrap_or(0)
    }
}

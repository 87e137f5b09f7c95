//! Filling new members within commits: ZFS resilvers while a transaction group is being written, once its data is.
//!
//! Meanwhile the next group is open, and takes no more than all groups together may hold: who writes beside a resilver fills it once in
//! three seconds (`zfs_resilver_min_time_ms`). While there is something to resilver groups follow each other, empty ones too
//! (`txg_sync_thread`, `dsl_scan_active`).
use super::super::device::Device;
use super::super::{Host, What};
use super::Part;
use raidlab_core::time::{Instant, Span};

/// What a commit has to do with new members of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Filling {
    /// They have not had their turn.
    #[default]
    Before,
    /// They are filled.
    Now {
        since: Instant,
        /// The device begins with nothing more; what is under way ends.
        ends: bool,
    },
    /// They were, for so long.
    Done(Span),
}

impl<D: Device> Host<D> {
    /// The device has new members and something to fill them with.
    pub(crate) fn filling_begins(&mut self) {
        if self.journal.part == Part::Idle && self.goes_on_filling() {
            self.start_commit();
        }
    }

    pub(super) fn goes_on_filling(&self) -> bool {
        self.traits.fill_times.is_some() && self.below.device.fills()
    }

    /// Lets the device fill its new members, once in a commit; false when it has none to fill, or has done so.
    pub(super) fn fills_now(&mut self) -> bool {
        let Some(times) = self.traits.fill_times else {
            return false;
        };
        if !matches!(self.journal.filling, Filling::Before) || !self.below.device.fills() {
            return false;
        }
        self.journal.filling = Filling::Now {
            since: self.now,
            ends: false,
        };
        self.below.fill(self.now, true);
        let from = if times.of_commit {
            self.journal.begun
        } else {
            self.now
        };
        let least = self.now + times.least;
        self.at(Instant(least.0 + 1), What::Fill);
        self.at((from + times.most).max(Instant(least.0 + 1)), What::Fill);
        self.look_at_filling();
        true
    }

    /// Ends the filling when it is time; what is left of the commit follows when nothing of it is under way.
    #[inline]
    pub(in super::super) fn look_at_filling(&mut self) {
        if let Filling::Now { since, ends } = self.journal.filling {
            self.look_closely(since, ends);
        }
    }

    fn look_closely(&mut self, since: Instant, ends: bool) {
        let took = self.now.since(since);
        if !ends && self.is_time_to_end(took) {
            self.journal.filling = Filling::Now { since, ends: true };
            self.below.fill(self.now, false);
        }
        if self.below.device.fill_rests() {
            self.journal.filling = Filling::Done(took);
            self.commit_on();
        }
    }

    fn is_time_to_end(&self, took: Span) -> bool {
        let Some(times) = self.traits.fill_times.filter(|times| took > times.least) else {
            return false;
        };
        let whole = if times.of_commit {
            self.now.since(self.journal.begun)
        } else {
            took
        };
        whole >= times.most || self.commit_is_awaited(times.dirty_percent)
    }

    /// Somebody waits for the commit, or there is much to be written by the next one.
    fn commit_is_awaited(&self, dirty_percent: Option<u32>) -> bool {
        let journal = &self.journal;
        let calls = !journal.waiting.is_empty() || !journal.opening.is_empty();
        let dirty = self.cache.dirty() + self.cache.writing();
        calls
            || match dirty_percent {
                Some(percent) => dirty * 100 >= self.back.limit * u64::from(percent),
                // Who has filled a group waits for the next one (`txg_wait_open`).
                None => !self.back.held.is_empty(),
            }
    }

    /// Time that the commit has spent without the filling.
    pub(super) fn wrote_for(&self) -> Span {
        let took = self.now.since(self.journal.begun);
        match self.journal.filling {
            Filling::Done(filled) => Span(took.0.saturating_sub(filled.0)),
            _ => took,
        }
    }
}

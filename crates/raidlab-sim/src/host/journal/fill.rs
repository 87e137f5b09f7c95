//! Filling new members within commits: ZFS resilvers while a transaction group is being written, once its data is.
//!
//! Meanwhile the next group is open, and takes no more than all groups together may hold: who writes beside a resilver fills it once in
//! three seconds (`zfs_resilver_min_time_ms`). While there is something to resilver groups follow each other, empty ones too
//! (`txg_sync_thread`, `dsl_scan_active`).
use super::super::device::Device;
use super::super::{Host, What};
use super::Part;
use raidlab_core::time::{Instant, Span};

/// The device fills its new members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    since: Instant,
    /// It begins with nothing more; what is under way ends.
    ends: bool,
}

impl<D: Device> Host<D> {
    /// Whether new members are to be filled when commits let them, and at no other time.
    pub(crate) const fn fills_within_commits(&self) -> bool {
        self.traits.fill_times.is_some()
    }

    /// It has something to fill them with.
    pub(crate) fn filling_begins(&mut self) {
        if self.journal.part == Part::Idle && self.goes_on_filling() {
            self.start_commit();
        }
    }

    pub(super) fn goes_on_filling(&self) -> bool {
        self.fills_within_commits() && self.below.device.fills()
    }

    /// Lets the device fill its new members, once in a commit; false when it has none to fill, or has done so.
    pub(super) fn fills_now(&mut self) -> bool {
        let Some(times) = self.traits.fill_times else {
            return false;
        };
        if self.journal.filled || !self.below.device.fills() {
            return false;
        }
        self.journal.filled = true;
        self.journal.filling = Some(Filling {
            since: self.now,
            ends: false,
        });
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
    pub(in super::super) fn look_at_filling(&mut self) {
        let (Some(filling), Some(times)) = (self.journal.filling, self.traits.fill_times) else {
            return;
        };
        let took = self.now.since(filling.since);
        if !filling.ends && took > times.least {
            let whole = if times.of_commit {
                self.now.since(self.journal.begun)
            } else {
                took
            };
            if whole >= times.most || self.commit_is_awaited(times.dirty_percent) {
                self.journal.filling = Some(Filling {
                    ends: true,
                    ..filling
                });
                self.below.fill(self.now, false);
            }
        }
        if self.below.device.fill_rests() {
            self.journal.filling = None;
            self.journal.filled_for = took;
            self.commit_on();
        }
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
        Span(took.0.saturating_sub(self.journal.filled_for.0))
    }
}

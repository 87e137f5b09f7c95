//! Resyncs whose pace is not their own but that of the speed control: its sleeps give drives time to write what they have cached and to
//! read ahead, so that some go on faster after each of them than they ever go by themselves. Whoever lifts the control to find
//! the pace finds another one.
use super::{AT_LIMIT, Attempt, Course, Machine};
use crate::host::Host;
use crate::storage::Storage;
use raidlab_core::drive::Pace;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;

/// How far back the control looks, which windows must not be shorter than while it is on.
const MEMORY: Span = Span::from_secs(30);
/// These windows, so many at least, and the time before them.
pub(super) const UNEVEN: (Span, usize, Span) = (MEMORY, 8, MEMORY);
/// The same after a leap. Which pace it has behind an edge depends on how it comes there, which is to be as without a leap.
pub(super) const WARM: Span = Span(2 * MEMORY.0);
/// After so long without the control it can be told whether a resync is slower than the limit. Assumed.
const SEEN: Span = Span::from_secs(32);

impl Machine {
    /// Whether the resync that is least far goes as fast as the speed control lets it.
    pub(super) fn is_at_limit(&self) -> bool {
        let rate = self.host.device().resync_rate();
        rate.is_some_and(|rate| self.is_limit(rate))
    }

    pub(super) fn is_limit(&self, rate: u64) -> bool {
        rate as f64 >= AT_LIMIT * self.sync_limit as f64
    }

    /// Whether an attempt without the control, which has found a `pace` or none, is slower than the limit while it would be held back
    /// by that with the control. All is as it was when the attempt began then, and the control stays on for the next.
    pub(super) fn is_taken_back(
        &mut self,
        attempt: &mut Attempt,
        done: u64,
        pace: Option<Pace>,
        course: &mut Course,
    ) -> bool {
        let now = self.host.now();
        let took = now.since(attempt.begun);
        if attempt.kept.is_none() || (pace.is_none() && took < SEEN) {
            return false;
        }
        let (sectors, time) = pace.map_or((done - attempt.from, took), |p| (p.amount, p.time));
        if self.is_limit(((sectors * SECTOR) as f64 / time.as_secs_f64()) as u64) {
            return false;
        }
        let Some(kept) = attempt.kept.take() else {
            return false;
        };
        let here = std::mem::replace(&mut self.host, (*kept).clone());
        if let Some(held) = self.held() {
            let alone = (sectors * SECTOR) as f64 / time.as_secs_f64();
            course.tried = course.tried.or(Some((alone, held)));
            self.host = *kept;
            course.controlled = true;
            return true;
        }
        self.host = here;
        false
    }

    /// Bytes a second if the control holds the resync back once it knows of nothing that was before; the machine goes on for that.
    fn held(&mut self) -> Option<f64> {
        let mut at = [(Instant::ZERO, 0); 2];
        for mark in &mut at {
            let until = self.host.now() + MEMORY;
            self.resync_wait(until);
            *mark = (self.host.now(), self.resync_place());
        }
        let [(since, from), (until, to)] = at;
        let bytes = to.saturating_sub(from) * SECTOR;
        let rate = bytes as f64 / until.since(since).as_secs_f64();
        self.is_limit(rate as u64).then_some(rate)
    }

    /// The machine as it is, for [`Self::is_taken_back`]: only a resync at the limit may be held back by it.
    pub(super) fn kept_at_limit(&self, course: &Course) -> Option<Box<Host<Storage>>> {
        (!course.slow && self.is_at_limit()).then(|| Box::new(self.host.clone()))
    }
}

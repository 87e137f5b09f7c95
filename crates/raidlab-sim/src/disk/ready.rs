//! Requests whose end is known, in the order of their ends.
use super::{DiskError, Done};
use raidlab_core::time::Instant;

/// Later than anything.
const NEVER: Instant = Instant(u64::MAX);

/// Ends to come, the next one last; ties end in the order in which they became known.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    list: Vec<Done>,
}

impl Ready {
    #[inline]
    pub(super) fn push(&mut self, done: Done) {
        match self.list.as_mut_slice() {
            [] => self.list.push(done),
            // As mostly: what ends now, and what was begun then.
            [only] if only.at <= done.at => {
                let next = std::mem::replace(only, done);
                self.list.push(next);
            }
            _ => self.insert(done.id, done.at, done.first, (done.result, done.hit)),
        }
    }

    // In parts, so that for the ways above an end is written to its place at once: the disk is asked for its time right
    // after, and what was copied in larger pieces than it was written in comes late.
    #[inline(never)]
    fn insert(
        &mut self,
        id: u64,
        at: Instant,
        first: Instant,
        (result, hit): (Result<(), DiskError>, bool),
    ) {
        let done = Done {
            id,
            at,
            first,
            result,
            hit,
        };
        let mut at = self.list.len();
        // Most ends are known in their order, so that the place is near the front.
        if at > 16 {
            at = self.list.partition_point(|other| other.at > done.at);
        } else {
            while at > 0 && self.list[at - 1].at <= done.at {
                at -= 1;
            }
        }
        self.list.insert(at, done);
    }

    /// When the next one comes, [`NEVER`] if none does.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.list.last().map_or(NEVER, |done| done.at)
    }

    /// The next one that has come by `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<Done> {
        self.list.pop_if(|done| done.at <= now)
    }

    /// The one that has come by `now`; `None` when none has, or several have.
    #[inline]
    pub(super) fn pop_only(&mut self, now: Instant) -> Option<Done> {
        if let [.., second, _] = self.list[..]
            && second.at <= now
        {
            return None;
        }
        self.pop(now)
    }

    /// All of them fail at `now`.
    pub(super) fn fail(&mut self, now: Instant, error: DiskError) {
        for done in &mut self.list {
            (done.at, done.first, done.result) = (now, now, Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ends_come_by_time_and_then_as_they_became_known(times in prop::collection::vec(0_u64..20, 0..80)) {
            let mut ready = Ready::default();
            for (id, at) in times.iter().enumerate() {
                let at = Instant(*at);
                ready.push(Done { id: id as u64, at, first: at, result: Ok(()), hit: false });
            }
            let mut copy = ready.clone();
            for now in (0..20).map(Instant) {
                let due = ready.list.iter().filter(|done| done.at == now).count();
                let only = copy.pop_only(now);
                prop_assert_eq!(only.is_some(), due == 1, "{} at {:?}", due, now);
                while copy.pop(now).is_some() {}
            }
            let out = std::iter::from_fn(|| ready.pop(Instant(u64::MAX)));
            let got: Vec<_> = out.map(|d| (d.at.0, d.id)).collect();
            let mut sorted = got.clone();
            sorted.sort_unstable();
            prop_assert_eq!(got.len(), times.len());
            prop_assert_eq!(got, sorted);
        }
    }
}

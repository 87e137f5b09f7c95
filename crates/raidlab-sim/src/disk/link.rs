//! The link of a hard disk: one transfer at a time.

/// Transfers that are kept without a look at which of them are over.
const KEPT: usize = 16;

/// When the link is taken. A transfer may be booked ahead, for when the media give its sectors; what is ready sooner goes
/// into the time before it, and what of it does not fit there, behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// Spans that are taken, in their order, none over another.
    taken: Vec<(u64, u64)>,
    /// When the last of them ends.
    last: u64,
}

impl Link {
    /// Takes the link for `nanos` that are free from `from` on, at the time `now`; begin and end.
    #[inline]
    pub(super) fn take(&mut self, now: u64, from: u64, nanos: u64) -> (u64, u64) {
        let from = from.max(now);
        if from < self.last {
            return self.take_between(now, from, nanos);
        }
        if self.last <= now {
            self.taken.clear();
        } else if self.taken.len() >= KEPT {
            self.forget(now);
        }
        let end = from + nanos;
        self.taken.push((from, end));
        self.last = end;
        (from, end)
    }

    /// What is over stays away.
    #[cold]
    fn forget(&mut self, now: u64) {
        self.taken.retain(|(_, end)| *end > now);
    }

    /// The same while something later is booked.
    #[inline(never)]
    fn take_between(&mut self, now: u64, from: u64, nanos: u64) -> (u64, u64) {
        if self.taken.len() >= KEPT {
            self.forget(now);
        }
        let first = self.taken.partition_point(|(_, end)| *end <= from);
        let (mut begin, mut at, mut left) = (None, from, nanos);
        let mut next = first;
        while let Some((other, end)) = self.taken.get(next).copied() {
            let free = other.saturating_sub(at);
            if free > 0 {
                begin = begin.or(Some(at));
            }
            if left <= free && begin.is_some() {
                break;
            }
            left -= free;
            at = end;
            next += 1;
        }
        let (begin, end) = (begin.unwrap_or(at), at + left);
        // All that was free from the begin to the end is taken now.
        let joined = self
            .taken
            .get(first)
            .map_or(begin, |(b, _)| (*b).min(begin));
        if next == first {
            self.taken.insert(first, (begin, end));
        } else {
            self.taken.splice(first..next, [(joined, end)]);
        }
        self.last = self.last.max(end);
        (begin, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_ready_sooner_goes_before_and_waits_for_what_is_under_way() {
        let mut link = Link::default();
        // Booked for later.
        assert_eq!(link.take(0, 100, 50), (100, 150));
        // Ready sooner, and short enough.
        assert_eq!(link.take(0, 10, 20), (10, 30));
        // It begins while the first is under way: after it.
        assert_eq!(link.take(20, 110, 5), (150, 155));
        // 30 to 100 is free, and then no more until 155.
        assert_eq!(link.take(25, 25, 80), (30, 165));
        assert_eq!(link.take(25, 25, 1), (165, 166));
        // Idle again.
        assert_eq!(link.take(1000, 990, 1), (1000, 1001));
    }

    proptest! {
        /// Whatever is booked, in any stretch of time no more is carried than fits, and nothing waits without need.
        #[test]
        fn one_at_a_time(steps in proptest::collection::vec((0_u64..30, 0_u64..60, 1_u64..20), 1..200)) {
            let (mut link, mut now) = (Link::default(), 0);
            let mut busy: Vec<bool> = Vec::new();
            for (later, ahead, nanos) in steps {
                now += later;
                let from = now + ahead;
                let (begin, end) = link.take(now, from, nanos);
                busy.resize(busy.len().max(end as usize + 1), false);
                let free: Vec<u64> = (from..end).filter(|at| !busy[*at as usize]).collect();
                prop_assert_eq!(free.len() as u64, nanos);
                prop_assert_eq!((free[0], free[free.len() - 1] + 1), (begin, end));
                for at in free {
                    busy[at as usize] = true;
                }
            }
        }
    }
}

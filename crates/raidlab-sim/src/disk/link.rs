//! The link of a hard disk: one transfer at a time.
use super::spec::HddModel;
use raidlab_core::units::SECTOR;

/// Bytes a second that a link has at least.
pub(super) const SLOWEST_LINK: u64 = 100_000;

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

/// Nanoseconds that a sector takes on a link of so many bytes a second, in 2^-20 ns; 0 where nothing limits it.
pub(super) fn sector_nanos(link: u64) -> u64 {
    if link == 0 {
        return 0;
    }
    ((u128::from(SECTOR) * 1_000_000_000) << 20).div_ceil(u128::from(link)) as u64
}

impl HddModel {
    /// Nanoseconds that `sectors` take on the link.
    #[must_use]
    #[inline]
    pub fn link_nanos(&self, sectors: u64) -> u64 {
        (sectors * self.link_sector) >> 20
    }

    /// The same disk on a link of another rate, its write cache turned off if `cache_off`. No table depends on either, so that none
    /// is made again: to solve a seek curve takes milliseconds. With a rate that no link has it stays as it is.
    pub(crate) fn behind(&self, link: u64, cache_off: bool) -> Self {
        let mut model = self.clone();
        if link == 0 || link >= SLOWEST_LINK {
            (model.spec.link, model.link_sector) = (link, sector_nanos(link));
            model.spec.cache.write_back &= !cache_off;
        }
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::disk::DiskModel;
    use proptest::prelude::*;

    /// What is put behind another link is the disk that its specification with that link makes, tables and all.
    #[test]
    fn a_disk_behind_another_link_is_the_one_that_would_be_built() {
        let models = catalogue::MODELS.iter();
        let models = models.map(|(name, _)| catalogue::find(name).expect("known").disk);
        let mut disks = 0;
        for model in models {
            let DiskModel::Hdd(hdd) = model else { continue };
            disks += 1;
            for (link, off) in [
                (0, false),
                (150_000_000, true),
                (600_000_000, false),
                (1, true),
            ] {
                let mut spec = hdd.spec.clone();
                (spec.link, spec.cache.write_back) = (link, spec.cache.write_back && !off);
                let built = spec.build().unwrap_or_else(|_| HddModel::clone(&hdd));
                let behind = hdd.behind(link, off);
                assert_eq!(
                    format!("{behind:?}"),
                    format!("{built:?}"),
                    "{}",
                    hdd.spec.name
                );
            }
        }
        assert!(disks > 5, "{disks}");
    }

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

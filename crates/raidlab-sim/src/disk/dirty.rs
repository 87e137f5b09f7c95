//! The write-back cache of a hard disk: written runs that are not on the media yet, by address.

/// A run of sectors that waits to be destaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) lba: u64,
    pub(super) sectors: u64,
    /// When its first sector has come from the host, in nanoseconds.
    pub(super) ready: u64,
    /// What the disk had [destaged](super::hdd) when its oldest part came, so that it is not passed over for ever.
    pub(super) since: u64,
}

impl Run {
    pub(super) fn end(&self) -> u64 {
        self.lba + self.sectors
    }
}

/// The runs, sorted by address, neither touching nor overlapping.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    runs: Vec<Run>,
    sectors: u64,
}

impl Dirty {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Whether another write fits when at most `limit` runs are kept apart.
    pub(super) fn has_room(&self, run: &Run, limit: usize) -> bool {
        self.runs.len() < limit || self.touches(run.lba, run.end())
    }

    fn touches(&self, from: u64, to: u64) -> bool {
        let at = self.runs.partition_point(|r| r.end() < from);
        self.runs.get(at).is_some_and(|r| r.lba <= to)
    }

    /// Sectors of a write that are not here yet: the others are replaced where they are.
    pub(super) fn missing(&self, new: &Run) -> u64 {
        let at = self.runs.partition_point(|r| r.end() <= new.lba);
        let met = self.runs[at..].iter().take_while(|r| r.lba < new.end());
        let there = met.map(|r| r.end().min(new.end()) - r.lba.max(new.lba));
        new.sectors - there.sum::<u64>()
    }

    /// Adds a written run; sectors that were dirty before are counted once.
    pub(super) fn insert(&mut self, new: Run) {
        let from = self.runs.partition_point(|r| r.end() < new.lba);
        let to = self.runs.partition_point(|r| r.lba <= new.end());
        let mut merged = new;
        for old in &self.runs[from..to] {
            self.sectors -= old.sectors;
            let end = merged.end().max(old.end());
            if old.lba <= merged.lba {
                merged.ready = merged.ready.min(old.ready);
                merged.lba = old.lba;
            }
            merged.sectors = end - merged.lba;
            merged.since = merged.since.min(old.since);
        }
        self.sectors += merged.sectors;
        if from == to {
            self.runs.insert(from, merged);
        } else {
            self.runs[from] = merged;
            self.runs.drain(from + 1..to);
        }
    }

    /// Takes sectors off: they are on their way to the media, or were written past the cache.
    pub(super) fn remove(&mut self, lba: u64, sectors: u64) {
        let end = lba + sectors;
        let mut at = self.runs.partition_point(|r| r.end() <= lba);
        while let Some(&run) = self.runs.get(at).filter(|r| r.lba < end) {
            self.sectors -= run.sectors;
            self.runs.remove(at);
            let parts = [(run.lba, lba), (end, run.end())];
            for (from, to) in parts.into_iter().filter(|(from, to)| from < to) {
                let rest = Run {
                    lba: from,
                    sectors: to - from,
                    ready: run.ready,
                    since: run.since,
                };
                self.sectors += rest.sectors;
                self.runs.insert(at, rest);
                at += 1;
            }
        }
    }

    /// What begins at `lba`, the rest of a run of which a part is on its way, has its turn anew at `since`.
    pub(super) fn renew(&mut self, lba: u64, since: u64) {
        let at = self.runs.partition_point(|r| r.lba < lba);
        if let Some(run) = self.runs.get_mut(at).filter(|r| r.lba == lba) {
            run.since = since;
        }
    }

    /// The run that has been here for longest.
    pub(super) fn oldest(&self) -> Option<&Run> {
        self.runs.iter().min_by_key(|run| run.since)
    }

    /// Whether all of the sectors are here.
    pub(super) fn covers(&self, lba: u64, sectors: u64) -> bool {
        let at = self.runs.partition_point(|r| r.end() <= lba);
        self.runs
            .get(at)
            .is_some_and(|r| r.lba <= lba && lba + sectors <= r.end())
    }

    /// At most `count` runs around `lba`, half of them on each side, from the other end of the disk
    /// when one side has too few: those near the arm.
    pub(super) fn near(&self, lba: u64, count: usize) -> impl Iterator<Item = &Run> {
        let len = self.runs.len();
        let count = count.min(len);
        let middle = self.runs.partition_point(|r| r.lba < lba);
        let first = (middle + len - count / 2) % len.max(1);
        (0..count).map(move |i| &self.runs[(first + i) % len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn runs_are_the_set_of_dirty_sectors(steps in prop::collection::vec((any::<bool>(), 0_u64..200, 1_u64..40), 1..60)) {
            let (mut dirty, mut model) = (Dirty::default(), BTreeSet::new());
            for (add, lba, sectors) in steps {
                if add {
                    let run = Run { lba, sectors, ready: 0, since: 0 };
                    let new = (lba..lba + sectors).filter(|s| !model.contains(s)).count();
                    prop_assert_eq!(dirty.missing(&run), new as u64);
                    dirty.insert(run);
                    model.extend(lba..lba + sectors);
                } else {
                    dirty.remove(lba, sectors);
                    model.retain(|s| *s < lba || *s >= lba + sectors);
                }
                let kept: BTreeSet<u64> = dirty.runs().iter().flat_map(|r| r.lba..r.end()).collect();
                prop_assert_eq!(&kept, &model);
                prop_assert_eq!(dirty.sectors(), model.len() as u64);
                prop_assert!(dirty.runs().windows(2).all(|w| w[0].end() < w[1].lba));
                let all = (lba..lba + sectors).all(|s| model.contains(&s));
                prop_assert_eq!(dirty.covers(lba, sectors), all);
                prop_assert_eq!(dirty.near(lba, 8).count(), dirty.runs().len().min(8));
            }
        }
    }
}

//! Where the blocks of one file lie: runs that are contiguous in the file and on the device.
use super::space::Run;
use std::collections::BTreeMap;

/// A run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    /// First block in the file.
    pub at: u64,
    /// First block on the device.
    pub dev: u64,
    /// Blocks.
    pub len: u64,
}

/// The runs of a file, by their place in the file. Neighbours that continue each other are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    map: BTreeMap<u64, (u64, u64)>,
    /// Behind the last of them: a sequential writer asks for what is not there.
    end: u64,
    /// The run that was looked at last: sequential access finds it again.
    last: Option<Mapped>,
}

impl Runs {
    /// Number of runs.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// The run from `at` on: what is left of the one that holds it, or the first after it.
    #[inline]
    pub(super) fn from(&mut self, at: u64) -> Option<Mapped> {
        if let Some(run) = self.last
            && run.at <= at
            && at < run.at + run.len
        {
            return Some(rest(run, at));
        }
        if at >= self.end {
            return None;
        }
        let run = self.look(at)?;
        self.last = Some(run);
        Some(if run.at < at { rest(run, at) } else { run })
    }

    fn look(&self, at: u64) -> Option<Mapped> {
        let run = |(&at, &(dev, len)): (&u64, &(u64, u64))| Mapped { at, dev, len };
        self.map
            .range(..=at)
            .next_back()
            .map(run)
            .filter(|run| at < run.at + run.len)
            .or_else(|| self.map.range(at..).next().map(run))
    }

    /// The whole run that holds a block.
    pub(super) fn holding(&self, at: u64) -> Option<Mapped> {
        self.look(at).filter(|run| run.at <= at)
    }

    /// Where one block lies.
    #[inline]
    pub(super) fn get(&mut self, at: u64) -> Option<u64> {
        self.from(at).filter(|run| run.at == at).map(|run| run.dev)
    }

    /// Adds a run where there was none.
    pub(super) fn insert(&mut self, mut new: Mapped) {
        // A sequential writer continues the last run of the file.
        if new.at == self.end
            && let Some(mut last) = self.map.last_entry()
        {
            let at = *last.key();
            let (dev, len) = last.get_mut();
            if *dev + *len == new.dev {
                *len += new.len;
                self.end += new.len;
                let (dev, len) = (*dev, *len);
                self.last = Some(Mapped { at, dev, len });
                return;
            }
        }
        self.end = self.end.max(new.at + new.len);
        self.last = None;
        // Files are mostly written from front to back: what lies behind all others has none behind it.
        let end = self.map.last_key_value();
        let is_last = end.is_none_or(|(&at, _)| at < new.at);
        let before = match is_last {
            true => end,
            false => self.map.range(..new.at).next_back(),
        };
        if let Some((&at, &(dev, len))) = before {
            debug_assert!(at + len <= new.at, "mapped twice");
            if at + len == new.at && dev + len == new.dev {
                new = Mapped {
                    at,
                    dev,
                    len: len + new.len,
                };
            }
        }
        if !is_last
            && let Some(&(dev, len)) = self.map.get(&(new.at + new.len))
            && new.dev + new.len == dev
        {
            self.map.remove(&(new.at + new.len));
            new.len += len;
        }
        self.map.insert(new.at, (new.dev, new.len));
        self.last = Some(new);
    }

    /// Takes the blocks `[at, end)` out; what they occupied is added to `freed`.
    pub(super) fn carve(&mut self, at: u64, end: u64, freed: &mut Vec<Run>) {
        self.last = None;
        if self.end <= at {
            return;
        }
        while let Some(run) = self.look(at).filter(|run| run.at < end) {
            let from = run.at.max(at);
            let to = (run.at + run.len).min(end);
            self.map.remove(&run.at);
            if run.at < from {
                self.map.insert(run.at, (run.dev, from - run.at));
            }
            if to < run.at + run.len {
                let dev = run.dev + (to - run.at);
                self.map.insert(to, (dev, run.at + run.len - to));
            }
            freed.push(Run {
                start: run.dev + (from - run.at),
                len: to - from,
            });
        }
        let end_of = |(&at, &(_, len)): (&u64, &(u64, u64))| at + len;
        self.end = self.map.last_key_value().map_or(0, end_of);
    }

    /// All runs, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = Mapped> + '_ {
        self.map
            .iter()
            .map(|(&at, &(dev, len))| Mapped { at, dev, len })
    }
}

fn rest(run: Mapped, at: u64) -> Mapped {
    Mapped {
        at,
        dev: run.dev + (at - run.at),
        len: run.at + run.len - at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_that_continue_each_other_are_one() {
        let mut runs = Runs::default();
        let add = |runs: &mut Runs, at, dev, len| runs.insert(Mapped { at, dev, len });
        add(&mut runs, 0, 100, 10);
        add(&mut runs, 20, 120, 10);
        add(&mut runs, 10, 110, 10);
        assert_eq!(runs.len(), 1);
        add(&mut runs, 30, 500, 1);
        assert_eq!(runs.len(), 2);
        assert_eq!(runs.get(29), Some(129));
        assert_eq!(runs.get(30), Some(500));
        assert_eq!(runs.get(31), None);
    }

    proptest! {
        /// Against a plain table of blocks.
        #[test]
        fn as_a_table_of_blocks(
            steps in proptest::collection::vec((0_u64..200, 1_u64..40, 0_u64..1000, any::<bool>()), 1..60),
        ) {
            let mut table = [None; 256];
            let mut runs = Runs::default();
            for (at, len, dev, out) in steps {
                let end = (at + len).min(256);
                let mut freed = Vec::new();
                runs.carve(at, end, &mut freed);
                let expected = table[at as usize..end as usize].iter().flatten().count() as u64;
                prop_assert_eq!(freed.iter().map(|run| run.len).sum::<u64>(), expected);
                table[at as usize..end as usize].fill(None);
                if !out {
                    runs.insert(Mapped { at, dev, len: end - at });
                    for block in at..end {
                        table[block as usize] = Some(dev + block - at);
                    }
                }
                for block in 0..256 {
                    prop_assert_eq!(runs.get(block), table[block as usize]);
                }
            }
            let continues = |pair: &[Mapped]| {
                pair[0].at + pair[0].len == pair[1].at && pair[0].dev + pair[0].len == pair[1].dev
            };
            let all: Vec<Mapped> = runs.iter().collect();
            prop_assert!(!all.windows(2).any(continues));
        }
    }
}

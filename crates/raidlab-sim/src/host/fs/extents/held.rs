//! Extents of btrfs: what of them is in use, and what of the trees a transaction touches.
//!
//! An extent is free when nothing of it is in use any more, and not before (`btrfs_free_extent`): what is written over within one
//! keeps its place. A transaction copies every leaf in which it changed an item (docs/validation/prediction.md has what Linux 6.18
//! wrote). Items that are added side by side fill their leaves; those that are changed here and there lie in any leaf, each as
//! likely as the other.
use super::super::space::Run;
use super::tree_log::{CHECKSUM, HEADER, ITEM};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an item of the tree of extents (`struct btrfs_extent_item` and an inline reference of a file's data).
pub(super) const IN_TREE: u64 = ITEM + 24 + 29;
/// How full leaves are that were filled in any order: ln 2.
const FILL: f64 = std::f64::consts::LN_2;

/// Extents of one size next to each other that are wholly in use; or one of which some is.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    len: u64,
    each: u64,
    live: u64,
    /// The transaction that changed it last, if it is one extent.
    changed: u64,
}

/// All extents of files' data.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    map: BTreeMap<u64, Stretch>,
    /// Their number, and the blocks in use.
    count: u64,
    live: u64,
    /// Of these extents the ones that the running transaction added, and those of before whose items it changed or took away.
    added: u64,
    changed: u64,
    gone: u64,
    /// Blocks whose checksums a leaf has when it is full, and the leaves with those of what is gone, by such numbers of blocks.
    sums: u64,
    unsummed: BTreeSet<u64>,
}

impl Held {
    /// Of blocks and nodes of so many bytes.
    pub(super) fn new(block: u64, node: u64) -> Self {
        let block_sums = (block / 4096).max(1) * CHECKSUM;
        Self {
            sums: (node.saturating_sub(HEADER) / block_sums).max(1),
            ..Self::default()
        }
    }

    /// A new extent.
    pub(super) fn add(&mut self, run: Run) {
        (self.count, self.live) = (self.count + 1, self.live + run.len);
        self.added += 1;
        if let Some((start, before)) = self.map.range_mut(..run.start).next_back()
            && start + before.len == run.start
            && before.each == run.len
            && before.live == before.len
        {
            (before.len, before.live) = (before.len + run.len, before.live + run.len);
            return;
        }
        let new = Stretch {
            len: run.len,
            each: run.len,
            live: run.len,
            changed: 0,
        };
        self.map.insert(run.start, new);
    }

    /// Blocks are used no longer; what is free by that is added to `freed`. What is no extent of a file is free at once.
    pub(super) fn release(&mut self, run: Run, transaction: u64, freed: &mut Vec<Run>) {
        let mut at = run.start;
        while at < run.end() {
            let held = self.map.range(..=at).next_back().map(|(s, e)| (*s, *e));
            let held = held.filter(|(start, stretch)| at < start + stretch.len);
            at = match held {
                Some(held) => self.release_of(held, (at, run.end()), transaction, freed),
                None => {
                    let next = self.map.range(at..run.end()).next();
                    let to = next.map_or(run.end(), |(start, _)| *start);
                    freed.push(Run {
                        start: at,
                        len: to - at,
                    });
                    to
                }
            };
        }
    }

    /// The first of these blocks, which are of a stretch: all extents of it that they cover, or what they have of the first.
    fn release_of(
        &mut self,
        (start, stretch): (u64, Stretch),
        (at, end): (u64, u64),
        transaction: u64,
        freed: &mut Vec<Run>,
    ) -> u64 {
        let each = stretch.each;
        let first = start + (at - start) / each * each;
        if at == first && end >= first + each && stretch.live == stretch.len {
            let to = (start + (end - start) / each * each).min(start + stretch.len);
            let (blocks, number) = (to - first, (to - first) / each);
            self.cut(start, stretch, first, to);
            self.free(first, to, freed);
            (self.count, self.live) = (self.count - number, self.live - blocks);
            (self.changed, self.gone) = (self.changed + number, self.gone + number);
            return to;
        }
        let to = end.min(first + each);
        self.cut(start, stretch, first, first + each);
        let mut one = match stretch.len == each {
            true => stretch,
            false => Stretch {
                len: each,
                each,
                live: each,
                changed: 0,
            },
        };
        (one.live, self.live) = (one.live - (to - at), self.live - (to - at));
        self.changed += u64::from(one.changed != transaction);
        one.changed = transaction;
        if one.live == 0 {
            self.free(first, first + each, freed);
            (self.count, self.gone) = (self.count - 1, self.gone + 1);
        } else {
            self.map.insert(first, one);
        }
        to
    }

    /// Whole extents are free, and their checksums go.
    fn free(&mut self, start: u64, end: u64, freed: &mut Vec<Run>) {
        let len = end - start;
        freed.push(Run { start, len });
        self.unsummed
            .extend(start / self.sums..=(end - 1) / self.sums);
    }

    /// Takes `[from, to)` out of a stretch; what is before and behind stays.
    fn cut(&mut self, start: u64, stretch: Stretch, from: u64, to: u64) {
        self.map.remove(&start);
        for (begin, end) in [(start, from), (to, start + stretch.len)] {
            if begin < end {
                let part = Stretch {
                    len: end - begin,
                    live: end - begin,
                    ..stretch
                };
                self.map.insert(begin, part);
            }
        }
    }

    /// The transaction has ended.
    pub(super) fn end(&mut self) {
        (self.added, self.changed, self.gone) = (0, 0, 0);
        self.unsummed.clear();
    }

    /// Leaves of nodes of so many bytes in which the running transaction changed items that were there: of the tree of extents, and
    /// of that of checksums. What has nothing left in it is not written.
    pub(super) fn touched(&self, node: u64) -> u64 {
        let left = self.count.saturating_sub(self.added);
        let before = leaves((left + self.gone) * IN_TREE, node);
        let holds = |leaf: &&u64| {
            let before = self.map.range(..(**leaf + 1) * self.sums).next_back();
            before.is_some_and(|(start, held)| start + held.len > **leaf * self.sums)
        };
        let sums = self.unsummed.iter().filter(holds).count() as u64;
        touched(before, self.changed).min(left) + sums
    }

    /// Leaves of both trees.
    pub(super) fn leaves(&self, node: u64, block: u64) -> u64 {
        let sums = self.live * block / 4096 * CHECKSUM;
        libm::ceil(leaves(self.count * IN_TREE + sums, node)) as u64
    }
}

/// Bytes of a leaf that items have.
fn room(node: u64) -> f64 {
    (node - HEADER) as f64
}

/// Leaves of so many bytes of items, filled in any order.
pub(super) fn leaves(bytes: u64, node: u64) -> f64 {
    bytes as f64 / (room(node) * FILL)
}

/// Leaves that have at least one of so many places.
pub(super) fn touched(leaves: f64, places: u64) -> u64 {
    let leaves = leaves.max(1.0);
    let hit = leaves * (1.0 - libm::exp(-(places as f64) / leaves));
    libm::ceil(hit.min(places as f64) - 1e-9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_extent_is_free_when_nothing_of_it_is_in_use() {
        let mut held = Held::new(4096, 16_384);
        let run = |start, len| Run { start, len };
        (0..4).for_each(|nth| held.add(run(100 + 32 * nth, 32)));
        let mut freed = Vec::new();
        held.release(run(110, 5), 1, &mut freed);
        held.release(run(130, 2), 1, &mut freed);
        assert!(freed.is_empty());
        assert_eq!((held.count, held.changed, held.gone), (4, 1, 0));
        // The rest of the first, all of the second, some of the third; and what is no extent.
        held.release(run(100, 10), 1, &mut freed);
        held.release(run(115, 15), 2, &mut freed);
        held.release(run(132, 33), 2, &mut freed);
        assert_eq!(freed, [run(100, 32), run(132, 32)]);
        assert_eq!((held.count, held.changed, held.gone), (2, 4, 2));
        held.release(run(220, 20), 2, &mut freed);
        assert_eq!(freed[2..], [run(228, 12)]);
    }

    #[test]
    fn places_hit_as_many_leaves_as_there_are_at_most() {
        assert_eq!(touched(100.0, 0), 0);
        assert_eq!(touched(0.01, 3), 1);
        assert_eq!(touched(100.0, 1), 1);
        assert_eq!(touched(100.0, 100), 64);
        assert_eq!(touched(100.0, 100_000), 100);
    }

    proptest! {
        /// Against a table that knows the extent of every block.
        #[test]
        fn as_a_table_of_blocks(
            sizes in proptest::collection::vec(1_u64..6, 1..40),
            steps in proptest::collection::vec((0_u64..120, 1_u64..30), 1..40),
        ) {
            let mut held = Held::new(4096, 16_384);
            let mut table = Vec::new();
            for (number, len) in sizes.into_iter().enumerate() {
                // Every third is three of one size.
                let times = if number % 3 == 0 { 3 } else { 1 };
                for nth in 0..times {
                    held.add(Run { start: table.len() as u64, len });
                    table.extend((0..len).map(|_| Some((number, nth))));
                }
            }
            let all = table.clone();
            let mut free = 0;
            for (at, len) in steps {
                let (at, end) = (at.min(all.len() as u64), (at + len).min(all.len() as u64));
                for block in at..end {
                    if table[block as usize].take().is_some() {
                        let mut freed = Vec::new();
                        held.release(Run { start: block, len: 1 }, 1, &mut freed);
                        free += freed.iter().map(|run| run.len).sum::<u64>();
                    }
                }
                let gone = all.iter().flatten().filter(|e| !table.contains(&Some(**e))).count();
                prop_assert_eq!(free, gone as u64);
                prop_assert_eq!(held.live, table.iter().flatten().count() as u64);
                let mut left: Vec<_> = table.iter().flatten().collect();
                left.dedup();
                prop_assert_eq!(held.count, left.len() as u64);
            }
        }

        /// What goes at once is what goes block by block.
        #[test]
        fn as_block_by_block(
            sizes in proptest::collection::vec((1_u64..6, 1_u64..4), 1..20),
            at in 0_u64..60, len in 1_u64..60,
        ) {
            let (mut one, mut all, mut end) = (Held::new(4096, 16_384), Held::new(4096, 16_384), 0);
            for (len, times) in sizes {
                for _ in 0..times {
                    one.add(Run { start: end, len });
                    all.add(Run { start: end, len });
                    end += len;
                }
            }
            let (mut by_one, mut at_once) = (Vec::new(), Vec::new());
            let (at, to) = (at.min(end - 1), (at + len).min(end));
            for block in at..to.max(at + 1) {
                one.release(Run { start: block, len: 1 }, 1, &mut by_one);
            }
            all.release(Run { start: at, len: to.max(at + 1) - at }, 1, &mut at_once);
            let sum = |runs: &[Run]| runs.iter().map(|run| run.len).sum::<u64>();
            prop_assert_eq!(sum(&by_one), sum(&at_once));
            let of = |held: &Held| (held.count, held.live, held.changed, held.gone);
            prop_assert_eq!(of(&one), of(&all));
        }
    }
}

//! Free space of a device in groups: block groups, allocation groups, metaslabs.
//!
//! A group that nothing was taken from takes no memory: its free space follows from its number. So a
//! fresh file system of any size costs nothing, and one that is written sequentially costs a few
//! words a group.
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// A run of blocks on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// First block.
    pub start: u64,
    /// Blocks, at least 1.
    pub len: u64,
}

impl Run {
    /// Block after the last.
    pub(super) const fn end(self) -> u64 {
        self.start + self.len
    }
}

/// What a group keeps for itself.
pub(super) trait Shape {
    /// Blocks at the start of the group that are never given out.
    fn prefix(&self, group: u64) -> u64;
}

/// Groups that keep nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bare;

impl Shape for Bare {
    fn prefix(&self, _: u64) -> u64 {
        0
    }
}

/// Free space.
#[derive(Clone, Debug)]
pub(super) struct Space<S> {
    shape: S,
    /// Blocks of the device.
    blocks: u64,
    /// Blocks of a group; the last may have fewer.
    group: u64,
    /// Where groups of unlike sizes begin, the first at 0; empty: they are alike.
    begins: Vec<u64>,
    /// Blocks of a row of each of these, 0 of one without; empty: none has rows.
    rows: Vec<u64>,
    /// Free blocks.
    free: u64,
    /// Free runs of the groups that were touched, sorted, none next to another.
    touched: BTreeMap<u64, Vec<Run>>,
}

impl<S: Shape> Space<S> {
    /// All free but the prefixes.
    pub(super) fn new(shape: S, blocks: u64, group: u64) -> Self {
        Self::with(shape, blocks, group, Vec::new())
    }

    /// The same of groups that begin there, the first at 0, and the blocks of a row of each.
    pub(super) fn uneven(shape: S, blocks: u64, groups: Vec<(u64, u64)>) -> Self {
        let groups = groups.into_iter().filter(|(begin, _)| *begin < blocks);
        let (begins, rows): (_, Vec<u64>) = groups.unzip();
        let mut space = Self::with(shape, blocks, blocks, begins);
        if rows.iter().any(|row| *row > 0) {
            space.rows = rows;
        }
        space
    }

    fn with(shape: S, blocks: u64, group: u64, begins: Vec<u64>) -> Self {
        let mut space = Self {
            shape,
            blocks,
            group,
            begins,
            rows: Vec::new(),
            free: 0,
            touched: BTreeMap::new(),
        };
        space.free = (0..space.groups())
            .filter_map(|g| space.fresh(g))
            .map(|run| run.len)
            .sum();
        space
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> u64 {
        match self.begins.len() {
            0 => self.blocks.div_ceil(self.group),
            uneven => uneven as u64,
        }
    }

    /// The group of a block.
    pub(super) fn group_of(&self, block: u64) -> u64 {
        match self.begins.len() {
            0 => block / self.group,
            _ => self.begins.partition_point(|begin| *begin <= block) as u64 - 1,
        }
    }

    /// First block of a group.
    pub(super) fn start_of(&self, group: u64) -> u64 {
        match self.begins.len() {
            0 => group * self.group,
            _ => self
                .begins
                .get(group as usize)
                .copied()
                .unwrap_or(self.blocks),
        }
    }

    /// Whether some groups have rows.
    pub(super) const fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Blocks of a row of a group, 0 without rows.
    fn row_of(&self, group: u64) -> u64 {
        self.rows.get(group as usize).copied().unwrap_or(0)
    }

    /// Blocks of the device.
    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Free blocks.
    pub(super) const fn free(&self) -> u64 {
        self.free
    }

    /// Free space of an untouched group.
    fn fresh(&self, group: u64) -> Option<Run> {
        let start = self.start_of(group) + self.shape.prefix(group);
        let end = self.start_of(group + 1).min(self.blocks);
        (start < end).then(|| Run {
            start,
            len: end - start,
        })
    }

    /// Free runs of a group, made real.
    fn runs(&mut self, group: u64) -> &mut Vec<Run> {
        let fresh = self.fresh(group);
        self.touched
            .entry(group)
            .or_insert_with(|| fresh.into_iter().collect())
    }

    /// Takes up to `want` blocks in one run: at `goal` or the next free place after it in its group,
    /// else in the groups after it in turn, at last from the start of its own group.
    pub(super) fn take(&mut self, goal: u64, want: u64) -> Option<Run> {
        self.take_from(goal, want, 1)
    }

    /// The same of runs that begin at a multiple of `align`.
    pub(super) fn take_from(&mut self, goal: u64, want: u64, align: u64) -> Option<Run> {
        if self.free == 0 || want == 0 {
            return None;
        }
        let groups = self.groups();
        let goal = if goal < self.blocks { goal } else { 0 };
        let first = self.group_of(goal);
        (0..=groups).find_map(|i| {
            let (group, from) = ((first + i) % groups, if i == 0 { goal } else { 0 });
            let runs = self.runs(group);
            let after = &runs[runs.partition_point(|run| run.end() <= from)..];
            let start = |run: &Run| run.start.max(from).next_multiple_of(align);
            let run = after.iter().find(|run| start(run) < run.end())?;
            let start = start(run);
            self.take_in(group, start, want)
        })
    }

    /// Takes `want` blocks where they have room in one run: at `goal` or the first such place after it in its group, else in
    /// the groups after it in turn, at last from the start of its own group. Where nothing has room for them, as many as have,
    /// and at most half of them. As many as a row has, or more, begin with one (`find_free_space`, `full_stripe_len`).
    pub(super) fn take_whole(&mut self, goal: u64, want: u64) -> Option<Run> {
        let groups = self.groups();
        let goal = if goal < self.blocks { goal } else { 0 };
        let first = self.group_of(goal);
        let mut len = want;
        while len > 0 && self.free > 0 {
            let mut largest = 0;
            for i in 0..=groups {
                let (group, from) = ((first + i) % groups, if i == 0 { goal } else { 0 });
                let (base, row) = (self.start_of(group), self.row_of(group));
                let runs = self.runs(group);
                let after = &runs[runs.partition_point(|run| run.end() <= from)..];
                let start = |run: &Run| match run.start.max(from) {
                    start if row > 0 && len >= row => base + (start - base).next_multiple_of(row),
                    start => start,
                };
                let room = |run: &Run| run.end().saturating_sub(start(run));
                if let Some(run) = after.iter().find(|run| room(run) >= len) {
                    let start = start(run);
                    return self.take_in(group, start, len);
                }
                largest = after.iter().map(room).fold(largest, u64::max);
            }
            len = (len / 2).min(largest);
        }
        None
    }

    /// Takes up to `want` blocks in one run of this group, at or after `goal`.
    pub(super) fn take_in(&mut self, group: u64, goal: u64, want: u64) -> Option<Run> {
        let runs = self.runs(group);
        let at = runs.partition_point(|run| run.end() <= goal);
        let run = *runs.get(at)?;
        let start = run.start.max(goal);
        let len = want.min(run.end() - start);
        let (before, after) = (start - run.start, run.end() - start - len);
        let rest = Run {
            start: start + len,
            len: after,
        };
        match (before, after) {
            (0, 0) => {
                runs.remove(at);
            }
            (0, _) => runs[at] = rest,
            (_, 0) => runs[at].len = before,
            (..) => {
                runs[at].len = before;
                runs.insert(at + 1, rest);
            }
        }
        self.free -= len;
        Some(Run { start, len })
    }

    /// Takes exactly `len` blocks that begin at `goal` and end in its group. `None` when they are not free.
    pub(super) fn take_here(&mut self, goal: u64, len: u64) -> Option<Run> {
        if goal >= self.blocks {
            return None;
        }
        let group = self.group_of(goal);
        let runs = self.runs(group);
        let run = runs.get(runs.partition_point(|run| run.end() <= goal))?;
        let fits = run.start <= goal && goal + len <= run.end();
        fits.then(|| self.take_in(group, goal, len)).flatten()
    }

    /// Takes exactly `len` blocks, a power of two, as a buddy allocator has them: the beginning of the smallest buddy that has room
    /// in the group of `goal`, of several of a size the first; else in the groups after it in turn. `None` when there is none.
    pub(super) fn take_aligned(&mut self, goal: u64, len: u64) -> Option<Run> {
        let groups = self.groups();
        let first = self.group_of(goal.min(self.blocks - 1));
        (0..groups).find_map(|i| {
            let group = (first + i) % groups;
            let base = self.start_of(group);
            let runs = self.runs(group).iter().filter(|run| run.len >= len);
            let of_run = |run: &Run| buddy(run.start - base, run.end() - base, len);
            let (_, start) = runs.filter_map(of_run).min()?;
            self.take_in(group, base + start, len)
        })
    }

    /// Takes exactly `len` blocks in one run of this group that begins at a multiple of `align`: in the free run that holds
    /// `cursor`, or the first after it that has room, as far in front as can be. `None` when none has, from there on.
    pub(super) fn take_exact(
        &mut self,
        group: u64,
        cursor: u64,
        len: u64,
        align: u64,
    ) -> Option<Run> {
        let runs = self.runs(group);
        let from = runs.partition_point(|run| run.end() <= cursor);
        let fits = |run: &&Run| run.start.next_multiple_of(align) + len <= run.end();
        let start = runs[from..].iter().find(fits)?.start;
        self.take_in(group, start.next_multiple_of(align), len)
    }

    /// Free blocks of a group.
    pub(super) fn free_in(&self, group: u64) -> u64 {
        match self.touched.get(&group) {
            Some(runs) => runs.iter().map(|run| run.len).sum(),
            None => self.fresh(group).map_or(0, |run| run.len),
        }
    }

    /// Blocks of a stretch of one group that are not free, prefixes among them.
    pub(super) fn taken(&self, start: u64, len: u64) -> u64 {
        let group = self.group_of(start);
        let shared = |run: &Run| {
            let (from, end) = (run.start.max(start), run.end().min(start + len));
            end.saturating_sub(from)
        };
        let free: u64 = match self.touched.get(&group) {
            Some(runs) => {
                let first = runs.partition_point(|run| run.end() <= start);
                let near = runs[first..].iter();
                near.take_while(|run| run.start < start + len)
                    .map(shared)
                    .sum()
            }
            None => self.fresh(group).as_ref().map_or(0, shared),
        };
        len - free
    }

    /// Gives blocks back; they must have been taken.
    pub(super) fn give(&mut self, mut run: Run) {
        self.free += run.len;
        while run.len > 0 {
            let group = self.group_of(run.start);
            let here = run.len.min(self.start_of(group + 1) - run.start);
            let part = Run {
                start: run.start,
                len: here,
            };
            insert(self.runs(group), part);
            run = Run {
                start: run.start + here,
                len: run.len - here,
            };
        }
    }
}

/// Size and beginning of the smallest buddy of the free blocks `from..end` that has room for `len`; of several of a size the first.
fn buddy(from: u64, end: u64, len: u64) -> Option<(u64, u64)> {
    let mut at = from.next_multiple_of(len);
    let mut best: Option<(u64, u64)> = None;
    while at + len <= end {
        // A free buddy is as large as its beginning is aligned, and as there is room.
        let aligned = 1_u64 << at.trailing_zeros().min(62);
        let size = aligned.min(1 << (end - at).ilog2());
        if best.is_none_or(|(least, _)| size < least) {
            best = Some((size, at));
        }
        at += size;
    }
    best
}

/// Adds a run to a sorted list, joining neighbours.
fn insert(runs: &mut Vec<Run>, run: Run) {
    let at = runs.partition_point(|r| r.start < run.start);
    debug_assert!(
        at == 0 || runs[at - 1].end() <= run.start,
        "given back twice"
    );
    debug_assert!(
        at == runs.len() || run.end() <= runs[at].start,
        "given back twice"
    );
    let joins_next = at < runs.len() && run.end() == runs[at].start;
    if at > 0 && runs[at - 1].end() == run.start {
        runs[at - 1].len += run.len;
        if joins_next {
            runs[at - 1].len += runs[at].len;
            runs.remove(at);
        }
    } else if joins_next {
        runs[at].start = run.start;
        runs[at].len += run.len;
    } else {
        runs.insert(at, run);
    }
}

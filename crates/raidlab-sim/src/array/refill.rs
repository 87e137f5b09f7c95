//! Resyncs, rebuilds and resilvers of a whole array, as whoever runs or leaps through them sees them: how far they are, how
//! fast, and how they are held, limited and taken for done.
use super::node::{Node, Shape};
use super::resync;
use super::{Array, parity};
use crate::block::{Extent, Progress, Refill, Watch};
use raidlab_core::time::{Instant, Span};
use std::ops::ControlFlow;

impl Array {
    /// How far resync or rebuild are, added over the arrays of the tree that have one; `None` when
    /// everything agrees.
    #[must_use]
    pub fn resync(&self) -> Option<Progress> {
        let nodes = self.nodes.iter();
        Progress::sum(nodes.filter_map(|node| node.progress(self.core.now)))
    }

    /// The same, of which only what is done is told: it is asked for after every event, and a rate takes a long division.
    #[must_use]
    pub fn resync_done(&self) -> Option<u64> {
        self.nodes
            .iter()
            .filter_map(Node::done)
            .reduce(|sum, more| sum + more)
    }

    /// Whether vdevs of ZFS or an array of btrfs have new members and wait to be told what those lack: see
    /// [`Self::begin_resilver`].
    #[must_use]
    pub fn awaits_resilver(&self) -> bool {
        self.nodes.iter().any(Node::awaits_resilver)
    }

    /// Vdevs of ZFS with new members begin at `now` to fill them with what lies in `extents`, in the order of a walk through
    /// the tree of blocks, when [`Self::let_fill`] lets them; each vdev with what lies in it. An array of btrfs fills its new member at
    /// once, with what lies at these addresses.
    ///
    /// `watch` is asked now and then, and may end it: `Break`, and nothing can be made of the array any more.
    pub fn begin_resilver(
        &mut self,
        now: Instant,
        mut extents: Vec<Extent>,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        self.core.now = now;
        let ends = self
            .nodes
            .first()
            .and_then(Node::vdev_ends)
            .map(<[u64]>::to_vec);
        let ends = ends.unwrap_or_else(|| vec![self.sectors]);
        let first = self.nodes.len() - ends.len();
        for (number, end) in ends.iter().enumerate() {
            let begin = number.checked_sub(1).map_or(0, |before| ends[before]);
            let node = &mut self.nodes[first + number];
            if !node.awaits_resilver() {
                continue;
            }
            let own = match ends.len() {
                // There may be millions of them.
                1 => std::mem::take(&mut extents),
                _ => within(&extents, begin..*end),
            };
            if matches!(node.shape, Shape::Btrfs(_)) {
                let how = (self.copying, self.member_requests);
                node.begin_replace(&self.core, how, own, watch)?;
            } else {
                node.begin_resilver(&self.core, self.scan, own, ends.len() as u64, watch)?;
            }
            self.resyncs = true;
        }
        self.work();
        ControlFlow::Continue(())
    }

    /// There is a resilver, which does something when [`Self::let_fill`] lets it.
    #[must_use]
    pub fn resilvers(&self) -> bool {
        self.resyncs && self.nodes.iter().any(|node| node.resilver.is_some())
    }

    /// Resilvers go on from `now` on, or begin with nothing more; see [`Self::fill_rests`]. When all has been read that says where
    /// blocks are they go no further by themselves: since 0.8 blocks are for the next transaction group.
    pub fn let_fill(&mut self, now: Instant, on: bool) {
        self.core.now = now;
        let resilvers = self
            .nodes
            .iter_mut()
            .filter_map(|node| node.resilver.as_mut());
        resilvers.for_each(|resilver| resilver.turn(on));
        self.work();
    }

    /// Nothing of a resilver is under way, nor will be before it is let.
    #[must_use]
    pub fn fill_rests(&self) -> bool {
        let mut resilvers = self.nodes.iter().filter_map(|node| node.resilver.as_ref());
        resilvers.all(|resilver| resilver.rests())
    }

    /// Of btrfs that replaces members the chunk that is being copied: its first sector, and the one after its last. Until it is done
    /// nothing new is put there (`btrfs_inc_block_group_ro`).
    #[must_use]
    pub fn copying(&self) -> Option<(u64, u64)> {
        let root = self.nodes.first()?;
        root.replace.as_ref()?.chunk()
    }

    /// When the last resilver ended; `None` while there is one, or when there was none.
    #[must_use]
    pub fn resilvered(&self) -> Option<Instant> {
        self.core.resilvered.filter(|_| !self.resyncs)
    }

    /// How many sectors every resync or rebuild has gone through at least, counted as [`Progress`] does for one array of the
    /// tree, in whichever order they came to their end: the first that has not may be a hundred MiB behind, and makes no pace.
    #[must_use]
    pub fn resync_position(&self) -> Option<u64> {
        let of = self.nodes.iter().filter_map(|node| node.resync.as_ref());
        of.map(resync::Resync::through).min()
    }

    /// Resync and rebuild send nothing more; what is in flight ends. See [`Self::resync_skip`].
    pub fn resync_pause(&mut self, now: Instant) {
        self.core.now = now;
        for node in &mut self.nodes {
            node.pause(&mut self.core, true);
        }
        self.work();
    }

    /// They go on, at `now`.
    pub fn resync_resume(&mut self, now: Instant) {
        self.core.now = now;
        for node in &mut self.nodes {
            node.pause(&mut self.core, false);
        }
        self.work();
    }

    /// They go at most so fast from `now` on, bytes a second. The speed before counts no more. With `None` as fast as
    /// they can, and stripe caches keep their sizes, so that there is a pace to be found.
    pub fn resync_limit(&mut self, now: Instant, most: Option<u64>) {
        self.core.now = now;
        for node in &mut self.nodes {
            node.limit(&self.core, most);
        }
        self.work();
    }

    /// Rows of all stripe caches that grow; `None` when there are none. While a resync makes one grow, it has no pace.
    #[must_use]
    pub fn growing_rows(&self) -> Option<u64> {
        let parities = self.nodes.iter().filter_map(Node::parity);
        let rows = parities.filter_map(parity::ParityArray::growing_rows);
        rows.map(u64::from).reduce(|sum, rows| sum + rows)
    }

    /// Rows of the stripe cache of each parity array, in the order of the tree, and whether it may come to have more.
    pub fn stripe_caches(&self) -> impl Iterator<Item = (u32, bool)> {
        let parities = self.nodes.iter().filter_map(Node::parity);
        parities.map(parity::ParityArray::stripes)
    }

    /// Sectors that resyncs, rebuilds and resilvers have asked of disks, and which of these it was.
    #[must_use]
    pub const fn refilled(&self) -> (u64, Refill) {
        (self.core.refilled, self.refill)
    }

    /// Sectors of read-ahead for which stripe caches had no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let parities = self.nodes.iter().filter_map(Node::parity);
        parities.map(parity::ParityArray::refused).sum()
    }

    /// Bytes a second of the slowest, counted as [`Self::resync_position`] does.
    #[must_use]
    pub fn resync_rate(&self) -> Option<u64> {
        let of = self.nodes.iter().filter(|node| node.resync.is_some());
        of.filter_map(|node| Some(node.progress(self.core.now)?.rate))
            .min()
    }

    /// The sector at which they end, counted as [`Self::resync_position`] does.
    #[must_use]
    pub fn resync_end(&self) -> Option<u64> {
        let resyncs = self.nodes.iter().filter_map(|node| node.resync.as_ref());
        resyncs.map(|resync| resync.end).max()
    }

    /// Whether the one that is least far has filled a stripe cache, and waits for the clock's tick before it goes on.
    #[must_use]
    pub fn resync_naps(&self) -> bool {
        let of = self.nodes.iter().filter(|node| node.resync.is_some());
        let last = of.min_by_key(|node| node.common.front);
        last.is_some_and(|node| node.resync.as_ref().is_some_and(resync::Resync::naps))
    }

    /// Whether the one resync that there is waits for the stripe cache.
    #[inline]
    pub(super) fn waits_for_cache(&self) -> bool {
        #[cfg(test)]
        if self.asks_always {
            return false;
        }
        matches!(&self.nodes[..], [root] if root.waits_for_cache(self.core.now))
    }

    /// Whether they are paused and nothing of them is in flight.
    #[must_use]
    pub fn resync_drained(&self) -> bool {
        let mut resyncs = self.nodes.iter().filter_map(|node| node.resync.as_ref());
        resyncs.all(resync::Resync::skipping)
    }

    /// Takes everything up to sector `to` (as [`Self::resync_position`] counts; rounded down to 64 KiB)
    /// for resynced within the time `passed`, without a request. The position afterwards; `None` when
    /// that was the end.
    ///
    /// This is for whoever computes steady stretches in closed form. It asks for a pause, lets what is
    /// in flight end ([`Self::resync_drained`], otherwise only time is skipped), sets its own clock and
    /// disks forward by `passed`, calls this, and resumes. The speed control sees neither the sectors nor
    /// the time, as if both had not been, so that a limit holds before and after alike; that the limit
    /// holds between is the caller's business: it jumps at a rate that it has seen. Nothing else may be
    /// in flight.
    pub fn resync_skip(&mut self, to: u64, passed: Span) -> Option<u64> {
        for node in &mut self.nodes {
            node.skip(&mut self.core, to, passed);
        }
        self.work();
        self.resync_position()
    }
}

/// What lies in these sectors, counted from their first.
fn within(extents: &[Extent], sectors: std::ops::Range<u64>) -> Vec<Extent> {
    let own = extents.iter().filter(|e| sectors.contains(&e.start));
    let own = own.map(|e| Extent {
        start: e.start - sectors.start,
        ..*e
    });
    own.collect()
}

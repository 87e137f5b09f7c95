//! Arrays of the kernel: md levels, arrays of arrays, the vdevs of ZFS, and the chunks of btrfs.
//!
//! An [`Array`] does no I/O of its own. It takes requests ([`Array::submit`]), gives out what it wants
//! of its members ([`Array::take`]) and is told how that ended ([`Array::member_ended`]). It is a tree
//! of nodes; nearly always there is one. Where sectors are is `raidlab-layout`'s business; here is
//! what md does about time: which copy is read, when parity is computed, how a resync behaves.
//!
//! After each call of `submit`, `unplug`, `member_ended`, `fail` or `advance` there may be member
//! requests to take, and ends that `advance` hands over: [`Array::next_event`] is then not later than
//! the time of that call.
//!
//! Left out: write-mostly members, journals, reshaping, bad block lists.
mod bitmap;
mod btrfs;
mod build;
mod clean;
mod core;
mod mirror;
mod node;
mod order;
mod parity;
mod raidz;
mod refill;
mod replace;
mod resilver;
mod resync;
mod slab;
mod spec;
mod superblock;
mod threads;

pub use self::bitmap::BitmapSpec;
pub(crate) use self::bitmap::room as bitmap_room;
pub(crate) use self::build::fills_last;
pub use self::core::MemberBio;
pub(crate) use self::order::PARITY_REQUEST;
pub use self::resync::controlled;
pub use self::spec::{
    ArrayError, ArrayKind, ArraySpec, Checkpoints, Copying, Courtesy, Era, ParityCost,
    STRIPE_CACHE, SYNC_SPEED_MAX, SYNC_SPEED_MIN, SafeMode, Scan,
};
pub use self::superblock::SuperblockSpec;

use self::core::{Core, Up, Work};
use self::node::Node;
use crate::block::{Bio, Ended, Origin, Refill};
use crate::disk::DiskError;
use raidlab_core::time::Instant;

/// Later than anything.
const NEVER: Instant = Instant(u64::MAX);

/// An array above its members.
#[derive(Clone, Debug)]
pub struct Array {
    /// The tree, the array itself first; empty for a single member, which needs nothing done.
    nodes: Vec<Node>,
    core: Core,
    /// Some array of the tree has a resync.
    resyncs: bool,
    /// Some array of the tree has a bitmap.
    bitmaps: bool,
    /// What the state of the array has to do.
    refill: Refill,
    scan: Scan,
    copying: Copying,
    member_requests: u32,
    sectors: u64,
    /// The array of the tree that each member is in, and its role there.
    homes: Vec<(u16, u16)>,
    /// A resync is asked after each end whether it goes on, to compare.
    #[cfg(test)]
    asks_always: bool,
}

impl Array {
    /// An array in the state that `spec` says.
    ///
    /// # Errors
    /// [`ArrayError`]: failed members that the array does not have or does not survive; a state that
    /// needs redundancy where there is none; too small a stripe cache.
    pub fn new(spec: &ArraySpec) -> Result<Self, ArrayError> {
        build::array(spec)
    }

    /// Sectors of the array.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Members, counted through all arrays of the tree.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.homes.len()
    }

    /// Takes a request at `now`, which must not be earlier than any time given before.
    #[inline]
    pub fn submit(&mut self, now: Instant, bio: Bio) {
        self.core.now = now;
        if self.resyncs {
            self.core.others = Some(now);
        }
        if let [root, ..] = &mut self.nodes[..] {
            root.submit(&mut self.core, Up::Host(bio.id), &bio);
            self.work();
        } else {
            self.core.out.push(MemberBio { member: 0, bio });
        }
    }

    /// Whoever submitted waits now: what was held back for more to come starts.
    #[inline]
    pub fn unplug(&mut self, now: Instant) {
        self.core.now = now;
        for node in &mut self.nodes {
            node.unplug(&mut self.core);
        }
        self.work();
        self.write_bitmaps();
    }

    /// Whether a process reads the same of two copies whatever is busy, and each disk has copies of what another has and no more: of
    /// btrfs, where all chunks are on the same members.
    pub(crate) fn reads_apart(&self) -> bool {
        self.nodes.first().is_some_and(Node::reads_apart)
    }

    /// Whether threads of arrays ask members for what is written: of those with parity, and of mirrors before Linux 3.6.
    #[must_use]
    pub fn writes_by_thread(&self) -> bool {
        self.nodes.iter().any(Node::writes_by_thread)
    }

    /// Whether threads of arrays collect what is written that no submitter does: of those with parity, and of mirrors.
    pub(crate) fn collects_writes(&self) -> bool {
        self.nodes.iter().any(Node::collects_writes)
    }

    /// Whether a process that submits so waits for superblocks, or for a stripe of what it writes, with more that has none yet.
    pub(crate) fn sleeps(&self, origin: &Origin) -> bool {
        let mut parities = self.nodes.iter().filter_map(Node::parity);
        self.core.holds_writes() || parities.any(|of| of.sleeps(origin))
    }

    /// Moves the member requests that are wanted now to the end of `out`, in order.
    #[inline]
    pub fn take(&mut self, out: &mut Vec<MemberBio>) {
        if out.is_empty() {
            std::mem::swap(out, &mut self.core.out);
        } else {
            out.append(&mut self.core.out);
        }
    }

    /// The same one by one; whether there were any.
    #[inline]
    pub(crate) fn each_wanted(&mut self, mut each: impl FnMut(MemberBio)) -> bool {
        if self.core.out.is_empty() {
            return false;
        }
        for wanted in &self.core.out {
            each(*wanted);
        }
        self.core.out.clear();
        true
    }

    /// The member requests that are wanted now, in order, to be [taken](Self::wanted_is_taken) together.
    #[inline]
    pub(crate) fn wanted(&self) -> &[MemberBio] {
        &self.core.out
    }

    /// All that was [wanted](Self::wanted) has been brought to the members.
    #[inline]
    pub(crate) fn wanted_is_taken(&mut self) {
        self.core.out.clear();
    }

    /// A member request has ended. A member that answers [`DiskError::Failed`] is out for good.
    #[inline]
    pub fn member_ended(
        &mut self,
        now: Instant,
        member: u16,
        id: u64,
        result: Result<(), DiskError>,
    ) {
        self.core.now = now;
        if self.nodes.is_empty() {
            let at = now;
            return self.core.ended.push(Ended { id, at, result });
        }
        if result == Err(DiskError::Failed) {
            self.drop_member(member);
        }
        self.op_ended(id as u32, result);
        self.work();
        self.write_bitmaps();
    }

    /// `member` fails at `now`: it is not asked any more. Its requests in flight still end, by
    /// [`Self::member_ended`]. A member that the array does not have is ignored.
    pub fn fail(&mut self, now: Instant, member: u16) {
        self.core.now = now;
        self.drop_member(member);
        self.work();
    }

    /// When to call [`Self::advance`] next; `None` when nothing will happen by itself.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let next = self.next();
        (next != NEVER).then_some(next)
    }

    /// The same, later than anything when nothing will happen by itself.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        if !self.core.ended.is_empty() {
            return self.core.now;
        }
        self.next_by_itself()
    }

    /// When something happens beside handing over what has ended.
    #[inline]
    fn next_by_itself(&self) -> Instant {
        let next = self.core.clean_next();
        if self.is_quiet() {
            return next;
        }
        next.min(self.nodes_next())
    }

    fn nodes_next(&self) -> Instant {
        let nodes = self.nodes.iter();
        nodes.fold(NEVER, |next, node| next.min(node.next()))
    }

    /// Whether nothing will happen by itself, as mostly, but that what has ended is [handed over](Self::hand_over), and that it
    /// [becomes clean](Self::becomes_clean): an array of disks without a resync that waits for nothing but them.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        let quiet =
            matches!(&self.nodes[..], [root] if root.is_quiet()) && self.core.work.is_empty();
        debug_assert!(
            !quiet || self.nodes_next() == NEVER,
            "it would do something"
        );
        quiet
    }

    /// When it is to look whether it is clean; later than anything when it is not to.
    #[inline]
    pub(crate) fn becomes_clean(&self) -> Instant {
        self.core.clean_next()
    }

    /// Appends what has ended, of a [quiet](Self::is_quiet) array.
    #[inline]
    pub(crate) fn hand_over(&mut self, done: &mut Vec<Ended>) {
        if self.core.ended.is_empty() {
            return;
        }
        if done.is_empty() {
            std::mem::swap(done, &mut self.core.ended);
        } else {
            done.append(&mut self.core.ended);
        }
    }

    /// Lets time pass until `now` and appends what has ended.
    #[inline]
    pub fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        self.core.now = now;
        for node in &mut self.nodes {
            node.advance(&mut self.core);
        }
        self.work();
        self.write_bitmaps();
        self.hand_over(done);
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.parents.len()
    }

    #[inline]
    fn op_ended(&mut self, op: u32, result: Result<(), DiskError>) {
        let op = self.core.ops.remove(op);
        self.core.hear(&op);
        self.nodes[usize::from(op.node)].ended(&mut self.core, &op, result);
    }

    /// Requests and ends between the arrays of the tree, and what a resync may do after them.
    #[inline]
    fn work(&mut self) {
        if !self.core.work.is_empty() {
            self.pass();
        }
        if self.resyncs && !self.waits_for_cache() {
            self.pump();
        }
    }

    /// Nobody collects any more: what bitmaps have to announce is written, and what comes of that done.
    #[inline]
    fn write_bitmaps(&mut self) {
        if self.bitmaps {
            self.write_pages();
        }
    }

    #[inline(never)]
    fn write_pages(&mut self) {
        loop {
            for node in &mut self.nodes {
                node.write_bitmap(&mut self.core);
            }
            if self.core.work.is_empty() {
                return;
            }
            self.work();
        }
    }

    /// What a resync may do, and what comes of that.
    #[inline(never)]
    fn pump(&mut self) {
        while self.resyncs {
            for node in &mut self.nodes {
                node.pump(&mut self.core);
                node.pump_resilver(&mut self.core);
                node.pump_replace(&mut self.core);
            }
            let goes_on = |node: &Node| {
                node.resync.is_some() || node.resilver.is_some() || node.replace.is_some()
            };
            self.resyncs = self.nodes.iter().any(goes_on);
            if !self.resyncs {
                self.core.heard.clear();
            }
            if self.core.work.is_empty() {
                return;
            }
            self.pass();
        }
    }

    #[inline(never)]
    fn pass(&mut self) {
        while let Some(work) = self.core.work.pop_front() {
            match work {
                Work::Submit { node, up, bio } => {
                    self.nodes[usize::from(node)].submit(&mut self.core, up, &bio);
                }
                Work::End { op, result } => self.op_ended(op, result),
                Work::Synced { node, number } => {
                    self.nodes[usize::from(node)].synced(&mut self.core, number);
                }
                Work::Left(guard) => self.nodes[usize::from(guard.node)].left(guard),
            }
        }
    }

    /// A failure goes up the tree as far as arrays do not survive it.
    #[cold]
    fn drop_member(&mut self, member: u16) {
        let mut place = self.homes.get(usize::from(member)).copied();
        while let Some((node, role)) = place {
            let Some(node) = self.nodes.get_mut(usize::from(node)) else {
                return;
            };
            let lost = node.fail(role);
            place = node.common.up.filter(|_| lost);
        }
    }
}

#[cfg(test)]
mod tests;

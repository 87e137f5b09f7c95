//! One array of the tree: its members, their state, and its level.
use super::NEVER;
use super::bitmap::Bitmap;
use super::btrfs::Chunks;
use super::btrfs::rows::Rows;
use super::core::{Child, Core, Guard, GuardOf, Op, Task, Up};
use super::mirror::Mirror;
use super::order::Sizes;
use super::parity::ParityArray;
use super::raidz::RaidzVdev;
use super::replace::Replace;
use super::resilver::Resilver;
use super::resync::Resync;
use super::superblock::Superblock;
use crate::block::Bio;
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;
use raidlab_layout::stripe::{Linear, Raid0};
use raidlab_layout::{BtrfsProfile, Layout, Member, MemberSet, Place, Survival};

/// What all levels have.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// Its place in the tree.
    pub(super) index: u16,
    /// The array it is a member of, and in which role.
    pub(super) up: Option<(u16, u16)>,
    pub(super) children: Vec<Child>,
    pub(super) capacity: u64,
    /// How large requests are that it takes and hands on.
    pub(super) sizes: Sizes,
    /// Members that are neither read nor written.
    pub(super) gone: MemberSet,
    /// Members that are written, and read where they have been filled.
    pub(super) filling: MemberSet,
    /// More has failed than the level survives.
    pub(super) lost: bool,
    /// Whether copies or parity are being made to agree.
    pub(super) resyncing: bool,
    /// Whether a resync finds that they agree nowhere, as in a new array, and writes; after an unclean stop nearly all agrees.
    /// Raid1 copies in any case.
    pub(super) disagrees: bool,
    /// Up to here the resync or rebuild is through; the sectors are those of the resync.
    pub(super) front: u64,
    /// Up to here it is taken for through: md reads what has been rebuilt only then. See [`Checkpoints`](super::spec::Checkpoints).
    pub(super) known: u64,
    pub(super) superblock: Superblock,
    /// ZFS: places of its members that those that are being filled lack, ascending and apart.
    pub(super) lacks: Vec<(u64, u64)>,
}

impl Common {
    /// Whether a copy can be read.
    #[inline]
    pub(super) fn readable(&self, place: Place, len: u64) -> bool {
        !self.gone.contains(place.member)
            && (self.filling.is_empty()
                || !self.filling.contains(place.member)
                || (place.sector.0 + len <= self.known && !self.lacks(place.sector.0, len)))
    }

    /// Whether some of these sectors lie where blocks lay when the members that are being filled came.
    pub(super) fn lacks(&self, from: u64, len: u64) -> bool {
        let after = self.lacks.partition_point(|place| place.1 <= from);
        self.lacks
            .get(after)
            .is_some_and(|place| place.0 < from + len)
    }

    /// Whether copies may differ before array sector `end`.
    #[inline]
    pub(super) fn unsynced(&self, end: u64) -> bool {
        self.resyncing && end > self.front
    }

    /// Whether a resync is under way that finds what it compares to differ.
    #[inline]
    pub(super) const fn unlike(&self) -> bool {
        self.resyncing && self.disagrees
    }

    /// A part that nobody can serve.
    pub(super) fn unanswered(&self, core: &mut Core, parent: u32) {
        core.parents.get_mut(parent).waits += 1;
        core.close(parent, Err(DiskError::Failed));
    }
}

/// The level.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Linear(Linear),
    Raid0(Raid0),
    Mirror(Mirror),
    Parity(Box<ParityArray>),
    Raidz(RaidzVdev),
    Btrfs(Box<Chunks>),
    /// Several vdevs of ZFS, and the sector after the last one of each.
    Vdevs(Vec<u64>),
}

/// One array of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) common: Common,
    pub(super) shape: Shape,
    /// The level's mapping, for what it survives; `None` for ZFS.
    pub(super) layout: Option<Layout>,
    pub(super) resync: Option<Resync>,
    pub(super) bitmap: Option<Box<Bitmap>>,
    pub(super) resilver: Option<Box<Resilver>>,
    pub(super) replace: Option<Box<Replace>>,
}

impl Node {
    /// Takes a request of the array.
    #[inline]
    pub(super) fn submit(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        if self.waits_for_superblocks(core, up, bio) {
            return;
        }
        if bio.kind == BlockKind::Flush {
            return self.flush(core, up, bio);
        }
        if bio.sectors == 0 || bio.end() > self.common.capacity {
            return core.finish(up, Err(DiskError::OutOfRange));
        }
        if self.common.lost {
            return core.finish(up, Err(DiskError::Failed));
        }
        if self.is_too_large(bio) {
            return self.submit_large(core, up, bio);
        }
        if bio.kind == BlockKind::Write && (self.bitmap.is_some() || !core.clean.is_empty()) {
            return self.submit_write(core, up, bio);
        }
        self.submit_now(core, up, bio);
    }

    /// Takes a write, before which superblocks and bitmap may have to tell of it.
    fn submit_write(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        let Some(up) = self.begins(core, up, bio) else {
            return;
        };
        if self.bitmap.is_some() {
            return self.submit_noted(core, up, bio);
        }
        self.submit_now(core, up, bio);
    }

    /// Takes a request that nothing stands before any more.
    #[inline(always)]
    pub(super) fn submit_now(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        let common = &self.common;
        if let Shape::Parity(parity) = &mut self.shape {
            let parent = core.open(up);
            return parity.submit(common, core, parent, bio);
        }
        self.submit_other(core, up, bio);
    }

    /// The same for an array without a stripe cache.
    // Apart, so that the way of each lies close together.
    #[inline(never)]
    fn submit_other(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        let common = &self.common;
        match &mut self.shape {
            Shape::Linear(l) => pieces(common, core, up, bio, |at| l.place(at)),
            Shape::Raid0(l) => pieces(common, core, up, bio, |at| l.place(at)),
            Shape::Mirror(mirror) => mirror.submit(common, core, up, bio),
            Shape::Parity(_) => {}
            Shape::Raidz(raidz) => raidz.submit(common, core, up, bio),
            Shape::Vdevs(ends) => pieces(common, core, up, bio, |at| vdev_of(ends, at)),
            Shape::Btrfs(chunks) => chunks.submit(common, core, up, bio),
        }
    }

    #[inline(never)]
    fn flush(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        if self.common.lost {
            return core.finish(up, Err(DiskError::Failed));
        }
        let parent = core.open(up);
        let op = Op {
            node: self.common.index,
            role: 0,
            task: Task::Part(parent),
            at: 0,
            kind: BlockKind::Flush,
            lba: 0,
            sectors: 0,
            fua: false,
            origin: bio.origin,
            tries: 0,
        };
        for role in 0..self.common.children.len() as u16 {
            if !self.common.gone.contains(Member(role)) {
                let child = self.common.children[usize::from(role)];
                core.ask_part(child, parent, Op { role, ..op });
            }
        }
        core.close(parent, Ok(()));
    }

    /// An op of this array has ended.
    #[inline]
    pub(super) fn ended(&mut self, core: &mut Core, op: &Op, result: Result<(), DiskError>) {
        if let (Shape::Parity(parity), false) = (&mut self.shape, op.kind == BlockKind::Flush) {
            return match op.task {
                Task::Part(parent) => parity.around_ended(&self.common, core, parent, op, result),
                Task::Band(band) => parity.band_ended(&self.common, core, band, op, result),
                Task::Bitmap(page) => self.page_ended(core, page, op),
                Task::Superblock => self.superblock_ended(core, op),
                Task::Row | Task::Copy(_) | Task::Resilver(_) | Task::Replace(_) => {}
            };
        }
        self.other_ended(core, op, result);
    }

    /// The same for what is not of a parity array, and for flushes.
    // Apart, so that the way of each lies close together.
    #[inline(never)]
    fn other_ended(&mut self, core: &mut Core, op: &Op, result: Result<(), DiskError>) {
        match op.task {
            Task::Bitmap(page) => return self.page_ended(core, page, op),
            Task::Superblock => return self.superblock_ended(core, op),
            _ => {}
        }
        if op.kind == BlockKind::Flush {
            let Task::Part(parent) = op.task else { return };
            let survived = result.is_err() && !self.common.lost;
            return core.close(parent, if survived { Ok(()) } else { result });
        }
        match op.task {
            Task::Resilver(job) => return self.resilvered(core, job, op, result.is_ok()),
            Task::Replace(job) => return self.replaced(core, job, op, result.is_ok()),
            _ => {}
        }
        match &mut self.shape {
            Shape::Btrfs(chunks) => chunks.ended(&self.common, core, op, result),
            Shape::Linear(_) | Shape::Raid0(_) | Shape::Vdevs(_) => {
                if let Task::Part(parent) = op.task {
                    core.close(parent, result);
                }
            }
            Shape::Raidz(_) => {
                if let Task::Part(parent) = op.task {
                    // A write without the member that is out is good.
                    let good = op.kind == BlockKind::Write && !self.common.lost;
                    core.close(parent, if good { Ok(()) } else { result });
                }
            }
            Shape::Mirror(mirror) => mirror.ended(&self.common, core, *op, result),
            Shape::Parity(_) => {}
        }
    }

    /// A guarded request has ended.
    pub(super) fn left(&mut self, Guard { from, end, of, .. }: Guard) {
        match (of, &mut self.shape) {
            (GuardOf::Bitmap, _) => self.noted_ends(from, end),
            (GuardOf::Resync, Shape::Mirror(mirror)) => mirror.left(from, end),
            _ => {}
        }
    }

    /// Whether its thread asks its members for what is written.
    pub(super) fn writes_by_thread(&self) -> bool {
        match &self.shape {
            Shape::Parity(_) => true,
            Shape::Mirror(mirror) => mirror.writes_by_thread(),
            Shape::Btrfs(_) => self.rows().is_some(),
            _ => false,
        }
    }

    /// Whether its thread collects what is written that no submitter does (`raid1.c:flush_pending_writes` and its like).
    pub(super) fn collects_writes(&self) -> bool {
        matches!(self.shape, Shape::Parity(_) | Shape::Mirror(_)) || self.rows().is_some()
    }

    /// The rows with parity of btrfs, if it has some.
    pub(super) fn rows(&self) -> Option<&Rows> {
        match &self.shape {
            Shape::Btrfs(chunks) => chunks.rows.as_ref(),
            _ => None,
        }
    }

    /// The parity array of md that it is, if it is one.
    pub(super) fn parity(&self) -> Option<&ParityArray> {
        match &self.shape {
            Shape::Parity(parity) => Some(parity),
            _ => None,
        }
    }

    /// See [`super::Array::reads_apart`].
    pub(super) fn reads_apart(&self) -> bool {
        let Shape::Btrfs(chunks) = &self.shape else {
            return false;
        };
        match chunks.map.profile() {
            _ if !chunks.map.missing().is_empty() => false,
            BtrfsProfile::Raid1 => chunks.map.members() == 2,
            BtrfsProfile::Raid10 => chunks.map.members().is_multiple_of(2),
            _ => false,
        }
    }

    /// Where its vdevs end, if it is a pool of several.
    pub(super) fn vdev_ends(&self) -> Option<&[u64]> {
        match &self.shape {
            Shape::Vdevs(ends) => Some(ends),
            _ => None,
        }
    }

    /// Whoever submitted waits now.
    #[inline]
    pub(super) fn unplug(&mut self, core: &mut Core) {
        match &mut self.shape {
            Shape::Parity(parity) => parity.unplug(&self.common, core),
            Shape::Btrfs(chunks) => chunks.unplug(&self.common, core),
            _ => {}
        }
        if self.bitmap.is_some() {
            self.ends_turn();
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        let own = match &self.shape {
            Shape::Parity(parity) => parity.next(),
            Shape::Mirror(mirror) => mirror.next(),
            Shape::Btrfs(_) => self.rows().map_or(NEVER, Rows::next),
            _ => NEVER,
        };
        // One whose thread is not through looks at nothing before it is.
        let resync = self.resync.as_ref().filter(|_| !self.waits_for_thread());
        let resync = resync.and_then(Resync::next_event);
        let resilver = self.resilver.as_ref().and_then(|r| r.next_event());
        let next = [resync, resilver, self.bitmap_next()];
        let next = next.into_iter().flatten();
        next.fold(own, Instant::min)
    }

    /// Whether [`advance`](Self::advance) would do nothing at any time, but for what becomes of a clean array.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.resync.is_none()
            && self.resilver.is_none()
            && self.replace.is_none()
            && self.bitmap.is_none()
            && match &self.shape {
                Shape::Parity(parity) => parity.is_quiet(),
                Shape::Btrfs(_) => self.rows().is_none_or(Rows::is_quiet),
                _ => true,
            }
    }

    #[inline]
    pub(super) fn advance(&mut self, core: &mut Core) {
        match &mut self.shape {
            Shape::Parity(parity) => parity.advance(&self.common, core),
            Shape::Btrfs(chunks) => chunks.advance(&self.common, core),
            _ => {}
        }
        if self.bitmap.is_some() {
            self.bitmap_advance(core);
        }
        if core.clean_next() <= core.now {
            self.clean_advance(core);
        }
    }

    /// A member is out for good. Whether that was too much for the array.
    pub(super) fn fail(&mut self, role: u16) -> bool {
        let common = &mut self.common;
        common.gone.insert(Member(role));
        common.filling.remove(Member(role));
        let missing = common.gone.union(common.filling);
        common.lost |= match (&self.layout, &self.shape) {
            (Some(layout), _) => layout.survives(missing) == Survival::Lost,
            (None, Shape::Raidz(raidz)) => !raidz.survives(missing),
            // None of its vdevs may be lost; a mirror survives while one child does.
            (None, Shape::Vdevs(_) | Shape::Btrfs(_)) => !missing.is_empty(),
            (None, _) => missing.len() == common.children.len(),
        };
        common.lost
    }
}

/// The vdev that a sector is in, and how many follow there.
fn vdev_of(ends: &[u64], at: u64) -> (Place, u64) {
    let vdev = ends.partition_point(|end| *end <= at);
    let begin = vdev.checked_sub(1).map_or(0, |before| ends[before]);
    let place = Place {
        member: Member(vdev as u16),
        sector: Lba(at - begin),
    };
    (place, ends[vdev] - at)
}

/// Parts that are contiguous on one member.
#[inline]
fn pieces(
    common: &Common,
    core: &mut Core,
    up: Up,
    bio: &Bio,
    place: impl Fn(u64) -> (Place, u64),
) {
    let parent = core.open(up);
    let (mut at, end) = (bio.lba.0, bio.end());
    while at < end {
        let (Place { member, sector }, run) = place(at);
        let len = run.min(end - at);
        let op = Op {
            node: common.index,
            role: member.0,
            task: Task::Part(parent),
            at,
            kind: bio.kind,
            lba: sector.0,
            sectors: len as u32,
            fua: bio.fua,
            origin: bio.origin,
            tries: 0,
        };
        core.ask_part(common.children[member.index()], parent, op);
        at += len;
    }
    core.close(parent, Ok(()));
}

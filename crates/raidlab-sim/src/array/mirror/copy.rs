//! Resync and rebuild of mirrors: read one copy, write the others.
use super::barrier::Barrier;
use super::copier::Copier;
use super::{Map, Mirror};
use crate::array::NEVER;
use crate::array::core::{Core, Guard, GuardOf, Op, Task, Up};
use crate::array::node::Common;
use crate::block::{Bio, Busy};
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;
use raidlab_layout::{Content, Layout, Member, MemberSet, Place};

/// A stretch that is made to agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    /// The resync's request.
    parent: u32,
    /// Array sectors.
    at: u64,
    sectors: u32,
    /// Member requests in flight.
    flight: u32,
    /// Who is written when all is read.
    targets: MemberSet,
}

impl Mirror {
    /// What who makes them agree takes of the processor until `now`, with this behind the name where there are several.
    pub(in crate::array) fn busy(&self, now: Instant, behind: &str) -> Option<Busy> {
        let level = match self.map {
            Map::Same { .. } => "raid1",
            Map::Raid10(_) => "raid10",
        };
        let name = format!("{level} resync thread{behind}");
        Some(self.copier.as_ref()?.busy(now, name))
    }

    /// Guards requests against the resync, from now on, for which it takes `build` to build a request and `submit` to send one to a
    /// member.
    pub(in crate::array) fn guard(&mut self, local: bool, build: Span, submit: Span) {
        let local = local && matches!(self.map, Map::Same { .. });
        self.barrier = Some(Box::new(Barrier::new(local, build)));
        self.copier = (submit > Span::ZERO).then(|| Box::new(Copier::new(submit)));
    }

    /// Who makes the copies agree, or did.
    pub(in crate::array) fn copier(&self) -> Option<&Copier> {
        self.copier.as_deref()
    }

    /// The same, to have it send or wait.
    pub(in crate::array) fn copier_mut(&mut self) -> Option<&mut Copier> {
        self.copier.as_deref_mut()
    }

    /// Whether the resync may go on as far as its thread is concerned.
    pub(in crate::array) fn may_read(&mut self, now: Instant) -> bool {
        self.copier
            .as_mut()
            .is_none_or(|copier| copier.is_free(now))
    }

    /// The resync is through: nobody is held any more.
    pub(in crate::array) fn unguard(&mut self, common: &Common, core: &mut Core) {
        if let Some(barrier) = &mut self.barrier {
            let held = std::mem::take(&mut barrier.held);
            self.release(common, core, held);
        }
        self.barrier = None;
        if let Some(copier) = &mut self.copier {
            copier.rests();
        }
    }

    /// Counts a request, or holds it; `None` when it is held.
    pub(super) fn enter(
        &mut self,
        common: &Common,
        core: &mut Core,
        up: Up,
        bio: &Bio,
    ) -> Option<Up> {
        let Some(barrier) = &mut self.barrier else {
            return Some(up);
        };
        if !barrier.held.is_empty() || !barrier.enter(bio.lba.0, bio.end()) {
            barrier.held.push_back((up, *bio));
            return None;
        }
        let guard = core.guards.insert(Guard {
            up,
            node: common.index,
            from: bio.lba.0,
            end: bio.end(),
            of: GuardOf::Resync,
        });
        Some(Up::Guard(u64::from(guard)))
    }

    /// Whether requests wait for the resync.
    pub(in crate::array) fn is_waited_for(&self) -> bool {
        let held = self.barrier.as_ref().map(|barrier| &barrier.held);
        held.is_some_and(|held| !held.is_empty())
    }

    /// When the resync has built its next request, if it does.
    pub(in crate::array) fn builds(&self) -> Option<Instant> {
        self.barrier.as_ref()?.builds()
    }

    /// When the resync goes on by itself: when a request has been built, or its thread is through with what was sent.
    pub(in crate::array) fn next(&self) -> Instant {
        let thread = self.copier.as_deref().map_or(NEVER, Copier::next);
        self.builds().unwrap_or(NEVER).min(thread)
    }

    /// Time has come to `now` for who builds.
    pub(in crate::array) fn built(&mut self, now: Instant) {
        if let Some(barrier) = &mut self.barrier {
            barrier.built(now);
        }
    }

    /// A guarded request has ended.
    pub(in crate::array) fn left(&mut self, from: u64, end: u64) {
        if let Some(barrier) = &mut self.barrier {
            barrier.left(from, end);
        }
    }

    /// A request of the resync has ended.
    pub(in crate::array) fn lower(&mut self, common: &Common, core: &mut Core) {
        let Some(barrier) = &mut self.barrier else {
            return;
        };
        if barrier.lower() {
            let held = std::mem::take(&mut barrier.held);
            self.release(common, core, held);
        }
    }

    /// The resync does not go on for now: it holds nobody.
    pub(in crate::array) fn calm(&mut self, common: &Common, core: &mut Core) {
        let Some(barrier) = &mut self.barrier else {
            return;
        };
        if barrier.calm() {
            let held = std::mem::take(&mut barrier.held);
            self.release(common, core, held);
        }
    }

    fn release(
        &mut self,
        common: &Common,
        core: &mut Core,
        held: std::collections::VecDeque<(Up, Bio)>,
    ) {
        for (up, bio) in held {
            self.submit(common, core, up, &bio);
        }
    }

    /// The thread goes on: it comes to what has been read.
    pub(in crate::array) fn goes_on(&mut self, common: &Common, core: &mut Core) {
        let barrier = self.barrier.as_mut();
        let read = barrier.map(|barrier| std::mem::take(&mut barrier.read));
        for (job, op, result) in read.unwrap_or_default() {
            self.copy_ended(common, core, job, op, result);
        }
    }

    /// Makes the sectors from `at` on agree, up to `end` at the most; moves `at` past them. False
    /// when nothing more can be done now.
    pub(in crate::array) fn resync(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        at: &mut u64,
        end: u64,
    ) -> bool {
        if self
            .barrier
            .as_mut()
            .is_some_and(|b| !b.raise(core.now, *at))
        {
            return false;
        }
        let from = *at;
        match self.map.clone() {
            Map::Same { .. } => {
                *at = end;
                let targets = if common.filling.is_empty() {
                    MemberSet::first(common.children.len())
                } else {
                    common.filling
                };
                self.copy(common, core, parent, (from, end - from), targets, false);
            }
            Map::Raid10(layout) if common.filling.is_empty() => {
                *at = end.min((from / layout.chunk().0 + 1) * layout.chunk().0);
                let all = MemberSet::first(common.children.len());
                let targets = if common.unlike() {
                    all
                } else {
                    MemberSet::EMPTY
                };
                self.copy(common, core, parent, (from, *at - from), targets, true);
            }
            Map::Raid10(layout) => {
                *at = end.min((from / layout.chunk().0 + 1) * layout.chunk().0);
                let len = *at - from;
                let layout = Layout::Raid10(layout);
                for member in common.filling.iter() {
                    if let Content::Data(lba) = layout.content(member, Lba(from)) {
                        let target = MemberSet::one(member);
                        self.copy(common, core, parent, (lba.0, len), target, false);
                    }
                }
            }
        }
        true
    }

    /// Reads array sectors `at..at + len`, one copy or all, and then writes `targets`.
    fn copy(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        (at, len): (u64, u64),
        targets: MemberSet,
        all: bool,
    ) {
        self.locate(at);
        let most = if all { usize::MAX } else { 1 };
        let readable = self.places.iter().filter(|p| common.readable(**p, len));
        let mut sources = readable.take(most);
        let Some(first) = sources.next() else {
            return;
        };
        let (first, flight) = (first.member, 1 + sources.count());
        let job = self.copies.insert(Copy {
            parent,
            at,
            sectors: len as u32,
            flight: flight as u32,
            targets: targets.without(MemberSet::one(first)),
        });
        core.parents.get_mut(parent).waits += 1;
        self.ask_copies(common, core, job, BlockKind::Read, flight, |place| {
            common.readable(place, len)
        });
    }

    fn ask_copy(&mut self, common: &Common, core: &mut Core, job: u32, kind: BlockKind, at: Place) {
        let Copy {
            at: from, sectors, ..
        } = *self.copies.get(job);
        self.heads[at.member.index()].pending += 1;
        let on = (at.member.0, at.sector.0, sectors);
        let op = Op {
            at: from,
            ..Op::refill(common.index, Task::Copy(job), kind, on)
        };
        core.ask(common.children[at.member.index()], op);
    }

    /// Asks the first so many of the [located](Self::locate) places of which `is` holds.
    fn ask_copies(
        &mut self,
        common: &Common,
        core: &mut Core,
        job: u32,
        kind: BlockKind,
        mut count: usize,
        is: impl Fn(Place) -> bool,
    ) {
        for index in 0..self.places.len() {
            let place = self.places[index];
            if count > 0 && is(place) {
                count -= 1;
                self.ask_copy(common, core, job, kind, place);
            }
        }
    }

    /// A member request of a copy has ended.
    pub(super) fn copy_ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        job: u32,
        op: Op,
        result: Result<(), DiskError>,
    ) {
        // The thread is who writes what has been read (`sync_request_write`).
        if common.superblock.keeps_thread()
            && op.kind == BlockKind::Read
            && let Some(barrier) = &mut self.barrier
        {
            return barrier.read.push((job, op, result));
        }
        let copy = self.copies.get_mut(job);
        copy.flight -= 1;
        if copy.flight > 0 {
            return;
        }
        let Copy { parent, at, .. } = *copy;
        let targets = std::mem::take(&mut copy.targets).without(common.gone);
        let mut writes = 0;
        if op.kind == BlockKind::Read && !targets.is_empty() {
            self.locate(at);
            let places = &self.places;
            if result.is_err() {
                // Another copy, if there is one; what cannot be read anywhere stays as it is.
                let len = u64::from(op.sectors);
                let other = |p: &&Place| p.member.0 != op.role && common.readable(**p, len);
                if let Some(place) = places.iter().find(other).copied() {
                    let copy = self.copies.get_mut(job);
                    (copy.flight, copy.targets) = (1, targets.without(one(place.member)));
                    return self.ask_copy(common, core, job, BlockKind::Read, place);
                }
            } else {
                writes = places.iter().filter(|p| targets.contains(p.member)).count();
            }
        }
        if writes == 0 {
            self.copies.remove(job);
            return core.close(parent, Ok(()));
        }
        self.copies.get_mut(job).flight = writes as u32;
        self.ask_copies(common, core, job, BlockKind::Write, writes, |place| {
            targets.contains(place.member)
        });
    }
}

const fn one(member: Member) -> MemberSet {
    MemberSet::one(member)
}

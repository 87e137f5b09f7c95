//! What a band asks of the members.
use super::ParityArray;
use super::cache::{NONE, Phase};
use crate::array::core::{Core, Op, Task};
use crate::array::node::Common;
use crate::block::{Marked, Origin, RESYNC};
use raidlab_core::op::BlockKind;
use raidlab_layout::{Member, MemberSet};

impl ParityArray {
    /// Asks members for blocks of a band.
    pub(super) fn ask(
        &mut self,
        common: &Common,
        core: &mut Core,
        key: u32,
        kind: BlockKind,
        members: MemberSet,
    ) {
        if self.thread.is_busy() && self.held.is_used() {
            return self.ask_later(common, core, key, kind, members);
        }
        let op = self.op(common, key, kind);
        let mut flight = 0;
        for Member(role) in members.iter() {
            flight += 1;
            core.ask(common.children[usize::from(role)], Op { role, ..op });
        }
        self.cache.get_mut(key).flight = flight;
    }

    /// The same while the thread holds back what it asks for.
    #[inline(never)]
    fn ask_later(
        &mut self,
        common: &Common,
        core: &mut Core,
        key: u32,
        kind: BlockKind,
        members: MemberSet,
    ) {
        let op = self.op(common, key, kind);
        for Member(role) in members.iter() {
            let child = common.children[usize::from(role)];
            self.held.hold(core, child, Op { role, ..op });
        }
        self.cache.get_mut(key).flight = members.len() as u32;
    }

    /// What more is wanted of a band that reads is asked for at once, where who submits handles the stripe
    /// (`raid5.c:make_request`); else the thread comes to it when all that it reads is there, since what is read keeps
    /// it from being handled (`raid5.c:release_stripe`).
    pub(super) fn ask_more(&mut self, common: &Common, core: &mut Core, key: u32) {
        let band = self.cache.get(key);
        if band.phase != Phase::Reading || !self.era.submitter_handles {
            return;
        }
        let missing = self.missing(common, band);
        let mut wanted = band.want.without(band.cached);
        if !wanted.intersection(missing).is_empty() {
            if missing.len() > self.layout.level().parities() {
                return;
            }
            wanted = MemberSet::first(common.children.len()).without(band.cached);
        }
        let more = wanted.without(missing).without(band.moving);
        if more.is_empty() {
            return;
        }
        let flight = band.flight;
        self.ask(common, core, key, BlockKind::Read, more);
        let band = self.cache.get_mut(key);
        band.flight += flight;
        band.moving = band.moving.union(more);
    }

    /// What is asked of a member for a band.
    #[inline(always)]
    fn op(&self, common: &Common, key: u32, kind: BlockKind) -> Op {
        let band = self.cache.get(key);
        let background = band.readers == NONE && band.writers == NONE && band.current == NONE;
        let asks = if background && !self.era.thread_syncs {
            RESYNC
        } else {
            self.asks
        };
        let read = kind == BlockKind::Read;
        Op {
            node: common.index,
            role: 0,
            task: Task::Band(key),
            at: 0,
            kind,
            lba: self.start(band),
            sectors: band.to - band.from,
            fua: band.fua && !read,
            origin: Origin {
                task: asks,
                sync: read || band.sync,
                last: !read && band.sync && self.era.writes_are_last,
                background,
                ahead: false,
                paged: true,
                marked: Marked::Plain,
            },
            tries: 0,
        }
    }
}

//! Superblocks, into which md's thread writes how far a resync is and whether the array is clean (`md.c:md_check_recovery`,
//! `md_update_sb`).
//!
//! The thread writes the superblocks of all working members, each after a flush and past its cache
//! (`md_super_write`: `REQ_SYNC | REQ_PREFLUSH | REQ_FUA`), and waits for all of them. Meanwhile it does nothing else: what a
//! resync of a mirror has read is not written, and no stripe of a parity array is handled. So all caches of the drives are empty
//! then, and the next writes find room there. When there is something else to say by then, it writes them again before it goes on.
//! Left out: those of the end of a resync and of a member that fails.
use super::core::{Child, Core, Op, Task};
use super::node::{Node, Shape};
use raidlab_core::op::BlockKind;
use raidlab_layout::Member;

/// Where the superblock of an array is on each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockSpec {
    /// In sectors from the first one of data: before that (metadata 1.1 and 1.2) or behind the data (0.90 and 1.0). Of an array of
    /// arrays: at the beginning of each.
    pub at: i64,
    /// Sectors that are written of it.
    pub sectors: u32,
}

/// The superblocks of one array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Superblock {
    /// `None`: it is not written.
    spec: Option<SuperblockSpec>,
    /// Requests under way for which the thread waits.
    flight: u32,
    /// There is more to say than what is being written.
    pub(super) again: bool,
    /// The thread waits for something else before it comes to them.
    pub(super) waits: bool,
}

impl Superblock {
    pub(super) const fn new(spec: Option<SuperblockSpec>) -> Self {
        Self {
            spec,
            flight: 0,
            again: false,
            waits: false,
        }
    }

    /// Whether the thread waits for them, or for what it waits for before.
    pub(super) const fn keeps_thread(&self) -> bool {
        self.waits || self.flight > 0
    }
}

impl Node {
    /// What is known of the array goes to the superblocks.
    pub(super) fn write_superblocks(&mut self, core: &mut Core) {
        let superblock = &mut self.common.superblock;
        if superblock.spec.is_none() {
            return;
        }
        if superblock.keeps_thread() {
            superblock.again = true;
            return;
        }
        self.thread_stops(core);
        self.flush_for_superblocks(core);
        if !self.common.superblock.keeps_thread() {
            self.superblocks_written(core);
        }
    }

    /// The thread begins to wait.
    pub(super) fn thread_stops(&mut self, core: &mut Core) {
        if let Shape::Parity(parity) = &mut self.shape {
            parity.blocks(core);
        }
    }

    fn flush_for_superblocks(&mut self, core: &mut Core) {
        for role in 0..self.common.children.len() as u16 {
            if self.common.gone.contains(Member(role)) {
                continue;
            }
            self.common.superblock.flight += 1;
            let op = Op::flush(self.common.index, role, Task::Superblock);
            core.ask(self.common.children[usize::from(role)], op);
        }
    }

    /// A request for a superblock has ended: after the flush comes the superblock itself.
    #[inline(never)]
    pub(super) fn superblock_ended(&mut self, core: &mut Core, op: &Op) {
        let gone = self.common.gone.contains(Member(op.role));
        if let Some(SuperblockSpec { at, sectors }) = self.common.superblock.spec
            && op.kind == BlockKind::Flush
            && !gone
        {
            let child = self.common.children[usize::from(op.role)];
            let op = Op {
                kind: BlockKind::Write,
                lba: match child {
                    // Before the data it is less than nothing, which the base of all members' sectors makes good.
                    Child::Disk(_) => 0_u64.wrapping_add_signed(at),
                    Child::Node(_) => 0,
                },
                sectors,
                fua: true,
                ..*op
            };
            return core.ask(child, op);
        }
        self.common.superblock.flight -= 1;
        if !self.common.superblock.keeps_thread() {
            self.thread_looks(core);
        }
    }

    /// The thread has waited: it writes what there is to say by now, or goes on.
    pub(super) fn thread_looks(&mut self, core: &mut Core) {
        if std::mem::take(&mut self.common.superblock.again) {
            self.flush_for_superblocks(core);
        }
        if !self.common.superblock.keeps_thread() {
            self.superblocks_written(core);
        }
    }

    /// The thread goes on, and those that have waited for it to say that the array is written.
    fn superblocks_written(&mut self, core: &mut Core) {
        match &mut self.shape {
            Shape::Mirror(mirror) => mirror.goes_on(&self.common, core),
            Shape::Parity(parity) => parity.unblocks(core.now),
            _ => {}
        }
        self.is_told_unclean(core);
        if let Shape::Parity(parity) = &mut self.shape {
            parity.unplug(&self.common, core);
        }
        self.thread_asks_whether_clean(core);
    }
}

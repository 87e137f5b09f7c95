//! Superblocks, into which md's thread writes how far a resync is (`md.c:md_check_recovery`, `md_update_sb`).
//!
//! When `md_do_sync` notes that, the thread writes the superblocks of all working members, each after a flush and past its cache
//! (`md_super_write`: `REQ_SYNC | REQ_PREFLUSH | REQ_FUA`), and waits for all of them. Meanwhile it does nothing else: what a
//! resync of a mirror has read is not written, and no stripe of a parity array is handled. So all caches of the drives are empty
//! then, and the next writes find room there. Left out: those of an array that becomes idle or busy, and of the end of a resync.
use crate::array::core::{Child, Core, Op, Task};
use crate::array::node::{Node, Shape};
use raidlab_core::op::BlockKind;
use raidlab_layout::Member;

/// Sectors of a superblock: of 1.x 256 bytes and two for each of 384 members (`super_1_load`; `MAX_DEVS` of mdadm, known, not
/// re-read); that of 0.90 has 4 KiB.
const SECTORS: u32 = 2;

impl Node {
    /// How far the resync is goes to the superblocks.
    pub(super) fn note_progress(&mut self, core: &mut Core) {
        let written = self.resync.as_ref().is_some_and(|r| r.superblock.is_some());
        if !written || self.common.noting > 0 {
            return;
        }
        for role in 0..self.common.children.len() as u16 {
            if self.common.gone.contains(Member(role)) {
                continue;
            }
            self.common.noting += 1;
            let op = Op::flush(self.common.index, role, Task::Superblock);
            core.ask(self.common.children[usize::from(role)], op);
        }
        if let Shape::Parity(parity) = &mut self.shape {
            parity.blocks(core);
        }
    }

    /// A request for a superblock has ended: after the flush comes the superblock itself.
    #[inline(never)]
    pub(in crate::array) fn noted_progress(&mut self, core: &mut Core, op: &Op) {
        let at = self.resync.as_ref().and_then(|resync| resync.superblock);
        let gone = self.common.gone.contains(Member(op.role));
        if let Some(at) = at
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
                sectors: SECTORS,
                fua: true,
                ..*op
            };
            return core.ask(child, op);
        }
        self.common.noting -= 1;
        if self.common.noting > 0 {
            return;
        }
        match &mut self.shape {
            Shape::Mirror(mirror) => mirror.goes_on(&self.common, core),
            Shape::Parity(parity) => {
                parity.unblocks(core.now);
                parity.unplug(&self.common, core);
            }
            _ => {}
        }
    }
}

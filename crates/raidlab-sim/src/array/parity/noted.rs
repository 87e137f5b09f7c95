//! What a bitmap asks of a parity array: which rows are written, and that its thread waits.
use super::ParityArray;
use crate::array::core::Core;
use raidlab_core::time::Instant;
use raidlab_layout::{Member, MemberSet};

impl ParityArray {
    /// Sectors of each member that a write of these of the array is about.
    pub(in crate::array) fn rows_of(&self, from: u64, end: u64) -> (u64, u64) {
        let (chunk, data) = (u64::from(self.chunk), self.layout.data_members() as u64);
        let (first, last) = (from / chunk, (end - 1) / chunk);
        let row = |chunk_number: u64| chunk_number / data * chunk;
        if first == last {
            return (
                row(first) + from % chunk,
                row(first) + (end - 1) % chunk + 1,
            );
        }
        (row(first), row(last) + chunk)
    }

    /// Whether a write of sectors `from..end` is one of some of `members`, or of parity there.
    pub(in crate::array) fn writes_some(&self, from: u64, end: u64, members: MemberSet) -> bool {
        let (chunk, data) = (u64::from(self.chunk), self.layout.data_members() as u64);
        (from / chunk..=(end - 1) / chunk).any(|number| {
            let roles = self.roles(number / data);
            let member = Member::new(roles.member((number % data) as usize));
            members.contains(member) || !roles.parity().intersection(members).is_empty()
        })
    }

    /// The thread waits for something else: it hands over what it has asked for, and does nothing more.
    pub(in crate::array) fn blocks(&mut self, core: &mut Core) {
        self.held.release(core);
        self.thread.block(core.now);
    }

    /// It goes on.
    pub(in crate::array) fn unblocks(&mut self, now: Instant) {
        self.thread.unblock(now);
    }
}

//! btrfs over several members: each part of a request goes where its chunk is.
//!
//! Of two copies a reader has the one that follows from the number of its process (`volumes.c:find_live_mirror`,
//! `preferred_mirror = first + (current->pid % num_stripes)`): one reader reads one of two disks, and two that were started one after
//! the other both. Traced on 6.1; that others do so, and have further policies since 6.13 that are not the default, is from memory.
//! What the kernel reads itself has the first. Large direct reads of a process that has several under way are asked for by
//! workers of io_uring since 6.0, so that they have either copy.
//!
//! A copy on a member that the file system is mounted without is neither written nor read: who would have it has the first that
//! is there. While the member is replaced its copies are written to the new one, and still not read
//! (`volumes.c:handle_ops_on_dev_replace`).
//!
//! Left out: what is read again from the other copy.
use super::core::{Core, Op, Task, Up};
use super::node::Common;
use crate::block::{Bio, Marked};
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;
use raidlab_layout::{Btrfs, Member, Place};

pub(super) fn submit(btrfs: &Btrfs, common: &Common, core: &mut Core, up: Up, bio: &Bio) {
    let parent = core.open(up);
    let mut ask = |place: Place, at, sectors: u64| {
        let op = Op {
            node: common.index,
            role: place.member.0,
            task: Task::Part(parent),
            at,
            kind: bio.kind,
            lba: place.sector.0,
            sectors: sectors as u32,
            fua: bio.fua,
            origin: bio.origin,
            tries: 0,
        };
        core.ask_part(common.children[place.member.index()], parent, op);
    };
    let is_there = |place: &Place| !common.gone.contains(place.member);
    let is_read = |place: &Place| is_there(place) && !common.filling.contains(place.member);
    if let Some((sector, members)) = btrfs.super_of(bio.lba) {
        let sectors = u64::from(bio.sectors);
        let place = |member: Member| Place { member, sector };
        let places = members.into_iter().map(place).filter(is_there);
        match bio.kind {
            BlockKind::Read => places
                .filter(is_read)
                .take(1)
                .for_each(|place| ask(place, bio.lba.0, sectors)),
            _ => places.for_each(|place| ask(place, bio.lba.0, sectors)),
        }
        return core.close(parent, Ok(()));
    }
    let (mut at, end) = (bio.lba.0, bio.end());
    while at < end {
        let Some((copies, run)) = btrfs.locate(Lba(at)) else {
            // No file system puts anything there.
            break;
        };
        let len = run.min(end - at);
        let copies = match bio.kind {
            BlockKind::Read => {
                let other = bio.origin.marked == Marked::Worker;
                let which = (usize::from(bio.origin.task) + usize::from(other)) % copies.len();
                let which = match is_read(&copies[which]) {
                    true => Some(which),
                    false => copies.iter().position(is_read),
                };
                which.map_or(&[][..], |which| &copies[which..=which])
            }
            _ => &copies[..],
        };
        // One is there always: a file system that lacks more than that is not mounted.
        let there = copies.iter().filter(|place| is_there(place));
        there.for_each(|place| ask(*place, at, len));
        at += len;
    }
    core.close(parent, Ok(()));
}

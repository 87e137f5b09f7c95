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
//! Of chunks with parity what is written, and what a missing member would have, goes by [rows].
//!
//! Left out: what is read again from the other copy.
mod known;
pub(super) mod rows;
pub(super) mod turn;

use super::core::{Core, Op, Task, Up};
use super::node::Common;
use super::spec::ArraySpec;
use crate::block::{Bio, Marked};
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;
use raidlab_layout::{Btrfs, Member, Place};
use rows::Rows;

/// A file system over several members.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    pub(super) map: Btrfs,
    /// Of chunks with parity.
    pub(super) rows: Option<Rows>,
}

/// A request, and what waits for its parts.
struct Request<'a> {
    common: &'a Common,
    parent: u32,
    bio: &'a Bio,
}

impl Request<'_> {
    /// Asks a member for a part of it.
    fn ask(&self, core: &mut Core, place: Place, at: u64, sectors: u64) {
        let op = Op {
            node: self.common.index,
            role: place.member.0,
            task: Task::Part(self.parent),
            at,
            kind: self.bio.kind,
            lba: place.sector.0,
            sectors: sectors as u32,
            fua: self.bio.fua,
            origin: self.bio.origin,
            tries: 0,
        };
        core.ask_part(self.common.children[place.member.index()], self.parent, op);
    }

    fn is_there(&self, place: &Place) -> bool {
        !self.common.gone.contains(place.member)
    }

    fn is_read(&self, place: &Place) -> bool {
        self.is_there(place) && !self.common.filling.contains(place.member)
    }

    /// A superblock, which each of these has.
    fn superblock(&self, core: &mut Core, sector: Lba, members: Vec<Member>) {
        let place = |member: Member| Place { member, sector };
        let places = members.into_iter().map(place);
        let places: Vec<Place> = match self.bio.kind {
            BlockKind::Read => places.filter(|place| self.is_read(place)).take(1).collect(),
            _ => places.filter(|place| self.is_there(place)).collect(),
        };
        for place in places {
            self.ask(core, place, self.bio.lba.0, u64::from(self.bio.sectors));
        }
    }

    /// Those of the copies that are asked for a part.
    fn wanted<'p>(&self, copies: &'p [Place]) -> &'p [Place] {
        if self.bio.kind != BlockKind::Read {
            return copies;
        }
        let origin = &self.bio.origin;
        let other = origin.marked == Marked::Worker;
        let which = (usize::from(origin.task) + usize::from(other)) % copies.len();
        let which = match self.is_read(&copies[which]) {
            true => Some(which),
            false => copies.iter().position(|place| self.is_read(place)),
        };
        which.map_or(&[], |which| &copies[which..=which])
    }
}

impl Chunks {
    pub(super) fn new(map: &Btrfs, spec: &ArraySpec) -> Self {
        let parity = map.profile().parities() > 0;
        Self {
            map: map.clone(),
            rows: parity.then(|| Rows::new(spec.cost, spec.group_threads, spec.era)),
        }
    }

    pub(super) fn submit(&mut self, common: &Common, core: &mut Core, up: Up, bio: &Bio) {
        let parent = core.open(up);
        let request = Request {
            common,
            parent,
            bio,
        };
        if let Some((sector, members)) = self.map.super_of(bio.lba) {
            request.superblock(core, sector, members);
            return core.close(parent, Ok(()));
        }
        let (mut at, end) = (bio.lba.0, bio.end());
        while at < end {
            let Some((copies, run)) = self.map.locate(Lba(at)) else {
                // No file system puts anything there.
                break;
            };
            let mut len = run.min(end - at);
            let by_row = bio.kind == BlockKind::Write || !request.is_read(&copies[0]);
            let rows = self.rows.as_mut().filter(|_| by_row);
            let of_row = rows.and_then(|rows| Some((rows, self.map.row(Lba(at))?)));
            if let Some((rows, row)) = of_row {
                if bio.kind == BlockKind::Write {
                    len = end.min(row.begin.0 + row.sectors()) - at;
                }
                rows.submit((common, core), row, (parent, bio), (at, len));
            } else {
                // One is there always: a file system that lacks more than that is not mounted.
                for place in request.wanted(&copies) {
                    if request.is_there(place) {
                        request.ask(core, *place, at, len);
                    }
                }
            }
            at += len;
        }
        core.close(parent, Ok(()));
    }

    /// A request to a member has ended.
    pub(super) fn ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        op: &Op,
        result: Result<(), DiskError>,
    ) {
        match (op.task, &mut self.rows) {
            (Task::Part(parent), _) => core.close(parent, result),
            (Task::Row, Some(rows)) => rows.ended(common, core, op, result),
            _ => {}
        }
    }

    /// Whoever submitted waits now.
    pub(super) fn unplug(&mut self, common: &Common, core: &mut Core) {
        if let Some(rows) = &mut self.rows {
            rows.unplug(common, core);
        }
    }

    /// What the workers have done by now.
    pub(super) fn advance(&mut self, common: &Common, core: &mut Core) {
        if let Some(rows) = &mut self.rows {
            rows.advance(common, core);
        }
    }
}

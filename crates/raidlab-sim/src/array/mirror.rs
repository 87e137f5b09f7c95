//! Raid1, raid10 and ZFS mirrors: which copy is read, and that all copies are written.
mod barrier;
pub(in crate::array) mod copier;
mod copy;

use super::core::{Core, Op, Task, Up};
use super::node::Common;
use super::resilver::Needs;
use super::slab::Slab;
use super::spec::Era;
use crate::block::{Bio, Marked, Origin};
use crate::disk::DiskError;
use barrier::Barrier;
use copier::Copier;
use copy::Copy;
use raidlab_core::op::BlockKind;
use raidlab_layout::mirror::Raid10;
use raidlab_layout::{Member, MemberSet, Place, Places};

/// Where copies are.
#[derive(Clone, Debug)]
pub(super) enum Map {
    /// At the same place of every member, from this sector on.
    Same { offset: u64 },
    /// Chunk by chunk.
    Raid10(Raid10),
}

/// Who chooses the copy to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    /// `raid1.c:read_balance`; the flag: where a run goes on is known for each disk.
    Raid1 { run_per_disk: bool },
    /// `raid10.c:read_balance`.
    Raid10,
    /// ZFS; the flag: `vdev_mirror_load`, else by the place alone.
    Zfs { load: bool },
}

/// What is known of a member when a copy is chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// Sector after the last request: that has ended (md), that was given to it (ZFS).
    position: u64,
    /// Sector after the last read that was sent here.
    next: u64,
    /// Requests in flight.
    pending: u32,
    solid: bool,
}

/// Copies of everything.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    pub(super) map: Map,
    balance: Balance,
    /// Its thread asks for what is written, and whether what is asked for then says that nothing will follow; nothing of
    /// ZFS, which passes on what it was asked.
    writes: Option<(bool, bool)>,
    heads: Vec<Head>,
    last_used: usize,
    /// Where the last read of the array ended.
    run: u64,
    places: Places,
    /// While there is a resync.
    barrier: Option<Box<Barrier>>,
    /// Who makes them agree, where that takes time; if there ever was something to do.
    copier: Option<Box<Copier>>,
    copies: Slab<Copy>,
}

/// ZFS: penalty of a request that is not where the disk is, in requests
/// (`zfs_vdev_mirror_rotating_seek_inc`, `..._non_rotating_seek_inc`), and within how many sectors
/// half of it is applied (`zfs_vdev_mirror_rotating_seek_offset`, 1 MiB).
const ZFS_SEEK: u64 = 5;
const ZFS_SOLID_SEEK: u64 = 1;
const ZFS_NEAR: u64 = 2048;
/// ZFS: of children of equal load, the offset in these units of sectors (2 MiB) decides.
const ZFS_TURN: u64 = 4096;

impl Mirror {
    pub(super) fn new(map: Map, zfs: bool, solid: &[bool], era: &Era) -> Self {
        let balance = match (&map, zfs) {
            (_, true) => Balance::Zfs { load: era.zfs_load },
            (Map::Same { .. }, false) => Balance::Raid1 {
                run_per_disk: era.run_per_disk,
            },
            (Map::Raid10(_), false) => Balance::Raid10,
        };
        let head = |solid: &bool| Head {
            solid: *solid,
            ..Head::default()
        };
        Self {
            map,
            balance,
            writes: (!zfs).then_some((era.thread_writes, era.writes_are_last)),
            heads: solid.iter().map(head).collect(),
            last_used: 0,
            run: 0,
            places: Places::new(),
            barrier: None,
            copier: None,
            copies: Slab::new(),
        }
    }

    /// Fills `places` with the copies of `at`; how many sectors follow contiguously in all.
    #[inline]
    fn locate(&mut self, at: u64) -> u64 {
        match &self.map {
            Map::Same { offset } => {
                self.places.clear();
                for role in 0..self.heads.len() {
                    self.places.push(Place {
                        member: Member(role as u16),
                        sector: raidlab_core::units::Lba(at + offset),
                    });
                }
                u64::MAX
            }
            Map::Raid10(layout) => layout.places(at, &mut self.places),
        }
    }

    /// Sectors that are on the same members from `at` on.
    pub(super) fn run_at(&mut self, at: u64) -> u64 {
        self.locate(at)
    }

    pub(super) fn submit(&mut self, common: &Common, core: &mut Core, up: Up, bio: &Bio) {
        let Some(up) = self.enter(common, core, up, bio) else {
            return;
        };
        let parent = core.open(up);
        let (mut at, end) = (bio.lba.0, bio.end());
        while at < end {
            let len = self.locate(at).min(end - at);
            let op = Op {
                node: common.index,
                role: 0,
                task: Task::Part(parent),
                at,
                kind: bio.kind,
                lba: 0,
                sectors: len as u32,
                fua: bio.fua,
                origin: self.asks(bio),
                tries: 0,
            };
            if bio.kind == BlockKind::Read {
                match self.choose(common, at, len) {
                    Some(slot) => self.send(common, core, parent, slot, op),
                    None => common.unanswered(core, parent),
                }
            } else {
                for slot in 0..self.places.len() {
                    if !common.gone.contains(self.places[slot].member) {
                        self.send(common, core, parent, slot, op);
                    }
                }
            }
            at += len;
        }
        core.close(parent, Ok(()));
    }

    pub(super) fn writes_by_thread(&self) -> bool {
        self.writes.is_some_and(|(thread, _)| thread)
    }

    /// Who asks the members for a request, as their schedulers see it.
    #[inline]
    fn asks(&self, bio: &Bio) -> Origin {
        let origin = bio.origin;
        match self.writes {
            Some((thread, last)) if bio.kind == BlockKind::Write && !origin.background => Origin {
                task: if thread { 0 } else { origin.task },
                last: last && origin.sync,
                marked: Marked::Plain,
                ..origin
            },
            _ => origin,
        }
    }

    #[inline]
    fn send(&mut self, common: &Common, core: &mut Core, parent: u32, slot: usize, mut op: Op) {
        let Place { member, sector } = self.places[slot];
        (op.role, op.lba) = (member.0, sector.0);
        let head = &mut self.heads[member.index()];
        head.pending += 1;
        if op.kind == BlockKind::Read {
            head.next = op.lba + u64::from(op.sectors);
            (self.run, self.last_used) = (op.at + u64::from(op.sectors), member.index());
        }
        if matches!(self.balance, Balance::Zfs { .. }) {
            head.position = op.lba + u64::from(op.sectors);
        }
        core.ask_part(common.children[member.index()], parent, op);
    }

    /// Where on its members the first sector is that it has.
    pub(super) const fn offset(&self) -> u64 {
        match &self.map {
            Map::Same { offset } => *offset,
            Map::Raid10(_) => 0,
        }
    }

    /// What a block of a resilver asks for: the copy that a read would ask for, and what new members lack.
    pub(super) fn resilver(
        &mut self,
        common: &Common,
        at: u64,
        sectors: u32,
        only_read: bool,
    ) -> Needs {
        self.locate(at);
        let Some(slot) = self.choose(common, at, u64::from(sectors)) else {
            return Needs::default();
        };
        let part = |place: &Place| (place.member.0, place.sector.0, sectors);
        let new = |place: &&Place| !only_read && common.filling.contains(place.member);
        Needs {
            reads: vec![part(&self.places[slot])],
            writes: self.places.iter().filter(new).map(part).collect(),
        }
    }

    /// Whether some of `members` have copies of sectors `from..end`.
    pub(super) fn has_some(&mut self, mut from: u64, end: u64, members: MemberSet) -> bool {
        while from < end {
            let len = self.locate(from).min(end - from);
            if self.places.iter().any(|p| members.contains(p.member)) {
                return true;
            }
            from += len;
        }
        false
    }

    /// A resilver asks a member for what ends at sector `end`.
    pub(super) fn asked(&mut self, role: u16, end: u64) {
        let head = &mut self.heads[usize::from(role)];
        head.pending += 1;
        head.position = end;
    }

    /// And that has ended.
    pub(super) fn answered(&mut self, role: u16) {
        self.heads[usize::from(role)].pending -= 1;
    }

    /// The copy to read, among those of `places` that can be.
    fn choose(&self, common: &Common, at: u64, len: u64) -> Option<usize> {
        if common.unsynced(at + len) {
            // Copies may differ: always the same one, so that no two reads do.
            return self.first(common, len);
        }
        match self.balance {
            Balance::Raid1 { run_per_disk: true } => self.choose_raid1(common, len),
            Balance::Raid1 { .. } => self.choose_old_raid1(common, at, len),
            Balance::Raid10 => self.choose_raid10(common, len),
            Balance::Zfs { load } => self.choose_zfs(common, len, load),
        }
    }

    fn first(&self, common: &Common, len: u64) -> Option<usize> {
        self.places.iter().position(|p| common.readable(*p, len))
    }

    /// Stay on the disk where the run goes on or the head is; else an idle disk, or the least busy
    /// when one does not turn; else the nearest head.
    fn choose_raid1(&self, common: &Common, len: u64) -> Option<usize> {
        let (mut nearest, mut idlest) = (None, None);
        let (mut distance, mut pending, mut solid) = (u64::MAX, u32::MAX, false);
        for (slot, place) in self.places.iter().enumerate() {
            if !common.readable(*place, len) {
                continue;
            }
            let (head, sector) = (&self.heads[place.member.index()], place.sector.0);
            let far = head.position.abs_diff(sector);
            if head.next == sector || far == 0 {
                return Some(slot);
            }
            solid |= head.solid;
            if head.pending < pending {
                (pending, idlest) = (head.pending, Some(slot));
            }
            if far < distance {
                (distance, nearest) = (far, Some(slot));
            }
        }
        if solid || pending == 0 {
            idlest
        } else {
            nearest
        }
    }

    /// As kernels before 2.6.39 had it: stay on the disk that was read last when the one run of the
    /// array goes on or its head is there; else going down from it the first idle disk, or the
    /// nearest head.
    fn choose_old_raid1(&self, common: &Common, at: u64, len: u64) -> Option<usize> {
        let n = self.places.len();
        let mut down = (0..n)
            .map(|turn| (self.last_used + n - turn) % n)
            .filter(|slot| common.readable(self.places[*slot], len));
        let start = down.next()?;
        let head = |slot: usize| &self.heads[self.places[slot].member.index()];
        let far = |slot: usize| head(slot).position.abs_diff(self.places[slot].sector.0);
        if self.run == at || far(start) == 0 {
            return Some(start);
        }
        let mut nearest = start;
        for slot in down {
            if head(slot).pending == 0 {
                return Some(slot);
            }
            if far(slot) < far(nearest) {
                nearest = slot;
            }
        }
        Some(nearest)
    }

    /// Near copies: an idle disk, else the nearest head. Far copies: the lowest address, so that
    /// sequential reads are those of a raid0. The least busy when one does not turn.
    fn choose_raid10(&self, common: &Common, len: u64) -> Option<usize> {
        let Map::Raid10(layout) = &self.map else {
            return self.first(common, len);
        };
        let copies = layout.copies();
        let (mut nearest, mut idlest) = (None, None);
        let (mut distance, mut pending) = (u64::MAX, u32::MAX);
        for (slot, place) in self.places.iter().enumerate() {
            if !common.readable(*place, len) {
                continue;
            }
            let head = &self.heads[place.member.index()];
            if head.solid && head.pending < pending {
                (pending, idlest) = (head.pending, Some(slot));
            }
            let far = if copies.near > 1 && head.pending == 0 {
                0
            } else if copies.far > 1 {
                place.sector.0
            } else {
                head.position.abs_diff(place.sector.0)
            };
            if nearest.is_none() || far < distance {
                (distance, nearest) = (far, Some(slot));
            }
        }
        idlest.or(nearest)
    }

    /// The least load: requests in flight and a penalty for not being where the disk is; of equals
    /// the one whose turn it is by the place.
    fn choose_zfs(&self, common: &Common, len: u64, by_load: bool) -> Option<usize> {
        let load = |place: &Place| {
            if !by_load {
                return 0;
            }
            let head = &self.heads[place.member.index()];
            let far = head.position.abs_diff(place.sector.0);
            let seek = match (head.solid, far) {
                (_, 0) => 0,
                (true, _) => ZFS_SOLID_SEEK,
                (false, ..ZFS_NEAR) => ZFS_SEEK / 2,
                (false, _) => ZFS_SEEK,
            };
            u64::from(head.pending) + seek
        };
        let readable = || {
            let of = self.places.iter().enumerate();
            of.filter(|(_, place)| common.readable(**place, len))
        };
        let least = readable().map(|(_, place)| load(place)).min()?;
        let equal = || readable().filter(|(_, place)| load(place) == least);
        let turn = self.places[0].sector.0 / ZFS_TURN % equal().count().max(1) as u64;
        equal().nth(turn as usize).map(|(slot, _)| slot)
    }

    /// An op has ended.
    pub(super) fn ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        mut op: Op,
        result: Result<(), DiskError>,
    ) {
        let head = &mut self.heads[usize::from(op.role)];
        head.pending -= 1;
        if !matches!(self.balance, Balance::Zfs { .. }) {
            head.position = op.lba + u64::from(op.sectors);
        }
        let parent = match op.task {
            Task::Part(parent) => parent,
            Task::Copy(job) => return self.copy_ended(common, core, job, op, result),
            Task::Band(_)
            | Task::Row
            | Task::Resilver(_)
            | Task::Replace(_)
            | Task::Bitmap(_)
            | Task::Superblock => return,
        };
        if result.is_ok() || common.lost {
            return core.close(parent, result);
        }
        if op.kind == BlockKind::Write {
            // The member is out; what the others have is good.
            return core.close(parent, Ok(()));
        }
        self.locate(op.at);
        op.tries += 1;
        match self.after(common, &op) {
            Some(slot) if usize::from(op.tries) < self.places.len() => {
                self.send(common, core, parent, slot, op);
                core.close(parent, Ok(()));
            }
            _ => core.close(parent, result),
        }
    }

    /// The next copy after the one that could not be read.
    fn after(&self, common: &Common, op: &Op) -> Option<usize> {
        let n = self.places.len();
        let tried = self.places.iter().position(|p| p.member.0 == op.role)?;
        (1..n)
            .map(|turn| (tried + turn) % n)
            .find(|slot| common.readable(self.places[*slot], u64::from(op.sectors)))
    }
}

//! Replacing members of btrfs (`btrfs replace`): what is in use on a member that has gone is put on a new one.
//!
//! The chunks that the member has a part of are gone through in the order of their places on it (`scrub.c:scrub_enumerate_chunks`),
//! and of each what is in use; of one chunk all must be written before the next begins. Before Linux 6.4 so many reads of up to 128 KiB
//! are under way, each of addresses that follow each other, and a worker writes what has come; it is held up when the queue of the
//! new member takes no more. Since 6.4 whole stripes of 64 KiB are read, so many at a time, and when all have come what is in use of
//! them is written; when all is written, the next ones are read (looked at on 6.18; what 6.4 and 6.5 do is from memory). What is read
//! comes from another copy: before 6.4 from the first that is there, since from the next one.
//!
//! Where the chunk has parity, data is computed from the rest of its row, which is read whole ([`super::btrfs::rows`]). Before 6.4 nothing
//! but the queues of the others limits how much of that is under way. What of parity is in use is made of the data of its row: before
//! 6.4 that is read as anything else (`scrub_raid56_parity`), and then once more by whoever computes parity and writes it
//! (`raid56_parity_scrub_stripe`). Since 6.4 it is read once, and nothing else is begun with until parity is written; data of the member
//! waits meanwhile until there are eight stripes of it (`queue_scrub_stripe`). Two members that are missing at once are not replaced:
//! kernels fill them in part wrongly.
//!
//! Members are replaced one after the other. Until one has been, nothing is read from it; what is written in the meantime is
//! written to it, too.
//!
//! Left out: before 6.4 that the copy read of three or four follows from the number of the tool's process; that transactions wait
//! until nothing is under way and hold the copying up while they are committed; processor time of checksums; the tree blocks that the
//! copying itself reads; members that are there when they are replaced. That a chunk takes nothing new while it is copied is the
//! file system's ([`Array::copying`](super::Array::copying)).
mod part;
mod rows;
mod used;

use super::core::{Core, Op, Task};
use super::node::{Common, Node, Shape};
use super::spec::Copying;
use crate::block::{Extent, Tally, Watch};
use part::{Job, Part, Place, Source};
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;
use raidlab_layout::btrfs::Share;
use raidlab_layout::{Btrfs, Member, MemberSet};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use used::Used;

/// Stripes that are read together, since 6.4 (`SCRUB_STRIPES_PER_GROUP`).
const GROUP: usize = 8;
/// Pieces of rows that lie one behind the other on a member, of 64 KiB, are joined to the largest request (`BLK_DEF_MAX_SECTORS`, 1280
/// KiB). Assumed: each is. From four of them on it makes no difference to what a guest was held against.
const JOINED: usize = 20;

/// The replacement of members.
#[derive(Clone, Debug)]
pub(super) struct Replace {
    copying: Copying,
    used: Used,
    /// What the chunks have on the member that is replaced.
    shares: Vec<Share>,
    next: Place,
    /// Jobs by number, numbers to be used again, and those that have been read and not written, in the order in which they came.
    jobs: Vec<Job>,
    free: Vec<u32>,
    read: VecDeque<u32>,
    /// Jobs that are being read or wait for it.
    reading: usize,
    /// Reads of copies, until what they have read is written, and of data for parity.
    reads: usize,
    /// Rows that something is computed of. Before 6.4 nothing but the queues of the members limits them: workers wait there, when each
    /// request is as large as it becomes.
    rows: usize,
    /// Parity is being made.
    parity: bool,
    /// Data to be computed that waits for more.
    waits: Vec<(u32, u64)>,
    /// Writes under way, and how many there may be.
    writing: usize,
    most: usize,
    /// Jobs of the turn so far that are or have been read.
    turn: usize,
    pub(super) tally: Tally,
}

impl Replace {
    fn new((copying, most): (Copying, u32), used: Used, shares: Vec<Share>, tally: Tally) -> Self {
        Self {
            copying,
            used,
            shares,
            next: Place::default(),
            jobs: Vec::new(),
            free: Vec::new(),
            read: VecDeque::new(),
            reading: 0,
            reads: 0,
            rows: 0,
            parity: false,
            waits: Vec::new(),
            writing: 0,
            most: most.max(1) as usize,
            turn: 0,
            tally,
        }
    }

    /// The chunk that is being copied: its first address, and the one after its last.
    pub(super) fn chunk(&self) -> Option<(u64, u64)> {
        self.shares.get(self.next.share).map(|share| share.chunk)
    }

    /// Nothing is under way.
    fn is_idle(&self) -> bool {
        self.reading == 0 && self.writing == 0 && self.read.is_empty()
    }

    /// Whether more may be read.
    fn has_room(&self) -> bool {
        match self.copying {
            Copying::Stream { reads } => self.reads < reads && self.rows < JOINED * self.most,
            Copying::Turns { stripes } => self.turn < stripes && !self.parity,
        }
    }

    /// A job that has been read and may be written now; `ends`: nothing more is read before all of this chunk has been written.
    fn next_to_write(&mut self, ends: bool) -> Option<u32> {
        let may = match self.copying {
            Copying::Stream { .. } => self.writing < self.most,
            // All of the turn has come.
            Copying::Turns { stripes } => self.reading == 0 && (ends || self.turn == stripes),
        };
        let job = may.then(|| self.read.pop_front()).flatten()?;
        self.reads -= usize::from(self.jobs[job as usize].copied);
        Some(job)
    }

    fn add(&mut self, job: Job) -> u32 {
        self.reading += 1;
        if let Some(number) = self.free.pop() {
            self.jobs[number as usize] = job;
            return number;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
    }

    /// Data of a job has been read, or computed.
    fn has_read(&mut self, job: u32, good: bool) {
        if !good {
            self.jobs[job as usize].writes.clear();
        }
        self.reading -= 1;
        self.read.push_back(job);
    }

    /// Parity has been written, or is left as it is.
    fn end_parity(&mut self, job: u32) {
        self.jobs[job as usize].parity = None;
        self.parity = false;
        self.drop_job(job);
    }

    /// Of a job nothing is to be written any more.
    fn drop_job(&mut self, job: u32) {
        self.reading -= 1;
        self.free.push(job);
    }
}

impl Node {
    /// The first of the members that it is mounted without is there anew.
    pub(super) fn replaces_next(&mut self) {
        let next = self.common.gone.iter().next();
        if let Some(member) = next {
            self.common.gone.remove(member);
            self.common.filling.insert(member);
        }
    }

    /// Begins to replace its members, with what lies in `extents`, whose places are addresses.
    pub(super) fn begin_replace(
        &mut self,
        core: &Core,
        how: (Copying, u32),
        extents: Vec<Extent>,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        let Shape::Btrfs(chunks) = &self.shape else {
            return ControlFlow::Continue(());
        };
        let btrfs = &chunks.map;
        let used = Used(super::resilver::places(&extents));
        let members = self.common.filling.union(self.common.gone);
        let mut all = 0;
        for member in members.iter() {
            all += used.total(&btrfs.on(member), watch)?;
        }
        let tally = Tally::new(all, members.len() as u64, core.now);
        let shares = shares(btrfs, self.common.filling);
        self.replace = Some(Box::new(Replace::new(how, used, shares, tally)));
        ControlFlow::Continue(())
    }

    /// Sends what may be sent now.
    pub(super) fn pump_replace(&mut self, core: &mut Core) {
        loop {
            self.take_computed(core);
            let Some(replace) = &mut self.replace else {
                return;
            };
            if self.common.filling.is_empty() || self.common.lost {
                // Nobody is there to be written to, or nothing to be read.
                replace.read.clear();
                replace.reading -= replace.waits.len();
                replace.waits.clear();
                if replace.is_idle() {
                    self.end_replace(core);
                }
                return;
            }
            if let Some(job) = replace.next_to_write(false) {
                self.write(core, job);
                continue;
            }
            if replace.is_idle() {
                replace.turn = 0;
            }
            if !replace.has_room() {
                return;
            }
            let part = replace.part();
            let part =
                part.filter(|part| part.then.share == replace.next.share || replace.is_idle());
            if let Some(part) = part {
                self.begin_part(core, part);
            } else if !replace.waits.is_empty() {
                self.recover(core);
            } else if replace.is_idle() {
                self.end_replace(core);
            } else if let Some(job) = replace.next_to_write(true) {
                // All of a chunk is there before the next begins.
                self.write(core, job);
            } else {
                return;
            }
        }
    }

    /// Begins to read what is next.
    fn begin_part(&mut self, core: &mut Core, part: Part) {
        let Some(replace) = &mut self.replace else {
            return;
        };
        replace.next = part.then;
        let copied = matches!(part.source, Source::Copy { .. });
        let job = replace.add(Job {
            writes: part.writes,
            copied,
            ..Job::default()
        });
        match part.source {
            Source::Copy { at, sectors } => {
                replace.turn += 1;
                replace.reads += 1;
                self.read(core, job, at, sectors);
            }
            Source::Row { at } => {
                replace.turn += 1;
                replace.waits.push((job, at));
                let group = match replace.copying {
                    Copying::Stream { .. } => 1,
                    Copying::Turns { stripes } => GROUP.min(stripes),
                };
                if replace.waits.len() == group {
                    self.recover(core);
                }
            }
            Source::Parity { row, piece, height } => {
                replace.parity = true;
                self.read_row(core, job, (row, piece), height);
            }
        }
    }

    /// Reads from a copy.
    fn read(&mut self, core: &mut Core, job: u32, at: u64, sectors: u32) {
        let (Shape::Btrfs(chunks), Some(replace)) = (&self.shape, &mut self.replace) else {
            return;
        };
        let common = &self.common;
        let copies = chunks.map.locate(Lba(at)).map(|(copies, _)| copies);
        let copies = copies.unwrap_or_default();
        let is_new = |member| common.filling.contains(member);
        let own = copies.iter().position(|place| is_new(place.member));
        let first = match replace.copying {
            Copying::Stream { .. } => 0,
            Copying::Turns { .. } => own.unwrap_or(0),
        };
        let mut turn = (0..copies.len()).map(|i| copies[(first + i) % copies.len()]);
        let source =
            turn.find(|place| !is_new(place.member) && !common.gone.contains(place.member));
        let Some(source) = source else {
            // Nothing of it is anywhere: the file system is lost.
            replace.reads -= 1;
            return replace.drop_job(job);
        };
        let on = (source.member.0, source.sector.0, sectors);
        ask(common, core, job, BlockKind::Read, on);
    }

    /// Writes what has been read.
    fn write(&mut self, core: &mut Core, job: u32) {
        let (Some(replace), Some(member)) = (&mut self.replace, self.common.filling.iter().next())
        else {
            return;
        };
        let entry = &mut replace.jobs[job as usize];
        entry.flight = entry.writes.len();
        replace.writing += entry.flight;
        let writes = std::mem::take(&mut entry.writes);
        if writes.is_empty() {
            replace.free.push(job);
        }
        for (place, sectors) in writes {
            let on = (member.0, place, sectors);
            ask(&self.common, core, job, BlockKind::Write, on);
        }
    }

    /// A request of the replacement has ended. What cannot be read is left as it is.
    pub(super) fn replaced(&mut self, core: &mut Core, job: u32, op: &Op, good: bool) {
        let Some(replace) = &mut self.replace else {
            return;
        };
        let entry = &mut replace.jobs[job as usize];
        if op.kind == BlockKind::Read {
            if entry.parity.is_some() {
                replace.reads -= 1;
                return self.row_read(core, job, good);
            }
            return replace.has_read(job, good);
        }
        if good {
            replace.tally.note(core.now, u64::from(op.sectors));
        }
        entry.flight -= 1;
        replace.writing -= 1;
        if entry.flight == 0 {
            replace.free.push(job);
        }
    }

    /// The new member is as the others; the next one is replaced.
    fn end_replace(&mut self, core: &mut Core) {
        let pointless = self.common.filling.is_empty() || self.common.lost;
        self.common.filling = MemberSet::EMPTY;
        if !pointless {
            self.replaces_next();
        }
        if let (Shape::Btrfs(chunks), Some(replace), false) = (
            &self.shape,
            &mut self.replace,
            self.common.filling.is_empty(),
        ) {
            replace.shares = shares(&chunks.map, self.common.filling);
            replace.next = Place::default();
            return;
        }
        self.replace = None;
        core.resilvered = Some(core.now);
    }
}

/// What the chunks have on the member that is filled.
fn shares(btrfs: &Btrfs, filling: MemberSet) -> Vec<Share> {
    let member = filling.iter().next();
    member.map_or(Vec::new(), |member: Member| btrfs.on(member))
}

fn ask(common: &Common, core: &mut Core, job: u32, kind: BlockKind, on: (u16, u64, u32)) {
    let op = Op::refill(common.index, Task::Replace(job), kind, on);
    core.ask(common.children[usize::from(on.0)], op);
}

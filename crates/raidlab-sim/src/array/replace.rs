//! Replacing members of btrfs (`btrfs replace`): what is in use on a member that has gone is put on a new one.
//!
//! The chunks that the member has a part of are gone through in the order of their places on it (`scrub.c:scrub_enumerate_chunks`),
//! and of each what is in use; of one chunk all must be written before the next begins. Before Linux 6.4 so many reads of up to 128 KiB
//! are under way, each of addresses that follow each other, and a worker writes what has come; it is held up when the queue of the
//! new member takes no more. Since 6.4 whole stripes of 64 KiB are read, so many at a time, and when all have come what is in use of
//! them is written; when all is written, the next ones are read (looked at on 6.18; what 6.4 and 6.5 do is from memory). What is read
//! comes from another copy: before 6.4 from the first that is there, since from the next one.
//!
//! Members are replaced one after the other. Until one has been, nothing is read from it; what is written in the meantime is
//! written to it, too.
//!
//! Left out: before 6.4 that the copy read of three or four follows from the number of the tool's process; that transactions wait
//! until nothing is under way and hold the copying up while they are committed; processor time of checksums; the tree blocks that the
//! copying itself reads; members that are there when they are replaced. That a chunk takes nothing new while it is copied is the
//! file system's ([`Array::copying`](super::Array::copying)).
use super::core::{Core, Op, Task};
use super::node::{Common, Node, Shape};
use super::spec::Copying;
use super::tally::Tally;
use crate::block::{Extent, Origin, Watch};
use raidlab_core::op::BlockKind;
use raidlab_core::units::{KIB, Lba, SECTOR};
use raidlab_layout::btrfs::Share;
use raidlab_layout::{Btrfs, Member, MemberSet};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Sectors of a read, before 6.4 (`SCRUB_SECTORS_PER_BIO`), and of a stripe (`BTRFS_STRIPE_LEN`).
const READ: u64 = 128 * KIB / SECTOR;
const STRIPE: u64 = 64 * KIB / SECTOR;
/// How many parts are counted before whoever waits is asked.
const ASKED: u64 = 4096;

/// Something that is read from a copy and then written to the new member.
#[derive(Clone, Debug, Default)]
struct Job {
    /// Requests in flight.
    flight: usize,
    /// Places on the new member, and sectors.
    writes: Vec<(u64, u32)>,
}

/// Where the copying is: a chunk's share of the member, and sectors from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    share: usize,
    inside: u64,
}

/// What is next.
struct Part {
    /// What is read: an address, and sectors that follow there on all copies.
    at: u64,
    sectors: u32,
    job: Job,
    /// Where it goes on.
    then: Place,
}

/// The replacement of members.
#[derive(Clone, Debug)]
pub(super) struct Replace {
    copying: Copying,
    /// Addresses in use, each from its first sector to the one after its last; ascending and apart.
    used: Vec<(u64, u64)>,
    /// What the chunks have on the member that is replaced.
    shares: Vec<Share>,
    next: Place,
    /// Jobs by number, numbers to be used again, and those that have been read and not written, in the order in which they came.
    jobs: Vec<Job>,
    free: Vec<u32>,
    read: VecDeque<u32>,
    /// Jobs being read; writes under way, and how many there may be.
    reading: usize,
    writing: usize,
    most: usize,
    /// Jobs of the turn so far that are or have been read.
    turn: usize,
    pub(super) tally: Tally,
}

impl Replace {
    fn new(copying: Copying, most: u32, used: Vec<(u64, u64)>) -> Self {
        Self {
            copying,
            used,
            shares: Vec::new(),
            next: Place::default(),
            jobs: Vec::new(),
            free: Vec::new(),
            read: VecDeque::new(),
            reading: 0,
            writing: 0,
            most: most.max(1) as usize,
            turn: 0,
            tally: Tally::new(0, 1, raidlab_core::time::Instant::ZERO),
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

    /// The first sectors in use from a place in a share on: where they begin there, and how many follow at addresses that do.
    fn in_use(&self, share: &Share, from: u64) -> Option<(u64, u64)> {
        let mut inside = from;
        while inside < share.len {
            let (at, run) = share.address(inside);
            let after = self.used.partition_point(|used| used.1 <= at);
            let (begin, end) = *self.used.get(after)?;
            if begin <= at {
                return Some((inside, run.min(end - at)));
            }
            inside = share.inside(begin);
        }
        None
    }

    /// What is next; `None` when that was all of this member.
    fn part(&self) -> Option<Part> {
        let mut place = self.next;
        loop {
            let share = self.shares.get(place.share)?;
            let Some((inside, run)) = self.in_use(share, place.inside) else {
                place = Place {
                    share: place.share + 1,
                    inside: 0,
                };
                continue;
            };
            let (from, end) = match self.copying {
                Copying::Stream { .. } => (inside, inside + run.min(READ)),
                Copying::Turns { .. } => {
                    let from = inside / STRIPE * STRIPE;
                    (from, (from + STRIPE).min(share.len))
                }
            };
            let mut job = Job::default();
            let mut at = inside;
            while let Some((inside, run)) = self.in_use(share, at).filter(|found| found.0 < end) {
                at = (inside + run).min(end);
                job.writes
                    .push((share.place + inside, (at - inside) as u32));
            }
            return Some(Part {
                at: share.address(from).0,
                sectors: (end - from) as u32,
                job,
                then: Place {
                    inside: end,
                    ..place
                },
            });
        }
    }

    /// Sectors in use on the member that is being replaced.
    fn total(&self, watch: Watch<'_>) -> ControlFlow<(), u64> {
        let (mut total, mut parts) = (0, 0);
        for share in &self.shares {
            let mut from = 0;
            while let Some((inside, run)) = self.in_use(share, from) {
                total += run;
                from = inside + run;
                parts += 1;
                if parts % ASKED == 0 {
                    watch()?;
                }
            }
        }
        ControlFlow::Continue(total)
    }

    /// Whether `part` may be read now.
    fn may_read(&self, part: &Part) -> bool {
        if part.then.share != self.next.share && !self.is_idle() {
            // All of a chunk is there before the next begins.
            return false;
        }
        match self.copying {
            Copying::Stream { reads } => self.reading + self.read.len() < reads,
            Copying::Turns { stripes } => self.turn < stripes,
        }
    }

    /// A job that has been read and may be written now.
    fn next_to_write(&mut self, ends: bool) -> Option<u32> {
        let may = match self.copying {
            Copying::Stream { .. } => self.writing < self.most,
            // All of the turn has come.
            Copying::Turns { stripes } => self.reading == 0 && (ends || self.turn == stripes),
        };
        may.then(|| self.read.pop_front()).flatten()
    }

    fn add(&mut self, job: Job) -> u32 {
        self.reading += 1;
        self.turn += 1;
        if let Some(number) = self.free.pop() {
            self.jobs[number as usize] = job;
            return number;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
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
        (copying, most): (Copying, u32),
        extents: Vec<Extent>,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        let Shape::Btrfs(btrfs) = &self.shape else {
            return ControlFlow::Continue(());
        };
        let mut replace = Replace::new(copying, most, super::resilver::places(&extents));
        let members = self.common.filling.union(self.common.gone);
        let mut total = 0;
        for member in members.iter() {
            replace.shares = btrfs.on(member);
            match replace.total(watch) {
                ControlFlow::Continue(sectors) => total += sectors,
                ControlFlow::Break(()) => return ControlFlow::Break(()),
            }
        }
        replace.tally = Tally::new(total, members.len() as u64, core.now);
        replace.shares = shares(btrfs, self.common.filling);
        self.replace = Some(Box::new(replace));
        ControlFlow::Continue(())
    }

    /// Sends what may be sent now.
    pub(super) fn pump_replace(&mut self, core: &mut Core) {
        while let Some(replace) = &mut self.replace {
            let pointless = self.common.filling.is_empty() || self.common.lost;
            let part = replace.part().filter(|_| !pointless);
            let ends = part
                .as_ref()
                .is_none_or(|part| part.then.share != replace.next.share);
            if let Some(job) = replace.next_to_write(ends) {
                self.write(core, job);
                continue;
            }
            if replace.is_idle() {
                replace.turn = 0;
            }
            let Some(part) = part else {
                if !replace.is_idle() {
                    return;
                }
                self.end_replace(core);
                continue;
            };
            if !replace.may_read(&part) {
                return;
            }
            replace.next = part.then;
            let job = replace.add(part.job);
            self.read(core, job, part.at, part.sectors);
        }
    }

    /// Reads from a copy.
    fn read(&mut self, core: &mut Core, job: u32, at: u64, sectors: u32) {
        let (Shape::Btrfs(btrfs), Some(replace)) = (&self.shape, &mut self.replace) else {
            return;
        };
        let common = &self.common;
        let copies = btrfs.locate(Lba(at)).map(|(copies, _)| copies);
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
            replace.reading -= 1;
            replace.free.push(job);
            return;
        };
        let on = (source.member.0, source.sector.0, sectors);
        replace.jobs[job as usize].flight = 1;
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
            if !good {
                entry.writes.clear();
            }
            entry.flight = 0;
            replace.reading -= 1;
            replace.read.push_back(job);
            return;
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
        if let (Shape::Btrfs(btrfs), Some(replace), false) = (
            &self.shape,
            &mut self.replace,
            self.common.filling.is_empty(),
        ) {
            replace.shares = shares(btrfs, self.common.filling);
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

fn ask(
    common: &Common,
    core: &mut Core,
    job: u32,
    kind: BlockKind,
    (role, lba, sectors): (u16, u64, u32),
) {
    let op = Op {
        node: common.index,
        role,
        task: Task::Replace(job),
        at: lba,
        kind,
        lba,
        sectors,
        fua: false,
        origin: Origin::resync(kind),
        tries: 0,
    };
    core.ask(common.children[usize::from(role)], op);
}

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
use crate::block::{Extent, Watch};
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
    /// Places on the new member, and sectors.
    writes: Vec<(u64, u32)>,
    /// Of these under way.
    flight: usize,
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

/// The first sectors in use from a place in a share on: where they begin there, and how many follow at addresses that do.
fn in_use(used: &[(u64, u64)], share: &Share, from: u64) -> Option<(u64, u64)> {
    let mut inside = from;
    while inside < share.len {
        let (at, run) = share.address(inside);
        let after = used.partition_point(|used| used.1 <= at);
        let (begin, end) = *used.get(after)?;
        if begin <= at {
            return Some((inside, run.min(end - at)));
        }
        inside = share.inside(begin);
    }
    None
}

/// Sectors in use on a member that has these shares.
fn total(used: &[(u64, u64)], shares: &[Share], watch: Watch<'_>) -> ControlFlow<(), u64> {
    let (mut total, mut parts) = (0, 0);
    for share in shares {
        let mut from = 0;
        while let Some((inside, run)) = in_use(used, share, from) {
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

impl Replace {
    fn new(
        (copying, most): (Copying, u32),
        used: Vec<(u64, u64)>,
        shares: Vec<Share>,
        tally: Tally,
    ) -> Self {
        Self {
            copying,
            used,
            shares,
            next: Place::default(),
            jobs: Vec::new(),
            free: Vec::new(),
            read: VecDeque::new(),
            reading: 0,
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

    /// What is next; `None` when that was all of this member.
    fn part(&self) -> Option<Part> {
        let mut place = self.next;
        loop {
            let share = self.shares.get(place.share)?;
            let Some((inside, run)) = in_use(&self.used, share, place.inside) else {
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
            while let Some((inside, run)) =
                in_use(&self.used, share, at).filter(|found| found.0 < end)
            {
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

    /// Whether more may be read.
    fn has_room(&self) -> bool {
        match self.copying {
            Copying::Stream { reads } => self.reading + self.read.len() < reads,
            Copying::Turns { stripes } => self.turn < stripes,
        }
    }

    /// A job that has been read and may be written now; `ends`: nothing more is read before all of this chunk has been written.
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
        how: (Copying, u32),
        extents: Vec<Extent>,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        let Shape::Btrfs(chunks) = &self.shape else {
            return ControlFlow::Continue(());
        };
        let btrfs = &chunks.map;
        let used = super::resilver::places(&extents);
        let members = self.common.filling.union(self.common.gone);
        let mut all = 0;
        for member in members.iter() {
            let ControlFlow::Continue(sectors) = total(&used, &btrfs.on(member), watch) else {
                return ControlFlow::Break(());
            };
            all += sectors;
        }
        let tally = Tally::new(all, members.len() as u64, core.now);
        let shares = shares(btrfs, self.common.filling);
        self.replace = Some(Box::new(Replace::new(how, used, shares, tally)));
        ControlFlow::Continue(())
    }

    /// Sends what may be sent now.
    pub(super) fn pump_replace(&mut self, core: &mut Core) {
        while let Some(replace) = &mut self.replace {
            if self.common.filling.is_empty() || self.common.lost {
                // Nobody is there to be written to, or nothing to be read.
                replace.read.clear();
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
                replace.next = part.then;
                let job = replace.add(part.job);
                self.read(core, job, part.at, part.sectors);
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
            replace.reading -= 1;
            replace.free.push(job);
            return;
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
            if !good {
                entry.writes.clear();
            }
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

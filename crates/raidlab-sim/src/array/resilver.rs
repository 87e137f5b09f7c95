//! Resilvering: what ZFS has allocated is put on a disk that is new, block by block.
//!
//! Each vdev with a new disk has a list of the blocks that were there when it came. A block is read, from a mirror one copy, of
//! RAID-Z all columns that are there, parity as well; when all has come, what the new disk lacks of it is written
//! (`vdev_mirror_io_done`, `vdev_raidz_io_done`). Blocks of RAID-Z without a column on the new disk are left alone
//! (`vdev_raidz_need_resilver`). Vdevs without a new disk have nothing to do.
//!
//! Before 0.8 blocks go in the order in which the walk through the tree of blocks meets them, so many at a time for each vdev
//! of the pool, and each waits two ticks when anybody else has asked for anything within the last fifty
//! (`dsl_scan_scrub_cb`). Since 0.8 the walk reads metadata alone; when it is over, what it has found goes out in the order of places
//! (`scan_io_queue_fetch_ext`: a whole walk is a checkpoint), as many bytes at a time as the vdev has disks for. Then the disks' queues
//! alone hold it back.
//!
//! Whoever owns the array says when it may go on: ZFS resilvers within transaction groups (`host/journal/fill.rs`).
//!
//! Until all is done what was there before is not read from the new disk; what has been written since is
//! (`vdev_dtl_contains`). Nobody waits for a resilver: blocks are never written in place.
//!
//! Left out: before 0.8 that the walk itself waits for metadata it has not read ahead; since, that a walk which runs out of memory
//! goes out in several rounds, the largest runs first (`zfs_scan_mem_lim_fact`); the blocks of a place that is freed meanwhile;
//! `zpool replace -s`.
mod list;

use super::core::{Core, Op, Task};
use super::node::{Common, Node, Shape};
use super::spec::Scan;
use crate::block::{Extent, Tally, Watch};
pub(super) use list::places;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use raidlab_experiment::kernel::TICK;
use raidlab_layout::{Member, MemberSet};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Blocks at a time for each vdev of the pool (`zfs_top_maxinflight`).
const TOP: u64 = 32;
/// Ticks after somebody's request for which a block waits (`zfs_scan_idle`), and how many it waits (`zfs_resilver_delay`).
const IDLE: u64 = 50;
const DELAY: u64 = 2;

/// A block under way.
#[derive(Clone, Debug)]
struct Job {
    /// Requests in flight.
    flight: u32,
    /// What it counts of what may be in flight.
    cost: u64,
    /// Of new members what they lack: role, sector, sectors.
    writes: Vec<(u16, u64, u32)>,
}

/// What a block asks of the members.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// Role, sector and sectors.
    pub(super) reads: Vec<(u16, u64, u32)>,
    pub(super) writes: Vec<(u16, u64, u32)>,
}

/// The resilver of one vdev.
#[derive(Clone, Debug)]
pub(super) struct Resilver {
    scan: Scan,
    /// What is to be done, in order; places are sectors of the vdev. Which is next, and how far it has come.
    work: Vec<Extent>,
    next: (usize, u64),
    /// Extents that the walk reads first, and that come again.
    walk: usize,
    /// Blocks, or sectors of blocks, that may be and are in flight.
    most: u64,
    flight: u64,
    /// Blocks under way, by number, and numbers to be used again.
    jobs: Vec<Job>,
    free: Vec<u32>,
    pub(super) tally: Tally,
    /// A block waits until then; whether it has.
    wakes: Option<Instant>,
    waited: bool,
    /// Blocks may go out; whether those of the walk have all been read.
    on: bool,
    walked: bool,
}

impl Resilver {
    /// What a vdev of so many disks in a pool of so many vdevs has to do for `extents`.
    fn new(scan: Scan, mut extents: Vec<Extent>, (disks, vdevs): (u64, u64), tally: Tally) -> Self {
        let (work, walk, most) = match scan {
            Scan::Walk => (extents, 0, TOP * vdevs),
            Scan::Sorted { bytes, .. } => {
                let mut work: Vec<Extent> = extents.iter().filter(|e| e.walked).copied().collect();
                let walk = work.len();
                // Mostly they are in runs that ascend, which a stable sort merges.
                extents.sort_by_key(|extent| extent.start);
                work.append(&mut extents);
                (work, walk, bytes / SECTOR * disks)
            }
        };
        Self {
            scan,
            work,
            next: (0, 0),
            walk,
            most,
            flight: 0,
            jobs: Vec::new(),
            free: Vec::new(),
            tally,
            wakes: None,
            waited: false,
            on: false,
            walked: walk == 0,
        }
    }

    pub(super) const fn next_event(&self) -> Option<Instant> {
        self.wakes
    }

    /// Blocks may go out from now on, or may not.
    pub(super) fn turn(&mut self, on: bool) {
        self.on = on;
        // Else it would wake again and again.
        self.wakes = self.wakes.filter(|_| on);
    }

    /// Nothing is under way, nor will be before its next turn.
    pub(super) fn rests(&self) -> bool {
        !self.on && self.open() == 0
    }

    /// Blocks under way.
    fn open(&self) -> usize {
        self.jobs.len() - self.free.len()
    }

    fn add(&mut self, job: Job) -> u32 {
        if let Some(number) = self.free.pop() {
            self.jobs[number as usize] = job;
            return number;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
    }

    /// The next block: its first sector and its sectors, and whether it is only read; `None` when that was all.
    fn block(&self) -> Option<(u64, u32, bool)> {
        let (number, within) = self.next;
        let extent = self.work.get(number)?;
        let sectors = u64::from(extent.unit).min(extent.len - within) as u32;
        Some((extent.start + within, sectors, number < self.walk))
    }

    fn step(&mut self, sectors: u32) {
        let (number, within) = &mut self.next;
        *within += u64::from(sectors);
        if *within >= self.work[*number].len {
            (*number, *within) = (*number + 1, 0);
        }
    }

    /// Whether the next block may go out now.
    fn may(&mut self, core: &Core) -> bool {
        if !self.walked && self.next == (self.walk, 0) {
            // What the walk has found goes out when it is over, by the next turn (`dsl_scan_sync`).
            if self.open() > 0 {
                return false;
            }
            (self.walked, self.on) = (true, false);
        }
        if !self.on || self.flight >= self.most {
            return false;
        }
        if self.scan != Scan::Walk {
            return true;
        }
        if let Some(until) = self.wakes {
            if core.now < until {
                return false;
            }
            (self.wakes, self.waited) = (None, true);
        }
        let recent = |at: Instant| core.now.since(at).0 <= IDLE * TICK.0;
        if !self.waited && core.others.is_some_and(recent) {
            self.wakes = Some(core.now + Span(DELAY * TICK.0));
            return false;
        }
        self.waited = false;
        true
    }

    fn cost(&self, sectors: u32) -> u64 {
        match self.scan {
            Scan::Walk => 1,
            Scan::Sorted { .. } => u64::from(sectors),
        }
    }
}

impl Node {
    /// Whether its new members wait to be told what they lack.
    pub(super) fn awaits_resilver(&self) -> bool {
        let told = self.resilver.is_some() || self.replace.is_some();
        self.layout.is_none() && !self.common.filling.is_empty() && !told
    }

    /// Begins to fill its new members with what lies in `extents`, whose places are sectors of this vdev.
    pub(super) fn begin_resilver(
        &mut self,
        core: &Core,
        scan: Scan,
        extents: Vec<Extent>,
        vdevs: u64,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        // Each of these steps takes a part of a second for a TiB.
        watch()?;
        self.common.lacks = places(&extents);
        if let Shape::Mirror(mirror) = &self.shape {
            let offset = mirror.offset();
            let lacks = self.common.lacks.iter_mut();
            lacks.for_each(|(from, to)| (*from, *to) = (*from + offset, *to + offset));
        }
        watch()?;
        let children = self.common.children.len() as u64;
        let disks = match (&self.shape, scan) {
            (_, Scan::Walk | Scan::Sorted { leaves: true, .. }) => children,
            (Shape::Raidz(raidz), _) => children - raidz.parity() as u64,
            // A mirror counts as one disk.
            _ => 1,
        };
        let members = self.common.filling.len() as u64;
        let mut known = BTreeMap::new();
        let total = extents
            .iter()
            .map(|extent| self.lacked(extent, &mut known))
            .sum();
        watch()?;
        let tally = Tally::new(total, members, core.now);
        let resilver = Resilver::new(scan, extents, (disks, vdevs), tally);
        self.resilver = Some(Box::new(resilver));
        ControlFlow::Continue(())
    }

    /// Sectors of an extent that its new members lack; what is `known` of blocks of a size by their turn need not be told for each
    /// of millions.
    fn lacked(&self, extent: &Extent, known: &mut BTreeMap<(u64, u64), u64>) -> u64 {
        let Shape::Raidz(raidz) = &self.shape else {
            return extent.len * self.common.filling.len() as u64;
        };
        let unit = u64::from(extent.unit);
        let blocks =
            (0..extent.len.div_ceil(unit)).map(|i| (i * unit, unit.min(extent.len - i * unit)));
        let tell = |at: u64, len: u64| {
            let needs = raidz.resilver(&self.common, at, len as u32, false);
            let sectors = needs.writes.iter().map(|write| u64::from(write.2));
            sectors.sum::<u64>()
        };
        let mut of = |(at, len): (u64, u64)| {
            let at = extent.start + at;
            let kind = (raidz.turn(at), len);
            *known.entry(kind).or_insert_with(|| tell(at, len))
        };
        blocks.map(&mut of).sum()
    }

    /// Sends what the resilver may send now.
    pub(super) fn pump_resilver(&mut self, core: &mut Core) {
        loop {
            let Some(resilver) = &mut self.resilver else {
                return;
            };
            let pointless = self.common.filling.is_empty() || self.common.lost;
            let Some((at, sectors, only_read)) = resilver.block().filter(|_| !pointless) else {
                return self.end_resilver(core);
            };
            let needs = needs(&mut self.shape, &self.common, at, sectors, only_read);
            if needs.reads.is_empty() || (needs.writes.is_empty() && !only_read) {
                // No new member lacks it.
                resilver.step(sectors);
                continue;
            }
            if !resilver.may(core) {
                return;
            }
            resilver.step(sectors);
            let cost = resilver.cost(sectors);
            resilver.flight += cost;
            let job = resilver.add(Job {
                flight: needs.reads.len() as u32,
                cost,
                writes: needs.writes,
            });
            for read in needs.reads {
                ask(
                    &mut self.shape,
                    &self.common,
                    core,
                    job,
                    BlockKind::Read,
                    read,
                );
            }
        }
    }

    /// A request of the resilver has ended. What cannot be read is left as it is.
    pub(super) fn resilvered(&mut self, core: &mut Core, job: u32, op: &Op, good: bool) {
        if let Shape::Mirror(mirror) = &mut self.shape {
            mirror.answered(op.role);
        }
        let Some(resilver) = &mut self.resilver else {
            return;
        };
        if op.kind == BlockKind::Write && good {
            resilver.tally.note(core.now, u64::from(op.sectors));
        }
        let entry = &mut resilver.jobs[job as usize];
        entry.flight -= 1;
        if op.kind == BlockKind::Read && !good {
            entry.writes.clear();
        }
        if entry.flight > 0 {
            return;
        }
        let mut writes = std::mem::take(&mut entry.writes);
        writes.retain(|write| self.common.filling.contains(Member(write.0)));
        if writes.is_empty() {
            resilver.flight -= entry.cost;
            resilver.free.push(job);
            return;
        }
        entry.flight = writes.len() as u32;
        for write in writes {
            ask(
                &mut self.shape,
                &self.common,
                core,
                job,
                BlockKind::Write,
                write,
            );
        }
    }

    /// Nothing more is sent; when all has ended, the new members are as the others.
    fn end_resilver(&mut self, core: &mut Core) {
        let Some(resilver) = &mut self.resilver else {
            return;
        };
        resilver.next = (resilver.work.len(), 0);
        if resilver.open() > 0 {
            return;
        }
        self.resilver = None;
        self.common.lacks = Vec::new();
        self.common.filling = MemberSet::EMPTY;
        core.resilvered = Some(core.now);
    }
}

/// What a block asks of the members of a vdev.
fn needs(shape: &mut Shape, common: &Common, at: u64, sectors: u32, only_read: bool) -> Needs {
    match shape {
        Shape::Mirror(mirror) => mirror.resilver(common, at, sectors, only_read),
        Shape::Raidz(raidz) => raidz.resilver(common, at, sectors, only_read),
        _ => Needs::default(),
    }
}

fn ask(
    shape: &mut Shape,
    common: &Common,
    core: &mut Core,
    job: u32,
    kind: BlockKind,
    (role, lba, sectors): (u16, u64, u32),
) {
    if let Shape::Mirror(mirror) = shape {
        mirror.asked(role, lba + u64::from(sectors));
    }
    let on = (role, lba, sectors);
    let op = Op::refill(common.index, Task::Resilver(job), kind, on);
    core.ask(common.children[usize::from(role)], op);
}

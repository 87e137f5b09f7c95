//! Raid4, raid5 and raid6: requests go through a cache of stripes, or around it.
//!
//! A write becomes *groups*: rows of one stripe that it covers alike. A group is admitted to bands of
//! the [`cache`], row by row, when there is room and no band in flight would have to be divided;
//! groups that cannot wait in order ([`admit`]). What a band does then is in [`handle`].
mod admit;
mod ask;
mod cache;
mod handle;
mod noted;
mod plug;
pub(super) mod thread;

use super::core::{Core, Op, Task};
use super::node::Common;
use super::resync::Room;
use super::slab::Slab;
use super::spec::{Era, ParityCost};
use crate::block::{Bio, Busy, Origin, ResourceKind};
use crate::disk::DiskError;
use cache::Cache;
use plug::Plug;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_layout::parity::{Parity, Roles};
use raidlab_layout::{Member, MemberSet};
use std::collections::VecDeque;
use thread::{Thread, Work};

/// How long writes wait for more when nobody says that he waits: the plug timer of md's queue before
/// 2.6.39 (`unplug_delay`, 3 ms). Later kernels release when the submitter sleeps, which is
/// [`ParityArray::unplug`].
pub(super) const PLUG: Span = Span::from_millis(3);

/// Somebody who waits for a band.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    parent: u32,
    next: u32,
}

/// Rows of one stripe that a request covers alike.
#[derive(Clone, Copy, Debug)]
struct Group {
    parent: u32,
    stripe: u64,
    from: u32,
    to: u32,
    parity: MemberSet,
    /// Blocks to write wholly or in part, to read.
    full: MemberSet,
    part: MemberSet,
    want: MemberSet,
    /// To be checked or filled; part of a resync.
    resync: bool,
    fua: bool,
    sync: bool,
    /// Fails when there is no room.
    ahead: bool,
    /// Whose request it is of.
    task: u16,
}

/// The part of one stripe that a request covers: from `from` in data chunk `first` up to (excluding)
/// `to` in data chunk `last`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    stripe: u64,
    first: usize,
    last: usize,
    from: u32,
    to: u32,
}

/// Raid4, raid5 or raid6.
#[derive(Clone, Debug)]
pub(super) struct ParityArray {
    layout: Parity,
    /// The roles of the first stripes, up to where they repeat.
    roles: Box<[Roles]>,
    chunk: u32,
    cache: Cache,
    waiters: Slab<Waiter>,
    /// Groups that wait for room, or for a band in flight.
    queue: VecDeque<Group>,
    /// Somebody waits for room, a resync perhaps: until a quarter is free nobody is given any
    /// (`raid5.c:get_active_stripe`, `R5_INACTIVE_BLOCKED`).
    short: bool,
    /// A resync waits for room: the row that it then gets is kept for it.
    sync_waits: bool,
    /// Something has been written.
    written: bool,
    /// Sectors of requests of read-ahead that found no room.
    refused: u64,
    /// Since when those that wait are to be looked at again: room has come up.
    rested: Option<Instant>,
    delayed: VecDeque<u32>,
    /// Since when writes are held back.
    plugged: Option<Instant>,
    /// Whoever submits has said that he waits, but some of his groups wait here, so that he has not
    /// come to that yet.
    unplug_after: bool,
    /// Bands that read before they write. More start when there are none (`IO_THRESHOLD`).
    prereads: u32,
    /// The band that the thread has come to.
    looks_at: Option<u32>,
    /// Who asks the members now: 0 is the array's thread.
    asks: u16,
    thread: Thread,
    /// What the thread holds back until it has nothing more to do.
    held: Plug,
    era: Era,
}

impl ParityArray {
    pub(super) fn new(
        layout: Parity,
        rows: u32,
        era: Era,
        (cost, workers): (ParityCost, u16),
    ) -> Self {
        let period = layout.period() as u64;
        Self {
            roles: (0..period).map(|stripe| layout.roles(stripe)).collect(),
            chunk: layout.chunk().0 as u32,
            layout,
            cache: Cache::new(rows),
            waiters: Slab::new(),
            queue: VecDeque::new(),
            short: false,
            sync_waits: false,
            written: false,
            refused: 0,
            rested: None,
            delayed: VecDeque::new(),
            plugged: None,
            unplug_after: false,
            prereads: 0,
            looks_at: None,
            asks: 0,
            thread: Thread::new(cost, workers),
            held: Plug::new(era.plug_requests),
            era,
        }
    }

    /// Who has what in a stripe.
    #[inline]
    fn roles(&self, stripe: u64) -> &Roles {
        &self.roles[(stripe % self.roles.len() as u64) as usize]
    }

    /// Whether the array's thread sends what a resync asks for.
    pub(super) const fn thread_syncs(&self) -> bool {
        self.era.thread_syncs
    }

    /// Whether a resync that asked for more than there was room for waits still.
    pub(super) const fn sync_waits(&self) -> bool {
        self.sync_waits
    }

    /// There is no resync any more.
    pub(super) const fn sync_ends(&mut self) {
        self.sync_waits = false;
        self.cache.take_kept();
    }

    /// Whether a process that submits so waits for a stripe of what it writes, with more that has none yet
    /// (`raid5.c:raid5_get_active_stripe`).
    pub(super) fn sleeps(&self, origin: &Origin) -> bool {
        let writes = |group: &Group| group.want.is_empty() && !group.resync;
        self.queue
            .iter()
            .any(|it| writes(it) && it.task == origin.task && it.sync == origin.sync)
    }

    /// What the stripe cache has room for.
    pub(super) fn room(&self) -> Room {
        let sectors = |rows: u32| u64::from(rows) * u64::from(cache::ROW);
        Room {
            all: sectors(self.cache.rows()),
            request: self.cache.request().map(sectors),
        }
    }

    /// Rows of the stripe cache, if it is one that grows.
    pub(super) fn growing_rows(&self) -> Option<u32> {
        self.era.cache_grows.then_some(self.cache.rows())
    }

    /// Sectors of read-ahead for which the stripe cache had no room.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Rows of the stripe cache, and whether it may come to have more.
    pub(super) fn stripes(&self) -> (u32, bool) {
        let rows = self.cache.rows();
        (rows, self.era.cache_grows && rows < cache::MOST_ROWS)
    }

    /// Members take so many rows in a request.
    pub(super) fn limit_rows(&mut self, rows: u32) {
        self.cache.limit(rows);
    }

    /// The stripe cache keeps its size from now on, or no longer.
    pub(super) const fn keep_cache(&mut self, keeps: bool) {
        self.cache.keep(keeps);
    }

    /// Rows of all members that are synchronised by a resync.
    pub(super) fn resync_sectors(&self) -> u64 {
        self.layout.stripes() * u64::from(self.chunk)
    }

    /// Whether requests come into the stripe cache row by row.
    pub(super) const fn takes_rows(&self) -> bool {
        self.era.rows_at_once
    }

    /// Whether a request goes around the stripe cache where its member is there.
    fn goes_around(&self, common: &Common, kind: BlockKind) -> bool {
        kind == BlockKind::Read
            && self.era.aligned_reads
            && (self.era.aligned_degraded || common.gone.union(common.filling).is_empty())
    }

    /// Sectors that it takes at a time from `at` on: what goes around the stripe cache chunk by chunk.
    pub(super) fn run_at(&self, common: &Common, kind: BlockKind, at: u64) -> u64 {
        if self.goes_around(common, kind) {
            let chunk = u64::from(self.chunk);
            chunk - at % chunk
        } else {
            u64::MAX
        }
    }

    #[inline]
    pub(super) fn submit(&mut self, common: &Common, core: &mut Core, parent: u32, bio: &Bio) {
        if bio.kind == BlockKind::Write && self.plugged.is_none() {
            self.plugged = Some(core.now);
        }
        let data = self.layout.data_members();
        let chunk = u64::from(self.chunk);
        let absent = common.gone.union(common.filling);
        let around = self.goes_around(common, bio.kind);
        let (mut at, end) = (bio.lba.0, bio.end());
        if around && (at & (chunk - 1)) + (end - at) <= chunk {
            let number = at >> self.chunk.trailing_zeros();
            let (stripe, first) = (number / data as u64, (number % data as u64) as usize);
            let member = self.roles(stripe).member(first);
            if !absent.contains(Member::new(member)) {
                // As mostly, it has one part, which it waits for in place of that its parts are made.
                let op = self.around(
                    common,
                    parent,
                    bio,
                    (at, member, stripe, at & (chunk - 1), end - at),
                );
                return core.ask(common.children[member], op);
            }
        }
        let mut goes_on = true;
        while at < end && goes_on {
            let (number, from) = (at >> self.chunk.trailing_zeros(), at & (chunk - 1));
            let (stripe, first) = (number / data as u64, (number % data as u64) as usize);
            if around {
                let len = (chunk - from).min(end - at);
                let roles = self.roles(stripe);
                let member = roles.member(first);
                if absent.contains(Member::new(member)) {
                    let (from, to, roles) = (from as u32, (from + len) as u32, *roles);
                    let piece = Piece {
                        stripe,
                        first,
                        last: first,
                        from,
                        to,
                    };
                    goes_on = self.groups(common, core, parent, bio, &roles, &piece);
                } else {
                    let op = self.around(common, parent, bio, (at, member, stripe, from, len));
                    core.ask_part(common.children[member], parent, op);
                }
                at += len;
                continue;
            }
            let covered = ((data - first) as u64 * chunk - from).min(end - at);
            let last = from + covered - 1;
            let piece = Piece {
                stripe,
                first,
                last: first + (last / chunk) as usize,
                from: from as u32,
                to: (last % chunk) as u32 + 1,
            };
            let roles = *self.roles(stripe);
            goes_on = self.groups(common, core, parent, bio, &roles, &piece);
            at += covered;
        }
        if !goes_on {
            // None of its pages is there, whatever else of it comes.
            self.refused += u64::from(bio.sectors);
        }
        core.close(parent, Ok(()));
    }

    /// A read of a member around the cache.
    #[inline(always)]
    fn around(
        &self,
        common: &Common,
        parent: u32,
        bio: &Bio,
        (at, member, stripe, from, len): (u64, usize, u64, u64, u64),
    ) -> Op {
        Op {
            node: common.index,
            role: member as u16,
            task: Task::Part(parent),
            at,
            kind: BlockKind::Read,
            lba: stripe * u64::from(self.chunk) + from,
            sectors: len as u32,
            fua: false,
            origin: bio.origin,
            tries: 0,
        }
    }

    /// Whoever submitted waits now: what is held back for more to come starts. As long as some of what
    /// he submitted waits here for room, he is still about it.
    #[inline]
    pub(super) fn unplug(&mut self, common: &Common, core: &mut Core) {
        if self.queue.is_empty() {
            self.release(common, core);
        } else {
            self.unplug_after = true;
        }
    }

    /// What is held back starts.
    #[inline]
    fn release(&mut self, common: &Common, core: &mut Core) {
        self.plugged = None;
        if !self.delayed.is_empty() {
            self.activate(common, core);
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        let mut next = self.thread.next();
        if let Some(since) = self.plugged
            && !self.delayed.is_empty()
        {
            next = next.min(since + PLUG);
        }
        self.rested.map_or(next, |rested| next.min(rested))
    }

    /// Whether [`advance`](Self::advance) would do nothing at any time.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let waits = self.rested.is_some() | self.plugged.is_some();
        !waits && !self.thread.any_busy() && self.held.is_empty()
    }

    #[inline]
    pub(super) fn advance(&mut self, common: &Common, core: &mut Core) {
        while let Some((key, work)) = self.thread.done(core.now) {
            match work {
                Work::Compute => self.computed(common, core, key),
                Work::Look => self.look(common, core, key),
                Work::Send => {}
            }
            if !self.held.is_empty() && !self.thread.is_busy() {
                // Whoever has done this has nothing more to do; others may.
                self.held.release(core);
            }
        }
        // All that has ended at this time has made its room.
        if self.rested.is_some() {
            self.retry(common, core);
        }
        if self.plugged.is_some_and(|since| since + PLUG <= core.now) {
            self.release(common, core);
        }
        if !self.held.is_empty() && !self.thread.is_busy() {
            self.held.release(core);
        }
    }

    /// What the thread did; `behind` is told with its name.
    pub(super) fn busy(&self, now: Instant, behind: &str) -> Busy {
        let [sum, copy, handle] = self.thread.spent(now);
        let mut parts = vec![("parity", sum), ("copies", copy), ("stripes", handle)];
        parts.sort_by_key(|part| std::cmp::Reverse(part.1));
        let thread = match self.thread.count() {
            1 => "thread".to_owned(),
            workers => format!("group of {workers} threads"),
        };
        Busy {
            name: format!("{} {thread}{behind}", self.level()),
            kind: ResourceKind::Thread,
            units: self.thread.count() as u32,
            busy: self.thread.busy(now),
            parts,
            way: None,
        }
    }

    /// The thread and its workers.
    pub(super) const fn workers(&self) -> &Thread {
        &self.thread
    }

    /// The same, to have them wait.
    pub(super) const fn workers_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    /// Name of the level.
    const fn level(&self) -> &'static str {
        self.layout.level().name()
    }

    /// A read around the cache has ended; one that failed is made again through the cache.
    #[inline]
    pub(super) fn around_ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        op: &Op,
        result: Result<(), DiskError>,
    ) {
        if result.is_err() && !common.lost {
            self.read_again(common, core, parent, op);
            return core.close(parent, Ok(()));
        }
        core.close(parent, result);
    }

    /// What could not be read around the cache is read through it.
    #[cold]
    fn read_again(&mut self, common: &Common, core: &mut Core, parent: u32, op: &Op) {
        let chunk = u64::from(self.chunk);
        let (stripe, from) = (op.lba / chunk, (op.lba % chunk) as u32);
        let roles = *self.roles(stripe);
        let index = roles.index(usize::from(op.role)).unwrap_or(0);
        let (kind, origin) = (BlockKind::Read, op.origin);
        let bio = retry_bio(kind, origin);
        let piece = Piece {
            stripe,
            first: index,
            last: index,
            from,
            to: from + op.sectors,
        };
        let _ = self.groups(common, core, parent, &bio, &roles, &piece);
    }
}

/// What a read through the cache needs of the request that failed around it.
fn retry_bio(kind: BlockKind, origin: Origin) -> Bio {
    Bio {
        id: 0,
        kind,
        lba: raidlab_core::units::Lba(0),
        sectors: 0,
        fua: false,
        origin,
    }
}

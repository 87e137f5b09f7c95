//! The queue that ZFS keeps for each disk (`vdev_queue.c`), and what it joins of it.
//!
//! Before 0.6.3 requests go by deadline, those of one deadline by place. A deadline is when a request came, in steps of
//! 64 ms, plus its priority. So what somebody waits for passes the writes of a transaction group for a quarter of a
//! second; after that, what is left of the group goes first, without a seek between.
//!
//! Since 0.6.3 there are classes, each with so many requests at a time: what somebody waits for in the order that it
//! came, all else by place from where the last request ended. A class that has less than its minimum goes first, then
//! the first that has less than its maximum. Since 2.1 what nobody waits for (a resilver) stands back while somebody's
//! requests are in the disk (`vq_nia_credit`).
//!
//! What goes out takes its neighbours of the same kind along, whatever their class: writes that touch, reads also over
//! small gaps (`vdev_queue_aggregate`). Repairs are joined among themselves alone.
//!
//! Left out: of the old queue that of a burst only four are given out before one of them has ended, and from then on
//! two for each that ends (`zfs_vdev_min_pending`, `zfs_vdev_ramp_rate`); of the new one that with little dirty data fewer
//! writes of a group go at a time (`zfs_vdev_async_write_active_min_dirty_percent`): repairs by themselves, beside
//! which nothing is dirty, have the minimum, anything else the maximum. Gaps between writes are closed by RAID-Z itself.
use super::store::{NIL, Rq, Store};
use crate::block::Bio;
use raidlab_core::op::BlockKind;
use raidlab_experiment::kernel::Kernel;

/// `zfs_vdev_time_shift` 6, of ticks of 1 ms.
const STEP: u64 = 64_000_000;
/// Steps that a request may be behind others, by class: what somebody waits for, write-back
/// (`ZIO_PRIORITY_ASYNC_WRITE`), reading ahead (`ZIO_PRIORITY_ASYNC_READ`); of a resilver its reads, and the repairs that come of
/// them (`ZIO_PRIORITY_RESILVER`).
const PRIORITY: [u64; CLASSES] = [0, 0, 6, 4, 10, 10];

/// Classes: what somebody waits for, read and written; read ahead, written behind; of a resilver, read and written.
const SYNC_READ: u16 = 0;
const SYNC_WRITE: u16 = 1;
const ASYNC_READ: u16 = 2;
const ASYNC_WRITE: u16 = 3;
const SCRUB: u16 = 4;
const REPAIR: u16 = 5;
const CLASSES: usize = 6;

/// Requests at a time without any limit of a class (`zfs_vdev_max_active`).
const MOST: u32 = 1000;
/// Requests that the others may have between two that somebody waits for (`zfs_vdev_nia_credit`), and that must have ended
/// without anybody's beside them until they have their maximum (`zfs_vdev_nia_delay`).
const CREDIT: u32 = 5;
const DELAY: u32 = 5;
/// Reads are joined over gaps up to this, in sectors (`zfs_vdev_read_gap_limit`, 32 KiB).
const READ_GAP: u64 = 64;
/// `zfs_vdev_aggregation_limit`, in sectors: 128 KiB, since 0.8 1 MiB on disks that turn.
const JOINS: u32 = 256;
const JOINS_LATER: u32 = 2048;

/// What a release has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Sectors that requests are joined to.
    pub joins: u32,
    /// Requests that a class has at a time, at the least and at the most, in the order of `zio_priority.h`: synchronous reads
    /// and writes, asynchronous ones, a resilver's reads. `None`: requests go by deadline.
    pub active: Option<[(u32, u32); 5]>,
    /// What nobody waits for stands back.
    pub credit: bool,
}

impl Tunables {
    /// Of the release of this kernel's time, for a disk that turns or not.
    ///
    /// 0.6.3 is of the time of 3.12, 0.7 of 4.13, 0.8 of 5.1, 2.1 of 5.13.
    #[must_use]
    pub fn of(kernel: Kernel, rotational: bool) -> Self {
        let since = |major, minor| kernel >= Kernel::Linux(major, minor, 0);
        let writes = if since(4, 13) { 2 } else { 1 };
        let scrub = if since(5, 13) { 3 } else { 2 };
        let active = [(10, 10), (10, 10), (1, 3), (writes, 10), (1, scrub)];
        Self {
            joins: if since(5, 1) && rotational {
                JOINS_LATER
            } else {
                JOINS
            },
            active: since(3, 12).then_some(active),
            credit: since(5, 13),
        }
    }
}

/// The class of a bio.
#[inline]
pub(super) fn class(bio: &Bio) -> u16 {
    let read = bio.kind == BlockKind::Read;
    match (bio.origin.background, read) {
        (true, true) => SCRUB,
        (true, false) => REPAIR,
        (false, true) if bio.origin.ahead => ASYNC_READ,
        (false, true) => SYNC_READ,
        (false, false) if bio.origin.sync => SYNC_WRITE,
        (false, false) => ASYNC_WRITE,
    }
}

/// Classes whose requests are joined with those of one.
const fn family(class: u16) -> &'static [u16] {
    match class {
        SYNC_READ | ASYNC_READ => &[SYNC_READ, ASYNC_READ],
        SYNC_WRITE | ASYNC_WRITE => &[SYNC_WRITE, ASYNC_WRITE],
        SCRUB => &[SCRUB],
        _ => &[REPAIR],
    }
}

/// The queue of one disk.
#[derive(Clone, Debug)]
pub(super) struct Vdev {
    with: Tunables,
    active: [u32; CLASSES],
    /// The class that was given out last.
    last: u16,
    /// Where the last request ended.
    position: u64,
    credit: u32,
}

impl Vdev {
    pub(super) const fn new(with: Tunables) -> Self {
        Self {
            with,
            active: [0; CLASSES],
            last: REPAIR,
            position: 0,
            credit: 0,
        }
    }

    /// The request to be given out now; [`NIL`] when none is to be, although some wait.
    pub(super) fn pick(&mut self, store: &Store) -> u32 {
        let Some(limits) = self.with.active else {
            return by_deadline(store);
        };
        let Some(class) = self.class_to_issue(store, &limits) else {
            return NIL;
        };
        self.last = class;
        match class {
            SYNC_READ | SYNC_WRITE => store.oldest(class),
            ASYNC_WRITE => self.nearest(store, &[ASYNC_WRITE, REPAIR]),
            _ => self.nearest(store, &[class]),
        }
    }

    /// The class whose turn it is (`vdev_queue_class_to_issue`); repairs are writes behind like any.
    fn class_to_issue(&self, store: &Store, limits: &[(u32, u32); 5]) -> Option<u16> {
        if self.active.iter().sum::<u32>() >= MOST {
            return None;
        }
        let waits = |class: u16| {
            store.oldest(class) != NIL || (class == ASYNC_WRITE && store.oldest(REPAIR) != NIL)
        };
        let turns = limits.len() as u16;
        let first = if self.with.credit { self.last + 1 } else { 0 };
        let least = |class: &u16| waits(*class) && self.active(*class) < self.least(limits, *class);
        let mut round = (0..turns).map(|turn| (first + turn) % turns);
        round.find(least).or_else(|| {
            (0..turns).find(|class| {
                waits(*class) && self.active(*class) < self.most(store, limits, *class)
            })
        })
    }

    fn active(&self, class: u16) -> u32 {
        let repairs = if class == ASYNC_WRITE {
            self.active[usize::from(REPAIR)]
        } else {
            0
        };
        self.active[usize::from(class)] + repairs
    }

    /// Requests of all but the resilver's reads.
    fn others(&self) -> u32 {
        self.active.iter().sum::<u32>() - self.active[usize::from(SCRUB)]
    }

    fn least(&self, limits: &[(u32, u32); 5], class: u16) -> u32 {
        let (least, _) = limits[usize::from(class)];
        if class == SCRUB && self.with.credit && self.others() > 0 {
            return least.min(self.credit);
        }
        least
    }

    fn most(&self, store: &Store, limits: &[(u32, u32); 5], class: u16) -> u32 {
        let (least, most) = limits[usize::from(class)];
        let dirty =
            || store.oldest(ASYNC_WRITE) != NIL || self.active[usize::from(ASYNC_WRITE)] > 0;
        match class {
            ASYNC_WRITE if !dirty() => least,
            SCRUB if self.with.credit && self.others() > 0 => least.min(self.credit),
            SCRUB if self.with.credit && self.credit < DELAY => least.max(1),
            _ => most,
        }
    }

    /// Of these classes the first from where the last request ended, or else the lowest.
    fn nearest(&self, store: &Store, classes: &[u16]) -> u32 {
        let least = |slots: &mut dyn Iterator<Item = u32>| {
            let there = slots.filter(|slot| *slot != NIL);
            there.min_by_key(|slot| (store.get(*slot).lba, *slot))
        };
        let mut after = classes.iter().map(|c| store.around(*c, self.position).1);
        let mut lowest = classes.iter().map(|c| store.lowest(*c));
        least(&mut after)
            .or_else(|| least(&mut lowest))
            .unwrap_or(NIL)
    }

    /// A request goes to the disk.
    pub(super) fn given(&mut self, rq: &Rq) {
        self.position = rq.end();
        if rq.class != SCRUB && self.others() == 0 {
            self.credit = 1;
        } else if rq.class == SCRUB && self.others() > 0 {
            self.credit = self.credit.saturating_sub(1);
        }
        self.active[usize::from(rq.class)] += 1;
    }

    /// The disk has ended it.
    pub(super) fn ended(&mut self, rq: &Rq) {
        self.active[usize::from(rq.class)] -= 1;
        match (rq.class, self.others()) {
            (SCRUB, 0) => self.credit = self.credit.saturating_add(1),
            (SCRUB, _) => {}
            (_, 0) => self.credit = 0,
            (..) => self.credit = CREDIT,
        }
    }
}

/// The request with the earliest deadline; [`NIL`] only when none waits.
fn by_deadline(store: &Store) -> u32 {
    let mut best = (u64::MAX, u64::MAX, NIL);
    for (class, priority) in PRIORITY.iter().enumerate() {
        let mut slot = store.oldest(class as u16);
        if slot == NIL {
            continue;
        }
        let step = store.get(slot).since / STEP;
        while slot != NIL && store.get(slot).since / STEP == step {
            best = best.min((step + priority, store.get(slot).lba, slot));
            slot = store.younger(slot);
        }
    }
    best.2
}

/// Joins to a waiting request its neighbours, up to so many sectors: first those before it, then those behind
/// (`vdev_queue_aggregate`). Calls `joined` with each that is no request of its own any more; what came of it, still waiting.
pub(super) fn gather(store: &mut Store, slot: u32, joins: u32, mut joined: impl FnMut(&Rq)) -> u32 {
    let Rq {
        class, kind, fua, ..
    } = *store.get(slot);
    let gap = if kind == BlockKind::Read { READ_GAP } else { 0 };
    if fua || joins == 0 {
        return slot;
    }
    let fits = |first: &Rq, last: &Rq| {
        let apart = last.lba.checked_sub(first.end());
        let near = apart.is_some_and(|apart| apart <= gap);
        near && !first.fua && !last.fua && last.end() - first.lba <= u64::from(joins)
    };
    let mut first = slot;
    loop {
        let lba = store.get(first).lba;
        let before = family(class).iter().map(|c| store.around(*c, lba).0);
        let before = before.filter(|slot| *slot != NIL);
        let Some(before) = before.max_by_key(|slot| store.get(*slot).lba) else {
            break;
        };
        if !fits(store.get(before), store.get(first)) {
            break;
        }
        joined(store.get(first));
        store.join(before, first);
        first = before;
    }
    loop {
        let end = store.get(first).end();
        let behind = family(class).iter().map(|c| store.around(*c, end).1);
        let behind = behind.filter(|slot| *slot != NIL);
        let Some(behind) = behind.min_by_key(|slot| store.get(*slot).lba) else {
            break;
        };
        if !fits(store.get(first), store.get(behind)) {
            break;
        }
        joined(store.get(behind));
        store.join(first, behind);
    }
    first
}

//! Those who wait for a request.
//!
//! A process that finds none free sleeps with all that it has yet to submit, and others wait behind *it*, not behind its bios: it
//! is let in when it is its turn, goes on as far as it may, and waits again behind all others.
use super::Queue;
use super::spec::Admits;
use crate::block::{Bio, Origin, RESYNC};
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;

/// Requests that whoever has waited, or has taken the last one, may have at once (`BLK_BATCH_REQ`, `block/ll_rw_blk.c`).
const BATCH: u32 = 32;
/// How long (`BLK_BATCH_TIME`: a fiftieth of a second).
const BATCH_TIME: Span = Span::from_millis(20);

/// Who submits: what a process wants at once and what it writes back wait by themselves, as the kernel's flusher and journal do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Who {
    task: u16,
    sync: bool,
}

impl Who {
    const fn of(origin: &Origin) -> Self {
        Self {
            task: origin.task,
            sync: origin.sync,
        }
    }
}

/// A process that waits, with all that it has yet to submit.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    who: Who,
    pub(super) bios: VecDeque<Bio>,
}

/// What somebody may have beyond the limit.
#[derive(Clone, Copy, Debug)]
struct Batch {
    who: Who,
    left: u32,
    until: Instant,
}

/// Those who wait for a request of one group, in the order in which they are let in.
#[derive(Clone, Debug, Default)]
pub(super) struct Starved {
    waiters: VecDeque<Waiter>,
    bios: usize,
    /// Requests that have become free since somebody was let in.
    freed: u32,
    batch: Option<Batch>,
    /// Lists without a bio, for those who will wait.
    spare: Vec<VecDeque<Bio>>,
}

impl Starved {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bios == 0
    }

    /// Bios that wait.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.bios
    }

    /// The bio waits behind what its process has yet to submit, or the process behind all others.
    pub(super) fn push(&mut self, bio: Bio) {
        let who = Who::of(&bio.origin);
        self.bios += 1;
        if let Some(waiter) = self.waiters.iter_mut().find(|waiter| waiter.who == who) {
            waiter.bios.push_back(bio);
            return;
        }
        if self.waiters.is_empty() {
            self.freed = 0;
        }
        let mut bios = self.spare.pop().unwrap_or_default();
        bios.push_back(bio);
        self.waiters.push_back(Waiter { who, bios });
    }

    /// The bio that is let in first.
    pub(super) fn front(&self) -> Option<&Bio> {
        self.waiters.front().and_then(|waiter| waiter.bios.front())
    }

    /// Whoever waits longest, out of those who wait.
    pub(super) fn pop(&mut self) -> Option<Waiter> {
        let waiter = self.waiters.pop_front()?;
        self.bios -= waiter.bios.len();
        Some(waiter)
    }

    /// Whoever has been let in, waiting behind all others if it has something left.
    pub(super) fn put_back(&mut self, waiter: Waiter) {
        if waiter.bios.is_empty() {
            self.spare.push(waiter.bios);
        } else {
            self.bios += waiter.bios.len();
            self.waiters.push_back(waiter);
        }
    }

    /// Whether the submitter of what has such an origin waits.
    fn has(&self, origin: &Origin) -> bool {
        let who = Who::of(origin);
        self.bios > 0 && self.waiters.iter().any(|waiter| waiter.who == who)
    }

    /// Who has had what there was may have a few more.
    fn favour(&mut self, now: Instant, who: Who) {
        self.batch = Some(Batch {
            who,
            left: BATCH,
            until: now + BATCH_TIME,
        });
    }

    /// Takes one of those that its submitter may have beyond the limit (`ioc_batching`), if there is one left.
    fn takes_of_batch(&mut self, now: Instant, bio: &Bio) -> bool {
        let who = Who::of(&bio.origin);
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.who == who) else {
            return false;
        };
        let may = batch.left == BATCH || (batch.left > 0 && now < batch.until);
        batch.left -= u32::from(may);
        may
    }
}

impl Queue {
    /// Whether a process that submits so waits for a request, or for less write-back of all to be there.
    pub(crate) fn sleeps(&self, origin: &Origin) -> bool {
        let held = |wbt: &super::Wbt| wbt.waiting() > 0 && !origin.sync && origin.task != RESYNC;
        self.starved.iter().any(|starved| starved.has(origin))
            || self.wbt.as_deref().is_some_and(held)
    }

    /// Makes a request of a bio, or lets it wait for a free one.
    #[inline(always)]
    pub(super) fn find_room(&mut self, now: Instant, bio: Bio, class: u16) {
        let group = self.group(bio.kind, bio.origin.sync);
        if self.starved[group].is_empty() && self.room(group) && !self.fills(group) {
            return self.make(now, &bio, class, group);
        }
        self.seek_room(now, bio, class, group);
    }

    /// Whether one request more is all that there may be, and who takes it may have a few beyond.
    #[inline]
    pub(super) fn fills(&self, group: usize) -> bool {
        let requests = &self.spec.requests;
        requests.admits == Admits::InBatches && self.used[group] + 1 >= requests.each[group]
    }

    #[inline(never)]
    fn seek_room(&mut self, now: Instant, bio: Bio, class: u16, group: usize) {
        if !self.starved[group].has(&bio.origin) && self.may_have(now, &bio, group) {
            return self.make(now, &bio, class, group);
        }
        self.starved[group].push(bio);
        // Whoever waits for a request lets those there are go.
        self.unplug(now);
    }

    /// Whether a request may be made of a bio: one is free, or its submitter may have some beyond the limit (`get_request`).
    fn may_have(&mut self, now: Instant, bio: &Bio, group: usize) -> bool {
        let each = self.spec.requests.each[group];
        let batches = self.spec.requests.admits == Admits::InBatches;
        if self.room(group) {
            let starved = &mut self.starved[group];
            if batches && self.used[group] + 1 >= each && !starved.takes_of_batch(now, bio) {
                starved.favour(now, Who::of(&bio.origin));
                starved.takes_of_batch(now, bio);
            }
            return true;
        }
        let most = each + each / 2;
        batches && self.used[group] < most && self.starved[group].takes_of_batch(now, bio)
    }

    /// A request has become free: lets in who waited for it.
    #[inline(never)]
    pub(super) fn admit(&mut self, now: Instant) {
        for group in 0..2 {
            let starved = &mut self.starved[group];
            if starved.is_empty() {
                continue;
            }
            starved.freed += 1;
            let enough = match self.spec.requests.admits {
                Admits::Each | Admits::InBatches => 1,
                Admits::After(requests) => requests,
            };
            if starved.freed < enough && self.used[group] > 0 {
                continue;
            }
            // Each of them once: who has more waits for others to be let in.
            for _ in 0..starved.waiters.len() {
                if !self.room(group) {
                    break;
                }
                self.let_in(now, group);
            }
        }
        // They have waited long enough.
        self.unplug(now);
    }

    /// Whoever waits longest goes on with what it still has, of which neighbours are joined without a request of their own.
    fn let_in(&mut self, now: Instant, group: usize) {
        let starved = &mut self.starved[group];
        let Some(mut waiter) = starved.pop() else {
            return;
        };
        starved.freed = 0;
        if self.spec.requests.admits == Admits::InBatches {
            starved.favour(now, waiter.who);
        }
        while let Some(&bio) = waiter.bios.front() {
            let class = self.order.class(now, &bio);
            if self.store.waiting() > 0 && !bio.fua && self.merge(&bio, class) {
                self.merges += 1;
                if let Some(wbt) = self.wbt.as_mut().filter(|_| super::Wbt::tracks(&bio)) {
                    wbt.joined();
                }
            } else if self.may_have(now, &bio, group) {
                self.make(now, &bio, class, group);
            } else {
                break;
            }
            waiter.bios.pop_front();
        }
        self.starved[group].put_back(waiter);
    }
}

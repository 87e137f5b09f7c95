//! The requests of a queue: a slab, an order of arrival and an order by sector for every class, and
//! the merging of neighbours. Nothing is allocated once the largest load has been seen.
mod bios;

pub(super) use self::bios::Bios;
use crate::block::{Bio, Origin};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use std::collections::VecDeque;

/// No request.
pub(super) const NIL: u32 = u32::MAX;

/// A request: one bio, or several that lie side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rq {
    /// First sector.
    pub(super) lba: u64,
    pub(super) sectors: u32,
    /// The list that it waits in.
    pub(super) class: u16,
    /// Stretches of memory, the pages of a bio that stands for one of them taken as lying side by side.
    segments: u32,
    /// Which limit of requests it counts against, and [`TRACKED`].
    group: u8,
    pub(super) kind: BlockKind,
    pub(super) fua: bool,
    pub(super) origin: Origin,
    /// When it came in; of two that were joined, the earlier.
    pub(super) since: u64,
    /// When the device was given it.
    pub(super) started: u64,
    /// Neighbours in the order of arrival.
    older: u32,
    younger: u32,
    /// The bio with the lowest address, and the others in the order of their addresses.
    first: u64,
    rest: u32,
    last: u32,
}

/// In the group of a request: it counts as write-back that nobody waits for.
pub(super) const TRACKED: u8 = 2;

impl Rq {
    /// Which limit of requests it counts against.
    #[inline]
    pub(super) const fn group(&self) -> usize {
        (self.group & !TRACKED) as usize
    }

    /// Whether it counts as write-back that nobody waits for.
    #[inline]
    pub(super) const fn is_tracked(&self) -> bool {
        self.group & TRACKED != 0
    }

    /// Whether what has so many stretches of memory may join it.
    #[inline]
    pub(super) const fn takes(&self, segments: u32, most: u32) -> bool {
        self.segments.saturating_add(segments) <= most
    }

    /// Stretches of memory.
    #[inline]
    pub(super) const fn segments(&self) -> u32 {
        self.segments
    }

    /// First sector after it.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.lba + u64::from(self.sectors)
    }

    /// As the device is given it.
    #[inline]
    pub(super) fn bio(&self, slot: u32) -> Bio {
        Bio {
            id: u64::from(slot),
            kind: self.kind,
            lba: raidlab_core::units::Lba(self.lba),
            sectors: self.sectors,
            fua: self.fua,
            origin: self.origin,
        }
    }
}

/// Requests of one kind (direction, process) that wait.
#[derive(Clone, Debug)]
struct Class {
    /// (first sector, slot), ascending; equal sectors in the order of arrival.
    sorted: VecDeque<(u64, u32)>,
    oldest: u32,
    youngest: u32,
}

impl Class {
    fn new() -> Self {
        Self {
            sorted: VecDeque::new(),
            oldest: NIL,
            youngest: NIL,
        }
    }

    /// Where a request stands in the order by sector.
    #[inline]
    fn position(&self, lba: u64, slot: u32) -> usize {
        if self.sorted.front() == Some(&(lba, slot)) {
            return 0;
        }
        // What a stream goes on with stands last.
        if self.sorted.back() == Some(&(lba, slot)) {
            return self.sorted.len() - 1;
        }
        let mut at = self.sorted.partition_point(|&(key, _)| key < lba);
        while self.sorted[at].1 != slot {
            at += 1;
        }
        at
    }
}

/// All requests of a queue.
#[derive(Clone, Debug)]
pub(super) struct Store {
    slots: Vec<Rq>,
    free: Vec<u32>,
    chain: Vec<(u64, u32)>,
    free_chain: u32,
    classes: Vec<Class>,
    /// The only request that waits stands in no list: most are given out before another comes.
    alone: u32,
    waiting: usize,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            chain: Vec::new(),
            free_chain: NIL,
            classes: Vec::new(),
            alone: NIL,
            waiting: 0,
        }
    }

    /// Requests that wait in any class.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Rq {
        &self.slots[slot as usize]
    }

    /// A request that waits in no class: a flush, or one that the device is given at once.
    #[inline]
    pub(super) fn alloc(&mut self, now: Instant, bio: &Bio, class: u16, group: u8) -> u32 {
        let rq = Rq {
            lba: bio.lba.0,
            sectors: bio.sectors,
            segments: bio.segments(),
            class,
            group,
            kind: bio.kind,
            fua: bio.fua,
            origin: bio.origin,
            since: now.0,
            started: now.0,
            older: NIL,
            younger: NIL,
            first: bio.id,
            rest: NIL,
            last: NIL,
        };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = rq;
            slot
        } else {
            self.slots.push(rq);
            (self.slots.len() - 1) as u32
        }
    }

    /// A request of its own for `bio`, which waits in `class` from `now` on.
    #[inline(always)]
    pub(super) fn insert(&mut self, now: Instant, bio: &Bio, class: u16, group: u8) -> u32 {
        let slot = self.alloc(now, bio, class, group);
        self.waiting += 1;
        if self.waiting == 1 {
            self.alone = slot;
            return slot;
        }
        let other = std::mem::replace(&mut self.alone, NIL);
        if other != NIL {
            self.enlist(other);
        }
        self.enlist(slot);
        slot
    }

    /// Puts a request into the lists of its class.
    fn enlist(&mut self, slot: u32) {
        let Rq { class, lba, .. } = self.slots[slot as usize];
        while self.classes.len() <= usize::from(class) {
            self.classes.push(Class::new());
        }
        let list = &mut self.classes[usize::from(class)];
        if list.sorted.back().is_none_or(|&(key, _)| key <= lba) {
            list.sorted.push_back((lba, slot));
        } else {
            let at = list.sorted.partition_point(|&(key, _)| key <= lba);
            list.sorted.insert(at, (lba, slot));
        }
        let before = list.youngest;
        list.youngest = slot;
        if before == NIL {
            list.oldest = slot;
        } else {
            self.slots[before as usize].younger = slot;
            self.slots[slot as usize].older = before;
        }
    }

    /// The one that waits alone, if it is of `class`.
    #[inline]
    fn alone_of(&self, class: u16) -> Option<u32> {
        (self.alone != NIL && self.get(self.alone).class == class).then_some(self.alone)
    }

    /// Takes a request out of the lists it waits in.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        self.waiting -= 1;
        if slot == self.alone {
            self.alone = NIL;
        } else {
            self.delist(slot);
        }
    }

    fn delist(&mut self, slot: u32) {
        let rq = self.slots[slot as usize];
        let list = &mut self.classes[usize::from(rq.class)];
        let at = list.position(rq.lba, slot);
        list.sorted.remove(at);
        if rq.older == NIL {
            list.oldest = rq.younger;
        } else {
            self.slots[rq.older as usize].younger = rq.younger;
        }
        if rq.younger == NIL {
            list.youngest = rq.older;
        } else {
            self.slots[rq.younger as usize].older = rq.older;
        }
    }

    /// The one that has waited longest in `class`, or [`NIL`].
    #[inline]
    pub(super) fn oldest(&self, class: u16) -> u32 {
        if let Some(slot) = self.alone_of(class) {
            return slot;
        }
        self.classes
            .get(usize::from(class))
            .map_or(NIL, |list| list.oldest)
    }

    /// The one with the lowest sector in `class`, or [`NIL`].
    #[inline]
    pub(super) fn lowest(&self, class: u16) -> u32 {
        if let Some(slot) = self.alone_of(class) {
            return slot;
        }
        self.classes
            .get(usize::from(class))
            .and_then(|list| list.sorted.front())
            .map_or(NIL, |&(_, slot)| slot)
    }

    /// The last before `lba` and the first from `lba` on in the order by sector; [`NIL`] for none.
    #[inline]
    pub(super) fn around(&self, class: u16, lba: u64) -> (u32, u32) {
        if let Some(slot) = self.alone_of(class) {
            return if self.get(slot).lba < lba {
                (slot, NIL)
            } else {
                (NIL, slot)
            };
        }
        let Some(list) = self.classes.get(usize::from(class)) else {
            return (NIL, NIL);
        };
        let at = list.sorted.partition_point(|&(key, _)| key < lba);
        let before = at.checked_sub(1).map_or(NIL, |i| list.sorted[i].1);
        let after = list.sorted.get(at).map_or(NIL, |&(_, slot)| slot);
        (before, after)
    }

    /// The request that follows a waiting one in the order by sector, or [`NIL`].
    #[inline]
    pub(super) fn after(&self, slot: u32) -> u32 {
        if slot == self.alone {
            return NIL;
        }
        let rq = self.get(slot);
        let list = &self.classes[usize::from(rq.class)];
        let at = list.position(rq.lba, slot) + 1;
        list.sorted.get(at).map_or(NIL, |&(_, slot)| slot)
    }

    /// A waiting request that ends where `lba` begins, or [`NIL`]. Of requests that overlap, only the
    /// last to begin is looked at.
    #[inline]
    pub(super) fn ending_at(&self, class: u16, lba: u64) -> u32 {
        let (before, _) = self.around(class, lba);
        if before != NIL && self.get(before).end() == lba {
            before
        } else {
            NIL
        }
    }

    /// A waiting request that begins at `lba`, or [`NIL`].
    #[inline]
    pub(super) fn beginning_at(&self, class: u16, lba: u64) -> u32 {
        let (_, after) = self.around(class, lba);
        if after != NIL && self.get(after).lba == lba {
            after
        } else {
            NIL
        }
    }

    /// The waiting ones of `class` from the youngest to the oldest.
    pub(super) fn youngest_first(&self, class: u16) -> impl Iterator<Item = u32> + '_ {
        let youngest = self.classes.get(usize::from(class));
        let mut at = self
            .alone_of(class)
            .unwrap_or_else(|| youngest.map_or(NIL, |list| list.youngest));
        std::iter::from_fn(move || {
            let slot = at;
            (slot != NIL).then(|| {
                at = self.get(slot).older;
                slot
            })
        })
    }

    /// The one of the same class that came after a waiting one, or [`NIL`].
    pub(super) fn younger(&self, slot: u32) -> u32 {
        if slot == self.alone {
            NIL
        } else {
            self.get(slot).younger
        }
    }

    /// Forgets a request whose bios end elsewhere.
    pub(super) fn forget(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// A request that waits no more counts as one of this class from now on.
    pub(super) fn becomes(&mut self, slot: u32, class: u16) {
        self.slots[slot as usize].class = class;
    }

    /// Notes when the device was given a request.
    #[inline]
    pub(super) fn start(&mut self, slot: u32, now: Instant) {
        self.slots[slot as usize].started = now.0;
    }

    /// The number of the first bio of a request.
    pub(super) fn first_bio(&self, slot: u32) -> u64 {
        self.get(slot).first
    }
}

//! The bios of the requests: lists in the order of their addresses, that grow when neighbours are merged and are gone
//! through when the requests have ended.
use super::{NIL, Rq, Store};
use crate::block::Bio;

/// The bios of a request that has ended: the first, and the others in the order of their addresses.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Bios {
    pub(in crate::queue) first: u64,
    rest: u32,
}

impl Store {
    fn link(&mut self, id: u64, next: u32) -> u32 {
        let node = self.free_chain;
        if node == NIL {
            self.chain.push((id, next));
            return (self.chain.len() - 1) as u32;
        }
        self.free_chain = self.chain[node as usize].1;
        self.chain[node as usize] = (id, next);
        node
    }

    /// Puts a bio behind a waiting request that ends where it begins.
    pub(in crate::queue) fn merge_back(&mut self, slot: u32, bio: &Bio) {
        let node = self.link(bio.id, NIL);
        self.append(slot, node, node);
        let rq = &mut self.slots[slot as usize];
        rq.sectors += bio.sectors;
        rq.segments = rq.segments.saturating_add(bio.segments());
    }

    fn append(&mut self, slot: u32, from: u32, to: u32) {
        let rq = &mut self.slots[slot as usize];
        let last = std::mem::replace(&mut rq.last, to);
        if last == NIL {
            rq.rest = from;
        } else {
            self.chain[last as usize].1 = from;
        }
    }

    /// Puts a bio before a waiting request that begins where it ends.
    pub(in crate::queue) fn merge_front(&mut self, slot: u32, bio: &Bio) {
        let rq = self.slots[slot as usize];
        let node = self.link(rq.first, rq.rest);
        let lba = bio.lba.0;
        if slot != self.alone {
            let list = &mut self.classes[usize::from(rq.class)];
            let at = list.position(rq.lba, slot);
            // Others may begin inside the bio: they overlap, and stay in their order.
            list.sorted.remove(at);
            let at = list.sorted.partition_point(|&(key, _)| key <= lba);
            list.sorted.insert(at, (lba, slot));
        }
        let rq = &mut self.slots[slot as usize];
        (rq.first, rq.rest) = (bio.id, node);
        if rq.last == NIL {
            rq.last = node;
        }
        rq.lba = lba;
        rq.sectors += bio.sectors;
        rq.segments = rq.segments.saturating_add(bio.segments());
    }

    /// Joins the waiting request `next` to `slot`, which ends where it begins or, of reads, before: the gap is read, too.
    /// `slot` counts as being as old as the older one.
    pub(in crate::queue) fn join(&mut self, slot: u32, next: u32) {
        self.remove(next);
        let tail = self.slots[next as usize];
        let node = self.link(tail.first, tail.rest);
        let last = if tail.last == NIL { node } else { tail.last };
        self.append(slot, node, last);
        let rq = &mut self.slots[slot as usize];
        rq.sectors = (tail.end() - rq.lba) as u32;
        rq.segments = rq.segments.saturating_add(tail.segments);
        rq.since = rq.since.min(tail.since);
        self.free.push(next);
    }

    /// Forgets a request that has ended; its bios are to be gone through.
    #[inline]
    pub(in crate::queue) fn take(&mut self, slot: u32) -> Bios {
        self.free.push(slot);
        let Rq { first, rest, .. } = self.slots[slot as usize];
        Bios { first, rest }
    }

    /// The bios of these numbers, the last first.
    pub(in crate::queue) fn bios_of(&mut self, ids: impl Iterator<Item = u64>) -> Option<Bios> {
        ids.fold(None, |bios: Option<Bios>, first| {
            let rest = bios.map_or(NIL, |bios| self.link(bios.first, bios.rest));
            Some(Bios { first, rest })
        })
    }

    /// The bios after the first, which is forgotten; `None` when there are no more.
    #[inline]
    pub(in crate::queue) fn next_of(&mut self, bios: Bios) -> Option<Bios> {
        let node = bios.rest;
        if node == NIL {
            return None;
        }
        let (first, rest) = self.chain[node as usize];
        self.chain[node as usize].1 = std::mem::replace(&mut self.free_chain, node);
        Some(Bios { first, rest })
    }
}

//! What of a chunk is on one of its members.
use super::{Chunk, STRIPE};

/// The part of a chunk that one member has: stretches of addresses that are one behind the other on the member. A chunk without stripes
/// is one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Where it begins on the member, and its sectors.
    pub place: u64,
    /// Sectors.
    pub len: u64,
    /// The first address of the chunk, and the one after its last.
    pub chunk: (u64, u64),
    /// The address of its first sector.
    at: u64,
    /// Sectors of a stretch, and from the beginning of one to that of the next among the addresses.
    run: u64,
    step: u64,
}

impl Share {
    /// The address of a sector, counted from the first, and how many follow at addresses that do, too.
    #[must_use]
    pub const fn address(&self, inside: u64) -> (u64, u64) {
        let (row, within) = (inside / self.run, inside % self.run);
        let left = self.len - inside;
        let run = self.run - within;
        let run = if run < left { run } else { left };
        (self.at + row * self.step + within, run)
    }

    /// The first sector at this address or at a later one, counted from the first of all; their number where there is none.
    #[must_use]
    pub const fn inside(&self, address: u64) -> u64 {
        let Some(after) = address.checked_sub(self.at) else {
            return 0;
        };
        let (row, within) = (after / self.step, after % self.step);
        let within = if within < self.run { within } else { self.run };
        let inside = row * self.run + within;
        if inside < self.len { inside } else { self.len }
    }
}

impl Chunk {
    /// What a member has of it, if it has something that is no parity.
    pub(super) fn on(&self, member: u16) -> Option<Share> {
        let index = self.pieces.iter().position(|(of, _)| *of == member)?;
        let wide = (self.pieces.len() / self.copies) as u64;
        let data = self.end - self.begin;
        if self.parities > 0 {
            return None;
        }
        let (run, step) = match wide {
            1 => (data, data),
            _ => (STRIPE, wide * STRIPE),
        };
        Some(Share {
            place: self.pieces[index].1,
            len: data / wide,
            chunk: (self.begin, self.end),
            at: self.begin + (index / self.copies) as u64 * run,
            run,
            step,
        })
    }
}

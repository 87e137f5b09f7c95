//! What of a chunk is on one of its members.
use super::row::part_on;
use super::{Chunk, STRIPE};

/// The part of a chunk that one member has: stretches of addresses that are one behind the other on the member, and, if the chunk has
/// parity, that of some of its rows between them. A chunk without stripes is one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Where it begins on the member, and its sectors.
    pub place: u64,
    /// Sectors.
    pub len: u64,
    /// The first address of the chunk, and the one after its last.
    pub chunk: (u64, u64),
    /// The address of its first sector; of a chunk with parity that of the chunk's.
    at: u64,
    /// Sectors of a stretch, and from the beginning of one to that of the next among the addresses; of a chunk with parity those of a row.
    run: u64,
    step: u64,
    turns: Option<Turns>,
}

/// How data and parity take turns on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    /// Which of the chunk's members it is, of how many.
    index: usize,
    wide: usize,
    /// Pieces of data of a row.
    data: usize,
}

/// What a member has at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Data of this address, and so many sectors follow at addresses that do, too.
    Data {
        /// The address.
        at: u64,
        /// Sectors.
        run: u64,
    },
    /// Parity.
    Parity {
        /// The first address of the row that it is of.
        row: u64,
        /// Pieces of data of that row.
        data: usize,
        /// Which piece of it this is; those of data come first.
        piece: usize,
    },
}

impl Share {
    /// Whether its chunk has parity.
    #[must_use]
    pub const fn has_parity(&self) -> bool {
        self.turns.is_some()
    }

    /// What a sector holds, counted from the first.
    #[must_use]
    pub const fn held(&self, inside: u64) -> Held {
        let (row, within) = (inside / self.run, inside % self.run);
        let begin = self.at + row * self.step;
        let at = match self.turns {
            None => begin,
            Some(turns) => {
                let piece = part_on(row, turns.index, turns.wide);
                if piece >= turns.data {
                    return Held::Parity {
                        row: begin,
                        data: turns.data,
                        piece,
                    };
                }
                begin + piece as u64 * STRIPE
            }
        };
        let left = self.len - inside;
        let run = self.run - within;
        Held::Data {
            at: at + within,
            run: if run < left { run } else { left },
        }
    }

    /// The first sector that holds this address or a later one, or parity of a row that has it or of a later one, counted from the first of
    /// all; their number where there is none.
    #[must_use]
    pub const fn inside(&self, address: u64) -> u64 {
        let Some(after) = address.checked_sub(self.at) else {
            return 0;
        };
        let row = after / self.step;
        let mut within = after % self.step;
        if let Some(turns) = self.turns {
            let piece = part_on(row, turns.index, turns.wide);
            within = match piece < turns.data {
                true => within.saturating_sub(piece as u64 * STRIPE),
                false => 0,
            };
        }
        let within = if within < self.run { within } else { self.run };
        let inside = row * self.run + within;
        if inside < self.len { inside } else { self.len }
    }
}

impl Chunk {
    /// What a member has of it, if it has something.
    pub(super) fn on(&self, member: u16) -> Option<Share> {
        let index = self.pieces.iter().position(|(of, _)| *of == member)?;
        let wide = self.pieces.len() / self.copies;
        let data = wide - self.parities;
        let len = (self.end - self.begin) / data as u64;
        let (run, step) = match wide {
            1 => (len, len),
            _ => (STRIPE, data as u64 * STRIPE),
        };
        let turns = (self.parities > 0).then_some(Turns { index, wide, data });
        let before = match turns {
            Some(_) => 0,
            None => (index / self.copies) as u64 * run,
        };
        Some(Share {
            place: self.pieces[index].1,
            len,
            chunk: (self.begin, self.end),
            at: self.begin + before,
            run,
            step,
            turns,
        })
    }
}

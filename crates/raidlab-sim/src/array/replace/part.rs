//! What a replaced member is given next.
use super::Replace;
use super::used::{Found, Parts};
use crate::array::spec::Copying;
use raidlab_core::units::{KIB, SECTOR};
use raidlab_layout::btrfs::STRIPE;

/// Sectors of a read, before 6.4 (`SCRUB_SECTORS_PER_BIO`).
const READ: u64 = 128 * KIB / SECTOR;

/// Parity that is made of the data of its row.
#[derive(Clone, Debug)]
pub(super) struct OfRow {
    /// The first address of the row, and which of its pieces it is.
    pub(super) row: u64,
    pub(super) piece: usize,
    /// What of it is made.
    pub(super) height: Parts,
    /// Some of it could not be read.
    pub(super) failed: bool,
}

/// Something that is put on the new member.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// Places on the new member, and sectors.
    pub(super) writes: Vec<(u64, u32)>,
    /// It is read from a copy.
    pub(super) copied: bool,
    /// It is parity.
    pub(super) parity: Option<OfRow>,
    /// Requests under way.
    pub(super) flight: usize,
}

/// Where the copying is: a chunk's share of the member, and sectors from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) share: usize,
    pub(super) inside: u64,
}

/// Where it comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Another copy: an address, and sectors that follow there on all copies.
    Copy { at: u64, sectors: u32 },
    /// The rest of the row that this address is in.
    Row { at: u64 },
    /// The data of the row that begins at this address; which piece of it, and what of that.
    Parity {
        row: u64,
        piece: usize,
        height: Parts,
    },
}

/// What is next.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) source: Source,
    /// Places on the new member, and sectors.
    pub(super) writes: Vec<(u64, u32)>,
    /// Where it goes on.
    pub(super) then: Place,
}

impl Replace {
    /// What is next; `None` when that was all of this member.
    pub(super) fn part(&self) -> Option<Part> {
        let mut place = self.next;
        let (share, found) = loop {
            let share = self.shares.get(place.share)?;
            if let Some(found) = self.used.next(share, place.inside) {
                break (share, found);
            }
            place = Place {
                share: place.share + 1,
                inside: 0,
            };
        };
        let then = |inside| Place { inside, ..place };
        let (inside, at, run) = match found {
            Found::Parity {
                inside,
                row,
                piece,
                height,
            } => {
                return Some(Part {
                    source: Source::Parity { row, piece, height },
                    writes: Vec::new(),
                    then: then(inside + STRIPE),
                });
            }
            Found::Data { inside, at, run } => (inside, at, run),
        };
        let (from, end) = match self.copying {
            Copying::Stream { .. } => (inside, inside + run.min(READ)),
            Copying::Turns { .. } => {
                let from = inside / STRIPE * STRIPE;
                (from, (from + STRIPE).min(share.len))
            }
        };
        let mut writes = Vec::new();
        let mut next = inside;
        while let Some(Found::Data { inside, run, .. }) = self.used.next(share, next)
            && inside < end
        {
            next = (inside + run).min(end);
            writes.push((share.place + inside, (next - inside) as u32));
        }
        let source = match share.has_parity() {
            true => Source::Row { at },
            false => Source::Copy {
                at: at - (inside - from),
                sectors: (end - from) as u32,
            },
        };
        Some(Part {
            source,
            writes,
            then: then(end),
        })
    }
}

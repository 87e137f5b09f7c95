//! Rows of chunks with parity: full stripes, as the kernel calls them.
use super::{Btrfs, Chunk, STRIPE};
use crate::types::{Member, Place};
use raidlab_core::units::Lba;
use smallvec::SmallVec;

/// A row of a chunk with parity: 64 KiB of each of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its first address.
    pub begin: Lba,
    /// Its pieces in the order of addresses, and behind them P and Q: where each begins.
    pub pieces: SmallVec<[Place; 8]>,
    /// Of these P and Q.
    pub parities: usize,
}

impl Row {
    /// Pieces of data.
    #[must_use]
    pub fn data(&self) -> usize {
        self.pieces.len() - self.parities
    }

    /// Sectors of data.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.data() as u64 * STRIPE
    }
}

/// Which piece of a chunk has the part of a row with this number. Behind the data are P and Q, and of the next row all begin one member
/// later (`volumes.c:map_blocks_raid56_read`).
pub(super) const fn piece(row: u64, part: usize, wide: usize) -> usize {
    ((row % wide as u64) as usize + part) % wide
}

/// The other way round: which part of a row with this number is on a piece of a chunk.
pub(super) const fn part_on(row: u64, piece: usize, wide: usize) -> usize {
    (piece + wide - (row % wide as u64) as usize) % wide
}

impl Chunk {
    /// Sectors of data of a row, if it has parity.
    fn row(&self) -> Option<u64> {
        (self.parities > 0).then(|| (self.pieces.len() - self.parities) as u64 * STRIPE)
    }
}

impl Btrfs {
    /// The row that an address is in, if its chunk has parity.
    #[must_use]
    pub fn row(&self, at: Lba) -> Option<Row> {
        let chunk = self.chunk_of(at)?;
        let sectors = chunk.row()?;
        let row = (at.0 - chunk.begin) / sectors;
        let wide = chunk.pieces.len();
        let place = |part| {
            let (member, begin) = chunk.pieces[piece(row, part, wide)];
            Place {
                member: Member(member),
                sector: Lba(begin + row * STRIPE),
            }
        };
        Some(Row {
            begin: Lba(chunk.begin + row * sectors),
            pieces: (0..wide).map(place).collect(),
            parities: chunk.parities,
        })
    }

    /// Sectors of data of a row of each chunk of data, in their order; 0 of those without parity.
    pub fn rows(&self) -> impl Iterator<Item = u64> {
        self.chunks[1..]
            .iter()
            .map(|chunk| chunk.row().unwrap_or(0))
    }
}

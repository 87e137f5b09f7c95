//! What is in use of what a member is to have.
use crate::block::{Watch, joined};
use raidlab_layout::btrfs::{Held, STRIPE, Share};
use std::ops::ControlFlow;

/// How many parts are counted before whoever waits is asked.
const ASKED: u64 = 4096;

/// Sectors of a piece of a row, from each first one to the one after the last; ascending and apart.
pub(super) type Parts = Vec<(u64, u64)>;

/// Addresses in use, each from its first sector to the one after its last; ascending and apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Used(pub(super) Vec<(u64, u64)>);

/// Something in use on a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Data.
    Data {
        /// Where it begins in the share.
        inside: u64,
        /// Its address, and how many sectors follow.
        at: u64,
        run: u64,
    },
    /// Parity.
    Parity {
        /// Where its piece begins in the share.
        inside: u64,
        /// The first address of its row.
        row: u64,
        /// Which of its pieces this is.
        piece: usize,
        /// Of what sectors some data are in use.
        height: Parts,
    },
}

impl Used {
    /// The first of these that ends behind an address.
    fn behind(&self, at: u64) -> usize {
        self.0.partition_point(|used| used.1 <= at)
    }

    /// What is in use of the addresses `from..end`, in parts that count from `from`.
    pub(super) fn within(&self, from: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let parts = self.0[self.behind(from)..].iter();
        let parts = parts.take_while(move |used| used.0 < end);
        parts.map(move |used| (used.0.max(from) - from, used.1.min(end) - from))
    }

    /// Of what sectors of a piece of a row some data are in use.
    fn height(&self, row: u64, data: usize) -> Parts {
        let pieces = (0..data as u64).map(|piece| row + piece * STRIPE);
        let parts = pieces.flat_map(|at| self.within(at, at + STRIPE));
        joined(parts.collect())
    }

    /// The first in use from a place in a share on.
    pub(super) fn next(&self, share: &Share, from: u64) -> Option<Found> {
        let mut inside = from;
        while inside < share.len {
            let after = match share.held(inside) {
                Held::Data { at, run } => {
                    let (begin, end) = *self.0.get(self.behind(at))?;
                    if begin <= at {
                        let run = run.min(end - at);
                        return Some(Found::Data { inside, at, run });
                    }
                    begin
                }
                Held::Parity { row, data, piece } => {
                    let height = self.height(row, data);
                    if !height.is_empty() {
                        return Some(Found::Parity {
                            inside,
                            row,
                            piece,
                            height,
                        });
                    }
                    let end = row + data as u64 * STRIPE;
                    self.0.get(self.behind(end))?.0.max(end)
                }
            };
            inside = share.inside(after);
        }
        None
    }

    /// Sectors in use on a member that has these shares.
    pub(super) fn total(&self, shares: &[Share], watch: Watch<'_>) -> ControlFlow<(), u64> {
        let (mut total, mut parts) = (0, 0);
        for share in shares {
            let mut from = 0;
            while let Some(found) = self.next(share, from) {
                let (sectors, end) = match found {
                    Found::Data { inside, run, .. } => (run, inside + run),
                    Found::Parity { inside, height, .. } => (sum(&height), inside + STRIPE),
                };
                total += sectors;
                from = end;
                parts += 1;
                if parts % ASKED == 0 {
                    watch()?;
                }
            }
        }
        ControlFlow::Continue(total)
    }
}

/// Sectors of parts that are apart.
pub(super) fn sum(parts: &[(u64, u64)]) -> u64 {
    parts.iter().map(|(from, end)| end - from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raidlab_core::units::{Bytes, Lba, MIB, Sectors};
    use raidlab_layout::{Btrfs, BtrfsProfile, Member};

    const PROFILES: [BtrfsProfile; 6] = [
        BtrfsProfile::Raid1,
        BtrfsProfile::Raid10,
        BtrfsProfile::Raid1c3,
        BtrfsProfile::Raid0,
        BtrfsProfile::Raid5,
        BtrfsProfile::Raid6,
    ];

    /// Places on a member that an address in use is mapped to, and parity of such, address by address.
    fn places(array: &Btrfs, member: Member, used: &Used) -> Vec<u64> {
        let mut places = Vec::new();
        for at in used.0.iter().flat_map(|used| used.0..used.1) {
            let copies = array.locate(Lba(at)).map(|(copies, _)| copies);
            places.extend(copies.unwrap_or_default());
            if let Some(row) = array.row(Lba(at)) {
                let within = (at - row.begin.0) % STRIPE;
                for mut place in row.pieces[row.data()..].iter().copied() {
                    place.sector.0 += within;
                    places.push(place);
                }
            }
        }
        let own = places.iter().filter(|place| place.member == member);
        let mut own: Vec<u64> = own.map(|place| place.sector.0).collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    proptest! {
        /// All that is in use is found, and once.
        #[test]
        fn what_is_in_use_is_found(
            profile in prop::sample::select(&PROFILES[..]),
            members in 4_usize..7,
            member in 0_u16..7,
            parts in prop::collection::vec((0_u64..4000, 1_u64..900), 1..12),
        ) {
            let sizes = vec![Sectors(512 * MIB / 512); members];
            let array = Btrfs::new(profile, &sizes, Bytes(32 * MIB), true).expect("it has room");
            let member = Member(member % members as u16);
            // From shortly before the end of metadata on.
            let mut at = 2048 + array.metadata().0 - 1000;
            let mut used = Used::default();
            for (apart, sectors) in parts {
                used.0.push((at + apart + 1, at + apart + 1 + sectors));
                at += apart + 1 + sectors;
            }
            let mut found = Vec::new();
            let shares = array.on(member);
            for share in &shares {
                let mut from = 0;
                while let Some(next) = used.next(share, from) {
                    match next {
                        Found::Data { inside, at, run } => {
                            prop_assert!(inside >= from);
                            let first = share.place + inside;
                            found.extend(first..first + run);
                            let (copies, _) = array.locate(Lba(at)).expect("a chunk");
                            prop_assert!(copies.iter().any(|copy| (copy.member, copy.sector.0) == (member, first)));
                            from = inside + run;
                        }
                        Found::Parity { inside, height, .. } => {
                            let first = share.place + inside;
                            found.extend(height.iter().flat_map(|of| first + of.0..first + of.1));
                            from = inside + STRIPE;
                        }
                    }
                }
            }
            found.sort_unstable();
            prop_assert_eq!(&found, &places(&array, member, &used));
            let total = used.total(&shares, &mut || ControlFlow::Continue(()));
            prop_assert_eq!(total, ControlFlow::Continue(found.len() as u64));
        }
    }
}

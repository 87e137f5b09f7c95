//! Whether what lies on the members lies where the layout says. Pure: bytes in, verdict out.
use raidlab_core::rng::mix;
use raidlab_core::units::Lba;
use raidlab_layout::parity::Parity;
use raidlab_layout::{Content, Layout, Member, ParityKind};
use serde::{Deserialize, Serialize};

pub(super) const SECTOR: usize = 512;
/// So many disagreements are told; the others are counted.
const TOLD: usize = 5;

/// What the sectors of an array are written with: each says which it is, and the rest of it looks random, so that no
/// parity of some sectors is that of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) seed: u64,
}

impl Pattern {
    /// The content of an array sector.
    pub(super) fn sector(self, lba: u64) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        self.fill(lba, &mut bytes);
        bytes
    }

    /// As [`Self::sector`], into `bytes`.
    pub(super) fn fill(self, lba: u64, bytes: &mut [u8]) {
        let base = mix(self.seed ^ mix(lba));
        for (word, place) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
            let value = match word {
                0 => lba,
                1 => self.seed,
                _ => mix(base.wrapping_add(word)),
            };
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Which array sector this is, by its own word.
    fn told(self, bytes: &[u8]) -> String {
        let word = |n: usize| -> Option<u64> {
            Some(u64::from_le_bytes(
                bytes.get(8 * n..8 * n + 8)?.try_into().ok()?,
            ))
        };
        match (word(0), word(1)) {
            (Some(lba), Some(seed)) if seed == self.seed => format!("array sector {lba}"),
            _ if bytes.iter().all(|byte| *byte == 0) => "zeros".to_owned(),
            _ => "something else".to_owned(),
        }
    }
}

/// What was compared, and what was not as the layout says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Checked {
    /// Sectors of the array.
    pub(super) sectors: u64,
    /// Places on members where one of them was looked for: more than sectors where there are copies.
    pub(super) places: u64,
    /// Sectors of members that were compared with the XOR of the data.
    pub(super) p: u64,
    /// Sectors of members that were compared with the Reed-Solomon syndrome of the data.
    pub(super) q: u64,
    /// Comparisons that failed.
    pub(super) wrong: u64,
    /// The first of them.
    pub(super) told: Vec<String>,
    /// Which disk has which role, where that is not the order in which they were given.
    pub(super) roles: Vec<usize>,
}

impl Checked {
    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told.push(what());
        }
    }

    fn compare(&mut self, same: bool, what: impl FnOnce() -> String) {
        if !same {
            self.wrong(what);
        }
    }
}

/// Compares all of the members with the first `limit` sectors of the array. Each of `members` holds the data area of one
/// member, from its first sector on.
pub(super) fn check(layout: &Layout, limit: u64, pattern: Pattern, members: &[Vec<u8>]) -> Checked {
    let mut checked = Checked {
        sectors: limit,
        ..Checked::default()
    };
    let found = |member: Member, sector: u64| -> &[u8] {
        let from = sector as usize * SECTOR;
        let area = members.get(member.index());
        area.and_then(|area| area.get(from..from + SECTOR))
            .unwrap_or(&[])
    };
    for lba in 0..limit {
        let expected = pattern.sector(lba);
        let Some(places) = layout.locate(Lba(lba)) else {
            checked.wrong(|| format!("array sector {lba} is nowhere"));
            continue;
        };
        for place in places {
            checked.places += 1;
            let there = found(place.member, place.sector.0);
            checked.compare(there == expected, || {
                let (member, sector) = (place.member, place.sector.0);
                let told = pattern.told(there);
                format!("{member} sector {sector}: {told}, not array sector {lba}")
            });
            // The way back is another function of the layout.
            let back = layout.content(place.member, place.sector);
            checked.compare(back == Content::Data(Lba(lba)), || {
                format!("{} sector {}: {back:?}", place.member, place.sector.0)
            });
        }
    }
    for (base, parity, members) in parities(layout) {
        let rows = parity.stripes() * parity.chunk().0;
        for row in 0..rows {
            let stripe = row / parity.chunk().0;
            let area = Row {
                layout,
                base,
                members,
                stripe,
                row,
            };
            area.check(parity, limit, pattern, &found, &mut checked);
        }
    }
    checked
}

/// The arrays with parity right over members: first member, and how many.
fn parities(layout: &Layout) -> Vec<(usize, &Parity, usize)> {
    match layout {
        Layout::Parity(parity) => vec![(0, parity, layout.members())],
        Layout::Nested(nested) => {
            let mut base = 0;
            let mut found = Vec::new();
            for inner in nested.inner() {
                let parts = parities(inner);
                found.extend(
                    parts
                        .into_iter()
                        .map(|(at, parity, n)| (base + at, parity, n)),
                );
                base += inner.members();
            }
            found
        }
        _ => Vec::new(),
    }
}

/// The same sector of all members of an array with parity.
struct Row<'l> {
    layout: &'l Layout,
    base: usize,
    members: usize,
    stripe: u64,
    row: u64,
}

impl Row<'_> {
    fn check<'m>(
        &self,
        parity: &Parity,
        limit: u64,
        pattern: Pattern,
        found: &impl Fn(Member, u64) -> &'m [u8],
        checked: &mut Checked,
    ) {
        let (mut p, mut q) = ([0_u8; SECTOR], [0_u8; SECTOR]);
        let mut kept = Vec::new();
        for index in 0..self.members {
            let member = Member::new(self.base + index);
            match self.layout.content(member, Lba(self.row)) {
                Content::Data(lba) if lba.0 < limit => {
                    let data = pattern.sector(lba.0);
                    let exponent = parity.q_exponent(self.stripe, Member::new(index));
                    let factor = exponent.map(power);
                    for ((p, q), byte) in p.iter_mut().zip(&mut q).zip(data) {
                        *p ^= byte;
                        if let Some(factor) = factor {
                            *q ^= times(factor, byte);
                        }
                    }
                }
                Content::Parity { kind, .. } => kept.push((member, kind)),
                // What nobody wrote is not known: the end of an inner array that the outer one does not use.
                _ => return,
            }
        }
        for (member, kind) in kept {
            let (expected, count) = match kind {
                ParityKind::P => (&p, &mut checked.p),
                ParityKind::Q => (&q, &mut checked.q),
            };
            *count += 1;
            let there = found(member, self.row);
            checked.compare(there == expected, || {
                let told = pattern.told(there);
                format!(
                    "{member} sector {}: {told}, not {kind:?} of stripe {}",
                    self.row, self.stripe
                )
            });
        }
    }
}

/// Product in GF(2^8) with the polynomial 0x11d.
const fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

/// Power of the generator 2.
fn power(exponent: u32) -> u8 {
    (0..exponent).fold(1, |value, _| times(2, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::units::Sectors;
    use raidlab_layout::{Copies, ParityAlgorithm};

    const PATTERN: Pattern = Pattern { seed: 7 };

    /// Members as an implementation that computes parity in another way would write them.
    fn written(layout: &Layout) -> Vec<Vec<u8>> {
        let mut members: Vec<Vec<u8>> = (0..layout.members())
            .map(|m| vec![0; layout.used(Member::new(m)).0 as usize * SECTOR])
            .collect();
        for lba in 0..layout.capacity().0 {
            for place in layout.locate(Lba(lba)).unwrap() {
                let at = place.sector.0 as usize * SECTOR;
                PATTERN.fill(lba, &mut members[place.member.index()][at..at + SECTOR]);
            }
        }
        members
    }

    #[test]
    fn the_field_is_that_of_raid6() {
        assert_eq!((power(0), power(1), power(8), power(255)), (1, 2, 0x1d, 1));
        assert_eq!(times(0x80, 2), 0x1d);
        assert_eq!(times(7, 0), 0);
    }

    #[test]
    fn copies_are_all_looked_at_and_a_wrong_one_is_named() {
        let sizes = [Sectors(64); 3];
        let layout = Layout::raid10(&sizes, Sectors(8), Copies::near(2)).unwrap();
        let mut members = written(&layout);
        let right = check(&layout, layout.capacity().0, PATTERN, &members);
        assert_eq!((right.sectors, right.places, right.wrong), (96, 192, 0));
        // The second copy of sector 0 becomes sector 9.
        PATTERN.fill(9, &mut members[1][..SECTOR]);
        let wrong = check(&layout, layout.capacity().0, PATTERN, &members);
        assert_eq!(wrong.wrong, 1);
        assert_eq!(
            wrong.told,
            ["m1 sector 0: array sector 9, not array sector 0"]
        );
    }

    #[test]
    fn parity_is_computed_from_the_data_and_looked_for() {
        let sizes = [Sectors(16); 4];
        let ls = ParityAlgorithm::LeftSymmetric;
        let layout = Layout::raid6(&sizes, Sectors(8), ls).unwrap();
        let mut members = written(&layout);
        let capacity = layout.capacity().0;
        let none = check(&layout, capacity, PATTERN, &members);
        assert_eq!(
            (none.p, none.q, none.wrong),
            (16, 16, 32),
            "there is none yet"
        );
        // First stripe of left-symmetric over four: P on the last, Q on the first, data on the two between.
        for row in 0..8 {
            let at = row * SECTOR..(row + 1) * SECTOR;
            let (first, second) = (PATTERN.sector(row as u64), PATTERN.sector(row as u64 + 8));
            for (byte, place) in at.enumerate() {
                members[3][place] = first[byte] ^ second[byte];
                let twice = u16::from(second[byte]) << 1;
                let twice = if twice > 255 { twice ^ 0x11d } else { twice };
                members[0][place] = first[byte] ^ twice as u8;
            }
        }
        let half = check(&layout, capacity, PATTERN, &members);
        assert_eq!((half.p, half.q, half.wrong), (16, 16, 16), "{half:?}");
    }

    #[test]
    fn another_layout_is_noticed() {
        let sizes = [Sectors(64); 3];
        let of = |algorithm| Layout::raid5(&sizes, Sectors(8), algorithm).unwrap();
        let members = written(&of(ParityAlgorithm::LeftAsymmetric));
        let layout = of(ParityAlgorithm::LeftSymmetric);
        let limit = layout.capacity().0;
        let mut seen = check(&layout, limit, PATTERN, &members);
        assert!(seen.wrong > 0);
        assert!(seen.told.remove(0).contains("not array sector"));
    }

    #[test]
    fn rows_that_nobody_wrote_have_no_known_parity() {
        let sizes = [Sectors(16); 3];
        let ls = ParityAlgorithm::LeftSymmetric;
        let inner = vec![
            Layout::raid5(&sizes, Sectors(8), ls).unwrap(),
            Layout::raid5(&sizes, Sectors(8), ls).unwrap(),
        ];
        let order = raidlab_layout::Raid0Order::Alternate;
        let layout =
            Layout::nested(inner, |sizes| Layout::raid0(sizes, Sectors(8), order)).unwrap();
        let members = written(&layout);
        let all = check(&layout, 64, PATTERN, &members);
        assert_eq!((all.places, all.p), (64, 32));
        let half = check(&layout, 32, PATTERN, &members);
        assert_eq!((half.places, half.p), (32, 16));
    }
}

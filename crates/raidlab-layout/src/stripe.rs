//! Linear and raid0: every sector once, on one member.
use crate::error::LayoutError;
use crate::types::{Content, Member, Place};
use raidlab_core::units::{Lba, Sectors};

/// The order of chunks in the second and later zones of a raid0 with unequal members. Both are the
/// same where all members have the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Raid0Order {
    /// md before Linux 3.14 (`RAID0_ORIG_LAYOUT`, mdadm "original"): the member of a chunk is the
    /// chunk's number *in the array* modulo the zone's members, so a zone may start in the middle.
    Original,
    /// md since Linux 3.14 (`RAID0_ALT_MULTIZONE_LAYOUT`, mdadm "alternate"): the chunk's number
    /// *in the zone* decides, so each zone starts with its first member.
    #[default]
    Alternate,
}

/// Members one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    rounding: u64,
    /// End of each member in array sectors, ascending.
    ends: Vec<u64>,
}

impl Linear {
    pub(crate) fn new(sizes: &[Sectors], rounding: Option<Sectors>) -> Result<Self, LayoutError> {
        check_members("linear", sizes, 1, None)?;
        let unit = rounding.map_or(1, |r| r.0.max(1));
        check_least("linear", sizes, unit)?;
        let mut end = 0;
        let ends = sizes.iter().map(|size| {
            end += size.0 / unit * unit;
            end
        });
        Ok(Self {
            rounding: unit,
            ends: ends.collect(),
        })
    }

    /// What member sizes are rounded down to: sectors, 1 for no rounding.
    #[must_use]
    pub const fn rounding(&self) -> Sectors {
        Sectors(self.rounding)
    }

    pub(crate) fn members(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn start_of(&self, member: usize) -> u64 {
        if member == 0 {
            0
        } else {
            self.ends[member - 1]
        }
    }

    pub(crate) fn used(&self, member: usize) -> u64 {
        self.ends[member] - self.start_of(member)
    }

    /// The place of array sector `lba`, which must exist, and how many sectors follow it
    /// contiguously on that member.
    #[must_use]
    pub fn place(&self, lba: u64) -> (Place, u64) {
        let member = self.ends.partition_point(|end| *end <= lba);
        let sector = Lba(lba - self.start_of(member));
        (
            Place {
                member: Member::new(member),
                sector,
            },
            self.ends[member] - lba,
        )
    }

    pub(crate) fn content(&self, member: usize, sector: u64) -> Content {
        if sector < self.used(member) {
            Content::Data(Lba(self.start_of(member) + sector))
        } else {
            Content::Unused
        }
    }
}

/// One zone: the members that reach beyond the zone before, striped up to the smallest of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    /// First array sector, and the one after the last.
    start: u64,
    end: u64,
    /// First sector on each of its members.
    dev_start: u64,
    members: Vec<u16>,
    /// Added to the chunk's number in the zone before the member is taken modulo.
    turn: u64,
}

/// Chunks dealt to the members in turn, in zones where the members' sizes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid0 {
    chunk: u64,
    order: Raid0Order,
    /// Member sizes, rounded down to chunks.
    sizes: Vec<u64>,
    zones: Vec<Zone>,
}

impl Raid0 {
    pub(crate) fn new(
        sizes: &[Sectors],
        chunk: Sectors,
        order: Raid0Order,
    ) -> Result<Self, LayoutError> {
        check_members("raid0", sizes, 1, None)?;
        if chunk.0 == 0 {
            return Err(LayoutError::ZeroChunk {
                level: "raid0".into(),
            });
        }
        check_least("raid0", sizes, chunk.0)?;
        let sizes: Vec<u64> = sizes.iter().map(|s| s.0 / chunk.0 * chunk.0).collect();
        let zones = zones(&sizes, chunk.0, order);
        Ok(Self {
            chunk: chunk.0,
            order,
            sizes,
            zones,
        })
    }

    /// Unit of striping.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        Sectors(self.chunk)
    }

    /// Order of the chunks in later zones.
    #[must_use]
    pub const fn order(&self) -> Raid0Order {
        self.order
    }

    /// Where each zone starts on its members; one entry when all members are equal.
    pub fn zone_starts(&self) -> impl ExactSizeIterator<Item = Sectors> {
        self.zones.iter().map(|zone| Sectors(zone.dev_start))
    }

    pub(crate) fn members(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.end)
    }

    pub(crate) fn used(&self, member: usize) -> u64 {
        self.sizes[member]
    }

    /// The place of array sector `lba`, which must exist, and how many sectors follow it
    /// contiguously on that member.
    #[must_use]
    pub fn place(&self, lba: u64) -> (Place, u64) {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.end <= lba)];
        let in_zone = lba - zone.start;
        let (number, offset) = (in_zone / self.chunk, in_zone % self.chunk);
        let n = zone.members.len() as u64;
        let member = Member(zone.members[((number + zone.turn) % n) as usize]);
        let sector = Lba(zone.dev_start + number / n * self.chunk + offset);
        (Place { member, sector }, self.chunk - offset)
    }

    pub(crate) fn content(&self, member: usize, sector: u64) -> Content {
        if sector >= self.sizes[member] {
            return Content::Unused;
        }
        let zone = &self.zones[self.zones.partition_point(|zone| zone.dev_start <= sector) - 1];
        let Ok(index) = zone.members.binary_search(&(member as u16)) else {
            return Content::Unused;
        };
        let (row, offset) = (
            (sector - zone.dev_start) / self.chunk,
            (sector - zone.dev_start) % self.chunk,
        );
        let n = zone.members.len() as u64;
        let column = (index as u64 + n - zone.turn) % n;
        Content::Data(Lba(zone.start + (row * n + column) * self.chunk + offset))
    }
}

/// Zones by ascending size; within a zone the members keep their role order.
fn zones(sizes: &[u64], chunk: u64, order: Raid0Order) -> Vec<Zone> {
    let mut edges = sizes.to_vec();
    edges.sort_unstable();
    edges.dedup();
    let (mut start, mut dev_start) = (0, 0);
    let mut zones = Vec::with_capacity(edges.len());
    for dev_end in edges {
        let members: Vec<u16> = (0..sizes.len())
            .filter(|m| sizes[*m] > dev_start)
            .map(|m| m as u16)
            .collect();
        let n = members.len() as u64;
        let end = start + (dev_end - dev_start) * n;
        let turn = match order {
            Raid0Order::Original => start / chunk % n,
            Raid0Order::Alternate => 0,
        };
        zones.push(Zone {
            start,
            end,
            dev_start,
            members,
            turn,
        });
        (start, dev_start) = (end, dev_end);
    }
    zones
}

/// What all members together may have: 2^63 bytes, as a size may have elsewhere.
const MOST_SECTORS: u64 = 1 << 54;

/// Number and total size of the members.
pub(crate) fn check_members(
    level: &str,
    sizes: &[Sectors],
    least: usize,
    instead: Option<&'static str>,
) -> Result<(), LayoutError> {
    let given = sizes.len();
    if given < least {
        let instead = instead.filter(|_| given > 0);
        return Err(LayoutError::TooFewMembers {
            level: level.into(),
            least,
            given,
            instead,
        });
    }
    if given > crate::types::MAX_MEMBERS {
        return Err(LayoutError::TooManyMembers { given });
    }
    let total = sizes
        .iter()
        .fold(0_u64, |sum, size| sum.saturating_add(size.0));
    if total > MOST_SECTORS {
        Err(LayoutError::TooLarge)
    } else {
        Ok(())
    }
}

/// Every member must hold at least `least` sectors.
pub(crate) fn check_least(level: &str, sizes: &[Sectors], least: u64) -> Result<(), LayoutError> {
    match sizes.iter().position(|size| size.0 < least) {
        Some(member) => Err(LayoutError::MemberTooSmall {
            level: level.into(),
            member,
            size: sizes[member],
            least: Sectors(least),
            remedy: if least > 1 {
                "use a larger member or a smaller chunk"
            } else {
                "use a larger member"
            },
        }),
        None => Ok(()),
    }
}

/// Sectors of a page: md's least chunk, and the height of a stripe head (kernels with 4 KiB pages).
pub(crate) const PAGE: u64 = 8;

/// md takes only powers of two of at least a page for raid4/5/6 and raid10
/// (`raid5.c:setup_conf`, `raid10.c:setup_geo`). Told instead are those that a member has room for.
pub(crate) fn check_chunk(level: &str, chunk: Sectors, room: Sectors) -> Result<(), LayoutError> {
    if chunk.0 == 0 {
        return Err(LayoutError::ZeroChunk {
            level: level.into(),
        });
    }
    if chunk.0 >= PAGE && chunk.0.is_power_of_two() {
        return Ok(());
    }
    let (below, above) = if chunk.0 < PAGE {
        (PAGE, Some(1024))
    } else {
        let fits = chunk.0.min(room.0).max(PAGE);
        let above = chunk.0.checked_next_power_of_two();
        (1 << fits.ilog2(), above)
    };
    let above = above.filter(|above| *above <= room.0);
    Err(LayoutError::Chunk {
        level: level.into(),
        chunk,
        below: Sectors(below),
        above: above.map(Sectors),
    })
}

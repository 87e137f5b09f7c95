//! Zoned geometry: where a logical sector lies, and when it passes under a head.
//!
//! Every sector has a *media coordinate*: the angle, summed over the whole disk from its first
//! sector, that passes until a sequential reader meets it, with head and cylinder switches in it.
//! Streaming is then a straight line (coordinate against time), the angle of a sector is its
//! coordinate modulo a revolution, and a transfer over any number of tracks, cylinders and zones is
//! the difference of two coordinates: no event per sector or per track.
mod build;
pub(super) mod divide;
mod error;

pub use error::GeometryError;

use super::rotation::REVOLUTION;
use build::{Layout, check, split_large};
use divide::{Divisor, Stride};

/// One zone as a model file gives it. Cylinders are laid out head by head, then cylinder by cylinder.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ZoneSpec {
    /// Cylinders of the zone.
    pub cylinders: u32,
    /// Physical sectors (512 bytes) on a track, spares included.
    pub sectors_per_track: u32,
    /// Sectors by which a track starts later than the track of the head before.
    pub track_skew: u32,
    /// Sectors by which a cylinder's first track starts later than the last track of the cylinder
    /// before.
    pub cylinder_skew: u32,
    /// Spare sectors at the end of each track.
    pub spare_per_track: u32,
    /// Spare sectors at the end of each cylinder's last track.
    pub spare_per_cylinder: u32,
    /// Unused sectors at the start of the zone.
    pub unused: u32,
    /// First logical sector, when the extraction gives it: sectors of the zone before that would
    /// reach further are spares.
    pub first_lba: Option<u64>,
    /// Slipped (defective) sectors, numbered among the usable physical sectors of the zone, the unused
    /// ones at its start included.
    pub slipped: Vec<u32>,
}

impl ZoneSpec {
    /// Usable sectors on a track.
    #[must_use]
    pub fn usable_per_track(&self) -> u32 {
        self.sectors_per_track.saturating_sub(self.spare_per_track)
    }

    /// Usable sectors in a cylinder of `heads` tracks.
    #[must_use]
    pub fn usable_per_cylinder(&self, heads: u32) -> u64 {
        (u64::from(self.usable_per_track()) * u64::from(heads))
            .saturating_sub(u64::from(self.spare_per_cylinder))
    }

    /// Logical sectors that the zone can hold on a disk of `heads`.
    #[must_use]
    pub fn capacity(&self, heads: u32) -> u64 {
        (self.usable_per_cylinder(heads) * u64::from(self.cylinders))
            .saturating_sub(u64::from(self.unused) + self.slips(heads).len() as u64)
    }

    /// The slipped sectors that lie among those in use, ascending, once each.
    fn slips(&self, heads: u32) -> Vec<u32> {
        let total = self.usable_per_cylinder(heads) * u64::from(self.cylinders);
        let mut slips = self.slipped.clone();
        slips.retain(|&at| at >= self.unused && u64::from(at) < total);
        slips.sort_unstable();
        slips.dedup();
        slips
    }
}

/// Bits behind the point of the width of a sector.
const WIDTH_BITS: u32 = 20;

/// One zone ready for arithmetic.
#[derive(Clone, Debug)]
struct Zone {
    first_lba: u64,
    end_lba: u64,
    /// Coordinate of the first physical sector of the zone.
    origin: u64,
    first_cylinder: u32,
    unused: u32,
    per_track: u32,
    width: u64,
    track_stride: Stride,
    cylinder_stride: Stride,
    by_cylinder: Divisor,
    by_track: Divisor,
    /// For each slipped sector, the first logical sector of the zone that it pushes on.
    slipped: Box<[u32]>,
}

/// Where a logical sector lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its media coordinate, in units of 1/[`REVOLUTION`] turn.
    pub x: u64,
    /// Its angle: the coordinate within a turn.
    pub angle: u64,
    /// Cylinder.
    pub cylinder: u32,
    /// Head (surface).
    pub head: u32,
    /// Coordinate of the first sector of its track.
    pub track: u64,
    /// Its number on the track.
    pub sector: u32,
    /// Usable sectors of the track.
    pub per_track: u32,
    /// Width of a sector of the track, in 2^-20 units of angle.
    width: u64,
}

impl Place {
    /// Coordinate at which sector `number` of the track begins.
    #[inline]
    fn at(&self, number: u64) -> u64 {
        self.track + ((number * self.width) >> WIDTH_BITS)
    }

    /// Coordinate at which the sector has passed.
    #[must_use]
    #[inline]
    pub fn end(&self) -> u64 {
        self.at(u64::from(self.sector) + 1)
    }

    /// Coordinate at which the usable part of the track has passed.
    #[must_use]
    #[inline]
    pub fn track_end(&self) -> u64 {
        self.at(u64::from(self.per_track))
    }

    /// Angle of one sector.
    #[must_use]
    #[inline]
    pub fn width(&self) -> u64 {
        self.width >> WIDTH_BITS
    }
}

/// A disk's geometry: immutable, shared by all disks of a model.
#[derive(Clone, Debug)]
pub struct Geometry {
    zones: Box<[Zone]>,
    bucket: Box<[u16]>,
    shift: u32,
    sectors: u64,
    cylinders: u32,
    heads: u32,
    /// Some zone has slipped sectors, so that neighbours may lie apart.
    slips: bool,
    /// Some zone keeps sectors of a cylinder in reserve, so that its last track ends early.
    spares: bool,
    narrowest: u64,
    widest: u32,
}

/// The time that switching takes, in units of angle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// To another head of the cylinder.
    pub head: u64,
    /// To the next cylinder.
    pub cylinder: u64,
}

/// Largest coordinate, with room for arithmetic above it.
const LARGEST: u128 = 1 << 63;
/// Sectors in a zone at most, so that addresses inside fit 32 bits; larger zones are split.
const ZONE_SECTORS: u64 = 1 << 31;

impl Geometry {
    /// Lays out `zones` on `heads` heads for a disk of `sectors`.
    ///
    /// A skew that is shorter than the switch costs a whole revolution more, as it would in a drive.
    ///
    /// # Errors
    /// All that is wrong with the zones.
    pub fn new(
        zones: &[ZoneSpec],
        heads: u32,
        sectors: u64,
        switches: Switches,
    ) -> Result<Self, Vec<GeometryError>> {
        let zones = &split_large(zones, heads)[..];
        let problems = check(zones, heads, sectors);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut layout = Layout {
            heads,
            switches,
            first_lba: 0,
            cylinder: 0,
            origin: 0,
        };
        let mut built = Vec::with_capacity(zones.len());
        for (number, spec) in zones.iter().enumerate() {
            let limit = zones
                .get(number + 1)
                .and_then(|next| next.first_lba)
                .unwrap_or(u64::MAX)
                .min(sectors);
            if layout.first_lba < sectors {
                built.push(layout.zone(spec, limit));
            } else {
                layout.cylinder += spec.cylinders;
            }
        }
        if layout.origin >= LARGEST {
            let tracks = u64::from(layout.cylinder) * u64::from(heads);
            return Err(vec![GeometryError::TooManyTracks(tracks)]);
        }
        let mut shift = 0;
        while sectors >> shift >= 4096 {
            shift += 1;
        }
        let bucket = (0..=(sectors >> shift))
            .map(|i| built.partition_point(|zone| zone.end_lba <= i << shift) as u16)
            .map(|zone| zone.min(built.len() as u16 - 1))
            .collect();
        Ok(Self {
            slips: built.iter().any(|zone| !zone.slipped.is_empty()),
            spares: zones.iter().any(|zone| zone.spare_per_cylinder > 0),
            narrowest: built
                .iter()
                .map(|zone| zone.width >> WIDTH_BITS)
                .min()
                .unwrap_or(0),
            widest: built.iter().map(|zone| zone.per_track).max().unwrap_or(0),
            zones: built.into(),
            bucket,
            shift,
            sectors,
            cylinders: layout.cylinder,
            heads,
        })
    }

    /// Logical sectors of the disk.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders of the disk.
    #[must_use]
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Heads of the disk.
    #[must_use]
    pub fn heads(&self) -> u32 {
        self.heads
    }

    #[inline]
    fn zone_of(&self, lba: u64) -> &Zone {
        &self.zones[self.zone_number(lba)]
    }

    #[inline]
    fn zone_number(&self, lba: u64) -> usize {
        let mut number = usize::from(self.bucket[(lba >> self.shift) as usize]);
        while lba >= self.zones[number].end_lba {
            number += 1;
        }
        number
    }

    /// Where `lba` (below [`sectors`](Self::sectors)) lies.
    #[must_use]
    pub fn locate(&self, lba: u64) -> Place {
        self.place_of(lba)
    }

    /// The same as part of the caller, for the path of every request.
    #[inline(always)]
    pub(super) fn place_of(&self, lba: u64) -> Place {
        let zone = self.zone_of(lba);
        let logical = (lba - zone.first_lba) as u32;
        let mut physical = logical + zone.unused;
        if !zone.slipped.is_empty() {
            physical += zone.slipped.partition_point(|&from| from <= logical) as u32;
        }
        let (cylinder, rest) = zone.by_cylinder.split(physical);
        let (head, sector) = zone.by_track.split(rest);
        let track = zone.origin
            + u64::from(cylinder) * zone.cylinder_stride.by
            + u64::from(head) * zone.track_stride.by;
        let x = track + ((u64::from(sector) * zone.width) >> WIDTH_BITS);
        Place {
            x,
            angle: x % REVOLUTION,
            cylinder: zone.first_cylinder + cylinder,
            head,
            track,
            sector,
            per_track: zone.per_track,
            width: zone.width,
        }
    }

    /// Coordinate where the last of `sectors` (at least 1) sectors from `lba`, whose place is `from`,
    /// has passed.
    #[must_use]
    #[inline]
    pub fn end_of(&self, from: &Place, lba: u64, sectors: u64) -> u64 {
        let past = u64::from(from.sector) + sectors;
        let whole = !self.spares || from.head + 1 < self.heads;
        if past <= u64::from(from.per_track) && whole && !self.slips {
            return from.at(past);
        }
        self.locate((lba + sectors - 1).min(self.sectors - 1)).end()
    }

    /// Cylinder and head under which the coordinate `x` lies, for the position of the arm after
    /// streaming.
    #[must_use]
    pub fn track_at(&self, x: u64) -> (u32, u32) {
        let number = self.zones.partition_point(|zone| zone.origin <= x).max(1) - 1;
        self.track_in(number, x)
    }

    /// The same for a coordinate not before the sector `lba`, in whose zone or one of the next it is then.
    #[must_use]
    pub(super) fn track_after(&self, lba: u64, x: u64) -> (u32, u32) {
        let mut number = self.zone_number(lba);
        while self
            .zones
            .get(number + 1)
            .is_some_and(|zone| zone.origin <= x)
        {
            number += 1;
        }
        self.track_in(number, x)
    }

    #[inline]
    fn track_in(&self, zone: usize, x: u64) -> (u32, u32) {
        let zone = &self.zones[zone];
        let (cylinder, rest) = zone.cylinder_stride.split(x - zone.origin);
        let (head, _) = zone.track_stride.split(rest);
        let last = u64::from(self.cylinders - 1);
        (
            (u64::from(zone.first_cylinder) + cylinder).min(last) as u32,
            head.min(u64::from(self.heads - 1)) as u32,
        )
    }

    /// The first logical sector that has not passed whole at the coordinate `x`: the inverse of the
    /// [end](Place::end) of a sector, at the cost of some divisions.
    #[must_use]
    pub fn sector_at(&self, x: u64) -> u64 {
        let number = self.zones.partition_point(|zone| zone.origin <= x).max(1) - 1;
        let zone = &self.zones[number];
        let inside = x - zone.origin;
        let (cylinder, rest) = zone.cylinder_stride.split(inside);
        let (head, rest) = zone.track_stride.split(rest);
        let passed = (((u128::from(rest) + 1) << WIDTH_BITS) - 1) / u128::from(zone.width);
        let sector = (passed as u64).min(u64::from(zone.per_track));
        let in_cylinder = head * u64::from(zone.per_track) + sector;
        let per_cylinder = u64::from(zone.by_cylinder.by);
        let physical = cylinder * per_cylinder + in_cylinder.min(per_cylinder);
        let usable = physical.saturating_sub(u64::from(zone.unused));
        let slipped = (0..zone.slipped.len())
            .take_while(|&i| u64::from(zone.slipped[i]) + (i as u64) < usable)
            .count() as u64;
        (zone.first_lba + usable - slipped.min(usable)).min(zone.end_lba)
    }

    /// Angle of the narrowest sector of the disk: a lower bound of how far any sector reaches.
    #[must_use]
    #[inline]
    pub fn narrowest(&self) -> u64 {
        self.narrowest
    }

    /// Most sectors on any track.
    #[must_use]
    #[inline]
    pub fn widest(&self) -> u32 {
        self.widest
    }

    /// Sectors on a track at `lba`.
    #[must_use]
    pub fn per_track(&self, lba: u64) -> u32 {
        self.zone_of(lba).per_track
    }

    /// Sustained rate at `lba` in bytes a second for a spindle of `decirpm` tenths of a revolution a
    /// minute: a cylinder's sectors over its turns and switches.
    #[must_use]
    pub fn sustained(&self, lba: u64, decirpm: u32) -> f64 {
        let zone = self.zone_of(lba);
        let bytes = f64::from(zone.by_cylinder.by) * 512.0;
        bytes * f64::from(decirpm) * 1e9 / zone.cylinder_stride.by as f64
    }

    /// The zones as (first logical sector, first cylinder, sectors on a track), for display.
    pub fn zones(&self) -> impl Iterator<Item = (u64, u32, u32)> + '_ {
        self.zones
            .iter()
            .map(|zone| (zone.first_lba, zone.first_cylinder, zone.per_track))
    }
}

#[cfg(test)]
mod tests;

//! Laying zones out one behind the other, and what to check before.
use super::{
    Divisor, Geometry, GeometryError, LARGEST, REVOLUTION, Stride, Switches, WIDTH_BITS,
    ZONE_SECTORS, Zone, ZoneSpec,
};

/// Zones of more than [`ZONE_SECTORS`] sectors in parts that fit 32-bit addresses.
pub(super) fn split_large(zones: &[ZoneSpec], heads: u32) -> Vec<ZoneSpec> {
    let mut parts = Vec::with_capacity(zones.len());
    for zone in zones {
        let pieces = zone.capacity(heads).div_ceil(ZONE_SECTORS).max(1) as u32;
        if pieces == 1 || !zone.slipped.is_empty() {
            parts.push(zone.clone());
            continue;
        }
        let each = zone.cylinders.div_ceil(pieces);
        let mut left = zone.cylinders;
        while left > 0 {
            let first = left == zone.cylinders;
            parts.push(ZoneSpec {
                cylinders: each.min(left),
                unused: if first { zone.unused } else { 0 },
                first_lba: zone.first_lba.filter(|_| first),
                ..zone.clone()
            });
            left -= each.min(left);
        }
    }
    parts
}

pub(super) fn check(zones: &[ZoneSpec], heads: u32, sectors: u64) -> Vec<GeometryError> {
    if zones.is_empty() {
        return vec![GeometryError::NoZones];
    }
    let mut problems = Vec::new();
    let (mut held, mut before) = (0_u64, None);
    for (number, zone) in zones.iter().enumerate() {
        let track = u64::from(zone.sectors_per_track);
        let skew = zone.track_skew.max(zone.cylinder_skew);
        if track > 1 << 20 || u64::from(skew) > 8 * track || zone.unused > 1 << 31 {
            problems.push(GeometryError::Track(number));
        }
        if zone.capacity(heads) == 0 || zone.capacity(heads) > u64::from(u32::MAX) {
            problems.push(GeometryError::EmptyZone(number));
        }
        if let Some(first) = zone.first_lba {
            if first > held {
                problems.push(GeometryError::Gap {
                    zone: number,
                    first,
                    held,
                });
            }
            if let Some(before) = before.filter(|b| first <= *b) {
                problems.push(GeometryError::Overlap {
                    zone: number,
                    first,
                    before,
                });
            }
            held = first;
        }
        before = Some(held);
        held += zone.capacity(heads);
    }
    let cylinders: u64 = zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
    if cylinders > u64::from(u32::MAX) {
        let tracks = cylinders.saturating_mul(u64::from(heads));
        problems.push(GeometryError::TooManyTracks(tracks));
    }
    if held < sectors {
        problems.push(GeometryError::TooSmall {
            held,
            needed: sectors,
        });
    }
    problems
}

/// The running position while zones are laid out.
pub(super) struct Layout {
    pub(super) heads: u32,
    pub(super) switches: Switches,
    pub(super) first_lba: u64,
    pub(super) cylinder: u32,
    pub(super) origin: u128,
}

impl Layout {
    /// The zone that follows, which must end before logical sector `limit`.
    pub(super) fn zone(&mut self, spec: &ZoneSpec, limit: u64) -> Zone {
        let width = (REVOLUTION << WIDTH_BITS) / u64::from(spec.sectors_per_track);
        let angle = |sectors: u32| (u64::from(sectors) * width) >> WIDTH_BITS;
        // The spare part of a track passes while the heads switch, that of a cylinder while the arm moves on.
        let crossing = |skew: u32, spare: u32, switch: u64| {
            let skew = angle(skew);
            // No switch takes a thousand turns; what claims to is reported by the specification.
            let missing = switch
                .saturating_sub(skew + angle(spare))
                .min(1000 * REVOLUTION);
            skew + missing.div_ceil(REVOLUTION) * REVOLUTION
        };
        let of_track = spec.spare_per_track;
        let of_both = of_track
            .saturating_add(spec.spare_per_cylinder)
            .min(spec.sectors_per_track);
        let head = crossing(spec.track_skew, of_track, self.switches.head);
        let cylinder = crossing(spec.cylinder_skew, of_both, self.switches.cylinder);
        let track_stride = REVOLUTION + head;
        let cylinder_stride =
            u64::from(self.heads) * REVOLUTION + u64::from(self.heads - 1) * head + cylinder;
        let capacity = spec.capacity(self.heads);
        let end_lba = (self.first_lba + capacity).min(limit);
        let slipped = spec
            .slips(self.heads)
            .iter()
            .enumerate()
            .map(|(before, &at)| at - spec.unused - before as u32)
            .collect();
        let zone = Zone {
            first_lba: self.first_lba,
            end_lba,
            origin: self.origin.min(LARGEST) as u64,
            first_cylinder: self.cylinder,
            unused: spec.unused,
            per_track: spec.usable_per_track(),
            width,
            track_stride: Stride::new(track_stride),
            cylinder_stride: Stride::new(cylinder_stride),
            by_cylinder: Divisor::new(spec.usable_per_cylinder(self.heads) as u32),
            by_track: Divisor::new(spec.usable_per_track()),
            slipped,
        };
        self.first_lba = end_lba;
        self.cylinder += spec.cylinders;
        self.origin += u128::from(cylinder_stride) * u128::from(spec.cylinders);
        zone
    }
}

impl Geometry {
    /// Most cylinders from a sector to one at most `sectors` further on.
    #[must_use]
    pub fn span(&self, sectors: u64) -> u32 {
        let inside = |zone: &Zone| {
            let passed = sectors + zone.slipped.len() as u64;
            passed / u64::from(zone.by_cylinder.by) + 1
        };
        let across = |zone: &Zone| {
            let (before, after) = (
                zone.end_lba.saturating_sub(sectors),
                (zone.end_lba + sectors).min(self.sectors - 1),
            );
            u64::from(self.locate(after).cylinder - self.locate(before.min(after)).cylinder)
        };
        let most = self.zones.iter().map(|zone| inside(zone).max(across(zone)));
        most.max().unwrap_or(0).min(u64::from(self.cylinders)) as u32
    }
}

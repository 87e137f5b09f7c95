//! A disk's zones from a datasheet's few figures.
use crate::disk::geometry::ZoneSpec;

/// How dense the outermost and innermost tracks are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Density {
    /// Sustained bytes a second.
    Rate(f64, f64),
    /// Sectors on a track.
    Sectors(f64, f64),
}

/// What zones are derived from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) decirpm: u32,
    pub(super) heads: u32,
    pub(super) sectors: u64,
    pub(super) physical: u32,
    pub(super) zones: u32,
    pub(super) density: Density,
    /// Times in nanoseconds that tracks and cylinders start later than the ones before.
    pub(super) track_skew: f64,
    pub(super) cylinder_skew: f64,
}

/// Zones of equally many cylinders, with sectors on a track falling in a straight line inwards, since
/// the linear density is about constant and the length of a track falls with its radius.
pub(super) fn zones(figures: &Figures) -> Vec<ZoneSpec> {
    let turn = 6e11 / f64::from(figures.decirpm);
    let heads = f64::from(figures.heads);
    let cylinder = heads * turn + (heads - 1.0) * figures.track_skew + figures.cylinder_skew;
    let (outer, inner) = match figures.density {
        Density::Sectors(outer, inner) => (outer, inner),
        // A cylinder's bytes over its turns and switches are the sustained rate.
        Density::Rate(outer, inner) => {
            let scale = cylinder / 1e9 / (heads * 512.0);
            (outer * scale, inner * scale)
        }
    };
    let physical = f64::from(figures.physical);
    let last = f64::from(figures.zones.max(2) - 1);
    let tracks: Vec<u32> = (0..figures.zones)
        .map(|i| outer - (outer - inner) * f64::from(i) / last)
        .map(|sectors| (libm::round(sectors / physical) * physical).max(physical) as u32)
        .collect();
    let per_slice: u64 = tracks
        .iter()
        .map(|n| u64::from(*n) * u64::from(figures.heads))
        .sum();
    let cylinders = figures
        .sectors
        .div_ceil(per_slice.max(1))
        .min(u64::from(u32::MAX)) as u32;
    let zone = |sectors_per_track: u32| {
        let slots = |ns: f64| libm::ceil(ns * f64::from(sectors_per_track) / turn) as u32;
        ZoneSpec {
            cylinders,
            sectors_per_track,
            track_skew: slots(figures.track_skew),
            cylinder_skew: slots(figures.cylinder_skew),
            ..ZoneSpec::default()
        }
    };
    tracks.into_iter().map(zone).collect()
}

//! Seek curve, switching and zones of a model file.
use super::super::derive::{self, Density, Figures};
use super::super::reader::{Mark, Table};
use super::{millis, needed, or_assume};
use crate::disk::geometry::ZoneSpec;
use crate::disk::seek::SeekSpec;

/// The outermost track is about twice as long as the innermost.
const INNER_SHARE: f64 = 0.5;
const ZONES: u32 = 16;

/// The seek curve, and its time to the next cylinder in ms.
pub(super) fn seek(table: &Table<'_, '_>) -> (Option<SeekSpec>, f64) {
    if table.has("table") {
        let points = table.pairs("table");
        let first = points.as_ref().and_then(|p| p.first()).map_or(1.0, |p| p.1);
        let point = |(d, ms): (f64, f64)| (d.min(f64::from(u32::MAX)) as u32, millis(ms));
        let points = points.map(|points| points.into_iter().map(point).collect());
        return (points.map(SeekSpec::Table), first);
    }
    if table.has("short") {
        let short = table.pairs("short");
        let long = needed(table, "long", "[[c, e]] of c + e d, in ms", Table::pairs);
        let knee = needed(
            table,
            "knee",
            "the last distance of the short piece",
            Table::count,
        );
        let curve = match (short.as_deref(), long.as_deref(), knee) {
            (Some(&[(a, b)]), Some(&[(c, e)]), Some(knee)) => {
                Some(SeekSpec::TwoPiece { a, b, c, e, knee })
            }
            _ => {
                if short.is_some() && long.is_some() {
                    let message = "'seek.short' and 'seek.long' are one pair each, such as short = [[1.1, 0.36]]";
                    table.reader.report_at("seek.short", message);
                }
                None
            }
        };
        let first = short.and_then(|pieces| pieces.first().map(|(a, b)| a + b));
        return (curve, first.unwrap_or(1.0));
    }
    let figure = |key, what| needed(table, key, what, Table::number);
    let first = figure(
        "track_to_track_ms",
        "the time to the next cylinder in ms (or a table)",
    );
    let average = figure("average_ms", "the average read seek in ms");
    let full = figure("full_ms", "the full stroke in ms");
    let curve = match (first, average, full) {
        (Some(first), Some(average), Some(full)) => Some(SeekSpec::Figures {
            track_to_track: millis(first),
            average: millis(average),
            full: millis(full),
        }),
        _ => None,
    };
    (curve, first.unwrap_or(1.0))
}

/// Switching in milliseconds, skews in nanoseconds, which are 0 where zones have their own.
pub(super) struct Switching {
    pub(super) head: f64,
    pub(super) settle: f64,
    pub(super) track_skew: f64,
    pub(super) cylinder_skew: f64,
}

pub(super) fn switches(
    table: &Table<'_, '_>,
    seek: &Table<'_, '_>,
    track_to_track: f64,
    zones_are_given: bool,
) -> Switching {
    let reader = table.reader;
    let head = or_assume(
        table.number("head_ms"),
        reader,
        "switch.head_ms",
        track_to_track,
        "as long as to the next cylinder: the head has to find its track again",
    );
    let settle = table.number("write_settle_ms").or_else(|| {
        // Average write minus average read seek is what a write waits longer.
        // A curve says more than averages, and has none. The write is asked for first: it is known where the read is missing.
        let figures = !seek.has("table") && !seek.has("short");
        let write = figures.then(|| seek.number("average_write_ms")).flatten();
        let (read, write) = (seek.peek("average_ms")?, write?);
        let settle = libm::round((write - read).max(0.0) * 1e6) / 1e6;
        reader.conclude(
            "switch.write_settle_ms",
            settle.to_string(),
            Mark::Derived,
            "average write minus average read seek",
        );
        Some(settle)
    });
    let settle = or_assume(
        settle,
        reader,
        "switch.write_settle_ms",
        0.3,
        "drives measured have 0 to 0.5 ms",
    );
    let skew = |key: &str, switch: f64| {
        if zones_are_given {
            unused_skew(table, key);
            return 0.0;
        }
        skew(table, key, switch + settle)
    };
    let (track_skew, cylinder_skew) = (
        skew("track_skew_ms", head),
        skew("cylinder_skew_ms", track_to_track),
    );
    table.deny_unknown();
    Switching {
        head,
        settle,
        track_skew,
        cylinder_skew,
    }
}

/// A skew in nanoseconds, of the file or so long (ms) that a switch and the settling of a write lose no turn.
fn skew(table: &Table<'_, '_>, key: &str, covered: f64) -> f64 {
    let ms = table.number(key).unwrap_or_else(|| {
        let why = "the switch and the settling of a write, so that no turn is lost";
        let (key, value) = (format!("switch.{key}"), format!("{covered:.3}"));
        table.reader.conclude(&key, value, Mark::Derived, why);
        covered
    });
    ms * 1e6
}

/// Zones that are given have skews of their own, in sectors: a time beside them would be shown, and say nothing.
fn unused_skew(table: &Table<'_, '_>, key: &str) {
    if table.number(key).is_some() {
        let of_zone = key.trim_end_matches("_ms");
        let message = format!(
            "'switch.{key}' is for zones that are derived, and the file gives its own: write '{of_zone}', in sectors, in \
             each [[zone]] instead"
        );
        table.reader.report_at(&format!("switch.{key}"), message);
    }
}

pub(super) fn zones(
    root: &Table<'_, '_>,
    geometry: &Table<'_, '_>,
    mut figures: Figures,
) -> Option<Vec<ZoneSpec>> {
    let given = root.tables("zone");
    let rate = root.table("rate");
    if !given.is_empty() {
        rate.deny_unknown();
        return extracted(&given);
    }
    let reader = root.reader;
    let density = if rate.has("outer_sectors_per_track") {
        let outer = rate.number("outer_sectors_per_track");
        let inner = rate.number("inner_sectors_per_track");
        outer.map(|outer| {
            (
                outer,
                inner,
                Density::Sectors as fn(f64, f64) -> Density,
                1.0,
            )
        })
    } else {
        let outer = needed(
            &rate,
            "outer_mb_s",
            "the sustained rate of the outer tracks, or zones",
            Table::number,
        );
        let inner = rate.number("inner_mb_s");
        outer.map(|outer| (outer, inner, Density::Rate as fn(f64, f64) -> Density, 1e6))
    };
    rate.deny_unknown();
    figures.zones = or_assume(
        geometry.count("zones"),
        reader,
        "geometry.zones",
        ZONES,
        "a round number",
    )
    .clamp(1, 1024);
    let (outer, inner, make, scale) = density?;
    let inner = or_assume(
        inner,
        reader,
        "rate.inner",
        outer * INNER_SHARE,
        "half of the outer tracks",
    );
    if inner > outer || outer == 0.0 {
        reader.report_at("rate", format!("the inner tracks ({inner}) must not be denser than the outer ones ({outer}), which must not be 0"));
        return None;
    }
    figures.density = make(outer * scale, inner * scale);
    let zones = derive::zones(&figures);
    let tracks: Vec<_> = zones
        .iter()
        .map(|zone| zone.sectors_per_track.to_string())
        .collect();
    reader.conclude(
        "geometry.sectors_per_track",
        tracks.join(" "),
        Mark::Derived,
        "rates, turns and skews; a straight line inwards",
    );
    reader.conclude(
        "geometry.cylinders",
        zones
            .iter()
            .map(|zone| u64::from(zone.cylinders))
            .sum::<u64>()
            .to_string(),
        Mark::Derived,
        "capacity, heads and sectors per track",
    );
    Some(zones)
}

/// Zones as an extraction gives them: first and last cylinder, sectors, skews.
fn extracted(tables: &[Table<'_, '_>]) -> Option<Vec<ZoneSpec>> {
    let mut zones = Vec::new();
    let mut expected = 0;
    let mut whole = true;
    for (number, table) in tables.iter().enumerate() {
        let range = needed(
            table,
            "cylinders",
            "its first and last cylinder as [first, last]",
            Table::wholes,
        );
        let cylinders = match range.as_deref() {
            Some(&[first, last]) if first == expected && last >= first && last < 1 << 24 => {
                expected = last + 1;
                (last + 1 - first) as u32
            }
            Some(range) => {
                let message = format!(
                    "zone {number} has the cylinders {range:?}, but must begin at cylinder {expected}, where the zone before ends, and not end before it begins: zones must neither overlap nor leave gaps"
                );
                table
                    .reader
                    .report_at(&format!("zone.{number}.cylinders"), message);
                if let &[_, last] = range {
                    expected = last.saturating_add(1);
                }
                whole = false;
                1
            }
            None => {
                whole = false;
                1
            }
        };
        let tracks = needed(
            table,
            "sectors_per_track",
            "its sectors on a track",
            Table::count,
        );
        let or_none = |key: &str| table.count(key).unwrap_or(0);
        let slipped = table.wholes("slipped").unwrap_or_default();
        whole &= tracks.is_some();
        zones.push(ZoneSpec {
            cylinders,
            sectors_per_track: tracks.unwrap_or(0),
            track_skew: or_none("track_skew"),
            cylinder_skew: or_none("cylinder_skew"),
            spare_per_track: or_none("spare_per_track"),
            spare_per_cylinder: or_none("spare_per_cylinder"),
            unused: or_none("unused"),
            first_lba: table.whole("first_lba"),
            slipped: slipped
                .into_iter()
                .map(|at| at.min(u64::from(u32::MAX)) as u32)
                .collect(),
        });
        table.deny_unknown();
    }
    whole.then_some(zones)
}

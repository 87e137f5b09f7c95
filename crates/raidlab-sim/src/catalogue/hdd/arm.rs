//! Seek curve, switching and zones of a model file.
use super::super::derive::{self, Density, Figures};
use super::super::reader::{Mark, Table};
use super::extraction::extracted;
use super::{millis, needed, or_assume};
use crate::disk::geometry::ZoneSpec;
use crate::disk::seek::SeekSpec;
use std::ops::RangeInclusive;

/// The outermost track is about twice as long as the innermost.
const INNER_SHARE: f64 = 0.5;
const ZONES: u64 = 16;

/// Least time to the next cylinder in ms: no arm moves and settles in less, and what is below is in seconds.
const LEAST_SEEK: f64 = 0.02;
/// Longest time of a switch or of settling in ms: several turns of any disk, and what is above is in microseconds.
const SWITCHES: RangeInclusive<f64> = 0.0..=50.0;
/// Least share of the outermost tracks that the innermost have; of drives it is a third or more, as of their radii.
const LEAST_SHARE: f64 = 0.1;
/// Two pieces that meet this badly, the longer over the shorter, were not fitted on one drive.
const APART: f64 = 1.5;

/// The seek curve, and its time to the next cylinder in ms.
pub(super) fn seek(table: &Table<'_, '_>) -> (Option<SeekSpec>, f64) {
    if table.has("table") {
        let points = table.pairs("table");
        let first = points.as_ref().and_then(|p| p.first()).map_or(1.0, |p| p.1);
        moves(table, "table", first);
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
        let first = first.unwrap_or(1.0);
        moves(table, "short", first);
        return (curve, first);
    }
    let figure = |key, what| needed(table, key, what, Table::number);
    let first = figure(
        "track_to_track_ms",
        "the time to the next cylinder in ms (or a table)",
    );
    if let Some(first) = first {
        moves(table, "track_to_track_ms", first);
    }
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

/// That the shortest seek, told by `key`, takes any time.
fn moves(table: &Table<'_, '_>, key: &str, first: f64) {
    table.unless(
        first >= LEAST_SEEK,
        key,
        format!(
            "'seek.{key}' takes {first} ms to the next cylinder: at least {LEAST_SEEK} is possible, in milliseconds"
        ),
    );
}

/// That both pieces of a curve are of use on a disk with these zones, and are of one drive.
pub(super) fn pieces_fit(table: &Table<'_, '_>, curve: &SeekSpec, zones: &[ZoneSpec]) {
    let SeekSpec::TwoPiece { a, b, c, e, knee } = *curve else {
        return;
    };
    let cylinders: u64 = zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
    let inside = (1..cylinders.saturating_sub(1)).contains(&u64::from(knee));
    table.unless(
        inside,
        "knee",
        format!(
            "'seek.knee' is {knee} of {cylinders} cylinders: it is the last distance of the short piece, with longer ones beyond"
        ),
    );
    let d = f64::from(knee);
    let (short, long) = (a + b * libm::sqrt(d), c + e * d);
    table.unless(
        !inside || (short <= APART * long && long <= APART * short),
        "long",
        format!(
            "at the knee of {knee} cylinders 'seek.short' takes {short:.3} ms and 'seek.long' {long:.3}: correct the pieces, in ms, \
             or the knee"
        ),
    );
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
        table.between("head_ms", SWITCHES, "ms"),
        reader,
        "switch.head_ms",
        track_to_track,
        "as long as to the next cylinder: the head has to find its track again",
    );
    // A curve says more than averages, and has none.
    let figures = !seek.has("table") && !seek.has("short");
    let write = "average_write_ms";
    if figures && table.has("write_settle_ms") && seek.number(write).is_some() {
        let message = "'seek.average_write_ms' and 'switch.write_settle_ms' both say how long a write settles: leave one out";
        seek.reader.report_at("seek.average_write_ms", message);
    }
    let settle = table.between("write_settle_ms", SWITCHES, "ms").or_else(|| {
        // Average write minus average read seek is what a write waits longer.
        // The write is asked for first: it is known where the read is missing.
        let write = figures.then(|| seek.number("average_write_ms")).flatten();
        let (read, write) = (seek.peek("average_ms")?, write?);
        // An average beyond the full stroke is told as that.
        let is_average = seek.peek("full_ms").is_none_or(|full| read < full);
        seek.unless(
            !is_average || (read..=read + SWITCHES.end()).contains(&write),
            "average_write_ms",
            format!(
                "'seek.average_write_ms' is {write}, and 'average_ms' of reads {read}: what a write settles longer is their \
                 difference, from 0 to {} ms",
                SWITCHES.end()
            ),
        );
        let settle = libm::round((write - read).clamp(0.0, *SWITCHES.end()) * 1e6) / 1e6;
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
    let ms = table.between(key, SWITCHES, "ms").unwrap_or_else(|| {
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
        return extracted(&given, figures.heads);
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
        geometry.whole_between("zones", 1..=1024, "zones"),
        reader,
        "geometry.zones",
        ZONES,
        "a round number",
    ) as u32;
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
    if inner < outer * LEAST_SHARE {
        let message = format!(
            "the inner tracks ({inner}) have less than a tenth of the outer ones ({outer}), and drives have a third or more: give \
             both in the same unit"
        );
        reader.report_at("rate", message);
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

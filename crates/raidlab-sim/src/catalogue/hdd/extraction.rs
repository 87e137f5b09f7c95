//! Zones that an extraction gives.
use super::super::reader::Table;
use super::needed;
use crate::disk::geometry::ZoneSpec;

/// Zones as an extraction gives them: first and last cylinder, sectors, skews.
pub(super) fn extracted(tables: &[Table<'_, '_>], heads: u32) -> Option<Vec<ZoneSpec>> {
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
        let zone = ZoneSpec {
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
        };
        if tracks.is_some() && whole {
            fits(table, number, &zone, heads);
        }
        zones.push(zone);
        table.deny_unknown();
    }
    whole.then_some(zones)
}

/// That what a zone leaves out lies in it.
fn fits(table: &Table<'_, '_>, number: usize, zone: &ZoneSpec, heads: u32) {
    let track = zone.usable_per_track();
    table.unless(
        track > 0,
        "spare_per_track",
        format!(
            "zone {number} keeps {} of the {} sectors of a track as spares: some must be left",
            zone.spare_per_track, zone.sectors_per_track
        ),
    );
    table.unless(
        track == 0 || zone.spare_per_cylinder < track,
        "spare_per_cylinder",
        format!(
            "zone {number} keeps {} sectors of each cylinder as spares, and its last track has {track}: where a whole track is kept, \
             leave its head out of geometry.heads",
            zone.spare_per_cylinder
        ),
    );
    let total = zone.usable_per_cylinder(heads) * u64::from(zone.cylinders);
    let beyond = zone.slipped.iter().filter(|at| u64::from(**at) >= total);
    let beyond: Vec<String> = beyond.map(u32::to_string).collect();
    if let Some(first) = beyond.first() {
        let more = match beyond.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let message = format!(
            "zone {number} has {total} usable sectors, numbered from 0, and no {first}{more} among them: slipped sectors are numbered \
             within their zone"
        );
        table.reader.report_at(&table.path_of("slipped"), message);
    }
}

//! A model file of a hard disk, lowered into its specification.
mod arm;
mod buffer;
mod extraction;

use super::derive::{Density, Figures};
use super::reader::{Mark, Reader, Table};
use crate::disk::DiskModel;
use crate::disk::geometry::GeometryError;
use crate::disk::spec::{HddSpec, Overhead, QueueSpec, SpecError};
use arm::{pieces_fit, seek, switches, zones};
use buffer::cache;
use raidlab_core::time::Span;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Rates of links in MB/s. No disk has had less, and the least of what is above is another unit.
pub(super) const LINKS: RangeInclusive<f64> = 0.1..=1e6;
/// Microseconds of a command, of which no drive has needed more than a few thousand; what is above is in nanoseconds.
pub(super) const COMMANDS: RangeInclusive<f64> = 0.0..=20_000.0;

/// Milliseconds or microseconds as a span, rounded to whole nanoseconds.
fn span(value: f64, nanos: f64) -> Span {
    Span(libm::round(value * nanos) as u64)
}

fn millis(value: f64) -> Span {
    span(value, 1e6)
}

/// Lowers the file; `None` when something was wrong.
pub(super) fn lower(root: &Table<'_, '_>, name: String) -> Option<DiskModel> {
    let reader = root.reader;
    let geometry = root.table("geometry");
    let rpm = needed(&geometry, "rpm", "revolutions a minute", Table::number);
    let heads = needed(
        &geometry,
        "heads",
        "the number of surfaces in use",
        Table::count,
    );
    let sectors = needed(
        &geometry,
        "sectors",
        "the capacity in sectors of 512 bytes",
        Table::whole,
    );
    let physical = or_assume(
        geometry.physical_sector("physical_sector"),
        reader,
        "geometry.physical_sector",
        512,
        "512 bytes, no emulation",
    );
    let zero_latency = or_assume(
        geometry.boolean("zero_latency"),
        reader,
        "geometry.zero_latency",
        false,
        "waits for the first sector of a read",
    );
    let seek_table = root.table("seek");
    let (seek, track_to_track) = seek(&seek_table);
    let switches = switches(
        &root.table("switch"),
        &seek_table,
        track_to_track,
        root.has("zone"),
    );
    let (cache, overhead) = (
        cache(&root.table("cache")),
        overhead(&root.table("overhead")),
    );
    let queue = queue(&root.table("queue"));
    let interface = root.table("interface");
    let link = needed(
        &interface,
        "rate_mb_s",
        "its rate in millions of bytes a second",
        |table, key| table.between(key, LINKS, "MB/s"),
    );
    needed(
        &interface,
        "kind",
        "PATA, SATA, SCSI or SAS",
        |table, key| table.word(key, &["PATA", "SATA", "SCSI", "SAS"]),
    );
    let decirpm = libm::round(rpm.unwrap_or(7200.0) * 10.0).min(f64::from(u32::MAX)) as u32;
    let physical = u32::try_from(physical / 512).unwrap_or(u32::MAX);
    let figures = Figures {
        decirpm: decirpm.max(1),
        heads: heads.unwrap_or(1).clamp(1, 64),
        sectors: sectors.unwrap_or(1),
        physical: physical.clamp(1, 8),
        zones: 0,
        density: Density::Sectors(1.0, 1.0),
        track_skew: switches.track_skew,
        cylinder_skew: switches.cylinder_skew,
    };
    let zones = zones(root, &geometry, figures);
    if let (Some(seek), Some(zones)) = (&seek, &zones) {
        pieces_fit(&seek_table, seek, zones);
    }
    for table in [&geometry, &seek_table, &interface] {
        table.deny_unknown();
    }
    let spec = HddSpec {
        name,
        decirpm,
        heads: heads?,
        sectors: sectors?,
        physical,
        zones: zones?,
        seek: seek?,
        head_switch: millis(switches.head),
        write_settle: millis(switches.settle),
        zero_latency,
        overhead,
        cache: cache?,
        queue,
        link: (link? * 1e6) as u64,
    };
    // A speed that could not be read has been reported; there is nothing to build with it.
    rpm?;
    match spec.build() {
        Ok(model) => Some(DiskModel::Hdd(Arc::new(model))),
        Err(problems) => {
            // Tracks and cylinders follow from the speed: an impossible one makes them impossible.
            let speed = problems.iter().any(|p| matches!(p, SpecError::Rpm(_)));
            let follows = |p: &SpecError| {
                matches!(
                    p,
                    SpecError::Geometry(GeometryError::Track(_) | GeometryError::TooManyTracks(_))
                )
            };
            for problem in problems.iter().filter(|p| !(speed && follows(p))) {
                reader.report_at(&place(problem), problem.to_string());
            }
            None
        }
    }
}

fn needed<'r, 'i, T>(
    table: &Table<'r, 'i>,
    key: &str,
    what: &str,
    read: impl Fn(&Table<'r, 'i>, &str) -> Option<T>,
) -> Option<T> {
    if !table.has(key) {
        table.missing(key, what);
    }
    read(table, key)
}

/// What is given, or what is assumed of a drive, which is told as a fact of the model like the rest.
pub(super) fn or_assume<T: Copy + ToString>(
    given: Option<T>,
    reader: &Reader<'_>,
    key: &str,
    assumed: T,
    why: &str,
) -> T {
    given.unwrap_or_else(|| {
        reader.conclude(key, assumed.to_string(), Mark::Assumed, why);
        assumed
    })
}

/// Which value of the file a problem of the whole is about.
fn place(problem: &SpecError) -> String {
    let key = match problem {
        SpecError::Rpm(_) => "geometry.rpm",
        SpecError::Heads(_) => "geometry.heads",
        SpecError::Capacity(_) | SpecError::PartPhysical(_) => "geometry.sectors",
        SpecError::Physical(_) => "geometry.physical_sector",
        SpecError::Tags(_) => "queue.depth",
        SpecError::Window { .. } => "queue.window",
        SpecError::Segments(_) | SpecError::SegmentSize => "cache.segments",
        SpecError::ReadAhead { .. } => "cache.read_ahead_kib",
        SpecError::WriteBuffer => "cache.write_back",
        SpecError::Rounds(_) => "cache.rounds",
        SpecError::Marks { .. } => "cache.high_percent",
        SpecError::Time { what, .. } => match *what {
            "a head switch" | "a write settling" => "switch",
            "a quiet time" => "cache.quiet_ms",
            "a highest age" => "queue.max_age_ms",
            _ => "overhead",
        },
        SpecError::Link(_) => "interface.rate_mb_s",
        SpecError::Buffer(_) => "cache.size_kib",
        SpecError::Seek(_) => "seek",
        SpecError::Geometry(problem) => match problem {
            GeometryError::EmptyZone(zone)
            | GeometryError::Track(zone)
            | GeometryError::Gap { zone, .. }
            | GeometryError::Overlap { zone, .. } => return format!("zone.{zone}"),
            GeometryError::TooSmall { .. } => "geometry.sectors",
            GeometryError::NoZones | GeometryError::TooManyTracks(_) => "geometry",
        },
    };
    key.to_owned()
}

fn overhead(table: &Table<'_, '_>) -> Overhead {
    let reader = table.reader;
    let time = |key: &str, assumed: f64, why: &str| {
        let path = format!("overhead.{key}");
        span(
            or_assume(
                table.between(key, COMMANDS, "microseconds"),
                reader,
                &path,
                assumed,
                why,
            ),
            1e3,
        )
    };
    let overhead = Overhead {
        read_hit: time("read_hit_us", 60.0, "command decoding and status"),
        read_miss: time(
            "read_miss_us",
            150.0,
            "command decoding, look-up and status",
        ),
        write: time("write_us", 80.0, "command decoding and status"),
    };
    table.deny_unknown();
    overhead
}

fn queue(table: &Table<'_, '_>) -> QueueSpec {
    let reader = table.reader;
    let tags = or_assume(
        table.count("depth"),
        reader,
        "queue.depth",
        1,
        "no queueing",
    );
    let window = if tags > 1 {
        or_assume(
            table.count("window"),
            reader,
            "queue.window",
            tags.min(8),
            "commands looked at for reordering",
        )
    } else {
        table.count("window").unwrap_or(1)
    };
    let max_age = if tags > 1 {
        or_assume(
            table.number("max_age_ms"),
            reader,
            "queue.max_age_ms",
            500.0,
            "those that were passed over for longer go first",
        )
    } else {
        table.number("max_age_ms").unwrap_or(500.0)
    };
    table.deny_unknown();
    QueueSpec {
        tags,
        window,
        max_age: millis(max_age),
    }
}

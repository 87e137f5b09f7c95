//! A model file of a hard disk, lowered into its specification.
mod arm;

use super::derive::{Density, Figures};
use super::reader::{Mark, Reader, Table};
use crate::disk::DiskModel;
use crate::disk::geometry::GeometryError;
use crate::disk::spec::{CacheSpec, HddSpec, Overhead, QueueSpec, Restart, SpecError};
use arm::{seek, switches, zones};
use raidlab_core::time::Span;
use std::sync::Arc;

const SEGMENTS: u32 = 16;

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
        geometry.whole("physical_sector"),
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
        Table::number,
    );
    interface.word("kind", &["PATA", "SATA", "SCSI", "SAS"]);
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

fn cache(table: &Table<'_, '_>) -> Option<CacheSpec> {
    let reader = table.reader;
    let size = needed(
        table,
        "size_kib",
        "the size of the buffer, 0 for none",
        Table::whole,
    )? * 2;
    let write_back = or_assume(
        table.boolean("write_back"),
        reader,
        "cache.write_back",
        true,
        "as drives are delivered",
    );
    let share = if write_back && size > 0 {
        or_assume(
            table.count("write_share_percent"),
            reader,
            "cache.write_share_percent",
            50,
            "half of the buffer",
        )
    } else {
        table.count("write_share_percent").unwrap_or(0)
    };
    let write_sectors = size * u64::from(share.min(100)) / 100;
    let segments = if size == 0 {
        0
    } else {
        or_assume(
            table.count("segments"),
            reader,
            "cache.segments",
            SEGMENTS,
            "usual for the kind",
        )
    };
    let segment_sectors = (size - write_sectors) / u64::from(segments.max(1));
    let adaptive = table.boolean("adaptive").unwrap_or(false);
    let ahead = table.whole("read_ahead_kib").map(|kib| kib * 2);
    let read_ahead = ahead.unwrap_or_else(|| {
        let (most, why) = if adaptive {
            let all = segment_sectors * u64::from(segments);
            (all, "all segments that no other reader has")
        } else {
            (segment_sectors, "a whole segment")
        };
        reader.conclude(
            "cache.read_ahead_kib",
            (most / 2).to_string(),
            Mark::Assumed,
            why,
        );
        most
    });
    let restart = match table.word("restart", &["eager", "lazy"]) {
        Some("lazy") => Restart::Lazy,
        Some(_) => Restart::Eager,
        None => {
            reader.conclude(
                "cache.restart",
                "eager",
                Mark::Assumed,
                "reads on as soon as there is room",
            );
            Restart::Eager
        }
    };
    let spec = CacheSpec {
        segments,
        segment_sectors,
        adaptive,
        read_ahead,
        least_ahead: or_assume(
            table.whole("least_ahead_kib"),
            reader,
            "cache.least_ahead_kib",
            0,
            "writes at once what may be written",
        )
        .min(1 << 30)
            * 2,
        restart,
        write_back: write_back && size > 0,
        write_sectors,
        write_runs: or_assume(
            table.count("write_runs"),
            reader,
            "cache.write_runs",
            128,
            "separate runs kept track of",
        ),
        rounds: or_assume(
            table.count("rounds"),
            reader,
            "cache.rounds",
            4,
            "a run goes first when the buffer was written so often since it came",
        ),
        high: or_assume(
            table.count("high_percent"),
            reader,
            "cache.high_percent",
            80,
            "destaging takes turns with reads",
        ),
        low: or_assume(
            table.count("low_percent"),
            reader,
            "cache.low_percent",
            50,
            "destaging waits for idle time again",
        ),
        quiet: millis(or_assume(
            table.number("quiet_ms"),
            reader,
            "cache.quiet_ms",
            20.0,
            "idle time after the last read before destaging",
        )),
    };
    table.deny_unknown();
    Some(spec)
}

fn overhead(table: &Table<'_, '_>) -> Overhead {
    let reader = table.reader;
    let time = |key: &str, assumed: f64, why: &str| {
        let path = format!("overhead.{key}");
        span(
            or_assume(table.number(key), reader, &path, assumed, why),
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

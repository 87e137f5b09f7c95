//! The buffer of a model file.
use super::super::reader::{Mark, Table};
use super::{millis, needed, or_assume};
use crate::disk::spec::{CacheSpec, Restart};
use std::ops::RangeInclusive;

const SEGMENTS: u32 = 16;
/// A buffer in KiB: 4 GiB, eight times what drives have come with; what is above is in bytes.
const BUFFERS: RangeInclusive<u64> = 0..=4 << 20;

/// The buffer; `None` when its size could not be read.
pub(super) fn cache(table: &Table<'_, '_>) -> Option<CacheSpec> {
    let reader = table.reader;
    let given = needed(
        table,
        "size_kib",
        "the size of the buffer, 0 for none",
        |table, key| table.whole_between(key, BUFFERS, "KiB"),
    );
    // Without it the rest is read all the same, for what is wrong with that.
    let size = given.unwrap_or(1 << 10) * 2;
    let write_back = or_assume(
        table.boolean("write_back"),
        reader,
        "cache.write_back",
        true,
        "as drives are delivered",
    );
    let share = table.whole_between("write_share_percent", 0..=100, "per cent");
    let share = if write_back && size > 0 {
        let (key, why) = ("cache.write_share_percent", "half of the buffer");
        or_assume(share, reader, key, 50, why)
    } else {
        share.unwrap_or(0)
    };
    let write_sectors = size * share / 100;
    let segments = table.count("segments");
    let segments = if size == 0 {
        0
    } else {
        or_assume(
            segments,
            reader,
            "cache.segments",
            SEGMENTS,
            "usual for the kind",
        )
    };
    table.unless(
        segments > 0 || write_sectors == size,
        "segments",
        format!(
            "'cache.segments' is 0, and {} KiB of the buffer would be for nothing: give it segments, or all to writes with \
             write_share_percent = 100, or say what it has in size_kib",
            (size - write_sectors) / 2
        ),
    );
    let segment_sectors = (size - write_sectors) / u64::from(segments.max(1));
    let adaptive = table.boolean("adaptive").unwrap_or(false);
    let ahead = table.whole_between("read_ahead_kib", BUFFERS, "KiB");
    let ahead = ahead.map(|kib| kib * 2);
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
    let least_ahead = or_assume(
        table.whole_between("least_ahead_kib", BUFFERS, "KiB"),
        reader,
        "cache.least_ahead_kib",
        0,
        "writes at once what may be written",
    ) * 2;
    table.unless(
        least_ahead <= read_ahead,
        "least_ahead_kib",
        format!(
            "'cache.least_ahead_kib' is {}, but it reads {} KiB ahead at the most: give less, or more read_ahead_kib",
            least_ahead / 2,
            read_ahead / 2
        ),
    );
    let spec = CacheSpec {
        segments,
        segment_sectors,
        adaptive,
        read_ahead,
        least_ahead,
        restart,
        write_back: write_back && size > 0,
        write_sectors,
        write_runs: or_assume(
            table.whole_between("write_runs", 0..=1 << 20, "runs"),
            reader,
            "cache.write_runs",
            128,
            "separate runs kept track of",
        ) as u32,
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
    given.map(|_| spec)
}

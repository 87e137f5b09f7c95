//! What follows from a disk model's parameters: rates at the edges by arithmetic, times of random
//! requests by asking the model itself.
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::units::SECTOR;
use raidlab_sim::catalogue;
use raidlab_sim::disk::DiskModel;
use raidlab_sim::disk::asked::{SMALL, driven, flushed_writes, random_reads};
use raidlab_sim::disk::spec::HddModel;
use raidlab_sim::disk::ssd::SsdModel;
use serde::Serialize;
use std::sync::Arc;

/// Buffers that are written before what counts: one that has not been full by then is hardly ever.
const TO_FILL: u64 = 16;
/// Random writes that are asked for behind them.
const WRITES: u64 = 100_000;
/// Bytes read for the sequential rate of a disk without zones.
const STREAMED: u64 = 1 << 30;
/// Sectors of a sequential request: 128 KiB.
const LARGE: u32 = 256;

/// What follows from a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Derived {
    /// Usable bytes.
    pub(super) capacity_bytes: u64,
    /// Bytes a second of sequential reading at the first sector.
    pub(super) outer_bytes_per_second: f64,
    /// The same at the last sector.
    pub(super) inner_bytes_per_second: f64,
    /// Milliseconds to the next cylinder.
    pub(super) seek_track_ms: Option<f64>,
    /// Mean over all pairs of different cylinders.
    pub(super) seek_average_ms: Option<f64>,
    /// Over all cylinders.
    pub(super) seek_full_ms: Option<f64>,
    /// Half a turn.
    pub(super) rotation_half_ms: Option<f64>,
    /// Mean response of a random read of 4 KiB, one at a time; `None` of a disk that is smaller.
    pub(super) random_read_ms: Option<f64>,
    /// Random reads of 4 KiB a second with one in flight.
    pub(super) random_read_iops: Option<f64>,
    /// The same with as many in flight as the disk takes, at most 32.
    pub(super) queued_read_iops: Option<f64>,
    /// Random writes of 4 KiB a second of a solid-state disk with as many in flight, once its buffer is full.
    pub(super) queued_write_iops: Option<f64>,
    /// Random writes of 4 KiB a second, one at a time, each made durable by a flush before the next; `None` of a disk that is smaller.
    pub(super) flushed_write_iops: Option<f64>,
    /// Whether it is a solid-state disk that is full from the beginning.
    pub(super) full: bool,
    /// In flight for `queued_read_iops` and `queued_write_iops`.
    pub(super) queue: u32,
}

impl Derived {
    pub(super) fn of(model: &DiskModel) -> Self {
        let alone = Self::alone(model);
        let ssd = match model {
            DiskModel::Ssd(ssd) => Some(ssd),
            DiskModel::Hdd(_) => None,
        };
        Self {
            queued_read_iops: match alone.queue {
                1 => alone.random_read_iops,
                queue => random_reads(model, queue),
            },
            queued_write_iops: ssd.and_then(|ssd| random_writes(ssd, alone.queue)),
            flushed_write_iops: flushed_writes(model),
            ..alone
        }
    }

    /// The same of several models, each on a thread of its own.
    pub(super) fn of_all<'m>(
        models: impl IntoIterator<Item = &'m DiskModel>,
        of: fn(&DiskModel) -> Self,
    ) -> Vec<Self> {
        std::thread::scope(|scope| {
            let begin = |model| scope.spawn(move || of(model));
            let begun: Vec<_> = models.into_iter().map(begin).collect();
            let ended = begun.into_iter().map(|thread| thread.join());
            ended
                .map(|of| of.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// What follows from it for one request at a time: nothing is known of those in a queue.
    pub(super) fn alone(model: &DiskModel) -> Self {
        let queue = model.tags().clamp(1, 32);
        let one = random_reads(model, 1);
        let (outer, inner) = match model {
            DiskModel::Hdd(hdd) => (hdd.sustained(0), hdd.sustained(hdd.spec.sectors - 1)),
            DiskModel::Ssd(_) => {
                let rate = sequential(model, queue);
                (rate, rate)
            }
        };
        let hdd = match model {
            DiskModel::Hdd(hdd) => Some(hdd),
            DiskModel::Ssd(_) => None,
        };
        let ssd = match model {
            DiskModel::Ssd(ssd) => Some(ssd),
            DiskModel::Hdd(_) => None,
        };
        let millis = |nanos: f64| nanos / 1e6;
        Self {
            capacity_bytes: model.sectors() * SECTOR,
            outer_bytes_per_second: outer,
            inner_bytes_per_second: inner,
            seek_track_ms: hdd.map(|h| millis(h.seek.nanos(1) as f64)),
            seek_average_ms: hdd.map(|h| millis(mean_seek(h))),
            seek_full_ms: hdd.map(|h| millis(h.seek.full_stroke(h.geometry.cylinders()) as f64)),
            rotation_half_ms: hdd.map(|h| millis(h.spindle(0).revolution() as f64 / 2.0)),
            random_read_ms: one.map(|rate| 1e3 / rate),
            random_read_iops: one,
            queued_read_iops: None,
            queued_write_iops: None,
            flushed_write_iops: None,
            full: ssd.is_some_and(|ssd| ssd.spec.filled == 100),
            queue,
        }
    }
}

/// Mean seek in nanoseconds over uniformly random pairs of different cylinders: of n cylinders,
/// 2 (n - d) ordered pairs lie d apart.
fn mean_seek(model: &HddModel) -> f64 {
    let n = u64::from(model.geometry.cylinders());
    if n < 2 {
        return 0.0;
    }
    let total: u128 = (1..n)
        .map(|d| u128::from(2 * (n - d)) * u128::from(model.seek.nanos(d as u32)))
        .sum();
    total as f64 / (n * (n - 1)) as f64
}

/// Random writes of 4 KiB a second with `depth` in flight, once the buffer is full; `None` when the disk has no room for one.
fn random_writes(ssd: &SsdModel, depth: u32) -> Option<f64> {
    let mut spec = ssd.spec.clone();
    // What the flash takes in the long run does not depend on the buffer, as long as it keeps all dies at work.
    let enough = 2 * u64::from(spec.dies) * u64::from(spec.program_unit);
    spec.buffer = spec.buffer.min(enough);
    let small = u64::from(SMALL);
    let (places, before) = (spec.sectors / small, TO_FILL * spec.buffer / small);
    let model = DiskModel::Ssd(Arc::new(spec.build().ok()?));
    let stream = Stream::new(1);
    let (kind, count) = (BlockKind::Write, WRITES);
    let seconds = |places| {
        driven(&model, kind, depth, before, count, |i| {
            (stream.below(i, places) * small, SMALL)
        })
    };
    (places > 0).then(|| count as f64 / seconds(places))
}

/// Bytes a second of reading a disk of a model from one end to the other; `None` when there is no such model.
pub(crate) fn disk_rate(name: &str, text: Option<&str>) -> Option<f64> {
    let model = match text {
        Some(text) => catalogue::parse(name, text).ok(),
        None => catalogue::find(name).ok(),
    };
    Some(match model?.disk {
        DiskModel::Hdd(hdd) => f64::midpoint(
            hdd.sustained(0),
            hdd.sustained(hdd.spec.sectors.saturating_sub(1)),
        ),
        model @ DiskModel::Ssd(_) => sequential(&model, model.tags().clamp(1, 32)),
    })
}

/// Bytes a second of sequential reading with `depth` requests in flight.
fn sequential(model: &DiskModel, depth: u32) -> f64 {
    let bytes = STREAMED.min(model.sectors() * SECTOR);
    let requests = (bytes / SECTOR / u64::from(LARGE)).max(1);
    let moved = requests * u64::from(LARGE) * SECTOR;
    moved as f64
        / driven(model, BlockKind::Read, depth, 0, requests, |i| {
            (i * u64::from(LARGE), LARGE)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_sim::catalogue::find;

    #[test]
    fn a_datasheets_average_comes_out_again() {
        let model = find("ST3250624AS").unwrap();
        let derived = Derived::of(&model.disk);
        let average = derived.seek_average_ms.unwrap();
        assert!((average - 11.0).abs() < 0.1, "{average}");
        let half = derived.rotation_half_ms.unwrap();
        assert!((half - 60e3 / 7200.0 / 2.0).abs() < 0.01, "{half}");
        // A random read is overhead, seek, half a turn and little else.
        let random = derived.random_read_ms.unwrap();
        assert!(
            (average + half..average + half + 1.0).contains(&random),
            "{random}"
        );
        assert!(derived.queued_read_iops.unwrap() > 1.2 * derived.random_read_iops.unwrap());
        assert!(derived.outer_bytes_per_second > derived.inner_bytes_per_second);
    }

    #[test]
    fn a_solid_state_disk_has_no_arm() {
        let derived = Derived::of(&find("nvme-ssd").unwrap().disk);
        assert_eq!(derived.seek_average_ms, None);
        let random = derived.random_read_ms.unwrap();
        assert!(random < 0.2, "{random}");
        assert!(derived.queued_read_iops.unwrap() > 10.0 * derived.random_read_iops.unwrap());
    }
}

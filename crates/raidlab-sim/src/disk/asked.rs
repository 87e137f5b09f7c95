//! What a disk does, found by asking its model: requests are put to it, and the time that they take is its own.
use super::{Disk, DiskModel, Request};
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;

/// Stretches that a disk is divided into for random reads, one at a time: a prime. What is asked for is its square, 100489
/// requests, of which only the angle is left to chance: the mean of a hard disk is within 0.06 % (one in three is beyond).
const STRETCHES: u64 = 317;
/// The same where it is asked many times over: 16129 requests, within 0.15 %.
const STRETCHES_ROUGH: u64 = 127;
/// Requests with more in flight, anywhere: their order is the disk's.
const QUEUED: u64 = 250_000;
/// The same where it is asked many times over.
const QUEUED_ROUGH: u64 = 16_000;
/// Writes that are each flushed: one after the other they are slow, and much alike.
const FLUSHED: u64 = 10_000;
/// Sectors of a random request: 4 KiB.
pub const SMALL: u32 = 8;

/// Random reads of 4 KiB a second with `depth` in flight; `None` when the disk has no room for one.
#[must_use]
pub fn random_reads(model: &DiskModel, depth: u32) -> Option<f64> {
    match depth {
        1 => one_by_one(model, STRETCHES),
        _ => anywhere(model, depth, QUEUED),
    }
}

/// The same from so few requests that it can be asked many times over.
#[must_use]
pub fn random_reads_roughly(model: &DiskModel, depth: u32) -> Option<f64> {
    match depth {
        1 => one_by_one(model, STRETCHES_ROUGH),
        _ => anywhere(model, depth, QUEUED_ROUGH),
    }
}

/// Random writes of 4 KiB a second, one at a time and each followed by a flush, as a database commits; `None` when the disk has no
/// room for one.
#[must_use]
pub fn flushed_writes(model: &DiskModel) -> Option<f64> {
    let places = model.sectors() / u64::from(SMALL);
    let stream = Stream::new(1);
    let seconds = |places| {
        put(model, 1, 0, 2 * FLUSHED, |i| match i % 2 {
            0 => (
                BlockKind::Write,
                stream.below(i, places) * u64::from(SMALL),
                SMALL,
            ),
            _ => (BlockKind::Flush, 0, 0),
        })
    };
    (places > 0).then(|| FLUSHED as f64 / seconds(places))
}

fn anywhere(model: &DiskModel, depth: u32, count: u64) -> Option<f64> {
    let places = model.sectors() / u64::from(SMALL);
    let stream = Stream::new(1);
    let seconds = |places| {
        driven(model, BlockKind::Read, depth, 0, count, |i| {
            (stream.below(i, places) * u64::from(SMALL), SMALL)
        })
    };
    (places > 0).then(|| count as f64 / seconds(places))
}

fn one_by_one(model: &DiskModel, stretches: u64) -> Option<f64> {
    let places = model.sectors() / u64::from(SMALL);
    let stream = Stream::new(1);
    let count = stretches * stretches;
    let seconds = |places| {
        // Multiplied first: a small disk has stretches without a place of their own.
        let begin = |stretch: u64| {
            (u128::from(places) * u128::from(stretch) / u128::from(stretches)) as u64
        };
        driven(model, BlockKind::Read, 1, 0, count, |i| {
            let stretch = stretch(i, stretches);
            let (from, to) = (begin(stretch), begin(stretch + 1));
            let place = (from + stream.below(i, (to - from).max(1))).min(places - 1);
            (place * u64::from(SMALL), SMALL)
        })
    };
    (places > 0).then(|| count as f64 / seconds(places))
}

/// Where request `i` goes: each stretch is reached from each, itself too, as often as any other. Steps of one length visit all
/// of a prime number of stretches and end where they began; those of length 1 stay a time in each.
fn stretch(i: u64, stretches: u64) -> u64 {
    match i.checked_sub(2 * stretches) {
        None => i / 2,
        Some(later) => {
            let step = 2 + later / stretches;
            later % stretches * step % stretches
        }
    }
}

/// Seconds that `count` requests take with `depth` in flight, behind `before` others.
#[must_use]
pub fn driven(
    model: &DiskModel,
    kind: BlockKind,
    depth: u32,
    before: u64,
    count: u64,
    at: impl Fn(u64) -> (u64, u32),
) -> f64 {
    put(model, depth, before, count, |i| {
        let (lba, sectors) = at(i);
        (kind, lba, sectors)
    })
}

/// The same of requests that are not all of a kind.
fn put(
    model: &DiskModel,
    depth: u32,
    before: u64,
    count: u64,
    what: impl Fn(u64) -> (BlockKind, u64, u32),
) -> f64 {
    let count = before + count;
    let mut begun = Instant::ZERO;
    let mut disk = Disk::new(model, 1);
    let mut done = Vec::new();
    let (mut now, mut asked, mut ended) = (Instant::ZERO, 0, 0);
    while ended < count {
        while asked < count && asked - ended < u64::from(depth) {
            let (kind, lba, sectors) = what(asked);
            let request = Request {
                id: asked,
                kind,
                lba: Lba(lba),
                sectors,
                fua: false,
            };
            disk.submit(now, request);
            asked += 1;
        }
        let Some(next) = disk.next_event() else {
            break;
        };
        now = next.max(now);
        disk.advance(now, &mut done);
        let earlier = ended < before;
        ended += done.drain(..).count() as u64;
        if earlier && ended >= before {
            begun = now;
        }
    }
    now.since(begun).max(Span(1)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use std::collections::BTreeMap;

    #[test]
    fn each_stretch_is_reached_from_each() {
        let stretches = 7;
        let count = stretches * stretches;
        let mut ways: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for i in 0..count {
            // The last leads to where the first began.
            let (from, to) = (stretch(i, stretches), stretch((i + 1) % count, stretches));
            *ways.entry((from, to)).or_default() += 1;
        }
        assert_eq!(ways.len() as u64, count);
    }

    /// A drive whose buffer is lost programs what it holds and its map at each flush; one whose buffer is kept answers at once.
    #[test]
    fn each_flush_takes_the_program_and_the_map() {
        let DiskModel::Ssd(lost) = catalogue::find("nvme-ssd").unwrap().disk else {
            panic!("no solid-state disk")
        };
        let least = (lost.spec.program_fast + lost.spec.flush).as_secs_f64();
        let took = 1.0 / flushed_writes(&DiskModel::Ssd(lost.clone())).unwrap();
        assert!(
            (least..least + 100e-6).contains(&took),
            "{took} beside {least}"
        );
        let mut kept = lost.spec.clone();
        kept.protected = true;
        let kept = DiskModel::Ssd(kept.build().unwrap().into());
        assert!(flushed_writes(&kept).unwrap() > 20.0 / took);
    }

    /// A hard disk that forgets at a loss of power has each write on the medium first: a seek and half a turn.
    #[test]
    fn each_flush_takes_a_hard_disk_to_the_medium() {
        let model = catalogue::find("nearline-24tb").unwrap().disk;
        let (writes, reads) = (
            flushed_writes(&model).unwrap(),
            random_reads(&model, 1).unwrap(),
        );
        assert!((0.6..1.05).contains(&(writes / reads)), "{writes} {reads}");
    }

    /// What is told with three digits is right in them: overhead, the mean seek over all pairs of places, half a turn, the
    /// sectors, and the last of them on the link.
    #[test]
    fn random_reads_are_exact() {
        const PARTS: u64 = 1000;
        for name in ["ST340015A", "ST3000DM001", "nearline-24tb", "KW036"] {
            let model = catalogue::find(name).unwrap().disk;
            let DiskModel::Hdd(hdd) = &model else {
                panic!("{name} is no hard disk")
            };
            let middle = |part: u64| hdd.spec.sectors / PARTS * part + hdd.spec.sectors / PARTS / 2;
            let places: Vec<_> = (0..PARTS)
                .map(|part| hdd.geometry.locate(middle(part)))
                .collect();
            let (mut seek, mut media) = (0.0, 0.0);
            for from in &places {
                media += f64::from(SMALL) / f64::from(from.per_track);
                for to in &places {
                    seek += hdd.seek.nanos(from.cylinder.abs_diff(to.cylinder)) as f64;
                }
            }
            let turn = hdd.spindle(0).revolution() as f64;
            let exact = hdd.spec.overhead.read_miss.0 as f64
                + seek / (PARTS * PARTS) as f64
                + turn * (0.5 + media / PARTS as f64)
                + hdd.link_nanos(1) as f64;
            let asked = 1e9 / random_reads(&model, 1).unwrap();
            assert!(
                (asked / exact - 1.0).abs() < 0.002,
                "{name}: {asked} and {exact}"
            );
        }
    }
}

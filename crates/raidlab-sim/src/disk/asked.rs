//! What a disk does, found by asking its model: requests are put to it, and the time that they take is its own.
use super::{Disk, DiskModel, Request};
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Lba;

/// Requests that are put to the model for a random figure.
pub const ASKED: u64 = 4000;
/// Sectors of a random request: 4 KiB.
pub const SMALL: u32 = 8;

/// Random reads of 4 KiB a second with `depth` in flight; `None` when the disk has no room for one.
#[must_use]
pub fn random_reads(model: &DiskModel, depth: u32) -> Option<f64> {
    let places = model.sectors() / u64::from(SMALL);
    let stream = Stream::new(1);
    let all = |places| {
        driven(model, BlockKind::Read, depth, 0, ASKED, |i| {
            (stream.below(i, places) * u64::from(SMALL), SMALL)
        })
    };
    (places > 0).then(|| ASKED as f64 / all(places))
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
    let count = before + count;
    let mut begun = Instant::ZERO;
    let mut disk = Disk::new(model, 1);
    let mut done = Vec::new();
    let (mut now, mut asked, mut ended) = (Instant::ZERO, 0, 0);
    while ended < count {
        while asked < count && asked - ended < u64::from(depth) {
            let (lba, sectors) = at(asked);
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

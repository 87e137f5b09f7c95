//! Reading ahead of solid-state disks with many readers.
use super::*;

/// Reads of 4 KiB a second of so many readers far from each other, each with one under way.
fn readers(model: &DiskModel, count: u64) -> f64 {
    let apart = model.sectors() / count / 8 * 8;
    let time = Span::from_millis(40);
    let lane = |reader: u64| {
        let spec = BlockSpec {
            region: Extent::new(reader * apart * 512, 1 << 30),
            limit: Limit {
                ops: None,
                time: Some(time),
            },
            ..blocks(model, Order::Sequential, 4096, 0)
        };
        Lane {
            workload: Blocks::new(spec, Stream::new(reader)),
            depth: 1,
        }
    };
    let mut target = DiskTarget::new(Disk::new(model, 7));
    let mut lanes: Vec<_> = (0..count).map(lane).collect();
    let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).unwrap();
    let ops = driven.tallies.iter().map(|tally| tally.ops).sum::<u64>();
    ops as f64 / time.as_secs_f64()
}

/// One reader more than there are runs is one that is not read ahead for, and no more are.
#[test]
fn more_readers_than_runs_lose_by_degrees() {
    for name in ["nvme-ssd", "sata-ssd"] {
        let model = model(name);
        let counts = [1, 2, 4, 8, 12, 16, 17, 18, 20, 24, 28, 32, 40, 48, 56, 64];
        let mut before = 0.0;
        for count in counts {
            let rate = readers(&model, count);
            assert!(
                rate > 0.98 * before,
                "{name}, {count}: {rate} after {before}"
            );
            before = rate;
        }
    }
}

/// Contexts of runs that have ended are for others.
#[test]
fn a_run_that_ended_makes_room() {
    let mut disk = Disk::new(&model("nvme-ssd"), 1);
    let mut now = Instant(1_000_000_000);
    let mut hits = |files: std::ops::Range<u64>| {
        let mut hits = 0;
        for i in 0..400 {
            for file in files.clone() {
                let read = request(i, BlockKind::Read, 1_000_000 * file + 8 * i, 8);
                let done = one(&mut disk, now, read);
                now = done.at;
                hits += u64::from(done.hit);
            }
        }
        hits
    };
    let first = hits(0..16);
    let then = hits(16..32);
    // All but what shows that they are runs, and what finds the others' contexts not given up yet.
    assert!(first > 16 * 380 && then > 16 * 380, "{first}, {then}");
}

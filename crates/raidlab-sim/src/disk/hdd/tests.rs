//! Short cuts of a hard disk against the way that they spare.
use super::*;
use crate::catalogue;
use crate::disk::DiskModel;

/// A write that finds the arm idle does not go through the queue; nothing else may come of it.
#[test]
fn a_write_to_an_idle_arm_is_one_from_the_queue() {
    let DiskModel::Hdd(model) = catalogue::find("HP-C3323A").expect("a model").disk else {
        panic!("a hard disk");
    };
    assert!(!model.spec.cache.write_back);
    let (mut hdd, numbers) = (Hdd::new(Arc::clone(&model), 3), Numbers::new(9));
    let (mut now, mut idle) = (0, 0);
    for id in 0..2000 {
        now += numbers.below(4 * id, 100_000_000);
        hdd.run(now);
        while hdd.pop(Instant(now)).is_some() {}
        let lba = numbers.below(4 * id + 1, model.spec.sectors - 64);
        let sectors = 1 + numbers.below(4 * id + 2, 64);
        if numbers.at(4 * id + 3).is_multiple_of(3) {
            hdd.read(now, id, lba, sectors);
            continue;
        }
        idle += u64::from(hdd.idle(now));
        let mut queued = hdd.clone();
        hdd.write(now, id, lba, sectors, false);
        queued.counters.writes += 1;
        queued.counters.sectors_written += sectors;
        let ready = queued.decode(now, model.spec.overhead.write);
        let mut waiting = queued.waiting(id, lba, sectors, now, true);
        waiting.ready = ready;
        queued.queue.push(&waiting);
        queued.run(now);
        assert_eq!(format!("{hdd:?}"), format!("{queued:?}"), "write {id}");
    }
    assert!(idle > 300, "{idle}");
}

/// A run far from where writes keep coming is written, too, in a bounded time.
#[test]
fn a_run_far_from_the_others_is_written() {
    let DiskModel::Hdd(model) = catalogue::find("ST3250624AS").expect("a model").disk else {
        panic!("a hard disk");
    };
    let cache = &model.spec.cache;
    let (rounds, runs) = (u64::from(cache.rounds), u64::from(cache.write_runs));
    let far = model.spec.sectors - 8;
    let (mut hdd, numbers) = (Hdd::new(Arc::clone(&model), 3), Numbers::new(9));
    let (mut now, mut before) = (0, 0);
    for id in 0..20_000 {
        // As much as the buffer takes, near the beginning; once the buffer is full, one far from there.
        let near = numbers.below(id, 1 << 17) * 8;
        hdd.write(now, id, if id == 500 { far } else { near }, 8, false);
        while hdd.pop(Instant(now)).is_none() {
            now = hdd.next().0;
            hdd.run(now);
        }
        if id == 500 {
            before = hdd.counters.destages;
        }
        if id >= 500 && !hdd.dirty.covers(far, 8) {
            let destages = hdd.counters.destages - before;
            // Not before others had their turn: it is far.
            assert!(
                (runs..(rounds + 1) * runs).contains(&destages),
                "{destages} of {runs} runs"
            );
            return;
        }
    }
    panic!("it waits for ever");
}

/// What is written again and again in the same places, or goes on and on, is no reason to pass over anything for longer.
#[test]
fn no_run_waits_for_longer_than_the_rounds() {
    let DiskModel::Hdd(model) = catalogue::find("ST3250624AS").expect("a model").disk else {
        panic!("a hard disk");
    };
    let (mut hdd, numbers) = (Hdd::new(Arc::clone(&model), 3), Numbers::new(9));
    let (mut now, mut stream, mut oldest) = (0, 1 << 24, 0);
    for id in 0..20_000 {
        let (lba, sectors) = match id % 4 {
            // A stream, hot places, and a few anywhere.
            0 | 1 => {
                stream += 128;
                (stream, 128)
            }
            2 => (numbers.below(id, 16) * 4096, 8),
            _ => (numbers.below(id, model.spec.sectors / 8 - 1) * 8, 8),
        };
        hdd.write(now, id, lba, sectors, false);
        while hdd.pop(Instant(now)).is_none() {
            now = hdd.next().0;
            hdd.run(now);
        }
        let since = hdd.dirty.runs().iter().map(|run| run.since).min();
        oldest = oldest.max(since.map_or(0, |since| hdd.destaged - since));
    }
    let cache = &model.spec.cache;
    let bound = u64::from(cache.rounds) * cache.write_sectors;
    // Those that are overdue at the same time go one after the other.
    let late = cache.write_sectors;
    assert!(
        (bound / 4..bound + late).contains(&oldest),
        "{oldest} of {bound}"
    );
}

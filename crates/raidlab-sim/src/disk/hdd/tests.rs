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

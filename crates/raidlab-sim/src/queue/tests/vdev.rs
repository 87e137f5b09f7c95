//! The queue of ZFS before 0.6.3 for a disk.
use super::*;

/// It, over a queue without a scheduler.
fn vdev(depth: u32) -> Queue {
    let below = QueueSpec {
        plugging: Plugging::Off,
        ..spec(Scheduler::Noop, depth)
    };
    Queue::new(below.under_vdev())
}

#[test]
fn requests_of_one_deadline_are_served_by_place() {
    let mut queue = vdev(4);
    for (id, lba) in [(1, 500), (2, 100), (3, 900), (4, 300)] {
        queue.submit(ms(3), write(id, lba, 8));
    }
    let order: Vec<u64> = drain(&mut queue, ms(3)).iter().map(|r| r.0).collect();
    assert_eq!(order, [100, 300, 500, 900]);
}

#[test]
fn a_read_passes_writes_for_a_quarter_of_a_second_and_then_waits_for_them() {
    // Writes of the step that begins at 0 have the deadline 4, a read of the step that begins at n x 64 ms has n.
    for (read_at, first) in [(255, 900), (319, 100), (320, 100)] {
        let mut queue = vdev(1);
        for (id, lba) in [(1, 100), (2, 200)] {
            queue.submit(ms(1), write(id, lba, 8));
        }
        queue.submit(ms(read_at), read(3, 900, 8));
        let order = served(&mut queue, ms(read_at), Span::from_millis(1));
        assert_eq!(order[0], first, "read at {read_at} ms");
    }
    // Of equal deadlines the place decides.
    let mut queue = vdev(1);
    queue.submit(ms(1), write(1, 500, 8));
    queue.submit(ms(260), read(2, 100, 8));
    assert_eq!(
        served(&mut queue, ms(260), Span::from_millis(1)),
        [100, 500]
    );
}

#[test]
fn it_takes_a_whole_group_and_gives_out_no_more_than_it_may() {
    let mut queue = vdev(10);
    for i in 0..10_000 {
        queue.submit(ms(0), write(i, i * 1000, 8));
    }
    assert!(!queue.congested(BlockKind::Write, false));
    assert_eq!(drain(&mut queue, ms(0)).len(), 10);
}

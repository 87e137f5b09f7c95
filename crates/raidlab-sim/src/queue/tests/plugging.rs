//! Holding back.
use super::*;

#[test]
fn an_old_queue_is_held_back_until_somebody_waits() {
    let mut queue = Queue::new(spec(Scheduler::Deadline, 1));
    queue.submit(ms(10), read(1, 0, 8));
    assert_eq!(queue.dispatch(ms(10)), None);
    assert_eq!(queue.next_event(), Some(ms(13)));
    queue.unplug(ms(11));
    assert!(queue.dispatch(ms(11)).is_some());
    // With the device at work the next one is held back as well, until the end.
    queue.submit(ms(12), read(2, 100, 8));
    queue.ended(ms(13), 0, Ok(()), &mut Vec::new());
    assert!(queue.dispatch(ms(13)).is_some());
}

#[test]
fn an_old_queue_lets_go_after_three_milliseconds_or_four_requests() {
    let mut queue = Queue::new(spec(Scheduler::Deadline, 8));
    queue.submit(ms(0), read(1, 0, 8));
    queue.submit(ms(2), read(2, 100, 8));
    assert_eq!(queue.dispatch(Instant(ms(3).0 - 1)), None);
    assert_eq!(drain(&mut queue, ms(3)).len(), 2);
    for i in 0..3 {
        queue.submit(ms(5), read(10 + i, 1000 * i, 8));
        // Neighbours are no further requests.
        queue.submit(ms(5), read(20 + i, 1000 * i + 8, 8));
        assert_eq!(queue.dispatch(ms(5)), None);
    }
    queue.submit(ms(5), read(30, 9000, 8));
    assert_eq!(drain(&mut queue, ms(5)).len(), 4);
}

#[test]
fn a_process_hands_over_what_it_has_collected() {
    let kernel = Kernel::Linux(3, 2, 0);
    let spec = QueueSpec::of(kernel, Some(Scheduler::Deadline), true, 1024, 64);
    let mut queue = Queue::new(spec);
    for i in 0..15 {
        queue.submit(ms(0), read(i, 1000 * i, 8));
        assert_eq!(queue.dispatch(ms(0)), None);
    }
    queue.submit(ms(0), read(15, 15_000, 8));
    assert_eq!(drain(&mut queue, ms(0)).len(), 16);
    queue.submit(ms(1), read(16, 16_000, 8));
    assert_eq!(queue.dispatch(ms(1)), None);
    assert_eq!(queue.next_event(), Some(Instant(ms(1).0 + 1)));
    queue.unplug(ms(1));
    assert_eq!(drain(&mut queue, ms(1)).len(), 1);
}

#[test]
fn flushes_are_shared_and_pass_by_the_others() {
    let mut queue = Queue::new(spec(Scheduler::MqDeadline, 2));
    queue.submit(ms(0), write(1, 0, 8));
    queue.submit(ms(0), flush(2));
    let first = queue.dispatch(ms(0)).unwrap();
    assert_eq!(first.kind, BlockKind::Flush);
    queue.submit(ms(1), flush(3));
    queue.submit(ms(1), flush(4));
    queue.unplug(ms(1));
    assert_eq!(drain(&mut queue, ms(1)), [(0, 8)]);
    let mut done = Vec::new();
    queue.ended(ms(2), first.id, Ok(()), &mut done);
    assert_eq!(done.iter().map(|e| e.id).collect::<Vec<_>>(), [2]);
    let second = queue.dispatch(ms(2)).unwrap();
    queue.ended(ms(3), second.id, Ok(()), &mut done);
    assert_eq!(done.iter().map(|e| e.id).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(queue.dispatch(ms(3)), None);
}

#[test]
fn a_durable_write_is_followed_by_a_flush_unless_the_device_can() {
    for can in [false, true] {
        let mut queue = Queue::new(QueueSpec {
            fua: can,
            ..spec(Scheduler::None, 2)
        });
        let fua = Bio {
            fua: true,
            ..write(7, 0, 8)
        };
        queue.submit(ms(0), fua);
        queue.unplug(ms(0));
        let data = queue.dispatch(ms(0)).unwrap();
        assert_eq!((data.kind, data.fua), (BlockKind::Write, can));
        let mut done = Vec::new();
        queue.ended(ms(1), data.id, Ok(()), &mut done);
        assert_eq!(done.len(), usize::from(can));
        if !can {
            let after = queue.dispatch(ms(1)).unwrap();
            assert_eq!(after.kind, BlockKind::Flush);
            queue.ended(ms(2), after.id, Ok(()), &mut done);
            assert_eq!((done.len(), done[0].id), (1, 7));
        }
        assert_eq!((queue.waiting(), queue.in_device()), (0, 0));
    }
}

#[test]
fn a_barrier_keeps_what_is_before_and_after_apart() {
    let mut queue = Queue::new(spec(Scheduler::Cfq, 8));
    queue.submit(ms(0), write(1, 0, 8));
    queue.submit(ms(0), flush(2));
    queue.submit(ms(0), write(3, 8, 8));
    let fua = Bio {
        fua: true,
        ..write(4, 100, 8)
    };
    queue.submit(ms(0), fua);
    queue.submit(ms(0), read(5, 500, 8));
    let (mut kinds, mut done) = (Vec::new(), Vec::new());
    for step in 0.. {
        let given = drain_bios(&mut queue, ms(step));
        if given.is_empty() {
            break;
        }
        assert_eq!(given.len(), 1);
        kinds.push((given[0].kind, given[0].lba.0));
        queue.ended(ms(step), given[0].id, Ok(()), &mut done);
    }
    use BlockKind::{Flush, Read, Write};
    assert_eq!(
        kinds,
        [
            (Write, 0),
            (Flush, 0),
            (Write, 8),
            (Write, 100),
            (Flush, 0),
            (Read, 500)
        ]
    );
    let ids: Vec<u64> = done.iter().map(|e| e.id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
}

fn drain_bios(queue: &mut Queue, now: Instant) -> Vec<Bio> {
    std::iter::from_fn(|| queue.dispatch(now)).collect()
}

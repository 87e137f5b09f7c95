//! bfq: weights, turns that are cut short, queues that are joined, and what is let through while the disk is kept.
use super::*;

pub(super) fn with_bfq(mut spec: QueueSpec, change: impl FnOnce(&mut BfqTunables)) -> Queue {
    spec.plugging = Plugging::Off;
    if let Policy::Bfq(with) = &mut spec.policy {
        change(with);
    }
    Queue::new(spec)
}

#[test]
fn a_process_that_has_just_begun_weighs_more_with_bfq() {
    let readers = [
        sequential(1, 200),
        Reader {
            starts: Span::from_secs(12),
            ..sequential(2, 200)
        },
    ];
    let second = |low_latency| {
        let mut queue = with_bfq(spec(Scheduler::Bfq, 1), |with| {
            with.low_latency = low_latency;
        });
        contend(&mut queue, &readers, 0, 13).reads[1]
    };
    // Of about 830 reads in the second since it began: a 30th of the others' sectors costs two seeks each time.
    let (raised, equal) = (second(true), second(false));
    assert!((300..500).contains(&equal), "{equal}");
    assert!(raised > 550, "{raised}");
}

/// What a device is given 5 ms in, when process 1, which has read and may read on, wrote `own` and process 2 the rest, and
/// nobody waits for either.
fn written_beside_a_reader(kernel: Kernel, own: bool) -> Option<u64> {
    let spec = QueueSpec::of(kernel, Some(Scheduler::Bfq), true, 1024, 1);
    let mut queue = with_bfq(spec, |with| with.low_latency = false);
    queue.submit(ms(0), of_task(1, 1, 0, 8));
    let first = queue.dispatch(ms(0)).expect("nothing else waits");
    queue.ended(ms(4), first.id, Ok(()), &mut Vec::new());
    let mut bio = write(2, 900_000, 8);
    bio.origin.task = if own { 1 } else { 2 };
    queue.submit(ms(5), bio);
    let given = queue.dispatch(ms(5));
    // The disk is kept for the reader all the same, for 8 ms since its end.
    queue.submit(ms(6), of_task(3, 2, 500_000, 8));
    if let Some(bio) = given {
        queue.ended(ms(6), bio.id, Ok(()), &mut Vec::new());
    }
    assert_eq!(queue.dispatch(ms(6)), None);
    assert_eq!(queue.next_event(), Some(ms(12)));
    given.map(|bio| bio.lba.0)
}

#[test]
fn bfq_lets_a_process_write_while_the_disk_is_kept_for_it() {
    let (old, new) = (Kernel::Linux(5, 1, 0), Kernel::Linux(5, 2, 0));
    assert_eq!(written_beside_a_reader(new, true), Some(900_000));
    assert_eq!(written_beside_a_reader(new, false), None);
    assert_eq!(written_beside_a_reader(old, true), None);
}

#[test]
fn bfq_lets_a_process_write_no_more_than_a_budget_while_the_disk_is_kept_for_it() {
    let mut queue = queue(Scheduler::Bfq, 31);
    queue.submit(ms(0), of_task(1, 1, 0, 8));
    let first = queue.dispatch(ms(0)).expect("nothing else waits");
    queue.ended(ms(1), first.id, Ok(()), &mut Vec::new());
    for n in 0..12 {
        let mut bio = write(2 + n, 900_000 + 2048 * n, 1024);
        bio.origin.task = 1;
        queue.submit(ms(1), bio);
    }
    // Each of 1024 sectors counts as three of them, and the first budget is two thirds of 16384.
    assert_eq!(drain(&mut queue, ms(1)).len(), 3);
}

#[test]
fn processes_that_begin_at_the_same_time_share_a_queue() {
    let readers = [sequential(1, 200), sequential(2, 200)];
    let seeks = |kernel| {
        let spec = QueueSpec::of(kernel, Some(Scheduler::Bfq), true, 1024, 31);
        let mut queue = with_bfq(spec, |_| {});
        let outcome = contend(&mut queue, &readers, 0, 60);
        let [a, b] = outcome.reads[..] else {
            panic!("two readers")
        };
        assert!(a.abs_diff(b) * 10 < a + b, "{a}, {b}");
        outcome.seeks * 100 / (a + b)
    };
    // While both are raised the disk is kept for neither. Afterwards it is, when each has a queue of its own; in one queue
    // they ask far from each other in turn.
    let apart = seeks(Kernel::Linux(5, 12, 0));
    let joined = seeks(Kernel::Linux(5, 13, 0));
    assert!(apart < 15, "{apart} %");
    assert!(joined > 90, "{joined} %");
}

#[test]
fn a_process_that_begins_later_keeps_its_own_queue() {
    let readers = [
        sequential(1, 200),
        Reader {
            starts: Span::from_millis(200),
            ..sequential(2, 200)
        },
    ];
    let mut queue = queue(Scheduler::Bfq, 31);
    let outcome = contend(&mut queue, &readers, 0, 60);
    let sum: u64 = outcome.reads.iter().sum();
    // All but what the two do while they are raised.
    assert!(outcome.seeks * 100 < 15 * sum, "{} of {sum}", outcome.seeks);
}

/// Milliseconds until a read of a process that asks 1 ms after its last is given out, while write-back has plenty to do
/// on a device of depth 1 that takes 2 ms for each.
fn waits_for_write_back(kernel: Kernel) -> u64 {
    let spec = QueueSpec::of(kernel, Some(Scheduler::Bfq), true, 1024, 1).with_requests(
        kernel,
        Some(Scheduler::Bfq),
        64,
    );
    let mut queue = with_bfq(spec, |with| with.low_latency = false);
    queue.submit(ms(0), of_task(1, 1, 0, 8));
    let first = queue.dispatch(ms(0)).expect("nothing else waits");
    // Longer than the disk would be kept: write-back has its turn.
    queue.ended(ms(1), first.id, Ok(()), &mut Vec::new());
    for n in 0..20 {
        queue.submit(ms(9), write(2 + n, 900_000 + 2048 * n, 8));
    }
    let mut given = queue.dispatch(ms(9)).expect("write-back has its turn");
    queue.submit(ms(10), of_task(100, 1, 4_000_000, 8));
    for n in 0..20 {
        queue.ended(ms(11 + 2 * n), given.id, Ok(()), &mut Vec::new());
        given = queue.dispatch(ms(11 + 2 * n)).expect("something waits");
        if given.kind == BlockKind::Read {
            return 1 + 2 * n;
        }
    }
    panic!("the read was never given out");
}

#[test]
fn write_back_gives_way_to_a_reader_who_asks_again() {
    for kernel in [Kernel::Linux(4, 19, 0), Kernel::DEFAULT] {
        assert_eq!(waits_for_write_back(kernel), 1, "{kernel}");
    }
}

#[test]
fn fewer_requests_are_write_back_while_a_process_is_raised() {
    for (low_latency, most) in [(false, 128), (true, 48)] {
        let spec = QueueSpec::of(Kernel::DEFAULT, Some(Scheduler::Bfq), true, 1024, 128);
        let mut queue = with_bfq(spec, |with| with.low_latency = low_latency);
        queue.submit(ms(0), of_task(0, 1, 0, 8));
        for n in 0..200 {
            queue.submit(ms(0), write(1 + n, 900_000 + 2048 * n, 8));
        }
        assert_eq!(queue.store.waiting(), 1 + most, "{low_latency}");
    }
}

#[test]
fn a_process_is_raised_until_it_has_had_its_sectors() {
    let mut queue = queue(Scheduler::Bfq, 31);
    let mut raised = Vec::new();
    for n in 0..1000 {
        queue.submit(ms(n), of_task(n, 1, n * 128, 128));
        if queue.order.favours() {
            raised.push(n);
        }
        let given = queue.dispatch(ms(n)).expect("nothing else waits");
        queue.ended(
            Instant(ms(n).0 + 500_000),
            given.id,
            Ok(()),
            &mut Vec::new(),
        );
    }
    // 120000 sectors, and the request that is past them.
    assert_eq!(raised, (0..=120_000 / 128).collect::<Vec<u64>>());
}

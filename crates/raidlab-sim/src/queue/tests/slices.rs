//! CFQ and bfq: processes in turn.
use super::bfq::with_bfq;
use super::*;

const BOTH: [Scheduler; 2] = [Scheduler::Cfq, Scheduler::Bfq];

/// A queue where processes that begin are neither raised nor joined.
fn settled(scheduler: Scheduler, depth: u32) -> Queue {
    with_bfq(spec(scheduler, depth), |with| {
        with.low_latency = false;
        with.joins = false;
    })
}

#[test]
fn two_readers_keep_their_order_and_share_the_disk() {
    for scheduler in BOTH {
        let readers = [sequential(1, 200), sequential(2, 200)];
        for depth in [1, 31] {
            let mut fair = settled(scheduler, depth);
            let outcome = contend(&mut fair, &readers, 0, 10);
            let sum: u64 = outcome.reads.iter().sum();
            assert!(
                outcome.seeks * 20 < sum,
                "{scheduler}: {} seeks for {sum}",
                outcome.seeks
            );
            for reads in &outcome.reads {
                assert!(reads * 5 > sum * 2, "{scheduler}: {:?}", outcome.reads);
            }
        }
    }
}

#[test]
fn a_slice_lasts_as_long_as_it_should() {
    let readers = [sequential(1, 200), sequential(2, 200)];
    let mut queue = queue(Scheduler::Cfq, 1);
    let outcome = contend(&mut queue, &readers, 0, 10);
    // A seek at each change: 100 ms slices in 10 s, each a little longer by the request under way.
    assert!((85..=105).contains(&outcome.seeks), "{}", outcome.seeks);
}

#[test]
fn the_slice_of_an_idle_process_ends_after_eight_milliseconds() {
    for scheduler in BOTH {
        let mut queue = settled(scheduler, 1);
        queue.submit(ms(0), of_task(1, 1, 0, 8));
        queue.submit(ms(0), of_task(2, 2, 900_000, 8));
        let first = queue.dispatch(ms(0)).unwrap();
        assert_eq!(first.lba.0, 0);
        queue.ended(ms(5), first.id, Ok(()), &mut Vec::new());
        assert_eq!(queue.dispatch(ms(5)), None, "{scheduler}");
        assert_eq!(queue.next_event(), Some(ms(13)));
        assert_eq!(queue.dispatch(Instant(ms(13).0 - 1)), None);
        assert_eq!(queue.dispatch(ms(13)).unwrap().lba.0, 900_000);
    }
}

#[test]
fn nobody_waits_for_a_process_that_thinks_long() {
    for scheduler in BOTH {
        let slow = sequential(1, 15_000);
        let alone = contend(&mut queue(scheduler, 1), &[slow], 0, 10).reads[0];
        let mut both = queue(scheduler, 1);
        let outcome = contend(&mut both, &[slow, scattered(2)], 0, 10);
        // 9 ms a read without any waiting for the slow one.
        let used = outcome.reads[1] * 9 + outcome.reads[0] * 9;
        assert!(used > 9_000, "{scheduler}: {:?} of {alone}", outcome.reads);
    }
}

#[test]
fn a_reader_in_order_and_one_who_seeks_share_time_with_cfq() {
    let mut queue = queue(Scheduler::Cfq, 1);
    let outcome = contend(&mut queue, &[sequential(1, 200), scattered(2)], 0, 10);
    let time = [outcome.reads[0] * 12 / 10, outcome.reads[1] * 9];
    assert!(time[0] > 3_500 && time[1] > 3_000, "{time:?}");
}

#[test]
fn a_reader_cuts_write_back_short_with_cfq() {
    let mut queue = queue(Scheduler::Cfq, 1);
    for i in 0..50 {
        queue.submit(ms(0), write(i, i * 1000, 8));
    }
    let first = queue.dispatch(ms(0)).unwrap();
    assert_eq!(first.kind, BlockKind::Write);
    queue.submit(ms(1), read(100, 900_000, 8));
    queue.ended(ms(2), first.id, Ok(()), &mut Vec::new());
    assert_eq!(queue.dispatch(ms(2)).unwrap().kind, BlockKind::Read);
}

#[test]
fn write_back_is_slowed_but_not_starved_beside_a_reader() {
    for scheduler in BOTH {
        // Of the two requests that bfq has before a drive of one command, write-back could take both.
        let spec = settled(scheduler, 1)
            .spec()
            .with_requests(Kernel::DEFAULT, Some(scheduler), 64);
        let mut queue = Queue::new(spec);
        let outcome = contend(&mut queue, &[sequential(1, 200)], 32, 20);
        let [reads, writes] = [outcome.reads[0] * 12 / 10, outcome.writes * 9];
        // Milliseconds of 20 s: CFQ gives reads most of the time, bfq a bit less than half of it.
        let least = if scheduler == Scheduler::Cfq {
            13_000
        } else {
            7_500
        };
        assert!(reads > least, "{scheduler}: {reads} ms, {writes} ms");
        assert!(
            outcome.writes > 20,
            "{scheduler}: {} writes",
            outcome.writes
        );
    }
}

#[test]
fn solid_state_disks_that_queue_are_not_kept_idle() {
    for scheduler in BOTH {
        let mut queue = Queue::new(QueueSpec {
            rotational: false,
            plugging: Plugging::Off,
            ..spec(scheduler, 32)
        });
        if let Policy::Bfq(with) = &mut queue.spec.policy {
            with.low_latency = false;
            queue = Queue::new(queue.spec);
        }
        queue.submit(ms(0), of_task(1, 1, 0, 8));
        let first = queue.dispatch(ms(0)).unwrap();
        queue.submit(ms(1), of_task(2, 2, 900_000, 8));
        queue.ended(ms(1), first.id, Ok(()), &mut Vec::new());
        assert!(queue.dispatch(ms(1)).is_some(), "{scheduler}");
    }
}

#[test]
fn many_processes_have_shorter_slices_since_2_6_33() {
    let readers: Vec<Reader> = (1..7).map(|task| sequential(task, 200)).collect();
    let seeks = |kernel| {
        let spec = QueueSpec::of(kernel, Some(Scheduler::Cfq), true, 1024, 1);
        contend(&mut Queue::new(spec), &readers, 0, 10).seeks
    };
    let (long, short) = (
        seeks(Kernel::Linux(2, 6, 31)),
        seeks(Kernel::Linux(3, 10, 0)),
    );
    assert!((85..=105).contains(&long), "{long}");
    // 300 ms for six.
    assert!((165..=205).contains(&short), "{short}");
}

/// Two processes that write for `fsync`, and have written some before: when the second one's request is given out after the
/// first one's has ended at 5 ms.
fn after_fsync(kernel: Kernel, last: bool) -> Instant {
    let spec = QueueSpec::of(kernel, Some(Scheduler::Cfq), true, 1024, 1);
    let mut queue = Queue::new(QueueSpec {
        plugging: Plugging::Off,
        ..spec
    });
    let of = |id, task, lba| {
        let mut bio = of_task(id, task, lba, 8);
        (bio.kind, bio.origin.last) = (BlockKind::Write, last);
        bio
    };
    queue.submit(ms(0), of(1, 1, 0));
    let first = queue.dispatch(ms(0)).unwrap();
    queue.submit(ms(1), of(2, 2, 900_000));
    queue.ended(ms(5), first.id, Ok(()), &mut Vec::new());
    let mut now = ms(5);
    loop {
        if let Some(second) = queue.dispatch(now) {
            assert_eq!(second.lba.0, 900_000);
            return now;
        }
        now = queue.next_event().expect("something waits");
    }
}

#[test]
fn no_disk_is_kept_idle_for_what_follows_an_fsync() {
    for (minor, waits) in [
        (29, true),
        (30, false),
        (32, false),
        (34, true),
        (37, false),
    ] {
        let kernel = Kernel::Linux(2, 6, minor);
        let expected = if waits { ms(13) } else { ms(5) };
        assert_eq!(after_fsync(kernel, true), expected, "2.6.{minor}");
        assert_eq!(after_fsync(kernel, false), ms(13), "2.6.{minor}, direct");
    }
    let newest = Kernel::Linux(4, 20, 0);
    assert_eq!(
        [after_fsync(newest, true), after_fsync(newest, false)],
        [ms(5), ms(13)]
    );
}

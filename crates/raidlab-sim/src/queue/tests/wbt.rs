//! Write-back gives way.
use super::*;

/// Something that lies beside nothing else.
fn far(id: u64) -> Bio {
    write(id, id * 10_000, 8)
}

fn queue_of(write_cache: bool) -> Queue {
    let spec = QueueSpec {
        plugging: Plugging::Off,
        ..spec(Scheduler::MqDeadline, 32)
    };
    Queue::new(spec.with_write_cache(write_cache))
}

/// Requests that the device has been given at `now`, by their numbers.
fn given(queue: &mut Queue, now: u64) -> Vec<u64> {
    std::iter::from_fn(|| queue.dispatch(ms(now)))
        .map(|bio| bio.id)
        .collect()
}

fn end(queue: &mut Queue, now: u64, id: u64) {
    queue.ended(ms(now), id, Ok(()), &mut Vec::new());
}

#[test]
fn a_disk_with_a_cache_gets_the_next_writes_when_all_have_ended() {
    let mut queue = queue_of(true);
    (0..40).for_each(|id| queue.submit(ms(0), far(id)));
    let first = given(&mut queue, 0);
    assert_eq!(first.len(), 8);
    assert_eq!(queue.waiting(), 32);
    for (number, id) in first.iter().enumerate() {
        assert_eq!(given(&mut queue, 1), [0; 0], "{number} have ended");
        end(&mut queue, 1, *id);
    }
    assert_eq!(given(&mut queue, 1).len(), 8);
}

#[test]
fn a_disk_without_a_cache_gets_them_as_there_is_room_for_a_few() {
    let mut queue = queue_of(false);
    (0..40).for_each(|id| queue.submit(ms(0), far(id)));
    let first = given(&mut queue, 0);
    // Half of the background's four at a time.
    end(&mut queue, 1, first[0]);
    assert_eq!(given(&mut queue, 1).len(), 0);
    end(&mut queue, 1, first[1]);
    assert_eq!(given(&mut queue, 1).len(), 2);
}

#[test]
fn less_is_written_while_others_read_and_more_for_writers_who_are_held_back() {
    let most = |before: &dyn Fn(&mut Queue)| {
        let mut queue = queue_of(true);
        before(&mut queue);
        (100..140).for_each(|id| queue.submit(ms(10), far(id)));
        given(&mut queue, 10).len()
    };
    let reads = |queue: &mut Queue| {
        queue.submit(ms(0), read(0, 0, 8));
        let id = given(queue, 0)[0];
        end(queue, 5, id);
    };
    assert_eq!(most(&|_| {}), 8);
    assert_eq!(most(&reads), 4);
    assert_eq!(most(&|queue| queue.writer_sleeps(ms(1))), 16);
    // A direct write is not held back, nor is a resync.
    let mut queue = queue_of(true);
    for id in 0..20 {
        let mut bio = far(id);
        bio.origin.sync = true;
        queue.submit(ms(0), bio);
        bio.lba.0 += 1_000_000;
        bio.origin = Origin::resync(BlockKind::Write);
        queue.submit(ms(0), Bio { id: id + 50, ..bio });
    }
    assert_eq!(given(&mut queue, 0).len(), 32);
}

/// How many of forty writes of one origin go at a time, on a disk that has been let alone or that was read from a moment before.
fn at_a_time(origin: Origin, beside_reads: bool) -> usize {
    let mut queue = queue_of(true);
    if beside_reads {
        queue.submit(ms(0), read(0, 0, 8));
        let id = given(&mut queue, 0)[0];
        end(&mut queue, 5, id);
    }
    for id in 100..140 {
        queue.submit(ms(10), Bio { origin, ..far(id) });
    }
    given(&mut queue, 10).len()
}

/// `wbt_should_throttle` and `get_limit`.
#[test]
fn all_but_direct_writes_are_held_back_by_what_is_said_of_them() {
    let plain = Origin::default();
    let marked = |marked| Origin { marked, ..plain };
    let direct = Origin {
        sync: true,
        ..plain
    };
    let durable = Origin {
        last: true,
        ..direct
    };
    for (origin, alone, beside_reads) in [
        (direct, 32, 32),
        (durable, 16, 16),
        (plain, 8, 4),
        (marked(Marked::Background), 4, 4),
        (marked(Marked::Metadata), 16, 16),
    ] {
        assert_eq!(at_a_time(origin, false), alone, "{origin:?}");
        assert_eq!(at_a_time(origin, true), beside_reads, "{origin:?}");
    }
}

/// `rq_qos_wait` sleeps in the process: a wake gives one request to each, and whoever wants more sleeps behind the others.
#[test]
fn who_sleeps_is_let_go_in_turn() {
    let mut queue = queue_of(true);
    let durable = |task| Origin {
        task,
        sync: true,
        last: true,
        ..Origin::default()
    };
    for (task, first, count) in [(9, 0, 16), (1, 100, 40), (2, 200, 2), (3, 300, 1)] {
        for id in first..first + count {
            let origin = durable(task);
            queue.submit(ms(0), Bio { origin, ..far(id) });
        }
    }
    let has = |queue: &mut Queue, now| {
        std::iter::from_fn(|| queue.dispatch(ms(now)))
            .map(|bio| (bio.id, bio.lba.0 / 10_000))
            .collect::<Vec<_>>()
    };
    let first = has(&mut queue, 0);
    assert_eq!(first.len(), 16);
    for (id, _) in first {
        end(&mut queue, 1, id);
    }
    let mut second: Vec<u64> = has(&mut queue, 1).iter().map(|(_, lba)| *lba).collect();
    second.sort_unstable();
    // One of each, then the first of them up to the limit; who is left with one sleeps behind it.
    let expected: Vec<u64> = (100..114).chain([200, 300]).collect();
    assert_eq!(second, expected);
    assert_eq!(queue.waiting(), 26 + 1);
}

/// Writes of 10 ms, always forty waiting; beside them reads of so many milliseconds, if any. How many writes the disk has at a
/// time after each second.
fn course(read_takes: Option<u64>) -> Vec<usize> {
    let mut queue = queue_of(true);
    let (mut id, mut has, mut reading) = (0, Vec::new(), None);
    let mut course = Vec::new();
    for now in (0..4000).step_by(10) {
        while queue.waiting() < 40 {
            queue.submit(ms(now), far(id));
            id += 1;
        }
        if let Some(takes) = read_takes
            && reading.is_none()
        {
            queue.submit(ms(now), read(id, id * 10_000, 8));
            id += 1;
            reading = Some((None, now + takes));
        }
        while let Some(bio) = queue.dispatch(ms(now)) {
            match (bio.kind, &mut reading) {
                (BlockKind::Read, Some((slot, _))) => *slot = Some(bio.id),
                _ => has.push(bio.id),
            }
        }
        if now % 1000 == 990 {
            course.push(has.len());
        }
        for slot in std::mem::take(&mut has) {
            end(&mut queue, now + 9, slot);
        }
        if let Some((Some(slot), at)) = reading
            && at <= now + 9
        {
            end(&mut queue, now + 9, slot);
            reading = None;
        }
    }
    course
}

#[test]
fn the_depth_follows_what_reads_take() {
    // Three quarters of what the disk takes, half of which are the normal write-back's.
    assert_eq!(course(None), [12; 4]);
    // Within 75 ms: a quarter of three quarters, rounded up.
    assert_eq!(course(Some(30)), [6; 4]);
    assert_eq!(course(Some(200)), [1; 4]);
}

#[test]
fn kernels_and_schedulers_without_it() {
    let has = |kernel, scheduler| QueueSpec::of(kernel, Some(scheduler), true, 1024, 32).wbt;
    let new = Kernel::DEFAULT;
    for scheduler in [Scheduler::None, Scheduler::MqDeadline, Scheduler::Kyber] {
        let with = has(new, scheduler).expect("throttled");
        assert_eq!(with.latency, Span::from_millis(75));
    }
    assert_eq!(has(new, Scheduler::Bfq), None);
    assert_eq!(has(Kernel::Linux(4, 10, 0), Scheduler::Deadline), None);
    assert_eq!(has(Kernel::Linux(4, 9, 0), Scheduler::None), None);
    let solid = QueueSpec::of(new, Some(Scheduler::None), false, 1024, 32);
    assert_eq!(solid.wbt.expect("throttled").latency, Span::from_millis(2));
    assert_eq!(solid.under_vdev(new).wbt, None);
}

//! Those who wait for a request.
use super::*;

/// Bios of a process that lie apart, with numbers from `first` on.
fn submit(queue: &mut Queue, task: u16, first: u64, count: u64) {
    for i in first..first + count {
        queue.submit(ms(0), of_task(i, task, i * 1000, 8));
    }
}

/// Numbers of the requests that the device is given at `now`.
fn given(queue: &mut Queue, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| queue.dispatch(now))
        .map(|bio| bio.lba.0 / 1000)
        .collect()
}

/// A queue whose device takes all that there may be, filled by the process 9 to the last request; the numbers of those the device has.
fn filled(spec: QueueSpec) -> (Queue, Vec<u64>) {
    let mut queue = Queue::new(QueueSpec {
        plugging: Plugging::Off,
        depth: 1024,
        ..spec
    });
    let (mut first, mut has) = (1_000_000, Vec::new());
    while queue.starved[0].is_empty() {
        submit(&mut queue, 9, first, 1);
        has.extend(std::iter::from_fn(|| queue.dispatch(ms(0))).map(|bio| bio.id));
        first += 1;
    }
    (queue, has)
}

fn end(queue: &mut Queue, has: &mut Vec<u64>, count: usize, now: Instant) {
    for id in has.drain(..count) {
        queue.ended(now, id, Ok(()), &mut Vec::new());
    }
}

/// `get_request_wait` sleeps in the process: what it has yet to submit keeps nobody else out.
#[test]
fn who_waits_is_a_process_not_a_bio() {
    for scheduler in [Scheduler::Noop, Scheduler::None] {
        let (mut queue, mut has) = filled(spec(scheduler, 64));
        submit(&mut queue, 1, 0, 1000);
        submit(&mut queue, 2, 5000, 1);
        let all = has.len();
        end(&mut queue, &mut has, all, ms(1));
        let given = given(&mut queue, ms(1));
        let place = given.iter().position(|number| *number == 5000);
        assert!(place.is_some(), "{scheduler:?}: {given:?}");
    }
}

/// What writes back leaves the rest dirty while it sleeps.
#[test]
fn who_waits_is_known_to_sleep() {
    let (mut queue, mut has) = filled(spec(Scheduler::Noop, 64));
    let of = |task, sync| Origin {
        task,
        sync,
        ..Origin::default()
    };
    submit(&mut queue, 1, 0, 2);
    let sync = of_task(0, 1, 0, 8).origin.sync;
    assert!(queue.sleeps(&of(1, sync)));
    assert!(!queue.sleeps(&of(1, !sync)) && !queue.sleeps(&of(2, sync)));
    let all = has.len();
    end(&mut queue, &mut has, all, ms(1));
    assert!(!queue.sleeps(&of(1, sync)));
}

/// `ioc_batching`: 128 requests and 32 more for who took the last one; nobody is let in until there are fewer than 128 again, and
/// then 32 of one process at once.
#[test]
fn processes_take_turns_in_batches_before_blk_mq() {
    let (mut queue, mut has) = filled(spec(Scheduler::Noop, 1024));
    assert_eq!(has.len(), 128 + 31);
    submit(&mut queue, 1, 0, 1000);
    submit(&mut queue, 2, 5000, 1000);
    end(&mut queue, &mut has, 31, ms(1));
    assert_eq!(given(&mut queue, ms(1)), [] as [u64; 0]);
    // The one that filled the queue has one left and is the first to wait.
    end(&mut queue, &mut has, 1, ms(1));
    assert_eq!(given(&mut queue, ms(1)).len(), 1);
    end(&mut queue, &mut has, 1, ms(1));
    assert_eq!(given(&mut queue, ms(1)), (0..32).collect::<Vec<_>>());
    end(&mut queue, &mut has, 32, ms(1));
    assert_eq!(given(&mut queue, ms(1)), (5000..5032).collect::<Vec<_>>());
    end(&mut queue, &mut has, 32, ms(1));
    assert_eq!(given(&mut queue, ms(1)), (32..64).collect::<Vec<_>>());
}

/// `BLK_BATCH_TIME`: nobody comes back later for the rest of its batch.
#[test]
fn a_batch_that_was_begun_is_over_after_a_while() {
    for (later, more) in [(19, true), (21, false)] {
        let mut queue = Queue::new(QueueSpec {
            plugging: Plugging::Off,
            ..spec(Scheduler::Noop, 1024)
        });
        submit(&mut queue, 1, 0, 130);
        assert_eq!(given(&mut queue, ms(0)).len(), 130);
        queue.submit(ms(later), of_task(130, 1, 130_000, 8));
        assert_eq!(queue.dispatch(ms(later)).is_some(), more, "{later}");
    }
}

/// `batch_requests` of Linux 2.4: a quarter, at most 32.
#[test]
fn linux_2_4_wakes_nobody_until_a_batch_is_free() {
    let old = QueueSpec::of(Kernel::Linux(2, 4, 20), None, true, 256, 1);
    let (mut queue, mut has) = filled(old);
    submit(&mut queue, 9, 0, 100);
    end(&mut queue, &mut has, 31, ms(1));
    assert_eq!(given(&mut queue, ms(1)), [] as [u64; 0]);
    end(&mut queue, &mut has, 1, ms(1));
    assert_eq!(given(&mut queue, ms(1)).len(), 32);
}

/// `sbitmap_queue_wake_up`: an eighth of the tags, at most eight, have come back; meanwhile others may take what is free.
#[test]
fn blk_mq_wakes_by_batches_of_tags() {
    for (depth, batch) in [(4, 1), (32, 4), (64, 8), (256, 8)] {
        let (mut queue, mut has) = filled(spec(Scheduler::None, depth));
        assert_eq!(has.len(), depth as usize);
        submit(&mut queue, 9, 0, 100);
        end(&mut queue, &mut has, batch - 1, ms(1));
        assert_eq!(given(&mut queue, ms(1)), [] as [u64; 0]);
        end(&mut queue, &mut has, 1, ms(1));
        assert_eq!(given(&mut queue, ms(1)).len(), batch);
        end(&mut queue, &mut has, batch / 2, ms(1));
        submit(&mut queue, 3, 7000, 1);
        let found = given(&mut queue, ms(1));
        assert_eq!(found.contains(&7000), batch > 1, "{found:?}");
    }
}

/// Whoever waited for a request and has one goes on with what it still has: what follows is joined to it, for which no request need be
/// free (`__make_request` and `blk_mq_submit_bio` look for a neighbour before they ask for a request).
#[test]
fn what_follows_a_bio_that_waited_is_joined_to_it() {
    let mut queue = queue(Scheduler::None, 32);
    for i in 0..32 {
        queue.submit(ms(0), read(i, 1_000_000 + i * 1000, 8));
    }
    let mut has: Vec<u64> = std::iter::from_fn(|| queue.dispatch(ms(0)))
        .map(|bio| bio.id)
        .collect();
    assert_eq!(has.len(), 32);
    // Four callers' stretches, of sixteen bios each.
    for i in 0..64 {
        queue.submit(
            ms(0),
            of_task(32 + i, 2 + i as u16 / 16, i / 16 * 100_000 + i % 16 * 8, 8),
        );
    }
    end(&mut queue, &mut has, 4, ms(1));
    let stretches = [0, 1, 2, 3].map(|caller| (caller * 100_000, 128));
    assert_eq!(drain(&mut queue, ms(1)), stretches);
}

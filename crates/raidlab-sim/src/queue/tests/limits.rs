//! Depth, number of requests, their size.
use super::*;

#[test]
fn no_request_is_larger_than_the_limit() {
    for (device, limit) in [(256, 256), (4096, 1024)] {
        let kernel = Kernel::Linux(2, 6, 32);
        let mut queue = Queue::new(QueueSpec::of(
            kernel,
            Some(Scheduler::Deadline),
            true,
            device,
            64,
        ));
        for i in 0..64 {
            queue.submit(ms(0), write(i, i * 48, 48));
        }
        queue.unplug(ms(0));
        let requests = drain(&mut queue, ms(0));
        assert!(requests.iter().all(|r| r.1 <= limit), "{requests:?}");
        assert_eq!(requests.iter().map(|r| r.1).sum::<u32>(), 64 * 48);
        let full = limit / 48;
        assert_eq!(requests.len() as u32, 64_u32.div_ceil(full));
    }
}

/// `ll_back_merge_fn`: a request has no more stretches of memory than the driver takes, and each bio is one at the least.
#[test]
fn no_request_has_more_stretches_of_memory_than_its_driver_takes() {
    for scheduler in [Scheduler::None, Scheduler::MqDeadline] {
        let kernel = Kernel::Linux(6, 1, 0);
        let mut spec = QueueSpec::of(kernel, Some(scheduler), true, 65_536, 64);
        assert_eq!(spec.max_sectors, 2560);
        spec.segments = 168;
        let mut queue = Queue::new(spec);
        for i in 0..400 {
            queue.submit(ms(0), write(i, i * 8, 8));
        }
        queue.unplug(ms(0));
        let requests = drain(&mut queue, ms(0));
        assert_eq!(requests, [(0, 1344), (1344, 1344), (2688, 512)]);
        // In front, and in a gap between two that are full enough together.
        let mut queue = Queue::new(spec);
        for i in (1..200).rev() {
            queue.submit(ms(0), write(i, i * 8, 8));
        }
        assert_eq!(drain(&mut queue, ms(1)), [(256, 1344), (8, 248)]);
        let mut queue = Queue::new(spec);
        for i in (0..100).chain(101..200).chain([100]) {
            queue.submit(ms(0), write(i, i * 8, 8));
        }
        assert_eq!(drain(&mut queue, ms(1)), [(0, 800), (800, 800)]);
    }
}

/// What stands for a request of each page has as many stretches as pages; what came as one request has one.
#[test]
fn pages_that_are_asked_for_one_by_one_are_stretches_each() {
    for (paged, whole) in [(true, 1280), (false, 2560)] {
        let kernel = Kernel::Linux(6, 1, 0);
        let mut spec = QueueSpec::of(kernel, Some(Scheduler::None), true, 65_536, 64);
        spec.segments = 168;
        let mut queue = Queue::new(spec);
        for i in 0..8 {
            let mut bio = write(i, i * 640, 640);
            bio.origin.paged = paged;
            queue.submit(ms(0), bio);
        }
        queue.unplug(ms(0));
        let first = drain(&mut queue, ms(0))[0];
        assert_eq!(first, (0, whole), "{paged}");
    }
}

#[test]
fn a_gap_that_would_make_a_request_too_large_keeps_two() {
    let mut queue = queue(Scheduler::Deadline, 4);
    queue.submit(ms(0), write(1, 0, 600));
    queue.submit(ms(0), write(2, 608, 600));
    queue.submit(ms(0), write(3, 600, 8));
    assert_eq!(drain(&mut queue, ms(0)), [(0, 600), (600, 608)]);
}

#[test]
fn the_device_is_given_no_more_than_it_takes() {
    let mut queue = queue(Scheduler::MqDeadline, 3);
    for i in 0..5 {
        queue.submit(ms(0), read(i, i * 1000, 8));
    }
    assert_eq!(drain(&mut queue, ms(0)).len(), 3);
    assert_eq!((queue.in_device(), queue.waiting()), (3, 2));
    assert_eq!(queue.next_event(), None);
}

#[test]
fn writes_that_wait_for_a_request_do_not_keep_reads_out() {
    let mut queue = queue(Scheduler::Deadline, 1);
    for i in 0..1000 {
        queue.submit(ms(0), write(i, i * 1000, 8));
        assert_eq!(queue.congested(BlockKind::Write, false), i >= 112, "{i}");
    }
    assert!(!queue.congested(BlockKind::Read, true));
    queue.submit(ms(0), read(1000, 5, 8));
    let given = queue.dispatch(ms(0)).expect("the read");
    assert_eq!((given.lba.0, queue.dispatch(ms(0))), (5, None));
    assert_eq!(queue.waiting(), 1000);
    // A bio is joined to a request without needing one of its own.
    queue.submit(ms(0), write(1001, 5008, 8));
    assert_eq!((queue.waiting(), queue.merges()), (1000, 1));
    queue.ended(ms(1), given.id, Ok(()), &mut Vec::new());
    assert_eq!(served(&mut queue, ms(1), Span(1000)).len(), 1000);
}

#[test]
fn a_request_that_fails_fails_for_all_in_it() {
    let mut queue = queue(Scheduler::Noop, 1);
    queue.submit(ms(0), read(1, 0, 8));
    queue.submit(ms(0), read(2, 8, 8));
    let bio = queue.dispatch(ms(0)).unwrap();
    let mut done = Vec::new();
    queue.ended(ms(1), bio.id, Err(DiskError::Unreadable), &mut done);
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|e| e.result == Err(DiskError::Unreadable)));
}

/// Asynchronous requests of all that a queue before a device of so many tags may have.
fn asynchronous(kernel: Kernel, scheduler: Scheduler, tags: u32) -> (u32, u32) {
    let requests = QueueSpec::of(kernel, Some(scheduler), true, 1024, tags).requests;
    (requests.each[1], requests.total)
}

#[test]
fn asynchronous_requests_are_limited_by_words_of_the_bitmap() {
    use Scheduler::{Bfq, Kyber, MqDeadline};
    let (old, new) = (Kernel::Linux(6, 1, 0), Kernel::Linux(6, 12, 0));
    // Two requests are less than a word of 64, of which any scheduler but mq-deadline leaves more than two.
    assert_eq!(asynchronous(old, Bfq, 1), (2, 2));
    assert_eq!(asynchronous(old, Kyber, 1), (2, 2));
    assert_eq!(asynchronous(old, MqDeadline, 1), (1, 2));
    assert_eq!(asynchronous(new, MqDeadline, 1), (2, 2));
    assert_eq!(
        asynchronous(Kernel::Linux(6, 1, 105), MqDeadline, 1),
        (2, 2)
    );
    assert_eq!(asynchronous(Kernel::Linux(6, 2, 0), MqDeadline, 1), (1, 2));
    // 64 requests are four words of 16, and three quarters of all are more than a word has.
    assert_eq!(asynchronous(old, Bfq, 32), (32, 64));
    assert_eq!(asynchronous(old, Kyber, 32), (48, 64));
    assert_eq!(asynchronous(old, MqDeadline, 32), (64, 64));
    assert_eq!(asynchronous(old, Bfq, 128), (128, 256));
}

#[test]
fn the_number_of_requests_can_be_set() {
    let of = |kernel, scheduler, tags| {
        let spec = QueueSpec::of(kernel, Some(scheduler), true, 1024, tags);
        let requests = spec.with_requests(kernel, Some(scheduler), 16).requests;
        (requests.total, requests.each)
    };
    let new = Kernel::Linux(6, 1, 0);
    assert_eq!(of(new, Scheduler::Bfq, 1), (16, [16, 8]));
    assert_eq!(of(new, Scheduler::None, 32), (16, [16, 16]));
    assert_eq!(of(new, Scheduler::None, 4), (4, [4, 4]));
    assert_eq!(
        of(Kernel::Linux(2, 6, 16), Scheduler::Noop, 1),
        (u32::MAX, [16, 16])
    );
}

#[test]
fn writes_join_while_a_drive_of_one_command_is_busy() {
    let mut queue = queue(Scheduler::Bfq, 1);
    queue.submit(ms(0), write(1, 0, 128));
    assert_eq!(drain(&mut queue, ms(0)), [(0, 128)]);
    for i in 1..4 {
        queue.submit(ms(0), write(i + 1, i * 128, 128));
    }
    assert_eq!((queue.waiting(), queue.merges()), (1, 2));
}

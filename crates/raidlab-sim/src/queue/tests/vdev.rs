//! The queue of ZFS for a disk: before 0.6.3 by deadline, then by classes; what it joins.
use super::*;
use crate::block::RESYNC;

/// The kernels of 0.6.0, 0.6.5, 0.8 and 2.1.
const OLD: Kernel = Kernel::Linux(2, 6, 32);
const CLASSES: Kernel = Kernel::Linux(4, 2, 0);
const LARGE: Kernel = Kernel::Linux(5, 1, 0);
const NEW: Kernel = Kernel::Linux(5, 13, 0);

/// It, over a queue without a scheduler.
fn of_kernel(kernel: Kernel, depth: u32) -> Queue {
    let below = QueueSpec {
        plugging: Plugging::Off,
        max_sectors: 2560,
        ..spec(Scheduler::Noop, depth)
    };
    Queue::new(below.under_vdev(kernel))
}

fn vdev(depth: u32) -> Queue {
    of_kernel(OLD, depth)
}

/// Of a resilver.
fn repairing(bio: Bio) -> Bio {
    let origin = Origin {
        background: true,
        task: RESYNC,
        ..bio.origin
    };
    Bio { origin, ..bio }
}

fn ahead(bio: Bio) -> Bio {
    let origin = Origin {
        ahead: true,
        ..bio.origin
    };
    Bio { origin, ..bio }
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

/// Records of 4 KiB one after the other: but for those that found the disk idle, each command has 128 KiB before 0.8, then 1 MiB
/// on a disk that turns.
#[test]
fn records_of_4_kib_written_in_order_go_out_as_large_commands() {
    for (kernel, turns, sectors) in [
        (OLD, true, 256),
        (CLASSES, true, 256),
        (LARGE, true, 2048),
        (LARGE, false, 256),
        (NEW, true, 2048),
    ] {
        let below = QueueSpec {
            rotational: turns,
            max_sectors: 2560,
            plugging: Plugging::Off,
            ..spec(Scheduler::Noop, 10)
        };
        let mut queue = Queue::new(below.under_vdev(kernel));
        let mut given = Vec::new();
        for i in 0..16_384 {
            queue.submit(ms(0), write(i, i * 8, 8));
            if i < 10 {
                given.extend(drain(&mut queue, ms(0)));
            }
        }
        let records = given.len();
        let mut done = Vec::new();
        let mut commands = Vec::new();
        let mut waiting: VecDeque<u64> = (0..records as u64).collect();
        while let Some(id) = waiting.pop_front() {
            queue.ended(ms(1), id, Ok(()), &mut done);
            while let Some(bio) = queue.dispatch(ms(1)) {
                commands.push(bio.sectors);
                waiting.push_back(bio.id);
            }
        }
        assert_eq!((done.len(), records), (16_384, 10), "{kernel}");
        let (last, whole) = commands.split_last().unwrap();
        assert!(
            whole.iter().all(|n| *n == sectors),
            "{kernel}: {commands:?}"
        );
        assert!(*last <= sectors);
        let wanted = (16_374 * 8_usize).div_ceil(sectors as usize);
        assert_eq!(commands.len(), wanted, "{kernel}, {turns}");
    }
}

#[test]
fn reads_are_joined_over_gaps_of_32_kib_and_writes_only_when_they_touch() {
    for kernel in [OLD, NEW] {
        let mut queue = of_kernel(kernel, 10);
        for (id, lba) in [(1, 0), (2, 72), (3, 145)] {
            queue.submit(ms(0), read(id, lba, 8));
        }
        // 64 sectors between the first two, 65 before the third.
        assert_eq!(drain(&mut queue, ms(0)), [(0, 80), (145, 8)], "{kernel}");
        let mut queue = of_kernel(kernel, 10);
        for (id, lba) in [(1, 0), (2, 8), (3, 17)] {
            queue.submit(ms(0), write(id, lba, 8));
        }
        assert_eq!(drain(&mut queue, ms(0)), [(0, 16), (17, 8)], "{kernel}");
    }
}

#[test]
fn a_read_that_is_waited_for_takes_those_ahead_along_but_none_of_a_resilver() {
    let mut queue = of_kernel(NEW, 10);
    queue.submit(ms(0), ahead(read(1, 0, 8)));
    queue.submit(ms(0), read(2, 8, 8));
    queue.submit(ms(0), repairing(read(3, 16, 8)));
    queue.submit(ms(0), ahead(read(4, 40, 8)));
    let given = queue.dispatch(ms(0)).expect("all that somebody reads");
    assert_eq!((given.lba.0, given.sectors), (0, 48));
    assert_eq!(drain(&mut queue, ms(0)), [(16, 8)]);
    let mut done = Vec::new();
    queue.ended(ms(1), given.id, Ok(()), &mut done);
    let mut ids: Vec<u64> = done.iter().map(|end| end.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 4]);
}

#[test]
fn each_class_has_as_many_at_a_time_as_its_release_lets_it() {
    type Of = fn(u64) -> Bio;
    let classes: [(Of, u32, u32); 5] = [
        (|i| read(i, i * 1000, 8), 10, 10),
        (|i| ahead(read(i, i * 1000, 8)), 3, 3),
        (|i| write(i, i * 1000, 8), 10, 10),
        (|i| repairing(read(i, i * 1000, 8)), 2, 1),
        // Beside them nothing is dirty.
        (|i| repairing(write(i, i * 1000, 8)), 1, 2),
    ];
    for (of, early, late) in classes {
        for (kernel, most) in [(CLASSES, early), (NEW, late)] {
            let mut queue = of_kernel(kernel, 100);
            (0..50).for_each(|i| queue.submit(ms(0), of(i)));
            let given = drain(&mut queue, ms(0)).len();
            assert_eq!(given, most as usize, "{kernel}: {:?}", of(0));
        }
    }
}

/// Since 2.1: after five of its reads have ended alone a resilver has three at a time, and one for each five that somebody's
/// requests let through.
#[test]
fn a_resilver_stands_back_while_somebody_reads() {
    let mut queue = of_kernel(NEW, 100);
    let mut done = Vec::new();
    (0..100).for_each(|i| queue.submit(ms(0), repairing(read(i, i * 1000, 8))));
    for _ in 0..5 {
        let bio = queue.dispatch(ms(0)).expect("one at a time");
        assert_eq!(queue.dispatch(ms(0)), None);
        queue.ended(ms(0), bio.id, Ok(()), &mut done);
    }
    assert_eq!(drain(&mut queue, ms(0)).len(), 3);
    let mut queue = of_kernel(NEW, 100);
    let mut background = 0;
    (0..1000).for_each(|i| queue.submit(ms(0), repairing(read(i, i * 1000, 8))));
    (1000..2000).for_each(|i| queue.submit(ms(0), read(i, i * 1000, 8)));
    let mut active = VecDeque::new();
    for _ in 0..600 {
        while let Some(bio) = queue.dispatch(ms(0)) {
            background += u32::from(bio.origin.background);
            active.push_back(bio.id);
        }
        let id = active.pop_front().expect("something is active");
        queue.ended(ms(0), id, Ok(()), &mut done);
    }
    assert!((20..130).contains(&background), "{background}");
}

#[test]
fn what_nobody_waits_for_goes_on_from_where_the_last_request_ended() {
    let mut queue = of_kernel(CLASSES, 1);
    for (id, lba) in [(1, 500), (2, 100), (3, 900), (4, 300)] {
        queue.submit(ms(id), write(id, lba, 8));
    }
    queue.submit(ms(5), read(5, 400, 8));
    let order = served(&mut queue, ms(5), Span::from_millis(1));
    // One write behind at the least comes before the maximum of the reads, and the read before its own maximum.
    assert_eq!(order, [400, 500, 900, 100, 300]);
}

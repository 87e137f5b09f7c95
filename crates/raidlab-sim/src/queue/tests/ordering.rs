//! First come, first served, and merging.
use super::*;

#[test]
fn noop_serves_in_the_order_of_arrival() {
    for scheduler in [Scheduler::Noop, Scheduler::None] {
        let mut queue = queue(scheduler, 4);
        for (id, lba) in [(1, 500), (2, 100), (3, 900), (4, 300)] {
            queue.submit(ms(0), read(id, lba, 8));
        }
        let order: Vec<u64> = drain(&mut queue, ms(0)).iter().map(|r| r.0).collect();
        assert_eq!(order, [500, 100, 900, 300]);
        assert_eq!(queue.in_device(), 4);
    }
}

#[test]
fn neighbours_become_one_request_and_end_in_the_order_of_addresses() {
    let mut queue = queue(Scheduler::Deadline, 4);
    // Behind, before, and into the gap between two.
    for (id, lba) in [(1, 100), (2, 108), (3, 92), (4, 124), (5, 116)] {
        queue.submit(ms(0), read(id, lba, 8));
    }
    queue.submit(ms(0), write(6, 132, 8));
    assert_eq!(queue.waiting(), 2);
    let merged = queue.dispatch(ms(0)).unwrap();
    assert_eq!((merged.lba.0, merged.sectors), (92, 40));
    let mut done = Vec::new();
    queue.ended(ms(5), merged.id, Ok(()), &mut done);
    let ids: Vec<u64> = done.iter().map(|end| end.id).collect();
    assert_eq!(ids, [3, 1, 2, 5, 4]);
    assert!(done.iter().all(|end| end.at == ms(5)));
    assert_eq!(queue.merges(), 3);
    assert_eq!(drain(&mut queue, ms(5)), [(132, 8)]);
}

#[test]
fn a_bio_finds_its_neighbour_among_many() {
    let mut queue = queue(Scheduler::Noop, 1);
    for i in 0..100 {
        queue.submit(ms(0), read(i, i * 100, 8));
    }
    queue.submit(ms(0), read(200, 5008, 8));
    assert_eq!(queue.waiting(), 100);
    // The last one that was joined, and only it, is found by its beginning as well.
    queue.submit(ms(0), read(201, 4992, 8));
    queue.submit(ms(0), read(202, 692, 8));
    assert_eq!(queue.waiting(), 101);
}

#[test]
fn without_a_scheduler_only_the_last_few_are_looked_at() {
    let mut queue = Queue::new(QueueSpec {
        requests: Requests {
            total: 64,
            each: [64; 2],
            beside_favoured: 64,
            by_sync: true,
            admits: Admits::Each,
        },
        plugging: Plugging::Off,
        ..spec(Scheduler::None, 1)
    });
    for i in 0..20 {
        queue.submit(ms(0), read(i, i * 100, 8));
    }
    queue.submit(ms(0), read(20, 1508, 8));
    assert_eq!(queue.waiting(), 20);
    queue.submit(ms(0), read(21, 8, 8));
    assert_eq!(queue.waiting(), 21);
}

#[test]
fn the_elevator_goes_one_way() {
    let spec = QueueSpec::of(Kernel::Windows2000, None, true, 256, 1);
    let mut queue = Queue::new(spec);
    for (id, lba) in [(1, 500), (2, 100), (3, 900), (4, 300)] {
        queue.submit(ms(0), read(id, lba, 8));
    }
    let mut order = vec![queue.dispatch(ms(0)).unwrap()];
    queue.submit(ms(1), write(5, 200, 8));
    queue.submit(ms(1), write(6, 50, 8));
    queue.ended(ms(1), order[0].id, Ok(()), &mut Vec::new());
    let rest = served(&mut queue, ms(1), Span(1000));
    assert_eq!(order.remove(0).lba.0, 100);
    assert_eq!(rest, [200, 300, 500, 900, 50]);
}

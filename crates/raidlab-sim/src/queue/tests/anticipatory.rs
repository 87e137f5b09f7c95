//! Keeping the disk idle for a reader.
use super::*;

fn other(id: u64, now: Instant, queue: &mut Queue) {
    queue.submit(now, of_task(id, 9, 900_000_000, 8));
}

/// A reader that has shown that it thinks for `thinks` between reads in order; its last read has
/// ended when this returns, at that time.
fn reader(queue: &mut Queue, thinks: Span) -> Instant {
    let mut now = ms(1);
    for i in 0..12 {
        queue.submit(now, read(i, 128 * i, 128));
        let bio = queue.dispatch(now).expect("nothing else waits");
        now += Span::from_millis(1);
        queue.ended(now, bio.id, Ok(()), &mut Vec::new());
        if i < 11 {
            now += thinks;
        }
    }
    now
}

#[test]
fn the_disk_waits_for_the_next_read_of_the_same_process() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let ended = reader(&mut queue, Span::from_micros(500));
    other(100, ended, &mut queue);
    assert_eq!(queue.dispatch(ended), None);
    assert_eq!(queue.next_event(), Some(ended + Span::from_millis(6)));
    let later = ended + Span::from_micros(500);
    queue.submit(later, read(101, 12 * 128, 128));
    assert_eq!(queue.dispatch(later).unwrap().lba.0, 12 * 128);
}

#[test]
fn it_gives_up_after_six_milliseconds() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let ended = reader(&mut queue, Span::from_micros(500));
    other(100, ended, &mut queue);
    assert_eq!(queue.dispatch(ended), None);
    let until = queue.next_event().unwrap();
    assert_eq!(queue.dispatch(Instant(until.0 - 1)), None);
    assert_eq!(queue.dispatch(until).unwrap().lba.0, 900_000_000);
}

#[test]
fn it_does_not_wait_for_a_process_that_thinks_long() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let ended = reader(&mut queue, Span::from_millis(15));
    other(100, ended, &mut queue);
    assert!(queue.dispatch(ended).is_some());
}

#[test]
fn it_does_not_wait_when_something_near_is_there() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let ended = reader(&mut queue, Span::from_micros(500));
    queue.submit(ended, of_task(100, 9, 12 * 128 + 4000, 8));
    assert_eq!(queue.dispatch(ended).unwrap().lba.0, 12 * 128 + 4000);
}

#[test]
fn a_write_waits_while_the_disk_is_kept_for_a_reader() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let ended = reader(&mut queue, Span::from_micros(500));
    queue.submit(ended, write(100, 5000, 8));
    assert_eq!(queue.dispatch(ended), None);
    assert!(queue.dispatch(ended + Span::from_millis(6)).is_some());
}

#[test]
fn two_readers_in_order_stay_in_order() {
    let readers = [sequential(1, 200), sequential(2, 200)];
    let mut waits = queue(Scheduler::Anticipatory, 1);
    let kept = contend(&mut waits, &readers, 0, 10);
    let mut hurries = queue(Scheduler::Deadline, 1);
    let torn = contend(&mut hurries, &readers, 0, 10);
    let (kept_sum, torn_sum): (u64, u64) = (kept.reads.iter().sum(), torn.reads.iter().sum());
    assert!(kept_sum > 4 * torn_sum, "{kept_sum} against {torn_sum}");
    assert!(kept.seeks * 10 < kept_sum);
    // Either has its share.
    assert!(
        kept.reads.iter().all(|n| *n * 4 > kept_sum),
        "{:?}",
        kept.reads
    );
}

#[test]
fn writes_have_their_batches_beside_a_reader() {
    let mut queue = queue(Scheduler::Anticipatory, 1);
    let outcome = contend(&mut queue, &[sequential(1, 200)], 32, 20);
    // Batches of 125 ms against 500 ms.
    let share = outcome.writes * 9;
    let whole = 20_000;
    assert!(
        share * 10 > whole && share * 3 < whole,
        "{}",
        outcome.writes
    );
    assert!(outcome.reads[0] * 12 > whole * 6, "{:?}", outcome.reads);
}

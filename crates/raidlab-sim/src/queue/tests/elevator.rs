//! How long the elevator of old systems goes up before it turns.
use super::*;

/// Requests upwards that are given out before the one below them, which came first.
fn passed(kernel: Kernel, waits: Bio) -> usize {
    let mut queue = Queue::new(QueueSpec {
        plugging: Plugging::Off,
        ..QueueSpec::of(kernel, None, true, 256, 1)
    });
    let begin = queue_up(&mut queue, waits);
    (0..20_000)
        .position(|turn| {
            let now = ms(turn + 1);
            queue.submit(now, read(10 + turn, begin + 200 * (turn + 1), 8));
            let given = queue.dispatch(now).expect("some wait");
            queue.ended(now, given.id, Ok(()), &mut Vec::new());
            given.lba == waits.lba
        })
        .unwrap_or(usize::MAX)
}

/// The arm is beyond the request that waits.
fn queue_up(queue: &mut Queue, waits: Bio) -> u64 {
    let begin = waits.lba.0 + 1000;
    queue.submit(ms(0), read(1, begin, 8));
    let first = queue.dispatch(ms(0)).expect("it goes at once");
    queue.submit(ms(0), waits);
    queue.ended(ms(0), first.id, Ok(()), &mut Vec::new());
    begin
}

#[test]
fn only_so_many_are_put_before_the_oldest() {
    let (read, write) = (read(2, 5000, 8), write(2, 5000, 8));
    let new = Kernel::Linux(2, 4, 20);
    assert_eq!((passed(new, read), passed(new, write)), (128, 512));
    let old = Kernel::Linux(2, 4, 10);
    assert_eq!((passed(old, read), passed(old, write)), (8192, 16_384));
    assert_eq!(passed(Kernel::Windows2000, read), usize::MAX);
}

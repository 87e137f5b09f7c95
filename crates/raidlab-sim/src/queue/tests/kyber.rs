//! Tokens that follow latencies.
use super::super::kyber::{Kyber, Tunables};
use super::super::store::Store;
use super::*;

/// Requests of a class go through, each taking `takes`, `each` apart, from `from` on.
fn load(kyber: &mut Kyber, from: u64, count: u64, bio: &Bio, takes: u64) -> u64 {
    let mut store = Store::new();
    let mut now = from;
    for _ in 0..count {
        let class = Kyber::class(bio.kind);
        let slot = store.insert(Instant(now), bio, class, 0);
        assert_eq!(kyber.pick(&store, Instant(now)), slot);
        store.remove(slot);
        store.start(slot, Instant(now));
        now += takes;
        let rq = *store.get(slot);
        kyber.ended(Instant(now), &rq);
        store.forget(slot);
    }
    now
}

#[test]
fn reads_that_take_too_long_take_tokens_from_writes() {
    let mut kyber = Kyber::new(Tunables::default());
    assert_eq!(kyber.allowed(), [256, 128]);
    // Writes that are quick: a quarter of their target.
    let now = load(&mut kyber, 0, 600, &write(1, 0, 8), 2_000_000);
    assert_eq!(kyber.allowed(), [256, 128]);
    // Reads in the bucket from 5/4 of their target on, for more than a second.
    let now = load(&mut kyber, now, 600, &read(1, 0, 8), 2_600_000);
    let congested = kyber.allowed();
    assert_eq!(congested, [256, 32]);
    // Quick reads, slow writes: the writes get theirs back, at most what there was.
    load(&mut kyber, now, 3000, &write(1, 0, 8), 24_000_000);
    assert_eq!(kyber.allowed()[1], 128);
}

#[test]
fn without_congestion_nothing_is_throttled() {
    let mut kyber = Kyber::new(Tunables::default());
    load(&mut kyber, 0, 5000, &read(1, 0, 8), 100_000);
    assert_eq!(kyber.allowed(), [256, 128]);
}

#[test]
fn kinds_take_turns_in_batches() {
    let mut queue = Queue::new(QueueSpec {
        plugging: Plugging::Off,
        wbt: None,
        ..spec(Scheduler::Kyber, 64)
    });
    for i in 0..40 {
        queue.submit(ms(0), read(i, i * 1000, 8));
        queue.submit(ms(0), write(100 + i, i * 1000 + 500, 8));
    }
    let kinds: Vec<bool> = drain(&mut queue, ms(0))
        .iter()
        .map(|r| r.0 % 1000 == 0)
        .collect();
    let runs: Vec<usize> = kinds.chunk_by(|a, b| a == b).map(<[bool]>::len).collect();
    assert_eq!(runs[..4], [16, 8, 16, 8]);
}

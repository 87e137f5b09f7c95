//! How the time is divided between the host and what makes members agree.
use super::*;

/// Sectors of each member: more than is filled in any of these tests.
const LARGE: u64 = 4 << 21;

/// A mirror of which one member is new, on a card that is told its rebuild rate or goes by its own.
fn rebuilding(card: &str, rate: Option<u32>) -> FabricSpec {
    let mut spec = of_size(LARGE, card, ("raid1", 2), ArrayState::Rebuilding(1), &[1]);
    spec.volumes[0].rebuild_rate = rate;
    spec
}

/// MB/s that a host reads at random, one block after the other with a pause between them, and sectors of a member done, in three
/// seconds.
fn beside(spec: &FabricSpec, pause: u64) -> (f64, u64) {
    beside_reads_of(spec, spec.volumes[0].layout.capacity().0 / 8, pause)
}

/// The same of the first blocks.
fn beside_reads_of(spec: &FabricSpec, blocks: u64, pause: u64) -> (f64, u64) {
    let mut fabric = Fabric::new(spec, 1).expect("a fabric");
    let numbers = Stream::new(7);
    let port = fabric.ports().len() as u32 - 1;
    let (mut now, mut done, mut due, mut count) = (Instant::ZERO, Vec::new(), Some(0), 0);
    while now < Instant(3_000_000_000) {
        if due.is_some_and(|due| due <= now.0) {
            let at = numbers.below(count, blocks) * 8;
            fabric.submit(now, port, bio(count, BlockKind::Read, at, 8));
            (due, count) = (None, count + 1);
        }
        let next = fabric.next_event().map(|next| next.0);
        now = Instant(
            next.into_iter()
                .chain(due)
                .min()
                .expect("something to come"),
        );
        fabric.advance(now, &mut done);
        if done.pop().is_some() {
            due = Some(now.0 + pause);
        }
    }
    let position = fabric.resync_position().expect("it is not over");
    (count as f64 * 4096.0 / now.0 as f64 * 1e3, position)
}

#[test]
fn the_rebuild_rate_divides_the_time() {
    let with = |card: &str, rate: u32| beside(&rebuilding(card, Some(rate)), 0);
    for card in ["hardware-raid", "ITE8212"] {
        let [none, third, all] = [0, 30, 100].map(|rate| with(card, rate));
        assert!(none.1 <= 4096, "{card}: {none:?}");
        assert!(
            third.1 > 2 * none.1 && 2 * all.1 > 3 * third.1,
            "{card}: {none:?} {third:?} {all:?}"
        );
        assert!(
            none.0 > 1.05 * third.0 && third.0 > 1.3 * all.0,
            "{card}: {none:?} {third:?} {all:?}"
        );
    }
    // Who gets all of the time takes turns.
    let all = with("ITE8212", 100);
    assert!(all.0 > 0.1, "{all:?}");
    // The model's own rate is what it goes at when nothing is said.
    let usual = beside(&rebuilding("hardware-raid", None), 0);
    assert_eq!(usual, with("hardware-raid", 30));
}

/// However many groups there are at a time: with a host that has all from the cache the disks do nothing else.
#[test]
fn the_rest_of_the_time_nothing_is_asked_for() {
    let done = |rate: u32, runs: u32| {
        let spec = rebuilding("hardware-raid", Some(rate));
        let spec = with_model(spec, |model| model.background.runs = runs);
        beside_reads_of(&spec, 1, 5_000_000).1 as f64
    };
    for runs in [1, 2, 4] {
        let all = done(100, runs);
        for rate in [20, 50] {
            let share = done(rate, runs) / all;
            let wanted = f64::from(rate) / 100.0;
            // What begins together ends one after the other.
            assert!(
                (0.7 * wanted..1.1 * wanted).contains(&share),
                "{runs} at a time: {share} of {wanted}"
            );
        }
    }
}

#[test]
fn a_host_that_pauses_is_still_there() {
    let done = |card: &str, rate: u32, pause: u64| beside(&rebuilding(card, Some(rate)), pause).1;
    for card in ["hardware-raid", "ITE8212"] {
        let (none, third, all) = (
            done(card, 0, 20_000_000),
            done(card, 30, 20_000_000),
            done(card, 100, 20_000_000),
        );
        assert!(none <= 4096, "{card}: {none}");
        assert!(2 * third < all, "{card}: {third} of {all}");
        // After a twentieth of a second it is taken to be gone.
        let gone = done(card, 0, 300_000_000);
        assert!(2 * gone > all, "{card}: {gone} of {all}");
    }
}

//! A resync and others in one stripe cache.
use super::resync::{in_state, layout};
use super::toy::Toy;
use super::*;
use BlockKind::{Read, Write};

#[test]
fn a_resync_fills_the_stripe_cache_and_then_waits_for_a_quarter_of_it_and_a_tick() {
    let mut spec = in_state(layout("raid5", 4, 64 * 1000), "rebuilding 1", &[2]);
    (spec.era.cache_grows, spec.era.checkpoints) = (false, Checkpoints::AtOnce);
    let mut toy = Toy::new(&spec, 0);
    while toy.log.len() < 3 {
        assert!(toy.step());
    }
    let reads = |toy: &Toy| toy.resynced(Read).len() as u32 / 8;
    // A row of each survivor for each of the 256 stripes.
    assert_eq!((reads(&toy), toy.now), (3 * 256, Instant::ZERO));
    // They are read and written in a fraction of a millisecond; the next ones come at the second tick.
    while reads(&toy) == 3 * 256 {
        assert!(toy.step());
    }
    assert_eq!(toy.now, Instant(8_000_000));
    assert_eq!(reads(&toy), 2 * 3 * 256);
}

#[test]
fn whoever_wants_a_stripe_waits_for_the_quarter_that_a_resync_waits_for() {
    let mut spec = in_state(layout("raid5", 4, 64 * 1000), "rebuilding 1", &[2]);
    spec.era.cache_grows = false;
    let mut toy = Toy::new(&spec, 7);
    while toy.log.is_empty() {
        assert!(toy.step());
    }
    // All stripes are the resync's, and end eight by eight.
    toy.submit(bio(0, Read, 100_000, 8));
    toy.unplug();
    let asked = |toy: &Toy| toy.log.iter().any(|a| !a.bio.origin.background);
    while !asked(&toy) {
        assert!(toy.step());
    }
    assert!(toy.filled() / 8 > 64, "{} of 256", toy.filled() / 8);
    toy.settle();
    assert!(toy.ended[0].result.is_ok());
}

#[test]
fn a_resync_gets_a_stripe_each_time_that_a_quarter_is_free_however_many_wait() {
    let mut spec = in_state(layout("raid5", 4, 64 * 4000), "rebuilding 1", &[2]);
    (spec.era.cache_grows, spec.stripe_cache) = (false, 64);
    let mut toy = Toy::new(&spec, 7);
    // Sixteen writes of 32 stripes each want eight times as many as there are, all the time.
    let write = |i: u64| bio(i, Write, (i + 1000) % 3900 * 768, 768);
    for i in 0..16 {
        toy.submit(write(i));
    }
    let (mut next, mut before) = (16, 0);
    while toy.now < Instant(400_000_000) {
        assert!(toy.step());
        while next < 16 + toy.ended.len() as u64 {
            toy.submit(write(next));
            next += 1;
        }
        toy.unplug();
        if toy.now < Instant(100_000_000) {
            before = toy.filled() / 8;
        }
    }
    // In 300 ms it sleeps 38 to 75 times, for 4 to 8 ms, and asks for one stripe or few then.
    let stripes = toy.filled() / 8 - before;
    assert!((20..150).contains(&stripes), "{stripes}");
    assert!(next > 1000, "{next}");
}

#[test]
fn a_write_waits_for_a_resync_of_its_own_stripes_and_keeps_nobody_behind_it() {
    let mut spec = in_state(layout("raid5", 4, 64 * 1000), "rebuilding 1", &[2]);
    // It sleeps after each 128 KiB.
    (spec.sync_speed_min, spec.sync_speed_max) = (0, 0);
    let mut toy = Toy::new(&spec, 0);
    toy.submit(bio(0, Write, 192 * 900, 192));
    while !toy.log.iter().any(|a| a.bio.origin.background) {
        assert!(toy.step());
    }
    // The first stripes are the resync's, which reads them.
    let now = toy.now;
    toy.submit(bio(1, Write, 192 * 3, 192));
    let before = toy.log.len();
    toy.submit(bio(2, Write, 192 * 950, 192));
    toy.unplug();
    let sent = &toy.log[before..];
    let to = |stripe: u64| sent.iter().any(|a| a.bio.lba.0 / 64 == stripe);
    assert_eq!((toy.now, to(3)), (now, false));
    assert!(to(950), "{sent:?}");
    while toy.ended.len() < 3 {
        assert!(toy.step());
    }
    assert!(toy.ended.iter().all(|end| end.result.is_ok()));
}

/// A resync that waits for room is not asked: what comes of that is what comes of asking it after each end.
#[test]
fn a_resync_that_waits_need_not_be_asked() {
    let states = [("rebuilding 1", true), ("resyncing", false)];
    for (seed, (state, grows)) in states.into_iter().cycle().take(12).enumerate() {
        let seed = seed as u64;
        let failed: &[u16] = if state == "resyncing" { &[] } else { &[2] };
        let mut spec = in_state(layout("raid6", 5, 64 * 1000), state, failed);
        (spec.era.cache_grows, spec.stripe_cache) = (grows, 64 << (seed % 3));
        spec.era.thread_syncs = seed % 4 < 2;
        if seed.is_multiple_of(3) {
            spec.cost.xor = 1_000_000_000;
        }
        let run = |asks_always| {
            let mut toy = Toy::new(&spec, seed);
            toy.array.asks_always = asks_always;
            let mut given = 0;
            while toy.now < Instant(150_000_000) && toy.step() {
                // Others come and go, in places that the resync has passed and others.
                if toy.now > Instant(given * 5_000_000) && given < 20 {
                    let kind = if given % 2 == 0 { Write } else { Read };
                    toy.submit(bio(given, kind, given * 7919 % 180_000, 8 << (given % 6)));
                    toy.unplug();
                    given += 1;
                }
            }
            assert!(toy.ended.len() > 10, "{}", toy.ended.len());
            (toy.log, toy.ended)
        };
        let (short, long) = (run(false), run(true));
        assert!(short.0.len() > 1000, "{}", short.0.len());
        assert!(short == long, "{state} with seed {seed}");
    }
}

#[test]
fn who_waits_for_stripes_of_what_he_writes_is_known_to_sleep() {
    let mut spec = parity::raid5(4, 128);
    (spec.era.cache_grows, spec.stripe_cache) = (false, 64);
    let mut toy = Toy::new(&spec, 0);
    let of = |task, sync| Origin {
        task,
        sync,
        ..Origin::default()
    };
    // One more than there are stripes, each in another chunk.
    for i in 0..65 {
        assert!(!toy.array.sleeps(&of(1, true)), "{i} of 64");
        toy.submit(bio(i, Write, i * 384, 8));
    }
    assert!(toy.array.sleeps(&of(1, true)));
    assert!(!toy.array.sleeps(&of(1, false)) && !toy.array.sleeps(&of(2, true)));
    toy.settle();
    assert!(!toy.array.sleeps(&of(1, true)));
}

//! What it costs that an array becomes busy and idle.
use super::resync::{in_state, layout};
use super::toy::{Asked, Toy};
use super::*;
use BlockKind::{Flush, Read, Write};
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::Kernel;

/// The superblock is so far before the data.
const BEFORE: u64 = 2040;
const LEVELS: [&str; 5] = ["raid1", "raid4", "raid5", "raid6", "raid10"];

fn spec(level: &str, state: &str, failed: &[u16]) -> ArraySpec {
    of(level, 4, state, failed)
}

fn of(level: &str, members: usize, state: &str, failed: &[u16]) -> ArraySpec {
    let mut spec = in_state(layout(level, members, 64 * 2000), state, failed);
    spec.superblock = Some(SuperblockSpec {
        at: -(BEFORE as i64),
        sectors: 2,
    });
    spec
}

fn superblocks(toy: &Toy) -> Vec<Asked> {
    let superblock = |a: &&Asked| a.bio.kind == Write && a.bio.lba.0 < BEFORE;
    toy.log.iter().filter(superblock).copied().collect()
}

/// Writes or reads 8 sectors at `lba`; how many superblocks were written for that, and how long it took.
fn call(toy: &mut Toy, kind: BlockKind, lba: u64) -> (usize, Span) {
    let (before, ends, begun) = (superblocks(toy).len(), toy.ended.len(), toy.now);
    toy.submit(bio(ends as u64, kind, lba, 8));
    toy.unplug();
    while toy.ended.len() == ends {
        assert!(toy.step());
    }
    (superblocks(toy).len() - before, toy.now.since(begun))
}

/// Lets time pass in which nobody does anything; how many superblocks were written.
fn wait(toy: &mut Toy, millis: u64) -> usize {
    let before = superblocks(toy).len();
    toy.run_to(toy.now + Span::from_millis(millis));
    superblocks(toy).len() - before
}

#[test]
fn the_first_write_waits_until_all_superblocks_say_so_and_others_do_not() {
    for level in LEVELS {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        assert_eq!(call(&mut toy, Read, 0).0, 0, "{level}");
        toy.log.clear();
        let (written, first) = call(&mut toy, Write, 0);
        assert_eq!(written, 4, "{level}");
        let of = |a: &Asked| (a.bio.kind, a.bio.fua);
        let kinds: Vec<_> = toy.log[..8].iter().map(of).collect();
        assert_eq!(kinds[..4], [(Flush, false); 4], "{level}");
        assert_eq!(kinds[4..], [(Write, true); 4], "{level}");
        assert!(
            toy.log[4..8]
                .iter()
                .all(|a| (a.bio.lba.0, a.bio.sectors) == (0, 2))
        );
        let last = toy.log[..8].iter().map(|a| a.at).max().unwrap();
        assert!(toy.log[8..].iter().all(|a| a.at > last), "{level}");
        // A flush and a write of 100 us each.
        let mut plain = spec(level, "clean", &[]);
        plain.superblock = None;
        let plain = call(&mut Toy::new(&plain, 0), Write, 0);
        assert_eq!(first.0 - plain.1.0, 200_000, "{level}");
        // As long as it is written now and then, it is not clean.
        for i in 1..40 {
            assert_eq!(wait(&mut toy, 150), 0, "{level} {i}");
            assert_eq!(call(&mut toy, Write, 8 * i).0, 0, "{level} {i}");
        }
    }
}

#[test]
fn an_array_that_nobody_writes_is_clean_after_a_while() {
    for level in LEVELS {
        for (state, failed) in [("clean", &[][..]), ("degraded 1", &[2])] {
            let mut toy = Toy::new(&spec(level, state, failed), 0);
            let members = 4 - failed.len();
            wait(&mut toy, 10);
            assert_eq!(call(&mut toy, Write, 0).0, members, "{level} {state}");
            // Periods of 204 ms from zero: the write ended in the first, and the second has to pass.
            assert_eq!(wait(&mut toy, 405), 0, "{level} {state}");
            assert_eq!(wait(&mut toy, 15), members, "{level} {state}");
            assert_eq!(wait(&mut toy, 10_000), 0, "{level} {state}");
            assert_eq!(call(&mut toy, Read, 0).0, 0, "{level} {state}");
            assert_eq!(call(&mut toy, Write, 0).0, members, "{level} {state}");
        }
    }
}

#[test]
fn who_writes_while_that_is_said_waits_until_the_contrary_is() {
    for level in LEVELS {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        call(&mut toy, Write, 0);
        let before = superblocks(&toy).len();
        while toy.count(Flush) == 4 {
            assert!(toy.step());
        }
        // The members are being flushed.
        let (written, time) = call(&mut toy, Write, 640);
        assert_eq!(written, 8, "{level}");
        assert_eq!(superblocks(&toy).len() - before, 8, "{level}");
        assert!(time.0 >= 400_000, "{level} {time:?}");
    }
}

#[test]
fn what_its_process_submits_behind_a_write_that_waits_waits_too() {
    for level in LEVELS {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        toy.submit(bio(0, Write, 0, 8));
        toy.submit(bio(1, Read, 640, 8));
        let mut other = bio(2, Read, 1280, 8);
        other.origin.task = 2;
        toy.submit(other);
        other = bio(3, Write, 1920, 8);
        other.origin.task = 2;
        toy.submit(other);
        toy.unplug();
        let read = |a: &Asked| a.bio.kind == Read;
        assert_eq!(toy.log.iter().filter(|a| read(a)).count(), 1, "{level}");
        toy.settle();
        let mut ended: Vec<u64> = toy.ended.iter().map(|ended| ended.id).collect();
        assert_eq!(ended.first(), Some(&2), "{level}");
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3], "{level}");
        // One turn for both writes, and one when all is over.
        assert_eq!(superblocks(&toy).len(), 8, "{level}");
    }
}

/// How long after its only write an array is clean, to 4 ms.
fn delay(level: &str, state: &str, kernel: Kernel) -> Option<u64> {
    let mut spec = spec(level, state, &[]);
    (spec.era, spec.sync_speed_max) = (Era::of(kernel), 100 << 10);
    (spec.sync_speed_min, spec.era.checkpoints) = (0, Checkpoints::AtTheEnd);
    let mut toy = Toy::new(&spec, 0);
    wait(&mut toy, 10);
    call(&mut toy, Write, 0);
    let (ended, before) = (toy.now, superblocks(&toy).len());
    while superblocks(&toy).len() == before {
        if toy.now.since(ended) > Span::from_secs(1) || !toy.step() {
            return None;
        }
    }
    Some(toy.now.since(ended).0 / 4_000_000)
}

#[test]
fn kernels_differ_in_how_long_that_takes() {
    let of = |major, minor, patch| {
        let kernel = Kernel::Linux(major, minor, patch);
        [
            delay("raid5", "clean", kernel),
            delay("raid5", "resyncing", kernel),
        ]
    };
    assert_eq!(of(2, 4, 20), [None, None]);
    assert_eq!(of(2, 6, 17), [Some(5), None]);
    assert_eq!(of(2, 6, 18), [Some(50), None]);
    assert_eq!(of(4, 7, 0), [Some(50), None]);
    assert_eq!(of(4, 11, 0), [Some(51), None]);
    // 102 ticks from the beginning, then the next multiple of eight, and three for the grace period.
    assert_eq!(of(6, 1, 0), [Some(104), Some(104)]);
}

#[test]
fn arrays_without_redundancy_have_no_such_superblocks() {
    for level in ["raid0", "linear"] {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        assert_eq!(call(&mut toy, Write, 0).0, 0, "{level}");
        toy.settle();
        assert_eq!(toy.log.len(), 1, "{level}");
    }
}

#[test]
fn each_array_of_arrays_says_so_for_itself() {
    let mut toy = Toy::new(&of("raid50 2x3", 6, "clean", &[]), 0);
    call(&mut toy, Write, 0);
    let members = |toy: &Toy| {
        superblocks(toy)
            .iter()
            .map(|a| a.member)
            .collect::<Vec<_>>()
    };
    assert_eq!(members(&toy), [0, 1, 2]);
    // The other one is clean still.
    let on_second = |lba: &u64| toy.layout.locate(Lba(*lba)).unwrap()[0].member.0 >= 3;
    let lba = (0..).step_by(64).find(on_second).unwrap();
    call(&mut toy, Write, lba);
    assert_eq!(members(&toy), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn writes_to_an_array_that_is_lost_meanwhile_fail() {
    let mut toy = Toy::new(&spec("raid5", "clean", &[]), 0);
    toy.submit(bio(0, Write, 0, 8));
    toy.unplug();
    toy.array.fail(toy.now, 1);
    toy.array.fail(toy.now, 2);
    toy.settle();
    assert_eq!(toy.ended[0].result, Err(DiskError::Failed));
}

#[test]
fn a_thread_that_waits_for_the_grace_period_keeps_nobody_from_writing() {
    for level in LEVELS {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        wait(&mut toy, 10);
        call(&mut toy, Write, 0);
        // The timer has gone off after 416 ms.
        toy.run_to(Instant(420_000_000));
        assert_eq!(superblocks(&toy).len(), 4, "{level}");
        let (written, time) = call(&mut toy, Write, 640);
        assert_eq!(written, 0, "{level}");
        if level == "raid1" || level == "raid10" {
            assert_eq!(time.0, 100_000, "{level}");
        }
        // It finds that somebody has written, but not that somebody writes.
        assert_eq!(wait(&mut toy, 10), 4, "{level}");
    }
}

/// Whoever writes sleeps meanwhile, and leaves the rest dirty.
#[test]
fn who_waits_for_superblocks_is_known_to_sleep() {
    for level in LEVELS {
        let mut toy = Toy::new(&spec(level, "clean", &[]), 0);
        let of = bio(0, Write, 0, 8);
        assert!(!toy.array.sleeps(&of.origin), "{level}");
        toy.submit(of);
        assert!(toy.array.sleeps(&of.origin), "{level}");
        toy.settle();
        assert!(!toy.array.sleeps(&of.origin), "{level}");
    }
}

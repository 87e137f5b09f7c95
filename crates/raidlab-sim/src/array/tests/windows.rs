//! How much a resync or rebuild of a mirror has in flight, and who takes turns with it.
use super::resync::{beside_reads, in_state, layout};
use super::toy::{Asked, Toy};
use super::*;
use BlockKind::Read;
use raidlab_core::time::Span;

/// An array of two that is resyncing, or whose member 1 is rebuilt, as all of it counts at once.
fn busy(text: &str, state: &str, mib: u64) -> ArraySpec {
    let failed: &[u16] = if state == "resyncing" { &[] } else { &[1] };
    let mut spec = in_state(layout(text, 2, mib << 11), state, failed);
    spec.era.checkpoints = Checkpoints::AtOnce;
    spec.resync_build = Span::from_micros(20);
    spec
}

/// Requests that the resync of an array sends for each read, from `place` on, of a process that reads one block after the other,
/// 200 in all.
fn sent_for_each_read(spec: &ArraySpec, place: u64, seed: u64) -> f64 {
    let mut toy = Toy::new(spec, seed);
    for i in 0..200 {
        toy.submit(bio(i, Read, place + i * 7919 % 400 * 8, 8));
        toy.unplug();
        while toy.ended.len() as u64 == i {
            assert!(toy.step());
        }
    }
    let sent = |a: &&Asked| a.bio.origin.background && a.bio.kind == Read && a.member == 0;
    toy.log.iter().filter(sent).count() as f64 / 200.0
}

#[test]
fn whoever_reads_one_block_after_the_other_takes_turns_with_a_resync() {
    // Both wait for the read that has ended. The reader asks again before the resync has built a second request.
    let late = 150 << 11;
    for state in ["rebuilding 1", "resyncing"] {
        let mut spec = busy("raid10", state, 192);
        spec.era.resync_courtesy = Courtesy::Waits;
        for seed in [0, 7] {
            let turns = sent_for_each_read(&spec, late, seed);
            assert!((0.8..2.5).contains(&turns), "{state}: {turns}");
        }
        // Raid1 keeps nobody from another part of 64 MiB, and in its own part takes turns as well.
        let mut spec = busy("raid1", state, 192);
        spec.era.resync_courtesy = Courtesy::Waits;
        let all = sent_for_each_read(&spec, late, 0);
        assert!(all > 2.5, "{state}: {all}");
        let turns = sent_for_each_read(&spec, 40 << 11, 0);
        assert!((0.8..2.5).contains(&turns), "{state}: {turns}");
    }
}

#[test]
fn a_resync_that_comes_while_others_wait_for_it_sleeps_for_a_tick() {
    for (text, state) in [
        ("raid10", "resyncing"),
        ("raid10", "rebuilding 1"),
        ("raid1", "resyncing"),
    ] {
        let mut spec = busy(text, state, 60);
        let mut sent = |courtesy| {
            spec.era.resync_courtesy = courtesy;
            sent_for_each_read(&spec, 40 << 11, 7)
        };
        // A turn takes some 0.2 to 0.4 ms; in a tick and a half, some 6 ms, many reads are served.
        let turns = sent(Courtesy::Waits);
        let tick = sent(Courtesy::Ticks);
        assert!(tick < turns / 8.0 && tick > 0.0, "{text}: {tick} {turns}");
        // In a second all of them are, once it has seen how fast it is.
        let second = sent(Courtesy::Seconds);
        assert!(second > 0.0, "{text}: {second}");
    }
}

#[test]
fn a_resync_that_is_alone_fills_its_window() {
    let window = |text, state| {
        let mut toy = Toy::new(&busy(text, state, 64), 0);
        while toy.log.is_empty() {
            assert!(toy.step());
        }
        toy.log.iter().filter(|asked| asked.member == 0).count()
    };
    // Of 64 KiB each: 2 MiB of raid1, 32 MiB of raid10, where a request ends at a chunk of 32 KiB here.
    for state in ["rebuilding 1", "resyncing"] {
        assert_eq!(window("raid1", state), 32, "{state}");
        assert_eq!(window("raid10", state), 512, "{state}");
    }
}

/// Since 6.16 it keeps 32 requests going beside others, which wait behind more of it.
#[test]
fn a_resync_keeps_its_depth_beside_others() {
    let beside = |depth| {
        let era = |era: &mut Era| era.resync_depth = depth;
        beside_reads(1000 << 11, era, 100 << 30)
    };
    let ((brief, reads), (deep, fewer)) = (beside(0), beside(32));
    assert!(deep < 0.9 * brief, "{deep} {brief}");
    assert!(fewer < reads, "{fewer} {reads}");
    // Alone it is as fast as ever.
    let alone = |depth| {
        let mut spec = in_state(layout("raid1", 2, 40 << 11), "rebuilding 1", &[1]);
        spec.era.resync_depth = depth;
        let mut toy = Toy::new(&spec, 0);
        toy.settle();
        toy.now
    };
    assert_eq!(alone(0), alone(32));
}

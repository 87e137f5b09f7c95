//! How much the rebuild of a mirror has in flight, and who takes turns with it.
use super::resync::{beside_reads, in_state, layout};
use super::toy::{Asked, Toy};
use super::*;
use BlockKind::Read;

/// Requests that the rebuild of an array sends for each read of a process that reads one block after the other, 200 in all.
fn rebuilt_for_each_read(text: &str, members: usize, seed: u64) -> f64 {
    let mut spec = in_state(layout(text, members, 192 << 11), "rebuilding 1", &[1]);
    spec.era.checkpoints = Checkpoints::AtOnce;
    let mut toy = Toy::new(&spec, seed);
    for i in 0..200 {
        // Where the rebuild comes late.
        toy.submit(bio(i, Read, (150 << 11) + i * 7919 % 400 * 8, 8));
        toy.unplug();
        while toy.ended.len() as u64 == i {
            assert!(toy.step());
        }
    }
    let sent = |a: &&Asked| a.bio.origin.background && a.bio.kind == Read;
    toy.log.iter().filter(sent).count() as f64 / 200.0
}

#[test]
fn whoever_reads_one_block_after_the_other_takes_turns_with_the_rebuild_of_a_raid10() {
    // Both wait for the read that has ended. The reader asks again before the rebuild has built a second request.
    for seed in [0, 7] {
        let turns = rebuilt_for_each_read("raid10", 2, seed);
        assert!((0.8..2.5).contains(&turns), "{turns}");
    }
    // Raid1 keeps nobody from another part of 64 MiB.
    let all = rebuilt_for_each_read("raid1", 2, 0);
    assert!(all > 2.5, "{all}");
}

#[test]
fn a_resync_that_is_alone_fills_its_window() {
    let window = |text| {
        let mut spec = in_state(layout(text, 2, 64 << 11), "rebuilding 1", &[1]);
        spec.era.checkpoints = Checkpoints::AtOnce;
        let mut toy = Toy::new(&spec, 0);
        while toy.log.is_empty() {
            assert!(toy.step());
        }
        toy.log.len()
    };
    // Of 64 KiB each: 2 MiB of raid1, 32 MiB of raid10, where a request ends at a chunk of 32 KiB here.
    assert_eq!(window("raid1"), 32);
    assert_eq!(window("raid10"), 512);
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

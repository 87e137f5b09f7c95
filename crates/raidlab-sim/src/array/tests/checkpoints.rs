//! What a resync makes of the stripe cache, and when what it has gone through counts.
use super::resync::{in_state, layout};
use super::toy::Toy;
use super::*;
use crate::block::RESYNC;
use BlockKind::Read;
use raidlab_core::time::Instant;

/// Who is asked for block 0 of member 2, which a rebuild has filled, when it has come to sector `from` of 128 000.
fn asked_for_rebuilt(level: &str, lba: u64, checkpoints: Checkpoints, from: u64) -> Vec<u16> {
    let mut spec = in_state(layout(level, 4, 64 * 2000), "rebuilding 1", &[2]);
    spec.era.checkpoints = checkpoints;
    let mut toy = Toy::new(&spec, 0);
    while toy.array.resync().is_some_and(|resync| resync.done < from) {
        assert!(toy.step());
    }
    let asked = toy.log.len();
    // Again and again, so that mirrors have their turns.
    for i in 0..8 {
        toy.submit(bio(i, Read, lba + i * 8, 8));
    }
    toy.unplug();
    while toy.ended.len() < 8 {
        assert!(toy.step());
    }
    let of = toy.log[asked..].iter();
    let mut members: Vec<u16> = of
        .filter(|a| !a.bio.origin.background)
        .map(|a| a.member)
        .collect();
    members.sort_unstable();
    members.dedup();
    members
}

#[test]
fn what_was_rebuilt_is_read_when_that_has_been_noted() {
    use Checkpoints::{AtOnce, AtTheEnd, Sixteenths};
    // Stripes of three data chunks: the third of the first stripe is on the member that is filled.
    let raid5 = |checkpoints, from| asked_for_rebuilt("raid5", 128, checkpoints, from);
    // It is in the stripe cache no more when 3000 sectors have passed.
    assert_eq!(raid5(AtOnce, 3000), [2]);
    assert_eq!(raid5(Sixteenths, 3000), [0, 1, 3]);
    assert_eq!(raid5(Sixteenths, 16_000), [2]);
    assert_eq!(raid5(AtTheEnd, 16_000), [0, 1, 3]);
    assert_eq!(raid5(AtTheEnd, 128_000), [2]);
    // The third chunk of raid10 is on members 2 and 3.
    let raid10 = |checkpoints, from| asked_for_rebuilt("raid10", 64, checkpoints, from);
    assert!(raid10(AtOnce, 3000).contains(&2));
    assert_eq!(raid10(Sixteenths, 3000), [3]);
    assert!(raid10(Sixteenths, 16_000).contains(&2));
    assert_eq!(raid10(AtTheEnd, 16_000), [3]);
}

/// At each sixteenth all members, those that are being filled as well, are flushed and have their superblocks written past
/// their caches; nothing of the resync is in flight then, and a mirror writes nothing that it has read before that is through.
#[test]
fn how_far_a_resync_is_goes_to_the_superblocks_after_a_flush() {
    use BlockKind::{Flush, Write};
    for level in ["raid1", "raid5", "raid6", "raid10"] {
        let mut spec = in_state(layout(level, 4, 64 * 2000), "rebuilding 1", &[2]);
        spec.superblock = Some(SuperblockSpec {
            at: -2040,
            sectors: 2,
        });
        spec.cost.stripe = 1000;
        let mut toy = Toy::new(&spec, 3);
        toy.settle();
        let superblocks: Vec<_> = toy.log.iter().filter(|a| a.bio.fua).collect();
        // md asks whether more than a sixteenth is left out, so that there are fifteen at the most.
        assert_eq!(superblocks.len(), 4 * 15, "{level}");
        assert_eq!(toy.count(Flush), 4 * 15, "{level}");
        for of in superblocks.chunks(4) {
            let last = of.iter().map(|a| a.at).max();
            let first = toy
                .log
                .iter()
                .filter(|a| a.bio.kind == Flush && Some(a.at) < last);
            let first = first.map(|a| a.at).max();
            let between = |a: &&toy::Asked| Some(a.at) > first && Some(a.at) < last;
            let written = toy.log.iter().filter(between);
            let written = written.filter(|a| a.bio.kind == Write && a.bio.origin.background);
            assert_eq!(written.count(), 0, "{level}");
            let mut members: Vec<u16> = of.iter().map(|a| a.member).collect();
            members.sort_unstable();
            assert_eq!(members, [0, 1, 2, 3], "{level}");
            assert!(of.iter().all(|a| (a.bio.lba.0, a.bio.sectors) == (0, 2)));
        }
    }
}

/// Rows that are asked for in each of the first bursts of a rebuild by itself.
fn bursts(grows: bool, keeps: bool) -> Vec<u64> {
    let mut spec = in_state(layout("raid5", 4, 64 * 10_000), "rebuilding 1", &[2]);
    spec.era.cache_grows = grows;
    spec.era.checkpoints = Checkpoints::AtTheEnd;
    let mut toy = Toy::new(&spec, 0);
    if keeps {
        toy.array.resync_limit(toy.now, None);
        toy.unplug();
    }
    while toy.now < Instant(30_000_000) {
        assert!(toy.step());
    }
    // A burst begins at a tick, after all of the one before has ended.
    let (mut all, mut last) = (Vec::new(), None);
    for asked in toy.log.iter().filter(|a| a.member == 0) {
        if last.is_none_or(|last: Instant| asked.at.since(last).0 > 3_000_000) {
            all.push(0);
        }
        if let Some(burst) = all.last_mut() {
            *burst += u64::from(asked.bio.sectors) / 8;
        }
        last = Some(asked.at);
    }
    all.truncate(4);
    all
}

#[test]
fn each_time_that_a_resync_fills_the_stripe_cache_it_grows_by_a_row() {
    assert_eq!(bursts(false, false), [256, 256, 256, 256]);
    assert_eq!(bursts(true, false), [256, 257, 258, 259]);
    // Not while a pace is looked for.
    assert_eq!(bursts(true, true), [256, 256, 256, 256]);
}

#[test]
fn a_resync_is_a_process_of_its_own_where_it_asks_itself() {
    for (level, thread_syncs, process) in [
        ("raid5", false, RESYNC),
        ("raid5", true, 0),
        ("raid1", true, RESYNC),
    ] {
        let mut spec = in_state(layout(level, 4, 64 * 40), "rebuilding 1", &[2]);
        spec.era.thread_syncs = thread_syncs;
        let mut toy = Toy::new(&spec, 0);
        toy.settle();
        let mut of = toy.log.iter().filter(|a| a.bio.kind == Read);
        assert!(of.all(|a| a.bio.origin.task == process), "{level}");
    }
}

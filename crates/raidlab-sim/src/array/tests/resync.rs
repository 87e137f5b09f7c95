//! Resync and rebuild.
use super::content::{requests, run_all};
use super::toy::Toy;
use super::*;
use BlockKind::{Read, Write};
use proptest::prelude::*;
use raidlab_core::time::Span;
use raidlab_layout::{Geometry, Layout, Spec};

pub(super) fn layout(text: &str, members: usize, sectors: u64) -> Layout {
    let spec: Spec = text.parse().unwrap();
    let geometry = Geometry {
        sizes: sizes(members, sectors),
        chunk: Sectors(64),
        outer_chunk: None,
    };
    spec.build(&geometry).unwrap()
}

pub(super) fn in_state(layout: Layout, state: &str, failed: &[u16]) -> ArraySpec {
    let mut spec = ArraySpec::new(ArrayKind::Md(layout));
    (spec.state, spec.failed) = (state.parse().unwrap(), failed.to_vec());
    spec
}

fn all(members: &[u16], sectors: u64) -> Vec<(u16, u64)> {
    let of = |m: &u16| (0..sectors).map(|s| (*m, s)).collect::<Vec<_>>();
    members.iter().flat_map(of).collect()
}

#[test]
fn a_resync_reads_what_the_level_reads_once() {
    let resynced = |text: &str, state| {
        let mut toy = Toy::new(&in_state(layout(text, 4, 64 * 40), state, &[]), 7);
        assert!(toy.array.resync().is_some());
        toy.settle();
        assert_eq!(toy.array.resync(), None);
        (toy.resynced(Read), toy.resynced(Write))
    };
    let n = 64 * 40;
    // Raid1 copies the first member to the others, whatever they hold.
    for state in ["resyncing", "initial-sync"] {
        assert_eq!(resynced("raid1", state), (all(&[0], n), all(&[1, 2, 3], n)));
    }
    // The others read everything, and write where it does not agree.
    for text in [
        "raid5",
        "raid6",
        "raid4",
        "raid10",
        "raid10-f2",
        "raid10-o2",
    ] {
        let (reads, writes) = resynced(text, "resyncing");
        assert_eq!(reads, all(&[0, 1, 2, 3], n), "{text}");
        assert_eq!(writes, [], "{text}");
    }
    // In a new array nothing does: both parities, and all copies but the first.
    for (text, writes) in [
        ("raid6", 2 * n),
        ("raid10", 2 * n),
        ("raid10-f2", 2 * n),
        ("raid10-o2", 2 * n),
    ] {
        let (reads, written) = resynced(text, "initial-sync");
        assert_eq!(reads, all(&[0, 1, 2, 3], n), "{text}");
        assert_eq!(written.len() as u64, writes, "{text}");
    }
    assert_eq!(resynced("raid10", "initial-sync").1, all(&[1, 3], n));
    // mdadm makes raid4 and raid5 with the last member as a spare, which is filled.
    for text in ["raid4", "raid5"] {
        assert_eq!(
            resynced(text, "initial-sync"),
            (all(&[0, 1, 2], n), all(&[3], n)),
            "{text}"
        );
    }
}

#[test]
fn a_rebuild_reads_survivors_and_fills_the_new_member() {
    let n = 64 * 40;
    let rebuilt = |text: &str, members, failed: &[u16]| {
        let state = format!("rebuilding {}", failed.len());
        let mut toy = Toy::new(&in_state(layout(text, members, n), &state, failed), 7);
        toy.fill(failed);
        toy.settle();
        assert_eq!(toy.array.resync(), None);
        assert_eq!(toy.check(&[]), Ok(()), "{text}");
        assert_eq!(toy.resynced(Write), all(failed, n), "{text}");
        // Now it is read like the others.
        toy.submit(bio(0, Read, 0, 64 * 20));
        toy.settle();
        toy.resynced(Read)
    };
    assert_eq!(rebuilt("raid1", 3, &[1]), all(&[0], n));
    assert_eq!(rebuilt("raid5", 4, &[2]), all(&[0, 1, 3], n));
    // Both parities are read for one new member, too.
    assert_eq!(rebuilt("raid6", 5, &[2]), all(&[0, 1, 3, 4], n));
    assert_eq!(rebuilt("raid6", 5, &[2, 3]), all(&[0, 1, 4], n));
    assert_eq!(rebuilt("raid10", 4, &[3]), all(&[2], n));
    for text in ["raid10-f2", "raid10-o2"] {
        assert_eq!(rebuilt(text, 4, &[3]).len() as u64, n, "{text}");
    }
    for (text, failed) in [
        ("raid50 2x3", &[1_u16, 5][..]),
        ("raid10 3x2", &[0]),
        ("raid01 2x3", &[4]),
    ] {
        let state = format!("rebuilding {}", failed.len());
        let mut toy = Toy::new(&in_state(layout(text, 6, n), &state, failed), 7);
        // The other members of a raid0 that is a new mirror half are new with it.
        let new = if text.starts_with("raid01") {
            &[3, 4, 5]
        } else {
            failed
        };
        toy.fill(new);
        toy.settle();
        assert_eq!(toy.array.resync(), None);
        assert_eq!(toy.check(&[]), Ok(()), "{text}");
        assert_eq!(toy.resynced(Write), all(new, n), "{text}");
    }
}

#[test]
fn a_resync_keeps_its_limits() {
    // 64 MiB a member at 4 MiB/s at the most.
    let mut spec = in_state(layout("raid1", 2, 64 << 11), "resyncing", &[]);
    spec.sync_speed_max = 4 << 20;
    let mut toy = Toy::new(&spec, 0);
    toy.settle();
    let seconds = toy.now.0 as f64 / 1e9;
    assert!((14.0..18.0).contains(&seconds), "{seconds} s");
}

/// Seconds a rebuild of a raid1 takes while another process reads all the time, and the reads it gets done.
pub(super) fn beside_reads(sectors: u64, era: impl Fn(&mut Era), most: u64) -> (f64, usize) {
    let mut spec = in_state(layout("raid1", 2, sectors), "rebuilding 1", &[1]);
    (spec.era.checkpoints, spec.sync_speed_max) = (Checkpoints::AtOnce, most);
    era(&mut spec.era);
    let mut toy = Toy::new(&spec, 0);
    for i in 0..1_000_000 {
        if toy.array.resync().is_none() {
            break;
        }
        let ended = toy.ended.len();
        toy.submit(bio(i, Read, i * 7919 % 60 * 128, 128));
        while toy.ended.len() == ended {
            assert!(toy.step());
        }
    }
    (toy.now.0 as f64 / 1e9, toy.ended.len())
}

#[test]
fn a_resync_gives_way_to_others() {
    // Alone: 4 MiB in 64 KiB, read and write of 100 µs each, 32 at a time.
    let mut spec = in_state(layout("raid1", 2, 4 << 11), "rebuilding 1", &[1]);
    spec.era.checkpoints = Checkpoints::AtOnce;
    let mut toy = Toy::new(&spec, 0);
    toy.settle();
    assert!(toy.now.0 < 1_000_000, "{} ns", toy.now.0);
    // Old kernels fall to the least speed, 1000 KiB/s.
    // What it has in flight (2 MiB) hides as much of others' from it, so that it takes a while to hear them.
    let beside = |brief| {
        let era = |era: &mut Era| {
            era.resync_yields_briefly = brief;
            era.resync_courtesy = Courtesy::Waits;
        };
        beside_reads(40 << 11, era, spec.sync_speed_max)
    };
    let (slow, reads) = beside(false);
    assert!((30.0..50.0).contains(&slow), "{slow} s");
    assert!(reads > 300_000, "{reads}");
    // Later ones send 128 KiB at a time and wait for them.
    let (brief, reads) = beside(true);
    assert!((0.005..0.2).contains(&brief), "{brief} s");
    assert!(reads > 15, "{reads}");
}

#[test]
fn what_the_thread_of_an_array_has_not_come_to_hides_nobody_from_its_resync() {
    // 264 stripes: the second burst is looked at after 192 sectors of each member.
    let burst = |thread_syncs| {
        let mut spec = in_state(layout("raid5", 4, 64 * 1000), "rebuilding 1", &[2]);
        (spec.stripe_cache, spec.era.cache_grows) = (264, false);
        (spec.era.thread_syncs, spec.era.checkpoints) = (thread_syncs, Checkpoints::AtOnce);
        let mut toy = Toy::new(&spec, 0);
        while toy.filled() < 264 * 8 {
            assert!(toy.step());
        }
        // 160 sectors of each survivor are read before the resync's tick.
        for i in 0..40 {
            toy.submit(bio(i, Read, 100_032 + i * 64, 8));
        }
        toy.unplug();
        while toy.ended.len() < 40 {
            assert!(toy.step());
        }
        let begun = toy.log.len();
        while toy.log.len() == begun {
            assert!(toy.step());
        }
        let of = toy.log[begun..].iter().filter(|a| a.member == 0);
        of.map(|a| a.bio.sectors).sum::<u32>()
    };
    // The thread sends later: they are heard, and the resync waits for what it has asked for.
    assert_eq!(burst(true), 192);
    // It has sent the 192 itself, which weigh more than the others' 160.
    assert_eq!(burst(false), 264 * 8);
}

#[test]
fn what_a_resync_has_in_flight_hides_others_from_it() {
    // Reads of 4 KiB, one at a time, beside a rebuild that could go much faster than its least speed. They are of another
    // part, where nobody waits for it.
    let mut spec = in_state(layout("raid1", 2, 65 << 11), "rebuilding 1", &[1]);
    spec.era.resync_yields_briefly = false;
    spec.era.checkpoints = Checkpoints::AtOnce;
    let mut toy = Toy::new(&spec, 7);
    let far = |toy: &Toy| toy.array.resync().is_none_or(|r| r.done >= 24 << 10);
    for i in 0..5000 {
        if far(&toy) {
            break;
        }
        let ended = toy.ended.len();
        toy.submit(bio(i, Read, (64 << 11) + i * 7919 % 200 * 8, 8));
        while toy.ended.len() == ended {
            assert!(toy.step());
        }
    }
    // 64 sectors of others are through in 1.4 ms, in which it comes 8 MiB far: it heard them there no more than at 12 MiB, and never
    // slept half a second.
    assert!(far(&toy));
    assert!(toy.now.0 < 400_000_000, "{}", toy.now.0);
}

#[test]
fn a_resync_can_be_moved_on() {
    for text in ["raid5", "raid1", "raid10"] {
        let mut toy = Toy::new(&in_state(layout(text, 4, 64 * 1000), "resyncing", &[]), 3);
        for _ in 0..200 {
            toy.step();
        }
        let rate = toy.array.resync().unwrap().rate;
        assert!(rate > 1 << 20, "{text}: {rate}");
        toy.array.resync_pause(toy.now);
        while !toy.array.resync_drained() {
            assert!(toy.step(), "{text}");
        }
        let before = toy.array.resync_position().unwrap();
        assert!(before > 0 && before.is_multiple_of(8));
        let asked = toy.log.len();
        while toy.step() {}
        assert_eq!(toy.log.len(), asked, "a paused resync asks nothing");
        let total = toy.array.resync().unwrap().total;
        let target = (before + total) / 2;
        let after = toy.array.resync_skip(target, Span::from_secs(100)).unwrap();
        assert!(after <= target && after + 128 > target);
        toy.now = Instant(toy.now.0 + Span::from_secs(100).0);
        toy.array.resync_resume(toy.now);
        toy.settle();
        assert_eq!(toy.array.resync(), None);
        let first = toy.log[asked].bio.lba.0;
        let at = |lba: u64| if text == "raid10" { lba / 2 } else { lba };
        assert!(
            first.abs_diff(at(after)) < 128,
            "{text}: {first} after {after}"
        );
    }
}

#[test]
fn reads_below_the_front_are_balanced_and_above_it_are_not() {
    let mut toy = Toy::new(&in_state(layout("raid1", 2, 1 << 18), "resyncing", &[]), 0);
    for i in 0..20 {
        toy.submit(bio(i, Read, (1 << 17) + i * 999, 8));
    }
    let reader = |toy: &Toy, member| {
        let of = toy.log.iter().filter(|a| !a.bio.origin.background);
        of.filter(|a| a.bio.kind == Read && a.member == member)
            .count()
    };
    assert_eq!((reader(&toy, 0), reader(&toy, 1)), (20, 0));
    toy.settle();
    for i in 0..20 {
        toy.submit(bio(i, Read, (1 << 17) + i * 999, 8));
    }
    assert!(reader(&toy, 1) > 0);
}

#[test]
fn a_new_member_that_fails_ends_the_rebuild() {
    let mut toy = Toy::new(
        &in_state(layout("raid5", 4, 64 * 100), "rebuilding 1", &[2]),
        3,
    );
    toy.fill(&[2]);
    for _ in 0..100 {
        toy.step();
    }
    toy.array.fail(toy.now, 2);
    toy.settle();
    assert_eq!(toy.array.resync(), None);
    toy.submit(bio(0, Read, 0, 64 * 30));
    toy.submit(bio(1, Write, 0, 64 * 30));
    toy.settle();
    assert!(toy.ended.iter().all(|end| end.result.is_ok()));
    assert_eq!(toy.check(&[2]), Ok(()));
}

/// No write went to a copy between the resync's reading and writing it.
fn no_lost_update(toy: &Toy) -> Result<(), String> {
    for (w, write) in toy.log.iter().enumerate() {
        if !write.bio.origin.background || write.bio.kind != Write {
            continue;
        }
        let read = toy.log[..w].iter().rposition(|a| {
            a.bio.origin.background && a.bio.kind == Read && a.bio.lba == write.bio.lba
        });
        let between = &toy.log[read.ok_or("written without a read")?..w];
        let lost = between.iter().find(|a| {
            !a.bio.origin.background
                && a.bio.kind == Write
                && a.bio.lba.0 < write.bio.end()
                && write.bio.lba.0 < a.bio.end()
        });
        if let Some(lost) = lost {
            return Err(format!("{lost:?} is overwritten by {write:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_resync_beside_requests_loses_nothing(
        text in 0..12_usize,
        requests in requests(),
        seed in 1..1000_u64,
        local in any::<bool>(),
    ) {
        let (text, state, failed) = [
            ("raid1", "resyncing", &[][..]),
            ("raid1", "rebuilding 1", &[0_u16]),
            ("raid5", "resyncing", &[]),
            ("raid5", "rebuilding 1", &[2]),
            ("raid6", "rebuilding 2", &[0, 2]),
            ("raid6", "rebuilding 1", &[3]),
            ("raid4", "rebuilding 1", &[3]),
            ("raid10", "rebuilding 1", &[1]),
            ("raid10-f2", "rebuilding 1", &[1]),
            ("raid10-o2", "resyncing", &[]),
            ("raid10 2x2", "rebuilding 2", &[0, 3]),
            ("raid01 2x2", "rebuilding 1", &[3]),
        ][text];
        let mut spec = in_state(layout(text, 4, 64 * 9), state, failed);
        spec.era.local_barrier = local;
        spec.stripe_cache = 32;
        let mut toy = Toy::new(&spec, seed);
        toy.fill(if text.starts_with("raid01") { &[2, 3] } else { failed });
        run_all(&mut toy, &requests);
        prop_assert_eq!(toy.array.resync(), None);
        prop_assert_eq!(toy.check(&[]), Ok(()));
        prop_assert_eq!(toy.ended.len(), requests.len());
        prop_assert!(toy.ended.iter().all(|end| end.result.is_ok()));
        if text == "raid1" {
            prop_assert_eq!(no_lost_update(&toy), Ok(()));
        }
    }
}

//! What controllers do to make the members of a volume agree, beside the host and by itself.
mod rates;

use super::*;
use crate::block::Refill;
use raidlab_core::units::Sectors;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Geometry, Layout, Member, Spec};

/// Sectors of each member.
const SIZE: u64 = 40 << 11;

/// A volume of so many small members on a card for each kind of RAID, in a state.
fn small(card: &str, layout: &str, members: u32, state: ArrayState, failed: &[u16]) -> FabricSpec {
    of_size(SIZE, card, (layout, members), state, failed)
}

fn of_size(
    size: u64,
    card: &str,
    (layout, members): (&str, u32),
    state: ArrayState,
    failed: &[u16],
) -> FabricSpec {
    let disk = match card {
        "ITE8212" => "ST340015A",
        "PERC3/Di" => "ST336706LW",
        _ => "ST3250624AS",
    };
    let channels = match card {
        "hardware-raid" => vec![1; members as usize],
        _ => vec![members.div_ceil(2), members / 2],
    };
    let mut spec = on_channels(card, disk, &channels);
    let geometry = Geometry {
        sizes: vec![Sectors(size); members as usize],
        chunk: Sectors(128),
        outer_chunk: None,
    };
    let layout: Spec = layout.parse().expect("a layout");
    spec.volumes.push(VolumeSpec {
        name: "volume".to_owned(),
        disks: (0..members).collect(),
        layout: layout.build(&geometry).expect("a volume"),
        failed: failed.to_vec(),
        state,
        rebuild_rate: None,
    });
    spec
}

fn layout(spec: &FabricSpec) -> &Layout {
    &spec.volumes[0].layout
}

/// Sectors read from and written to each disk.
fn moved(fabric: &Fabric, disks: usize) -> Vec<(u64, u64)> {
    let of = |disk| {
        let counters = fabric.disk(disk).counters();
        (counters.sectors_read, counters.sectors_written)
    };
    (0..disks as u32).map(of).collect()
}

/// Lets it come to its end with nothing else going on: what each disk was asked for.
fn alone(spec: &FabricSpec) -> Vec<(u64, u64)> {
    let mut fabric = Fabric::new(spec, 1).expect("a fabric");
    assert!(fabric.resync().is_some(), "there is something to do");
    assert!(drain(&mut fabric).is_empty());
    assert_eq!(fabric.resync(), None, "it is over");
    moved(&fabric, spec.disks.len())
}

/// A card, layout and members; those that failed, those that are new then, and those that are read whole.
type Case<'c> = (&'c str, &'c str, u32, &'c [u16], &'c [u16], &'c [u16]);

#[test]
fn what_is_new_is_written_once_and_read_from_those_that_have_it() {
    let rebuilding = |card, name, members, failed: &[u16]| {
        small(
            card,
            name,
            members,
            ArrayState::Rebuilding(failed.len() as u16),
            failed,
        )
    };
    // Of a lost half of raid01 all is new.
    let cases: [Case<'_>; 11] = [
        ("hardware-raid", "raid1", 2, &[1], &[1], &[0]),
        ("hardware-raid", "raid1", 3, &[0, 2], &[0, 2], &[1]),
        ("hardware-raid", "raid4", 3, &[2], &[2], &[0, 1]),
        ("hardware-raid", "raid5", 4, &[1], &[1], &[0, 2, 3]),
        ("PERC3/Di", "raid5", 3, &[0], &[0], &[1, 2]),
        ("hardware-raid", "raid6", 5, &[0, 3], &[0, 3], &[1, 2, 4]),
        ("hardware-raid", "raid10", 4, &[2], &[2], &[3]),
        ("hardware-raid", "raid50 2x3", 6, &[4], &[4], &[3, 5]),
        ("hardware-raid", "raid01 2x2", 4, &[1], &[0, 1], &[2, 3]),
        ("ITE8212", "raid1", 2, &[1], &[1], &[0]),
        ("ITE8212", "raid01 2x2", 4, &[3], &[2, 3], &[0, 1]),
    ];
    for (card, name, members, failed, new, sources) in cases {
        let spec = rebuilding(card, name, members, failed);
        let used = layout(&spec).used(Member::new(0)).0;
        for (role, (read, written)) in alone(&spec).into_iter().enumerate() {
            let role = role as u16;
            let told = format!("{card} {name}: member {role}");
            let wanted = if new.contains(&role) { used } else { 0 };
            assert_eq!(written, wanted, "{told} written");
            let wanted = if sources.contains(&role) { used } else { 0 };
            assert_eq!(read, wanted, "{told} read");
        }
    }
    // Where data of raid6 are computed both parities are read, as in any degraded read; of two copies on three disks none is read whole.
    let six = alone(&rebuilding("hardware-raid", "raid6", 5, &[0]));
    let read: u64 = six.iter().map(|disk| disk.0).sum();
    assert_eq!(
        (six[0], read),
        ((0, SIZE), (3 * 4 + 2 * 3) * SIZE / 5),
        "{six:?}"
    );
    let odd = alone(&rebuilding("hardware-raid", "raid10", 3, &[1]));
    let read: u64 = odd.iter().map(|disk| disk.0).sum();
    assert_eq!((odd[1], read), ((0, SIZE), SIZE), "{odd:?}");
    assert!(odd[0].0 > 0 && odd[2].0 > 0, "{odd:?}");
    let far = alone(&rebuilding("hardware-raid", "raid10-f2", 3, &[1]));
    let read: u64 = far.iter().map(|disk| disk.0).sum();
    assert_eq!(far[1], (0, read), "{far:?}");
}

#[test]
fn a_check_reads_all_and_a_first_sync_writes_what_follows_from_the_data() {
    for (card, name, members, parity) in [
        ("hardware-raid", "raid1", 3, 2),
        ("hardware-raid", "raid5", 4, 1),
        ("hardware-raid", "raid6", 6, 2),
        ("hardware-raid", "raid10", 4, 2),
        ("hardware-raid", "raid10-f2", 4, 2),
        ("hardware-raid", "raid50 2x3", 6, 2),
        ("hardware-raid", "raid01 2x2", 4, 2),
        ("ITE8212", "raid1", 2, 1),
    ] {
        let spec = small(card, name, members, ArrayState::Resyncing, &[]);
        let used = layout(&spec).used(Member::new(0)).0;
        let all = alone(&spec);
        assert_eq!(all, vec![(used, 0); members as usize], "{card} {name}");
        let spec = small(card, name, members, ArrayState::InitialSync, &[]);
        let all = alone(&spec);
        let sum = |of: fn(&(u64, u64)) -> u64| all.iter().map(of).sum::<u64>();
        let (data, made) = (u64::from(members) - parity, parity);
        assert_eq!(
            (sum(|d| d.0), sum(|d| d.1)),
            (data * used, made * used),
            "{card} {name}"
        );
    }
    for state in [ArrayState::Clean, ArrayState::Degraded(1)] {
        let spec = small(
            "hardware-raid",
            "raid5",
            3,
            state,
            &[1][..usize::from(state.failures())],
        );
        let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
        assert_eq!((fabric.resync(), fabric.next_event()), (None, None));
        assert!(drain(&mut fabric).is_empty());
    }
}

/// Reads one block after the other, the first `count` of every `step` sectors from `from` on, and lets it end.
fn read(fabric: &mut Fabric, now: Instant, (from, step): (u64, u64), count: u64) -> Instant {
    let (mut now, mut done) = (now, Vec::new());
    for i in 0..count {
        fabric.submit(
            now,
            fabric.ports().len() as u32 - 1,
            bio(i, BlockKind::Read, from + i * step, 8),
        );
        while done.is_empty() {
            now = fabric.next_event().expect("a request is in flight");
            fabric.advance(now, &mut done);
        }
        assert_eq!(done.pop().expect("one").end.result, Ok(()));
    }
    now
}

#[test]
fn what_is_not_there_yet_is_read_from_the_others() {
    for card in ["hardware-raid", "ITE8212"] {
        let mut spec = small(card, "raid1", 2, ArrayState::Rebuilding(1), &[0]);
        spec.volumes[0].rebuild_rate = Some(0);
        let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
        let mut done = Vec::new();
        // Half of it is there.
        while fabric.resync_position().is_some_and(|at| at < SIZE / 2) {
            let next = fabric.next_event().expect("it goes on");
            fabric.advance(next, &mut done);
        }
        fabric.resync_pause();
        let now = Instant(fabric.next_event().map_or(0, |next| next.0) + 1_000_000_000);
        fabric.advance(now, &mut done);
        assert!(fabric.resync_drained());
        let front = fabric.resync_position().expect("it is not over");
        let before = moved(&fabric, 2);
        let now = read(&mut fabric, now, (front + 2048, 500), 60);
        let after = moved(&fabric, 2);
        assert_eq!(
            after[0], before[0],
            "{card}: the new member has nothing there"
        );
        assert!(after[1].0 >= before[1].0 + 60 * 8, "{card}");
        // Before that both have it, and the new one's arm is as near.
        let before = after;
        read(&mut fabric, now, (8, 600), 60);
        let after = moved(&fabric, 2);
        assert!(
            after[0].0 > before[0].0,
            "{card}: it is read where it has been filled"
        );
    }
}

#[test]
fn what_lies_on_a_new_member_of_parity_is_computed_until_it_is_there() {
    let mut spec = small("hardware-raid", "raid5", 3, ArrayState::Rebuilding(1), &[1]);
    spec.volumes[0].rebuild_rate = Some(0);
    let run = |skip: u64| {
        let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
        fabric.resync_pause();
        fabric.resync_skip(skip);
        let at = fabric.resync_position().expect("it is not over");
        assert!(at <= skip && at + 4096 > skip, "{at} of {skip}");
        let before = moved(&fabric, 3);
        read(&mut fabric, Instant(0), (8, 1_280), 40);
        let after = moved(&fabric, 3);
        let read = |disk: usize| after[disk].0 - before[disk].0;
        (read(1), read(0) + read(2))
    };
    let (new, others) = run(0);
    assert_eq!(new, 0);
    let (filled, fewer) = run(SIZE - 2048);
    assert!(filled > 0 && fewer < others, "{filled} {fewer} {others}");
}

#[test]
fn nothing_is_filled_any_more_when_another_disk_dies() {
    let large = 100 * SIZE;
    for card in ["hardware-raid", "ITE8212"] {
        for (dies, lost) in [(0, true), (1, false)] {
            let spec = of_size(large, card, ("raid1", 2), ArrayState::Rebuilding(1), &[1]);
            let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
            let mut done = Vec::new();
            fabric.advance(Instant(50_000_000), &mut done);
            fabric.inject(Instant(50_000_000), dies, Fault::Dead);
            drain(&mut fabric);
            assert_eq!(fabric.resync(), None, "{card}: it has been given up");
            let asked = fabric.refilled().0;
            assert!(
                asked < large / 8,
                "{card}: nothing more is asked for, {asked}"
            );
            let now = Instant(60_000_000_000);
            // Beyond what had been filled.
            fabric.submit(
                now,
                fabric.ports().len() as u32 - 1,
                bio(0, BlockKind::Read, large - 64, 8),
            );
            let ends = drain(&mut fabric);
            assert_eq!(
                ends[0].end.result.is_err(),
                lost,
                "{card}: disk {dies} died"
            );
        }
    }
}

/// When it has come to its end.
fn ends(spec: &FabricSpec) -> f64 {
    let mut fabric = Fabric::new(spec, 1).expect("a fabric");
    let mut now = Instant::ZERO;
    while fabric.resync().is_some() {
        now = fabric.next_event().expect("it goes on");
        fabric.advance(now, &mut Vec::new());
    }
    now.0 as f64 / 1e9
}

#[test]
fn parity_is_computed_at_the_cards_rate() {
    let slow = |layout: &str, members| {
        let spec = small(
            "hardware-raid",
            layout,
            members,
            ArrayState::Rebuilding(1),
            &[0],
        );
        ends(&with_model(spec, |model| {
            model.cache.as_mut().expect("a cache").xor_rate = 20_000_000;
        }))
    };
    // All that is read of three others is computed with.
    let least = 3.0 * SIZE as f64 * 512.0 / 20e6;
    let (mirror, parity) = (slow("raid1", 2), slow("raid5", 4));
    assert!(parity >= least && parity < 1.2 * least, "{parity} {least}");
    assert!(mirror < 0.2 * least, "{mirror}");
}

#[test]
fn a_card_without_a_cache_asks_for_no_more_than_its_commands_take() {
    let spec = small("ITE8212", "raid1", 2, ArrayState::Rebuilding(1), &[1]);
    let spec = with_model(spec, |model| model.background.run = 2048);
    let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
    drain(&mut fabric);
    let (read, written) = (fabric.disk(0).counters(), fabric.disk(1).counters());
    assert_eq!((read.reads, written.writes), (SIZE / 256, SIZE / 256));
}

#[test]
fn what_cannot_be_read_is_passed_over() {
    for card in ["hardware-raid", "ITE8212"] {
        let spec = small(card, "raid1", 2, ArrayState::Rebuilding(1), &[1]);
        let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
        let fault = Fault::Unreadable {
            lba: SIZE / 2,
            sectors: 8,
            retries: 2,
        };
        fabric.inject(Instant::ZERO, 0, fault);
        drain(&mut fabric);
        assert_eq!(fabric.resync(), None);
        let (_, written) = moved(&fabric, 2)[1];
        assert!(written < SIZE && written + 4096 > SIZE, "{card}: {written}");
    }
}

#[test]
fn it_can_be_held_put_ahead_and_let_go() {
    for (name, members) in [("raid1", 2), ("raid5", 4), ("raid10", 4), ("raid50 2x3", 6)] {
        let spec = small(
            "hardware-raid",
            name,
            members,
            ArrayState::Rebuilding(1),
            &[1],
        );
        let mut fabric = Fabric::new(&spec, 1).expect("a fabric");
        let mut done = Vec::new();
        fabric.advance(Instant(100_000_000), &mut done);
        fabric.resync_pause();
        drain(&mut fabric);
        assert!(
            fabric.resync_drained() && fabric.next_event().is_none(),
            "{name}"
        );
        let at = fabric.resync_position().expect("it is not over");
        assert!(at > 0 && at < SIZE / 2, "{name}: {at}");
        let (_, before) = moved(&fabric, members as usize)[1];
        assert_eq!(before, at, "{name}: what was begun has ended");
        // Somewhere within a group.
        fabric.resync_skip(SIZE * 3 / 4 + 700);
        let skipped = fabric.resync_position().expect("it is not over");
        assert!(
            skipped <= SIZE * 3 / 4
                && skipped + 4096 > SIZE * 3 / 4
                && skipped.is_multiple_of(2048),
            "{name}: {skipped}"
        );
        assert_eq!(
            fabric.resync_end(),
            Some(layout(&spec).used(Member::new(0)).0),
            "{name}"
        );
        assert_eq!(fabric.refilled().1, Refill::Rebuild);
        // Hours later it begins then, and not when it was held.
        let later = Instant(10_000_000_000_000);
        fabric.resync_resume(later);
        assert_eq!(fabric.next_event(), Some(later), "{name}");
        drain(&mut fabric);
        let (_, after) = moved(&fabric, members as usize)[1];
        let end = layout(&spec).used(Member::new(0)).0;
        assert_eq!(
            (fabric.resync(), after - before),
            (None, end - skipped),
            "{name}"
        );
    }
}

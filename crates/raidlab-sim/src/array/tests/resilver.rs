//! What a resilver reads and writes, in which order, and how it stands back.
use super::*;
use crate::block::Extent;
use proptest::prelude::*;
use raidlab_core::units::Bytes;
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{PoolSpec, Raidz, ZfsMirror, zfs};
use std::ops::ControlFlow;

/// Sectors of labels at the beginning of a vdev.
const START: u64 = zfs::START / 512;
const WALK: Kernel = Kernel::Linux(4, 2, 0);
const SORTED: Kernel = Kernel::Linux(6, 1, 0);

/// A pool of these members with one or more that are new.
fn rebuilding(text: &str, members: usize, new: &[u16], kernel: Kernel) -> Array {
    let pool: PoolSpec = text.parse().unwrap();
    let pool = pool.build(&vec![Bytes::gib(1); members], 12).unwrap();
    let mut spec = ArraySpec::new(ArrayKind::Pool(pool));
    spec.state = ArrayState::Rebuilding(new.len() as u16);
    spec.failed = new.to_vec();
    spec.era = Era::of(kernel);
    Array::new(&spec).unwrap()
}

fn extent(start: u64, len: u64, unit: u32) -> Extent {
    Extent {
        start,
        len,
        unit,
        walked: false,
    }
}

/// Begins, and waits to be let.
fn waiting(array: &mut Array, extents: Vec<Extent>) {
    let begun = array.begin_resilver(Instant::ZERO, extents, &mut || ControlFlow::Continue(()));
    assert!(begun.is_continue());
}

fn begin(array: &mut Array, extents: Vec<Extent>) {
    waiting(array, extents);
    array.let_fill(Instant::ZERO, true);
}

/// What a resilver asks for, each request ending at once: kind, member, sector, sectors. It must come to its end.
fn all(array: &mut Array, extents: &[Extent]) -> Vec<(BlockKind, u16, u64, u32)> {
    assert!(array.awaits_resilver());
    begin(array, extents.to_vec());
    let (mut asked, mut wanted) = (Vec::new(), Vec::new());
    loop {
        array.take(&mut wanted);
        if wanted.is_empty() && array.resilvers() {
            // The walk is over.
            assert!(array.fill_rests());
            array.let_fill(Instant::ZERO, true);
            array.take(&mut wanted);
        }
        if wanted.is_empty() {
            break;
        }
        for MemberBio { member, bio } in wanted.drain(..) {
            assert!(bio.origin.background);
            asked.push((bio.kind, member, bio.lba.0, bio.sectors));
            array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
        }
    }
    assert_eq!(array.resync(), None, "it has ended");
    assert_eq!(array.resilvered(), Some(Instant::ZERO));
    assert_eq!(array.in_flight(), 0);
    asked
}

fn of(asked: &[(BlockKind, u16, u64, u32)], wanted: BlockKind) -> Vec<(u16, u64, u32)> {
    let of = asked.iter().filter(|one| one.0 == wanted);
    of.map(|one| (one.1, one.2, one.3)).collect()
}

#[test]
fn only_what_is_allocated_in_the_vdev_with_the_new_disk_is_copied_to_it() {
    for kernel in [WALK, SORTED] {
        let mut array = rebuilding("zfs-mirror 2x2", 4, &[2], kernel);
        let half = array.sectors() / 2;
        let extents = [
            extent(START, 2048, 256),
            extent(half + START + 512, 600, 256),
        ];
        let asked = all(&mut array, &extents);
        let blocks = [(START + 512, 256), (START + 768, 256), (START + 1024, 88)];
        let on = |member: u16| blocks.map(|(at, len)| (member, at, len)).to_vec();
        assert_eq!(of(&asked, BlockKind::Read), on(3), "{kernel}");
        assert_eq!(of(&asked, BlockKind::Write), on(2), "{kernel}");
    }
}

#[test]
fn a_pool_with_nothing_in_it_is_resilvered_at_once() {
    let mut array = rebuilding("raidz2", 5, &[1, 3], SORTED);
    assert_eq!(all(&mut array, &[]), []);
}

proptest! {
    /// RAID-Z: what the new child has of each block is written, once; all that the others have of it is read, and blocks of
    /// which it has nothing are left alone.
    #[test]
    fn columns_of_the_new_child_are_made_of_all_the_others(
        blocks in prop::collection::vec((1_u64..33, 0_u64..3), 1..30), parity in 1_usize..3, children in 4_usize..7, role: u16, old: bool,
    ) {
        let role = role % children as u16;
        let raidz = Raidz::new(&vec![Bytes::gib(1); children], parity, 12).unwrap();
        let (mut at, mut extents) = (0, Vec::new());
        for (units, gap) in blocks {
            let size = Bytes(units * 4096);
            extents.push((at, size));
            at += raidz.allocated(size).0 + gap * raidz.allocated(Bytes(4096)).0;
        }
        let mut array = rebuilding(&format!("raidz{parity}"), children, &[role], if old { WALK } else { SORTED });
        let given: Vec<Extent> = extents.iter().map(|(at, size)| extent(START + at / 512, size.0 / 512, 256)).collect();
        let asked = all(&mut array, &given);
        let columns = |own: bool| {
            let of = extents.iter().flat_map(|(at, size)| {
                let columns = raidz.columns(Bytes(*at), *size);
                let touched = columns.iter().any(|c| c.child.0 == role);
                columns.into_iter().filter(move |c| touched && (c.child.0 == role) == own)
            });
            let mut all: Vec<_> = of.map(|c| (c.child.0, c.at.0 / 512, (c.size.0 / 512) as u32)).collect();
            all.sort_unstable();
            all
        };
        let sorted = |mut all: Vec<_>| { all.sort_unstable(); all };
        prop_assert_eq!(sorted(of(&asked, BlockKind::Write)), columns(true));
        prop_assert_eq!(sorted(of(&asked, BlockKind::Read)), columns(false));
    }
}

#[test]
fn before_0_8_blocks_go_as_the_walk_meets_them_and_since_by_place() {
    let extents = [
        extent(START + 900_000, 512, 256),
        extent(START + 3000, 256, 256),
        extent(START + 500_000, 1024, 256),
        extent(START, 256, 256),
    ];
    let order = |kernel| {
        let mut array = rebuilding("zfs-mirror 1x2", 2, &[0], kernel);
        let asked = all(&mut array, &extents);
        let reads = of(&asked, BlockKind::Read);
        reads.iter().map(|read| read.1 - START).collect::<Vec<_>>()
    };
    let walked = [
        900_000, 900_256, 3000, 500_000, 500_256, 500_512, 500_768, 0,
    ];
    assert_eq!(order(WALK), walked);
    let sorted = [
        0, 3000, 500_000, 500_256, 500_512, 500_768, 900_000, 900_256,
    ];
    assert_eq!(order(SORTED), sorted);
}

#[test]
fn since_0_8_metadata_is_read_first_and_resilvered_as_all_else() {
    let mut array = rebuilding("zfs-mirror 1x2", 2, &[1], SORTED);
    let metadata = Extent {
        walked: true,
        ..extent(START + 512, 8, 8)
    };
    let asked = all(&mut array, &[metadata, extent(START, 256, 256)]);
    let at = |kind| {
        of(&asked, kind)
            .iter()
            .map(|one| one.1 - START)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(BlockKind::Read), [512, 0, 512]);
    assert_eq!(at(BlockKind::Write), [0, 512]);
}

/// What was there before the new disk came is not read from it until all is; what came later is.
#[test]
fn old_blocks_are_read_from_old_disks_until_all_is_done() {
    let mirror = ZfsMirror::new(&[Bytes::gib(1); 2], 12).unwrap();
    let mut spec = ArraySpec::new(ArrayKind::Zfs(mirror));
    (spec.state, spec.failed) = (ArrayState::Rebuilding(1), vec![0]);
    let mut array = Array::new(&spec).unwrap();
    begin(&mut array, vec![extent(8192, 1024, 256)]);
    let mut held = Vec::new();
    array.take(&mut held);
    assert!(
        held.iter()
            .all(|one| one.member == 1 && one.bio.kind == BlockKind::Read)
    );
    // Sixteen places by turns, so that equals would be told apart.
    let members = |array: &mut Array, from: u64| {
        let mut members: Vec<u16> = Vec::new();
        for turn in 0..16 {
            array.submit(
                Instant::ZERO,
                bio(1, BlockKind::Read, from + turn * 4096 % 512, 8),
            );
            let mut wanted = Vec::new();
            array.take(&mut wanted);
            for MemberBio { member, bio } in wanted {
                members.push(member);
                array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
            }
        }
        array.advance(Instant::ZERO, &mut Vec::new());
        members.sort_unstable();
        members.dedup();
        members
    };
    assert_eq!(members(&mut array, 8192), [1]);
    assert_eq!(members(&mut array, 500_000), [0]);
    while !held.is_empty() {
        for MemberBio { member, bio } in std::mem::take(&mut held) {
            array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
        }
        array.take(&mut held);
    }
    assert_eq!(array.resync(), None);
    assert!(members(&mut array, 8192).contains(&0));
}

/// Before 0.8: two ticks of 4 ms for each block while others ask, and none 200 ms after them. Since, blocks are in the disks'
/// queues.
#[test]
fn an_old_resilver_stands_back_by_the_clock() {
    let begun = |kernel| {
        let mut array = rebuilding("zfs-mirror 2x2", 4, &[0], kernel);
        begin(&mut array, vec![extent(START, 256 * 200, 256)]);
        let mut wanted = Vec::new();
        array.take(&mut wanted);
        (array, wanted)
    };
    let (_, wanted) = begun(SORTED);
    assert_eq!(wanted.len(), 32, "4 MiB for a mirror");
    let (mut array, wanted) = begun(WALK);
    assert_eq!(wanted.len(), 64, "32 for each of two vdevs");
    let end = |array: &mut Array, now: Instant, wanted: Vec<MemberBio>| {
        for MemberBio { member, bio } in wanted {
            array.member_ended(now, member, bio.id, Ok(()));
        }
        let mut more = Vec::new();
        array.take(&mut more);
        more
    };
    // Somebody reads of the other vdev.
    array.submit(
        Instant::ZERO,
        bio(1, BlockKind::Read, array.sectors() - 100_000, 8),
    );
    let mut other = Vec::new();
    array.take(&mut other);
    let writes = end(&mut array, Instant::ZERO, wanted);
    assert!(writes.iter().all(|one| one.bio.kind == BlockKind::Write));
    assert_eq!(writes.len(), 64);
    end(&mut array, Instant::ZERO, writes);
    let (mut now, mut times) = (Instant::ZERO, Vec::new());
    while times.len() < 40 {
        now = array.next_event().expect("it goes on by itself").max(now);
        array.advance(now, &mut Vec::new());
        let mut wanted = Vec::new();
        array.take(&mut wanted);
        times.extend(wanted.iter().map(|_| now.0 / 1_000_000));
    }
    let slow: Vec<u64> = (1..26).map(|turn| turn * 8).collect();
    assert_eq!(times[..25], slow);
    assert!(times[25..].iter().all(|at| *at == 208), "{times:?}");
}

/// Nothing goes out before it is let, and nothing more after. The blocks that a walk found are for the next turn.
#[test]
fn a_resilver_that_is_let_goes_by_turns() {
    let mut array = rebuilding("zfs-mirror 1x2", 2, &[1], SORTED);
    assert!(!array.resilvers(), "there is nothing yet");
    let metadata = Extent {
        walked: true,
        ..extent(START + 512 * 256, 8, 8)
    };
    waiting(&mut array, vec![extent(START, 512 * 256, 256), metadata]);
    let take = |array: &mut Array| {
        let mut wanted = Vec::new();
        array.take(&mut wanted);
        wanted
    };
    let end = |array: &mut Array, wanted: Vec<MemberBio>| {
        for MemberBio { member, bio } in wanted {
            array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
        }
    };
    assert!(array.resilvers() && array.fill_rests());
    assert_eq!(take(&mut array), []);
    // The walk has a turn of its own.
    array.let_fill(Instant::ZERO, true);
    assert!(!array.fill_rests());
    let read = take(&mut array);
    assert_eq!(read.len(), 1);
    end(&mut array, read);
    assert_eq!(take(&mut array), []);
    assert!(array.resilvers() && array.fill_rests());
    array.let_fill(Instant::ZERO, true);
    let read = take(&mut array);
    assert_eq!(read.len(), 32, "4 MiB");
    array.let_fill(Instant::ZERO, false);
    // What has been read is written.
    end(&mut array, read);
    let written = take(&mut array);
    assert!(written.iter().all(|one| one.bio.kind == BlockKind::Write));
    assert_eq!(written.len(), 32);
    assert!(!array.fill_rests());
    end(&mut array, written);
    assert_eq!(take(&mut array), []);
    assert!(array.resilvers() && array.fill_rests());
    // And on to the end.
    array.let_fill(Instant::ZERO, true);
    loop {
        let wanted = take(&mut array);
        if wanted.is_empty() {
            break;
        }
        end(&mut array, wanted);
    }
    assert!(!array.resilvers() && array.fill_rests());
    assert_eq!(array.resync(), None);
}

#[test]
fn a_resilver_that_waits_by_the_clock_wakes_no_more_when_its_turn_is_over() {
    let mut array = rebuilding("zfs-mirror 2x2", 4, &[0], WALK);
    begin(&mut array, vec![extent(START, 256 * 200, 256)]);
    let mut wanted = Vec::new();
    array.take(&mut wanted);
    let last = array.sectors() - 100_000;
    array.submit(Instant::ZERO, bio(1, BlockKind::Read, last, 8));
    // One block of 64 has been copied; the next waits.
    for _ in 0..2 {
        let MemberBio { member, bio } = wanted[0];
        array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
        wanted.clear();
        array.take(&mut wanted);
        wanted.retain(|one| one.bio.kind == BlockKind::Write);
    }
    assert_eq!(array.next_event(), Some(Instant(8_000_000)));
    array.let_fill(Instant::ZERO, false);
    assert_eq!(array.next_event(), None);
    assert!(!array.fill_rests(), "63 are under way");
}

//! Parity arrays: what a write costs, what the stripe cache saves.
use super::content::{parity, requests, run_all};
use super::toy::Toy;
use super::*;
use crate::array::Era;
use BlockKind::{Read, Write};
use proptest::prelude::*;
use raidlab_layout::{
    Layout, Member, MemberSet, ParityAlgorithm, Plan, Rmw, Run, Survival, WritePolicy,
};

pub(super) fn raid5(members: usize, chunk: u64) -> ArraySpec {
    let algorithm = ParityAlgorithm::default();
    ArraySpec::new(ArrayKind::Md(
        Layout::raid5(&sizes(members, 1 << 20), Sectors(chunk), algorithm).unwrap(),
    ))
}

fn raid6(members: usize, chunk: u64) -> ArraySpec {
    let algorithm = ParityAlgorithm::default();
    ArraySpec::new(ArrayKind::Md(
        Layout::raid6(&sizes(members, 1 << 20), Sectors(chunk), algorithm).unwrap(),
    ))
}

/// Pages of members that are read and written for one write.
fn cost(spec: &ArraySpec, lba: u64, sectors: u32) -> (u32, u32) {
    let mut toy = Toy::new(spec, 0);
    toy.submit(bio(0, Write, lba, sectors));
    toy.settle();
    assert!(toy.ended[0].result.is_ok());
    let pages = |kind| {
        let of = toy.log.iter().filter(|asked| asked.bio.kind == kind);
        of.map(|asked| asked.bio.sectors).sum::<u32>() / 8
    };
    (pages(Read), pages(Write))
}

/// A block whose write has not begun keeps later writes of it waiting: each is a round of its own. They were all in one.
#[test]
fn writes_of_one_block_come_one_after_the_other() {
    let mut toy = Toy::new(&raid5(5, 128), 0);
    for id in 0..4 {
        toy.submit(bio(id, Write, 0, 8));
    }
    toy.unplug();
    toy.settle();
    assert_eq!(toy.check(&[]), Ok(()));
    // The old block and parity are known after the first.
    assert_eq!((toy.count(Read), toy.count(Write)), (2, 8));
    let ends: Vec<Instant> = toy.ended.iter().map(|end| end.at).collect();
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
}

#[test]
fn a_small_write_is_two_reads_and_two_writes() {
    assert_eq!(cost(&raid5(9, 128), 8, 8), (2, 2));
    // With three members the rest of the stripe is one block: reconstruct.
    assert_eq!(cost(&raid5(3, 128), 8, 8), (1, 2));
    assert_eq!(cost(&raid6(9, 128), 8, 8), (3, 3));
    // Of six members a raid6 has as many blocks to read either way.
    assert_eq!(cost(&raid6(6, 128), 8, 8), (3, 3));
    let mut old = raid6(9, 128);
    old.era.write_policy = WritePolicy::LINUX_BEFORE_4_1;
    assert_eq!(cost(&old, 8, 8), (6, 3));
    let mut never = raid5(9, 128);
    never.era.write_policy.rmw = Rmw::Never;
    assert_eq!(cost(&never, 8, 8), (7, 2));
}

#[test]
fn a_whole_stripe_is_written_without_a_read() {
    assert_eq!(cost(&raid5(5, 128), 512, 512), (0, 5 * 16));
    assert_eq!(cost(&raid6(6, 128), 1024, 512), (0, 6 * 16));
}

#[test]
fn small_sequential_writes_become_whole_stripes_before_the_plug_is_released() {
    let mut toy = Toy::new(&raid5(5, 128), 0);
    for i in 0..512 / 8 * 2 {
        toy.submit(bio(i, Write, i * 8, 8));
    }
    toy.settle();
    assert_eq!(toy.count(Read), 0);
    assert_eq!(toy.ended.len(), 128);
    let sectors: u32 = toy.log.iter().map(|asked| asked.bio.sectors).sum();
    assert_eq!(sectors, 2 * 5 * 128);
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn without_a_release_the_plug_holds_for_three_milliseconds() {
    let mut toy = Toy::new(&raid5(5, 128), 0);
    toy.submit(bio(0, Write, 0, 8));
    assert!(toy.log.is_empty());
    assert_eq!(toy.array.next_event(), Some(Instant(3_000_000)));
    toy.step();
    assert_eq!(toy.count(Read), 2);
}

/// Member reads of a long sequential write-back of whole stripes, submitted at once.
fn reads_of_a_stream(spec: &ArraySpec, sectors: u32) -> usize {
    let mut toy = Toy::new(spec, 0);
    let each = sectors / 16;
    for i in 0..16 {
        let mut bio = bio(i, Write, i * u64::from(each), each);
        bio.origin.sync = false;
        toy.submit(bio);
    }
    toy.settle();
    assert_eq!(toy.check(&[]), Ok(()));
    toy.count(Read)
}

#[test]
fn whoever_has_waited_for_room_is_held_back_again() {
    // 43 stripes of 3 data chunks, a cache of 16, in bios that do not end where stripes do. What a bio
    // leaves of a stripe is completed by the next one; where the cache fills up within a chunk, a few
    // rows are read.
    let mut spec = raid5(4, 128);
    for kernel in ["2.6.21", "5.10", "6.1"] {
        spec.era = Era::of(kernel.parse().unwrap());
        spec.era.cache_grows = false;
        let reads = reads_of_a_stream(&spec, 43 * 384);
        assert!(reads < 8, "{kernel}: {reads}");
    }
}

#[test]
fn a_cache_of_two_stripes_reads_what_it_has_no_room_to_complete() {
    // Chunks of 128 rows: of a third stripe only some rows of the first chunk have room.
    let mut spec = raid5(4, 1024);
    spec.era.cache_grows = false;
    assert!(reads_of_a_stream(&spec, 12 * 3 * 1024) > 0);
    spec.stripe_cache = 4096;
    assert_eq!(reads_of_a_stream(&spec, 12 * 3 * 1024), 0);
}

#[test]
fn the_cache_of_later_kernels_grows_when_it_is_too_small() {
    let rows = |grows| {
        let mut spec = raid5(4, 128);
        (spec.stripe_cache, spec.era.cache_grows) = (32, grows);
        let mut toy = Toy::new(&spec, 0);
        for i in 0..400 {
            toy.submit(bio(i, Write, i * 384 * 5, 8));
        }
        let at_once = toy.log.len();
        toy.settle();
        for i in 0..400 {
            toy.submit(bio(i, Write, (i + 600) * 384 * 5, 8));
        }
        toy.unplug();
        (at_once, toy.log.len() - 800 - 800)
    };
    let (first, later) = rows(false);
    assert_eq!(first, later);
    let (first, later) = rows(true);
    assert!(later > first, "{first} {later}");
}

#[test]
fn degraded_arrays_of_old_kernels_read_around_the_cache_where_the_member_is_there() {
    let reads = |kernel: &str| {
        let mut spec = raid5(4, 128);
        spec.era = Era::of(kernel.parse().unwrap());
        (spec.state, spec.failed) = ("degraded 1".parse().unwrap(), vec![1]);
        let mut toy = Toy::new(&spec, 0);
        // A stripe: one of its three chunks is on the member that is gone.
        toy.submit(bio(0, Read, 0, 384));
        toy.settle();
        let sectors: u32 = toy.log.iter().map(|asked| asked.bio.sectors).sum();
        sectors / 128
    };
    // Both chunks that are there, and once more, with the parity, for the one that is not.
    assert_eq!(reads("2.6.21"), 5);
    assert_eq!(reads("6.1"), 3);
}

/// Reads three stripes at once of a degraded array whose cache holds two: how that ended, and the sectors asked of members
/// for it and for a page of the third stripe that somebody waits for.
fn read_beyond_the_cache(kernel: &str, ahead: bool) -> (Result<(), DiskError>, [u32; 2]) {
    let mut spec = raid5(4, 128);
    spec.era = Era::of(kernel.parse().unwrap());
    (spec.stripe_cache, spec.era.cache_grows) = (32, false);
    (spec.state, spec.failed) = ("degraded 1".parse().unwrap(), vec![1]);
    let mut toy = Toy::new(&spec, 0);
    let mut large = bio(0, Read, 0, 3 * 384);
    large.origin.ahead = ahead;
    toy.submit(large);
    let sum = |toy: &Toy| toy.log.iter().map(|asked| asked.bio.sectors).sum::<u32>();
    let at_once = sum(&toy);
    toy.settle();
    let settled = sum(&toy);
    toy.submit(bio(1, Read, 2 * 384, 8));
    toy.settle();
    assert!(toy.ended[1].result.is_ok());
    (toy.ended[0].result, [at_once, sum(&toy) - settled])
}

#[test]
fn read_ahead_that_finds_no_room_in_the_cache_fails_there() {
    // Two stripes of the three members that are left are asked for either way.
    let at_once = 2 * 3 * 128;
    for (kernel, ahead) in [("6.1", false), ("4.18", true)] {
        let whole = (Ok(()), [at_once, 0]);
        assert_eq!(read_beyond_the_cache(kernel, ahead), whole, "{kernel}");
    }
    for kernel in ["4.19", "6.1"] {
        let (result, [asked, later]) = read_beyond_the_cache(kernel, true);
        assert_eq!(result, Err(DiskError::Unreadable), "{kernel}");
        // Of the third stripe nothing was.
        assert!(asked == at_once && later > 0, "{kernel}: {asked} {later}");
    }
}

#[test]
fn a_write_that_somebody_waits_for_reads_at_once_whoever_else_does() {
    let reads = |kernel: &str, sync: bool| {
        let mut spec = raid5(5, 128);
        spec.era = Era::of(kernel.parse().unwrap());
        let mut toy = Toy::new(&spec, 0);
        for i in 0..3 {
            let mut bio = bio(i, Write, i * 512 * 7, 8);
            bio.origin.sync = sync;
            toy.submit(bio);
            toy.unplug();
        }
        let at_once = toy.count(Read);
        toy.settle();
        assert_eq!((toy.count(Read), toy.check(&[])), (6, Ok(())));
        at_once
    };
    assert_eq!(reads("6.1", true), 6);
    assert_eq!(reads("2.6.36", true), 2);
    assert_eq!(reads("6.1", false), 2);
}

#[test]
fn a_request_comes_with_all_its_blocks_of_a_row_since_6_0() {
    // Two chunks of three, 128 rows each, in a cache that has room for 32 of them.
    let asked = |kernel: &str, paged: bool| {
        let mut spec = raid5(4, 1024);
        spec.era = Era::of(kernel.parse().unwrap());
        (spec.stripe_cache, spec.era.cache_grows) = (32, false);
        let mut toy = Toy::new(&spec, 0);
        let mut bio = bio(0, Write, 0, 3 * 1024);
        bio.origin.paged = paged;
        toy.submit(bio);
        toy.settle();
        assert_eq!(toy.check(&[]), Ok(()));
        toy.count(Read)
    };
    assert_eq!(asked("6.1", false), 0);
    assert!(asked("5.10", false) > 0);
    // What comes page by page does not.
    assert_eq!(asked("6.1", true), asked("5.10", false));
}

#[test]
fn what_is_in_the_cache_is_not_read_again() {
    let mut toy = Toy::new(&raid5(9, 128), 0);
    toy.submit(bio(0, Write, 8, 8));
    toy.settle();
    toy.submit(bio(1, Write, 8, 8));
    toy.settle();
    // Old data and parity are known from the first.
    assert_eq!((toy.count(Read), toy.count(Write)), (2, 4));
    // Another block of the same row: its old content is read, the parity is known.
    toy.submit(bio(2, Write, 128 + 8, 8));
    toy.settle();
    assert_eq!((toy.count(Read), toy.count(Write)), (3, 6));
    // After as many other rows as the cache has, all is forgotten.
    for i in 0..256 {
        toy.submit(bio(3 + i, Write, (i + 2) * 1024, 8));
        toy.settle();
    }
    let before = toy.count(Read);
    toy.submit(bio(999, Write, 8, 8));
    toy.settle();
    assert_eq!(toy.count(Read), before + 2);
}

#[test]
fn more_rows_than_the_cache_has_are_never_busy() {
    let mut spec = raid5(5, 128);
    spec.stripe_cache = 32;
    let mut toy = Toy::new(&spec, 3);
    for i in 0..200 {
        toy.submit(bio(i, Write, i * 512 * 3, 8));
    }
    // Read ahead of writes at most: two blocks of each row.
    assert!(toy.log.len() <= 64, "{} requests", toy.log.len());
    toy.settle();
    assert_eq!((toy.count(Read), toy.count(Write)), (400, 400));
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn old_kernels_read_through_the_cache() {
    let mut spec = raid5(5, 128);
    spec.era.aligned_reads = false;
    let mut toy = Toy::new(&spec, 0);
    toy.submit(bio(0, Read, 0, 8));
    toy.settle();
    toy.submit(bio(1, Read, 0, 8));
    toy.settle();
    assert_eq!((toy.count(Read), toy.ended.len()), (1, 2));
    let mut toy = Toy::new(&raid5(5, 128), 0);
    toy.submit(bio(0, Read, 1, 3));
    toy.submit(bio(1, Read, 1, 3));
    toy.settle();
    assert_eq!((toy.count(Read), toy.log[0].bio.sectors), (2, 3));
}

#[test]
fn a_member_that_fails_under_load_costs_no_data() {
    let mut toy = Toy::new(&raid6(6, 128), 5);
    for i in 0..40 {
        toy.submit(bio(i, if i % 2 == 0 { Write } else { Read }, i * 200, 24));
    }
    toy.broken = vec![2];
    toy.settle();
    toy.broken = vec![2, 4];
    for i in 40..80 {
        toy.submit(bio(i, if i % 2 == 0 { Write } else { Read }, i * 100, 24));
    }
    toy.settle();
    assert!(toy.ended.iter().all(|end| end.result.is_ok()));
    assert_eq!(toy.check(&[2, 4]), Ok(()));
    toy.broken = vec![1, 2, 4];
    toy.submit(bio(80, Read, 0, 2048));
    toy.settle();
    toy.submit(bio(81, Write, 0, 8));
    toy.settle();
    assert!(toy.ended[80..].iter().all(|end| end.result.is_err()));
}

/// Up to two roles that the layout survives.
fn failures(layout: &Layout, draw: (u16, u16, usize)) -> MemberSet {
    let n = layout.members() as u16;
    let roles = [draw.0 % n, draw.1 % n];
    let failed: MemberSet = roles[..draw.2].iter().map(|r| Member(*r)).collect();
    if layout.survives(failed) == Survival::Lost {
        MemberSet::one(Member(roles[0]))
    } else {
        failed
    }
}

fn degraded(layout: Layout, failed: MemberSet) -> ArraySpec {
    let mut spec = ArraySpec::new(ArrayKind::Md(layout));
    spec.failed = failed.iter().map(|m| m.0).collect();
    if !failed.is_empty() {
        spec.state = format!("degraded {}", failed.len()).parse().unwrap();
    }
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn member_blocks_are_those_of_the_plan(
        layout in parity(),
        draw in (any::<u16>(), any::<u16>(), 0..3_usize),
        policy in (0..3_usize, any::<bool>()),
        (write, from, len) in (any::<bool>(), any::<u64>(), 1..400_u64),
    ) {
        let failed = failures(&layout, draw);
        let rmw = [Rmw::Never, Rmw::FewerReads, Rmw::Prefer][policy.0];
        let policy = WritePolicy { rmw, raid6_rmw: policy.1 };
        let from = from % layout.capacity().0;
        let len = len.min(layout.capacity().0 - from);
        let mut spec = degraded(layout.clone(), failed);
        spec.era.write_policy = policy;
        let mut plan = Plan::new();
        if write {
            layout.plan_write(Run::new(from, len), failed, policy, &mut plan).unwrap();
        } else {
            layout.map_read(Run::new(from, len), failed, &mut plan).unwrap();
        }
        let mut toy = Toy::new(&spec, 0);
        toy.submit(bio(0, if write { Write } else { Read }, from, len as u32));
        toy.settle();
        prop_assert!(toy.ended[0].result.is_ok());
        let blocks = |kind: BlockKind| {
            let mut all: Vec<(u16, u64)> = toy.log.iter().filter(|a| a.bio.kind == kind)
                .flat_map(|a| (a.bio.lba.0..a.bio.end()).map(|s| (a.member, s))).collect();
            all.sort_unstable();
            all
        };
        let planned = |kind| {
            let mut all: Vec<(u16, u64)> = plan.ios().filter(|io| io.kind == kind)
                .flat_map(|io| (io.run.start.0..io.run.end()).map(|s| (io.member.0, s))).collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(blocks(Read), planned(raidlab_layout::IoKind::Read));
        prop_assert_eq!(blocks(Write), planned(raidlab_layout::IoKind::Write));
    }

    #[test]
    fn degraded_arrays_keep_data_and_leave_failed_members_alone(
        layout in parity(),
        draw in (any::<u16>(), any::<u16>(), 1..3_usize),
        requests in requests(),
        seed in 1..1000_u64,
    ) {
        let failed = failures(&layout, draw);
        let mut toy = Toy::new(&degraded(layout, failed), seed);
        run_all(&mut toy, &requests);
        let without: Vec<u16> = failed.iter().map(|m| m.0).collect();
        prop_assert_eq!(toy.check(&without), Ok(()));
        prop_assert!(toy.ended.iter().all(|end| end.result.is_ok()));
        prop_assert!(toy.log.iter().all(|asked| !without.contains(&asked.member)));
    }
}

//! Which copy is read.
use super::toy::Toy;
use super::*;
use crate::block::Marked;
use BlockKind::{Flush, Read, Write};
use raidlab_experiment::kernel::Kernel;
use raidlab_layout::{Copies, Layout, Raid0Order};

fn raid1(members: usize) -> ArraySpec {
    ArraySpec::new(ArrayKind::Md(
        Layout::raid1(&sizes(members, 1 << 30)).unwrap(),
    ))
}

/// Requests that each member got.
fn spread(toy: &Toy, members: usize) -> Vec<usize> {
    let of = |m: usize| {
        toy.log
            .iter()
            .filter(|a| usize::from(a.member) == m)
            .count()
    };
    (0..members).map(of).collect()
}

#[test]
fn two_sequential_readers_stay_on_disks_of_their_own() {
    for run_per_disk in [true, false] {
        let mut spec = raid1(2);
        spec.era.run_per_disk = run_per_disk;
        let mut toy = Toy::new(&spec, 0);
        for round in 0..100 {
            toy.submit(bio(2 * round, Read, round * 256, 256));
            toy.submit(bio(2 * round + 1, Read, (1 << 29) + round * 256, 256));
            toy.settle();
        }
        for far in [false, true] {
            let mut members: Vec<u16> = toy
                .log
                .iter()
                .filter(|a| (a.bio.lba.0 >= 1 << 29) == far)
                .map(|a| a.member)
                .collect();
            members.dedup();
            assert_eq!(members.len(), 1, "a reader changed disks");
        }
        assert_eq!(spread(&toy, 2), [100, 100]);
    }
}

#[test]
fn one_sequential_reader_stays_on_one_disk_and_writes_go_to_all() {
    let mut toy = Toy::new(&raid1(3), 0);
    for i in 0..50 {
        toy.submit(bio(i, Read, 4096 + i * 128, 128));
    }
    toy.settle();
    let mut counts = spread(&toy, 3);
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 50]);
    toy.submit(bio(90, Write, 8, 8));
    toy.submit(bio(91, Flush, 0, 0));
    toy.settle();
    assert_eq!((toy.count(Write), toy.count(Flush)), (3, 3));
}

#[test]
fn disks_that_do_not_turn_share_random_reads_by_their_load() {
    let mut spec = raid1(4);
    spec.rotational = vec![false; 4];
    let mut toy = Toy::new(&spec, 0);
    for i in 0..64 {
        toy.submit(bio(i, Read, i * 7919 % 4096 * 8, 8));
    }
    assert_eq!(spread(&toy, 4), [16; 4]);
    toy.settle();
}

#[test]
fn the_nearest_head_reads() {
    let mut toy = Toy::new(&raid1(2), 0);
    // Both busy, one head near the start and one near the end.
    toy.submit(bio(0, Read, 1000, 8));
    toy.submit(bio(1, Read, 1 << 29, 8));
    toy.settle();
    toy.submit(bio(2, Write, 4, 1));
    let before = toy.log.len();
    toy.array.submit(toy.now, bio(3, Read, 2000, 8));
    let mut wanted = Vec::new();
    toy.array.take(&mut wanted);
    let near = toy.log.iter().find(|a| a.bio.lba.0 == 1000).unwrap().member;
    assert_eq!(wanted[0].member, near);
    assert_eq!(toy.log.len(), before);
}

#[test]
fn far_copies_read_sequentially_like_a_raid0() {
    let layout = Layout::raid10(&sizes(4, 1 << 20), Sectors(128), Copies::far(2)).unwrap();
    let mut toy = Toy::new(&ArraySpec::new(ArrayKind::Md(layout)), 0);
    toy.submit(bio(0, Read, 0, 128 * 400));
    toy.settle();
    assert_eq!(spread(&toy, 4), [100; 4]);
    // Each member is read from its start without a gap.
    for member in 0..4 {
        let mut at = 0;
        for asked in toy.log.iter().filter(|a| a.member == member) {
            assert_eq!(asked.bio.lba.0, at);
            at = asked.bio.end();
        }
    }
}

#[test]
fn near_copies_read_from_the_idle_one() {
    let layout = Layout::raid10(&sizes(4, 1 << 20), Sectors(128), Copies::near(2)).unwrap();
    let mut toy = Toy::new(&ArraySpec::new(ArrayKind::Md(layout)), 0);
    for i in 0..4 {
        toy.submit(bio(i, Read, i * 8, 8));
    }
    assert_eq!(spread(&toy, 4)[..2].iter().sum::<usize>(), 4);
    assert!(spread(&toy, 4)[1] >= 1);
    toy.settle();
}

#[test]
fn a_failed_copy_is_read_elsewhere_and_then_left_out() {
    let mut toy = Toy::new(&raid1(2), 0);
    toy.broken = vec![0];
    toy.submit(bio(0, Read, 0, 8));
    toy.submit(bio(1, Write, 64, 8));
    toy.settle();
    assert!(toy.ended.iter().all(|end| end.result.is_ok()));
    let before = toy.log.len();
    toy.submit(bio(2, Write, 0, 8));
    toy.submit(bio(3, Read, 0, 8));
    toy.settle();
    assert!(toy.log[before..].iter().all(|asked| asked.member == 1));
    toy.broken = vec![0, 1];
    toy.submit(bio(4, Read, 0, 8));
    toy.settle();
    toy.submit(bio(5, Write, 0, 8));
    toy.settle();
    let results: Vec<_> = toy.ended[4..].iter().map(|end| end.result).collect();
    assert_eq!(results, [Err(DiskError::Failed); 2]);
}

#[test]
fn an_unreadable_sector_is_had_from_the_others_and_nobody_is_left_out() {
    for (layout, reads) in [
        (Layout::raid1(&sizes(2, 1 << 20)), 2),
        (
            Layout::raid10(&sizes(4, 1 << 20), Sectors(128), Copies::near(2)),
            2,
        ),
        // Around the cache, through it, and then the others.
        (
            Layout::raid5(&sizes(4, 1 << 20), Sectors(128), Default::default()),
            5,
        ),
        (
            Layout::raid6(&sizes(5, 1 << 20), Sectors(128), Default::default()),
            6,
        ),
    ] {
        let mut toy = Toy::new(&ArraySpec::new(ArrayKind::Md(layout.unwrap())), 0);
        let first = toy.layout.locate(Lba(3)).unwrap()[0];
        toy.unreadable = vec![(first.member.0, first.sector.0)];
        toy.submit(bio(0, Read, 0, 8));
        toy.settle();
        assert_eq!(toy.ended[0].result, Ok(()));
        assert_eq!(toy.count(Read), reads);
        toy.unreadable = (0..5).map(|m| (m, first.sector.0)).collect();
        toy.submit(bio(1, Read, 0, 8));
        toy.submit(bio(2, Write, 0, 128 * 3));
        toy.settle();
        assert_eq!(toy.ended.len(), 3);
        assert!(
            toy.ended
                .iter()
                .any(|end| end.id == 2 && end.result.is_ok())
        );
    }
}

#[test]
fn zfs_reads_where_the_load_is_least() {
    use raidlab_core::units::Bytes;
    use raidlab_layout::ZfsMirror;
    let mirror = ZfsMirror::new(&[Bytes::gib(8); 2], 12).unwrap();
    let mut array = Array::new(&ArraySpec::new(ArrayKind::Zfs(mirror.clone()))).unwrap();
    assert_eq!(array.sectors(), mirror.allocatable().0 / 512);
    let mut wanted = Vec::new();
    let mut read = |at: u64| {
        array.submit(Instant::ZERO, bio(at, Read, at, 8));
        array.take(&mut wanted);
        let MemberBio { member, bio } = wanted.pop().unwrap();
        assert_eq!(bio.lba.0, at + mirror.data_start().0 / 512);
        member
    };
    // Far from both heads: the place decides; on from there, the same child up to five requests more.
    let first = read(1_000_000);
    for i in 1..=5 {
        assert_eq!(read(1_000_000 + i * 8), first);
    }
    // Six in flight on one child against a seek of five on the other.
    assert_ne!(read(1_000_048), first);
}

#[test]
fn requests_beyond_the_end_and_states_without_redundancy_are_refused() {
    let mut toy = Toy::new(&raid1(2), 0);
    toy.submit(bio(0, Read, 1 << 30, 8));
    toy.settle();
    assert_eq!(toy.ended[0].result, Err(DiskError::OutOfRange));
    let refused = |text: &str, state: &str, failed: Vec<u16>| {
        let spec: raidlab_layout::Spec = text.parse().unwrap();
        let members = spec.least_members().max(2);
        let geometry = raidlab_layout::Geometry {
            sizes: sizes(members, 4096),
            chunk: Sectors(128),
            outer_chunk: None,
        };
        let mut spec = ArraySpec::new(ArrayKind::Md(spec.build(&geometry).unwrap()));
        (spec.state, spec.failed) = (state.parse().unwrap(), failed);
        Array::new(&spec).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused("raid0", "resyncing", vec![]), @"an array without redundancy cannot be resyncing");
    insta::assert_snapshot!(refused("raid1", "degraded 2", vec![0, 1]), @"the array does not survive the failure of its members [0, 1]");
    insta::assert_snapshot!(refused("raid1", "degraded 1", vec![7]), @"the array has no member 7");
}

/// Who asks a member for a direct write of process 1, and whether the request says that nothing will follow it.
fn asked(kind: BlockKind, last: bool, kernel: Kernel) -> (u16, bool, bool) {
    let mut spec = raid1(2);
    spec.era = Era::of(kernel);
    let mut toy = Toy::new(&spec, 0);
    let mut of = bio(0, kind, 64, 8);
    of.origin.last = last;
    toy.submit(of);
    toy.settle();
    let origin = toy.log[0].bio.origin;
    (origin.task, origin.sync, origin.last)
}

#[test]
fn copies_of_a_write_lose_what_it_says_of_what_follows() {
    let [old, threads, own, last] =
        [(2, 6, 18), (3, 5, 0), (3, 6, 0), (4, 10, 0)].map(|(a, b, c)| Kernel::Linux(a, b, c));
    for kernel in [old, threads] {
        assert_eq!(asked(Write, true, kernel), (0, true, false));
        assert_eq!(asked(Read, false, kernel), (1, true, false));
    }
    for marked in [false, true] {
        assert_eq!(asked(Write, marked, own), (1, true, false));
        assert_eq!(asked(Write, marked, last), (1, true, true));
    }
}

/// `raid1_write_request`, `raid10_write_request` and `ops_run_io` keep `REQ_SYNC` and `REQ_FUA`; `raid0_map_submit_bio` gives the bio on.
#[test]
fn stripes_alone_pass_on_what_is_said_of_a_write() {
    let raid0 = Layout::raid0(&sizes(2, 1 << 30), Sectors(128), Raid0Order::Original).unwrap();
    let raid0 = ArraySpec::new(ArrayKind::Md(raid0));
    for (spec, kept) in [(raid1(2), Marked::Plain), (raid0, Marked::Background)] {
        let mut toy = Toy::new(&spec, 0);
        let mut of = bio(0, Write, 64, 8);
        of.origin = Origin {
            marked: Marked::Background,
            ..Origin::default()
        };
        toy.submit(of);
        toy.settle();
        assert_eq!(toy.log[0].bio.origin.marked, kept);
    }
}

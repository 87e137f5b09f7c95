//! What replacing a member of btrfs reads and writes, in which order, and what others see meanwhile.
use super::*;
use crate::block::Extent;
use proptest::prelude::*;
use raidlab_core::units::{Bytes, GIB, MIB, SECTOR};
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Btrfs, BtrfsProfile, Member};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const STREAM: Kernel = Kernel::Linux(6, 1, 0);
const FEW: Kernel = Kernel::Linux(6, 4, 0);
const MANY: Kernel = Kernel::Linux(6, 12, 0);

/// Whole until so many GiB were written, and then without these members, which are replaced.
fn built(profile: BtrfsProfile, members: usize, new: &[u16], gib: u64) -> Btrfs {
    let sizes = vec![Bytes::gib(8).to_sectors(); members];
    let gone = new.iter().map(|role| Member(*role)).collect();
    let later = (gone, Lba(gib * GIB / SECTOR));
    Btrfs::degraded_later(profile, &sizes, Bytes(256 * MIB), true, later).unwrap()
}

fn replacing(btrfs: &Btrfs, kernel: Kernel) -> Array {
    let mut spec = ArraySpec::new(ArrayKind::Btrfs(btrfs.clone()));
    spec.failed = btrfs.missing().iter().map(|member| member.0).collect();
    spec.state = ArrayState::Rebuilding(spec.failed.len() as u16);
    spec.era = Era::of(kernel);
    spec.member_requests = 100;
    Array::new(&spec).unwrap()
}

/// The first address of data.
fn data(btrfs: &Btrfs) -> u64 {
    2048 + btrfs.metadata().0
}

fn extent(start: u64, len: u64) -> Extent {
    Extent {
        start,
        len,
        unit: 8,
        walked: false,
    }
}

fn begin(array: &mut Array, extents: Vec<Extent>) {
    assert!(array.awaits_resilver());
    let begun = array.begin_resilver(Instant::ZERO, extents, &mut || ControlFlow::Continue(()));
    assert!(begun.is_continue());
    assert!(!array.awaits_resilver());
}

/// What is asked for now.
fn wanted(array: &mut Array) -> Vec<MemberBio> {
    let mut wanted = Vec::new();
    array.take(&mut wanted);
    wanted
}

fn ends(array: &mut Array, of: &MemberBio) {
    array.member_ended(Instant::ZERO, of.member, of.bio.id, Ok(()));
}

/// All that is asked for in groups that end together, in an order of chance; it must come to its end.
fn all(array: &mut Array, extents: Vec<Extent>, seed: u64) -> Vec<(BlockKind, u16, u64, u32)> {
    begin(array, extents);
    let (mut asked, mut round) = (Vec::new(), 0);
    loop {
        let mut group = wanted(array);
        if group.is_empty() {
            break;
        }
        round += 1;
        group.sort_by_key(|of| raidlab_core::rng::mix(of.bio.id ^ seed ^ round));
        for of in group {
            assert!(of.bio.origin.background);
            asked.push((of.bio.kind, of.member, of.bio.lba.0, of.bio.sectors));
            ends(array, &of);
        }
    }
    assert_eq!(array.resync(), None, "it has ended");
    assert_eq!(array.resilvered(), Some(Instant::ZERO));
    assert_eq!(array.in_flight(), 0);
    asked
}

#[test]
fn before_6_4_reads_go_on_while_what_has_come_is_written() {
    let btrfs = built(BtrfsProfile::Raid1, 2, &[1], 4);
    let mut array = replacing(&btrfs, STREAM);
    begin(&mut array, vec![extent(data(&btrfs), 100 * 2048)]);
    let reads = wanted(&mut array);
    assert_eq!(reads.len(), 64, "8 MiB are under way");
    let places = reads
        .iter()
        .map(|of| (of.member, of.bio.kind, of.bio.sectors));
    assert!(places.into_iter().all(|of| of == (0, BlockKind::Read, 256)));
    // Each that has come makes room for another one, and is written.
    ends(&mut array, &reads[5]);
    let next = wanted(&mut array);
    let told: Vec<_> = next.iter().map(|of| (of.bio.kind, of.member)).collect();
    assert_eq!(told, [(BlockKind::Write, 1), (BlockKind::Read, 0)]);
    let copies = btrfs.locate(Lba(data(&btrfs) + 5 * 256)).unwrap().0;
    let place = copies.iter().find(|place| place.member.0 == 1).unwrap();
    assert_eq!(next[0].bio.lba, place.sector);
    // The queue of the new member takes a hundred; then what has come waits, and no more is read than could be kept.
    let mut reads: Vec<MemberBio> = reads.into_iter().skip(6).collect();
    reads.push(next[1]);
    let mut writes = vec![next[0]];
    while let Some(read) = reads.pop() {
        ends(&mut array, &read);
        for of in wanted(&mut array) {
            match of.bio.kind {
                BlockKind::Read => reads.push(of),
                _ => writes.push(of),
            }
        }
    }
    assert_eq!(writes.len(), 100);
    ends(&mut array, &writes[0]);
    let next = wanted(&mut array);
    let told: Vec<_> = next.iter().map(|of| (of.bio.kind, of.member)).collect();
    assert_eq!(told, [(BlockKind::Write, 1), (BlockKind::Read, 0)]);
}

#[test]
fn since_6_4_all_of_a_turn_is_read_and_then_written() {
    for (kernel, stripes) in [(FEW, 8), (MANY, 128)] {
        let btrfs = built(BtrfsProfile::Raid1, 2, &[0], 4);
        let mut array = replacing(&btrfs, kernel);
        // Half of each stripe is in use, and all is read.
        let at = data(&btrfs);
        let half = |i| extent(at + i * 128 + 32, 64);
        begin(&mut array, (0..2 * stripes as u64).map(half).collect());
        for turn in 0..2 {
            let reads = wanted(&mut array);
            assert_eq!(reads.len(), stripes);
            let whole =
                |of: &MemberBio| (of.member, of.bio.kind, of.bio.sectors, of.bio.lba.0 % 128);
            assert!(
                reads
                    .iter()
                    .all(|of| whole(of).0 == 1 && whole(of).2 == 128),
                "{turn}"
            );
            for read in &reads {
                assert_eq!(wanted(&mut array), []);
                ends(&mut array, read);
            }
            let writes = wanted(&mut array);
            let told = |of: &MemberBio| (of.member, of.bio.kind, of.bio.sectors);
            assert_eq!(writes.len(), stripes);
            assert!(
                writes
                    .iter()
                    .all(|of| told(of) == (0, BlockKind::Write, 64))
            );
            for write in &writes {
                assert_eq!(wanted(&mut array), []);
                ends(&mut array, write);
            }
        }
        assert_eq!(wanted(&mut array), []);
        assert_eq!(array.resync(), None);
    }
}

/// The first chunk of data that mkfs makes, and one of the kernel's.
#[test]
fn a_chunk_is_done_before_the_next_begins() {
    for kernel in [STREAM, MANY] {
        let btrfs = built(BtrfsProfile::Raid1, 2, &[1], 4);
        let mut array = replacing(&btrfs, kernel);
        let end = data(&btrfs) + btrfs.chunk().0;
        begin(&mut array, vec![extent(end - 512, 1024)]);
        let before = wanted(&mut array);
        assert_eq!(before.iter().map(|of| of.bio.sectors).sum::<u32>(), 512);
        before.iter().for_each(|of| ends(&mut array, of));
        let writes = wanted(&mut array);
        assert_eq!(writes.iter().map(|of| of.bio.sectors).sum::<u32>(), 512);
        let (last, rest) = writes.split_last().unwrap();
        rest.iter().for_each(|of| ends(&mut array, of));
        assert_eq!(wanted(&mut array), []);
        ends(&mut array, last);
        let after = wanted(&mut array);
        assert!(after.iter().all(|of| of.bio.kind == BlockKind::Read));
        assert_eq!(after.iter().map(|of| of.bio.sectors).sum::<u32>(), 512);
    }
}

/// They are written to it, too, and read from it when it is whole.
#[test]
fn a_new_member_is_written_at_once_and_read_at_the_end() {
    let btrfs = built(BtrfsProfile::Raid1, 2, &[1], 4);
    let mut array = replacing(&btrfs, STREAM);
    let at = data(&btrfs);
    begin(&mut array, vec![extent(at, 256)]);
    let mut copy = wanted(&mut array);
    let asked = |array: &mut Array, task, kind| {
        let mut bio = bio(7, kind, at + 512, 64);
        bio.origin.task = task;
        array.submit(Instant::ZERO, bio);
        let asked = wanted(array);
        asked.iter().for_each(|of| ends(array, of));
        asked.iter().map(|of| of.member).collect::<BTreeSet<u16>>()
    };
    let (one, both) = (BTreeSet::from([0]), BTreeSet::from([0, 1]));
    for task in 0..4 {
        assert_eq!(asked(&mut array, task, BlockKind::Read), one);
    }
    assert_eq!(asked(&mut array, 1, BlockKind::Write), both);
    while !copy.is_empty() {
        copy.iter().for_each(|of| ends(&mut array, of));
        copy = wanted(&mut array);
    }
    assert_eq!(array.resync(), None);
    let all: BTreeSet<u16> = (0..2)
        .flat_map(|task| asked(&mut array, task, BlockKind::Read))
        .collect();
    assert_eq!(all, both);
    // What was made without it is not on it even then.
    let after = btrfs.capacity().0 - 4096;
    let mut bio = bio(8, BlockKind::Write, after, 64);
    bio.origin.task = 1;
    array.submit(Instant::ZERO, bio);
    let asked: Vec<u16> = wanted(&mut array).iter().map(|of| of.member).collect();
    assert_eq!(asked, [0]);
}

#[test]
fn what_is_not_used_is_not_copied() {
    for kernel in [STREAM, MANY] {
        let btrfs = built(BtrfsProfile::Raid10, 4, &[2], 4);
        let mut array = replacing(&btrfs, kernel);
        assert_eq!(all(&mut array, Vec::new(), 0), []);
    }
}

/// What lies at an address on some members: of all sectors of these addresses.
fn on(btrfs: &Btrfs, used: &[(u64, u64)], member: u16) -> BTreeSet<u64> {
    let mut sectors = BTreeSet::new();
    for (from, end) in used {
        let mut at = *from;
        while at < *end {
            let (copies, run) = btrfs.locate(Lba(at)).unwrap();
            let run = run.min(end - at);
            let here = copies.iter().filter(|place| place.member.0 == member);
            for place in here {
                sectors.extend((0..run).map(|i| place.sector.0 + i));
            }
            at += run;
        }
    }
    sectors
}

proptest! {
    /// Each sector in use is written once to the member that had it, and to no other; what is read comes from members that are there,
    /// from where the same lies.
    #[test]
    fn all_that_is_in_use_is_written_once(
        lens in prop::collection::vec((1_u64..600, 0_u64..900), 1..40),
        begin in 0_u64..(9 * GIB / SECTOR),
        of in prop::sample::select(&[
            (BtrfsProfile::Raid1, 2, 1), (BtrfsProfile::Raid1, 5, 1), (BtrfsProfile::Raid10, 4, 1), (BtrfsProfile::Raid10, 5, 1),
            (BtrfsProfile::Raid1c3, 4, 1), (BtrfsProfile::Raid1c3, 3, 2), (BtrfsProfile::Raid1c4, 5, 3),
        ][..]),
        first: u16,
        kernel in prop::sample::select(&[STREAM, FEW, MANY][..]),
        seed: u64,
    ) {
        let (profile, members, lost) = of;
        let new: Vec<u16> = (0..lost).map(|i| (first % 16 + i) % members as u16).collect();
        let btrfs = built(profile, members, &new, 5);
        let mut at = 2048 + begin;
        let mut used = Vec::new();
        for (len, gap) in lens {
            let end = (at + len).min(btrfs.capacity().0);
            if at < end {
                used.push((at, end));
            }
            at = end + gap;
        }
        prop_assume!(!used.is_empty());
        let mut array = replacing(&btrfs, kernel);
        let extents = used.iter().map(|(from, end)| extent(*from, end - from)).collect();
        let asked = all(&mut array, extents, seed);
        for member in 0..members as u16 {
            let written = asked.iter().filter(|one| one.0 == BlockKind::Write && one.1 == member);
            let sectors: Vec<u64> = written.flat_map(|one| (0..u64::from(one.3)).map(|i| one.2 + i)).collect();
            let each: BTreeSet<u64> = sectors.iter().copied().collect();
            prop_assert_eq!(sectors.len(), each.len());
            let expected = if new.contains(&member) { on(&btrfs, &used, member) } else { BTreeSet::new() };
            prop_assert_eq!(each, expected);
        }
        // One member after the other, and none is read before it is whole.
        let mut order: Vec<u16> = asked.iter().filter(|one| one.0 == BlockKind::Write).map(|one| one.1).collect();
        order.dedup();
        prop_assert!(order.windows(2).all(|two| two[0] < two[1]));
        let last = |member| asked.iter().rposition(|one| one.0 == BlockKind::Write && one.1 == member);
        for (index, one) in asked.iter().enumerate().filter(|(_, one)| one.0 == BlockKind::Read) {
            prop_assert!(!new.contains(&one.1) || last(one.1).is_none_or(|last| last < index));
        }
        let sectors = |kind| asked.iter().filter(|one| one.0 == kind).map(|one| u64::from(one.3)).sum::<u64>();
        let (read, written) = (sectors(BlockKind::Read), sectors(BlockKind::Write));
        let fits = if kernel == STREAM { read == written } else { read >= written };
        prop_assert!(fits, "{} {}", read, written);
    }
}

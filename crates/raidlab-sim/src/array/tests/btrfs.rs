//! btrfs over several members: who is asked for what.
use super::*;
use raidlab_core::units::{Bytes, MIB};
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Btrfs, BtrfsProfile, Member};

fn spec(profile: BtrfsProfile, members: usize) -> ArraySpec {
    let sizes = vec![Bytes::gib(8).to_sectors(); members];
    let built = Btrfs::new(profile, &sizes, Bytes(256 * MIB), true).unwrap();
    ArraySpec::new(ArrayKind::Btrfs(built))
}

/// Mounted without these members.
fn without(profile: BtrfsProfile, members: usize, missing: &[u16]) -> ArraySpec {
    let sizes = vec![Bytes::gib(8).to_sectors(); members];
    let gone = missing.iter().map(|role| Member(*role)).collect();
    let built = Btrfs::degraded(profile, &sizes, Bytes(256 * MIB), true, gone).unwrap();
    let mut spec = ArraySpec::new(ArrayKind::Btrfs(built));
    spec.state = ArrayState::Degraded(missing.len() as u16);
    spec.failed = missing.to_vec();
    spec
}

/// The first sector of data.
fn data(spec: &ArraySpec) -> u64 {
    let ArrayKind::Btrfs(btrfs) = &spec.kind else {
        panic!("it is none of btrfs")
    };
    2048 + btrfs.metadata().0
}

/// Members that are asked and sectors of each, of one request that then ends.
fn asked(array: &mut Array, bio: Bio) -> Vec<(u16, u32)> {
    array.submit(Instant::ZERO, bio);
    let mut wanted = Vec::new();
    array.take(&mut wanted);
    let told = wanted.iter().map(|w| (w.member, w.bio.sectors)).collect();
    for MemberBio { member, bio } in wanted {
        array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
    }
    let mut done = Vec::new();
    array.advance(Instant::ZERO, &mut done);
    assert_eq!((done.len(), array.in_flight()), (1, 0));
    assert_eq!(done[0].result, Ok(()));
    told
}

fn of_task(task: u16, kind: BlockKind, lba: u64, sectors: u32) -> Bio {
    let mut bio = bio(1, kind, lba, sectors);
    bio.origin.task = task;
    bio
}

#[test]
fn each_process_reads_a_copy_of_its_own_and_all_are_written() {
    for (profile, members) in [(BtrfsProfile::Raid1, 2), (BtrfsProfile::Raid10, 4)] {
        let spec = spec(profile, members);
        let mut array = Array::new(&spec).unwrap();
        let at = data(&spec);
        let mut read = |task| asked(&mut array, of_task(task, BlockKind::Read, at, 64));
        let first = read(1);
        assert_eq!(first.len(), 1);
        assert_eq!(read(1), first, "whatever it read before");
        assert_ne!(read(2), first);
        assert_eq!(read(3), first);
        let written = asked(&mut array, of_task(1, BlockKind::Write, at, 64));
        assert_eq!(written.len(), 2);
        assert_ne!(written[0].0, written[1].0);
    }
}

/// Whose number is three more reads the same of three copies.
#[test]
fn three_copies_are_read_in_turn_by_number_and_all_written() {
    let spec = spec(BtrfsProfile::Raid1c3, 4);
    let mut array = Array::new(&spec).unwrap();
    let at = data(&spec);
    let mut read = |task| asked(&mut array, of_task(task, BlockKind::Read, at, 64))[0].0;
    let all = [1, 2, 3].map(&mut read);
    let each: std::collections::BTreeSet<u16> = all.into_iter().collect();
    assert_eq!(each.len(), 3);
    assert_eq!([4, 5, 6].map(&mut read), all);
    let written = asked(&mut array, of_task(1, BlockKind::Write, at, 64));
    assert_eq!(written.len(), 3);
}

#[test]
fn stripes_are_of_64_kib_and_chunks_of_one_member_are_whole() {
    let striped = spec(BtrfsProfile::Raid0, 3);
    let mut array = Array::new(&striped).unwrap();
    let at = data(&striped);
    let parts = asked(&mut array, of_task(1, BlockKind::Write, at + 64, 256));
    assert_eq!(parts, [(0, 64), (1, 128), (2, 64)]);
    let single = spec(BtrfsProfile::Single, 3);
    let mut array = Array::new(&single).unwrap();
    let at = data(&single);
    // mkfs leaves a little chunk on the first member, and has metadata on the last two.
    assert_eq!(
        asked(&mut array, of_task(1, BlockKind::Write, at, 2048)),
        [(0, 2048)]
    );
    let metadata = asked(&mut array, of_task(0, BlockKind::Write, 4096, 32));
    assert_eq!(metadata, [(1, 32), (2, 32)]);
}

#[test]
fn superblocks_and_flushes_go_to_every_member() {
    let spec = spec(BtrfsProfile::Raid1, 3);
    let mut array = Array::new(&spec).unwrap();
    for number in 0..2 {
        let at = Btrfs::super_at(number).0;
        let all = asked(&mut array, of_task(0, BlockKind::Write, at, 8));
        assert_eq!(all, [(0, 8), (1, 8), (2, 8)]);
        assert_eq!(
            asked(&mut array, of_task(0, BlockKind::Read, at, 8)).len(),
            1
        );
    }
    let all = asked(&mut array, of_task(0, BlockKind::Flush, 0, 0));
    assert_eq!(all.len(), 3);
}

/// What `mkfs` made has its two copies yet, of which one is there; what is made later is where the others are.
#[test]
fn a_member_that_is_missing_is_neither_read_nor_written() {
    for (profile, members) in [
        (BtrfsProfile::Raid1, 2),
        (BtrfsProfile::Raid1c3, 4),
        (BtrfsProfile::Raid10, 4),
    ] {
        for missing in 0..members as u16 {
            let spec = without(profile, members, &[missing]);
            let mut array = Array::new(&spec).unwrap();
            let end = array.sectors();
            for at in [4096, data(&spec), end - 4096] {
                for task in 0..3 {
                    let read = asked(&mut array, of_task(task, BlockKind::Read, at, 64));
                    assert_eq!(read.len(), 1);
                    assert_ne!(read[0].0, missing);
                }
                let written = asked(&mut array, of_task(1, BlockKind::Write, at, 64));
                assert!(written.iter().all(|(member, _)| *member != missing));
                assert!((1..=3).contains(&written.len()));
            }
            let all = members - 1;
            let at = Btrfs::super_at(0).0;
            assert_eq!(
                asked(&mut array, of_task(0, BlockKind::Write, at, 8)).len(),
                all
            );
            assert_eq!(
                asked(&mut array, of_task(0, BlockKind::Flush, 0, 0)).len(),
                all
            );
        }
    }
}

#[test]
fn states_that_are_none_of_btrfs_are_refused() {
    for state in [ArrayState::Resyncing, ArrayState::InitialSync] {
        let mut spec = spec(BtrfsProfile::Raid1, 2);
        spec.state = state;
        let told = Array::new(&spec).unwrap_err().to_string();
        assert_eq!(
            told,
            format!(
                "btrfs writes no copy that nobody asked for, so that none of its arrays is {state}: use clean, degraded or rebuilding"
            )
        );
    }
    // More than copies make good.
    let spec = without(BtrfsProfile::Raid10, 4, &[0, 2]);
    let told = Array::new(&spec).unwrap_err().to_string();
    assert_eq!(
        told,
        "the array does not survive the failure of its members [0, 2]"
    );
}

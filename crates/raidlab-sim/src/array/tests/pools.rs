//! Vdevs of ZFS: which children a block of RAID-Z touches, and pools of several vdevs.
use super::*;
use raidlab_core::units::Bytes;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{PoolSpec, zfs};

/// Sectors of labels at the beginning of a vdev.
const START: u64 = zfs::START / 512;

fn spec(text: &str, members: usize) -> ArraySpec {
    let pool: PoolSpec = text.parse().unwrap();
    let pool = pool.build(&vec![Bytes::gib(1); members], 12).unwrap();
    ArraySpec::new(ArrayKind::Pool(pool))
}

/// Member, first sector and sectors of what is asked for one request.
fn asked(array: &mut Array, kind: BlockKind, lba: u64, sectors: u32) -> Vec<(u16, u64, u32)> {
    array.submit(Instant::ZERO, bio(1, kind, lba, sectors));
    let mut wanted = Vec::new();
    array.take(&mut wanted);
    let told = wanted
        .iter()
        .map(|w| (w.member, w.bio.lba.0, w.bio.sectors));
    let told = told.collect();
    // All end, and with them the request.
    for MemberBio { member, bio } in wanted {
        array.member_ended(Instant::ZERO, member, bio.id, Ok(()));
    }
    let mut done = Vec::new();
    array.advance(Instant::ZERO, &mut done);
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].result, Ok(()));
    assert_eq!(array.in_flight(), 0);
    told
}

#[test]
fn a_block_of_raidz_is_written_with_parity_and_read_without() {
    let mut array = Array::new(&spec("raidz1", 4)).unwrap();
    // Seven units of 4 KiB at offset 0: rows of three, so that the first column is a unit longer.
    let (parity, data) = (
        (0, START, 24),
        [(1, START, 24), (2, START, 16), (3, START, 16)],
    );
    let written = asked(&mut array, BlockKind::Write, START, 56);
    assert_eq!(written, [&[parity][..], &data].concat());
    assert_eq!(asked(&mut array, BlockKind::Read, START, 56), data);
    // The next block begins where this one ended, after 7 + 3 units: nothing fills it up.
    let next = asked(&mut array, BlockKind::Write, START + 80, 8);
    assert_eq!(next, [(2, START + 16, 8), (3, START + 16, 8)]);
    // A flush goes to all.
    assert_eq!(asked(&mut array, BlockKind::Flush, 0, 0).len(), 4);
}

/// A record of 128 KiB on three disks of data: 32 + 11 units, and one that fills up to an even number.
#[test]
fn blocks_of_raidz_that_follow_each_other_leave_no_gap_on_any_child() {
    let mut array = Array::new(&spec("raidz1", 4)).unwrap();
    let mut ends = [START; 4];
    for block in 0..6 {
        let mut written = asked(&mut array, BlockKind::Write, START + block * 44 * 8, 256);
        written.sort_unstable();
        for (member, lba, sectors) in written {
            assert_eq!(lba, ends[usize::from(member)], "block {block} on {member}");
            ends[usize::from(member)] += u64::from(sectors);
        }
    }
    // Nothing is read of what only fills up.
    let read = asked(&mut array, BlockKind::Read, START, 256);
    assert_eq!(read.iter().map(|r| r.2).sum::<u32>(), 256);
}

#[test]
fn labels_are_on_every_child_at_either_end() {
    let mut array = Array::new(&spec("raidz2", 5)).unwrap();
    let child = Bytes::gib(1).0 / 512;
    let front = asked(&mut array, BlockKind::Write, 768, 8);
    assert_eq!(front, (0..5).map(|m| (m, 768, 8)).collect::<Vec<_>>());
    let end = array.sectors() - 256;
    let back = asked(&mut array, BlockKind::Write, end, 8);
    assert_eq!(
        back,
        (0..5).map(|m| (m, child - 256, 8)).collect::<Vec<_>>()
    );
    assert_eq!(asked(&mut array, BlockKind::Read, 768, 8).len(), 1);
}

#[test]
fn a_degraded_vdev_reads_a_parity_for_each_column_that_is_missing() {
    let mut spec = spec("raidz2", 5);
    (spec.state, spec.failed) = (ArrayState::Degraded(1), vec![3]);
    let mut array = Array::new(&spec).unwrap();
    let members = |asked: Vec<(u16, u64, u32)>| asked.into_iter().map(|a| a.0).collect::<Vec<_>>();
    // P on 0, Q on 1, data on 2 to 4; in the row below P is on 1, and the failed child has data again.
    let read = asked(&mut array, BlockKind::Read, START, 24);
    assert_eq!(members(read), [0, 2, 4]);
    let written = asked(&mut array, BlockKind::Write, START, 24);
    assert_eq!(members(written), [0, 1, 2, 4]);
    // Parity alone is missing: nothing more is read.
    let read = asked(&mut array, BlockKind::Read, START + 3 * 8, 24);
    assert_eq!(members(read), [0, 1, 2]);
    // A second one fails, and a third is too much.
    array.fail(Instant::ZERO, 0);
    let read = asked(&mut array, BlockKind::Read, START, 24);
    assert_eq!(members(read), [1, 2, 4]);
    array.fail(Instant::ZERO, 1);
    array.submit(Instant::ZERO, bio(2, BlockKind::Read, START, 24));
    let mut done = Vec::new();
    array.advance(Instant::ZERO, &mut done);
    assert_eq!(done[0].result, Err(DiskError::Failed));
}

#[test]
fn vdevs_follow_each_other_and_one_that_is_lost_is_the_end_of_the_pool() {
    let mut array = Array::new(&spec("zfs-mirror 2x2", 4)).unwrap();
    let half = array.sectors() / 2;
    let first = asked(&mut array, BlockKind::Write, START + 8, 256);
    assert_eq!(first, [(0, START + 8, 256), (1, START + 8, 256)]);
    let second = asked(&mut array, BlockKind::Write, half + START, 256);
    assert_eq!(second, [(2, START, 256), (3, START, 256)]);
    assert_eq!(
        asked(&mut array, BlockKind::Read, half + START, 256).len(),
        1
    );
    array.fail(Instant::ZERO, 2);
    assert_eq!(
        asked(&mut array, BlockKind::Read, half + START, 256),
        [(3, START, 256)]
    );
    array.fail(Instant::ZERO, 3);
    array.submit(Instant::ZERO, bio(2, BlockKind::Read, START, 8));
    let mut done = Vec::new();
    array.advance(Instant::ZERO, &mut done);
    assert_eq!(done[0].result, Err(DiskError::Failed));
}

#[test]
fn zfs_has_nothing_to_resync() {
    let mut spec = spec("raidz1", 3);
    (spec.state, spec.failed) = (ArrayState::Resyncing, Vec::new());
    let told = Array::new(&spec).unwrap_err().to_string();
    insta::assert_snapshot!(told, @"a pool of ZFS is never resyncing: what was not written to the end belongs to no block, so that copies and parity agree after a crash; use clean, degraded or rebuilding");
    (spec.state, spec.failed) = (ArrayState::Degraded(2), vec![0, 1]);
    let told = Array::new(&spec).unwrap_err().to_string();
    assert!(told.contains("does not survive"), "{told}");
}

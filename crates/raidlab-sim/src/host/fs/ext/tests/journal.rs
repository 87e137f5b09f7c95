//! Commits, the journal's round, and what `fsync` asks of the disk.
use super::*;

#[test]
fn the_journal_goes_round_and_makes_room_by_writing_home() {
    let mut given = spec(FilesystemKind::Ext3, 10 * GIB);
    given.journal = 16 * MIB;
    given.barriers = Some(true);
    let mut fs = FileSystem::new(&given).unwrap();
    let journal: Vec<(u64, u64)> = (ext(&fs).journal.runs().iter())
        .map(|run| (run.start * 8, run.end() * 8))
        .collect();
    assert_eq!(
        journal.iter().map(|j| j.1 - j.0).sum::<u64>(),
        16 * MIB / SECTOR
    );
    let inside = |p: &Place| {
        journal
            .iter()
            .any(|j| j.0 <= p.lba.0 && p.lba.0 + u64::from(p.sectors) <= j.1)
    };
    let (mut wraps, mut checkpoints, mut last) = (0, 0, 0);
    for directory in 0..3000 {
        let _ = fs.small(&FileOp::MakeDirectory { directory }).unwrap();
        let commit = fs.commit().unwrap();
        assert!(commit.data_first);
        assert!(commit.later.iter().all(|p| !inside(p)));
        let (log, home): (Vec<_>, Vec<_>) = commit.stages.iter().partition(|s| !s.checkpoint);
        checkpoints += home.len();
        assert!(home.iter().flat_map(|s| &s.writes).all(|p| !inside(p)));
        // Descriptor and blocks, then the commit block between flushes.
        assert_eq!(log.len(), 2);
        assert!(!log[0].flush_before && log[1].flush_before && log[1].durable);
        assert_eq!(log[1].writes.iter().map(|p| p.sectors).sum::<u32>(), 8);
        for place in log.iter().flat_map(|s| &s.writes) {
            assert!(inside(place));
            wraps += usize::from(place.lba.0 < last);
            last = place.lba.0;
        }
    }
    // Seven or eight blocks each, a descriptor and a commit block, 4095 blocks a turn.
    assert!((5..9).contains(&wraps), "{wraps}");
    assert!(checkpoints > wraps && checkpoints < 40, "{checkpoints}");
}

#[test]
fn space_and_inodes_come_back_with_the_commit() {
    for kind in [
        FilesystemKind::Ext2,
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
    ] {
        let mut fs = made(kind, GIB);
        let before = (ext(&fs).space.free(), ext(&fs).names.inodes.free());
        let _ = fs.open(0, OpenMode::Create).unwrap();
        write(&mut fs, 0, 100 * MIB, MIB);
        for index in 0..500 {
            let entry = Entry {
                index,
                directory: 3,
                ordered: false,
            };
            let _ = fs
                .small(&FileOp::Create {
                    entry,
                    size: 9000,
                    sync: false,
                })
                .unwrap();
        }
        let _ = fs.commit();
        let _ = fs.remove(0);
        // ext2 has nothing to wait for.
        let waits = ext(&fs).space.free() < before.0 - 100 * MIB / 4096;
        assert_eq!(waits, kind != FilesystemKind::Ext2, "{kind}");
        assert_eq!(fs.frees_at_commit(), waits, "{kind}");
        for index in 0..500 {
            let entry = Entry {
                index,
                directory: 3,
                ordered: false,
            };
            let _ = fs.small(&FileOp::Unlink { entry }).unwrap();
        }
        let _ = fs.small(&FileOp::RemoveDirectory { directory: 3 }).unwrap();
        let _ = fs.commit();
        assert_eq!(
            (ext(&fs).space.free(), ext(&fs).names.inodes.free()),
            before,
            "{kind}"
        );
    }
}

#[test]
fn sync_commits_what_the_file_is_in() {
    let mut fs = with_file(FilesystemKind::Ext4, GIB);
    let _ = fs.commit();
    let idle = fs.sync(Some(0), false, 0);
    assert!(idle.data && !idle.commit && idle.flush);
    let _ = fs.reserve(0, 0, 4096).unwrap();
    assert!(fs.sync(Some(0), false, 4096).commit);
    // ext2 has no journal: metadata goes home.
    let mut fs = with_file(FilesystemKind::Ext2, GIB);
    let synced = fs.sync(Some(0), false, 0);
    assert!(!synced.commit && !synced.stages[0].writes.is_empty());
    assert_eq!(fs.commit(), None);
}

/// Linux 6.18, of 4 KiB written over: with `fdatasync` those and a flush, with `fsync` a transaction besides when the clock has
/// gone on, which ext3's own driver notes by the second.
#[test]
fn what_lies_where_it_was_joins_no_transaction_but_with_its_time() {
    let (old, new) = (Kernel::Linux(2, 6, 18), Kernel::DEFAULT);
    for (kind, kernel, grain) in [
        (FilesystemKind::Ext4, new, 4),
        (FilesystemKind::Ext3, new, 4),
        (FilesystemKind::Ext3, old, 1000),
    ] {
        let mut given = spec(kind, GIB);
        given.kernel = kernel;
        let mut fs = FileSystem::new(&given).unwrap();
        fs.provide(0, MIB).unwrap();
        let mut commits = |at: u64, offset| {
            fs.clock(at * 1_000_000);
            let _ = fs.reserve(0, offset, 4096).unwrap();
            let mut out = Vec::new();
            let _ = fs.place(0, offset, 4096, &mut out).unwrap();
            let asked = [true, false].map(|data_only| fs.sync(Some(0), data_only, 4096).commit);
            let _ = fs.commit();
            asked
        };
        let first = 10 * grain;
        assert_eq!(commits(first, 0), [false, true], "{kind} {kernel}");
        assert_eq!(
            commits(first + grain / 2, 4096),
            [false, false],
            "{kind} {kernel}"
        );
        assert_eq!(commits(first + grain, 4096), [false, true], "{kind}");
        // It grows: `fdatasync` waits for that.
        assert_eq!(commits(first + grain, MIB), [true, true], "{kind}");
    }
}

/// Data that gets its place after the transaction of its write is in the transaction of its place.
#[test]
fn a_place_joins_the_transaction_that_it_is_given_in() {
    let mut fs = with_file(FilesystemKind::Ext4, GIB);
    let _ = fs.reserve(0, 0, 4096).unwrap();
    let _ = fs.commit();
    assert!(!fs.sync(Some(0), true, 4096).commit);
    let mut out = Vec::new();
    let _ = fs.place(0, 0, 4096, &mut out).unwrap();
    assert!(fs.sync(Some(0), true, 0).commit);
}

#[test]
fn without_a_journal_fsync_flushes_since_3_16() {
    let flushes = |kind, kernel, barriers, file| {
        let mut given = spec(kind, GIB);
        (given.kernel, given.barriers) = (kernel, barriers);
        given.mode = (kind == FilesystemKind::Ext4).then_some(JournalMode::None);
        let mut fs = FileSystem::new(&given).unwrap();
        let _ = fs.open(0, OpenMode::Create).unwrap();
        let synced = fs.sync(file, false, 0);
        // Metadata of its own is written before that, and nothing the second time.
        assert!(!synced.stages.is_empty());
        let again = fs.sync(file, false, 0);
        assert!(again.stages.is_empty());
        assert_eq!(synced.flush, again.flush);
        synced.flush
    };
    let (old, new) = (Kernel::Linux(3, 15, 0), Kernel::Linux(3, 16, 0));
    for kind in [FilesystemKind::Ext2, FilesystemKind::Ext4] {
        assert!(!flushes(kind, old, None, Some(0)), "{kind:?}");
        assert!(flushes(kind, new, None, Some(0)), "{kind:?}");
        assert!(!flushes(kind, new, None, None), "{kind:?}");
    }
    // Only ext4 asks how it was mounted.
    assert!(flushes(FilesystemKind::Ext2, new, Some(false), Some(0)));
    assert!(!flushes(FilesystemKind::Ext4, new, Some(false), Some(0)));
}

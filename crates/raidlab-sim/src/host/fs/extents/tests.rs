mod cold;
mod cow;
mod small;

use super::super::{FileSystem, FsSpec};
use super::*;
use proptest::prelude::*;
use raidlab_core::op::{Entry, FileOp, OpenMode};
use raidlab_core::units::{GIB, KIB};
use raidlab_experiment::kernel::{FilesystemKind, Kernel};

const KINDS: [FilesystemKind; 3] = [
    FilesystemKind::Xfs,
    FilesystemKind::Btrfs,
    FilesystemKind::Ntfs,
];

fn made(kind: FilesystemKind, bytes: u64) -> FileSystem {
    let kernel = match kind {
        FilesystemKind::Ntfs => Kernel::Windows2000,
        _ => Kernel::DEFAULT,
    };
    FileSystem::new(&FsSpec::new(kind, kernel, bytes / SECTOR)).unwrap()
}

fn extents(fs: &FileSystem) -> &Extents {
    match &fs.0 {
        super::super::Inner::Extents(fs) => fs,
        _ => unreachable!("made of extents"),
    }
}

fn write(fs: &mut FileSystem, file: FileId, at: u64, len: u64) -> Vec<Piece> {
    let mut out = Vec::new();
    let _ = fs.reserve(file, at, len).unwrap();
    let _ = fs.place(file, at, len, &mut out).unwrap();
    out
}

/// A node of btrfs is no smaller than a block, however large that is.
#[test]
fn every_size_of_blocks_makes_a_file_system() {
    for kernel in [Kernel::Linux(3, 10, 0), Kernel::DEFAULT] {
        for kind in [FilesystemKind::Xfs, FilesystemKind::Btrfs] {
            for block in (9..=16).map(|power| 1_u32 << power) {
                let mut spec = FsSpec::new(kind, kernel, 8 * GIB / SECTOR);
                spec.block = block;
                let mut fs = FileSystem::new(&spec).unwrap();
                let _ = fs.open(0, OpenMode::Create).unwrap();
                write(&mut fs, 0, 0, MIB);
            }
        }
    }
}

/// Extents of 4 KiB are written over in a file of btrfs, and what they had is free. 1 MiB finds room as a whole.
#[test]
fn what_btrfs_writes_goes_whole_where_there_is_room_for_it() {
    let mut fs = made(FilesystemKind::Btrfs, 4 * GIB);
    let _ = fs.open(0, OpenMode::Create).unwrap();
    write(&mut fs, 0, 0, 8 * MIB);
    for at in (8 * MIB..16 * MIB).step_by(4 << 10) {
        write(&mut fs, 0, at, 4 * KIB);
    }
    let _ = fs.commit();
    for at in (8 * MIB..16 * MIB).step_by(128 << 10) {
        write(&mut fs, 0, at, 4 * KIB);
    }
    let before = extents(&fs).space.free();
    let _ = fs.commit();
    assert_eq!(extents(&fs).space.free() - before, 64);
    for at in (0..8 * MIB).step_by(MIB as usize) {
        assert_eq!(write(&mut fs, 0, at, MIB).len(), 1, "at {at}");
    }
}

/// Where no place has room for all of it, the largest parts that have go apart.
#[test]
fn what_finds_no_room_as_a_whole_is_halved() {
    let mut fs = made(FilesystemKind::Btrfs, GIB);
    let _ = fs.open(0, OpenMode::Create).unwrap();
    let _ = fs.open(1, OpenMode::Create).unwrap();
    let (mut at, mut most) = (0, 0);
    // Two files by turns until all is full, and one of them goes.
    while fs
        .reserve(at as FileId % 2, at / 2 * 512 * KIB, 512 * KIB)
        .is_ok()
    {
        let mut out = Vec::new();
        let _ = fs.place(at as FileId % 2, at / 2 * 512 * KIB, 512 * KIB, &mut out);
        (at, most) = (at + 1, most.max(out.len()));
    }
    let _ = fs.remove(1);
    let _ = fs.commit();
    let _ = fs.open(2, OpenMode::Create).unwrap();
    let pieces = write(&mut fs, 2, 0, MIB);
    assert_eq!((most, pieces.len()), (1, 2), "{pieces:?}");
}

#[test]
fn a_sequential_file_is_a_few_runs() {
    for kind in KINDS {
        let mut fs = made(kind, 36 * GIB);
        let _ = fs.open(0, OpenMode::Create).unwrap();
        for at in (0..2 * GIB).step_by(MIB as usize) {
            write(&mut fs, 0, at, MIB);
        }
        let mut out = Vec::new();
        let _ = fs.find(0, 0, 2 * GIB, &mut out);
        assert_eq!(out.iter().map(Piece::bytes).sum::<u64>(), 2 * GIB);
        assert!(out.len() <= 4, "{kind}: {out:?}");
        // In the outer zone; behind what NTFS keeps for its records.
        let least = u64::from(kind == FilesystemKind::Ntfs) * 36 * GIB / 8 / SECTOR;
        let begins = least..least + GIB / SECTOR;
        assert!(begins.contains(&out[0].lba.0), "{kind}: {out:?}");
    }
}

/// Windows 2000 has the MFT and its zone at the front, so that two files of 2 GB are next to each other; the log file is in the
/// middle, away from both. Inodes of xfs are with the files of their group (seen on Linux 6.18: inode 132 of the first
/// directory, its block 10), not with the log.
#[test]
fn records_are_at_the_front_and_the_log_in_the_middle() {
    for kind in [FilesystemKind::Ntfs, FilesystemKind::Xfs] {
        let mut fs = made(kind, 36 * GIB);
        let pieces = [0, 1].map(|file| {
            let _ = fs.open(file, OpenMode::Create).unwrap();
            let mut all = Vec::new();
            for at in (0..2 * GIB).step_by(64 * MIB as usize) {
                all.extend(write(&mut fs, file, at, 64 * MIB));
            }
            all
        });
        let ends = pieces[0].iter();
        let end = ends
            .map(|piece| piece.lba.0 + u64::from(piece.sectors))
            .max();
        let end = end.unwrap();
        let begin = pieces[1].iter().map(|piece| piece.lba.0).min().unwrap();
        assert!(begin >= end, "{kind}");
        // What xfs keeps for the first grows with it.
        let next = begin - end < 64 * MIB / SECTOR;
        assert!(next || kind == FilesystemKind::Xfs, "{}", begin - end);
        let fs = extents(&fs);
        let middle = 18 * GIB / fs.kind.block;
        let log = fs.log.runs().iter().all(|run| run.start >= middle);
        assert!(log, "{kind}");
        assert!(fs.small.record(&fs.kind, 0) < 64, "{kind}");
    }
}

/// Write-back of the first of two files gives places to all that was kept for it in memory, so that the second begins
/// behind that, and the first goes on there.
#[test]
fn what_xfs_keeps_for_a_growing_file_lies_before_the_next_file() {
    let kept = |kernel, calls: u64, direct| {
        let mut fs = FileSystem::new(&FsSpec::new(FilesystemKind::Xfs, kernel, 36 * GIB / SECTOR));
        let fs = fs.as_mut().unwrap();
        let mut out = Vec::new();
        for file in [0, 1] {
            let _ = fs.open(file, OpenMode::Create).unwrap();
            for at in (0..calls * MIB).step_by(MIB as usize) {
                let _ = match direct {
                    true => fs.reserve_direct(file, at, MIB).unwrap(),
                    false => fs.reserve(file, at, MIB).unwrap(),
                };
            }
        }
        for file in [0, 1] {
            let _ = fs.place(file, 0, MIB, &mut out).unwrap();
        }
        let _ = fs.place(0, MIB, (calls - 1) * MIB, &mut out).unwrap();
        let at = out[0].lba.0;
        assert!(
            out[2..]
                .iter()
                .all(|piece| piece.lba.0 > at && piece.lba.0 - at < 64 * MIB / SECTOR)
        );
        ((out[1].lba.0 - at) * SECTOR, out.len())
    };
    // Each extent without places is a call and twice what is before it: 1, 4, 13 and 30 MiB (a power of two more).
    let modern = Kernel::DEFAULT;
    for (calls, end) in [(1, 1), (2, 4), (4, 4), (5, 13), (14, 30), (31, 63)] {
        assert_eq!(kept(modern, calls, false).0, end * MIB, "{calls}");
    }
    // As much as the file has: it ends at 1, 3, 6 and 11 MiB.
    for (calls, end) in [(1, 1), (2, 3), (4, 6), (7, 11)] {
        assert_eq!(
            kept(Kernel::Linux(3, 2, 0), calls, false).0,
            end * MIB,
            "{calls}"
        );
    }
    // Before, what is written and 64 KiB at a time; past the cache nothing, ever.
    assert_eq!(kept(Kernel::Linux(2, 6, 32), 5, false), (MIB, 3));
    assert_eq!(kept(modern, 5, true), (MIB, 3));
}

#[test]
fn only_btrfs_overwrites_elsewhere() {
    for kind in KINDS {
        let mut fs = made(kind, 10 * GIB);
        let _ = fs.open(0, OpenMode::Create).unwrap();
        let first = write(&mut fs, 0, 0, MIB);
        let again = write(&mut fs, 0, 0, MIB);
        assert_eq!(first != again, kind == FilesystemKind::Btrfs, "{kind}");
        assert_eq!(first != again, fs.traits().copy_on_write);
    }
}

#[test]
fn commits_go_round_in_the_log_and_twice_in_btrfs() {
    for kind in KINDS {
        let mut fs = made(kind, 4 * GIB);
        let _ = fs.open(0, OpenMode::Create).unwrap();
        let inside: Vec<(u64, u64)> = extents(&fs)
            .log
            .runs()
            .iter()
            .map(|run| (run.start * 8, run.end() * 8))
            .collect();
        let (mut wraps, mut last) = (0, 0);
        for i in 0..4000 {
            write(&mut fs, 0, i % 64 * MIB, MIB);
            for index in 0..40 {
                let entry = Entry {
                    index: i as u32 * 40 + index,
                    directory: 0,
                    ordered: true,
                };
                let _ = fs
                    .small(&FileOp::Create {
                        entry,
                        size: 0,
                        sync: false,
                    })
                    .unwrap();
            }
            let commit = fs.commit().unwrap();
            let writes = &commit.stages[0].writes;
            for place in writes {
                let (from, to) = (place.lba.0, place.lba.0 + u64::from(place.sectors));
                assert!(
                    inside.iter().any(|log| log.0 <= from && to <= log.1),
                    "{kind}"
                );
            }
            wraps += usize::from(writes[0].lba.0 < last);
            last = writes[0].lba.0;
            if kind == FilesystemKind::Btrfs {
                let sectors: u32 = writes.iter().map(|p| p.sectors).sum();
                assert!(commit.data_first && sectors.is_multiple_of(2 * 32));
                assert!(commit.stages[1].flush_before && commit.stages[1].durable);
                assert_eq!(commit.stages[1].writes.len(), 2);
            } else {
                assert!(!commit.later.is_empty());
            }
        }
        assert!(wraps > 0, "{kind}");
    }
}

/// Whatever is left over when a device is divided into groups.
#[test]
fn the_log_of_xfs_is_in_the_middle_group() {
    for (more, stripe) in [0, 1, 2, 3, 65]
        .into_iter()
        .flat_map(|m| [(m, 0), (m, 512)])
    {
        let blocks = 4 * GIB / (4 * KIB) + more;
        let mut spec = FsSpec::new(FilesystemKind::Xfs, Kernel::DEFAULT, blocks * 8);
        (spec.chunk, spec.stripe) = (stripe / 2 * KIB, stripe * KIB);
        let kind = Kind::new(&spec);
        let groups = if stripe > 0 { 8 } else { 4 };
        assert_eq!(kind.log_at / kind.group, groups / 2, "{more} {stripe}");
    }
}

/// What mkfs 6.1 makes of 605 184 blocks on a raid10 of four with chunks of 256 KiB: 8 groups of 75 584 blocks, which are whole
/// stripe units and not whole stripes. Where a file begins or goes on elsewhere, a stripe unit does; small ones go anywhere.
#[test]
fn xfs_begins_files_at_stripe_units() {
    let mut spec = FsSpec::new(FilesystemKind::Xfs, Kernel::DEFAULT, 605_184 * 8);
    assert_eq!(Kind::new(&spec).group, 151_296);
    (spec.chunk, spec.stripe) = (256 * KIB, 512 * KIB);
    assert_eq!(Kind::new(&spec).group, 75_584);
    // The same of a raid5 of three and, where all members have the same, of a raid10 of two with chunks of 64 KiB.
    (spec.chunk, spec.stripe) = (64 * KIB, 128 * KIB);
    assert_eq!(Kind::new(&spec).group, 75_632);
    let mut alike = FsSpec::new(FilesystemKind::Xfs, Kernel::DEFAULT, 302_592 * 8);
    (alike.chunk, alike.stripe) = (64 * KIB, 64 * KIB);
    assert_eq!(
        (Kind::new(&alike).group, Kind::new(&alike).unit),
        (37_824, 16)
    );
    // Groups would have no whole chunk.
    (spec.chunk, spec.stripe) = (512 * MIB, GIB);
    assert_eq!(
        (Kind::new(&spec).group, Kind::new(&spec).unit),
        (151_296, 0)
    );
    (spec.chunk, spec.stripe) = (256 * KIB, 512 * KIB);
    let mut fs = FileSystem::new(&spec).unwrap();
    for file in 0..4 {
        let _ = fs.open(file, OpenMode::Create).unwrap();
    }
    let off = |pieces: &[Piece]| pieces[0].lba.0 * SECTOR % (256 * KIB);
    write(&mut fs, 0, 0, 4 * KIB);
    assert_eq!(off(&write(&mut fs, 1, 0, 64 * MIB)), 0);
    assert_ne!(off(&write(&mut fs, 2, 0, 16 * KIB)), 0);
    // Behind what is there, as long as nothing of another file is.
    write(&mut fs, 3, 0, 300 * KIB);
    let next = write(&mut fs, 3, 300 * KIB, MIB);
    assert_eq!(off(&next), 300 * KIB % (256 * KIB));
}

/// KiB of the log for a first write that is made durable, measured with mkfs 6.1 and Linux 6.18: 1.0 (1.5 where nothing was kept
/// for the file yet), 4 with sectors of 4 KiB, on stripes as `-d su` tells them 64, 256 and 32.
#[test]
fn the_log_of_xfs_is_written_in_sectors_or_stripe_units() {
    let wrote = |kernel, sector, chunk| {
        let mut spec = FsSpec::new(FilesystemKind::Xfs, kernel, 4 * GIB / SECTOR);
        (spec.sector, spec.chunk) = (sector, chunk);
        let mut fs = FileSystem::new(&spec).unwrap();
        let _ = fs.open(0, OpenMode::Create).unwrap();
        let _ = fs.commit();
        let mut of = |at: u64| {
            write(&mut fs, 0, at * 4 * KIB, 4 * KIB);
            let commit = fs.commit().unwrap();
            let writes = commit.stages.iter().flat_map(|stage| &stage.writes);
            writes.map(|w| u64::from(w.sectors) * SECTOR).sum::<u64>()
        };
        let first = of(0);
        assert!(of(1) <= first);
        first
    };
    let now = Kernel::Linux(6, 18, 0);
    assert_eq!(wrote(now, 512, 0), 3 * SECTOR);
    assert_eq!(wrote(now, 4096, 0), 4 * KIB);
    for (chunk, unit) in [(64, 64), (256, 256), (512, 32)] {
        assert_eq!(wrote(now, 512, chunk * KIB), unit * KIB);
        assert_eq!(wrote(now, 4096, chunk * KIB), unit * KIB);
    }
    // Logs of version 1, and makers that do not ask for the disk's sectors.
    assert_eq!(wrote(Kernel::Linux(2, 6, 18), 4096, 64 * KIB), 4 * SECTOR);
}

#[test]
fn space_comes_back_and_a_full_device_says_so() {
    for kind in KINDS {
        let mut fs = made(kind, GIB);
        let before = extents(&fs).space.free();
        let entry = |index| Entry {
            index,
            directory: 1,
            ordered: false,
        };
        for index in 0..300 {
            let create = FileOp::Create {
                entry: entry(index),
                size: 10_000,
                sync: false,
            };
            let written = fs.small(&create).unwrap().written;
            assert_eq!(written.len(), 1);
            let reads = fs
                .small(&FileOp::Stat {
                    entry: entry(index),
                    size: 10_000,
                })
                .unwrap()
                .reads;
            assert!(reads.contains(&written[0]));
        }
        for index in 0..300 {
            let _ = fs
                .small(&FileOp::Unlink {
                    entry: entry(index),
                })
                .unwrap();
        }
        let gone = fs.small(&FileOp::Unlink { entry: entry(0) });
        assert_eq!(gone, Err(FsError::NoFile));
        let _ = fs.small(&FileOp::RemoveDirectory { directory: 1 }).unwrap();
        let _ = fs.commit();
        // Chunks of inodes stay.
        let chunks = extents(&fs).small.chunk_blocks();
        assert_eq!(extents(&fs).space.free() + chunks, before, "{kind}");
        let _ = fs.open(0, OpenMode::Create).unwrap();
        let (mut at, mut out) = (0, Vec::new());
        while fs.reserve(0, at, MIB).is_ok() {
            let _ = fs.place(0, at, MIB, &mut out).unwrap();
            at += MIB;
        }
        assert_eq!(fs.reserve(0, at, MIB), Err(FsError::NoSpace));
        assert!(at > 700 * MIB, "{kind}: {at}");
        let _ = fs.remove(0);
        let _ = fs.commit();
        assert_eq!(extents(&fs).space.free() + chunks, before, "{kind}");
    }
}

/// Where a chunk is copied nothing new is put and what is freed stays free; when it is done all is as if it had not been.
#[test]
fn nothing_new_goes_where_a_chunk_is_copied() {
    let mut fs = made(FilesystemKind::Btrfs, 16 * GIB);
    fs.provide(0, 3 * GIB).unwrap();
    fs.provide(1, GIB).unwrap();
    let free = |fs: &FileSystem| {
        let fs = extents(fs);
        let closed: u64 = fs.closed.runs.iter().map(|run| run.len).sum();
        (fs.space.free() + closed, fs.closed.runs.is_empty())
    };
    let before = free(&fs);
    let chunk = (2 * GIB / SECTOR, 6 * GIB / SECTOR);
    fs.close(Some(chunk));
    assert_eq!(free(&fs), (before.0, false));
    let _ = fs.open(2, OpenMode::Create).unwrap();
    let within = |piece: &Piece| {
        let (from, end) = (piece.lba.0, piece.lba.0 + u64::from(piece.sectors));
        from < chunk.1 && end > chunk.0
    };
    for i in 0..40 {
        let pieces = write(&mut fs, 2, i * 100 * MIB, 100 * MIB);
        assert!(!pieces.iter().any(within), "{i}: {pieces:?}");
    }
    // Freed there, and not to be had before it is done.
    let _ = fs.remove(1);
    let _ = fs.commit();
    let pieces = write(&mut fs, 2, 4000 * MIB, GIB);
    assert!(!pieces.iter().any(within), "{pieces:?}");
    fs.close(Some((0, 2 * GIB / SECTOR)));
    fs.close(None);
    let _ = fs.remove(2);
    let _ = fs.commit();
    let _ = fs.remove(0);
    let _ = fs.commit();
    let all = free(&fs);
    assert_eq!(all, (before.0 + 4 * GIB / 4096, true));
    assert_eq!(all.0, free(&made(FilesystemKind::Btrfs, 16 * GIB)).0);
}

#[test]
fn a_large_file_takes_little_memory() {
    for kind in KINDS {
        let mut fs = made(kind, 24_000_000_000_000);
        fs.provide(0, 10 << 40).unwrap();
        let runs = extents(&fs).files[&0].runs.len();
        assert!(runs < 100, "{kind}: {runs}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Found is what was placed last, and no two files share a sector.
    #[test]
    fn places_hold(
        which in 0_usize..3,
        steps in proptest::collection::vec((0_u32..3, 0_u64..4000, 1_u64..600, 0_u8..8), 1..40),
    ) {
        let mut fs = made(KINDS[which], 700 * MIB);
        for (file, first, n, what) in steps {
            if fs.open(file, OpenMode::Update).is_err() {
                let _ = fs.open(file, OpenMode::Create).unwrap();
            }
            match what {
                0 => {
                    let _ = fs.truncate(file, first * 4 * KIB);
                }
                1 => {
                    let _ = fs.commit();
                }
                _ => {
                    let placed = write(&mut fs, file, first * 4 * KIB, n * 4 * KIB);
                    let mut now = Vec::new();
                    let _ = fs.find(file, first * 4 * KIB, n * 4 * KIB, &mut now);
                    prop_assert_eq!(placed.iter().map(Piece::bytes).sum::<u64>(), n * 4 * KIB);
                    prop_assert_eq!(placed, now);
                }
            }
        }
        let mut used: Vec<(u64, u64)> = Vec::new();
        used.extend(extents(&fs).log.runs().iter().map(|run| (run.start * 8, run.len * 8)));
        for file in 0..3 {
            let mut out = Vec::new();
            let _ = fs.find(file, 0, GIB, &mut out);
            used.extend(out.iter().map(|p| (p.lba.0, u64::from(p.sectors))));
        }
        used.sort_unstable();
        prop_assert!(used.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
    }
}

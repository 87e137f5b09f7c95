use super::super::plan::{Piece, Place};
use super::super::{FileSystem, FsSpec};
use super::*;
use proptest::prelude::*;
use raidlab_core::op::{Entry, FileOp};
use raidlab_core::units::{GIB, KIB, MIB, SECTOR};

mod beside;
mod journal;
mod large;
mod names;

fn spec(kind: FilesystemKind, bytes: u64) -> FsSpec {
    let kernel = match kind {
        FilesystemKind::Ext4 => Kernel::DEFAULT,
        _ => Kernel::Linux(2, 6, 16),
    };
    FsSpec::new(kind, kernel, bytes / SECTOR)
}

fn made(kind: FilesystemKind, bytes: u64) -> FileSystem {
    FileSystem::new(&spec(kind, bytes)).unwrap()
}

fn with_file(kind: FilesystemKind, bytes: u64) -> FileSystem {
    let mut fs = made(kind, bytes);
    let _ = fs.open(0, OpenMode::Create).unwrap();
    fs
}

/// Writes sequentially in calls, and writes back a MiB at a time.
fn write(fs: &mut FileSystem, file: FileId, bytes: u64, call: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for at in (0..bytes).step_by(MIB as usize) {
        for offset in (at..(at + MIB).min(bytes)).step_by(call as usize) {
            let _ = fs.reserve(file, offset, call.min(bytes - offset)).unwrap();
        }
        let len = MIB.min(bytes - at);
        let _ = fs.place(file, at, len, &mut pieces).unwrap();
    }
    pieces
}

fn found(fs: &mut FileSystem, file: FileId, bytes: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let _ = fs.find(file, 0, bytes, &mut pieces);
    pieces
}

fn ext(fs: &FileSystem) -> &Ext {
    match &fs.0 {
        super::super::Inner::Ext(ext) => ext,
        _ => unreachable!("made as ext"),
    }
}

#[test]
fn a_sequential_ext3_file_has_a_gap_every_four_mib() {
    let mut fs = with_file(FilesystemKind::Ext3, 40_000_000_000);
    write(&mut fs, 0, GIB, 8192);
    let pieces = found(&mut fs, 0, GIB);
    assert_eq!(pieces.iter().map(Piece::bytes).sum::<u64>(), GIB);
    // 256 stretches by indirect blocks, some cut again by the metadata of eight groups.
    assert!((257..=266).contains(&pieces.len()), "{}", pieces.len());
    let gaps: Vec<u64> = pieces
        .windows(2)
        .map(|w| w[1].lba.0 - w[0].lba.0 - u64::from(w[0].sectors))
        .collect();
    // One block of 4 KiB, mostly.
    assert!(gaps.iter().filter(|gap| **gap == 8).count() > 245);
    // The journal of 128 MiB is before it.
    assert!(pieces[0].lba.0 * SECTOR > 128 * MIB);
    // In memory it is a run a group.
    assert!(ext(&fs).files[&0].runs.len() <= 10);
}

#[test]
fn an_ext3_of_the_ext4_driver_has_its_indirect_blocks_out_of_the_way() {
    let of = |kernel| {
        let spec = FsSpec::new(FilesystemKind::Ext3, kernel, 40_000_000_000 / SECTOR);
        let mut fs = FileSystem::new(&spec).unwrap();
        let _ = fs.open(0, OpenMode::Create).unwrap();
        write(&mut fs, 0, GIB, 8192);
        let pieces = found(&mut fs, 0, GIB);
        assert_eq!(pieces.iter().map(Piece::bytes).sum::<u64>(), GIB);
        let apart = |w: &&[Piece]| w[0].lba.0 + u64::from(w[0].sectors) != w[1].lba.0;
        pieces.windows(2).filter(apart).count()
    };
    let (before, since) = (of(Kernel::Linux(4, 2, 0)), of(Kernel::Linux(4, 3, 0)));
    assert!(before >= 256, "{before}");
    // Nine groups, and the first MiB by preallocations that grow.
    assert!(since <= 9 + 10, "{since}");
}

#[test]
fn an_ext4_file_is_a_few_extents() {
    let mut fs = with_file(FilesystemKind::Ext4, 100 * GIB);
    write(&mut fs, 0, GIB, 64 * KIB);
    let pieces = found(&mut fs, 0, GIB);
    // Copies of the superblock and descriptors are all that is in the way.
    assert!(pieces.len() <= 7, "{pieces:?}");
}

#[test]
fn overwriting_stays_in_place_and_dirties_one_inode_a_transaction() {
    for kind in [
        FilesystemKind::Ext2,
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
    ] {
        let mut fs = with_file(kind, 10 * GIB);
        let first = write(&mut fs, 0, 32 * MIB, 8192);
        let _ = fs.commit();
        // Not before its time has changed.
        assert_eq!(fs.reserve(0, 5 * MIB, 8192).unwrap().dirtied, 0, "{kind}");
        fs.clock(1_000_000_000);
        assert_eq!(fs.reserve(0, 5 * MIB, 8192).unwrap().dirtied, 1, "{kind}");
        assert_eq!(fs.reserve(0, 6 * MIB, 8192).unwrap().dirtied, 0, "{kind}");
        let again = write(&mut fs, 0, 32 * MIB, 8192);
        assert_eq!(first, again, "{kind}");
    }
}

#[test]
fn two_writers_at_once_alternate_by_windows() {
    let mut fs = with_file(FilesystemKind::Ext3, 10 * GIB);
    let _ = fs.open(1, OpenMode::Create).unwrap();
    for at in (0..64 * MIB).step_by(4096) {
        let _ = fs.reserve(0, at, 4096).unwrap();
        let _ = fs.reserve(1, at, 4096).unwrap();
    }
    let runs = [0, 1].map(|file| ext(&fs).files[&file].runs.len());
    // Windows grow to 1027 blocks: 16384 blocks are some twenty windows.
    assert!(runs.iter().all(|n| (10..40).contains(n)), "{runs:?}");
}

#[test]
fn reading_needs_the_indirect_blocks() {
    let mut fs = with_file(FilesystemKind::Ext3, 10 * GIB);
    write(&mut fs, 0, 64 * MIB, MIB);
    let mut out = Vec::new();
    let reads = |fs: &mut FileSystem, at| {
        let mut out = Vec::new();
        fs.find(0, at, 128 * KIB, &mut out).reads.len()
    };
    // None above the first 48 KiB, one above the next 4 MiB; two after them, three at a boundary.
    assert_eq!(fs.find(0, 0, 48 * KIB, &mut out).reads.len(), 0);
    assert_eq!(reads(&mut fs, MIB), 1);
    assert_eq!(reads(&mut fs, 33 * MIB), 2);
    assert_eq!(reads(&mut fs, 32 * MIB), 3);
}

#[test]
fn a_create_changes_what_it_should() {
    let entry = |index| Entry {
        index,
        directory: 1,
        ordered: true,
    };
    let create = |index, size| FileOp::Create {
        entry: entry(index),
        size,
        sync: false,
    };
    let mut fs = made(FilesystemKind::Ext3, 10 * GIB);
    let _ = fs.small(&FileOp::MakeDirectory { directory: 1 }).unwrap();
    let _ = fs.commit();
    // Inode bitmap, descriptor, inode block (the directory's too), directory block.
    let charge = fs.small(&create(0, 0)).unwrap();
    assert_eq!((charge.dirtied, charge.written.len()), (4, 0));
    // The same blocks again.
    assert_eq!(fs.small(&create(1, 0)).unwrap().dirtied, 0);
    // And the block bitmap, with three blocks of data.
    let charge = fs.small(&create(2, 10_000)).unwrap();
    assert_eq!(charge.dirtied, 1);
    assert_eq!(charge.written.iter().map(|p| p.sectors).sum::<u32>(), 24);
    let written = charge.written.clone();
    let charge = fs
        .small(&FileOp::Stat {
            entry: entry(2),
            size: 10_000,
        })
        .unwrap();
    assert!(written.iter().all(|p| charge.reads.contains(p)));
    let charge = fs.small(&FileOp::Unlink { entry: entry(2) }).unwrap();
    assert_eq!(charge.dropped, written);
    let gone = fs.small(&FileOp::Stat {
        entry: entry(2),
        size: 0,
    });
    assert_eq!(gone, Err(FsError::NoFile));
    let durable = FileOp::Create {
        entry: entry(3),
        size: 0,
        sync: true,
    };
    assert!(fs.small(&durable).unwrap().commit_needed);
}

#[test]
fn a_directory_without_a_hash_tree_costs_more_the_fuller_it_is() {
    let cost = |hashed: bool, index: u32| {
        let mut given = spec(FilesystemKind::Ext3, 10 * GIB);
        given.dir_index = Some(hashed);
        let mut fs = FileSystem::new(&given).unwrap();
        let mut cpu = Span::ZERO;
        for index in 0..index {
            let entry = Entry {
                index,
                directory: 0,
                ordered: true,
            };
            cpu = fs
                .small(&FileOp::Create {
                    entry,
                    size: 0,
                    sync: false,
                })
                .unwrap()
                .cpu;
        }
        cpu.0
    };
    assert!(cost(false, 3000) > cost(false, 300) + 2 * 2600 * cost::COMPARE);
    assert_eq!(cost(true, 3000), cost(true, 300));
}

#[test]
fn a_full_device_says_so_and_keeps_what_it_has() {
    for kind in [
        FilesystemKind::Ext2,
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
    ] {
        let mut fs = with_file(kind, GIB);
        let _ = fs.open(1, OpenMode::Create).unwrap();
        let mut written = 0;
        let error = loop {
            let file = u32::from(written % (4 * MIB) >= 2 * MIB);
            if let Err(error) = fs.reserve(file, written, 256 * KIB) {
                break error;
            }
            let mut out = Vec::new();
            if let Err(error) = fs.place(file, written, 256 * KIB, &mut out) {
                break error;
            }
            written += 256 * KIB;
        };
        assert_eq!(error, FsError::NoSpace, "{kind}");
        assert!(written > 900 * MIB, "{kind}: {written}");
        assert!(ext(&fs).space.free() * 4096 < MIB);
        let bytes = |file| {
            found(&mut fs.clone(), file, GIB)
                .iter()
                .map(Piece::bytes)
                .sum::<u64>()
        };
        assert!(bytes(0) + bytes(1) >= written);
    }
    assert!(matches!(
        FileSystem::new(&spec(FilesystemKind::Ext3, MIB)),
        Err(FsError::DeviceTooSmall { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever is written, cut and removed: found is what was placed, no two files share a sector,
    /// and none lies in fixed metadata or the journal.
    #[test]
    fn places_hold(
        (kind, kernel) in prop_oneof![
            Just((FilesystemKind::Ext2, Kernel::Linux(2, 6, 16))),
            Just((FilesystemKind::Ext3, Kernel::Linux(2, 6, 16))),
            Just((FilesystemKind::Ext3, Kernel::DEFAULT)),
            Just((FilesystemKind::Ext4, Kernel::DEFAULT)),
        ],
        steps in proptest::collection::vec((0_u32..3, 0_u64..3000, 1_u64..600, 0_u8..10), 1..40),
    ) {
        let mut fs = FileSystem::new(&FsSpec::new(kind, kernel, 700 * MIB / SECTOR)).unwrap();
        for (file, first, n, what) in steps {
            if fs.open(file, OpenMode::Update).is_err() {
                let _ = fs.open(file, OpenMode::Create).unwrap();
            }
            match what {
                0 => {
                    let _ = fs.remove(file);
                }
                1 => {
                    let _ = fs.truncate(file, first * 4096);
                    let mut out = Vec::new();
                    let _ = fs.find(file, first * 4096, GIB, &mut out);
                    prop_assert!(out.is_empty());
                }
                2 => {
                    let _ = fs.commit();
                }
                _ => {
                    let _ = fs.reserve(file, first * 4096, n * 4096).unwrap();
                    let (mut placed, mut now) = (Vec::new(), Vec::new());
                    let _ = fs.place(file, first * 4096, n * 4096, &mut placed).unwrap();
                    let _ = fs.find(file, first * 4096, n * 4096, &mut now);
                    prop_assert_eq!(placed.iter().map(Piece::bytes).sum::<u64>(), n * 4096);
                    prop_assert_eq!(placed, now);
                }
            }
        }
        let mut used: Vec<(u64, u64)> = Vec::new();
        for file in 0..3 {
            let mut out = Vec::new();
            let charge = fs.find(file, 0, GIB, &mut out);
            let sorted = out.windows(2).all(|w| w[0].offset + w[0].bytes() <= w[1].offset);
            prop_assert!(sorted);
            used.extend(out.iter().map(|p| (p.lba.0, u64::from(p.sectors))));
            let mut above: Vec<Place> = charge.reads;
            above.sort_unstable();
            above.dedup();
            used.extend(above.iter().map(|p| (p.lba.0, u64::from(p.sectors))));
        }
        let ext = ext(&fs);
        used.extend(ext.journal.runs().iter().map(|run| (run.start * 8, run.len * 8)));
        for group in 0..ext.geometry.groups() {
            use super::super::space::Shape;
            used.push((group * ext.geometry.per_group * 8, ext.geometry.prefix(group) * 8));
        }
        used.sort_unstable();
        prop_assert!(used.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
    }
}

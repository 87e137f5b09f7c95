use super::super::plan::Piece;
use super::super::{FileSystem, FsSpec};
use super::*;
use raidlab_core::units::{GIB, KIB, MIB, SECTOR};

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

#[test]
fn a_sequential_ext3_file_has_a_gap_every_four_mib() {
    let mut fs = made(FilesystemKind::Ext3, 40_000_000_000);
    let _ = fs.open(0, OpenMode::Create).unwrap();
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
}

#[test]
fn an_ext4_file_is_a_few_extents() {
    let mut fs = made(FilesystemKind::Ext4, 100 * GIB);
    let _ = fs.open(0, OpenMode::Create).unwrap();
    write(&mut fs, 0, GIB, 64 * KIB);
    let pieces = found(&mut fs, 0, GIB);
    // Copies of the superblock and descriptors are all that is in the way.
    assert!(pieces.len() <= 7, "{pieces:?}");
}

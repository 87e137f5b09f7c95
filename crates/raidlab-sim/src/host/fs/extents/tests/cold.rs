//! What has to be read after a file system has been mounted anew.
use super::*;

/// Sectors of data whose checksums are in a leaf of 16 KiB.
const LEAF: u64 = (16_384 - 126) / 4 * 8;

fn reads(fs: &mut FileSystem, at: u64, len: u64) -> Vec<Place> {
    let mut out = Vec::new();
    fs.find(0, at, len, &mut out).reads
}

fn laid_out(kind: FilesystemKind) -> FileSystem {
    let mut fs = made(kind, 4 * GIB);
    fs.provide(0, 256 * MIB).unwrap();
    fs
}

#[test]
fn checksums_of_what_lay_there_are_read_with_the_data() {
    let mut fs = laid_out(FilesystemKind::Btrfs);
    assert_eq!(reads(&mut fs, 0, 4096), []);
    fs.mount_anew();
    let first = reads(&mut fs, 0, 4096);
    assert_eq!(first.len(), 1);
    assert_eq!(u64::from(first[0].sectors) * SECTOR, 16 * KIB);
    // The same leaf has those of what lies beside it.
    assert_eq!(reads(&mut fs, 8 * KIB, 4096), first);
    // Sixteen leaves of 16 MiB, and one where the file does not begin with one.
    let mut all: Vec<Place> = (0..256)
        .flat_map(|at| reads(&mut fs, at * MIB, 4096))
        .collect();
    all.dedup();
    assert!((16..=17).contains(&all.len()), "{}", all.len());
    let mut apart = all.clone();
    apart.sort_by_key(|place| place.lba);
    apart.dedup();
    assert_eq!(apart.len(), all.len());
}

/// Large reads have the leaves that follow read at once.
#[test]
fn large_reads_look_ahead_among_leaves() {
    let mut fs = laid_out(FilesystemKind::Btrfs);
    fs.mount_anew();
    let (small, large) = (reads(&mut fs, 0, 32 * KIB), reads(&mut fs, 0, 64 * KIB));
    assert_eq!(small[0].lba, large[0].lba);
    assert_eq!(small[0].sectors * 5, large[0].sectors);
    // The last ones have no more behind them.
    let last = reads(&mut fs, 255 * MIB, MIB);
    assert!(
        last.iter().all(|place| place.sectors < large[0].sectors),
        "{last:?}"
    );
    let two = reads(&mut fs, 0, LEAF * SECTOR + MIB);
    assert!(two.len() >= 2, "{two:?}");
}

#[test]
fn what_is_written_since_and_other_file_systems_need_no_reads() {
    let mut fs = laid_out(FilesystemKind::Btrfs);
    fs.mount_anew();
    write(&mut fs, 0, 64 * MIB, MIB);
    assert_eq!(reads(&mut fs, 64 * MIB, MIB), []);
    assert_eq!(reads(&mut fs, 66 * MIB, MIB).len(), 1);
    for kind in [FilesystemKind::Xfs, FilesystemKind::Ntfs] {
        let mut fs = laid_out(kind);
        fs.mount_anew();
        assert_eq!(reads(&mut fs, 0, MIB), [], "{kind}");
    }
}

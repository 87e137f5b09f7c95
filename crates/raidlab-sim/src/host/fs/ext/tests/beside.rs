//! Files that grow side by side, as with `O_SYNC` or past the page cache, each call with its place at once.
use super::*;

/// Blocks of the extents of each of so many files of one size, which are written in turn.
fn extents(kind: FilesystemKind, files: u32, bytes: u64, call: u64) -> Vec<Vec<u64>> {
    let mut fs = FileSystem::new(&FsSpec::new(kind, Kernel::DEFAULT, 10 * GIB / SECTOR)).unwrap();
    let mut out = Vec::new();
    for file in 0..files {
        let _ = fs.open(file, OpenMode::Create).unwrap();
    }
    for at in (0..bytes).step_by(call as usize) {
        for file in 0..files {
            let _ = fs.reserve(file, at, call).unwrap();
            let _ = fs.place(file, at, call, &mut out).unwrap();
        }
    }
    let of = |file| ext(&fs).files[&file].runs.iter().map(|run| run.len);
    (0..files).map(|file| of(file).collect()).collect()
}

/// Seen in 6.1 in a guest: eight files, 4 KiB in turn with `O_SYNC`, then `FIEMAP`.
#[test]
fn preallocation_of_ext4_grows_with_the_files() {
    let mut expected = vec![1; 16];
    expected.extend([16, 32, 64, 128, 256, 512]);
    for file in extents(FilesystemKind::Ext4, 8, 4 * MIB, 4 * KIB) {
        assert_eq!(file, expected);
    }
    // Past the page cache, and further.
    expected.extend([1024, 2048]);
    for file in extents(FilesystemKind::Ext4, 8, 16 * MIB, 4 * KIB) {
        assert_eq!(file, expected);
    }
    // In calls of 64 KiB the first is one extent; two files may find room behind what they have.
    for file in extents(FilesystemKind::Ext4, 2, 32 * MIB, 64 * KIB) {
        assert!(file[0] == 16 && file.len() <= 11, "{file:?}");
    }
}

/// An ext3 of 6.1 lies as an ext4 does, in the same guest.
#[test]
fn so_does_that_of_an_ext3_that_it_has() {
    for file in extents(FilesystemKind::Ext3, 8, 4 * MIB, 4 * KIB) {
        // With the indirect block, behind the twelfth.
        assert_eq!(file[..20], [[1; 17].as_slice(), &[16, 32, 64]].concat());
        assert!(file.len() < 26, "{file:?}");
    }
}

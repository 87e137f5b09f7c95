//! Large files and devices.
use super::*;

#[test]
fn a_large_file_takes_little_memory() {
    let mut fs = with_file(FilesystemKind::Ext4, 24_000_000_000_000);
    fs.provide(1, 10 << 40).unwrap();
    let ext = ext(&fs);
    // A run for each group of 16 with its metadata before it.
    assert!(
        ext.files[&1].runs.len() < 6000,
        "{}",
        ext.files[&1].runs.len()
    );
}

#[test]
fn what_32_bits_cannot_number_is_refused() {
    let tib = 1024 * GIB;
    for kind in [FilesystemKind::Ext2, FilesystemKind::Ext3] {
        assert!(FileSystem::new(&spec(kind, 16 * tib - MIB)).is_ok());
        assert!(matches!(
            FileSystem::new(&spec(kind, 17 * tib)),
            Err(FsError::DeviceTooLarge { .. })
        ));
    }
    // ext4 has 64 bits when mke2fs makes them.
    let old = FsSpec::new(
        FilesystemKind::Ext4,
        Kernel::Linux(2, 6, 32),
        17 * tib / SECTOR,
    );
    let made = FileSystem::new(&old);
    assert!(matches!(made, Err(FsError::DeviceTooLarge { .. })));
    assert!(FileSystem::new(&spec(FilesystemKind::Ext4, 17 * tib)).is_ok());
}

#[test]
fn files_far_out_on_a_large_device_are_found_again() {
    let tib = 1024 * GIB;
    let mut fs = made(FilesystemKind::Ext4, 240 * tib);
    let geometry = ext(&fs).geometry;
    assert!(u32::try_from(geometry.inodes * geometry.groups()).is_ok());
    // Directories are in groups all over the device. In inodes of 32 bits several files were one.
    let entry = |index: u32| Entry {
        directory: index % 16,
        index,
        ordered: true,
    };
    for index in 0..64 {
        let (entry, size, sync) = (entry(index), 0, false);
        let _ = fs.small(&FileOp::Create { entry, size, sync }).unwrap();
    }
    let free = ext(&fs).names.inodes.free();
    for index in 0..64 {
        let entry = entry(index);
        let _ = fs.small(&FileOp::Unlink { entry }).unwrap();
    }
    assert_eq!(ext(&fs).names.inodes.free(), free + 64);
}

#[test]
fn a_large_ext4_has_fewer_inodes() {
    let tib = 1024 * GIB;
    let each = |tibs: u64| {
        let fs = made(FilesystemKind::Ext4, tibs * tib);
        let geometry = &ext(&fs).geometry;
        geometry.per_group * u64::from(geometry.block) / geometry.inodes
    };
    // mke2fs.conf: "default", "big", "huge".
    assert_eq!([3, 5, 17].map(each), [16_384, 32_768, 65_536]);
}

/// Written back whole, a file of ext4 gets 8 MiB at a time, which a buddy allocator gives where a multiple of 8 MiB of its group
/// begins: a call that is aligned in the file touches no more chunks of an array than one on the device itself. The tracepoint
/// `ext4_mballoc_alloc` of a guest of 6.1 tells so.
#[test]
fn what_is_aligned_in_a_large_file_is_on_the_device() {
    let (bytes, unit) = (640 * MIB, 8 * MIB);
    let mut fs = with_file(FilesystemKind::Ext4, 4 * GIB);
    let _ = fs.reserve(0, 0, bytes).unwrap();
    let mut pieces = Vec::new();
    let _ = fs.place(0, 0, bytes, &mut pieces).unwrap();
    let mut at = 0;
    for piece in &pieces {
        assert_eq!((piece.lba.0 * SECTOR) % unit, at % unit, "{piece:?}");
        at += u64::from(piece.sectors) * SECTOR;
    }
    assert_eq!(at, bytes);
}

//! What is read of inode tables for small files.
use super::*;
use std::collections::BTreeSet;

/// Blocks of all inode tables that are read by making so many empty files, and requests for them when all are looked at in a cold cache.
fn reads(kind: FilesystemKind, kernel: Kernel, files: u32) -> (u64, usize) {
    let spec = FsSpec::new(kind, kernel, 4 * GIB / SECTOR);
    let mut fs = FileSystem::new(&spec).unwrap();
    let geometry = ext(&fs).geometry;
    let of_tables = |place: &Place| {
        let block = place.lba.0 / geometry.sectors();
        (0..geometry.groups()).any(|group| {
            let table = geometry.inode_table(group);
            (table..table + geometry.table).contains(&block)
        })
    };
    let (mut there, mut read) = (BTreeSet::new(), 0);
    let pages = |place: &Place| (place.lba.0 / 8)..(place.lba.0 + u64::from(place.sectors)) / 8;
    let entry = |index| Entry {
        directory: 0,
        index,
        ordered: true,
    };
    for index in 0..files {
        let (entry, size, sync) = (entry(index), 0, false);
        let charge = fs.small(&FileOp::Create { entry, size, sync }).unwrap();
        there.extend(charge.made.iter().flat_map(pages));
        for place in charge.reads.iter().filter(|place| of_tables(place)) {
            read += pages(place).filter(|page| there.insert(*page)).count() as u64;
        }
    }
    let (mut there, mut requests) = (BTreeSet::new(), 0);
    for index in 0..files {
        let (entry, size) = (entry(index), 0);
        let charge = fs.small(&FileOp::Stat { entry, size }).unwrap();
        for place in charge.reads.iter().filter(|place| of_tables(place)) {
            let fresh = pages(place).filter(|page| there.insert(*page)).count();
            requests += usize::from(fresh > 0);
        }
    }
    (read, requests)
}

/// Linux 6.18 read no block of a table for 16384 files made on a fresh ext4 or ext3, and 1024 of them in some 32 requests when all
/// were looked at after `drop_caches`.
#[test]
fn a_block_of_inodes_none_of_which_is_in_use_is_not_read() {
    for kind in [FilesystemKind::Ext4, FilesystemKind::Ext3] {
        let (made, looked) = reads(kind, Kernel::Linux(6, 18, 0), 16_384);
        assert!(made <= 1, "{kind:?}: {made}");
        assert!((32..=36).contains(&looked), "{kind:?}: {looked}");
    }
}

/// ext3 of its own driver has no read-ahead there, ext2 reads every block before it writes it.
#[test]
fn old_drivers_read_one_block_at_a_time() {
    let old = Kernel::Linux(2, 6, 18);
    let (made, looked) = reads(FilesystemKind::Ext3, old, 4096);
    assert!(
        made <= 1 && (128..=129).contains(&looked),
        "{made} {looked}"
    );
    let (made, _) = reads(FilesystemKind::Ext2, old, 4096);
    assert!((128..=129).contains(&made), "{made}");
}

/// Groups that a hundred directories are in, with a file in each of them.
fn homes(kind: FilesystemKind, kernel: Kernel) -> Vec<u64> {
    let spec = FsSpec::new(kind, kernel, 200 * GIB / SECTOR);
    let mut fs = FileSystem::new(&spec).unwrap();
    let make = |directory| FileOp::MakeDirectory { directory };
    for directory in 0..100 {
        let _ = fs.small(&make(directory)).unwrap();
    }
    let all = ext(&fs).names.inodes_of_directories();
    all.map(|inode| inode / ext(&fs).geometry.inodes).collect()
}

/// Those in a directory go where it is (`find_group_orlov`), and only those of the root directory are spread: the directories of a run
/// are in its working directory. ext2 has one to a group as long as groups have more blocks of their own than of directories.
#[test]
fn directories_go_where_the_working_directory_is() {
    for kind in [FilesystemKind::Ext3, FilesystemKind::Ext4] {
        for kernel in [Kernel::Linux(2, 6, 28), Kernel::DEFAULT] {
            let groups: BTreeSet<_> = homes(kind, kernel).into_iter().collect();
            assert_eq!(groups.len(), 1, "{kind:?} {kernel}");
        }
    }
    let groups = homes(FilesystemKind::Ext2, Kernel::DEFAULT);
    let (first, last) = (groups[0], groups[99]);
    assert!((20..=100).contains(&(last - first)), "{first} to {last}");
    let groups = homes(FilesystemKind::Ext3, Kernel::Linux(2, 4, 20));
    let apart: BTreeSet<_> = groups.into_iter().collect();
    assert!(apart.len() > 90);
}

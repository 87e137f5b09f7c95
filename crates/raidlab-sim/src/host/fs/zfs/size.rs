//! How large the metadata of ZFS is on the device, and which of it a transaction group rewrites.
//!
//! Metadata is always compressed. What comes out depends on what is in it; the sizes here are assumed
//! from what a block must hold that does not compress: a block pointer has a checksum of 32 bytes and
//! about 12 of offset, birth and fill; an empty pointer nothing.
use raidlab_experiment::kernel::Kernel;

/// Bytes of a block pointer that do not compress.
const POINTER: u64 = 44;
/// Bytes of a block pointer in memory (`SPA_BLKPTRSHIFT`).
const POINTER_RAW: u64 = 128;
/// Block pointers in a dnode.
pub(super) const IN_DNODE: u64 = 3;
/// Bytes of a dnode that do not compress: one pointer and its attributes.
const DNODE: u64 = 120;
/// Dnodes in their block of 16 KiB.
pub(super) const DNODES: u64 = 32;
/// Indirect levels of an object set's dnodes: it is made deep enough for 2^48 objects at once.
const DNODE_LEVELS: u64 = 6;
/// Blocks of the pool's own dnodes that a transaction group changes (datasets, directories, space
/// maps, accounting), compressed. Assumed.
const POOL_DNODES: [u64; 2] = [2048, 1536];
/// The header of an object set: three dnodes and what it owns.
const OBJECT_SET: u64 = 512;
/// The last block of a space map that is appended to, 4 KiB before compression. Assumed.
pub(super) const SPACE_MAP: u64 = 1024;
/// An entry of a directory: 64 bytes in a micro ZAP, of which the name and number do not compress.
const ENTRY: u64 = 28;
/// Entries of a leaf of a directory: a micro ZAP is one block of up to 128 KiB; a fat ZAP has hashed
/// leaves of 16 KiB.
pub(super) const MICRO: u64 = 2047;
/// Entries in a leaf of a fat ZAP, three chunks of 24 bytes each, a leaf three quarters full.
pub(super) const LEAF: u64 = 160;

/// Pointers in an indirect block: of 16 KiB, and of 128 KiB since ZFS 0.7 (2017, the time of 4.13).
pub(super) fn fan(kernel: Kernel) -> u64 {
    let bytes = if kernel >= Kernel::Linux(4, 13, 0) {
        128 << 10
    } else {
        16 << 10
    };
    bytes / POINTER_RAW
}

/// Bytes of an indirect block with so many pointers, in memory.
pub(super) const fn indirect_raw(fan: u64) -> u64 {
    fan * POINTER_RAW
}

/// What one transaction group may free, in per cent of the dirty data there may be (`zfs_per_txg_dirty_frees_percent`,
/// `dmu_free_long_range_impl` in dmu.c): 5 from 0.8 (2019, the time of 5.1), 30 since 2.1.7 (2022, 6.1). Counted are the
/// indirect blocks of level 1 that would cover what is freed, whole and whether they are there or not (`get_next_chunk`), so
/// that an empty file counts as one of 128 KiB. 0.7 counted the bytes of data, which is left out; nothing did before.
pub(super) fn frees_most(kernel: Kernel) -> Option<u32> {
    if kernel >= Kernel::Linux(6, 1, 0) {
        Some(30)
    } else if kernel >= Kernel::ZFS_0_8 {
        Some(5)
    } else {
        None
    }
}

/// An indirect block with so many pointers in use, compressed.
pub(super) fn indirect(used: u64) -> u64 {
    sectors(used * POINTER)
}

/// A block of dnodes with so many in use.
pub(super) fn dnodes(used: u64) -> u64 {
    sectors(used * DNODE)
}

/// A leaf of a directory with so many entries.
pub(super) fn entries(used: u64) -> u64 {
    sectors(used * ENTRY)
}

/// Above the dnodes that changed: the levels without the first (a pointer or a few each) and the
/// header of the object set.
pub(super) fn above_dnodes() -> impl Iterator<Item = u64> {
    (1..DNODE_LEVELS).map(|_| indirect(1)).chain([OBJECT_SET])
}

/// The pool's own object set in one pass, but for the space maps.
pub(super) fn pool() -> impl Iterator<Item = u64> {
    POOL_DNODES
        .into_iter()
        .chain([indirect(4)])
        .chain(above_dnodes())
}

/// At least one sector; the result of compression is in whole sectors.
fn sectors(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_metadata_is_in_sectors() {
        assert_eq!(indirect(128), 5632);
        assert_eq!(indirect(0), 512);
        assert_eq!(fan(Kernel::Linux(2, 6, 32)), 128);
        assert_eq!(fan(Kernel::DEFAULT), 1024);
        assert!(pool().chain(above_dnodes()).all(|n| n % 512 == 0 && n > 0));
    }
}

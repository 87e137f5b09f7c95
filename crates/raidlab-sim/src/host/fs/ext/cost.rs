//! Processor time of ext2, ext3 and ext4 on the reference processor, in nanoseconds. Assumed: from
//! the share of a core that buffered writes took on machines of 2005 to 2007 (about 15 µs a page in
//! all, of which copying, page handling and the block path are the host's).

/// Starting and stopping a handle of the running transaction and marking an inode dirty.
pub(super) const HANDLE: u64 = 700;
/// One block through `ext3_get_block` with allocation: windows, bitmap, quota, indirect block.
pub(super) const ALLOCATE_BLOCK: u64 = 1_300;
/// One run of blocks through the multi-block allocator of ext4.
pub(super) const ALLOCATE_RUN: u64 = 6_000;
/// One delayed block: reservation and its entry in the status tree.
pub(super) const DELAY_BLOCK: u64 = 400;
/// Looking up where blocks lie, a run.
pub(super) const MAP: u64 = 150;
/// One metadata block through the commit: descriptor tag, copy-out, submission.
pub(super) const COMMIT_BLOCK: u64 = 1_500;
/// A commit without its blocks.
pub(super) const COMMIT: u64 = 30_000;
/// A call with a name: path walk, dentry, permission.
pub(super) const NAME: u64 = 3_000;
/// An inode made, and one freed, with its bitmap and its entry in the directory. Fitted to making and removing 16384 empty files on Linux
/// 6.18 beside `stat` of them (docs/validation/prediction.md).
pub(super) const MAKE: u64 = 27_000;
pub(super) const FREE: u64 = 22_000;
/// One entry of a directory without a hash tree compared with the name sought.
pub(super) const COMPARE: u64 = 8;
/// A name through the hash tree: hash, index, one leaf of a hundred entries.
pub(super) const HASHED: u64 = 1_500;

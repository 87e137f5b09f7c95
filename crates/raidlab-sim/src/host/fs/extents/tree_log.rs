//! The log of trees that `fsync` of btrfs writes between transactions (`tree-log.c`).
//!
//! What is to be durable goes as items into a tree of its own, sorted: names of a directory, then inodes with their extents,
//! then checksums. Leaves that changed are copied with the nodes above them and the root of such logs, and the first superblock
//! points there. The end of a transaction makes it void. Left out: full transactions where a log will not do (a directory that
//! was made in this transaction, renamed files), and leaves that are half full. Who shares one: `shared_log` of the host.
//!
//! Checked against what Linux 6.18 gave a device (docs/validation/prediction.md).

/// Bytes of an item beside its data (`struct btrfs_item`), and of a leaf's or node's header (`struct btrfs_header`).
pub(super) const ITEM: u64 = 25;
pub(super) const HEADER: u64 = 101;
/// An inode and its name's place in the directory (`struct btrfs_inode_item`, `struct btrfs_inode_ref` with [`NAME`]).
pub(super) const INODE: u64 = ITEM + 160 + ITEM + 10 + NAME;
/// An entry of a directory (`struct btrfs_dir_item` with [`NAME`]).
pub(super) const ENTRY: u64 = ITEM + 30 + NAME;
/// An extent of a file (`struct btrfs_file_extent_item`).
pub(super) const EXTENT: u64 = ITEM + 53;
/// A key with the place of a node (`struct btrfs_key_ptr`).
const POINTER: u64 = 33;
/// A checksum of 4 KiB (crc32c).
pub(super) const CHECKSUM: u64 = 4;
/// Characters of a name, as bonnie++ makes in the mean. Assumed.
const NAME: u64 = 13;

/// What was written to a file and is in no log yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// Extents that replace others; one that goes on where the file ended is merged with the one before.
    pub extents: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The log of the running transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeLog {
    /// Bytes of items: of names, of the longest list of extents, and of all.
    names: u64,
    extents: u64,
    all: u64,
    /// Names made since a directory was last made durable.
    made: u64,
    /// What changed since the log was last written.
    directory: bool,
    inode: bool,
    sums: bool,
}

impl TreeLog {
    /// A name was made.
    pub(super) const fn name(&mut self) {
        self.made += 1;
    }

    /// A small file that was just made is to be durable, with so many bytes in blocks of its own.
    pub(super) const fn small(&mut self, bytes: u64) {
        self.inode = true;
        self.all += INODE + EXTENT;
        if bytes > 0 {
            self.sum(bytes);
        }
    }

    /// A directory is to be durable.
    pub(super) const fn directory(&mut self) {
        self.directory = true;
        let names = std::mem::replace(&mut self.made, 0) * ENTRY;
        self.names += names;
        self.all += names;
    }

    /// A file is to be durable, with what is new in it, in blocks of so many bytes.
    pub(super) const fn file(&mut self, fresh: Fresh, block: u64) {
        self.inode = true;
        let bytes = fresh.extents * EXTENT;
        self.extents += bytes;
        self.all += bytes;
        if fresh.blocks > 0 {
            self.sum(fresh.blocks * block);
        }
    }

    const fn sum(&mut self, bytes: u64) {
        self.sums = true;
        self.all += ITEM + bytes.div_ceil(4096) * CHECKSUM;
    }

    /// Nodes of so many bytes that are copied to make it durable.
    pub(super) fn write(&mut self, node: u64) -> u64 {
        let room = node - HEADER;
        let leaves = self.all.div_ceil(room).max(1);
        // Where the directory's inode or the file's lies, and where its entries or extents end.
        let of = |changed: bool, bytes: u64| u64::from(changed) * (1 + u64::from(bytes > room));
        let touched = of(self.directory, self.names)
            + of(self.inode, self.extents)
            + u64::from(std::mem::take(&mut self.sums));
        (self.directory, self.inode) = (false, false);
        let mut nodes = touched.clamp(1, leaves);
        let mut level = leaves;
        while level > 1 {
            level = level.div_ceil(room / POINTER);
            nodes += level.min(touched.max(1));
        }
        // The root of logs.
        nodes + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: u64 = 16_384;

    /// KiB that Linux 6.18 gave a device for each of 100 files of 4 KiB, made and made durable and their directory after each:
    /// 185, 220, 248, 251, 264, 268, 269; 100 for each that was removed then, and 68 when a transaction had ended.
    #[test]
    fn a_log_of_names_grows_by_the_leaves_that_change() {
        let mut log = TreeLog::default();
        let mut made = || {
            log.name();
            log.small(4096);
            let file = log.write(NODE);
            log.directory();
            // Two copies of each node, a superblock each time, the data.
            (file + log.write(NODE)) * 32 + 2 * 4 + 4
        };
        let mut mean = |files: u64| (0..files).map(|_| made()).sum::<u64>() / files;
        let seen = [185, 220, 248, 251, 264, 268, 269];
        for (nth, seen) in seen.into_iter().enumerate() {
            let mean = mean(100);
            let off = mean.abs_diff(seen) * 100 / seen;
            assert!(off <= 8, "{nth}: {mean} KiB, {seen} seen");
        }
        let mut fresh = TreeLog::default();
        fresh.directory();
        assert_eq!(fresh.write(NODE), 2);
    }

    /// KiB for each of 200 writes of 4 KiB at random that were made durable: 88, 143, 164, 167, 173; at the end of the file 74 at
    /// first and 136 then; of 1 MiB 1157 to 1199.
    #[test]
    fn a_log_of_extents_comes_to_five_nodes() {
        let mut log = TreeLog::default();
        let one = Fresh {
            extents: 1,
            blocks: 1,
        };
        let seen = [88, 143, 164, 167, 173];
        for (nth, seen) in seen.into_iter().enumerate() {
            let all: u64 = (0..200)
                .map(|_| {
                    log.file(one, 4096);
                    log.write(NODE) * 32 + 4 + 4
                })
                .sum();
            let off = (all / 200).abs_diff(seen) * 100 / seen;
            assert!(off <= 13, "{nth}: {} KiB, {seen} seen", all / 200);
        }
        let mut log = TreeLog::default();
        let mebibyte = Fresh {
            extents: 1,
            blocks: 256,
        };
        let all: u64 = (0..500)
            .map(|_| {
                log.file(mebibyte, 4096);
                log.write(NODE) * 32 + 1024 + 4
            })
            .sum();
        assert!((1157..=1199).contains(&(all / 500)), "{}", all / 500);
    }
}

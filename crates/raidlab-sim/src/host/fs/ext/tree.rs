//! Indirect blocks in closed form.
//!
//! ext2 and ext3 allocate an indirect block just before the first data block that it points to, from
//! the same stream of free blocks. So a file is a sequence of *slots*, data and indirect blocks in
//! the order in which a sequential writer allocates them, and one run of slots is one run of the
//! device. With 4 KiB blocks there is one indirect block every 1024 data blocks (4 MiB). ext4's driver, which has ext3
//! since 4.3, gives those slots places apart from the data.

/// Blocks that an inode points to itself (`EXT2_NDIR_BLOCKS`).
const DIRECT: u64 = 12;

/// The tree of a block size: how many pointers of 4 bytes a block holds; `None` for extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// 0: no indirect blocks.
    pointers: u64,
}

/// Slots of the indirect blocks above a data block, from the inode down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    slots: [u64; 3],
    len: usize,
    /// First data block that the last indirect block does not point to.
    pub end: u64,
}

impl Path {
    /// The slots, the one that the inode points to first.
    pub(super) fn slots(&self) -> &[u64] {
        &self.slots[..self.len]
    }
}

impl Tree {
    /// Of blocks with so many bytes.
    pub(super) const fn indirect(block: u32) -> Self {
        Self {
            pointers: block as u64 / 4,
        }
    }

    /// Without indirect blocks.
    pub(super) const EXTENTS: Self = Self { pointers: 0 };

    /// Whether files have extents instead.
    pub(super) const fn extents(self) -> bool {
        self.pointers == 0
    }

    /// Data blocks that can be addressed.
    pub(super) const fn limit(self) -> u64 {
        let p = self.pointers;
        if p == 0 {
            // ext4's 32-bit logical block number.
            return 1 << 32;
        }
        DIRECT + p + p * p + p * p * p
    }

    /// The slot of a data block.
    #[inline]
    pub(super) const fn slot(self, block: u64) -> u64 {
        let p = self.pointers;
        if p == 0 || block < DIRECT {
            return block;
        }
        let b = block - DIRECT;
        if b < p {
            return block + 1;
        }
        let b = b - p;
        if b < p * p {
            return block + 3 + b / p;
        }
        let b = b - p * p;
        block + 4 + p + b / (p * p) + b / p + 1
    }

    /// The indirect blocks above a data block. Each lies just before the first block below it.
    pub(super) const fn path(self, block: u64) -> Path {
        let p = self.pointers;
        if p == 0 || block < DIRECT {
            let end = if p == 0 { u64::MAX } else { DIRECT };
            return Path {
                slots: [0; 3],
                len: 0,
                end,
            };
        }
        let b = block - DIRECT;
        if b < p {
            return Path {
                slots: [DIRECT, 0, 0],
                len: 1,
                end: DIRECT + p,
            };
        }
        let b = b - p;
        let two = DIRECT + p;
        if b < p * p {
            let first = two + b / p * p;
            return Path {
                slots: [self.slot(two) - 2, self.slot(first) - 1, 0],
                len: 2,
                end: first + p,
            };
        }
        let b = b - p * p;
        let three = two + p * p;
        let middle = three + b / (p * p) * (p * p);
        let first = three + b / p * p;
        Path {
            slots: [
                self.slot(three) - 3,
                self.slot(middle) - 2,
                self.slot(first) - 1,
            ],
            len: 3,
            end: first + p,
        }
    }

    /// Whether the [path](Self::path) of a data block is the one that ends at `end`, of some block; false may be wrong of extents.
    #[inline]
    pub(super) const fn shares(self, block: u64, end: u64) -> bool {
        // The last indirect block points to so many, and an inode to fewer by itself.
        block < end && end - block <= self.pointers
    }

    /// Slots of a file whose first `blocks` data blocks are all there.
    #[cfg(test)]
    pub(super) const fn slots(self, blocks: u64) -> u64 {
        if blocks == 0 {
            0
        } else {
            self.slot(blocks - 1) + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_below_one_indirect_block_share_their_path() {
        let tree = Tree { pointers: 4 };
        let ends: BTreeSet<u64> = (0..tree.limit()).map(|b| tree.path(b).end).collect();
        for block in 0..tree.limit() {
            let shared = ends.iter().filter(|end| tree.shares(block, **end));
            let shared: Vec<u64> = shared.copied().collect();
            // The inode points to more by itself than such a small block does.
            let few = block + 4 < DIRECT;
            assert_eq!(shared.len(), usize::from(!few), "{block}");
            assert!(few || shared == [tree.path(block).end], "{block}");
        }
        let tree = Tree::indirect(1024);
        assert!((0..DIRECT).all(|block| tree.shares(block, DIRECT) && !tree.shares(block, 0)));
    }

    /// Slots as a sequential writer meets them, one by one.
    fn walked(tree: Tree, blocks: u64) -> (Vec<u64>, Vec<Vec<u64>>) {
        let p = tree.pointers;
        let (mut next, mut slots, mut paths) = (0, Vec::new(), Vec::new());
        let mut above: [Option<u64>; 3] = [None; 3];
        let mut fresh = || {
            next += 1;
            next - 1
        };
        for block in 0..blocks {
            let path = if block < DIRECT {
                Vec::new()
            } else {
                let b = block - DIRECT;
                let (depth, b) = if b < p {
                    (1, b)
                } else if b - p < p * p {
                    (2, b - p)
                } else {
                    (3, b - p - p * p)
                };
                for level in 0..depth {
                    let below = p.pow(depth - level);
                    if b.is_multiple_of(below) {
                        above[level as usize] = Some(fresh());
                    }
                }
                above[..depth as usize].iter().map(|s| s.unwrap()).collect()
            };
            slots.push(fresh());
            paths.push(path);
        }
        (slots, paths)
    }

    #[test]
    fn the_closed_form_is_what_a_sequential_writer_does() {
        // Four pointers a block: 12 + 4 + 16 + 64 blocks reach all levels.
        let tree = Tree::indirect(16);
        let (slots, paths) = walked(tree, tree.limit());
        for block in 0..tree.limit() {
            assert_eq!(tree.slot(block), slots[block as usize], "{block}");
            let path = tree.path(block);
            assert_eq!(path.slots(), paths[block as usize], "{block}");
            assert!(path.end > block && path.end - block <= 12);
            assert_eq!(tree.path(path.end - 1).slots(), path.slots());
        }
    }

    #[test]
    fn four_kib_blocks_have_an_indirect_block_every_four_mib() {
        let tree = Tree::indirect(4096);
        // 1 GiB: one single, one double, and 255 below it.
        assert_eq!(tree.slots(262_144) - 262_144, 257);
        assert_eq!((tree.limit() * 4096) >> 40, 4);
        assert_eq!(Tree::EXTENTS.slots(1 << 30), 1 << 30);
    }
}

//! Block groups: where bitmaps, inode tables and free blocks are.
use super::super::plan::Place;
use super::super::space::Shape;
use super::super::spec::FsSpec;
use raidlab_core::units::{GIB, Lba, MIB, SECTOR};
use raidlab_experiment::kernel::{FilesystemKind, Kernel};

const TIB: u64 = 1024 * GIB;
/// The kernel of the time of e2fsprogs 1.42.
const WIDE: Kernel = Kernel::Linux(3, 2, 0);

/// Where everything fixed lies. In file-system blocks.
///
/// With blocks of 1 KiB the first group starts at block 1 on the device; here at 0, which moves
/// everything by two sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Bytes of a block.
    pub block: u32,
    /// Blocks of the device.
    pub blocks: u64,
    /// Blocks of a group: as many as one block of bitmap has bits.
    pub per_group: u64,
    /// Groups whose bitmaps and inode tables lie together (`flex_bg`); 1 without.
    pub flex: u64,
    /// Blocks of group descriptors, and of those kept to grow.
    gdt: u64,
    /// Group descriptors in a block.
    descriptors: u64,
    /// Inodes of a group.
    pub inodes: u64,
    /// Blocks of the inode table of a group.
    pub table: u64,
    /// Inodes in a block of the table.
    pub inodes_in_block: u64,
}

impl Geometry {
    /// As mke2fs of the kernel's time makes it (known, not re-read):
    /// - 4 KiB blocks from 512 MiB on, 1 KiB below;
    /// - an inode for every 8 KiB and of 128 bytes; every 16 KiB and of 256 bytes with ext4
    ///   (mke2fs.conf of e2fsprogs 1.40.5, 2008);
    /// - since e2fsprogs 1.42 (2011, the time of 3.2) every 32 KiB from 4 TiB on and every 64 KiB from 16 TiB on (`big` and
    ///   `huge` of mke2fs.conf; seen of 1.47.0), and no more than 32 bits number;
    /// - descriptors to grow 1024-fold at most (`resize_inode`, default since e2fsprogs 1.39, 2006);
    /// - ext4: `flex_bg` of 16 groups, and 64-byte descriptors.
    pub(super) fn new(spec: &FsSpec) -> Self {
        let small = spec.device_bytes() < 512 * MIB;
        let block = match spec.block {
            0 if small => 1024,
            0 => 4096,
            given => given,
        };
        let ext4 = spec.kind == FilesystemKind::Ext4;
        let modern = ext4 || spec.kernel >= Kernel::Linux(2, 6, 25);
        let (usual, inode) = if modern { (16_384, 256) } else { (8192, 128) };
        let ratio = match spec.device_bytes() / TIB {
            4..=15 if spec.kernel >= WIDE => 32_768,
            16.. if spec.kernel >= WIDE => 65_536,
            _ => usual,
        };
        let wide = u64::from(block);
        let per_group = wide * 8;
        let blocks = spec.device_bytes() / wide;
        let groups = blocks.div_ceil(per_group);
        let descriptors = wide / if ext4 { 64 } else { 32 };
        let in_block = wide / inode;
        let most = per_group.min(u64::from(u32::MAX) / groups.max(1)).max(8);
        let inodes = (per_group * wide / ratio).clamp(8, most);
        let gdt = groups.div_ceil(descriptors);
        let resize =
            spec.kernel >= Kernel::Linux(2, 6, 18) && spec.device_bytes() < 16 * 1024 * GIB;
        // One block of pointers limits the reserve.
        let reserve = if resize {
            (gdt * 1023).min(wide / 4)
        } else {
            0
        };
        Self {
            block,
            blocks,
            per_group,
            flex: if ext4 { 16 } else { 1 },
            gdt: gdt + reserve,
            descriptors,
            inodes,
            table: inodes.div_ceil(in_block),
            inodes_in_block: in_block,
        }
    }

    /// Whether every block has a number: ext4 numbers them with 64 bits since e2fsprogs 1.42, the others with 32.
    pub(super) fn numbers_all(&self, spec: &FsSpec) -> bool {
        let wide = spec.kind == FilesystemKind::Ext4 && spec.kernel >= WIDE;
        wide || u32::try_from(self.blocks).is_ok()
    }

    /// Number of groups.
    pub(super) const fn groups(&self) -> u64 {
        self.blocks.div_ceil(self.per_group)
    }

    /// Whether a group has a copy of the superblock and the descriptors (`sparse_super`): groups 0
    /// and 1 and the powers of 3, 5 and 7.
    const fn has_super(group: u64) -> bool {
        if group <= 1 {
            return true;
        }
        let mut i = 0;
        while i < 3 {
            let base = [3, 5, 7][i];
            let mut power = base;
            while power < group {
                power *= base;
            }
            if power == group {
                return true;
            }
            i += 1;
        }
        false
    }

    const fn head(&self, group: u64) -> u64 {
        if Self::has_super(group) {
            1 + self.gdt
        } else {
            0
        }
    }

    /// First group of the flexible group, and the number of groups in it.
    const fn together(&self, group: u64) -> (u64, u64) {
        let first = group / self.flex * self.flex;
        let left = self.groups() - first;
        (first, if left < self.flex { left } else { self.flex })
    }

    /// The block bitmap of a group.
    pub(super) const fn block_bitmap(&self, group: u64) -> u64 {
        let (first, _) = self.together(group);
        first * self.per_group + self.head(first) + (group - first)
    }

    /// The inode bitmap of a group.
    pub(super) const fn inode_bitmap(&self, group: u64) -> u64 {
        let (first, n) = self.together(group);
        first * self.per_group + self.head(first) + n + (group - first)
    }

    /// First block of the inode table of a group.
    pub(super) const fn inode_table(&self, group: u64) -> u64 {
        let (first, n) = self.together(group);
        first * self.per_group + self.head(first) + 2 * n + (group - first) * self.table
    }

    /// The block of descriptors that holds the group's, in group 0.
    pub(super) const fn descriptor(&self, group: u64) -> u64 {
        1 + group / self.descriptors
    }

    /// The block that holds an inode, counted from 0 over all groups.
    pub(super) const fn inode_block(&self, inode: u64) -> u64 {
        let (group, within) = (inode / self.inodes, inode % self.inodes);
        self.inode_table(group) + within / self.inodes_in_block
    }

    /// Sectors of a block.
    pub(super) const fn sectors(&self) -> u64 {
        self.block as u64 / SECTOR
    }

    /// A run of blocks as sectors.
    pub(super) const fn place(&self, block: u64, len: u64) -> Place {
        Place {
            lba: Lba(block * self.sectors()),
            sectors: (len * self.sectors()) as u32,
        }
    }
}

impl Shape for Geometry {
    fn prefix(&self, group: u64) -> u64 {
        let (first, n) = self.together(group);
        let own = if group == first {
            n * (2 + self.table)
        } else {
            0
        };
        self.head(group) + own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(kind: FilesystemKind, gib: u64, block: u32) -> Geometry {
        let kernel = match kind {
            FilesystemKind::Ext4 => Kernel::DEFAULT,
            _ => Kernel::Linux(2, 6, 16),
        };
        let mut spec = FsSpec::new(kind, kernel, gib * GIB / SECTOR);
        spec.block = block;
        Geometry::new(&spec)
    }

    #[test]
    fn ext3_has_its_metadata_at_the_start_of_each_group() {
        let g = geometry(FilesystemKind::Ext3, 40, 0);
        assert_eq!((g.block, g.per_group, g.groups()), (4096, 32_768, 320));
        assert_eq!((g.inodes, g.table), (16_384, 512));
        // 320 descriptors of 32 bytes are three blocks.
        assert_eq!(g.prefix(0), 1 + 3 + 2 + 512);
        assert_eq!(g.prefix(2), 2 + 512);
        assert_eq!(g.block_bitmap(2), 65_536);
        assert_eq!(g.inode_table(2), 65_538);
        let copies: Vec<u64> = (0..130).filter(|g| Geometry::has_super(*g)).collect();
        assert_eq!(copies, [0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125]);
    }

    #[test]
    fn small_blocks_make_small_groups() {
        let g = geometry(FilesystemKind::Ext3, 1, 1024);
        assert_eq!((g.per_group, g.groups()), (8192, 128));
    }

    #[test]
    fn ext4_gathers_sixteen_groups() {
        let g = geometry(FilesystemKind::Ext4, 100, 0);
        assert_eq!(g.prefix(16), 16 * 2 + 16 * g.table);
        assert_eq!(g.prefix(18), 0);
        assert_eq!(g.block_bitmap(18), 16 * 32_768 + 2);
        assert!(g.inode_table(31) + g.table <= 16 * 32_768 + g.prefix(16));
    }

    #[test]
    fn fixed_blocks_lie_in_the_prefixes_and_do_not_overlap() {
        for (kind, gib) in [(FilesystemKind::Ext3, 9), (FilesystemKind::Ext4, 9)] {
            let g = geometry(kind, gib, 0);
            let mut runs: Vec<(u64, u64)> = Vec::new();
            for group in 0..g.groups() {
                runs.push((g.block_bitmap(group), 1));
                runs.push((g.inode_bitmap(group), 1));
                runs.push((g.inode_table(group), g.table));
            }
            runs.sort_unstable();
            assert!(runs.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
            for (start, len) in runs {
                let group = start / g.per_group;
                assert!(start + len <= group * g.per_group + g.prefix(group));
            }
        }
    }
}

//! Superblocks of ext2/3/4 and xfs, from the first bytes of a device.

use serde::{Deserialize, Serialize};

/// Bytes from the start of the device that hold both superblocks: ext's is at 1024 and 1024 long, xfs's at 0.
pub(super) const HEAD_BYTES: usize = 2048;

const EXT_OFFSET: usize = 1024;
const EXT_LENGTH: usize = 1024;
const EXT_MAGIC: u16 = 0xEF53;

/// Parameters of ext2, ext3 or ext4 (Linux `Documentation/filesystems/ext4/super.rst`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtParameters {
    /// Block, bytes.
    pub block_size: u64,
    /// Blocks in all.
    pub blocks: u64,
    /// Inodes in all.
    pub inodes: u32,
    /// Inode, bytes.
    pub inode_size: u16,
    /// Blocks in a group.
    pub blocks_per_group: u32,
    /// Inodes in a group.
    pub inodes_per_group: u32,
    /// Chunk of the array below in blocks; `None` when not set.
    pub stride: Option<u16>,
    /// Stripe of data members in blocks; `None` when not set.
    pub stripe_width: Option<u32>,
    /// Groups in a flexible group.
    pub flex_group: Option<u32>,
    /// Bytes of a cluster with `bigalloc`.
    pub cluster_size: Option<u64>,
    /// Where the journal is.
    pub journal: Journal,
    /// Features, named as `dumpe2fs` does.
    pub features: Vec<String>,
    /// Volume label.
    pub label: Option<String>,
}

/// Where an ext file system keeps its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Journal {
    /// None: ext2, or ext4 without.
    None,
    /// In this inode.
    Inode(u32),
    /// On another device.
    External,
}

/// Parameters of xfs (Linux `fs/xfs/libxfs/xfs_format.h`, `struct xfs_dsb`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XfsParameters {
    /// Block, bytes.
    pub block_size: u32,
    /// Blocks of the data section.
    pub blocks: u64,
    /// Allocation groups.
    pub groups: u32,
    /// Blocks in a group.
    pub group_blocks: u32,
    /// Sector, bytes.
    pub sector_size: u16,
    /// Inode, bytes.
    pub inode_size: u16,
    /// Stripe unit in blocks; `None` when not set.
    pub stripe_unit: Option<u32>,
    /// Stripe width in blocks; `None` when not set.
    pub stripe_width: Option<u32>,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// Log on another device.
    pub external_log: bool,
    /// Stripe unit of the log, bytes; 0 or 1 is none.
    pub log_stripe_unit: u32,
    /// On-disk version, 4 or 5.
    pub version: u8,
    /// Optional features that are on: `finobt`, `rmapbt`, `reflink`, `bigtime` ...
    pub features: Vec<String>,
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

const COMPAT: [(u32, &str); 8] = [
    (0x1, "dir_prealloc"),
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x200, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x1000, "orphan_file"),
];

const INCOMPAT: [(u32, &str); 15] = [
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x1_0000, "encrypt"),
    (0x2_0000, "casefold"),
];

const RO_COMPAT: [(u32, &str); 12] = [
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x2000, "project"),
    (0x8000, "verity"),
    (0x1_0000, "orphan_present"),
];

const XFS_RO_COMPAT: [(u32, &str); 4] = [
    (0x1, "finobt"),
    (0x2, "rmapbt"),
    (0x4, "reflink"),
    (0x8, "inobtcount"),
];
const XFS_INCOMPAT: [(u32, &str); 6] = [
    (0x1, "ftype"),
    (0x2, "sparse"),
    (0x4, "meta_uuid"),
    (0x8, "bigtime"),
    (0x10, "needsrepair"),
    (0x20, "nrext64"),
];

fn names(bits: u32, table: &[(u32, &str)]) -> Vec<String> {
    let known = table.iter().fold(0, |sum, (bit, _)| sum | bit);
    let mut names: Vec<String> = table
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect();
    if bits & !known != 0 {
        names.push(format!("unknown:{:#x}", bits & !known));
    }
    names
}

/// Parses an ext superblock from the first 2048 bytes of its device; `None` when there is none or its sizes are absurd.
pub fn parse_ext(head: &[u8]) -> Option<ExtParameters> {
    let sb = head.get(EXT_OFFSET..EXT_OFFSET + EXT_LENGTH)?;
    let u16_at = |at| bytes(sb, at).map(u16::from_le_bytes);
    let u32_at = |at| bytes(sb, at).map(u32::from_le_bytes);
    if u16_at(0x38)? != EXT_MAGIC {
        return None;
    }
    let log_block = u32_at(0x18)?;
    // 64 KiB is the largest block there is.
    if log_block > 6 {
        return None;
    }
    let dynamic = u32_at(0x4c)? >= 1;
    let field = |at| if dynamic { u32_at(at) } else { Some(0) };
    let (compat, incompat, ro_compat) = (field(0x5c)?, field(0x60)?, field(0x64)?);
    let high = if incompat & 0x80 != 0 {
        u32_at(0x150)?
    } else {
        0
    };
    let journal = if compat & 0x4 == 0 {
        Journal::None
    } else {
        match u32_at(0xe0)? {
            0 => Journal::External,
            inode => Journal::Inode(inode),
        }
    };
    let mut features = names(compat, &COMPAT);
    features.extend(names(incompat, &INCOMPAT));
    features.extend(names(ro_compat, &RO_COMPAT));
    let label: Vec<u8> = sb[0x78..0x88]
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect();
    let label = String::from_utf8_lossy(&label).into_owned();
    let log_cluster = u32_at(0x1c)?;
    Some(ExtParameters {
        block_size: 1024 << log_block,
        blocks: u64::from(high) << 32 | u64::from(u32_at(4)?),
        inodes: u32_at(0)?,
        inode_size: if dynamic { u16_at(0x58)? } else { 128 },
        blocks_per_group: u32_at(0x20)?,
        inodes_per_group: u32_at(0x28)?,
        stride: u16_at(0x164)
            .filter(|_| dynamic)
            .filter(|stride| *stride != 0),
        stripe_width: u32_at(0x170)
            .filter(|_| dynamic)
            .filter(|width| *width != 0),
        flex_group: (incompat & 0x200 != 0)
            .then(|| 1u32.checked_shl(u32::from(sb[0x174])))
            .flatten(),
        cluster_size: (ro_compat & 0x200 != 0 && log_cluster <= 30).then(|| 1024 << log_cluster),
        journal,
        features,
        label: (!label.is_empty()).then_some(label),
    })
}

/// Parses an xfs superblock from the start of its device; `None` when there is none.
pub fn parse_xfs(head: &[u8]) -> Option<XfsParameters> {
    let u16_at = |at| bytes(head, at).map(u16::from_be_bytes);
    let u32_at = |at| bytes(head, at).map(u32::from_be_bytes);
    let u64_at = |at| bytes(head, at).map(u64::from_be_bytes);
    if head.get(..4)? != b"XFSB" {
        return None;
    }
    let version = (u16_at(100)? & 0xf).to_le_bytes()[0];
    let mut features = Vec::new();
    if version >= 5 {
        features = names(u32_at(212)?, &XFS_RO_COMPAT);
        features.extend(names(u32_at(216)?, &XFS_INCOMPAT));
    }
    Some(XfsParameters {
        block_size: u32_at(4)?,
        blocks: u64_at(8)?,
        groups: u32_at(88)?,
        group_blocks: u32_at(84)?,
        sector_size: u16_at(102)?,
        inode_size: u16_at(104)?,
        stripe_unit: Some(u32_at(184)?).filter(|unit| *unit != 0),
        stripe_width: Some(u32_at(188)?).filter(|width| *width != 0),
        log_blocks: u32_at(96)?,
        external_log: u64_at(48)? == 0,
        log_stripe_unit: u32_at(196)?,
        version,
        features,
    })
}

#[cfg(test)]
#[path = "../tests/superblock.rs"]
mod tests;

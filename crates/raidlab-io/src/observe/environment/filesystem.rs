//! Parameters of the file system on which files are measured.

use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::superblock::{self, ExtParameters, XfsParameters};
use crate::observe::error::{ObserveError, Result};
use crate::observe::quota;
use crate::observe::resolve::{PathKind, Resolved};
use crate::observe::roots::Roots;
use crate::observe::safety::open_node;

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemRecord {
    /// `ext4`
    pub fs_type: String,
    /// Space and file counts, `None` when `statvfs` failed.
    pub space: Option<Space>,
    /// From the superblock of ext2, ext3, ext4, when the device may be read.
    pub ext: Option<ExtParameters>,
    /// From the superblock of xfs, when the device may be read.
    pub xfs: Option<XfsParameters>,
}

/// What `statvfs(3)` tells, in bytes and numbers of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Fundamental block, bytes.
    pub block_size: u64,
    /// Size of the file system.
    pub total: u64,
    /// Free, the reserve included.
    pub free: u64,
    /// Free for this user, by quotas too.
    pub available: u64,
    /// Files it can hold; 0 where that is not fixed (btrfs).
    pub files: u64,
    /// Files it can still hold.
    pub files_free: u64,
}

impl Space {
    /// Whether no further file can be made, whatever space there is.
    #[must_use]
    pub fn no_files(&self) -> bool {
        self.files > 0 && self.files_free == 0
    }
}

/// Space on the file system of a path.
///
/// # Errors
/// When the path does not exist or may not be seen.
pub fn space_at(path: &Path) -> Result<Space> {
    let stat =
        rustix::fs::statvfs(path).map_err(ObserveError::call("ask for the free space of", path))?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    let quota = quota::tightest(&Roots::system(), path).and_then(|quota| quota.left());
    Ok(Space {
        block_size: stat.f_frsize,
        total: bytes(stat.f_blocks),
        free: bytes(stat.f_bfree),
        available: bytes(stat.f_bavail).min(quota.unwrap_or(u64::MAX)),
        files: stat.f_files,
        files_free: stat.f_favail,
    })
}

/// Records the file system of a directory or file; `None` for devices.
pub(super) fn record(roots: &Roots, resolved: &Resolved) -> Option<FilesystemRecord> {
    if !matches!(resolved.kind, PathKind::Directory | PathKind::File) {
        return None;
    }
    let fs_type = resolved.mount.as_ref()?.fs_type.clone();
    let head = resolved
        .stack()
        .and_then(|stack| superblock_bytes(roots, stack.top.first()?));
    let head = head.as_deref().unwrap_or_default();
    Some(FilesystemRecord {
        space: space_at(&resolved.path).ok(),
        ext: fs_type
            .starts_with("ext")
            .then(|| superblock::parse_ext(head))
            .flatten(),
        xfs: (fs_type == "xfs")
            .then(|| superblock::parse_xfs(head))
            .flatten(),
        fs_type,
    })
}

fn superblock_bytes(roots: &Roots, device: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; superblock::HEAD_BYTES];
    open_node(roots, device)
        .ok()?
        .read_exact_at(&mut bytes, 0)
        .ok()?;
    Some(bytes)
}

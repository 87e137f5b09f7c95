//! Overwriting what tells a device's content.
use crate::error::{HostError, Result};
use crate::label;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes cleared at both ends of a device: labels of ZFS lie 512 KiB from its ends, all others nearer, but for those
/// in [`COPIES`].
const CLEARED: u64 = 2 << 20;
/// The second superblock of btrfs; its third, at 256 GiB, is only looked at by repair tools.
const COPIES: [u64; 2] = [64 << 20, 256 << 30];

/// Overwrites what tells a device's content: both ends, and the copies of superblocks in between; makes sure that
/// nothing known is left.
pub(crate) fn clear(file: &File, size: u64, path: &Path) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let zeros = vec![0_u8; PIECE as usize];
    let ends = [(0, CLEARED), (size.saturating_sub(CLEARED), CLEARED)];
    for (start, length) in ends.into_iter().chain(COPIES.map(|copy| (copy, 4096))) {
        let end = (start + length).min(size);
        let mut at = start;
        while at < end {
            let piece = PIECE.min(end - at) as usize;
            file.write_all_at(&zeros[..piece], at)
                .map_err(HostError::call("clear", path))?;
            at += piece as u64;
        }
    }
    file.sync_all().map_err(HostError::call("clear", path))?;
    // What the page cache has of other places may be older than what tools wrote past it.
    match label::signatures(file, size, path)?.first() {
        None => Ok(()),
        Some(signature) => Err(HostError::Unexpected(format!(
            "{} still carries {signature} after clearing",
            path.display()
        ))),
    }
}

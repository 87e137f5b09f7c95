//! Mounts in a working directory: what is mounted there is not raidlab's, and must not be emptied with it.
//!
//! A bind mount of the same file system has the same device number; the mount's id alone tells it apart.
use crate::descriptor::DESCRIPTORS;
use crate::observe::mountinfo::{self, Mount};
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::fs::{AtFlags, StatxFlags};
use std::fs;
use std::io::{Error, Result};
use std::path::Path;

/// The id of the mount that something open is on.
///
/// # Errors
/// When the kernel does not tell: what is on another mount could not be told from what is not.
pub(super) fn id_of(open: impl AsFd) -> Result<u64> {
    let open = open.as_fd();
    if let Ok(found) = rustix::fs::statx(open, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)
        && StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID)
    {
        return Ok(found.stx_mnt_id);
    }
    // Before Linux 5.8.
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", open.as_raw_fd()))?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    id.and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| Error::other("the kernel does not tell on which mount it is"))
}

/// What is mounted at a directory that is open, or somewhere in it, in words with the remedy.
pub(super) fn mounted_in(directory: impl AsFd) -> Result<Option<String>> {
    let way = Path::new(DESCRIPTORS).join(directory.as_fd().as_raw_fd().to_string());
    // As the table has it, whatever way led there.
    let path = fs::read_link(way)?;
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts = mountinfo::parse(&text).map_err(Error::other)?;
    let found = mounts.iter().rfind(|mount| mount.point.starts_with(&path));
    Ok(found.map(told))
}

fn told(mount: &Mount) -> String {
    let part = match mount.is_partial() {
        true => format!(", of it {}", mount.root.display()),
        false => String::new(),
    };
    let point = mount.point.display();
    format!(
        "{} ({}{part}) is mounted at {point}; unmount it ('umount {point}'), and 'raidlab clean' goes on",
        mount.source, mount.fs_type
    )
}

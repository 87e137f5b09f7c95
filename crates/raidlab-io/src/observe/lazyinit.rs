//! Inode tables that ext4 has still to write: `mkfs.ext4` leaves them to the kernel, which writes them when the file system is
//! mounted, a group at a time and then ten times as long nothing (Linux `fs/ext4/super.c`, `ext4_lazyinit_thread`).

use super::cpu::CpuSnapshot;
use super::resolve::Resolved;
use super::roots::Roots;
use super::safety::open_node;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The kernel's thread, one for all file systems; it ends when none has anything left.
const THREAD: &str = "ext4lazyinit";
/// Descriptors that are read at once.
const PIECE: usize = 4096;

/// What helps, beforehand.
pub const REMEDY: &str = "wait until the kernel's thread ext4lazyinit has ended, or make the file system with \
     'mkfs.ext4 -E lazy_itable_init=0,lazy_journal_init=0'";

/// A file system that is being initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Initialising {
    /// Groups whose inode tables are still to be written, and all groups; `None` when its device may not be read, so that it may
    /// be another file system.
    pub groups: Option<(u64, u64)>,
}

impl fmt::Display for Initialising {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.groups {
            Some((left, all)) => write!(
                f,
                "the kernel still writes the inode tables of this new ext4 ({left} of {all} groups are left)"
            ),
            None => write!(
                f,
                "the kernel still writes the inode tables of a new ext4, this one or another"
            ),
        }?;
        write!(f, ", which takes up to a tenth of the disk's time")
    }
}

/// Whether the file system of a place is being initialised, as the kernel's threads are now.
#[must_use]
pub fn initialising(
    roots: &Roots,
    resolved: &Resolved,
    threads: &CpuSnapshot,
) -> Option<Initialising> {
    let mount = resolved.mount.as_ref()?;
    if mount.fs_type != "ext4" || mount.read_only() || !threads.has_kernel_thread(THREAD) {
        return None;
    }
    let device = resolved.stack()?.top.first()?;
    let groups = open_node(roots, device)
        .ok()
        .and_then(|file| groups_left(&file));
    match groups {
        Some((0, _)) => None,
        groups => Some(Initialising { groups }),
    }
}

/// Groups without `EXT4_BG_INODE_ZEROED`, and all groups (Linux `Documentation/filesystems/ext4/group_descr.rst`). The kernel keeps
/// descriptors in the cache of the device, where this reads them. `None` where they are elsewhere (`meta_bg`), or know no such thing.
fn groups_left(device: &File) -> Option<(u64, u64)> {
    let mut sb = [0; 1024];
    device.read_exact_at(&mut sb, 1024).ok()?;
    let u16_at = |at: usize| u16::from_le_bytes([sb[at], sb[at + 1]]);
    let u32_at = |at: usize| u32::from_le_bytes([sb[at], sb[at + 1], sb[at + 2], sb[at + 3]]);
    let (incompat, ro_compat) = (u32_at(0x60), u32_at(0x64));
    let (meta_bg, wide) = (incompat & 0x10 != 0, incompat & 0x80 != 0);
    // uninit_bg or metadata_csum: only then have groups such flags.
    if u16_at(0x38) != 0xef53 || u32_at(0x18) > 6 || meta_bg || ro_compat & 0x410 == 0 {
        return None;
    }
    let (block, first) = (1024_u64 << u32_at(0x18), u64::from(u32_at(0x14)));
    let high = if wide { u64::from(u32_at(0x150)) } else { 0 };
    let blocks = high << 32 | u64::from(u32_at(4));
    let each = u64::from(u32_at(0x20));
    let size = match wide {
        true => usize::from(u16_at(0xfe)),
        false => 32,
    };
    if each == 0 || !(32..=1024).contains(&size) {
        return None;
    }
    let all = blocks.checked_sub(first)?.div_ceil(each);
    let mut left = 0;
    let mut piece = vec![0; PIECE * size];
    for begin in (0..all).step_by(PIECE) {
        let piece = &mut piece[..(all - begin).min(PIECE as u64) as usize * size];
        let at = (first + 1) * block + begin * size as u64;
        device.read_exact_at(piece, at).ok()?;
        let zeroed = |descriptor: &[u8]| descriptor[0x12] & 4 != 0;
        left += piece.chunks_exact(size).filter(|its| !zeroed(its)).count() as u64;
    }
    Some((left, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What mkfs.ext4 leaves to the kernel with these options.
    fn made(options: &str) -> Option<(u64, u64)> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(1 << 30).expect("room");
        // A discarded file reads as zeros, and nothing is left to be written.
        let mut words = vec!["-q", "-F"];
        words.extend(options.split(' '));
        let ran = Command::new("mkfs.ext4")
            .args(words)
            .arg(file.path())
            .status();
        assert!(ran.ok()?.success(), "mkfs.ext4 {options}");
        Some(groups_left(file.as_file()).unwrap_or((u64::MAX, 0)))
    }

    #[test]
    fn groups_that_mkfs_left_to_the_kernel_are_counted() {
        let Some(lazy) = made("-E nodiscard,lazy_itable_init=1") else {
            let message =
                "SKIPPED groups_that_mkfs_left_to_the_kernel_are_counted: needs mkfs.ext4";
            assert!(std::env::var_os("CI").is_none(), "{message}");
            eprintln!("{message}");
            return;
        };
        assert_eq!(lazy, (8, 8));
        assert_eq!(made("-E nodiscard,lazy_itable_init=0"), Some((0, 8)));
        // Descriptors of 32 bytes behind a boot block.
        let narrow = made("-O ^64bit -b 1024 -E nodiscard,lazy_itable_init=1");
        assert_eq!(narrow, Some((128, 128)));
        let nothing = Some((u64::MAX, 0));
        assert_eq!(
            made("-O ^metadata_csum,^uninit_bg -E nodiscard,lazy_itable_init=0"),
            nothing
        );
    }

    #[test]
    fn what_is_left_in_words() {
        let told = [Some((212, 320)), None].map(|groups| Initialising { groups }.to_string());
        insta::assert_snapshot!(told.join("\n"), @r"
    the kernel still writes the inode tables of this new ext4 (212 of 320 groups are left), which takes up to a tenth of the disk's time
    the kernel still writes the inode tables of a new ext4, this one or another, which takes up to a tenth of the disk's time
    ");
    }
}

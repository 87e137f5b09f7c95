//! The stripes that a file system is told of, and what it wrote down of them.
use crate::error::{HostError, Result};
use raidlab_core::units::Bytes;
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_layout::{Layout, Member};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Chunk and data members of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Bytes on one member before the next one's turn.
    pub chunk: Bytes,
    /// Members of a stripe that have data, parity and copies not counted.
    pub data: u64,
}

impl Stripe {
    /// Of a layout that has chunks.
    pub(super) fn of(layout: &Layout) -> Option<Self> {
        let chunk = layout.chunk()?.to_bytes();
        let used = layout.used(Member::new(0)).0.max(1);
        let data = layout.capacity().0 / used;
        (data > 0).then_some(Self { chunk, data })
    }

    /// Fails when the superblock of a file system that was just made says otherwise.
    pub(super) fn verify(self, file: &File, kind: FilesystemKind, path: &Path) -> Result<()> {
        let found = written(file, kind).map_err(HostError::call("read", path))?;
        let wanted = (self.chunk.0, self.chunk.0 * self.data);
        match found {
            Some(found) if found != wanted => {
                let told =
                    |(unit, width): (u64, u64)| format!("{} of {}", Bytes(unit), Bytes(width));
                Err(HostError::Unexpected(format!(
                    "the {kind} on {} was to have stripes of {}, and has {}",
                    path.display(),
                    told(wanted),
                    told(found)
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Chunk and stripe in bytes, as the superblock has them in blocks; `None` for file systems that have no such fields.
fn written(file: &File, kind: FilesystemKind) -> std::io::Result<Option<(u64, u64)>> {
    let bytes = |at: u64| -> std::io::Result<[u8; 4]> {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    };
    let little = |at: u64| bytes(1024 + at).map(|bytes| u64::from(u32::from_le_bytes(bytes)));
    let big = |at: u64| bytes(at).map(|bytes| u64::from(u32::from_be_bytes(bytes)));
    let (block, unit, width) = match kind {
        // s_log_block_size, s_raid_stride (16 bits), s_raid_stripe_width: fs/ext4/ext4.h.
        FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => (
            1024 << little(0x18)?.min(6),
            little(0x164)? & 0xffff,
            little(0x170)?,
        ),
        // sb_blocksize, sb_unit, sb_width: fs/xfs/libxfs/xfs_format.h.
        FilesystemKind::Xfs => (big(4)?, big(184)?, big(188)?),
        _ => return Ok(None),
    };
    Ok(Some((unit * block, width * block)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What is read of a file system that its own maker has made in a file.
    fn made(
        kind: FilesystemKind,
        words: &[&str],
        size: u64,
    ) -> Option<(tempfile::NamedTempFile, (u64, u64))> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(size).expect("a size");
        let Some(program) = crate::tool::find(words[0]) else {
            use std::io::Write as _;
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED stripes of {kind}: needs {}",
                words[0]
            );
            assert!(std::env::var_os("CI").is_none());
            return None;
        };
        let output = Command::new(program)
            .args(&words[1..])
            .arg(file.path())
            .output()
            .expect("it runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let found = written(file.as_file(), kind)
            .expect("it is read")
            .expect("it has stripes");
        Some((file, found))
    }

    #[test]
    fn what_the_makers_wrote_down_is_read() {
        let stripe = Stripe {
            chunk: Bytes::kib(64),
            data: 3,
        };
        let ext = [
            "mkfs.ext4",
            "-F",
            "-q",
            "-b",
            "1024",
            "-E",
            "stride=64,stripe-width=192",
        ];
        let xfs = ["mkfs.xfs", "-f", "-q", "-d", "su=65536,sw=3"];
        for (kind, words, size) in [
            (FilesystemKind::Ext4, ext.as_slice(), 16 << 20),
            (FilesystemKind::Xfs, xfs.as_slice(), 768 << 20),
        ] {
            let Some((file, found)) = made(kind, words, size) else {
                continue;
            };
            assert_eq!(found, (64 << 10, 192 << 10), "{kind}");
            stripe
                .verify(file.as_file(), kind, file.path())
                .expect("as it was to be");
            let other = Stripe { data: 2, ..stripe };
            let error = other
                .verify(file.as_file(), kind, file.path())
                .expect_err("not so many");
            assert!(
                error
                    .to_string()
                    .contains("of 128 KiB, and has 64 KiB of 192 KiB"),
                "{error}"
            );
        }
        let Some((_, found)) = made(FilesystemKind::Ext4, &ext[..5], 16 << 20) else {
            return;
        };
        assert_eq!(found, (0, 0), "without options");
    }
}

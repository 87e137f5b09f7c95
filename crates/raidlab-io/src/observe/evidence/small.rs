//! Phases of many small files: what a file system writes for their names and inodes is on nobody's account, but it is little. What the
//! device moved far beyond it is others'.
use super::{Evidence, FOREIGN, SLACK, size};
use raidlab_core::flag::{Flag, FlagKind};

/// What a file system may write for a file of a phase, beside the file's own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallFiles {
    /// Files made, looked at or removed.
    pub files: u64,
    /// At most so many bytes of metadata for each.
    pub each: u64,
}

impl SmallFiles {
    /// Of a file that is only looked at: when it was.
    pub const SEEN: u64 = 1 << 10;
    /// Of one that is made or removed: its inode, its name, and both in the journal. Many share a block.
    pub const CHANGED: u64 = 16 << 10;
    /// Of one that is made durable before the next, with its directory: a transaction of its own for each, whose blocks are of
    /// it alone, some of them written several times (in btrfs's log tree 16 KiB each, and of a mirror's copies two).
    pub const DURABLE: u64 = 256 << 10;
}

/// Whether the device moved much more than small files can have caused.
pub fn beside_small_files(e: &Evidence, of: SmallFiles) -> Option<Flag> {
    let more = |device: u64, own: u64| {
        device as f64 > FOREIGN * own as f64 && device.saturating_sub(own) > SLACK
    };
    let (read, written) = e.device_read.zip(e.device_written)?;
    let metadata = of.files.saturating_mul(of.each);
    let own = e
        .claimed_written
        .max(e.process_written.unwrap_or(0))
        .saturating_add(metadata);
    let wrote = (more(written, own) && !e.copies).then(|| {
        format!(
            "the device wrote {} where the files and their names come to {} at most",
            size(written),
            size(own)
        )
    });
    let caused = e.process_read.map(|own| own.max(e.claimed_read));
    // The kernel's own threads read little for a file system.
    let fetched = caused.filter(|own| more(read, *own)).map(|own| {
        format!(
            "the device read {} of which this process caused {}",
            size(read),
            size(own)
        )
    });
    let told: Vec<String> = wrote.into_iter().chain(fetched).collect();
    (!told.is_empty()).then(|| {
        let reason = format!("{}: something else used it", told.join(", and "));
        Flag::new(FlagKind::ForeignIo, reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn told(evidence: &Evidence) -> Option<String> {
        let of = SmallFiles {
            files: 1024,
            each: SmallFiles::CHANGED,
        };
        beside_small_files(evidence, of).map(|flag| flag.reason)
    }

    #[test]
    fn what_small_files_cannot_have_caused_is_anothers() {
        let made = Evidence {
            device_read: Some(MIB),
            device_written: Some(19 * MIB),
            process_read: Some(0),
            process_written: Some(4 * MIB),
            ..Evidence::default()
        };
        assert_eq!(told(&made), None);
        let beside = Evidence {
            device_written: Some(600 * MIB),
            ..made.clone()
        };
        insta::assert_snapshot!(told(&beside).expect("a doubt"), @"the device wrote 600 MiB where the files and their names come to 20 MiB at most: something else used it");
        let read = Evidence {
            device_read: Some(300 * MIB),
            ..made.clone()
        };
        insta::assert_snapshot!(told(&read).expect("a doubt"), @"the device read 300 MiB of which this process caused 0 B: something else used it");
        // Large files are no metadata.
        let large = Evidence {
            claimed_written: 600 * MIB,
            ..beside.clone()
        };
        assert_eq!(told(&large), None);
        // A file system that keeps copies writes more, and what is not counted says nothing.
        let copies = Evidence {
            copies: true,
            ..beside.clone()
        };
        assert_eq!(told(&copies), None);
        assert_eq!(told(&Evidence::default()), None);
    }
}

//! Which of the kernel's words are about a trial's devices, on a machine that has others.
use raidlab_io::observe::{Roots, resolve};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The members of a trial and what they stand on.
#[derive(Clone, Debug)]
pub struct Related {
    roots: Roots,
    members: BTreeSet<String>,
    beneath: BTreeSet<String>,
}

impl Related {
    /// By the nodes of the members.
    #[must_use]
    pub fn to<'p>(roots: &Roots, members: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let members: BTreeSet<String> =
            members.into_iter().filter_map(|p| kernel_name(p)).collect();
        Self {
            beneath: stack(roots, members.iter().cloned().collect()),
            members,
            roots: roots.clone(),
        }
    }

    /// Whether a line names devices of this machine, and none of them is a member, beneath one, or made of one. What names
    /// no device, or one that has gone, may be about anything.
    pub(super) fn is_foreign(&self, line: &str) -> bool {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '!'));
        let named: Vec<&str> = words
            .map(|word| word.trim_matches('-'))
            .filter(|word| !word.is_empty() && self.roots.block(word).exists())
            .collect();
        !named.is_empty() && !named.iter().any(|name| self.is_ours(name))
    }

    fn is_ours(&self, name: &str) -> bool {
        // What a loop device of somebody else's stands on may be beneath a member, too: only members count there.
        self.beneath.contains(name)
            || stack(&self.roots, vec![name.to_owned()])
                .iter()
                .any(|below| self.members.contains(below))
    }
}

/// `sda` of `/dev/disk/by-id/ata-…`.
fn kernel_name(path: &Path) -> Option<String> {
    let node = path.canonicalize().ok()?;
    Some(node.file_name()?.to_str()?.to_owned())
}

/// All devices of a stack; those at its top alone when nothing is known of it.
fn stack(roots: &Roots, top: Vec<String>) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = top.iter().cloned().collect();
    if let Ok(stack) = resolve::device_stack(roots, top) {
        all.extend(stack.devices.into_iter().map(|device| device.name));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kmsg::{Failing, KernelWords};
    use raidlab_core::time::Span;
    use std::fs;

    fn kept(line: &str, related: &Related) -> Vec<String> {
        let mut words = KernelWords::default();
        words.hear(line, Span::ZERO, Failing::Nobody, Some(related));
        words.lines
    }

    /// An array of sda and sdb1, another one of sdc and sdd, of which sdd has a partition.
    #[test]
    fn words_about_the_disks_of_others_are_told_from_ours() {
        let tree = tempfile::tempdir().unwrap();
        let device = |name: &str, below: &[&str]| {
            let dir = tree.path().join("sys/devices").join(name);
            fs::create_dir_all(dir.join("slaves")).unwrap();
            for slave in below {
                fs::write(dir.join("slaves").join(slave), "").unwrap();
            }
            fs::create_dir_all(tree.path().join("sys/class/block")).unwrap();
            let link = tree.path().join("sys/class/block").join(name);
            std::os::unix::fs::symlink(&dir, link).unwrap();
            fs::create_dir_all(tree.path().join("dev")).unwrap();
            fs::write(tree.path().join("dev").join(name), "").unwrap();
        };
        for disk in ["sda", "sdb", "sdc", "sdd"] {
            device(disk, &[]);
        }
        device("md0", &["sda", "sdb"]);
        device("md1", &["sdc", "sdd"]);
        device("dm-3", &["md1"]);
        fs::create_dir_all(tree.path().join("proc/self")).unwrap();
        fs::write(tree.path().join("proc/self/mountinfo"), "").unwrap();
        let roots = Roots::under(tree.path());
        let members = ["sda", "sdb"].map(|name| tree.path().join("dev").join(name));
        let related = Related::to(&roots, &members);
        for ours in [
            "I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
            "EXT4-fs error (device md0): ext4_lookup:1602",
            "md/raid:md0: Disk failure on sdb, disabling device.",
            // One of both.
            "md/raid:md1: Disk failure on sdb, disabling device.",
            // An array that is there no more, and what names none.
            "EXT4-fs error (device md127): ext4_lookup:1602",
            "INFO: task bonnie++:71 blocked for more than 120 seconds.",
            "Out of memory: Killed process 71 (bonnie++)",
        ] {
            assert!(!related.is_foreign(ours), "{ours}");
            assert_eq!(kept(ours, &related), [ours]);
        }
        for foreign in [
            "BTRFS error (device sdc): open_ctree failed: -12",
            "I/O error, dev sdd, sector 1",
            "EXT4-fs error (device dm-3): ext4_lookup:1602",
            "md/raid:md1: Disk failure on sdc, disabling device.",
            // No trouble of theirs, but theirs.
            "sdc: detected capacity change from 0 to 131072",
        ] {
            assert!(related.is_foreign(foreign), "{foreign}");
            assert!(kept(foreign, &related).is_empty(), "{foreign}");
        }
    }
}

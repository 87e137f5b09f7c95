//! The targets: what is read.
use crate::Result;
use raidlab_core::data::DataPolicy;
use raidlab_io::engine::Content;
use std::fs::{DirEntry, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Bytes of the file that stays in the page cache.
const HOT: u64 = 16 << 20;
/// Bytes of the file that is read past it.
const DIRECT: u64 = 1 << 30;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/dev/zero`: inline and deterministic, needs no privilege.
    Null,
    /// A 16 MiB file in the page cache.
    Hot,
    /// A 1 GiB file past the page cache.
    Direct,
    /// A loop device with direct I/O on a 1 GiB file, past the page cache.
    Loop,
}

impl Target {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Hot => "hot",
            Self::Direct => "direct",
            Self::Loop => "loop",
        }
    }

    /// Whether the page cache is passed by.
    pub(crate) fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::Loop)
    }

    /// Bytes that are read at random.
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::Hot => HOT,
            Self::Null | Self::Direct | Self::Loop => DIRECT,
        }
    }
}

/// The targets' files and device; gone when dropped.
pub(crate) struct Places {
    null: PathBuf,
    hot: PathBuf,
    direct: PathBuf,
    device: Option<LoopDevice>,
    // After what lies in it.
    _directory: TempDir,
}

/// A loop device that is given up already: the kernel detaches it as soon as nobody has it open, however
/// this program ends.
struct LoopDevice {
    path: PathBuf,
    _open: File,
}

impl Places {
    pub(crate) fn make(parent: &Path) -> Result<Self> {
        remove_stale(parent);
        let directory = TempDir::with_prefix_in(format!("{PREFIX}{}-", std::process::id()), parent)
            .map_err(|error| format!("{}: {error}", parent.display()))?;
        let file = |name: &str, size: u64| -> Result<PathBuf> {
            let path = directory.path().join(name);
            fill(&path, size)?;
            Ok(path)
        };
        let (hot, direct) = (file("hot", HOT)?, file("direct", DIRECT)?);
        let backing = file("loop", DIRECT)?;
        // Read once: from now on it is in the page cache.
        let mut all = Vec::new();
        File::open(&hot)?.read_to_end(&mut all)?;
        Ok(Self {
            null: PathBuf::from("/dev/zero"),
            hot,
            direct,
            device: attach(&backing),
            _directory: directory,
        })
    }

    pub(crate) fn path(&self, target: Target) -> &Path {
        match target {
            Target::Null => &self.null,
            Target::Hot => &self.hot,
            Target::Direct => &self.direct,
            Target::Loop => self
                .device
                .as_ref()
                .map_or(&self.direct, |device| &device.path),
        }
    }

    pub(crate) fn has_loop(&self) -> bool {
        self.device.is_some()
    }
}

/// Before the number of the process, in the name of its directory.
const PREFIX: &str = "engine-bench-";

/// Removes the directories of runs that were killed.
fn remove_stale(parent: &Path) {
    let gone = |entry: &DirEntry| {
        let name = entry.file_name();
        let process = name.to_str()?.strip_prefix(PREFIX)?.split('-').next()?;
        let process: u32 = process.parse().ok()?;
        Some(!Path::new(&format!("/proc/{process}")).exists())
    };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if gone(&entry) == Some(true) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn fill(path: &Path, size: u64) -> Result<()> {
    let content = Content::new(DataPolicy::Seeded, 1);
    let mut file = File::create(path)?;
    let mut piece = vec![0; 1 << 20];
    for at in (0..size).step_by(piece.len()) {
        content.fill(0, at, &mut piece);
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(())
}

fn attach(backing: &Path) -> Option<LoopDevice> {
    let output = Command::new("losetup")
        .args(["--find", "--show", "--read-only", "--direct-io=on"])
        .arg(backing)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let open = File::open(&path);
    let detach = Command::new("losetup").arg("-d").arg(&path).status();
    let device = LoopDevice {
        path,
        _open: open.ok()?,
    };
    detach
        .is_ok_and(|status| status.success())
        .then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_runs_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let mine = format!("{PREFIX}{}-x", std::process::id());
        // Above the largest process number that Linux has.
        let dead = format!("{PREFIX}4194305-x");
        for name in [&mine, &dead, "engine-bench-notes", "4194305"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_stale(parent.path());
        let there = |name: &str| parent.path().join(name).exists();
        assert!(there(&mine) && there("engine-bench-notes") && there("4194305"));
        assert!(!there(&dead));
    }
}

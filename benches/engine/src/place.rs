//! The targets: what is read.
use crate::Result;
use raidlab_core::data::DataPolicy;
use raidlab_io::engine::Content;
use std::fs::File;
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
    _directory: TempDir,
    null: PathBuf,
    hot: PathBuf,
    direct: PathBuf,
    device: Option<PathBuf>,
}

impl Places {
    pub(crate) fn make(parent: &Path) -> Result<Self> {
        let directory = TempDir::with_prefix_in("engine-bench-", parent)
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
            Target::Loop => self.device.as_deref().unwrap_or(&self.direct),
        }
    }

    pub(crate) fn has_loop(&self) -> bool {
        self.device.is_some()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").arg("-d").arg(device).status();
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

fn attach(backing: &Path) -> Option<PathBuf> {
    let output = Command::new("losetup")
        .args(["--find", "--show", "--read-only", "--direct-io=on"])
        .arg(backing)
        .output()
        .ok()?;
    let device = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| PathBuf::from(device.trim()))
}

//! Devices that raidlab made itself.
use crate::identity::{FileId, Identity};
use raidlab_io::observe::Roots;

/// Proof that raidlab made a device itself. It comes from what made the device.
#[derive(Clone, Debug)]
pub struct Own(pub(super) OwnKind);

#[derive(Clone, Debug)]
pub(super) enum OwnKind {
    LoopFile(FileId),
    Guest,
}

impl Own {
    pub(crate) fn of_loop_file(file: FileId) -> Self {
        Self(OwnKind::LoopFile(file))
    }

    /// In a virtual machine that raidlab started every disk is one of its own. Two things must say that this is one: the
    /// kernel's command line, on which raidlab puts `raidlab.guest`, and that the first process is this very program (a
    /// container has that, too, but the command line of the machine around it).
    #[must_use]
    pub fn in_guest(roots: &Roots) -> Option<Self> {
        let line = std::fs::read_to_string(roots.proc.join("cmdline")).ok()?;
        let marked = line
            .split_ascii_whitespace()
            .any(|word| word == "raidlab.guest" || word.starts_with("raidlab.guest="));
        let program = |process: &str| {
            use std::os::unix::fs::MetadataExt as _;
            let found = std::fs::metadata(roots.proc.join(process).join("exe")).ok()?;
            Some((found.dev(), found.ino()))
        };
        let first = program("1");
        let same = first.is_some() && first == program("self");
        (marked && same).then_some(Self(OwnKind::Guest))
    }

    pub(super) fn check(&self, found: &Identity) -> Result<(), String> {
        match &self.0 {
            OwnKind::Guest => Ok(()),
            OwnKind::LoopFile(file) => {
                let shown = found.backing.as_ref();
                let same =
                    |shown: &FileId| (shown.device, shown.inode) == (file.device, file.inode);
                if shown.is_some_and(same) {
                    Ok(())
                } else {
                    Err(format!(
                        "it does not show raidlab's own file {}",
                        file.path.display()
                    ))
                }
            }
        }
    }
}

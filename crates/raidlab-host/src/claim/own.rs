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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// All disks of a machine are raidlab's own only where both its command line and its first process say so.
    #[test]
    fn a_guest_is_one_that_raidlab_started() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(tree.path());
        for process in ["1", "self"] {
            fs::create_dir_all(roots.proc.join(process)).expect("made");
        }
        let programs = ["raidlab", "init"].map(|name| tree.path().join(name));
        for program in &programs {
            fs::write(program, "").expect("written");
        }
        let of = |line: &str, first: Option<usize>, own: Option<usize>| {
            fs::write(roots.proc.join("cmdline"), line).expect("written");
            for (process, program) in [("1", first), ("self", own)] {
                let exe = roots.proc.join(process).join("exe");
                let _ = fs::remove_file(&exe);
                if let Some(program) = program {
                    symlink(&programs[program], &exe).expect("linked");
                }
            }
            Own::in_guest(&roots).is_some()
        };
        let (raidlab, init) = (Some(0), Some(1));
        for line in ["quiet raidlab.guest", "raidlab.guest=test quiet\n"] {
            assert!(of(line, raidlab, raidlab), "{line}");
            assert!(!of(line, init, raidlab), "{line}");
            assert!(!of(line, raidlab, None), "{line}");
            // That neither can be told does not make them the same.
            assert!(!of(line, None, None), "{line}");
        }
        for line in ["", "quiet", "raidlab.guests", "xraidlab.guest", "raidlab"] {
            assert!(!of(line, raidlab, raidlab), "{line}");
        }
        fs::remove_file(roots.proc.join("cmdline")).expect("removed");
        assert!(Own::in_guest(&roots).is_none());
    }
}

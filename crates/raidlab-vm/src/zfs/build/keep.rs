//! What of a build guests need, moved to its place.
use super::super::progress::Part;
use super::super::{DESCRIPTION, PROGRAMS, Zfs};
use super::packages::Plan;
use super::{USERLAND, Work, find, remove};
use crate::error::VmError;
use crate::tools;
use std::fs;
use std::path::Path;
use std::time::Instant;

impl Work<'_> {
    /// Moves what guests need to its place.
    pub(super) fn keep(
        &mut self,
        source: &Path,
        place: &Path,
        plan: Plan,
        begun: Instant,
    ) -> Result<Zfs, VmError> {
        self.at(Part::Keep, 0.0);
        let new = self.path("new");
        programs(&self.path("root"), &new)?;
        remove(&new.join("modules"));
        let modules = self.make("new/modules")?;
        let mut built = Vec::new();
        find(&source.join("module"), "ko", &mut built);
        for file in &built {
            let to = modules.join(file.file_name().unwrap_or_default());
            fs::copy(file, &to).map_err(VmError::path("copy", file))?;
            tools::run("strip", &["-g", &to.to_string_lossy()], None)?;
        }
        for name in ["LICENSE", "COPYRIGHT", "NOTICE"] {
            let _ = fs::copy(source.join(name), new.join(name));
        }
        let packages = self.packages()?;
        let zfs = Zfs {
            version: plan.version,
            release: self.kernel.release.clone(),
            packages,
            modules: place.join("modules"),
            root: place.join("root"),
            seconds: begun.elapsed().as_secs_f64(),
        };
        let text = serde_json::to_string_pretty(&zfs).unwrap_or_default();
        let description = new.join(DESCRIPTION);
        fs::write(&description, text).map_err(VmError::path("write", &description))?;
        self.go_on()?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(VmError::path("make the directory", parent))?;
        }
        // What is there is not whole, or it would have been used.
        remove(place);
        fs::rename(&new, place).map_err(VmError::path("move to", place))?;
        let missing = PROGRAMS
            .iter()
            .find(|(name, _)| zfs.program(name).is_none());
        if let Some((name, _)) = missing {
            remove(place);
            return Err(VmError::NoZfs(format!("{USERLAND} has no {name} in it")));
        }
        Zfs::described(place).ok_or_else(|| VmError::NoZfs("no module came of it".to_owned()))
    }
}

/// Moves the programs with their libraries. A build that was killed may have moved them already: then they are there alone.
pub(super) fn programs(root: &Path, new: &Path) -> Result<(), VmError> {
    if !root.exists() && new.join("root").exists() {
        return Ok(());
    }
    // What is for a running system.
    for name in [
        "etc",
        "usr/share",
        "lib/systemd",
        "usr/lib/systemd",
        "lib/udev",
        "usr/lib/udev",
    ] {
        remove(&root.join(name));
    }
    remove(new);
    fs::create_dir_all(new).map_err(VmError::path("make the directory", new))?;
    fs::rename(root, new.join("root")).map_err(VmError::path("move", root))
}

//! Where the machine-local files of real runs are.
use crate::exit::{Failure, MISSING};
use std::path::{Path, PathBuf};

fn directories() -> Result<directories::ProjectDirs, Failure> {
    directories::ProjectDirs::from("", "", "raidlab").ok_or_else(|| {
        Failure::new(MISSING, "no home directory to look for raidlab's files in")
            .remedy("set HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME")
    })
}

/// The list of devices that may be overwritten.
pub(crate) fn allow_list() -> Result<PathBuf, Failure> {
    Ok(directories()?.config_dir().join("expendable.toml"))
}

/// Where journals and the mount point are.
pub(crate) fn state() -> Result<PathBuf, Failure> {
    let directories = directories()?;
    let state = directories.state_dir();
    Ok(state
        .unwrap_or_else(|| directories.data_local_dir())
        .to_owned())
}

/// What was done to the machine and is not undone yet.
pub(crate) fn journals() -> Result<PathBuf, Failure> {
    Ok(state()?.join("journal"))
}

/// Where `bench` has working directories, or had them when it was killed.
pub(crate) fn notes() -> Result<PathBuf, Failure> {
    Ok(state()?.join("places"))
}

/// Where file systems under test are mounted: one at a time, so that two runs of a user do not disturb each other's
/// figures. Without links, as the kernel's table of mounts has it: by another name nothing would be found there, and undone.
pub(crate) fn mount() -> Result<PathBuf, Failure> {
    Ok(without_links(&state()?).join("mnt"))
}

/// The place that a path leads to, as far as it is there.
fn without_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    there.unwrap_or_else(|| path.to_owned())
}

/// The same in a guest, whose only user is root with a home of his own and nothing set.
pub(crate) fn mount_in_guest() -> PathBuf {
    PathBuf::from("/root/.local/state/raidlab/mnt")
}

//! ZFS for guests: the module built on this machine from the distribution's source package against the guest's kernel,
//! and the programs of the same version. Its licence (CDDL) and the kernel's (GPL) may be combined by whoever uses
//! both, and not passed on together, so that raidlab brings neither: all of it is made and kept in the cache.
mod apt;
mod build;
mod progress;

pub use progress::Progress;

use crate::cache::Cache;
use crate::kernel::{Package, numbers};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What of a build is described here.
const DESCRIPTION: &str = "zfs.json";
/// Programs of it that guests have: name and what it is for.
pub const PROGRAMS: [(&str, &str); 3] = [
    ("zpool", "builds ZFS pools"),
    ("zfs", "makes ZFS data sets"),
    ("zdb", "tells what is on a ZFS member"),
];

/// ZFS as it was built for one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Zfs {
    /// Version of the distribution's package.
    pub version: String,
    /// The kernel's release.
    pub release: String,
    /// Packages that it was made from.
    pub packages: Vec<Package>,
    /// Directory of its modules.
    pub modules: PathBuf,
    /// Its programs and libraries, in the directories where a system has them.
    pub root: PathBuf,
    /// How long the build took, in seconds.
    pub seconds: f64,
}

impl Zfs {
    /// The newest that has been built for a kernel.
    #[must_use]
    pub fn cached(cache: &Cache, release: &str) -> Option<Self> {
        let entries = fs::read_dir(of_kernel(cache, release)).ok()?;
        let mut all: Vec<Self> = entries
            .filter_map(|entry| Self::described(&entry.ok()?.path()))
            .collect();
        all.sort_by_key(|zfs| numbers(&zfs.version));
        all.pop()
    }

    fn described(place: &Path) -> Option<Self> {
        let text = fs::read_to_string(place.join(DESCRIPTION)).ok()?;
        let zfs: Self = serde_json::from_str(&text).ok()?;
        let there = zfs.program("zpool").is_some() && zfs.modules.join("zfs.ko").is_file();
        there.then_some(zfs)
    }

    /// The file of a program.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let places = ["usr/sbin", "sbin", "usr/bin", "bin"];
        let files = places.map(|place| self.root.join(place).join(name));
        files.into_iter().find(|file| file.is_file())
    }
}

/// All builds are in here.
fn builds(cache: &Cache) -> PathBuf {
    cache.path().join("zfs")
}

fn of_kernel(cache: &Cache, release: &str) -> PathBuf {
    builds(cache).join(release)
}

fn place(cache: &Cache, release: &str, version: &str) -> PathBuf {
    of_kernel(cache, release).join(version.replace(':', "%3a"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_build_counts() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned());
        let make = |version: &str| {
            let place = place(&cache, "6.1.0-1", version);
            let zfs = Zfs {
                version: version.to_owned(),
                release: "6.1.0-1".to_owned(),
                packages: Vec::new(),
                modules: place.join("modules"),
                root: place.join("root"),
                seconds: 1.0,
            };
            fs::create_dir_all(zfs.modules.clone()).unwrap();
            fs::create_dir_all(zfs.root.join("sbin")).unwrap();
            let text = serde_json::to_string(&zfs).unwrap();
            fs::write(place.join(DESCRIPTION), text).unwrap();
            zfs
        };
        let old = make("2.1.9-1");
        assert_eq!(Zfs::cached(&cache, "6.1.0-1"), None, "it has no module");
        fs::write(old.modules.join("zfs.ko"), "").unwrap();
        assert_eq!(Zfs::cached(&cache, "6.1.0-1"), None, "it has no program");
        fs::write(old.root.join("sbin/zpool"), "").unwrap();
        assert_eq!(Zfs::cached(&cache, "6.1.0-1"), Some(old));
        let new = make("2.1.11-1+deb12u1");
        fs::write(new.modules.join("zfs.ko"), "").unwrap();
        fs::write(new.root.join("sbin/zpool"), "").unwrap();
        assert_eq!(Zfs::cached(&cache, "6.1.0-1"), Some(new));
        assert_eq!(Zfs::cached(&cache, "6.1.0-2"), None);
    }
}

//! The kernel to boot: this machine's own where it can be read with its modules, else the
//! distribution's package, fetched and unpacked without root.
use crate::cache::{Cache, digest_of, names};
use crate::error::VmError;
use crate::removal::remove_tree;
use crate::tools;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Which of the distribution's kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// For virtual machines: small, boots fast, has virtio, NVMe and plain IDE.
    #[default]
    Cloud,
    /// With drivers of real hardware: AHCI, SCSI adapters.
    Generic,
}

impl Flavour {
    /// The package that stands for the newest of its kind.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::Cloud => "linux-image-cloud-amd64",
            Self::Generic => "linux-image-amd64",
        }
    }
}

/// A kernel with its modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kernel {
    /// As `uname -r` says it.
    pub release: String,
    /// Package and version; `None` for this machine's own.
    pub package: Option<Package>,
    /// SHA-256 of the kernel's file.
    pub sha256: String,
    /// The kernel itself.
    pub vmlinuz: PathBuf,
    /// Directory of its modules.
    pub modules: PathBuf,
}

/// A package of the distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its file.
    pub sha256: String,
}

/// Modules that a kernel must have to be of use: built in or not is told by `modules.builtin`.
const NEEDED: [&str; 5] = ["nbd", "virtio_console", "virtio_pci", "md_mod", "raid456"];
/// What of a package is described here.
const DESCRIPTION: &str = "kernel.json";

impl Kernel {
    /// What a person calls it.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.package {
            None => format!("{} of this machine", self.release),
            Some(package) => format!("{} ({} {})", self.release, package.name, package.version),
        }
    }

    /// The newest kernel of that kind in the cache.
    #[must_use]
    pub fn cached(cache: &Cache, flavour: Flavour) -> Option<Self> {
        let mut all: Vec<Self> = fs::read_dir(kernels(cache, flavour))
            .ok()?
            .filter_map(|entry| Self::described(&entry.ok()?.path()))
            .collect();
        all.sort_by_key(|kernel| numbers(&kernel.release));
        all.pop()
    }

    fn described(directory: &Path) -> Option<Self> {
        let text = fs::read_to_string(directory.join(DESCRIPTION)).ok()?;
        let kernel: Self = serde_json::from_str(&text).ok()?;
        let there = kernel.vmlinuz.is_file() && kernel.modules.is_dir();
        there.then_some(kernel)
    }

    /// This machine's own kernel, if it can be read and has what is needed.
    #[must_use]
    pub fn of_this_machine() -> Option<Self> {
        let release = rustix::system::uname().release().to_str().ok()?.to_owned();
        let modules = PathBuf::from("/lib/modules").join(&release);
        let places = [
            PathBuf::from(format!("/boot/vmlinuz-{release}")),
            modules.join("vmlinuz"),
        ];
        let vmlinuz = places
            .into_iter()
            .find(|path| fs::File::open(path).is_ok())?;
        let has = crate::image::has_modules(&modules, &NEEDED);
        let sha256 = has.then(|| digest_of(&vmlinuz).ok())??;
        Some(Self {
            release,
            package: None,
            sha256,
            vmlinuz,
            modules,
        })
    }

    /// Whether it has this module, or has it built in.
    #[must_use]
    pub fn has_module(&self, name: &str) -> bool {
        crate::image::has_modules(&self.modules, &[name])
    }

    /// A kernel: from the cache, or this machine's own where its kind will do, or the distribution's
    /// current package. `talk` is told what takes time.
    ///
    /// # Errors
    /// [`VmError::NoKernel`] with what was tried.
    pub fn find(
        cache: &Cache,
        flavour: Flavour,
        talk: &mut dyn FnMut(&str),
    ) -> Result<Self, VmError> {
        if let Some(kernel) = Self::cached(cache, flavour) {
            return Ok(kernel);
        }
        if let Some(kernel) = Self::of_this_machine() {
            return Ok(kernel);
        }
        Self::fetch(cache, flavour, talk)
    }

    /// The distribution's current package: looked up, fetched and unpacked unless the cache has it.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn fetch(
        cache: &Cache,
        flavour: Flavour,
        talk: &mut dyn FnMut(&str),
    ) -> Result<Self, VmError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(VmError::Architecture);
        }
        let (name, version) = current(flavour)?;
        let place = kernels(cache, flavour).join(format!("{name}_{}", version.replace(':', "%3a")));
        if let Some(kernel) = Self::described(&place) {
            return Ok(kernel);
        }
        let _lock = cache.lock()?;
        if let Some(kernel) = Self::described(&place) {
            return Ok(kernel);
        }
        talk(&format!("fetching {name} {version} (about 30 to 70 MB)"));
        let work = cache.directory("fetch")?;
        let _swept = Swept(&work);
        // The user of its own that apt drops to cannot write here.
        let user = "APT::Sandbox::User=root";
        tools::run(
            "apt-get",
            &["-q", "-o", user, "download", &name],
            Some(&work),
        )?;
        let deb = only_package(&work)?;
        Self::unpack(
            &deb,
            &Package {
                name,
                version,
                sha256: digest_of(&deb)?,
            },
            &place,
        )
    }

    /// A kernel from the file of a package.
    ///
    /// # Errors
    /// When it is none of a kernel.
    pub fn from_package(cache: &Cache, flavour: Flavour, deb: &Path) -> Result<Self, VmError> {
        let field = |name: &str| -> Result<String, VmError> {
            let deb = deb.to_string_lossy();
            let said = tools::run("dpkg-deb", &["-f", &deb, name], None)?;
            Ok(String::from_utf8_lossy(&said).trim().to_owned())
        };
        let package = Package {
            name: field("Package")?,
            version: field("Version")?,
            sha256: digest_of(deb)?,
        };
        let _lock = cache.lock()?;
        let version = package.version.replace(':', "%3a");
        let place = kernels(cache, flavour).join(format!("{}_{version}", package.name));
        match Self::described(&place) {
            Some(kernel) => Ok(kernel),
            None => Self::unpack(deb, &package, &place),
        }
    }

    /// Unpacks beside the place and moves it there when it is whole.
    fn unpack(deb: &Path, package: &Package, place: &Path) -> Result<Self, VmError> {
        let new = place.with_extension("new");
        let _swept = Swept(&new);
        fs::create_dir_all(&new).map_err(VmError::path("make the directory", &new))?;
        tools::run(
            "dpkg",
            &["-x", &deb.to_string_lossy(), &new.to_string_lossy()],
            None,
        )?;
        let none = |what: &str| VmError::NoKernel(format!("{} has no {what}", deb.display()));
        let boot = names(&new.join("boot"));
        let mut kernels = boot.iter().filter_map(|name| name.strip_prefix("vmlinuz-"));
        let release = kernels.next().ok_or_else(|| none("kernel"))?.to_owned();
        let kept = |path: String| place.join(path);
        let modules = ["lib/modules", "usr/lib/modules"].map(|d| format!("{d}/{release}"));
        let modules = modules.into_iter().find(|d| new.join(d).is_dir());
        let vmlinuz = format!("boot/vmlinuz-{release}");
        let kernel = Self {
            package: Some(package.clone()),
            sha256: digest_of(&new.join(&vmlinuz))?,
            vmlinuz: kept(vmlinuz),
            modules: kept(modules.ok_or_else(|| none("modules"))?),
            release,
        };
        let text = serde_json::to_string_pretty(&kernel).unwrap_or_default();
        let description = new.join(DESCRIPTION);
        fs::write(&description, text).map_err(VmError::path("write", &description))?;
        // What is there is not whole, or it would have been used.
        let _ = remove_tree(place);
        fs::rename(&new, place).map_err(VmError::path("move to", place))?;
        Ok(kernel)
    }
}

/// A directory for the time being.
struct Swept<'p>(&'p Path);

impl Drop for Swept<'_> {
    fn drop(&mut self) {
        let _ = remove_tree(self.0);
    }
}

fn kernels(cache: &Cache, flavour: Flavour) -> PathBuf {
    cache.path().join("kernels").join(match flavour {
        Flavour::Cloud => "cloud",
        Flavour::Generic => "generic",
    })
}

fn only_package(directory: &Path) -> Result<PathBuf, VmError> {
    let all = names(directory);
    let deb = all.iter().find(|name| name.ends_with(".deb"));
    let deb = deb.ok_or_else(|| VmError::NoKernel("apt-get brought no package".to_owned()))?;
    Ok(directory.join(deb))
}

/// The package that the distribution's name stands for now, and its version.
fn current(flavour: Flavour) -> Result<(String, String), VmError> {
    let meta = flavour.package();
    let shown = tools::run("apt-cache", &["show", "--no-all-versions", meta], None)
        .map_err(|error| VmError::NoKernel(error.to_string()))?;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    depended(&shown).ok_or_else(|| VmError::NoKernel(format!("apt knows no package {meta}")))
}

/// `linux-image-6.1.0-56-cloud-amd64` and its version from what apt shows of the package that depends on it.
fn depended(shown: &str) -> Option<(String, String)> {
    let depends = shown
        .lines()
        .find_map(|line| line.strip_prefix("Depends: "))?;
    let image = depends
        .split(',')
        .map(str::trim)
        .find(|d| d.starts_with("linux-image-"))?;
    let name = image.split_whitespace().next()?.to_owned();
    let version = image
        .split_once("(= ")
        .and_then(|(_, v)| v.strip_suffix(')'));
    let own = || {
        shown
            .lines()
            .find_map(|line| line.strip_prefix("Version: "))
    };
    Some((name, version.or_else(own)?.to_owned()))
}

/// Numbers of a release in order: 6.1.0-9 is older than 6.1.0-56.
pub(crate) fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_package_is_looked_up() {
        let shown = "Package: linux-image-cloud-amd64\nSource: linux-signed-amd64 (6.1.192+2)\n\
                     Version: 6.1.192-2\nDepends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\n";
        let (name, version) = depended(shown).expect("a package");
        assert_eq!(name, "linux-image-6.1.0-56-cloud-amd64");
        assert_eq!(version, "6.1.192-2");
        assert_eq!(depended("Package: nothing\n"), None);
    }

    #[test]
    fn the_newest_is_the_one_of_the_largest_numbers() {
        assert!(numbers("6.1.0-56-cloud-amd64") > numbers("6.1.0-9-cloud-amd64"));
        assert!(numbers("6.12.1") > numbers("6.1.192"));
    }

    #[test]
    fn a_description_without_its_kernel_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned());
        let place = kernels(&cache, Flavour::Cloud).join("a_1");
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(place.join("modules")).unwrap();
        let kernel = Kernel {
            release: "6.1.0-1-cloud-amd64".to_owned(),
            package: None,
            sha256: String::new(),
            vmlinuz: place.join("vmlinuz"),
            modules: place.join("modules"),
        };
        fs::write(
            place.join(DESCRIPTION),
            serde_json::to_string(&kernel).unwrap(),
        )
        .unwrap();
        assert_eq!(Kernel::cached(&cache, Flavour::Cloud), None);
        fs::write(place.join("vmlinuz"), "").unwrap();
        assert_eq!(Kernel::cached(&cache, Flavour::Cloud), Some(kernel));
        assert_eq!(Kernel::cached(&cache, Flavour::Generic), None);
    }
}

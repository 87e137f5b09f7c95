//! What every guest needs: the cache, a kernel, an image, and the runs' directories.
use crate::args::KernelChoice;
use crate::exit::{Failure, MISSING, TRIAL_FAILED};
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_vm::rundir::Runs;
use raidlab_vm::vm::Trouble;
use raidlab_vm::{Cache, Flavour, Image, Kernel, Recipe, VmError, Zfs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guest that has not said hello by then is stuck; a busy machine needs half a minute.
pub(super) const BOOT: Duration = Duration::from_secs(240);
/// Switching off takes a second.
pub(super) const OFF: Duration = Duration::from_secs(60);

impl From<KernelChoice> for Flavour {
    fn from(choice: KernelChoice) -> Self {
        match choice {
            KernelChoice::Cloud => Self::Cloud,
            KernelChoice::Generic => Self::Generic,
        }
    }
}

/// The cache: what `--cache` says, or the XDG cache directory.
pub(super) fn cache(given: Option<&Path>) -> Result<Cache, Failure> {
    if let Some(path) = given {
        return Ok(Cache::new(path.to_owned()));
    }
    let directories = directories::ProjectDirs::from("", "", "raidlab").ok_or_else(|| {
        Failure::new(MISSING, "no home directory to keep kernels in")
            .remedy("name a directory with --cache, or set HOME or XDG_CACHE_HOME")
    })?;
    Ok(Cache::new(directories.cache_dir().to_owned()))
}

/// The image with this raidlab in it, and with the programs and the ZFS that are asked for besides.
pub(super) fn image(
    cache: &Cache,
    kernel: &Kernel,
    also: &[&str],
    zfs: Option<&Zfs>,
) -> Result<Image, Failure> {
    let init = std::env::current_exe().map_err(|error| {
        Failure::new(MISSING, format!("cannot find raidlab's own file: {error}"))
    })?;
    let recipe = Recipe {
        kernel,
        init: running(init),
        also: also.iter().map(|name| (*name).to_owned()).collect(),
        zfs,
    };
    recipe.build(cache).map_err(|error| failure(&error))
}

/// A program that has been replaced while it runs is still there as this.
fn running(named: PathBuf) -> PathBuf {
    if named.exists() {
        named
    } else {
        PathBuf::from("/proc/self/exe")
    }
}

/// The directories of runs; what dead ones left is removed, and told.
pub(super) fn runs() -> Result<Runs, Failure> {
    let runs = Runs::of_user();
    for said in runs.clean().map_err(|error| failure(&error))? {
        talk::note(&said);
    }
    Ok(runs)
}

/// Whether an image has a program that nothing can be done without.
pub(super) fn needs(image: &Image, program: &str) -> Result<(), Failure> {
    let mut missing = image.content.missing.iter();
    match missing.find(|(name, _)| name == program) {
        None => Ok(()),
        Some((name, package)) => Err(Failure::new(MISSING, format!("{name} is not installed"))
            .remedy(format!("apt-get install {package}"))),
    }
}

/// An error of the host's side: something is missing.
pub(super) fn failure(error: &VmError) -> Failure {
    let failure = Failure::from_error(MISSING, error);
    match error.remedy() {
        Some(remedy) => failure.remedy(remedy),
        None => failure,
    }
}

/// A guest that came to nothing.
pub(super) fn trouble(trouble: &Trouble) -> Failure {
    Failure::from_error(TRIAL_FAILED, trouble)
}

/// Memory of a guest that is to have so much for itself: the image stays in memory, too.
pub(super) fn memory(wanted: Bytes, image: &Image) -> Bytes {
    let image = image.bytes.next_multiple_of(1 << 20);
    // Below, the kernel has no room to unpack it.
    Bytes(wanted.0.max(256 << 20).next_multiple_of(1 << 20) + image)
}

/// The kernel of the cache or of this machine, or else fetched.
pub(super) fn kernel(cache: &Cache, flavour: Flavour) -> Result<Kernel, Failure> {
    Kernel::find(cache, flavour, &mut talk::note).map_err(|error| failure(&error))
}

/// QEMU's version, as it tells it.
pub(super) fn qemu() -> Result<String, Failure> {
    raidlab_vm::qemu::version().map_err(|error| failure(&error))
}

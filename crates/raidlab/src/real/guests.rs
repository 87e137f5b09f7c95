//! What every guest needs: the cache, a kernel, an image, and the runs' directories.
use super::job::Job;
use crate::args::KernelChoice;
use crate::exit::{Failure, MISSING, TRIAL_FAILED};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_vm::channel::{Hello, Message};
use raidlab_vm::image::Missing;
use raidlab_vm::rundir::Runs;
use raidlab_vm::vm::Trouble;
use raidlab_vm::{Cache, Flavour, Image, Kernel, Recipe, Vm, VmError, Zfs};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A guest that has not said hello by then is stuck; a busy machine needs half a minute.
const BOOT: Duration = Duration::from_secs(240);
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
        // What is built there names its place, and compilers work in other directories.
        let path = std::path::absolute(path).map_err(|error| {
            Failure::new(MISSING, format!("cannot find {}: {error}", path.display()))
        })?;
        return Ok(Cache::new(path));
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
    image_with(cache, kernel, also, &[], zfs)
}

/// The same, with further modules of the kernel.
pub(super) fn image_with(
    cache: &Cache,
    kernel: &Kernel,
    also: &[&str],
    modules: &[String],
    zfs: Option<&Zfs>,
) -> Result<Image, Failure> {
    let init = std::env::current_exe().map_err(|error| {
        Failure::new(MISSING, format!("cannot find raidlab's own file: {error}"))
    })?;
    let recipe = Recipe {
        kernel,
        init: running(init),
        also: also.iter().map(|name| (*name).to_owned()).collect(),
        load: modules.to_vec(),
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
    match missing.find(|missing| missing.name == program) {
        None => Ok(()),
        Some(missing) => Err(lacks(missing)),
    }
}

/// How long a guest is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// One that gives no sign of life for so long is given up.
    pub(super) silence: Duration,
    /// So long may a record take, or the last word; `None`: as long as it gives signs of life.
    pub(super) limit: Option<Duration>,
}

/// Waits for a guest's first word; `None` when interrupted.
pub(super) fn hello(vm: &mut Vm, stop: &Stop) -> Result<Option<Hello>, Failure> {
    let hello = vm.hello(BOOT, &|| stop.asked());
    for crash in vm.crashes() {
        talk::warn(&format!(
            "QEMU crashed before its guest had come up ({crash}); it was started anew"
        ));
    }
    hello.map_err(|error| trouble(&error))
}

/// Waits for a guest's first word, gives it its job, and hears it to its end: its last word, or `None` when interrupted.
/// `heard` is told each of its messages before that is acknowledged.
pub(super) fn have_done(
    mut vm: Vm,
    job: &Job,
    patience: Patience,
    stop: &Stop,
    heard: &mut dyn FnMut(&Message) -> Result<(), Failure>,
) -> Result<Option<String>, Failure> {
    if hello(&mut vm, stop)?.is_none() {
        return Ok(None);
    }
    hear(vm, job, patience, stop, heard)
}

/// As [`have_done`], of a guest that has said its first word.
pub(super) fn hear(
    mut vm: Vm,
    job: &Job,
    patience: Patience,
    stop: &Stop,
    heard: &mut dyn FnMut(&Message) -> Result<(), Failure>,
) -> Result<Option<String>, Failure> {
    let told = |error: Trouble| trouble(&error);
    let job =
        serde_json::to_string(job).map_err(|error| Failure::new(MISSING, error.to_string()))?;
    vm.send(&Message::Job(job)).map_err(told)?;
    let mut since = Instant::now();
    loop {
        if stop.asked() {
            return Ok(None);
        }
        let message = vm.receive(Duration::from_millis(50)).map_err(told)?;
        if let Some(message) = &message {
            heard(message)?;
        }
        match message {
            Some(Message::Record(number, _)) => {
                vm.send(&Message::Ack(number)).map_err(told)?;
                since = Instant::now();
            }
            Some(Message::Done(number, text)) => {
                vm.send(&Message::Ack(number)).map_err(told)?;
                vm.finish(OFF).map_err(told)?;
                return Ok(Some(text));
            }
            Some(Message::Failed(number, why)) => {
                let _ = vm.send(&Message::Ack(number));
                return Err(Failure::new(TRIAL_FAILED, format!("in the guest: {why}")));
            }
            _ => {}
        }
        if vm.silent() > patience.silence {
            return Err(told(vm.too_silent()));
        }
        if let Some(limit) = patience.limit.filter(|limit| since.elapsed() > *limit) {
            return Err(told(vm.too_late(limit)));
        }
    }
}

/// What a guest sent.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(nonsense)
}

/// It sent something that it would not.
pub(super) fn nonsense(error: impl std::fmt::Display) -> Failure {
    Failure::new(TRIAL_FAILED, format!("the guest sent nonsense: {error}"))
}

/// Why a guest does not have a program, and what would give it that.
fn lacks(missing: &Missing) -> Failure {
    let name = &missing.name;
    if missing.script {
        return Failure::new(
            MISSING,
            format!("{name} is no program that a guest could start: it has no interpreters of scripts"),
        )
        .remedy("'raidlab vm exec sh -- -c COMMANDS' runs commands; --with names the programs that they call");
    }
    if let Some(package) = missing.package {
        return Failure::new(MISSING, format!("{name} is not installed"))
            .remedy(format!("apt-get install {package}"));
    }
    Failure::new(
        MISSING,
        format!("the guest has no program '{name}': it has this machine's, and there is none of that name here"),
    )
    .remedy(format!(
        "name its file ('./{name}', or --with ./{name} beside another): it is put into the guest's /usr/bin with the \
         libraries that it loads"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_where_it_was_wherever_a_later_run_begins() {
        let cache = cache(Some(Path::new("kept"))).expect("a place");
        assert!(cache.path().is_absolute() && cache.path().ends_with("kept"));
    }
}

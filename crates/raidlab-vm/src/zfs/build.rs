//! Building: packages fetched, the kernel's headers and ZFS's source unpacked beside each other, configured, compiled, and
//! moved to their place when all is whole. A build that was killed goes on where it was.
mod keep;
mod packages;
pub(super) mod strays;

use super::apt::Apt;
use super::progress::{self, Part, Progress};
use super::{Zfs, builds, place};
use crate::cache::{Cache, names};
use crate::error::VmError;
use crate::kernel::Kernel;
use crate::removal::remove_tree;
use crate::tools::{self, Job};
use packages::{Headers, Plan};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use strays::end_strays;

/// What a build runs, with the packages that have it.
const TOOLS: [(&str, &str); 7] = [
    ("apt-get", "apt"),
    ("dpkg", "dpkg"),
    ("gcc", "gcc libc6-dev make"),
    ("make", "gcc libc6-dev make"),
    ("strip", "binutils"),
    ("awk", "mawk"),
    ("perl", "perl"),
];
/// The package with the module's source, and the one with the programs.
const SOURCE: &str = "zfs-dkms";
const USERLAND: &str = "zfsutils-linux";
/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl Zfs {
    /// Builds the version that apt would install, for a kernel, unless that is in the cache. `told` hears how far it
    /// is. Whatever goes wrong, nothing is left that counts as built; what a killed build left is gone on with.
    ///
    /// # Errors
    /// [`VmError::Missing`] without a compiler, [`VmError::NoZfs`] without packages, [`VmError::Command`] with what
    /// the compiler said, [`VmError::Interrupted`] when `stop` is set: nothing of the build is left then.
    pub fn build(
        cache: &Cache,
        kernel: &Kernel,
        told: &mut dyn FnMut(&Progress),
        stop: &AtomicBool,
    ) -> Result<Self, VmError> {
        needs(&TOOLS)?;
        let directory = builds(cache);
        plain(&directory)?;
        fs::create_dir_all(&directory).map_err(VmError::path("make the directory", &directory))?;
        let _lock = lock(&directory, stop)?;
        // Whoever ends what is left of this build later finds it by this name.
        let directory = directory
            .canonicalize()
            .map_err(VmError::path("find", &directory))?;
        let mut work = Work {
            directory: directory.join("work"),
            kernel,
            told,
            stop,
        };
        let made = work.run(cache);
        // Whole, failed or interrupted: only what is killed leaves something to go on with.
        remove(&work.directory);
        made
    }

    /// Removes what a build that was killed has left; what was done, in words.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn clean(cache: &Cache) -> Result<Option<String>, VmError> {
        let directory = builds(cache);
        let work = directory.join("work");
        if !work.exists() {
            return Ok(None);
        }
        let path = directory.join("lock");
        let file = File::open(&path).map_err(VmError::path("open", &path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            // It is under way.
            return Ok(None);
        }
        end_strays(&work);
        remove_tree(&work).map_err(VmError::path("remove", &work))?;
        Ok(Some(format!(
            "removed a build of ZFS that was killed, {}",
            work.display()
        )))
    }
}

/// Fails with the package of the first program that is not there.
fn needs(tools: &[(&str, &str)]) -> Result<(), VmError> {
    match tools
        .iter()
        .find(|(program, _)| tools::find(program).is_none())
    {
        None => Ok(()),
        Some((program, package)) => Err(VmError::Missing {
            program: (*program).to_owned(),
            package: (*package).to_owned(),
        }),
    }
}

/// Makefiles know no way to write such names.
fn plain(directory: &Path) -> Result<(), VmError> {
    let text = directory.to_string_lossy();
    match text.chars().find(|c| " \t:#$%\\'\"&;=".contains(*c)) {
        None => Ok(()),
        Some(c) => Err(VmError::NoZfs(format!(
            "the cache's path, {text}, has a '{c}' in it, which makefiles cannot name; give another one with --cache"
        ))),
    }
}

/// Waits until no other raidlab builds.
fn lock(directory: &Path, stop: &AtomicBool) -> Result<File, VmError> {
    let path = directory.join("lock");
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(VmError::path("open", &path))?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if stop.load(Ordering::Relaxed) => {
                return Err(VmError::Interrupted);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOOK),
            Err(error) => return Err(VmError::path("lock", &path)(error.into())),
        }
    }
}

/// A build under way.
struct Work<'w> {
    directory: PathBuf,
    kernel: &'w Kernel,
    told: &'w mut dyn FnMut(&Progress),
    stop: &'w AtomicBool,
}

impl Work<'_> {
    fn at(&mut self, part: Part, share: f64) {
        (self.told)(&part.at(share));
    }

    fn go_on(&self) -> Result<(), VmError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(VmError::Interrupted);
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn make(&self, name: &str) -> Result<PathBuf, VmError> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(VmError::path("make the directory", &path))?;
        Ok(path)
    }

    /// Whether a part has been done, by this build or the killed one before it.
    fn is_done(&self, mark: &str) -> bool {
        self.path(mark).exists()
    }

    fn done(&self, mark: &str) -> Result<(), VmError> {
        let path = self.path(mark);
        File::create(&path)
            .map(drop)
            .map_err(VmError::path("write", &path))
    }

    fn run(&mut self, cache: &Cache) -> Result<Zfs, VmError> {
        let begun = Instant::now();
        end_strays(&self.directory);
        self.at(Part::Look, 0.0);
        remove(&self.path("apt"));
        let apt = Apt::new(&self.make("apt")?, &self.directory, self.stop)?;
        let plan = self.plan(&apt)?;
        let place = place(cache, &self.kernel.release, &plan.version);
        if let Some(zfs) = Zfs::described(&place) {
            return Ok(zfs);
        }
        // What was killed may have been on the way to something else.
        let asked = format!("{} {}", self.kernel.release, plan.version);
        let mark = self.path("asked");
        if fs::read_to_string(&mark).unwrap_or_default() != asked {
            // All but the lists, which have just been fetched.
            for name in names(&self.directory).iter().filter(|name| *name != "apt") {
                let path = self.path(name);
                if path.is_dir() && !path.is_symlink() {
                    remove_tree(&path).map_err(VmError::path("remove", &path))?;
                } else {
                    fs::remove_file(&path).map_err(VmError::path("remove", &path))?;
                }
            }
            fs::write(&mark, &asked).map_err(VmError::path("write", &mark))?;
        }
        self.fetch(apt, &plan)?;
        self.unpack()?;
        let source = self.source()?;
        let headers = self.headers()?;
        self.configure(&source, &headers)?;
        self.compile(&source)?;
        self.keep(&source, &place, plan, begun)
    }

    fn fetch(&mut self, apt: Apt, plan: &Plan) -> Result<(), VmError> {
        self.at(Part::Fetch, 0.0);
        if !self.is_done("fetched") {
            remove(&self.path("packages"));
            let into = self.make("packages")?;
            apt.download(&plan.packages, &into, self.stop)?;
            self.done("fetched")?;
        }
        // Its lists are larger than all else.
        drop(apt);
        remove(&self.path("apt"));
        Ok(())
    }

    fn unpack(&mut self) -> Result<(), VmError> {
        if self.is_done("unpacked") {
            return Ok(());
        }
        for name in ["kernel", "source", "root"] {
            remove(&self.path(name));
            self.make(name)?;
        }
        let packages = names(&self.path("packages"));
        for (number, name) in packages.iter().enumerate() {
            self.at(Part::Unpack, number as f64 / packages.len() as f64);
            self.go_on()?;
            let into = match name {
                name if name.starts_with("linux-") => "kernel",
                name if name.starts_with(SOURCE) => "source",
                _ => "root",
            };
            let (deb, into) = (self.path("packages").join(name), self.path(into));
            tools::run(
                "dpkg",
                &["-x", &deb.to_string_lossy(), &into.to_string_lossy()],
                None,
            )?;
        }
        self.relocate()?;
        self.done("unpacked")
    }

    /// The headers' makefile names the place where the other package would be installed.
    fn relocate(&self) -> Result<(), VmError> {
        let sources = self.path("kernel/usr/src");
        for name in names(&sources) {
            let path = sources.join(name).join("Makefile");
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let there = format!("include {}/linux-headers", sources.display());
            let new = text.replace("include /usr/src/linux-headers", &there);
            if new != text {
                fs::write(&path, new).map_err(VmError::path("write", &path))?;
            }
        }
        Ok(())
    }

    fn source(&self) -> Result<PathBuf, VmError> {
        let sources = self.path("source/usr/src");
        let name = names(&sources)
            .into_iter()
            .find(|name| name.starts_with("zfs-"));
        let name =
            name.ok_or_else(|| VmError::NoZfs(format!("{SOURCE} has no source of ZFS in it")))?;
        Ok(sources.join(name))
    }

    fn configure(&mut self, source: &Path, headers: &Headers) -> Result<(), VmError> {
        if self.is_done("configured") {
            return Ok(());
        }
        let trials = source.join("build");
        let mut command = Command::new(source.join("configure"));
        command
            .current_dir(source)
            .args(["--disable-dependency-tracking", "--with-config=kernel"])
            .arg(format!("--with-linux={}", headers.common.display()))
            .arg(format!("--with-linux-obj={}", headers.own.display()));
        let share = |_: &str| {
            let all = names(&trials).into_iter().map(|name| trials.join(name));
            let all: Vec<_> = all
                .filter(|path| path.is_dir())
                .map(|path| names(&path))
                .collect();
            progress::tried(&all)
        };
        self.logged("configure", command, Part::Configure, &share)?;
        self.done("configured")
    }

    fn compile(&mut self, source: &Path) -> Result<(), VmError> {
        let mut makefiles = Vec::new();
        find(&source.join("module"), "in", &mut makefiles);
        makefiles.retain(|path| !path.to_string_lossy().contains("freebsd"));
        let texts = makefiles
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        let all: usize = texts.map(|text| progress::objects(&text)).sum();
        let all = all.max(1) as f64;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new("make");
        command.current_dir(source).arg(format!("-j{processors}"));
        let share = |said: &str| progress::compiled(said) as f64 / all;
        self.logged("make", command, Part::Make, &share)
    }

    /// Runs a command with what it says in a file, which tells how far it is.
    fn logged(
        &mut self,
        name: &str,
        mut command: Command,
        part: Part,
        share: &dyn Fn(&str) -> f64,
    ) -> Result<(), VmError> {
        self.at(part, 0.0);
        let path = self.path(&format!("{name}.log"));
        let log = File::create(&path).map_err(VmError::path("write", &path))?;
        // Debugging information is most of the work and of the size, and nobody reads it in a guest.
        command
            .env("KCFLAGS", "-g0")
            .env(strays::MARK, &self.directory);
        let job = Job::start(command, &log, &log)?;
        let read = || fs::read(&path).map(|said| String::from_utf8_lossy(&said).into_owned());
        let mut looked = Instant::now();
        let told = &mut *self.told;
        let status = job.wait(Some(self.stop), &mut || {
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                told(&part.at(share(&read().unwrap_or_default())));
            }
        })?;
        if status.success() {
            return Ok(());
        }
        Err(VmError::Command {
            command: format!("{name} of ZFS"),
            said: progress::why(&read().unwrap_or_default()),
        })
    }
}

/// Files below a directory with this ending.
fn find(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for name in names(directory) {
        let path = directory.join(name);
        if path.is_dir() && !path.is_symlink() {
            find(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

fn remove(path: &Path) {
    let _ = remove_tree(path);
}

#[cfg(test)]
mod tests;

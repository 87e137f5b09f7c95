//! The directory that raidlab works in, inside the one the user named.
//!
//! It is called `.raidlab-` and six hexadecimal digits and holds a file `owner` that tells which process made it. It
//! is removed when dropped. After a `kill -9` it stays; the next run in the same place recognises that
//! its owner is gone (the owner's lock is free, and no process has that id and start time) and
//! removes it. With anything in it that raidlab did not make, or that is mounted there, it stays, and is told.
mod made;
mod mounts;
mod opened;
mod removal;

use super::error::RunError;
use opened::Opened;
use removal::{others_in, remove_all};
use rustix::fs::{FlockOperation, IFlags, Mode, OFlags, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = ".raidlab-";
const OWNER: &str = "owner";
/// How old a directory without an owner is before its maker is taken for gone, where the directory around it
/// cannot be locked.
const UNBORN: Duration = Duration::from_secs(60);
/// How long another raidlab's turn in the same place is waited for; it takes it for a few system calls.
const TURN: Duration = Duration::from_millis(500);
const FIRST_LINE: &str = "raidlab working directory; safe to remove when no raidlab runs";

/// A working directory that is removed with everything that raidlab made in it when dropped.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    /// What was made there, whatever has its name now; `None` while it is let go of.
    opened: Option<Opened>,
    /// Holds the lock that says the owner lives.
    owner: Option<File>,
}

/// What came of removing working directories whose owner is gone.
#[derive(Debug, Default)]
pub struct Stale {
    /// Those that were removed.
    pub removed: Vec<PathBuf>,
    /// Why others stay, each with its path and the remedy.
    pub left: Vec<RunError>,
}

impl WorkDir {
    /// Makes one inside `parent`, for this user alone.
    ///
    /// # Errors
    /// When `parent` cannot be written to.
    pub fn create(parent: &Path) -> Result<Self, RunError> {
        removable_from(parent)?;
        let turn = turn(parent);
        let (path, opened) = make_directory(parent)
            .map_err(RunError::path("make a working directory in", parent))?;
        let written = write_owner(&opened.way().join(OWNER));
        // To sync can take longer than others wait for their turn.
        drop(turn);
        match written.and_then(synced) {
            Ok(file) => Ok(Self {
                path,
                opened: Some(opened),
                owner: Some(file),
            }),
            Err(error) => {
                let _ = remove_all(&path, &opened, None);
                Err(RunError::path("write", &path.join(OWNER))(error))
            }
        }
    }

    /// Whether a name is one that raidlab gives to its working directories.
    #[must_use]
    pub fn is_named_so(name: &OsStr) -> bool {
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        name.is_some_and(|digits| {
            digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
    }

    /// Where it is, by name: for other programs, and for users.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The way into it for this process, which leads there whatever has its name by now: whoever owns the directory around
    /// it could have put a link to another in its place.
    #[must_use]
    pub fn way(&self) -> &Path {
        self.opened.as_ref().map_or(&self.path, Opened::way)
    }

    /// Lets go of it, with all that is in it, so that its file system can be unmounted; what is dropped then stays.
    pub(super) fn leave(&mut self) {
        self.owner = None;
        self.opened = None;
    }

    /// Finds it again where it was.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn come_back(&mut self) -> Result<(), RunError> {
        let again = || -> std::io::Result<_> {
            let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
                return Err(ErrorKind::NotFound.into());
            };
            let opened = Opened::open(parent, name)?;
            let owner = File::open(opened.way().join(OWNER))?;
            let _ = flock(&owner, FlockOperation::NonBlockingLockExclusive);
            Ok((opened, owner))
        };
        let (opened, owner) = again().map_err(RunError::path("find again", &self.path))?;
        (self.opened, self.owner) = (Some(opened), Some(owner));
        Ok(())
    }

    /// Removes it now and tells when that fails.
    ///
    /// # Errors
    /// When something in it cannot be removed, or must not be: [`RunError::Stays`].
    pub fn remove(mut self) -> Result<(), RunError> {
        self.remove_opened()
    }

    fn remove_opened(&mut self) -> Result<(), RunError> {
        let owner = self.owner.take();
        match &self.opened {
            Some(opened) => remove_all(&self.path, opened, owner),
            None => Ok(()),
        }
    }

    /// Removes the working directories in `parent` whose owner is gone, but for those in which there is something that
    /// raidlab did not make.
    #[must_use]
    pub fn remove_stale(parent: &Path) -> Stale {
        let turn = turn(parent);
        let mut stale = Stale::default();
        for (path, opened) in stale_in(parent, turn.is_some()) {
            match remove_all(&path, &opened, None) {
                Ok(()) => stale.removed.push(path),
                Err(error) => stale.left.push(error),
            }
        }
        stale
    }

    /// What is in a working directory that raidlab did not make, by its paths from there. Nothing is removed.
    ///
    /// # Errors
    /// When it cannot be looked into.
    pub fn others_in(path: &Path) -> std::io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        others_in(&rustix::fs::open(path, flags, Mode::empty())?)
    }
}

/// Refuses a directory from which nothing can be removed again: what is made there would stay.
fn removable_from(parent: &Path) -> Result<(), RunError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(parent, flags, Mode::empty()) else {
        return Ok(());
    };
    // Not all file systems have such flags.
    let set = rustix::fs::ioctl_getflags(&directory);
    match set.is_ok_and(|set| set.contains(IFlags::APPEND)) {
        true => Err(RunError::Path {
            action: "make a working directory in",
            path: parent.to_owned(),
            source: ErrorKind::PermissionDenied.into(),
            remedy: "; it is append-only, and nothing in it could be removed: chattr -a, or name another directory".to_owned(),
        }),
        false => Ok(()),
    }
}

fn stale_in(parent: &Path, alone: bool) -> Vec<(PathBuf, Opened)> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let named_so = entries
        .map(|entry| entry.file_name())
        .filter(|name| WorkDir::is_named_so(name));
    named_so
        .filter_map(|name| Some((parent.join(&name), Opened::open(parent, &name).ok()?)))
        .filter(|(_, opened)| is_stale(opened, alone))
        .collect()
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Gone already after `remove`; what cannot be removed is found by the next run.
        let _ = self.remove_opened();
    }
}

/// The lock on the directory around working directories, held while one is made and gets its owner, and while
/// those of others are looked at: what has no owner then has lost it. `None` where there are no such locks.
fn turn(parent: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = File::from(rustix::fs::open(parent, flags, Mode::empty()).ok()?);
    let begun = std::time::Instant::now();
    loop {
        match flock(&parent, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(parent),
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < TURN => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(_) => return None,
        }
    }
}

fn make_directory(parent: &Path) -> std::io::Result<(PathBuf, Opened)> {
    loop {
        // The standard library's random keys: good enough not to meet another raidlab's name.
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!("{PREFIX}{:06x}", random >> 40));
        let path = parent.join(&name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                let opened = Opened::open(parent, &name)?;
                // Not one that was put in its place since: nobody else can make one that is this user's.
                return match opened.is_own() && std::fs::read_dir(opened.way())?.next().is_none() {
                    true => Ok((path, opened)),
                    false => Err(ErrorKind::PermissionDenied.into()),
                };
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_owner(path: &Path) -> std::io::Result<File> {
    let mut file = File::create_new(path)?;
    let pid = std::process::id();
    let start = start_time(pid).unwrap_or_default();
    write!(
        file,
        "{FIRST_LINE}\npid {pid}\nstart {start}\nboot {}\nmachine {}\n",
        boot_id(),
        machine()
    )?;
    // Not all file systems have locks; the process id is the second witness.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Before anything else is on the disk: a power failure, or the disk's, must not leave data that are nobody's.
fn synced(owner: File) -> std::io::Result<File> {
    match owner.sync_all() {
        // Where nothing can be synced, nothing can be promised either.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) => {}
        synced => synced?,
    }
    Ok(owner)
}

/// Whether a directory was made by a raidlab that is gone. When in doubt it is not. `alone`: no other raidlab
/// is making one here.
fn is_stale(opened: &Opened, alone: bool) -> bool {
    if !opened.is_own() {
        return false;
    }
    if is_unborn(opened.way(), alone) {
        return true;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(owner) = rustix::fs::open(opened.way().join(OWNER), flags, Mode::empty()) else {
        return false;
    };
    let owner = File::from(owner);
    // A file of another user's, in a directory that others may write to, tells nothing.
    let own = |found: std::fs::Metadata| {
        found.is_file() && found.uid() == rustix::process::geteuid().as_raw()
    };
    if !owner.metadata().is_ok_and(own) {
        return false;
    }
    let mut text = String::new();
    if (&owner).take(4096).read_to_string(&mut text).is_err() {
        return false;
    }
    let Some((pid, start, boot)) = parse_owner(&text) else {
        return false;
    };
    // Of another machine that shares the file system no process can be seen from here, and its locks not everywhere.
    let elsewhere = text
        .lines()
        .nth(4)
        .and_then(|line| line.strip_prefix("machine "));
    if elsewhere.is_some_and(|elsewhere| elsewhere != machine()) {
        return false;
    }
    // A raidlab in a container has another idea of process ids, but the same lock. A file system
    // without locks has the other witness only.
    let locked = flock(&owner, FlockOperation::NonBlockingLockExclusive)
        == Err(rustix::io::Errno::WOULDBLOCK);
    let lives = boot == boot_id() && start_time(pid) == Some(start);
    !locked && !lives
}

/// Whether a directory was left by a raidlab that was killed before it could say whose it is: nothing
/// is in it but an owner without a word, and nobody is about to: nobody makes one, or it is too old.
fn is_unborn(directory: &Path, alone: bool) -> bool {
    let old = |path: &Path| {
        if alone {
            return true;
        }
        // The way to the directory itself is a link of the kernel's.
        let found = match path == directory {
            true => std::fs::metadata(path),
            false => std::fs::symlink_metadata(path),
        };
        let changed = found.and_then(|found| found.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= UNBORN))
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    old(directory)
        && entries.into_iter().all(|entry| {
            entry.is_ok_and(|entry| {
                let empty = entry.metadata().is_ok_and(|e| e.is_file() && e.len() == 0);
                entry.file_name() == OWNER && empty && old(&entry.path())
            })
        })
}

fn parse_owner(text: &str) -> Option<(u32, u64, &str)> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let pid = lines.next()?.strip_prefix("pid ")?.parse().ok()?;
    let start = lines.next()?.strip_prefix("start ")?.parse().ok()?;
    let boot = lines.next()?.strip_prefix("boot ")?;
    Some((pid, start, boot))
}

/// When a process started, in ticks since boot (field 22 of `/proc/PID/stat`); `None` when it is gone.
fn start_time(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    crate::observe::cpu::parse_task_stat(&text).map(|stat| stat.start)
}

/// What tells this machine from others that share a file system with it: its id (machine-id(5)) and name.
fn machine() -> String {
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} {}", id.trim(), name.trim())
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;

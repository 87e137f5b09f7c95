//! How a working directory goes, also where a file that is open cannot.
//!
//! Only what raidlab made goes, by names that lead nowhere else: by the directory that is open and never through a link or onto
//! another mount. With anything else in it the whole of it stays, and is told.
use super::made::{Made, Within, made};
use super::mounts::{id_of, mounted_in};
use super::opened::Opened;
use super::{OWNER, turn};
use crate::run::RunError;
use crate::words::some_of;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::time::Duration;

/// How long files that were removed while they were open are waited for.
const CLOSED: Duration = Duration::from_secs(5);

/// Removes a working directory, what tells its owner last: one that is killed meanwhile leaves a directory
/// that is still known for what it is. `owner` is closed before its file goes: where a file that is open cannot be removed (NFS,
/// FUSE) it would get another name and keep the directory from going. Whoever still has it takes a turn for that: a directory
/// without an owner, if only until it is gone itself, is one that was left to whoever looks at it.
pub(super) fn remove_all(
    path: &Path,
    opened: &Opened,
    owner: Option<File>,
) -> std::result::Result<(), RunError> {
    let stays = |why| RunError::Stays {
        path: path.to_owned(),
        why,
    };
    // Before anything is removed: what is refused is refused as a whole.
    if let Some(why) = why_it_stays(opened).map_err(RunError::path("look into", path))? {
        return Err(stays(why));
    }
    let others = emptied(opened).map_err(RunError::path("remove", path))?;
    // Put there since.
    if !others.is_empty() {
        return Err(stays(holds(&others)));
    }
    let _turn = owner.as_ref().and_then(|_| turn(path.parent()?));
    drop(owner);
    let removed = match unlink(opened.directory(), OWNER) {
        Ok(()) => remove_empty(opened),
        Err(error) => Err(error),
    };
    removed.map_err(RunError::path("remove", path))
}

/// Why a working directory must not be removed, with the remedy: what is mounted there or is not raidlab's.
fn why_it_stays(opened: &Opened) -> Result<Option<String>> {
    if let Some(mounted) = mounted_in(opened.directory())? {
        return Ok(Some(mounted));
    }
    // Of a mount that the table does not have, or has by another name.
    if id_of(opened.directory())? != id_of(opened.parent())? {
        let why = "another file system is mounted at it; unmount it, and 'raidlab clean' goes on";
        return Ok(Some(why.to_owned()));
    }
    let others = others_in(opened.directory())?;
    Ok((!others.is_empty()).then(|| holds(&others)))
}

fn holds(others: &[String]) -> String {
    format!(
        "it holds {}, which raidlab did not make; move that elsewhere, or remove it, and 'raidlab clean' goes on",
        some_of(others).unwrap_or_default()
    )
}

/// What is in a working directory that raidlab did not make, by its paths from there. Nothing is removed.
pub(super) fn others_in(directory: &OwnedFd) -> Result<Vec<String>> {
    let mut walk = Walk::of(directory, false)?;
    walk.through(directory, Within::Work, "")?;
    walk.others.sort();
    Ok(walk.others)
}

/// Removes what raidlab made in a working directory, but for what tells the owner; returns what else is there.
fn emptied(opened: &Opened) -> Result<Vec<String>> {
    let mut walk = Walk::of(opened.directory(), true)?;
    walk.through(opened.directory(), Within::Work, "")?;
    walk.others.sort();
    Ok(walk.others)
}

/// A way through all that is in a working directory.
struct Walk {
    /// The mount that it stays on.
    mount: u64,
    /// What raidlab made is removed.
    removes: bool,
    /// What raidlab did not make.
    others: Vec<String>,
}

impl Walk {
    fn of(directory: &OwnedFd, removes: bool) -> Result<Self> {
        Ok(Self {
            mount: id_of(directory)?,
            removes,
            others: Vec::new(),
        })
    }

    fn through(&mut self, directory: &OwnedFd, within: Within, path: &str) -> Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Not all file systems tell it with the name.
                FileType::Unknown => {
                    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
                    match found {
                        Err(Errno::NOENT) => continue,
                        found => FileType::from_raw_mode(found?.st_mode),
                    }
                }
                kind => kind,
            };
            let told = || format!("{path}{}", name.to_string_lossy());
            match (made(within, name.to_bytes()), kind) {
                (Some(Made::Owner | Made::Renamed), FileType::RegularFile) => {}
                (Some(Made::File), FileType::RegularFile) => {
                    if self.removes {
                        unlink(directory, name)?;
                    }
                }
                (Some(Made::Directory(inside)), FileType::Directory) => {
                    self.into(directory, name, inside, &told())?;
                }
                _ => self.others.push(told()),
            }
        }
        Ok(())
    }

    /// As [`Self::through`], of a directory in one that is open; and then the directory.
    fn into(
        &mut self,
        around: &OwnedFd,
        name: &std::ffi::CStr,
        within: Within,
        path: &str,
    ) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(around, name, flags, Mode::empty())?;
        // What is open is looked at: whatever is mounted there from here on, this goes on beneath it.
        if id_of(&directory)? != self.mount {
            self.others.push(path.to_owned());
            return Ok(());
        }
        let others = self.others.len();
        self.through(&directory, within, &format!("{path}/"))?;
        if self.removes && self.others.len() == others {
            rustix::fs::unlinkat(around, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }
}

/// Removes a file, unless it has gone already: a thread that was left behind removes what it wrote itself.
fn unlink(directory: &OwnedFd, name: impl rustix::path::Arg) -> Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Error::from(error)),
    }
}

/// Removes a directory in which nothing is but files that go when the file system has been told that they were closed.
fn remove_empty(opened: &Opened) -> Result<()> {
    let begun = std::time::Instant::now();
    loop {
        let removed = opened.remove();
        let wait = matches!(&removed, Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty)
            && begun.elapsed() < CLOSED
            && all_renamed(opened.directory())?;
        if !wait {
            return removed;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether nothing is in a directory but files that were removed while they were open.
fn all_renamed(directory: &OwnedFd) -> Result<bool> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && made(Within::Work, name) != Some(Made::Renamed) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;

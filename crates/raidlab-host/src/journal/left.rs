//! Journals of runs that are gone: found, and taken over.
use super::perform::is_mount_point;
use super::{ENDING, Entry, Journal, Process, Undone, VERSION};
use crate::alone::Alone;
use crate::error::{HostError, Result};
use crate::patience::patiently;
use raidlab_io::observe::Roots;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock of a run that has gone is free within this time.
const LETS_GO: Duration = Duration::from_secs(2);

/// The journals of runs that are gone, each taken over: no other raidlab will undo it meanwhile.
///
/// # Errors
/// When the directory cannot be listed. A journal that cannot be read is told in the second list.
pub fn leftovers(directory: &Path) -> Result<(Vec<Journal>, Vec<String>)> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((Vec::new(), Vec::new()));
        }
        Err(error) => return Err(HostError::call("list", directory)(error)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for path in paths {
        match take_over(&path) {
            Ok(Some(journal)) => found.push(journal),
            Ok(None) => {}
            Err(error) => wrong.push(error.to_string()),
        }
    }
    Ok((found, wrong))
}

/// Removes the directory where runs mount file systems when it is there and no journal in `journals` says so: it would keep every run from
/// beginning, and nothing else would remove it. `alone` proves that no run is under way.
///
/// # Errors
/// When it cannot be looked at.
pub fn forget_point(
    roots: &Roots,
    journals: &Path,
    point: &Path,
    _alone: &Alone,
) -> Result<Undone> {
    let is_there = std::fs::symlink_metadata(point).is_ok_and(|found| found.is_dir());
    // A journal that is there undoes it itself, now or later.
    if !is_there || any_in(journals)? {
        return Ok(Undone::Nothing);
    }
    let told = point.display();
    if is_mount_point(roots, point) {
        return Ok(Undone::Left(format!(
            "something is mounted at {told}, and no run says that it was raidlab: look into it, and unmount it ('umount {told}')"
        )));
    }
    // Of an empty one alone.
    match std::fs::remove_dir(point) {
        Ok(()) => Ok(Undone::Done(format!("removed {told}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Undone::Nothing),
        Err(error) => Ok(Undone::Left(format!(
            "{told} stays: {error}; look into it and remove it"
        ))),
    }
}

/// Whether there are journals in a directory.
fn any_in(directory: &Path) -> Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.any(|entry| {
            // What cannot be read may be one.
            entry.map_or(true, |entry| {
                entry
                    .path()
                    .extension()
                    .is_some_and(|ending| ending == ENDING)
            })
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HostError::call("list", directory)(error)),
    }
}

/// `None` when its run lives, or it has gone meanwhile.
fn take_over(path: &Path) -> Result<Option<Journal>> {
    let opened = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(HostError::call("open", path)(error)),
    };
    let owner = file.metadata().map_err(HostError::call("inspect", path))?;
    if owner.uid() != rustix::process::geteuid().as_raw() {
        return Err(HostError::Unexpected(format!(
            "{} belongs to another user (of the number {}), and says what is removed and cleared: nothing of it is undone; let \
             its owner run 'raidlab clean', or remove it",
            path.display(),
            owner.uid()
        )));
    }
    let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);
    let gone = || process_of(&file).is_some_and(|process| !process.lives());
    // A program that it was just starting has its files, too, until it is another program.
    if lock().is_err() && !(gone() && patiently(LETS_GO, lock).is_ok()) {
        return Ok(None);
    }
    let mut text = Vec::new();
    (&file)
        .seek(SeekFrom::Start(0))
        .and_then(|_| (&file).read_to_end(&mut text))
        .map_err(HostError::call("read", path))?;
    // The run may have ended, and removed it, between opening and locking.
    if !path.exists() {
        return Ok(None);
    }
    let id = path.file_stem().and_then(|stem| stem.to_str());
    let mut journal = Journal {
        id: id.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        file,
        end: 0,
        process: Process::own(),
        taken_over: true,
        doubted: false,
        mounted: false,
        next: 0,
        open: BTreeMap::new(),
    };
    // A last line without its end was never whole, so its step was never taken.
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    journal.end = whole as u64;
    if whole < text.len() {
        rustix::fs::ftruncate(&journal.file, journal.end)
            .map_err(HostError::call("repair", path))?;
    }
    for (number, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
        if !line.is_empty() {
            let entry = read_entry(line).map_err(|what| not_ours(path, number + 1, &what))?;
            journal.apply(&entry);
        }
    }
    Ok(Some(journal))
}

/// Whose journal it is, by its first line.
fn process_of(file: &File) -> Option<Process> {
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line).ok()?;
    match read_entry(line.as_bytes()) {
        Ok(Entry::Begin { process, .. }) => Some(process),
        _ => None,
    }
}

/// A line of this version, or what it is instead.
fn read_entry(line: &[u8]) -> Result<Entry, String> {
    let entry = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match entry {
        Entry::Begin { version, .. } if version != VERSION => {
            Err(format!("it is of version {version}, not {VERSION}"))
        }
        entry => Ok(entry),
    }
}

fn not_ours(path: &Path, line: usize, what: &str) -> HostError {
    HostError::Unexpected(format!(
        "{}: line {line}: {what}; this journal was not written by this version: what it says must be undone by the one \
         that wrote it",
        path.display()
    ))
}

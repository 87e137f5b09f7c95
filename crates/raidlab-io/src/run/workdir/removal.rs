//! How a working directory goes, also where a file that is open cannot.
use super::opened::Opened;
use super::{OWNER, turn};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How long files that were removed while they were open are waited for.
const CLOSED: Duration = Duration::from_secs(5);

/// Removes a working directory, what tells its owner last: one that is killed meanwhile leaves a directory
/// that is still known for what it is. `owner` is closed before its file goes: where a file that is open cannot be removed (NFS,
/// FUSE) it would get another name and keep the directory from going. Whoever still has it takes a turn for that: a directory
/// without an owner, if only until it is gone itself, is one that was left to whoever looks at it.
pub(super) fn remove_all(path: &Path, opened: &Opened, owner: Option<File>) -> std::io::Result<()> {
    let directory = opened.way();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == OWNER || is_renamed(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    let _turn = owner.as_ref().and_then(|_| turn(path.parent()?));
    drop(owner);
    match std::fs::remove_file(directory.join(OWNER)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    remove_empty(opened)
}

/// Removes a directory in which nothing is but files that go when the file system has been told that they were closed.
fn remove_empty(opened: &Opened) -> std::io::Result<()> {
    let begun = std::time::Instant::now();
    loop {
        let removed = opened.remove();
        let wait = matches!(&removed, Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty)
            && begun.elapsed() < CLOSED
            && std::fs::read_dir(opened.way())?
                .all(|entry| entry.is_ok_and(|entry| is_renamed(&entry.file_name())));
        if !wait {
            return removed;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What NFS and FUSE call a file that was removed while it was open.
fn is_renamed(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(".nfs") || name.starts_with(".fuse_hidden")
}

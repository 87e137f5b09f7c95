//! A file under way to its place.
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::{File, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Prefix of the names that files have on their way.
const PREFIX: &str = ".raidlab-";
/// The user's umask takes from these what it takes from any file's.
const MODE: u32 = 0o666;

/// A new file in the directory of the one whose place it is to take. It has no name before, so that nothing is left of it
/// however the program ends; only where the file system cannot have such files it has one.
pub(super) enum New {
    Nameless(File),
    Named(tempfile::NamedTempFile),
}

impl New {
    pub(super) fn beside(file: &Path) -> Result<Self> {
        let directory = directory(file);
        // By this way it gets its name.
        if Path::new("/proc/self/fd").exists() {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            let opened = rustix::fs::open(directory, flags, Mode::from_raw_mode(MODE));
            if let Ok(opened) = opened {
                return Ok(Self::Nameless(opened.into()));
            }
        }
        tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(directory)
            .map(Self::Named)
            .map_err(without_place)
    }

    fn as_file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Moves it into its place when it is on the disk: what is written may be the only copy soon. It is no more open
    /// to others than the one that it takes the place of, and the same user's.
    pub(super) fn in_place(self, file: &Path) -> Result<()> {
        if let Ok(old) = std::fs::metadata(file) {
            let made = self.as_file().metadata()?;
            if (old.uid(), old.gid()) != (made.uid(), made.gid()) {
                // Of root alone others' files stay theirs.
                let (user, group) = (Some(old.uid()), Some(old.gid()));
                let _ = std::os::unix::fs::fchown(self.as_file(), user, group);
            }
            if old.mode() != made.mode() {
                let mode = Permissions::from_mode(old.mode() & 0o777);
                let _ = self.as_file().set_permissions(mode);
            }
        }
        match self.as_file().sync_all() {
            // Where nothing can be synced, nothing can be promised either.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::Unsupported
                ) => {}
            synced => synced?,
        }
        match self {
            Self::Nameless(new) => named(&new, file)?.persist(file).map(drop),
            Self::Named(new) => new.into_temp_path().persist(file),
        }
        .map_err(|error| error.error)?;
        // A file system that cannot sync a directory has no name of the file to lose, either.
        let _ = File::open(directory(file)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Write for New {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Nameless(file) => file.write(bytes),
            Self::Named(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Gives a file a name in the directory of `file`, for the moment until it has that one's: a link does not replace.
fn named(new: &File, file: &Path) -> Result<tempfile::TempPath> {
    let way = format!("/proc/self/fd/{}", new.as_raw_fd());
    let link = |name: &Path| {
        rustix::fs::linkat(CWD, &*way, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(Error::from)
    };
    let made = tempfile::Builder::new()
        .prefix(PREFIX)
        .make_in(directory(file), link);
    made.map(tempfile::NamedTempFile::into_temp_path)
        .map_err(without_place)
}

fn directory(file: &Path) -> &Path {
    let parent = file.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The error without the name of the file beside, which says nothing to a user.
fn without_place(error: Error) -> Error {
    match error.to_string().split_once(" at path ") {
        Some((cause, _)) => Error::new(error.kind(), cause),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In memory a file without a name can be had on every kernel that raidlab runs on.
    #[test]
    fn a_file_under_way_has_no_name_and_replaces_another() {
        let directory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        let file = directory.path().join("report");
        std::fs::write(&file, "old").expect("written");
        let names = || std::fs::read_dir(directory.path()).expect("read").count();
        let mut new = New::beside(&file).expect("made");
        new.write_all(b"new").expect("written");
        assert_eq!(names(), 1);
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "old");
        new.in_place(&file).expect("in its place");
        assert_eq!(names(), 1);
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
    }

    #[test]
    fn a_file_with_a_name_goes_when_it_is_given_up_and_replaces_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report");
        let named = || {
            let new = tempfile::NamedTempFile::new_in(directory.path()).expect("made");
            New::Named(new)
        };
        let names = || std::fs::read_dir(directory.path()).expect("read").count();
        drop(named());
        assert_eq!(names(), 0);
        let mut new = named();
        new.write_all(b"new").expect("written");
        new.in_place(&file).expect("in its place");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        assert_eq!(names(), 1);
    }
}

//! A directory by its descriptor. Whoever may write to the directory around it can give its name to something else, a link
//! to a directory of others' for instance, but not what is open: what is made, written and removed by way of the descriptor
//! is in the directory that was made, whatever becomes of its name.
use crate::descriptor::DESCRIPTORS;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Opened {
    directory: OwnedFd,
    parent: OwnedFd,
    name: OsString,
    way: PathBuf,
}

impl Opened {
    /// The directory of this name in `parent`, which is a directory itself and no link to one.
    pub(super) fn open(parent: &Path, name: &OsStr) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let around = rustix::fs::open(parent, flags, Mode::empty())?;
        let directory = rustix::fs::openat(&around, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        let number = |found: std::fs::Metadata| (found.dev(), found.ino());
        let found = rustix::fs::fstat(&directory)?;
        let way = Path::new(DESCRIPTORS).join(directory.as_raw_fd().to_string());
        let leads = std::fs::metadata(&way).map(number);
        Ok(Self {
            // Where /proc is not mounted there is no other way than by name.
            way: match leads.is_ok_and(|leads| leads == (found.st_dev, found.st_ino)) {
                true => way,
                false => parent.join(name),
            },
            directory,
            parent: around,
            name: name.to_owned(),
        })
    }

    /// The way into it for this process alone: a path that does not go by its name.
    pub(super) fn way(&self) -> &Path {
        &self.way
    }

    /// It, open.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The directory around it, open.
    pub(super) fn parent(&self) -> &OwnedFd {
        &self.parent
    }

    /// Whether it is this user's.
    pub(super) fn is_own(&self) -> bool {
        let found = rustix::fs::fstat(&self.directory);
        found.is_ok_and(|found| found.st_uid == rustix::process::geteuid().as_raw())
    }

    /// Removes the name, if it is still that of a directory, and an empty one.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR)?;
        Ok(())
    }
}

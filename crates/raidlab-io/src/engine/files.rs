//! File operations by ordinary system calls, in a working directory or on one given file or device.
use super::content::Content;
use super::error::EngineError;
use super::extent::open_directory;
use super::memory::Mapping;
use super::names::{data_name, directory_name, entry_name, finished};
use super::stream::{Stream, errno, last};
use raidlab_core::op::{Entry, FileId, FileOp, OpenMode};
use raidlab_core::rng::{self, mix};
use raidlab_core::target::Errno;
use raidlab_core::units::SECTOR;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct OpenFile {
    file: File,
    writable: bool,
    stream: Option<Stream>,
}

/// What the data files are.
#[derive(Debug)]
enum Root {
    /// Files made in a working directory.
    Directory(OwnedFd),
    /// One existing file or device, which is data file 0; it is never emptied or removed.
    Given { path: PathBuf, writable: bool },
}

/// Where file operations take place, and the data files that are open.
#[derive(Debug)]
pub struct Files {
    root: Root,
    names: rng::Stream,
    open: BTreeMap<FileId, OpenFile>,
    /// The last name made, ended by a zero byte.
    name: Vec<u8>,
}

impl From<rustix::io::Errno> for ErrnoOf {
    fn from(error: rustix::io::Errno) -> Self {
        Self(Errno(error.raw_os_error()))
    }
}

/// So that `?` takes the errors of both libraries.
struct ErrnoOf(Errno);

impl From<Errno> for ErrnoOf {
    fn from(error: Errno) -> Self {
        Self(error)
    }
}

impl From<std::io::Error> for ErrnoOf {
    fn from(error: std::io::Error) -> Self {
        Self(errno(&error))
    }
}

impl Files {
    /// For files in the directory `path`; `seed` decides the names of small files.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn new(path: &Path, seed: u64) -> Result<Self, EngineError> {
        Ok(Self::on(Root::Directory(open_directory(path)?), seed))
    }

    /// For calls on one existing file or device, which is data file 0. It is opened for writing only
    /// when `writable`, and never emptied or removed.
    #[must_use]
    pub fn given(path: &Path, writable: bool) -> Self {
        let path = path.to_owned();
        Self::on(Root::Given { path, writable }, 0)
    }

    fn on(root: Root, seed: u64) -> Self {
        Self {
            root,
            names: rng::Stream::new(mix(seed ^ 0x6e61_6d65)),
            open: BTreeMap::new(),
            name: Vec::with_capacity(64),
        }
    }

    /// Why an operation must not be carried out here at all.
    pub(super) fn refusal(&self, op: FileOp) -> Option<&'static str> {
        let Root::Given { writable, .. } = &self.root else {
            return None;
        };
        match op {
            FileOp::Open { file, .. } if file != 0 => Some("a given file or device is data file 0"),
            FileOp::Open {
                mode: OpenMode::Create,
                ..
            } => Some("a given file or device is never made or emptied"),
            FileOp::Open {
                mode: OpenMode::Update,
                ..
            } if !writable => Some(super::NOT_WRITABLE),
            FileOp::Remove { .. }
            | FileOp::Create { .. }
            | FileOp::Stat { .. }
            | FileOp::Unlink { .. }
            | FileOp::MakeDirectory { .. }
            | FileOp::RemoveDirectory { .. }
            | FileOp::SyncDirectory { .. } => {
                Some("this takes a directory, not a given file or device")
            }
            _ => None,
        }
    }

    fn directory(&self) -> Result<&OwnedFd, Errno> {
        match &self.root {
            Root::Directory(directory) => Ok(directory),
            Root::Given { .. } => Err(Errno(libc::ENOTDIR)),
        }
    }

    /// Carries out `op` with `buffer`, which has at least [`FileOp`]'s bytes: for a write they are
    /// what is written, for a read they are overwritten. Returns the bytes moved.
    pub(super) fn perform(&mut self, op: FileOp, buffer: &mut [u8]) -> Result<u32, Errno> {
        self.attempt(op, buffer).map_err(|error| error.0)
    }

    fn attempt(&mut self, op: FileOp, buffer: &mut [u8]) -> Result<u32, ErrnoOf> {
        match op {
            FileOp::Open {
                file,
                mode,
                direct,
                sync,
            } => self.open(file, mode, direct, sync),
            FileOp::Read { file, len, offset } => {
                let open = self.flushed(file)?;
                Ok(read_at(&open.file, &mut buffer[..len as usize], offset)?)
            }
            FileOp::Scan { file, len, offset } => {
                let open = self.flushed(file)?;
                let buffer = &mut buffer[..len as usize];
                let moved = read_at(&open.file, buffer, offset)?;
                look_at(&mut buffer[..moved as usize]);
                Ok(moved)
            }
            FileOp::Write { file, len, offset } => {
                let open = self.flushed(file)?;
                Ok(write_at(&open.file, &buffer[..len as usize], offset)?)
            }
            FileOp::PutChars { file, len, offset } => {
                self.of(file)?
                    .stream()?
                    .put(offset, &buffer[..len as usize])?;
                Ok(len)
            }
            FileOp::GetChars { file, len, offset } => {
                let read = self
                    .of(file)?
                    .stream()?
                    .get(offset, &mut buffer[..len as usize])?;
                Ok(read as u32)
            }
            FileOp::Sync { file, data_only } => {
                let open = self.flushed(file)?;
                if data_only {
                    rustix::fs::fdatasync(&open.file)?;
                } else {
                    rustix::fs::fsync(&open.file)?;
                }
                Ok(0)
            }
            FileOp::SyncAll => {
                // Not `sync`: what others have not written yet to other disks is no part of a figure of this one.
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(self.directory()?, c".", flags, Mode::empty())?;
                rustix::fs::syncfs(&opened)?;
                Ok(0)
            }
            FileOp::Close { file } => self.close(file),
            FileOp::Remove { file } => {
                rustix::fs::unlinkat(self.directory()?, data_name(file), AtFlags::empty())?;
                Ok(0)
            }
            FileOp::Create { entry, size, sync } => {
                self.create(entry, &buffer[..size as usize], sync)
            }
            FileOp::Stat { entry, size } => self.stat(entry, &mut buffer[..size as usize]),
            FileOp::Unlink { entry } => {
                let (directory, name) = self.entry(entry)?;
                rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
                Ok(0)
            }
            FileOp::MakeDirectory { directory } => {
                let (root, name) = self.subdirectory(directory)?;
                rustix::fs::mkdirat(root, name, Mode::RWXU)?;
                Ok(0)
            }
            FileOp::RemoveDirectory { directory } => {
                let (root, name) = self.subdirectory(directory)?;
                rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR)?;
                Ok(0)
            }
            FileOp::SyncDirectory { directory } => {
                let (root, name) = self.subdirectory(directory)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(root, name, flags, Mode::empty())?;
                rustix::fs::fsync(&opened)?;
                Ok(0)
            }
        }
    }

    fn open(
        &mut self,
        file: FileId,
        mode: OpenMode,
        direct: bool,
        sync: bool,
    ) -> Result<u32, ErrnoOf> {
        let mut flags = OFlags::CLOEXEC
            | match mode {
                OpenMode::Create => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
                OpenMode::Read => OFlags::RDONLY,
                OpenMode::Update => OFlags::RDWR,
            };
        flags.set(OFlags::DIRECT, direct);
        flags.set(OFlags::SYNC, sync);
        let opened = match &self.root {
            Root::Directory(directory) => {
                rustix::fs::openat(directory, data_name(file), flags, Mode::RUSR | Mode::WUSR)?
            }
            Root::Given { path, .. } => rustix::fs::open(path, flags, Mode::empty())?,
        };
        let opened = OpenFile {
            file: opened.into(),
            writable: mode != OpenMode::Read,
            stream: None,
        };
        self.open.insert(file, opened);
        Ok(0)
    }

    /// The working directory and a small file's name in it.
    fn entry(&mut self, entry: Entry) -> Result<(&OwnedFd, &CStr), Errno> {
        entry_name(&mut self.name, self.names, entry);
        Ok((self.directory()?, finished(&self.name)))
    }

    /// The working directory and the name of a directory in it.
    fn subdirectory(&mut self, directory: u32) -> Result<(&OwnedFd, &CStr), Errno> {
        directory_name(&mut self.name, directory);
        Ok((self.directory()?, finished(&self.name)))
    }

    fn of(&mut self, file: FileId) -> Result<&mut OpenFile, Errno> {
        self.open.get_mut(&file).ok_or(Errno(libc::EBADF))
    }

    /// The file with nothing left in its stream's buffer.
    fn flushed(&mut self, file: FileId) -> Result<&mut OpenFile, Errno> {
        let open = self.of(file)?;
        if let Some(stream) = &mut open.stream {
            stream.flush()?;
        }
        Ok(open)
    }

    fn close(&mut self, file: FileId) -> Result<u32, ErrnoOf> {
        self.flushed(file)?;
        let open = self.open.remove(&file).ok_or(Errno(libc::EBADF))?;
        drop(open.stream);
        // The standard library drops the error of `close`, in which network file systems report a
        // failed write.
        // SAFETY: the descriptor is open and owned by no one else after `into_raw_fd`.
        if unsafe { libc::close(open.file.into_raw_fd()) } != 0 {
            return Err(last().into());
        }
        Ok(0)
    }

    fn create(&mut self, entry: Entry, bytes: &[u8], sync: bool) -> Result<u32, ErrnoOf> {
        let (directory, name) = self.entry(entry)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file: File =
            rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?.into();
        if !bytes.is_empty() {
            (&file).write_all(bytes)?;
        }
        if sync {
            rustix::fs::fsync(&file)?;
        }
        Ok(bytes.len() as u32)
    }

    fn stat(&mut self, entry: Entry, buffer: &mut [u8]) -> Result<u32, ErrnoOf> {
        let (directory, name) = self.entry(entry)?;
        rustix::fs::statat(directory, name, AtFlags::empty())?;
        if buffer.is_empty() {
            return Ok(0);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file: File = rustix::fs::openat(directory, name, flags, Mode::empty())?.into();
        Ok(read_at(&file, buffer, 0)?)
    }
}

impl OpenFile {
    fn stream(&mut self) -> Result<&mut Stream, Errno> {
        if self.stream.is_none() {
            self.stream = Some(Stream::open(&self.file, self.writable)?);
        }
        self.stream.as_mut().ok_or(Errno(libc::EBADF))
    }
}

/// One `pread`, begun again only when a signal came before any byte.
///
/// Not by the C library: its `pread` is a place where threads can be cancelled, which costs as much
/// as a short read itself.
#[inline]
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<u32, Errno> {
    loop {
        match rustix::io::pread(file, &mut *buffer, offset) {
            Ok(moved) => return Ok(moved as u32),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno(error.raw_os_error())),
        }
    }
}

/// One `pwrite`, likewise.
#[inline]
pub(super) fn write_at(file: &File, buffer: &[u8], offset: u64) -> Result<u32, Errno> {
    loop {
        match rustix::io::pwrite(file, buffer, offset) {
            Ok(moved) => return Ok(moved as u32),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno(error.raw_os_error())),
        }
    }
}

/// What [`Files::perform`] writes for an operation: filled before it is carried out.
pub(super) fn written(op: FileOp) -> Option<(FileId, u64, u32)> {
    match op {
        FileOp::Write { file, len, offset } | FileOp::PutChars { file, len, offset } => {
            Some((file, offset, len))
        }
        // A small file has the content of a data file that no workload uses.
        FileOp::Create { entry, size, .. } => {
            Some((FileId::MAX, u64::from(entry.index) << 32, size))
        }
        _ => None,
    }
}

/// Fills `buffer` for an operation that cannot be lent its bytes.
pub(super) fn fill(content: &Content, buffer: &Mapping, (file, offset, len): (FileId, u64, u32)) {
    let start = buffer.at(0, len as usize);
    // SAFETY: `len` bytes of the mapping by `at`; the engine has one operation at a time.
    content.fill(file, offset, unsafe {
        std::slice::from_raw_parts_mut(start, len as usize)
    });
}

/// Reads and writes a byte of each sector, as hdparm does (`buf[i] &= 1`) to be sure that the data
/// came; it is part of what `hdparm -T` times.
fn look_at(bytes: &mut [u8]) {
    for sector in bytes.chunks_mut(SECTOR as usize) {
        sector[0] = std::hint::black_box(sector[0] & 1);
    }
}

//! Files that a user names for a report or an export.
mod new;

use crate::exit::{Failure, MISSING, REFUSED};
use crate::talk;
use new::New;
use std::io::{BufWriter, Error, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

/// Each file that this process has read for the user: its experiment, its trace.
static READ: Mutex<Vec<FileRead>> = Mutex::new(Vec::new());

/// Device and inode of a file, and when it was made, where the file system tells: when it has gone, another may have its inode.
type FileRead = (u64, u64, Option<SystemTime>);

fn id_of(found: &std::fs::Metadata) -> FileRead {
    (found.dev(), found.ino(), found.created().ok())
}

/// Opens a file that a user wants to be read. What was read is not replaced by what is written later, whatever path
/// leads to it.
///
/// # Errors
/// As [`std::fs::File::open`].
pub(crate) fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let file = std::fs::File::open(path)?;
    let found = file.metadata()?;
    if found.is_file()
        && let Ok(mut read) = READ.lock()
    {
        read.push(id_of(&found));
    }
    Ok(file)
}

fn was_read(found: &std::fs::Metadata) -> bool {
    READ.lock().is_ok_and(|read| read.contains(&id_of(found)))
}

/// Where bytes go.
enum Destination {
    /// A file, which is replaced whole.
    File(PathBuf),
    /// Something that takes bytes as they come: a pipe, a terminal, `/dev/null`.
    Stream,
    /// Standard output.
    Stdout,
}

/// Whether a name is that of standard output. A file of that name is `./-`.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes a file beside and moves it into place, so that an interruption leaves the old one or none.
///
/// # Errors
/// When it cannot be written, or what is there must not be replaced.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let written = match destination(path)? {
        Destination::Stdout => return super::printed(talk::stdout(content)),
        Destination::File(file) => New::beside(&file).and_then(|mut new| {
            new.write_all(content)?;
            new.in_place(&file)
        }),
        Destination::Stream => std::fs::File::options()
            .write(true)
            .open(path)
            .and_then(|mut stream| stream.write_all(content)),
    };
    written.map_err(|error| cannot_write(path, &error))
}

/// Makes a directory for files.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| no_directory(path, &error))
}

/// A file that stands where a directory is wanted is told as such.
fn no_directory(path: &Path, error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let message = format!(
                "cannot write {}: a file stands where a directory is wanted",
                path.display()
            );
            Failure::new(MISSING, message).remedy("name a directory; one that is not there is made")
        }
        _ => cannot_write(path, error),
    }
}

/// Whether a file could be written, found out without leaving a trace.
///
/// # Errors
/// As [`write()`].
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    match destination(path)? {
        Destination::File(file) => New::beside(&file)
            .map(drop)
            .map_err(|error| cannot_write(path, &error)),
        Destination::Stream | Destination::Stdout => Ok(()),
    }
}

/// Whether two paths lead to one file, which need not be there yet. What only takes bytes as they come, such as
/// `/dev/null`, is no such file.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| match destination(path) {
        Ok(Destination::File(file)) => {
            let file = std::path::absolute(file).ok()?;
            let parent = file.parent()?.canonicalize().ok()?;
            Some(parent.join(file.file_name()?))
        }
        _ => None,
    };
    if is_stdout(one) {
        return is_stdout(other);
    }
    place(one).is_some_and(|file| place(other) == Some(file))
}

/// Whether files could be written into a directory, which need not be there yet.
///
/// # Errors
/// When the directory cannot be made or written to.
pub(crate) fn check_directory(path: &Path) -> Result<(), Failure> {
    let there = path.ancestors().find(|ancestor| ancestor.exists());
    let there = there.filter(|found| !found.as_os_str().is_empty());
    New::beside(&there.unwrap_or(Path::new(".")).join("file"))
        .map(drop)
        .map_err(|error| no_directory(path, &error))
}

fn destination(path: &Path) -> Result<Destination, Failure> {
    if is_stdout(path) {
        return Ok(Destination::Stdout);
    }
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Destination::File(path.to_owned()));
        }
        Err(error) => return Err(cannot_write(path, &error)),
    };
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(cannot_write(path, &Error::from(ErrorKind::IsADirectory)));
    }
    if kind.is_block_device() {
        return Err(must_not_replace(path, "a block device"));
    }
    if !kind.is_file() {
        return Ok(Destination::Stream);
    }
    if was_read(&found) {
        return Err(must_not_replace(path, "a file that this command reads"));
    }
    if is_database(path) {
        return Err(must_not_replace(
            path,
            "an SQLite database, such as a store",
        ));
    }
    // The file that a link leads to: the link stays.
    path.canonicalize()
        .map(Destination::File)
        .map_err(|error| cannot_write(path, &error))
}

/// Whether a file begins as SQLite's do (`fileformat2.html`, 1.3).
fn is_database(path: &Path) -> bool {
    let mut magic = [0; 16];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok_and(|()| magic == *b"SQLite format 3\0")
}

fn must_not_replace(path: &Path, what: &str) -> Failure {
    Failure::new(
        REFUSED,
        format!("{} is {what}: what it holds would be lost", path.display()),
    )
    .remedy("name another file")
}

fn cannot_write(path: &Path, error: &Error) -> Failure {
    let told = error.to_string();
    // The temporary file is nobody's business: it takes the place of the named one at the end.
    let why = told.split_once(" at path ").map_or(&*told, |(why, _)| why);
    let full = matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    );
    Failure::new(MISSING, format!("cannot write {}: {why}", path.display())).remedy(if full {
        "make room there, or name a file on another file system"
    } else {
        "name a file in a directory that exists and can be written"
    })
}

/// Data that is written as it comes: to standard output, or to a file that takes its place whole when
/// all is written.
pub(crate) struct Stream(To);

enum To {
    Stdout(BufWriter<std::io::Stdout>),
    /// Standard output, which gets it in the end.
    Later(BufWriter<std::fs::File>),
    /// The reader of standard output has gone (`| head`), which is no error.
    Nobody,
    File(BufWriter<New>, PathBuf),
    Opened(BufWriter<std::fs::File>, PathBuf),
}

impl Stream {
    pub(crate) fn to_stdout() -> Self {
        Self(To::Stdout(BufWriter::new(std::io::stdout())))
    }

    /// To standard output when all is written: whoever reads it may take his time (a pager), and what it is read from
    /// meanwhile, such as a store, is not kept from others.
    ///
    /// # Errors
    /// When there is no room for it (`$TMPDIR`, else /tmp).
    pub(crate) fn to_stdout_later() -> Result<Self, Failure> {
        let kept = tempfile::tempfile().map_err(|error| cannot_keep(&error))?;
        Ok(Self(To::Later(BufWriter::new(kept))))
    }

    /// To a file, or to standard output if it is called `-`.
    ///
    /// # Errors
    /// As [`write()`].
    pub(crate) fn to_file(path: &Path) -> Result<Self, Failure> {
        let failed = |error| cannot_write(path, &error);
        Ok(Self(match destination(path)? {
            Destination::Stdout => return Ok(Self::to_stdout()),
            Destination::File(file) => {
                let new = New::beside(&file).map_err(failed)?;
                To::File(BufWriter::new(new), file)
            }
            Destination::Stream => {
                let opened = std::fs::File::options().write(true).open(path);
                To::Opened(BufWriter::new(opened.map_err(failed)?), path.to_owned())
            }
        }))
    }

    /// Adds text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        let bytes = text.as_bytes();
        match &mut self.0 {
            To::Nobody => Ok(()),
            To::Later(kept) => kept.write_all(bytes).map_err(|error| cannot_keep(&error)),
            To::Stdout(out) => match out.write_all(bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.0 = To::Nobody;
                    Ok(())
                }
                other => other.map_err(|error| cannot_print(&error)),
            },
            To::File(out, path) => out.write_all(bytes).map_err(|e| cannot_write(path, &e)),
            To::Opened(out, path) => out.write_all(bytes).map_err(|e| cannot_write(path, &e)),
        }
    }

    /// Ends it: the file is in its place.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.0 {
            To::Nobody => Ok(()),
            To::Later(kept) => {
                let kept = kept
                    .into_inner()
                    .map_err(std::io::IntoInnerError::into_error);
                let mut kept = kept.map_err(|error| cannot_keep(&error))?;
                kept.rewind().map_err(|error| cannot_keep(&error))?;
                let mut out = std::io::stdout().lock();
                match std::io::copy(&mut kept, &mut out).and_then(|_| out.flush()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                    other => other.map_err(|error| cannot_print(&error)),
                }
            }
            To::Stdout(mut out) => match out.flush() {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(|error| cannot_print(&error)),
            },
            To::File(out, path) => out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)
                .and_then(|new| new.in_place(&path))
                .map_err(|error| cannot_write(&path, &error)),
            To::Opened(mut out, path) => out.flush().map_err(|e| cannot_write(&path, &e)),
        }
    }
}

impl Stream {
    /// What it means that it cannot be written to.
    pub(crate) fn failed(&self, error: &Error) -> Failure {
        match &self.0 {
            To::Nobody | To::Stdout(_) => cannot_print(error),
            To::Later(_) => cannot_keep(error),
            To::File(_, path) | To::Opened(_, path) => cannot_write(path, error),
        }
    }
}

impl std::io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.0 {
            To::Nobody => Ok(bytes.len()),
            To::Later(kept) => kept.write(bytes),
            To::Stdout(out) => match out.write(bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.0 = To::Nobody;
                    Ok(bytes.len())
                }
                other => other,
            },
            To::File(out, _) => out.write(bytes),
            To::Opened(out, _) => out.write(bytes),
        }
    }

    /// Nothing: [`finish`](Self::finish) does it.
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn cannot_keep(error: &Error) -> Failure {
    let place = std::env::temp_dir();
    let message = format!(
        "cannot keep what is to be printed in {}: {error}",
        place.display()
    );
    Failure::new(MISSING, message).remedy("make room there, set TMPDIR, or name a file (-o)")
}

fn cannot_print(error: &Error) -> Failure {
    Failure::new(MISSING, format!("cannot write to standard output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    /// What was read is not replaced, by whatever path; another file that came to the inode of one that has gone is.
    #[test]
    fn an_inode_that_went_to_another_file_was_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("trace"), "read").expect("written");
        drop(open(&path("trace")).expect("opened"));
        std::fs::hard_link(path("trace"), path("link")).expect("linked");
        assert!(write(&path("link"), b"new").is_err());
        for name in ["trace", "link"] {
            std::fs::remove_file(path(name)).expect("removed");
        }
        // The clock of file systems ticks every 10 ms at the slowest.
        std::thread::sleep(std::time::Duration::from_millis(20));
        for number in 0..8 {
            let name = path(&format!("report{number}"));
            std::fs::write(&name, "old").expect("written");
            write(&name, b"new").expect("written");
        }
    }

    /// Reports tell of serial numbers and paths.
    #[test]
    fn a_file_that_is_replaced_stays_as_private_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("report.html");
        std::fs::write(&path, "old").expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        let root = rustix::process::geteuid().is_root();
        if root {
            std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).expect("given away");
        }
        write(&path, b"new").expect("written");
        let mut stream = Stream::to_file(&path).expect("opened");
        stream.write("newer").expect("written");
        stream.finish().expect("in its place");
        let found = std::fs::metadata(&path).expect("it is there");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "newer");
        assert_eq!(found.mode() & 0o777, 0o600);
        assert!(!root || (found.uid(), found.gid()) == (65_534, 65_534));
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("read").count(),
            1
        );
    }
}

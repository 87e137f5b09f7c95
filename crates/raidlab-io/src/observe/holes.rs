//! Parts of a file that no disk is read for: holes, and what was reserved but never written. Zeros come of them as fast as the memory
//! gives them, past the page cache or not.
use super::roots::Roots;
use super::stack::DeviceKind;
use super::{LoopShows, PathKind, Resolved, loop_path, loop_shows};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// `_IOWR('f', 11, struct fiemap)`, linux/fiemap.h
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
/// What waits in the page cache for its place on the disk is written first.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
const AT_ONCE: usize = 256;
/// A file in more pieces than this is not looked through.
const MOST_CALLS: usize = 4096;

/// `struct fiemap_extent`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Piece {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

/// `struct fiemap` with room for some pieces.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    pieces: [Piece; AT_ONCE],
}

const _: () = assert!(size_of::<Map>() == 32 + 56 * AT_ONCE);

/// Parts of what is read that no disk is read for.
#[derive(Debug, Clone, PartialEq)]
pub struct Holes {
    /// Their share, 0 to 1.
    pub share: f64,
    /// The file: `the file`, or `/srv/disk.img, which loop0 shows,`.
    pub of: String,
}

impl std::fmt::Display for Holes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = self.share * 100.0;
        write!(
            f,
            "{percent:.1} % of {} are holes or were never written: no disk is read for them",
            self.of
        )
    }
}

impl Holes {
    /// Of the bytes in a range of a file, or of what a loop device shows; `None` when there are none, of other devices, and where the
    /// file system does not tell.
    #[must_use]
    pub fn find(roots: &Roots, resolved: &Resolved, range: Range<u64>) -> Option<Self> {
        let (path, offset, of) = match resolved.kind {
            PathKind::File => (resolved.path.clone(), 0, "the file".to_owned()),
            PathKind::BlockDevice => behind_loop(roots, resolved)?,
            PathKind::Directory | PathKind::CharacterDevice => return None,
        };
        let file = File::open(path).ok()?;
        let end = file.metadata().ok()?.len();
        let shift = |at: u64| at.saturating_add(offset).min(end);
        let range = shift(range.start)..shift(range.end);
        let all = range.end.checked_sub(range.start).filter(|all| *all > 0)?;
        let written = mapped(&file, range.clone()).or_else(|_| sought(&file, range));
        let holes = all.saturating_sub(written.ok()?);
        (holes > 0).then(|| Self {
            share: holes as f64 / all as f64,
            of,
        })
    }
}

/// The file that a loop device shows, and where in it that begins. The name may be another's by now.
fn behind_loop(roots: &Roots, resolved: &Resolved) -> Option<(PathBuf, u64, String)> {
    let stack = resolved.stack()?;
    let [name] = &stack.top[..] else { return None };
    if !matches!(stack.device(name)?.kind, DeviceKind::Loop { .. }) {
        return None;
    }
    let path = loop_path(roots, name)?;
    let LoopShows::Told(told) = loop_shows(roots, name)? else {
        return None;
    };
    let found = std::fs::metadata(&path).ok()?;
    let of = format!("{}, which {name} shows,", path.display());
    (found.is_file() && found.ino() == told.inode).then_some((path, told.offset, of))
}

/// Written bytes by the map of the file's pieces.
fn mapped(file: &File, range: Range<u64>) -> io::Result<u64> {
    let (mut at, mut written) = (range.start, 0);
    let too_many = || io::Error::other("too many pieces");
    for _ in 0..MOST_CALLS {
        let mut map = Map {
            start: at,
            length: range.end - at,
            flags: FIEMAP_FLAG_SYNC,
            mapped: 0,
            room: AT_ONCE as u32,
            reserved: 0,
            pieces: [Piece::default(); AT_ONCE],
        };
        // SAFETY: FS_IOC_FIEMAP writes the header and at most `room` pieces behind it, which is what the structure has; it lives over the
        // call, and the descriptor is open.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let pieces = &map.pieces[..(map.mapped as usize).min(AT_ONCE)];
        for piece in pieces {
            let end = piece.logical.saturating_add(piece.length).min(range.end);
            let begin = piece.logical.max(at);
            if piece.flags & FIEMAP_EXTENT_UNWRITTEN == 0 {
                written += end.saturating_sub(begin);
            }
            at = at.max(end);
        }
        let last = pieces.last();
        if last.is_none_or(|last| last.flags & FIEMAP_EXTENT_LAST != 0) || at >= range.end {
            return Ok(written);
        }
    }
    Err(too_many())
}

/// Bytes that are no holes, where there is no map: what was reserved and never written is not always told.
fn sought(file: &File, range: Range<u64>) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let (mut at, mut written) = (range.start, 0);
    for _ in 0..MOST_CALLS {
        let data = match seek(file, SeekFrom::Data(at)) {
            // None behind it.
            Err(Errno::NXIO) => return Ok(written),
            found => found?,
        };
        if data >= range.end {
            return Ok(written);
        }
        let end = seek(file, SeekFrom::Hole(data))?.min(range.end);
        written += end.saturating_sub(data);
        at = end;
        if at >= range.end {
            return Ok(written);
        }
    }
    Err(io::Error::other("too many pieces"))
}

#[cfg(test)]
#[path = "tests/holes.rs"]
mod tests;

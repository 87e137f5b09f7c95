//! Whether a device answers at all: one of which nothing can be read may have every table of the kernel's in order, such as
//! one of device-mapper that is all errors, or a disk that died and was not asked since.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use crate::observe::cache::block_size_of;
use crate::observe::roots::Roots;

/// Bytes that are read, at a multiple of them: no device has larger sectors.
const BLOCK: usize = 4096;

/// Where a device answers a read with an error, in words; `None` also when it may not be read by this user. It is asked in three
/// places, past the page cache, which still has what once was read.
pub(super) fn unreadable(roots: &Roots, name: &str) -> Option<String> {
    let path = roots.dev.join(name.replace('!', "/"));
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(&path)
        .ok()?;
    let blocks = block_size_of(&file).ok()? / BLOCK as u64;
    let last = blocks.checked_sub(1)?;
    let mut space = vec![0_u8; 2 * BLOCK];
    let at = space.as_ptr().align_offset(BLOCK);
    let block = space.get_mut(at..at + BLOCK)?;
    [0, last / 2, last].into_iter().find_map(|number| {
        let offset = number * BLOCK as u64;
        match file.read_exact_at(block, offset) {
            Err(error) if error.kind() != ErrorKind::InvalidInput => Some(format!(
                "{} cannot be read at byte {offset}: {error}",
                path.display()
            )),
            _ => None,
        }
    })
}

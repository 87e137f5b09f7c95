//! Settings that say nothing beside the others of their cell.
use super::view::View;
use crate::kernel::FilesystemKind;
use crate::read::key::Key;
use crate::setup::{Array, Engine};
use raidlab_core::profile::{BlockIo, Profile};

/// What a setting of the profile would need to make a difference; `None` where it makes one.
pub(super) fn lacks(profile: &Profile, setting: &str) -> Option<&'static str> {
    let io = |io: &BlockIo| match setting {
        "arrival" => io.rate == 0,
        "fsync" | "end-fsync" => io.read_percent == Some(100),
        _ => false,
    };
    let idle = match profile {
        Profile::Random(of) | Profile::Sequential(of) => io(of),
        Profile::Bonnie(bonnie) => match setting {
            "characters" | "characters-size" => bonnie.fast,
            "file-size-max" | "file-size-min" | "directories" => bonnie.files == 0,
            _ => false,
        },
        _ => false,
    };
    if idle { needs(setting) } else { None }
}

/// What such a setting needs.
pub(super) fn needs(setting: &str) -> Option<&'static str> {
    Some(match setting {
        "arrival" => "give a rate to arrive at: rate = 100",
        "fsync" | "end-fsync" => "let the profile write, with another read-percent",
        "characters" | "characters-size" => "let bonnie do its phases by character, fast = false",
        "file-size-max" | "file-size-min" | "directories" => "give bonnie small files: files = 16",
        _ => return None,
    })
}

/// Keys of the host that say nothing in a cell of this profile: read-ahead where the file system has its own, of the page cache where all calls go past it, and of what waits to be
/// written where nothing is written. A file system has pages of its own in the cache.
pub(super) fn of_host(profile: &Profile, view: &View<'_>, array: Option<&Array>) -> Vec<Key> {
    let dirty = [
        Key::DirtyLimit,
        Key::DirtyBackground,
        Key::DirtyExpire,
        Key::DirtyWriteback,
    ];
    let kind = view.filesystem(Key::Filesystem).map(|kind| kind.value);
    let own = array.is_some_and(|array| matches!(array.engine, Engine::Zfs | Engine::Btrfs));
    let bare = kind.is_none_or(|kind| kind == FilesystemKind::None) && array.is_some() && !own;
    let mut keys = Vec::new();
    // The read-ahead of the device is nothing to file systems that have one of their own.
    if own || kind == Some(FilesystemKind::Btrfs) {
        keys.push(Key::ReadAhead);
    }
    let (past, writes) = match profile {
        Profile::Random(io) | Profile::Sequential(io) => (io.direct, io.read_percent != Some(100)),
        Profile::Dd(dd) => (dd.direct, true),
        Profile::Hdparm(_) => (false, false),
        _ => return keys,
    };
    if bare && (past || !writes) {
        keys.extend(dirty);
    }
    if bare && past {
        keys.push(Key::ReadAhead);
    }
    keys
}

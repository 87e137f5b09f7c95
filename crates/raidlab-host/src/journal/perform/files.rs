//! What lies in a file system that a run left: raidlab's uuid tells who made it, and not who has used it since.
use super::whose::find;
use crate::identity::Identity;
use crate::label::{self, Label};
use raidlab_io::observe::Roots;
use raidlab_io::observe::cache::block_size_of;
use raidlab_io::observe::safety::open_for_reading;
use raidlab_io::run::WorkDir;
use raidlab_io::words::some_of;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where fsck puts what it found.
const FOUND: &str = "lost+found";

/// What someone has made of a file system since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// There is nothing but raidlab's own.
    Nobodys,
    /// What else is there, in words.
    Someones(String),
    /// Someone has it in use, so that it cannot be looked into.
    Busy,
    /// It cannot be looked into, and why.
    Unknown(String),
}

/// What is in a directory, the root of a file system that raidlab made, that is not raidlab's.
pub(super) fn others_in(root: &Path) -> io::Result<Option<String>> {
    let mut others = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let told = name.to_string_lossy().into_owned();
        if name == FOUND && entry.file_type()?.is_dir() {
            let found = names(fs::read_dir(entry.path())?)?;
            others.extend(found.iter().map(|name| format!("{FOUND}/{name}")));
        } else if WorkDir::is_named_so(&name) && entry.file_type()?.is_dir() {
            let found = WorkDir::others_in(&entry.path())?;
            others.extend(found.iter().map(|name| format!("{told}/{name}")));
        } else {
            others.push(told);
        }
    }
    others.sort();
    Ok(some_of(&others))
}

fn names(entries: impl Iterator<Item = io::Result<DirEntry>>) -> io::Result<Vec<String>> {
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name)).collect()
}

/// Looks into the file system of these uuids on a device, if there is one. `further` gives the others that it may be on, too.
pub(super) fn look(
    node: &Path,
    further: impl FnOnce() -> Vec<PathBuf>,
    uuids: &[String],
) -> Option<Use> {
    let kind = kind_on(node, uuids)?;
    // One that is on several devices needs to be told of them without udev.
    let further: Vec<PathBuf> = match kind {
        "btrfs" => {
            let others = further().into_iter().filter(|path| *path != node);
            others
                .filter(|path| kind_on(path, uuids) == Some(kind))
                .collect()
        }
        _ => Vec::new(),
    };
    let looked = match looked_into(node, kind, &further, false) {
        // Its copies are enough to see what is there.
        Err(_) if kind == "btrfs" => looked_into(node, kind, &further, true),
        looked => looked,
    };
    Some(match looked {
        Ok(None) => Use::Nobodys,
        Ok(Some(what)) => Use::Someones(what),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Use::Busy,
        Err(error) => Use::Unknown(error.to_string()),
    })
}

/// Devices that a btrfs on this one is on, by its superblock; 0 when it cannot be read.
pub(super) fn devices(node: &Path) -> u64 {
    /// `num_devices`, 0x88 bytes into the superblock.
    const DEVICES: u64 = 0x1_0088;
    let mut bytes = [0_u8; 8];
    let Ok(file) = open_for_reading(node) else {
        return 0;
    };
    let read = file.read_exact_at(&mut bytes, DEVICES);
    read.map_or(0, |()| u64::from_le_bytes(bytes))
}

/// Whether on each of these devices is what raidlab has put there or nothing, and on some is nothing.
pub(super) fn are_partly_clear(nodes: &[PathBuf], uuids: &[String]) -> bool {
    let ours = |label: &Label| label.is_one_of(uuids);
    let mut blank = 0;
    let all = nodes.iter().all(|path| {
        let labels = labels_on(path);
        blank += u32::from(labels.as_ref().is_some_and(Vec::is_empty));
        labels.is_some_and(|labels| labels.iter().all(ours))
    });
    all && blank > 0
}

fn labels_on(node: &Path) -> Option<Vec<Label>> {
    let file = open_for_reading(node).ok()?;
    label::read(&file, block_size_of(&file).ok()?, node).ok()
}

/// The kernel's name of the file system of these uuids on a device. What is in an array is read through the array, and what
/// carries anything of someone else's is not looked into.
fn kind_on(node: &Path, uuids: &[String]) -> Option<&'static str> {
    let labels = labels_on(node)?;
    let ours = |label: &Label| label.is_one_of(uuids) && !label.is_of_array();
    if !labels.iter().all(ours) {
        return None;
    }
    labels.iter().find_map(|label| match label.what.as_str() {
        // Its driver has read the older two as well since Linux 2.6.
        "ext2/3/4 file system" => Some("ext4"),
        "xfs file system" => Some("xfs"),
        "btrfs file system" => Some("btrfs"),
        _ => None,
    })
}

fn looked_into(
    node: &Path,
    kind: &str,
    further: &[PathBuf],
    degraded: bool,
) -> io::Result<Option<String>> {
    let mount = mounted_apart(node, kind, further, degraded)?;
    others_at(&mount)
}

/// As [`others_in`], of a file system that is mounted at no place.
pub(super) fn others_at(mount: &OwnedFd) -> io::Result<Option<String>> {
    others_in(&PathBuf::from(format!(
        "/proc/self/fd/{}",
        mount.as_raw_fd()
    )))
}

/// Mounts it for this process alone, at no place: nobody else sees it, and it goes with the descriptor, also after a
/// `kill -9`. Read-only, but what its journal holds is written first: without that, files that were there before a
/// power failure might not be seen.
pub(super) fn mounted_apart(
    node: &Path,
    kind: &str,
    further: &[PathBuf],
    degraded: bool,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", node)?;
    fsconfig_set_flag(&context, "ro")?;
    if kind == "btrfs" {
        // Whatever has been made the default since.
        fsconfig_set_string(&context, "subvolid", "5")?;
    }
    for device in further {
        fsconfig_set_string(&context, "device", device.as_path())?;
    }
    if degraded {
        fsconfig_set_flag(&context, "degraded")?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// Why what is on a device stays, in words; `None` when it is nobody's. `made`: a run has had its file system mounted.
pub(super) fn put_to_use(found: Option<Use>, node: &Path, made: bool) -> Option<String> {
    let node = node.display();
    match found {
        None | Some(Use::Nobodys) => None,
        Some(Use::Someones(what)) => Some(format!(
            "its file system holds {what}, which raidlab did not make: someone has put it there since; mount it and move \
             that elsewhere, or, if it is not wanted, 'wipefs -a {node}', and 'raidlab clean' goes on"
        )),
        // One that was half made cannot be read, either, and has been nobody's.
        Some(Use::Unknown(_) | Use::Busy) if !made => None,
        // Never to be cleared by hand then: whoever has it would lose what is there.
        Some(Use::Busy) => Some(format!(
            "its file system is in use, though it is mounted nowhere that is seen here: in another mount namespace, such as a \
             container's, or {node} is a part of another device ('lsblk {node}', 'lsns -t mnt'); end that, and 'raidlab clean' goes on"
        )),
        Some(Use::Unknown(why)) => Some(format!(
            "its file system cannot be looked into ({why}), so that what was put there since is not known; if nothing of it \
             is wanted, 'wipefs -a {node}', and 'raidlab clean' goes on"
        )),
    }
}

/// The nodes of all that is there of these members.
pub(super) fn nodes(roots: &Roots, members: &[Identity]) -> Vec<PathBuf> {
    let found = members.iter().filter_map(|member| find(roots, member));
    found.collect()
}

//! Undoing, one thing at a time, each found by what was recorded of it.
mod arrays;
mod whose;

#[cfg(test)]
pub(crate) use arrays::foreign;

use super::process::Process;
use super::undo::{Undo, Undone};
use crate::claim;
use crate::error::{HostError, Result};
use crate::identity::{FileId, Identity};
use crate::label;
use crate::loops;
use crate::patience::patiently;
use crate::provision::partition::{self, forget};
use crate::sysfs;
use crate::tool::Tool;
use raidlab_io::observe::mountinfo::{self, Mount};
use raidlab_io::observe::safety::open_for_reading;
use raidlab_io::observe::{DeviceNumber, Roots};
use rustix::mount::{UnmountFlags, unmount};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use whose::{find, identity_of, lies_on};

/// How long something that is still in use is waited for: a child that was killed needs a moment to let go.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(50);
/// Where btrfs-progs notes what came of scrubs.
const SCRUBS: &str = "/var/lib/btrfs";

/// A run, whose steps are undone one after the other.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) process: Process,
    /// All uuids that it gave to what it made.
    pub(super) uuids: Vec<String>,
    /// It has gone, and anyone may have put to use since what it left.
    pub(super) gone: bool,
    /// Members of arrays that were stopped.
    pub(super) stopped: Vec<Identity>,
    /// Members with something of someone's on them, such as an array that stays: what they are made of stays with them.
    pub(super) kept: Vec<Identity>,
}

impl Run {
    /// Whether a member of an array that stays is on this file.
    fn keeps(&self, id: &FileId) -> bool {
        let mut files = self
            .kept
            .iter()
            .filter_map(|member| member.backing.as_ref());
        files.any(|file| file == id)
    }
}

/// Undoes one thing of a run: of a step that was taken to its end, or may not have been.
pub(super) fn perform(undo: &Undo, roots: &Roots, run: &mut Run, taken: bool) -> Result<Undone> {
    let of = &run.process;
    match undo {
        Undo::LoopDevice(id) if run.keeps(id) => Ok(Undone::Left(format!(
            "{} is still shown as a device",
            id.path.display()
        ))),
        Undo::File(id) if run.keeps(id) => Ok(Undone::Left(format!(
            "{} stays: what someone has put on it since would go with it",
            id.path.display()
        ))),
        Undo::Contents { member, .. } if run.kept.contains(member) => Ok(not_cleared(
            &member.name,
            member,
            &"what someone has put on it since stays",
        )),
        Undo::NewDirectory(path) => remove_directory(path),
        Undo::Directory(id) if is_there(id, of) => remove_directory(&id.path),
        Undo::NewFile(path) => match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() && found.len() == 0 => remove_file(path),
            _ => Ok(Undone::Nothing),
        },
        Undo::File(id) if is_there(id, of) => remove_file(&id.path),
        Undo::Directory(_) | Undo::File(_) => Ok(Undone::Nothing),
        Undo::LoopDevice(id) => detach(roots, id),
        Undo::Mount { point, members } => unmount_all(roots, point, members),
        Undo::Array { members, name } => {
            let came = arrays::stop(roots, (members, name), run, taken);
            match &came {
                Ok(Undone::Nothing) => {}
                Ok(Undone::Done(_)) => run.stopped.extend_from_slice(members),
                Ok(Undone::Left(_)) | Err(_) => run.kept.extend_from_slice(members),
            }
            came
        }
        Undo::Pool { name } => destroy_pool(name),
        Undo::Scrub { point, uuid } => forget_scrub(roots, point, uuid),
        Undo::Contents { member, uuids } => match recorded(member, of) {
            Some(member) => clear(roots, &member, uuids, run),
            None => Ok(Undone::Nothing),
        },
        // Settings do not outlive the boot.
        Undo::Attribute { .. } if of.is_of_another_boot() => Ok(Undone::Nothing),
        Undo::Attribute {
            device,
            attribute,
            value,
        } => restore(roots, device, attribute, value),
        Undo::WriteCache { device, on } => write_cache(roots, &recorded(device, of), *on),
    }
}

/// Whether a file is still the one that was made. Numbers of the devices that file systems are on are dealt out anew at a boot;
/// its name, with the random one of its journal in it, and its inode are not.
fn is_there(id: &FileId, of: &Process) -> bool {
    let after_boot = |found: FileId| of.is_of_another_boot() && found.inode == id.inode;
    id.is_there() || FileId::of(&id.path).is_ok_and(after_boot)
}

/// A device without a serial number is known by its number, which means another device after a boot.
fn recorded(device: &Identity, of: &Process) -> Option<Identity> {
    (device.serial.is_some() || !of.is_of_another_boot()).then(|| device.clone())
}

fn remove_directory(path: &Path) -> Result<Undone> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(Undone::Done(format!("removed {}", path.display()))),
        // It was never made, or what it was in has gone; something else may have that name by now.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Undone::Nothing)
        }
        Err(error) => Ok(Undone::Left(format!(
            "{} stays: {error}; look into it and remove it",
            path.display()
        ))),
    }
}

fn remove_file(path: &Path) -> Result<Undone> {
    fs::remove_file(path).map_err(HostError::call("remove", path))?;
    Ok(Undone::Done(format!("removed {}", path.display())))
}

/// Tries as long as it is busy, or patience ends.
fn while_busy(mut attempt: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(STEP);
            }
            other => return other,
        }
    }
}

fn detach(roots: &Roots, id: &FileId) -> Result<Undone> {
    let mut told = Vec::new();
    for name in roots
        .block_names()
        .iter()
        .filter(|name| name.starts_with("loop"))
    {
        if fs::metadata(roots.block(name).join("loop")).is_err() {
            continue;
        }
        let path = roots.dev.join(name);
        let Ok(device) = open_for_reading(&path) else {
            continue;
        };
        let shows = loops::backing_of(&device);
        // By its name, too: when it has gone, its number may have been given to another file.
        if !shows.is_ok_and(|found| found == *id) {
            continue;
        }
        while_busy(|| loops::detach(&device)).map_err(HostError::call("detach", &path))?;
        drop(device);
        // It goes with its last user, and who looks at every device (udev, another raidlab) is one for a moment.
        let shown = roots.block(name).join("loop/backing_file");
        let gone = || if shown.exists() { Err(()) } else { Ok(()) };
        let _ = patiently(PATIENCE, gone);
        told.push(format!(
            "detached {} from {}",
            path.display(),
            id.path.display()
        ));
    }
    Ok(if told.is_empty() {
        Undone::Nothing
    } else {
        Undone::Done(told.join(", "))
    })
}

fn unmount_all(roots: &Roots, point: &Path, members: &[Identity]) -> Result<Undone> {
    let mut told = Vec::new();
    // A file system may have been mounted over another at the same place.
    for _ in 0..8 {
        let path = roots.proc.join("self/mountinfo");
        let text = fs::read_to_string(&path).map_err(HostError::call("read", &path))?;
        let mounts = mountinfo::parse(&text)?;
        let Some(mount) = mounts.iter().rfind(|mount| mount.point == point) else {
            break;
        };
        if !is_ours(roots, mount, members) {
            return Ok(Undone::Left(format!(
                "{} is mounted at {}, and not by raidlab",
                mount.source,
                point.display()
            )));
        }
        while_busy(|| Ok(unmount(point, UnmountFlags::empty())?))
            .map_err(HostError::call("unmount", point))?;
        told.push(format!("unmounted {}", point.display()));
    }
    Ok(if told.is_empty() {
        Undone::Nothing
    } else {
        Undone::Done(told.join(", "))
    })
}

fn is_ours(roots: &Roots, mount: &Mount, members: &[Identity]) -> bool {
    let number = if mount.number.major == 0 {
        let found = fs::metadata(&mount.source);
        found.ok().map(|found| DeviceNumber::from_raw(found.rdev()))
    } else {
        Some(mount.number)
    };
    let name = number.and_then(|number| roots.block_by_number(number));
    name.is_some_and(|name| lies_on(roots, &name, members))
}

fn destroy_pool(name: &str) -> Result<Undone> {
    if crate::tool::find("zpool").is_none()
        || Tool::new(["zpool", "list", "-H", "-o", "name", name])
            .run()
            .is_err()
    {
        // Perhaps exported, or half made: what is on the members is cleared anyway.
        return Ok(Undone::Nothing);
    }
    Tool::new(["zpool", "destroy", "-f", name]).run()?;
    Ok(Undone::Done(format!("destroyed pool {name}")))
}

/// Whether the file system of this uuid is mounted there. When it is not, a scrub asked for by that place would be one of the file
/// system that the directory itself is on.
fn scrub_may_go_on(roots: &Roots, point: &Path, uuid: &str) -> bool {
    let text = fs::read_to_string(roots.proc.join("self/mountinfo")).unwrap_or_default();
    let mounts = mountinfo::parse(&text).unwrap_or_default();
    let mount = mounts.iter().rfind(|mount| mount.point == point);
    mount.is_some_and(|mount| mount.fs_type == "btrfs")
        && roots.sys.join("fs/btrfs").join(uuid).is_dir()
}

/// Ends a scrub that is still under way, whose file system could not be unmounted else, and removes the notes of it.
fn forget_scrub(roots: &Roots, point: &Path, uuid: &str) -> Result<Undone> {
    if scrub_may_go_on(roots, point, uuid) {
        // Mostly there is none.
        let cancel = Tool::new(["btrfs", "scrub", "cancel", &point.display().to_string()]);
        let _ = cancel.within(2 * PATIENCE).run();
    }
    let mut undone = Undone::Nothing;
    for kind in ["status", "progress"] {
        let file = Path::new(SCRUBS).join(format!("scrub.{kind}.{uuid}"));
        match fs::remove_file(&file) {
            Ok(()) => undone = Undone::Done(format!("removed {}", file.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::call("remove", &file)(error)),
        }
    }
    Ok(undone)
}

fn clear(roots: &Roots, member: &Identity, uuids: &[String], run: &mut Run) -> Result<Undone> {
    let Some(path) = find(roots, member) else {
        return Ok(match (&member.backing, &member.serial) {
            // A disk may come back, with all that was written on it; a loop device does not.
            (None, Some(serial)) => Undone::Left(format!(
                "the disk with the serial number {serial} is not here, and may carry what raidlab wrote; connect it, and \
                 'raidlab clean' clears it"
            )),
            _ => Undone::Nothing,
        });
    };
    let cleared = patiently(PATIENCE, || claim::open_exclusively(&path))
        .and_then(|file| clear_open(roots, &file, &path, member, uuids));
    let is_someones = match &cleared {
        Ok(came) => matches!(came, Undone::Left(_)),
        // As long as its run lives a tool that hangs may have it.
        Err(error) => run.gone && matches!(error, HostError::Refused { .. }),
    };
    if is_someones {
        run.kept.push(member.clone());
    }
    Ok(cleared.unwrap_or_else(|error| not_cleared(&path.display(), member, &error)))
}

fn not_cleared(name: &dyn Display, member: &Identity, why: &dyn Display) -> Undone {
    let serial = match (&member.backing, &member.serial) {
        (None, Some(serial)) => format!(" (serial number {serial})"),
        _ => String::new(),
    };
    Undone::Left(format!(
        "{name}{serial} is not cleared, and may carry what raidlab wrote: {why}"
    ))
}

fn clear_open(
    roots: &Roots,
    file: &File,
    path: &Path,
    member: &Identity,
    uuids: &[String],
) -> Result<Undone> {
    let found = Identity::of_open(roots, file, path)?;
    if !found.is_same_device(member) {
        return Ok(Undone::Left(format!(
            "{} has become another device",
            path.display()
        )));
    }
    let labels = label::read(file, found.size, path)?;
    if labels.is_empty() {
        return Ok(Undone::Nothing);
    }
    if let Some(foreign) = labels.iter().find(|label| !label.is_one_of(uuids)) {
        return Ok(Undone::Left(format!(
            "{} carries {}, which raidlab did not write; it is left alone",
            path.display(),
            foreign.what
        )));
    }
    let partitioned = labels.iter().any(|label| label.what.starts_with("GPT"));
    if partitioned && let Some(foreign) = in_partition(file, found.size, path, uuids)? {
        return Ok(Undone::Left(foreign));
    }
    // In this order: when it is cut short in between, the table still tells that there is something to be done.
    if partitioned {
        forget(file).map_err(HostError::call(
            "have the kernel forget the partition of",
            path,
        ))?;
    }
    claim::clear(file, found.size, path)?;
    Ok(Undone::Done(format!("cleared {}", path.display())))
}

/// What someone has made of the partition of a disk since, in words: the disk's own labels do not tell.
fn in_partition(file: &File, size: u64, path: &Path, uuids: &[String]) -> Result<Option<String>> {
    let path_told = path.display();
    let extent = partition::extent(file, size).map_err(HostError::call("read", path))?;
    let Some(extent) = extent else {
        return Ok(Some(format!(
            "{path_told} has other partitions than the one that raidlab made; it is left alone"
        )));
    };
    let labels = label::read_partition(file, extent, path)?;
    let foreign = labels.iter().find(|label| !label.is_one_of(uuids));
    Ok(foreign.map(|label| {
        format!(
            "{path_told} carries {} in its partition, which raidlab did not write; it is left alone",
            label.what
        )
    }))
}

fn restore(roots: &Roots, device: &Identity, attribute: &str, value: &str) -> Result<Undone> {
    let Some(path) = find(roots, device) else {
        return Ok(Undone::Nothing);
    };
    let Some(now) = identity_of(roots, &file_name(&path)) else {
        return Ok(Undone::Nothing);
    };
    let file = roots.block(&now.name).join(attribute);
    if sysfs::chosen(&file).as_deref() == Some(value) {
        return Ok(Undone::Nothing);
    }
    sysfs::set(&file, value)?;
    Ok(Undone::Done(format!(
        "set {attribute} of {} back to {value}",
        now.name
    )))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default().to_owned()
}

fn write_cache(roots: &Roots, device: &Option<Identity>, on: bool) -> Result<Undone> {
    let Some(path) = device.as_ref().and_then(|device| find(roots, device)) else {
        return Ok(Undone::Nothing);
    };
    let path = path.display().to_string();
    let switch = if on { "-W1" } else { "-W0" };
    Tool::new(["hdparm", switch, &path]).run()?;
    Ok(Undone::Done(format!(
        "switched the write cache of {path} {} again",
        if on { "on" } else { "off" }
    )))
}

#[cfg(test)]
mod tests;

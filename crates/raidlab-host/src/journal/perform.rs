//! Undoing, one thing at a time, each found by what was recorded of it.
mod arrays;
mod contents;
mod files;
mod mounts;
mod pools;
mod whose;

#[cfg(test)]
pub(crate) use arrays::foreign;
pub(super) use mounts::is_mount_point;

use super::process::Process;
use super::undo::{Undo, Undone};
use crate::error::{HostError, Result};
use crate::identity::{FileId, Identity};
use crate::loops;
use crate::patience::patiently;
use crate::sysfs;
use crate::system;
use crate::tool::Tool;
use contents::{clear, not_cleared};
use mounts::unmount_all;
use raidlab_io::observe::Roots;
use raidlab_io::observe::mountinfo;
use raidlab_io::observe::safety::open_for_reading;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whose::{find, identity_of};

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
    /// All members that something was written on.
    pub(super) members: Vec<Identity>,
    /// It had a file system mounted, or a pool: what it made last was made to its end.
    pub(super) mounted: bool,
    /// Some of its members are cleared already.
    pub(super) partly: bool,
    /// They were about to be cleared when whoever did so was killed, and some may be.
    pub(super) clears: bool,
    /// Where something stays mounted.
    pub(super) stay: Vec<PathBuf>,
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

/// Undoes one thing of a run: of a step that was taken to its end, or may not have been. `before` is told before a member is
/// cleared.
pub(super) fn perform(
    undo: &Undo,
    roots: &Roots,
    run: &mut Run,
    taken: bool,
    before: &mut dyn FnMut(),
) -> Result<Undone> {
    let of = &run.process;
    match undo {
        Undo::LoopDevice(id) if run.keeps(id) => Ok(Undone::Left(format!(
            "{} is still shown as a device",
            id.path.display()
        ))),
        Undo::File(id) if run.keeps(id) => Ok(Undone::Left(format!(
            "{} stays: what stays on it would go with it",
            id.path.display()
        ))),
        Undo::Contents { member, .. } if run.kept.contains(member) => Ok(not_cleared(
            &member.name,
            member,
            &"what is on it stays, as is told",
        )),
        Undo::NewDirectory(path) | Undo::Directory(FileId { path, .. })
            // What is mounted there hides it: not to be seen does not mean to be gone.
            if run.stay.contains(path) || is_mount_point(roots, path) =>
        {
            Ok(Undone::Left(format!(
                "{} stays with what is mounted there",
                path.display()
            )))
        }
        Undo::NewDirectory(path) => remove_directory(path),
        Undo::Directory(id) if is_there(id, of) => remove_directory(&id.path),
        Undo::NewFile(path) => match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() && found.len() == 0 => remove_file(path),
            _ => Ok(Undone::Nothing),
        },
        Undo::File(id) if is_there(id, of) => remove_file(&id.path),
        Undo::Directory(_) | Undo::File(_) => Ok(Undone::Nothing),
        Undo::LoopDevice(id) => detach(roots, id),
        Undo::Mount { point, members } => unmount_all(roots, point, members, run),
        Undo::Array { members, name } if is_mounted(members, run) => Ok(Undone::Left(format!(
            "/dev/{name} is not stopped: what is mounted stays"
        ))),
        Undo::Array { members, name } => {
            let came = arrays::stop(roots, (members, name), run, taken);
            match &came {
                Ok(Undone::Nothing) => {}
                Ok(Undone::Done(_)) => run.stopped.extend_from_slice(members),
                Ok(Undone::Left(_)) | Err(_) => run.kept.extend_from_slice(members),
            }
            came
        }
        Undo::Pool { name } => pools::destroy(roots, name, run, taken),
        Undo::Scrub { point, uuid } => forget_scrub(roots, point, uuid),
        Undo::Replacement { point, uuid } => Ok(end_replacement(roots, point, uuid)),
        Undo::Contents { member, uuids } => match recorded(member, of) {
            Some(member) => clear(roots, &member, uuids, run, before),
            None => Ok(Undone::Nothing),
        },
        // Settings do not outlive the boot.
        Undo::Attribute { .. } | Undo::System { .. } if of.is_of_another_boot() => {
            Ok(Undone::Nothing)
        }
        Undo::Attribute {
            device,
            attribute,
            value,
        } => restore(roots, device, attribute, value),
        Undo::System { set, was } => system::restore(roots, set, was),
        Undo::WriteCache { device, on } => write_cache(roots, &recorded(device, of), *on),
    }
}

/// Whether a file system on some of these members stays mounted.
fn is_mounted(members: &[Identity], run: &Run) -> bool {
    !run.stay.is_empty() && members.iter().any(|member| run.kept.contains(member))
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

/// Whether the file system of this uuid is mounted there. When it is not, what is asked of that place would be asked of the file system
/// that the directory itself is on.
fn is_mounted_there(roots: &Roots, point: &Path, uuid: &str) -> bool {
    let text = fs::read_to_string(roots.proc.join("self/mountinfo")).unwrap_or_default();
    let mounts = mountinfo::parse(&text).unwrap_or_default();
    let mount = mounts.iter().rfind(|mount| mount.point == point);
    mount.is_some_and(|mount| mount.fs_type == "btrfs")
        && roots.sys.join("fs/btrfs").join(uuid).is_dir()
}

/// Ends a scrub that is still under way, whose file system could not be unmounted else, and removes the notes of it.
fn forget_scrub(roots: &Roots, point: &Path, uuid: &str) -> Result<Undone> {
    if is_mounted_there(roots, point, uuid) {
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

/// Ends a replacement that is still under way.
fn end_replacement(roots: &Roots, point: &Path, uuid: &str) -> Undone {
    if !is_mounted_there(roots, point, uuid) {
        return Undone::Nothing;
    }
    let cancel = Tool::new(["btrfs", "replace", "cancel", &point.display().to_string()]);
    // Where none is under way the tool says so, and fails.
    match cancel.within(2 * PATIENCE).run() {
        Ok(_) => Undone::Done(format!(
            "ended the replacement of members of {}",
            point.display()
        )),
        Err(_) => Undone::Nothing,
    }
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

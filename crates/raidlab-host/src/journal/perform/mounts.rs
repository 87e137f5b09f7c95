//! File systems that a run left mounted: unmounted, unless someone has put files into them since.
use super::files::others_in;
use super::whose::{leaves, lies_on};
use super::{Run, while_busy};
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::Undone;
use raidlab_io::observe::mountinfo::{self, Mount};
use raidlab_io::observe::{DeviceNumber, Roots};
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Unmounts what raidlab mounted at a place. What holds files of someone's stays, and its members with it.
pub(super) fn unmount_all(
    roots: &Roots,
    point: &Path,
    members: &[Identity],
    run: &mut Run,
) -> Result<Undone> {
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
            // What raidlab has there is beneath it, or was moved away, and is not seen.
            stays(run, point, members);
            return Ok(Undone::Left(format!(
                "{} is mounted at {}, and not by raidlab",
                mount.source,
                point.display()
            )));
        }
        // One that cannot be read loses nothing by that: it is looked into again before it is cleared.
        if run.gone
            && let Ok(Some(what)) = others_in(point)
        {
            stays(run, point, members);
            return Ok(Undone::Left(format!(
                "{} stays mounted: it holds {what}, which raidlab did not make: someone has put it there since; move that \
                 elsewhere, or remove it, and 'raidlab clean' goes on",
                point.display()
            )));
        }
        if let Err(error) = while_busy(|| Ok(unmount(point, UnmountFlags::empty())?)) {
            stays(run, point, members);
            if error.raw_os_error() != Some(libc::EBUSY) {
                return Err(HostError::call("unmount", point)(error));
            }
            let point = point.display();
            return Ok(Undone::Left(format!(
                "{point} stays mounted: it is in use; end what uses it ('fuser -vm {point}' tells what), and 'raidlab clean' goes on"
            )));
        }
        told.push(format!("unmounted {}", point.display()));
    }
    Ok(if told.is_empty() {
        Undone::Nothing
    } else {
        Undone::Done(told.join(", "))
    })
}

/// Something stays mounted at a place: the directory there, and what is mounted, stay with it.
fn stays(run: &mut Run, point: &Path, members: &[Identity]) {
    run.stay.push(point.to_owned());
    run.kept.extend_from_slice(members);
}

fn is_ours(roots: &Roots, mount: &Mount, members: &[Identity]) -> bool {
    device_of(roots, mount).is_some_and(|name| lies_on(roots, &name, members))
}

/// The kernel's name of the device that is mounted.
fn device_of(roots: &Roots, mount: &Mount) -> Option<String> {
    let number = if mount.number.major == 0 {
        let found = fs::metadata(&mount.source);
        found.ok().map(|found| DeviceNumber::from_raw(found.rdev()))
    } else {
        Some(mount.number)
    };
    number.and_then(|number| roots.block_by_number(number))
}

/// Whether anything is mounted at a place: what is in the table of mounts hides the directory that was there.
pub(in crate::journal) fn is_mount_point(roots: &Roots, point: &Path) -> bool {
    table(roots).iter().any(|mount| mount.point == point)
}

fn table(roots: &Roots) -> Vec<Mount> {
    let text = fs::read_to_string(roots.proc.join("self/mountinfo")).unwrap_or_default();
    mountinfo::parse(&text).unwrap_or_default()
}

/// Why what is on a device of a run's stays, in words, when its file system is mounted: by someone, since the run unmounts its own.
pub(super) fn mounted_elsewhere(roots: &Roots, node: &Path, run: &Run) -> Option<String> {
    let wanted = super::file_name(node);
    let is_on = |mount: &Mount| {
        device_of(roots, mount).is_some_and(|name| {
            name == wanted
                || leaves(roots, &name).contains(&wanted)
                // One on several devices is mounted by the name of one of them.
                || mount.fs_type == "btrfs" && lies_on(roots, &name, &run.members)
        })
    };
    let mounts = table(roots);
    let point = mounts.iter().rfind(|mount| is_on(mount))?.point.display();
    Some(format!(
        "its file system is mounted at {point}; unmount it ('umount {point}'), and 'raidlab clean' goes on"
    ))
}

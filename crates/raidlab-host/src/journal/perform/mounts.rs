//! File systems that a run left mounted: unmounted, unless someone has put files into them since.
use super::files::others_in;
use super::whose::lies_on;
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
            run.stay.push(point.to_owned());
            run.kept.extend_from_slice(members);
            return Ok(Undone::Left(format!(
                "{} stays mounted: it holds {what}, which raidlab did not make: someone has put it there since; move that \
                 elsewhere, or remove it, and 'raidlab clean' goes on",
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

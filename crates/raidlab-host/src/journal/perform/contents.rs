//! What is on a member: cleared, unless someone has put it to use since.
use super::files::{self, Use};
use super::mounts::mounted_elsewhere;
use super::{PATIENCE, Run, find};
use crate::claim;
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::Undone;
use crate::label;
use crate::patience::patiently;
use crate::provision::partition::{self, forget};
use raidlab_io::observe::Roots;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;

/// Clears a member as long as all that is on it carries one of these uuids, and a file system of them holds nothing of someone's.
pub(super) fn clear(
    roots: &Roots,
    member: &Identity,
    uuids: &[String],
    run: &mut Run,
    before: &mut dyn FnMut(),
) -> Result<Undone> {
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
    // Before it is held: what is held cannot be mounted. As long as a run lives nobody else has its file systems.
    if run.gone
        && let Some(why) = opened(roots, &path).or_else(|| used(roots, &path, uuids, run))
    {
        run.kept.push(member.clone());
        return Ok(not_cleared(&path.display(), member, &why));
    }
    let cleared = patiently(PATIENCE, || claim::open_exclusively(&path))
        .and_then(|file| clear_open(roots, &file, &path, member, uuids, before));
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

/// Who has a device open by now, in words: a virtual machine that was given it may have its file system mounted, and neither
/// looking into that nor clearing it would be seen there.
pub(super) fn opened(roots: &Roots, path: &Path) -> Option<String> {
    let opener = claim::opener_of(roots, path)?;
    Some(format!("{opener}; end it, and 'raidlab clean' goes on"))
}

/// What someone has put into the file system on a member, in words.
fn used(roots: &Roots, path: &Path, uuids: &[String], run: &Run) -> Option<String> {
    if let Some(mounted) = mounted_elsewhere(roots, path, run) {
        return Some(mounted);
    }
    let further = || files::nodes(roots, &run.members);
    let found = files::look(path, further, uuids);
    // Of a file system on several devices, some of which raidlab has cleared, there is nothing any more that could be someone's.
    if matches!(found, Some(Use::Unknown(_))) && is_rest(roots, path, uuids, run) {
        return None;
    }
    files::put_to_use(found, path, run.mounted)
}

/// Whether a file system on several devices is what raidlab has left of it as it cleared them. Who was killed at that has written
/// down that it was about to: some are clear then, and all that it was on are here, since what one has that is not may be what
/// the others lack.
fn is_rest(roots: &Roots, path: &Path, uuids: &[String], run: &Run) -> bool {
    let devices = files::devices(path);
    if run.partly {
        return devices > 1;
    }
    let nodes = files::nodes(roots, &run.members);
    let all = nodes.len() == run.members.len() && devices == nodes.len() as u64;
    run.clears && all && files::are_partly_clear(&nodes, uuids)
}

pub(super) fn not_cleared(name: &dyn Display, member: &Identity, why: &dyn Display) -> Undone {
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
    before: &mut dyn FnMut(),
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
    before();
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

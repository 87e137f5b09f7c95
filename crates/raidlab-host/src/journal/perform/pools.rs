//! Pools of ZFS that a run left: destroyed, unless someone has put them to use since.
use super::Run;
use super::files::{mounted_apart, others_at, others_in};
use super::whose::find;
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::Undone;
use crate::label::{self, POOL, plain};
use crate::provision::partition;
use crate::tool::{self, Tool};
use raidlab_io::observe::cache::block_size_of;
use raidlab_io::observe::safety::open_for_reading;
use raidlab_io::observe::{Roots, mountinfo};
use std::fs;
use std::path::{Path, PathBuf};

/// Destroys a pool; `taken` says that it was made to the end. What was put to use stays, and its members with it.
pub(super) fn destroy(roots: &Roots, name: &str, run: &mut Run, taken: bool) -> Result<Undone> {
    let is_here = tool::find("zpool").is_some() && is_imported(name);
    let why = match (run.gone, is_here) {
        // As long as a run lives it holds what it made.
        (false, _) => None,
        (true, true) => used(roots, name, taken).map(|(point, why)| {
            run.stay.extend(point);
            why
        }),
        (true, false) => taken
            .then(|| not_imported(roots, name, &run.members))
            .flatten(),
    };
    if let Some(why) = why {
        run.kept.extend_from_slice(&run.members);
        return Ok(Undone::Left(format!("pool {name} is not destroyed: {why}")));
    }
    if !is_here {
        // Half made, or looked into: what is on the members is cleared anyway.
        return Ok(Undone::Nothing);
    }
    Tool::new(["zpool", "destroy", "-f", name]).run()?;
    Ok(Undone::Done(format!("destroyed pool {name}")))
}

fn is_imported(name: &str) -> bool {
    let list = Tool::new(["zpool", "list", "-H", "-o", "name", name]);
    list.run().is_ok()
}

/// What someone has made of an imported pool, in words, and where it is mounted.
fn used(roots: &Roots, name: &str, taken: bool) -> Option<(Option<PathBuf>, String)> {
    let point = mounted_at(roots, name);
    let (what, remedy) = match inside(name, point.as_deref()) {
        Ok(None) => return None,
        Ok(Some(what)) => (
            format!("it holds {what}, which raidlab did not make: someone has put it there since"),
            "move that elsewhere, or",
        ),
        // Half made it has been nobody's.
        Err(_) if !taken => return None,
        Err(why) => (
            format!(
                "it cannot be looked into ({why}), so that what was put there since is not known"
            ),
            "have it mounted, or",
        ),
    };
    let why = format!(
        "{what}; {remedy}, if nothing of it is wanted, 'zpool destroy {name}', and 'raidlab clean' goes on"
    );
    Some((point, why))
}

/// What is in a pool that raidlab did not make: other file systems, volumes and snapshots, and files at the root of its own.
fn inside(name: &str, point: Option<&Path>) -> Result<Option<String>> {
    let words = ["zfs", "list", "-H", "-r", "-t", "all", "-o", "name", name];
    let listed = Tool::new(words).run()?.out;
    if let Some(other) = listed.lines().find(|line| *line != name) {
        return Ok(Some(format!("'{other}'")));
    }
    let found = match point {
        Some(point) => others_in(point),
        None => {
            mounted_apart(Path::new(name), "zfs", &[], false).and_then(|mount| others_at(&mount))
        }
    };
    found.map_err(HostError::call("look into", Path::new(name)))
}

fn mounted_at(roots: &Roots, name: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(roots.proc.join("self/mountinfo")).ok()?;
    let mounts = mountinfo::parse(&text).ok()?;
    let ours = |mount: &&mountinfo::Mount| mount.fs_type == "zfs" && mount.source == name;
    Some(mounts.iter().rfind(ours)?.point.clone())
}

/// A pool that was made and is not imported: after a boot, or someone has exported it and may have had it in use before. It is
/// imported to be looked into, and written nothing to.
fn not_imported(roots: &Roots, name: &str, members: &[Identity]) -> Option<String> {
    let member = members
        .iter()
        .find_map(|member| label_on(roots, name, member))?;
    let import = "zpool import -N -o readonly=on -o cachefile=none";
    let words = import.split(' ').chain([name]);
    let imported = Tool::new(words).run();
    let why = match imported {
        Err(why) => why.to_string(),
        Ok(_) => {
            let found = used(roots, name, true);
            // Whether or not: it is not to be in use when its members are cleared.
            let exported = Tool::new(["zpool", "export", name]).run();
            match (found, exported) {
                (Some((_, why)), _) => return Some(why),
                (None, Ok(_)) => return None,
                (None, Err(why)) => why.to_string(),
            }
        }
    };
    let member = member.display();
    Some(format!(
        "it is not imported, and what was put there since is not known ({why}); 'zpool import {name}' has it here again, so \
         that 'raidlab clean' can look; if nothing of it is wanted, 'zpool labelclear -f {member}'"
    ))
}

/// The partition of a member that carries a label of this pool.
fn label_on(roots: &Roots, name: &str, member: &Identity) -> Option<PathBuf> {
    let uuid = plain(name.strip_prefix(POOL)?);
    let path = find(roots, member)?;
    let file = open_for_reading(&path).ok()?;
    let size = block_size_of(&file).ok()?;
    let extent = partition::extent(&file, size).ok()??;
    let labels = label::read_partition(&file, extent, &path).ok()?;
    let found = labels
        .iter()
        .any(|label| label.is_one_of(std::slice::from_ref(&uuid)));
    found.then(|| PathBuf::from(partition::node(&path.display().to_string())))
}

//! Arrays of md that a run left: stopped, unless someone has put them to use since.
use super::contents::opened;
use super::files;
use super::mounts::mounted_elsewhere;
use super::whose::{find, lies_on, not_ours, of_others};
use super::{PATIENCE, Run, STEP};
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::Undone;
use crate::label::{self, Label};
use crate::patience::patiently;
use crate::sysfs;
use crate::tool::Tool;
use raidlab_io::observe::Roots;
use raidlab_io::observe::cache::block_size_of;
use raidlab_io::observe::safety::open_for_reading;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What lay on an array that was stopped is gone from the kernel's tables within this time.
const GOES: Duration = Duration::from_secs(2);

/// Stops all md arrays that lie on these members alone, the uppermost first; `taken` says that the array that is named was made to the
/// end.
pub(super) fn stop(
    roots: &Roots,
    (members, wanted): (&[Identity], &str),
    run: &Run,
    taken: bool,
) -> Result<Undone> {
    let mut told = Vec::new();
    loop {
        let all = all_on(roots, members);
        let Some(any) = all.first() else { break };
        let Ok(name) = patiently(GOES, || uppermost(roots, &all)) else {
            return Ok(held(roots, any));
        };
        let node = format!("/dev/{name}");
        if let Some(why) = put_to_use(roots, name, run, taken) {
            return Ok(Undone::Left(format!("{node} is not stopped: {why}")));
        }
        let begun = Instant::now();
        while let Err(error) = Tool::new(["mdadm", "--stop", &node]).run() {
            if begun.elapsed() > PATIENCE || matches!(error, HostError::Missing { .. }) {
                return Ok(Undone::Left(format!(
                    "{node} could not be stopped: {error}"
                )));
            }
            std::thread::sleep(STEP);
        }
        told.push(format!("stopped {node}"));
        if told.len() > 64 {
            return Ok(Undone::Left(format!(
                "{wanted} comes back when it is stopped"
            )));
        }
    }
    if let Some(other) = not_ours(roots, members, wanted) {
        return Ok(Undone::Left(format!(
            "/dev/{wanted} is not stopped: it lies on {other}, too, which is no member that raidlab knows; if it is not yours, \
             'mdadm --stop /dev/{wanted}' stops it"
        )));
    }
    if !told.is_empty() {
        return Ok(Undone::Done(told.join(", ")));
    }
    let by_this = |member| run.stopped.contains(member);
    if run.gone && taken && !members.iter().any(by_this) {
        return Ok(not_running(roots, (members, wanted), run));
    }
    Ok(Undone::Nothing)
}

/// The arrays that lie on these members alone.
fn all_on(roots: &Roots, members: &[Identity]) -> Vec<String> {
    let mut arrays: Vec<String> = sysfs::names(&roots.sys.join("block"))
        .into_iter()
        .filter(|name| roots.block(name).join("md").is_dir())
        .filter(|name| !sysfs::names(&roots.block(name).join("slaves")).is_empty())
        .filter(|name| lies_on(roots, name, members))
        .collect();
    // Volumes go before the container that has their metadata.
    arrays.sort_by_key(|name| is_container(roots, name));
    arrays
}

fn holders(roots: &Roots, name: &str) -> Vec<String> {
    sysfs::names(&roots.block(name).join("holders"))
}

fn uppermost<'n>(roots: &Roots, all: &'n [String]) -> Result<&'n String, ()> {
    let mut all = all.iter();
    all.find(|name| holders(roots, name).is_empty()).ok_or(())
}

/// Something that is no array lies on it, such as a volume.
fn held(roots: &Roots, name: &str) -> Undone {
    Undone::Left(format!(
        "/dev/{name} is not stopped: {} lies on it, which raidlab did not make; take that apart first, if it is not wanted",
        holders(roots, name).join(", ")
    ))
}

fn is_container(roots: &Roots, name: &str) -> bool {
    let level = sysfs::text(&roots.block(name).join("md/level"));
    level.is_none_or(|level| level == "container")
}

/// Why an array is somebody's by now, and what can be done, in words.
fn put_to_use(roots: &Roots, name: &str, run: &Run, taken: bool) -> Option<String> {
    let node = format!("/dev/{name}");
    if let Some(label) = of_others(roots, name, &run.uuids) {
        return Some(format!(
            "{label}, whose uuid raidlab did not give: it was made by someone else since; if it is not wanted, \
             'mdadm --stop {node}' stops it"
        ));
    }
    // As long as a run lives it holds what it made, and a disk that died need not be asked. A container has no bytes of its own.
    let level = sysfs::text(&roots.block(name).join("md/level"));
    if !run.gone || level.as_deref() == Some("container") {
        return None;
    }
    let path = roots.dev.join(name);
    if let Some(why) = opened(roots, &path).or_else(|| mounted_elsewhere(roots, &path, run)) {
        return Some(why);
    }
    match foreign(roots, name, &run.uuids) {
        Ok(None) => {
            let found = files::look(&path, Vec::new, &run.uuids);
            files::put_to_use(found, Path::new(&node), run.mounted)
        }
        Ok(found) => found.map(|label| {
            format!(
                "it carries {}, which raidlab did not make: someone has put it to use since; if that is not wanted, \
                 'wipefs -a {node}', and 'raidlab clean' takes the array apart",
                label.what
            )
        }),
        // One that was half made cannot be read, either, and has been nobody's.
        Err(_) if !taken => None,
        Err(why) => Some(format!(
            "{why}, so that what was put on it since is not known; if nothing on it is wanted, 'mdadm --stop {node}' stops it, \
             and 'mdadm --zero-superblock' empties its members"
        )),
    }
}

/// What is on an array that carries none of these uuids; or why that cannot be told.
pub(crate) fn foreign(
    roots: &Roots,
    name: &str,
    uuids: &[String],
) -> Result<Option<Label>, String> {
    let path = roots.dev.join(name);
    let read = || {
        let file = open_for_reading(&path)?;
        let found = Identity::of_open(roots, &file, &path)?;
        let labels = label::read(&file, found.size, &path)?;
        Ok((found, labels))
    };
    let (found, labels) = read().map_err(|error: HostError| error.to_string())?;
    if found.name != name || found.size == 0 {
        return Err("it is not active".to_owned());
    }
    let mut labels = labels.into_iter();
    Ok(labels.find(|label| !label.is_one_of(uuids)))
}

/// An array that was made and is not there: whoever stopped it, or did not start it again after a boot, may have had it in use before.
/// The members alone do not tell what is on it.
fn not_running(roots: &Roots, (members, wanted): (&[Identity], &str), run: &Run) -> Undone {
    let of_run = |path: PathBuf| {
        let file = open_for_reading(&path).ok()?;
        let labels = label::read(&file, block_size_of(&file).ok()?, &path).ok()?;
        let mut labels = labels.iter().filter(|label| label.is_of_array());
        let label = labels.find(|label| label.is_one_of(&run.uuids));
        label.map(|_| path.display().to_string())
    };
    let found = members.iter().filter_map(|member| find(roots, member));
    let nodes: Vec<String> = found.filter_map(of_run).collect();
    if nodes.is_empty() {
        return Undone::Nothing;
    }
    let nodes = nodes.join(" ");
    Undone::Left(format!(
        "/dev/{wanted} is not running, and it was not raidlab that stopped it: what was put on it since is not known; \
         'mdadm --assemble /dev/{wanted} {nodes}' has it running again, so that 'raidlab clean' can look; if nothing on it is \
         wanted, 'mdadm --zero-superblock {nodes}'"
    ))
}

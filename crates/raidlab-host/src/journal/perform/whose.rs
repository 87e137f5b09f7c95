//! Which devices are the members, and what lies on them alone.
use crate::identity::Identity;
use crate::label::{self, Label};
use crate::sysfs;
use raidlab_io::observe::Roots;
use raidlab_io::observe::cache::block_size_of;
use raidlab_io::observe::safety::open_for_reading;
use raidlab_io::observe::stack::DeviceKind;
use std::path::PathBuf;

/// The lowest devices below one, by kernel name.
pub(super) fn leaves(roots: &Roots, name: &str) -> Vec<String> {
    let (mut leaves, mut todo, mut seen) = (Vec::new(), vec![name.to_owned()], Vec::new());
    while let Some(device) = todo.pop() {
        if seen.contains(&device) {
            continue;
        }
        seen.push(device.clone());
        let below = sysfs::names(&roots.block(&device).join("slaves"));
        if below.is_empty() {
            leaves.push(device);
        } else {
            todo.extend(below);
        }
    }
    leaves
}

/// Whether a device lies on these members, or on their partitions, alone.
pub(super) fn lies_on(roots: &Roots, name: &str, members: &[Identity]) -> bool {
    let there = |leaf: &str| roots.block(leaf).exists();
    let ours = |leaf: &str| is_one_of(roots, leaf, members);
    are_ours(&leaves(roots, name), there, ours)
}

/// Whether all that is there is ours, and something is. A member that died and has gone altogether is still named by the
/// array that it was in, and is nobody's any more: without it the array would never be taken apart.
pub(super) fn are_ours(
    leaves: &[String],
    there: impl Fn(&str) -> bool,
    ours: impl Fn(&str) -> bool,
) -> bool {
    let mut left = leaves.iter().filter(|leaf| there(leaf)).peekable();
    left.peek().is_some() && left.all(|leaf| ours(leaf))
}

pub(super) fn is_one_of(roots: &Roots, name: &str, members: &[Identity]) -> bool {
    let Some(found) = identity_of(roots, name) else {
        return false;
    };
    if members.iter().any(|member| found.is_same_device(member)) {
        return true;
    }
    let record = crate::identity::record_of(roots, name);
    record.is_ok_and(|record| {
        record.kind == DeviceKind::Partition
            && record
                .below
                .first()
                .is_some_and(|disk| is_one_of(roots, disk, members))
    })
}

pub(super) fn identity_of(roots: &Roots, name: &str) -> Option<Identity> {
    let path = roots.dev.join(name.replace('!', "/"));
    let Ok(file) = open_for_reading(&path) else {
        // A disk that died may still be there, and what lies on it is raidlab's all the same.
        return Identity::in_tables(roots, name);
    };
    let found = Identity::of_open(roots, &file, &path).ok()?;
    (found.name == name).then_some(found)
}

/// What else an array lies on that is on these members, too.
pub(super) fn not_ours(roots: &Roots, members: &[Identity], array: &str) -> Option<String> {
    let is_array = roots.block(array).join("md").is_dir();
    let leaves = leaves(roots, array).into_iter();
    let (ours, others): (Vec<String>, Vec<String>) = leaves
        .filter(|leaf| roots.block(leaf).exists())
        .partition(|leaf| is_one_of(roots, leaf, members));
    let others = others.join(", ");
    (is_array && !ours.is_empty() && !others.is_empty()).then_some(others)
}

/// The label of what an array lies on by which it was made by someone else, in words: raidlab gives its own uuids. Members that cannot be
/// read say nothing.
pub(super) fn of_others(roots: &Roots, array: &str, uuids: &[String]) -> Option<String> {
    let label = |leaf: &String| {
        let path = roots.dev.join(leaf.replace('!', "/"));
        let file = open_for_reading(&path).ok()?;
        let labels = label::read(&file, block_size_of(&file).ok()?, &path).ok()?;
        let mut labels = labels.into_iter().filter(Label::is_of_array);
        let foreign = labels.find(|label| !label.is_one_of(uuids))?;
        Some(format!("{} carries {}", path.display(), foreign.what))
    };
    // An array may lie on arrays that raidlab made, and be none itself.
    let mut below = sysfs::names(&roots.block(array).join("slaves"));
    below.extend(leaves(roots, array));
    below.iter().find_map(label)
}

/// The node of a recorded device, wherever it is now.
pub(super) fn find(roots: &Roots, wanted: &Identity) -> Option<PathBuf> {
    let mut names = roots.block_names();
    // Mostly it is still called the same.
    names.sort_by_key(|name| *name != wanted.name);
    let found = names
        .into_iter()
        .find(|name| identity_of(roots, name).is_some_and(|found| found.is_same_device(wanted)))?;
    Some(roots.dev.join(found.replace('!', "/")))
}

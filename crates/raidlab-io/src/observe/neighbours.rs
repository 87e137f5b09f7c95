//! Who else takes from the devices of a stack: other partitions, other volumes and arrays, loop devices past the page cache.
//!
//! A device below the measured one serves all that lie on it. What a neighbour asks of it is counted by the kernel for the
//! neighbour itself, which is evidence without any guess at what is asked of the disks for one's own: an array amplifies
//! writes, a file system has its metadata, and neither is on the neighbour's account.

use super::resolve::device_stack;
use super::roots::{self, Roots};
use super::stack::{self, DeviceKind, DeviceStack, kind_of};

/// A device that is not in a stack and takes from one that is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Kernel name.
    pub name: String,
    /// The name that a user knows it by: that of a volume.
    pub called: String,
    /// The device of the stack.
    pub on: String,
    /// All that it lies on is in the stack, so that each of its requests was asked of the stack.
    pub wholly: bool,
}

/// The neighbours of a stack as they are now.
pub fn neighbours(roots: &Roots, stack: &DeviceStack) -> Vec<Neighbour> {
    let mut found = loops(roots, stack);
    for device in &stack.devices {
        let holders = roots::names_in(&roots.block(&device.name).join("holders"));
        let parts = stack::partitions(roots, &device.name);
        for name in holders.into_iter().chain(parts) {
            if stack.device(&name).is_some() {
                continue;
            }
            let kind = kind_of(roots, &name);
            let below = roots::names_in(&roots.block(&name).join("slaves"));
            found.push(Neighbour {
                wholly: below.iter().all(|name| stack.device(name).is_some()),
                called: called(&name, &kind),
                on: device.name.clone(),
                name,
            });
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Adds those that have come since, and leaves those that have gone.
pub fn come(known: &mut Vec<Neighbour>, roots: &Roots, stack: &DeviceStack) {
    known.extend(neighbours(roots, stack));
    known.sort();
    known.dedup();
}

fn called(name: &str, kind: &DeviceKind) -> String {
    match kind {
        DeviceKind::Mapper {
            name: Some(called), ..
        } => called.clone(),
        _ => name.to_owned(),
    }
}

/// Loop devices whose files lie on devices of the stack. Only those that go past the page cache: what another is asked for may
/// never come to a disk.
fn loops(roots: &Roots, stack: &DeviceStack) -> Vec<Neighbour> {
    let direct = |name: &String| stack.device(name).is_none() && stack::past_cache(roots, name);
    let mut found = Vec::new();
    for name in roots.block_names().into_iter().filter(direct) {
        let Ok(its) = device_stack(roots, vec![name.clone()]) else {
            continue;
        };
        let below = its.device(&name).map(|device| device.below.clone());
        let below = below.unwrap_or_default();
        let inside = |name: &&String| stack.device(name).is_some();
        if let Some(on) = below.iter().find(inside) {
            found.push(Neighbour {
                wholly: below.iter().all(|name| stack.device(name).is_some()),
                called: name.clone(),
                on: on.clone(),
                name,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::tree::lvm_on_mirror;

    #[test]
    fn other_volumes_and_partitions_at_every_level_are_neighbours() {
        let tree = lvm_on_mirror();
        let place = "pci0000:00/0000:00:1f.2/ata1/host1/target1:0:0/block/sda";
        tree.partition(place, "sda2", "8:2")
            // Another volume of the group, and one that lies on a disk of its own as well.
            .built_on("dm-1", "md0")
            .attribute("dm-1", "dm/name", "vg-other")
            .built_on("dm-2", "md0")
            .built_on("dm-2", "sdc")
            .attribute("dm-2", "dm/name", "vg-wide");
        let stack = device_stack(&tree.roots, vec!["dm-0".to_owned()]).unwrap();
        let told: Vec<String> = neighbours(&tree.roots, &stack)
            .iter()
            .map(|n| format!("{} {} on {}, wholly: {}", n.name, n.called, n.on, n.wholly))
            .collect();
        assert_eq!(
            told,
            [
                "dm-1 vg-other on md0, wholly: true",
                "dm-2 vg-wide on md0, wholly: false",
                "sda2 sda2 on sda, wholly: true",
            ]
        );
        // What lies on the measured device itself shares it, too.
        let stack = device_stack(&tree.roots, vec!["md0".to_owned()]).unwrap();
        let names = neighbours(&tree.roots, &stack).len();
        assert_eq!(names, 4, "dm-0 as well");
    }
}

//! What a device's queue and name tell of how it counts, and of what it makes of what it is asked for.
use super::{DeviceKind, parent_disk};
use crate::observe::roots::{self, Roots};

/// With `iostats` switched off the counters stand still, which must not pass for a cache. Device mapper counted whatever
/// that said, and it said 0, until Linux gave it the switch (6.1 has none of it): there the counters themselves tell.
pub(super) fn counted(roots: &Roots, name: &str, kind: &DeviceKind) -> Option<bool> {
    let owner = match kind {
        DeviceKind::Partition => parent_disk(roots, name)?,
        _ => name.to_owned(),
    };
    let counted = roots::flag(&roots.block(&owner).join("queue/iostats"));
    match kind {
        DeviceKind::Mapper { .. } if counted == Some(false) => {
            let stat = roots::text(&roots.block(name).join("stat")).unwrap_or_default();
            let any = stat.split_ascii_whitespace().any(|number| number != "0");
            any.then_some(true)
        }
        _ => counted,
    }
}

/// Whether a loop device goes past the page cache.
pub(in crate::observe) fn past_cache(roots: &Roots, name: &str) -> bool {
    name.starts_with("loop") && roots::flag(&roots.block(name).join("loop/dio")) == Some(true)
}

/// See [`carries`](super::StackDevice::carries): by what its uuid says of who made it and for what. LVM gives the uuid of a volume a suffix when it
/// is a part of another one, and builds mirrors, caches, snapshots and thin volumes on such parts.
pub(super) fn carries(roots: &Roots, name: &str, kind: &DeviceKind) -> bool {
    let uuid = |name: &str| roots::text(&roots.block(name).join("dm/uuid")).unwrap_or_default();
    let DeviceKind::Mapper { .. } = kind else {
        return false;
    };
    let own = uuid(name);
    let below = roots::names_in(&roots.block(name).join("slaves"));
    let below: Vec<String> = below.iter().map(|name| uuid(name)).collect();
    if own.starts_with("LVM-") {
        return !below.iter().any(|uuid| uuid.starts_with("LVM-"));
    }
    // Sectors with checksums are written with a journal beside them.
    let checked = |uuid: &String| {
        ["CRYPT-INTEGRITY", "CRYPT-SUBDEV", "CRYPT-VERITY"]
            .iter()
            .any(|made_for| uuid.starts_with(made_for))
    };
    own.starts_with("CRYPT-") && !checked(&own) && !below.iter().any(checked)
}

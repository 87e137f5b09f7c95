//! What is ZFS's alone: records, and what fits into a pool.
use super::members::Chosen;
use super::place::Hardware;
use super::profile::On;
use super::state::Redundancy;
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::kernel::Kernel;
use crate::read::key::Key;
use crate::read::tree::At;
use crate::setup::{ArrayState, Engine};
use raidlab_core::phase::{Evidence, Phase};
use raidlab_core::profile::Plan;
use raidlab_core::units::{Bytes, MIB};

/// The record where nothing is said (`SPA_OLD_MAXBLOCKSIZE`).
const RECORD: Bytes = Bytes::kib(128);
/// Records that ZFS has (`SPA_MINBLOCKSIZE`, `SPA_MAXBLOCKSIZE`).
const RECORDS: (u64, u64) = (512, 16 * MIB);
/// Of the memory, what may be dirty at a time (`zfs_dirty_data_max_percent`, a tenth).
const DIRTY: u64 = 10;

/// Whether the members of a pool take its units of allocation: ZFS gives no vdev smaller ones than the logical sectors of its
/// disks. Told when not; an ashift that no pool has is told elsewhere.
pub(super) fn has_units(
    problems: &Problems,
    hardware: &Hardware,
    chosen: &Chosen,
    ashift: Option<&At<u32>>,
) -> bool {
    let Some(ashift) = ashift.filter(|ashift| (9..=16).contains(&ashift.value)) else {
        return true;
    };
    let unit = Bytes(1 << ashift.value);
    let mut disks = chosen.disks.iter().map(|index| &hardware.disks[*index]);
    let Some(disk) = disks.find(|disk| disk.logical_sector() > unit) else {
        return true;
    };
    let sector = disk.logical_sector();
    let message = format!(
        "an ashift of {} is a unit of {unit}, less than the {sector} of a logical sector of {}",
        ashift.value, disk.name
    );
    let help = format!(
        "ZFS has no such pool: use {} or more, or disks that hide their sectors ('sector-logical' of 512B, which they have when nothing is said)",
        sector.0.ilog2()
    );
    problems.wrong(&ashift.at, message, &help);
    false
}

/// The record of a pool's files; `None` when there is no such, which is told.
pub(super) fn record_size(problems: &Problems, view: &View<'_>) -> Option<Bytes> {
    let Some(given) = view.size(Key::RecordSize) else {
        return Some(RECORD);
    };
    let size = given.value.0;
    if size.is_power_of_two() && (RECORDS.0..=RECORDS.1).contains(&size) {
        return Some(given.value);
    }
    let message = format!("ZFS has no records of {}", given.value);
    problems.wrong(&given.at, message, "use a power of two from 512B to 16MiB");
    None
}

/// Bytes of files that fit into a pool; `None` of what is none.
pub(super) fn room(
    redundancy: &Redundancy,
    record: Option<Bytes>,
    kernel: Kernel,
) -> Option<Bytes> {
    match redundancy {
        Redundancy::Pool(pool) => Some(pool.room(record?, kernel >= Kernel::ZFS_0_8)),
        _ => None,
    }
}

/// How much lies in a pool, or an array of btrfs, that rebuilds; `None` when it does not fit there, which is told.
pub(super) fn allocated(
    problems: &Problems,
    view: &View<'_>,
    (engine, state): (Engine, ArrayState),
    room: Option<Bytes>,
) -> Option<Option<Bytes>> {
    let by_use = matches!(engine, Engine::Zfs | Engine::Btrfs);
    let rebuilds = by_use && matches!(state, ArrayState::Rebuilding(_));
    let Some(given) = rebuilds.then(|| view.size(Key::Allocated)).flatten() else {
        return Some(None);
    };
    match room {
        Some(room) if given.value > room => {
            let what = noun(engine);
            let message = format!(
                "'allocated' of {} is more than the {what} has room for: {}",
                given.value,
                whole(room)
            );
            let help = match engine {
                Engine::Btrfs => {
                    "say how much the files take that lie in the array when its new members come"
                }
                _ => {
                    "say how much the files take that lie in the pool when its new members come; labels, whole \
                     metaslabs, pointers to the records and the 32nd that ZFS keeps back are taken off"
                }
            };
            let problem = Diagnostic::new(given.at, message).help(help);
            problems.push(problem.also(view.place(&[Key::Layout]), format!("in this {what}")));
            None
        }
        _ => Some(Some(given.value)),
    }
}

const fn noun(engine: Engine) -> &'static str {
    match engine {
        Engine::Btrfs => "array",
        _ => "pool",
    }
}

/// Tells when the files of the profile do not fit beside those that lie in the pool, or the array of btrfs. What is written anew needs
/// room before the old is free: as much as may be dirty, and no more than there is.
pub(super) fn fits(problems: &Problems, view: &View<'_>, on: &On<'_>, plan: &Plan) -> bool {
    let Some(room) = on.room.filter(|_| on.filesystem.is_some()) else {
        return true;
    };
    let all = on.array.allocated;
    let beside = all.map_or(0, |all| plan.filler(Some(all)).0);
    let writes = |phase: &Phase| phase.evidence == Evidence::WritesReachDevice;
    let anew = if plan.phases.iter().any(writes) {
        plan.space_needed.0.min(on.host.memory.0 / DIRTY)
    } else {
        0
    };
    let wanted = beside
        .saturating_add(plan.space_needed.0)
        .saturating_add(anew);
    if wanted <= room.0 {
        return true;
    }
    let (at, lies) = match view.bound(Key::Allocated) {
        Some(bound) if beside > 0 => (
            bound.at.clone(),
            format!("{} of other files, ", Bytes(beside)),
        ),
        _ => (view.place(&[Key::Profile]), String::new()),
    };
    let what = noun(on.array.engine);
    let message = format!(
        "the {what} has room for {}, and here are to be {lies}the profile's {}{}",
        whole(room),
        plan.space_needed,
        match anew {
            0 => String::new(),
            anew => format!(" and {} of it anew before the old is free", Bytes(anew)),
        }
    );
    let problem =
        Diagnostic::new(at, message).help("have less in it, smaller files, or larger members");
    problems.push(problem.also(view.place(&[Key::Layout]), format!("in this {what}")));
    false
}

/// A size of which no more than a whole MiB is promised, exactly, for what is asked for may be told the same when rounded.
fn whole(room: Bytes) -> String {
    let mib = room.0 / MIB;
    format!("{} ({mib} MiB)", Bytes(mib * MIB))
}

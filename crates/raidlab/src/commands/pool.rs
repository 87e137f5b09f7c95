//! `raidlab layout` of ZFS pools: they have no fixed places, but what they hold and survive, and what blocks take of them.
use super::{layout, print_folded, print_json};
use crate::args::LayoutArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use raidlab_layout::rebuild::rebuilds_of_pool;
use raidlab_layout::spec::Geometry;
use raidlab_layout::{POOLS, Pool, PoolSpec, SpecError, Vdev, VdevKind, describe};
use serde_json::json;
use std::fmt::Write as _;

/// Blocks whose room is told: from a small file to the largest record that needs no tunable.
const BLOCKS: [Bytes; 6] = [
    Bytes::kib(4),
    Bytes::kib(8),
    Bytes::kib(16),
    Bytes::kib(64),
    Bytes::kib(128),
    Bytes::kib(1024),
];

/// `ashift` when nothing is said: sectors of 4 KiB.
const ASHIFT: u32 = 12;

/// Whether a level is one of ZFS.
pub(super) fn is_of_zfs(level: &str) -> bool {
    let level = level.trim().to_ascii_lowercase();
    level.starts_with("zfs") || level.starts_with("raidz")
}

pub(super) fn run(args: &LayoutArgs) -> Result<Outcome, Failure> {
    let bad = |error: &dyn std::error::Error| Failure::from_error(BAD_REQUEST, error);
    let spec: PoolSpec = args.level.parse().map_err(|error| match error {
        SpecError::Zfs(level) => Failure::bad_request(format!("'{level}' is no level of ZFS"))
            .remedy(format!(
                "there are {POOLS}, and pools of several such as 'raidz1 2x3'"
            )),
        error => bad(&error),
    })?;
    if args.chunk.is_some() {
        return Err(Failure::bad_request(format!(
            "'{}' has no chunk: ZFS spreads each block over the disks by itself",
            args.level
        ))
        .remedy("leave --chunk out; the unit of allocation is --ashift"));
    }
    if args.sector.is_some() {
        return Err(Failure::bad_request(format!(
            "'{}' has no fixed places: ZFS puts each block where it finds room",
            args.level
        ))
        .remedy("leave --sector out; 'zdb -bbbb' tells where the blocks of a real pool are"));
    }
    // One more than the least of RAID-Z, which is a mirror.
    let telling = match spec.kind {
        VdevKind::Disk | VdevKind::Mirror => 2,
        VdevKind::Raidz(parity) => parity + 2,
    };
    let members = layout::members(args, spec.shape_members(), telling)?;
    // As many members as any array may have.
    Geometry::equal(members, args.member_size[0], layout::CHUNK).map_err(|error| bad(&error))?;
    let sizes: Vec<Bytes> = layout::sizes(args, members).collect();
    // More than that is no size anywhere here.
    let together = sizes
        .iter()
        .try_fold(0_u64, |sum, size| sum.checked_add(size.0));
    let Some(raw) = together.filter(|bytes| *bytes <= i64::MAX as u64) else {
        let message = "the members together have more than 8 EiB: use smaller members";
        return Err(Failure::bad_request(message));
    };
    let ashift = args.ashift.unwrap_or(ASHIFT);
    let pool = spec.build(&sizes, ashift).map_err(|error| bad(&error))?;
    layout::say(args, layout::told_for(args, spec.shape_members(), members));
    if args.json {
        let blocks =
            BLOCKS.map(|block| json!({"bytes": block.0, "taken_bytes": taken(&pool, block).0}));
        print_json(&json!({
            "layout": spec.to_string(),
            "members": members,
            "ashift": ashift,
            "capacity_bytes": pool.capacity().0,
            "tolerance": describe::tolerance_of_pool(&pool),
            "survives": layout::survives(&pool.tolerance()),
            "rebuilds": layout::of_rebuilds(args, &rebuilds_of_pool(&pool)),
            "blocks": blocks,
        }))?;
    } else {
        print_folded(&text(args, Bytes(raw), ashift, (&spec, &pool)))?;
    }
    Ok(Outcome::Done)
}

fn text(args: &LayoutArgs, raw: Bytes, ashift: u32, (spec, pool): (&PoolSpec, &Pool)) -> String {
    let mut out = format!(
        "{spec}, {}, ashift {}\ncapacity: {} in blocks of 128 KiB, {:.1} % of {raw}; labels and ZFS's reserve are not taken off\n",
        count(pool.members(), "member"),
        ashift,
        pool.capacity(),
        100.0 * pool.capacity().0 as f64 / raw.0 as f64,
    );
    for line in describe::tolerance_of_pool(pool) {
        let _ = writeln!(out, "failures: {line}");
    }
    for line in layout::told(args, &rebuilds_of_pool(pool)) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("\na block of   takes of the disks   of that its data\n");
    for block in BLOCKS {
        let taken = taken(pool, block);
        let share = 100.0 * block.0 as f64 / taken.0 as f64;
        let (block, taken) = (block.to_string(), taken.to_string());
        let _ = writeln!(out, "{block:>10}   {taken:>18}   {share:>14.1} %");
    }
    out
}

/// Bytes of all disks that a block takes: copies, parity and what it is filled up with.
fn taken(pool: &Pool, block: Bytes) -> Bytes {
    let of = |vdev: &Vdev| match vdev {
        Vdev::Mirror(mirror) => mirror.allocated(block).0 * mirror.children() as u64,
        Vdev::Raidz(raidz) => raidz.allocated(block).0,
    };
    Bytes(pool.vdevs().next().map_or(0, of))
}

//! `raidlab layout` of ZFS pools: they have no fixed places, but what they hold and survive, and what blocks take of them.
use super::{layout, print, print_json};
use crate::args::LayoutArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use raidlab_layout::spec::Geometry;
use raidlab_layout::{Pool, PoolSpec, Vdev, VdevKind};
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
    let spec: PoolSpec = args.level.parse().map_err(|error| bad(&error))?;
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
    let members = match (spec.shape_members(), args.members) {
        (Some(shape), Some(given)) if shape != given as usize => {
            let message = format!(
                "'{}' has {}, not {given}",
                args.level,
                count(shape, "member")
            );
            return Err(Failure::bad_request(message));
        }
        (Some(shape), _) => shape,
        (None, Some(given)) => given as usize,
        (None, None) => match spec.kind {
            VdevKind::Mirror => 2,
            VdevKind::Raidz(parity) => parity + 1,
        },
    };
    // As many members as any array may have.
    Geometry::equal(members, args.member_size, layout::CHUNK).map_err(|error| bad(&error))?;
    // More than that is no size anywhere here.
    let together = args.member_size.0.checked_mul(members as u64);
    if together.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let message = "the members together have more than 8 EiB: use smaller members";
        return Err(Failure::bad_request(message));
    }
    let ashift = args.ashift.unwrap_or(ASHIFT);
    let pool = spec
        .build(&vec![args.member_size; members], ashift)
        .map_err(|error| bad(&error))?;
    if args.json {
        let blocks =
            BLOCKS.map(|block| json!({"bytes": block.0, "taken_bytes": taken(&pool, block).0}));
        print_json(&json!({
            "layout": spec.to_string(),
            "members": members,
            "ashift": ashift,
            "capacity_bytes": pool.capacity().0,
            "tolerance": tolerance(&pool),
            "blocks": blocks,
        }))?;
    } else {
        print(&text(args, ashift, &spec, &pool))?;
    }
    Ok(Outcome::Done)
}

fn text(args: &LayoutArgs, ashift: u32, spec: &PoolSpec, pool: &Pool) -> String {
    let raw = Bytes(args.member_size.0.saturating_mul(pool.members() as u64));
    let mut out = format!(
        "{spec}, {}, ashift {}\ncapacity: {} in blocks of 128 KiB, {:.1} % of {raw}; labels and ZFS's reserve are not taken off\n",
        count(pool.members(), "member"),
        ashift,
        pool.capacity(),
        100.0 * pool.capacity().0 as f64 / raw.0 as f64,
    );
    for line in tolerance(pool) {
        let _ = writeln!(out, "failures: {line}");
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

fn tolerance(pool: &Pool) -> Vec<String> {
    let sure = pool.guaranteed();
    let plural = if sure == 1 { "" } else { "s" };
    let mut lines = vec![match sure {
        0 => "survives no failure".to_owned(),
        _ => format!("survives any {sure} failure{plural}"),
    }];
    if let Some(share) = pool.second_failures().filter(|_| sure == 1) {
        lines.push(if share > 0.0 {
            format!("survives {:.1} % of second failures", 100.0 * share)
        } else {
            "lost with any 2 failures".to_owned()
        });
    }
    lines
}

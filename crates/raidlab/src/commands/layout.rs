//! `raidlab layout`.
use super::{pool, print, print_json};
use crate::args::LayoutArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use raidlab_core::units::{Bytes, Lba};
use raidlab_core::words::count;
use raidlab_layout::spec::{Geometry, Spec};
use raidlab_layout::{Layout, describe};
use serde_json::json;

/// The chunk when nothing is said.
pub(super) const CHUNK: Bytes = Bytes::kib(64);

/// Rows of chunks that are drawn.
const ROWS: usize = 6;

pub(crate) fn run(args: &LayoutArgs) -> Result<Outcome, Failure> {
    if pool::is_of_zfs(&args.level) {
        return pool::run(args);
    }
    let bad = |error: &dyn std::error::Error| Failure::from_error(BAD_REQUEST, error);
    let spec: Spec = args.level.parse().map_err(|error| bad(&error))?;
    if args.ashift.is_some() {
        return Err(Failure::bad_request(format!(
            "--ashift is of ZFS, and '{}' is no level of ZFS",
            args.level
        ))
        .remedy("leave --ashift out, or draw a pool such as raidz1; the unit of other arrays is --chunk"));
    }
    let members = match (spec.shape_members(), args.members) {
        (Some(shape), Some(given)) if shape != given as usize => {
            return Err(Failure::bad_request(format!(
                "'{}' has {}, not {given}",
                args.level,
                count(shape, "member")
            )));
        }
        (Some(shape), _) => shape,
        (None, Some(given)) => given as usize,
        (None, None) => spec.least_members(),
    };
    let geometry = Geometry::equal(members, args.member_size, args.chunk.unwrap_or(CHUNK))
        .map_err(|error| bad(&error))?;
    let layout = spec.build(&geometry).map_err(|error| bad(&error))?;
    let place = args
        .sector
        .map(|sector| place(&layout, sector))
        .transpose()?;
    if args.json {
        print_json(&json!({
            "layout": describe::name(&layout),
            "members": layout.members(),
            "capacity_bytes": layout.capacity().to_bytes(),
            "tolerance": describe::tolerance(&layout),
            "sector": place,
        }))?;
    } else {
        let mut lines = describe::describe(&layout, &geometry.sizes, ROWS);
        lines.extend(place.into_iter().flatten());
        print(&(lines.join("\n") + "\n"))?;
    }
    Ok(Outcome::Done)
}

fn place(layout: &Layout, sector: u64) -> Result<Vec<String>, Failure> {
    let capacity = layout.capacity().0;
    if sector >= capacity {
        return Err(Failure::bad_request(format!(
            "there is no sector {sector}: the array has {capacity} sectors"
        )));
    }
    Ok(describe::where_is(layout, Lba(sector)))
}

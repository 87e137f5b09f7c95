//! `raidlab layout`.
use super::{chunks, pool, print_json, print_text};
use crate::args::LayoutArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::{screen, talk};
use raidlab_core::units::{Bytes, Lba, Sectors};
use raidlab_core::words::count;
use raidlab_layout::covered;
use raidlab_layout::rebuild::{self, Rebuild};
use raidlab_layout::spec::{Geometry, Spec};
use raidlab_layout::{Layout, POOLS, SpecError, Tolerance, describe};
use serde_json::json;

/// The chunk when nothing is said.
pub(super) const CHUNK: Bytes = Bytes::kib(64);

/// Rows of chunks that are drawn.
const ROWS: usize = 6;

pub(crate) fn run(args: &LayoutArgs) -> Result<Outcome, Failure> {
    if let Some(shape) = &args.shape {
        // 'raid50 2x3' without its quotes: two words of the shell.
        return run(&LayoutArgs {
            level: format!("{} {shape}", args.level),
            shape: None,
            ..args.clone()
        });
    }
    if pool::is_of_zfs(&args.level) {
        return pool::run(args);
    }
    if chunks::is_of_btrfs(&args.level) {
        return chunks::run(args);
    }
    let bad = |error: &dyn std::error::Error| Failure::from_error(BAD_REQUEST, error);
    let (spec, drawn_as) = spec(args)?;
    if args.ashift.is_some() {
        return Err(Failure::bad_request(format!(
            "--ashift is of ZFS, and '{}' is no level of ZFS",
            args.level
        ))
        .remedy("leave --ashift out, or draw a pool such as raidz1; the unit of other arrays is --chunk"));
    }
    let members = members(args, spec.shape_members(), spec.telling_members())?;
    let chunk = args.chunk.unwrap_or(CHUNK);
    let mut geometry =
        Geometry::equal(members, args.member_size[0], chunk).map_err(|error| bad(&error))?;
    geometry.sizes = sizes(args, members).map(Bytes::to_sectors).collect();
    let layout = spec.build(&geometry).map_err(|error| bad(&error))?;
    if args.chunk.is_some() && !has_chunk(&layout) {
        return Err(Failure::bad_request(format!(
            "'{}' has no chunk: nothing is dealt round its members",
            args.level
        ))
        .remedy("leave --chunk out"));
    }
    let sector = args
        .sector
        .map(|sector| exists(&layout, sector))
        .transpose()?;
    let place = sector.map(|sector| describe::where_is(&layout, sector));
    let rebuilds = rebuild::rebuilds(&layout);
    say(
        args,
        drawn_as.or_else(|| told_for(args, spec.shape_members(), members)),
    );
    if args.json {
        print_json(&json!({
            "layout": describe::name(&layout),
            "members": layout.members(),
            "chunk_bytes": layout.chunk().map(Sectors::to_bytes),
            "capacity_bytes": layout.capacity().to_bytes(),
            "tolerance": describe::tolerance(&layout),
            "survives": survives(&layout.tolerance()),
            "rebuilds": of_rebuilds(args, &rebuilds),
            "sector": place,
            "places": sector.map(|sector| places(&layout, sector)),
        }))?;
    } else {
        let mut lines = describe::describe(&layout, &geometry.sizes, ROWS);
        // Before the drawing, and the empty line that it stands behind.
        let drawing = lines.iter().position(String::is_empty);
        let mut drawn = lines.split_off(drawing.unwrap_or(lines.len()));
        lines.extend(told(args, &rebuilds));
        drawn.extend(place.into_iter().flatten());
        // What is drawn cannot be folded.
        let words = screen::folded(&(lines.join("\n") + "\n"), screen::width());
        print_text(&(words + &drawn.join("\n") + "\n"))?;
    }
    Ok(Outcome::Done)
}

/// The level. One of arrays has a shape to be drawn in when nobody says how many members there are, and what is to be said of that.
fn spec(args: &LayoutArgs) -> Result<(Spec, Option<String>), Failure> {
    let bad = |error: &SpecError| Failure::from_error(BAD_REQUEST, error);
    match args.level.parse() {
        Ok(spec) => Ok((spec, None)),
        Err(SpecError::NoShape(_)) if args.members.is_none() && args.member_size.len() == 1 => {
            let spec = Spec::with_telling_shape(&args.level).map_err(|error| bad(&error))?;
            let drawn_as = spec.shape().map(|(groups, each)| {
                format!(
                    "no shape is given: drawn as '{} {groups}x{each}', groups x members of each",
                    args.level
                )
            });
            Ok((spec, drawn_as))
        }
        Err(error @ SpecError::Level { .. }) => Err(bad(&error).remedy(format!(
            "levels of ZFS: {POOLS}, and pools of several such as 'raidz1 2x3'; of btrfs: {}",
            chunks::levels()
        ))),
        Err(SpecError::NotNested(level)) => Err(Failure::bad_request(format!(
            "{level} is not nested"
        ))
        .remedy(format!(
            "give the number of members apart: raidlab layout {level} -n 4"
        ))),
        Err(error) => Err(bad(&error)),
    }
}

/// What is to be said when it was nobody's choice how many members there are.
pub(super) fn told_for(args: &LayoutArgs, shape: Option<usize>, members: usize) -> Option<String> {
    let chosen = shape.is_some() || args.members.is_some() || args.member_size.len() > 1;
    let note =
        format!("no number of members is given: told for {members}; -n (--members) takes another");
    (!chosen).then_some(note)
}

/// Says it, once nothing is wrong with what was asked for. JSON has the number and the shape.
pub(super) fn say(args: &LayoutArgs, note: Option<String>) {
    if let (Some(note), false) = (note, args.json) {
        talk::note(&note);
    }
}

/// How many members: what the shape, `--members` or the sizes say, else as many as show what the level does; they must agree.
pub(super) fn members(
    args: &LayoutArgs,
    shape: Option<usize>,
    telling: usize,
) -> Result<usize, Failure> {
    let given = args.members.map(|members| members as usize);
    if let (Some(shape), Some(given)) = (shape, given)
        && shape != given
    {
        return Err(Failure::bad_request(format!(
            "'{}' has {}, not {given}",
            args.level,
            count(shape, "member")
        )));
    }
    let sizes = args.member_size.len();
    match shape.or(given) {
        members if sizes == 1 => Ok(members.unwrap_or(telling)),
        Some(members) if members != sizes => Err(Failure::bad_request(format!(
            "{} for {}",
            count(sizes, "size"),
            count(members, "member")
        ))
        .remedy("give --member-size one size for all, or one for each")),
        _ => Ok(sizes),
    }
}

/// The size of each of so many members.
pub(super) fn sizes(args: &LayoutArgs, members: usize) -> impl Iterator<Item = Bytes> {
    args.member_size.iter().copied().cycle().take(members)
}

/// Whether anything of it is dealt round in chunks.
fn has_chunk(layout: &Layout) -> bool {
    match layout {
        Layout::Linear(_) | Layout::Raid1(_) => false,
        Layout::Nested(nested) => has_chunk(nested.outer()) || nested.inner().iter().any(has_chunk),
        _ => true,
    }
}

/// What rebuilds read, and with `--read-errors` how likely each meets a sector that cannot be read.
pub(super) fn of_rebuilds(args: &LayoutArgs, rebuilds: &[Rebuild]) -> Vec<serde_json::Value> {
    let bits = args.read_errors.as_ref().map(|errors| errors.bits);
    let of = |rebuild: &Rebuild| {
        json!({
            "failed": rebuild.failed,
            "reads_bytes": rebuild.reads.0,
            "made_good": rebuild.made_good,
            "meets_unreadable": bits.map(|bits| rebuild.meets_unreadable(bits)),
        })
    };
    rebuilds.iter().map(of).collect()
}

/// The same in words; nothing without `--read-errors`.
pub(super) fn told(args: &LayoutArgs, rebuilds: &[Rebuild]) -> Vec<String> {
    let Some(errors) = &args.read_errors else {
        return Vec::new();
    };
    if rebuilds.is_empty() {
        return vec![
            "rebuild: there is none, for nothing is left to make a failed member from".into(),
        ];
    }
    let lines = rebuild::told(rebuilds, errors.bits, &errors.stated);
    lines
        .into_iter()
        .map(|line| format!("rebuild: {line}"))
        .collect()
}

/// The array sector, when there is one of that number.
fn exists(layout: &Layout, sector: u64) -> Result<Lba, Failure> {
    let capacity = layout.capacity().0;
    if sector >= capacity {
        return Err(Failure::bad_request(format!(
            "there is no sector {sector}: the array has {capacity} sectors"
        )));
    }
    Ok(Lba(sector))
}

/// What is survived, for scripts: so many failures in any case, and of more of them so many patterns of all. Numbers that JSON's readers
/// cannot hold are left out.
pub(super) fn survives(tolerance: &Tolerance) -> serde_json::Value {
    let (any, most) = (tolerance.guaranteed(), tolerance.best_case());
    let number = |number: u128| u64::try_from(number).ok();
    let by_luck = (any + 1..=most).map(|failures| {
        let (survived, of) = (tolerance.survived(failures), tolerance.patterns(failures));
        json!({"failures": failures, "survived": number(survived), "of": number(of), "share": survived as f64 / of as f64})
    });
    json!({"any": any, "at_most": most, "by_luck": by_luck.collect::<Vec<_>>()})
}

/// Where an array sector is, for scripts: its copies, then the parity that covers it.
fn places(layout: &Layout, sector: Lba) -> Vec<serde_json::Value> {
    let copies = layout.locate(sector).unwrap_or_default();
    let data = copies.iter().map(
        |place| json!({"holds": "data", "member": place.member.index(), "sector": place.sector.0}),
    );
    let parity = covered::covering(layout, sector).into_iter().map(|parity| {
        let (kind, place) = (describe::kind(parity.kind), parity.place);
        let mut told = json!({"holds": kind, "member": place.member.index(), "sector": place.sector.0, "stripe": parity.stripe});
        if let Some(level) = parity.outer {
            told["outer"] = level.name().into();
        }
        told
    });
    data.chain(parity).collect()
}

//! Arrays of the kernel's md: mdadm's command lines.
mod level;
mod state;

use self::level::{Level, level};
use self::state::{checks, state};
use super::check::Compared;
use super::plan::{Draft, InitialSync, PlanError};
use super::step::{Node, Step};
use raidlab_core::units::Sectors;
use raidlab_experiment::setup::{Array, ArrayLayout, Bitmap, Metadata};
use raidlab_layout::{Geometry, Layout};

/// Plans the arrays of a cell; returns the uppermost one's number and the layout.
pub(super) fn arrays(draft: &mut Draft<'_>) -> Result<(u32, Layout), PlanError> {
    let array = &draft.setup.array;
    let layout = layout(draft, array)?;
    let nodes: Vec<Node> = (0..draft.members.len()).map(Node::Member).collect();
    let mut numbers = draft.options.arrays.iter().copied();
    let mut next = || {
        let none = || PlanError("no number for an md array is free".to_owned());
        numbers.next().ok_or_else(none)
    };
    let mut made: Vec<Made> = Vec::new();
    let top = match &layout {
        Layout::Nested(nested) => {
            if is_container(draft) {
                let message = "nested arrays cannot be made in BIOS RAID metadata";
                return Err(PlanError(message.to_owned()));
            }
            let mut inner = Vec::new();
            let mut from = 0;
            for part in nested.inner() {
                let on = nodes[from..from + part.members()].to_vec();
                from += part.members();
                let number = next()?;
                made.push(create(draft, part, number, &on)?);
                inner.push(Node::Array(number));
            }
            let number = next()?;
            made.push(create(draft, nested.outer(), number, &inner)?);
            number
        }
        _ if is_container(draft) => {
            let (container, volume) = (next()?, next()?);
            made.push(contained(draft, &layout, container, volume, &nodes)?);
            volume
        }
        _ => {
            let number = next()?;
            made.push(create(draft, &layout, number, &nodes)?);
            number
        }
    };
    state(draft, array, &made)?;
    checks(draft, array, &made)?;
    super::tune::array(draft, top);
    Ok((top, layout))
}

/// An array of the plan.
struct Made {
    number: u32,
    /// The container that it is a volume of.
    container: Option<u32>,
    on: Vec<Node>,
    redundant: bool,
    reads_first: bool,
    compared: Option<Compared>,
}

fn layout(draft: &Draft<'_>, array: &Array) -> Result<Layout, PlanError> {
    let ArrayLayout::Fixed(spec, text) = &array.layout else {
        return Err(PlanError(format!("md makes no {}", array.layout)));
    };
    let sizes = draft.members.iter().map(|member| {
        let size = array
            .member_size
            .map_or(member.identity.size, |size| size.0);
        // What the superblock takes makes no difference to what is asked of the layout here.
        Sectors(size / 512)
    });
    let mut sizes: Vec<Sectors> = sizes.collect();
    if is_container(draft) {
        let least = sizes.iter().min().copied().unwrap_or_default();
        sizes.fill(least);
    }
    let chunk = array
        .chunk
        .map_or(Sectors(1024), |chunk| chunk.to_sectors());
    let geometry = Geometry {
        sizes,
        chunk,
        outer_chunk: array.outer_chunk.map(|chunk| chunk.to_sectors()),
    };
    spec.build(&geometry)
        .map_err(|error| PlanError(format!("{text}: {error}")))
}

fn is_container(draft: &Draft<'_>) -> bool {
    let metadata = draft.setup.array.metadata;
    metadata.is_some_and(Metadata::is_container)
}

fn create(
    draft: &mut Draft<'_>,
    layout: &Layout,
    number: u32,
    on: &[Node],
) -> Result<Made, PlanError> {
    let array = &draft.setup.array;
    let level = level(draft, layout)?;
    let metadata = array.metadata.unwrap_or(Metadata::V1_2);
    let mut words = vec![
        "mdadm".to_owned(),
        "--create".to_owned(),
        format!("/dev/md{number}"),
    ];
    words.push("--run".to_owned());
    words.push(format!("--metadata={metadata}"));
    words.push(format!("--uuid={}", draft.uuid()));
    words.extend(level.options.iter().cloned());
    words.push(format!("--raid-devices={}", on.len()));
    let on_members = on.iter().all(|node| matches!(node, Node::Member(_)));
    size(draft, &level, on_members, &mut words)?;
    if level.redundant {
        let bitmap = array.bitmap.unwrap_or(Bitmap::None);
        words.push(format!("--bitmap={bitmap}"));
        if let Some(chunk) = array.bitmap_chunk {
            words.push(format!("--bitmap-chunk={}K", chunk.0 / 1024));
        }
    }
    clean(draft, &level, &mut words);
    if let [_] = on {
        // mdadm asks back whether an array of one member is meant.
        words.push("--force".to_owned());
    }
    words.extend(on.iter().map(|node| draft.path(node)));
    draft.steps.push(Step::Array {
        words,
        number,
        on: on.to_vec(),
        contained: false,
    });
    Ok(Made {
        number,
        container: None,
        on: on.to_vec(),
        redundant: level.redundant,
        reads_first: level.reads_first,
        compared: level.compared,
    })
}

/// A container with one volume over all of its members.
fn contained(
    draft: &mut Draft<'_>,
    layout: &Layout,
    container: u32,
    volume: u32,
    on: &[Node],
) -> Result<Made, PlanError> {
    let level = level(draft, layout)?;
    let metadata = draft.setup.array.metadata.unwrap_or(Metadata::Imsm);
    let words = |number: u32| {
        let words = ["mdadm", "--create", &format!("/dev/md{number}"), "--run"];
        words.map(str::to_owned).to_vec()
    };
    let mut first = words(container);
    first.push(format!("--metadata={metadata}"));
    first.push(format!("--raid-devices={}", on.len()));
    first.extend(on.iter().map(|node| draft.path(node)));
    draft.steps.push(Step::Array {
        words: first,
        number: container,
        on: on.to_vec(),
        contained: true,
    });
    let mut second = words(volume);
    second.extend(level.options.iter().cloned());
    second.push(format!("--raid-devices={}", on.len()));
    size(draft, &level, true, &mut second)?;
    clean(draft, &level, &mut second);
    // By their names they get their roles in this order; by the container's, in an order of its own.
    second.extend(on.iter().map(|node| draft.path(node)));
    draft.steps.push(Step::Array {
        words: second,
        number: volume,
        on: vec![Node::Array(container)],
        contained: true,
    });
    Ok(Made {
        number: volume,
        container: Some(container),
        on: on.to_vec(),
        redundant: level.redundant,
        reads_first: level.reads_first,
        compared: level.compared,
    })
}

fn size(
    draft: &Draft<'_>,
    level: &Level,
    on_members: bool,
    words: &mut Vec<String>,
) -> Result<(), PlanError> {
    let Some(size) = draft.setup.array.member_size.filter(|_| on_members) else {
        return Ok(());
    };
    if level.sized {
        words.push(format!("--size={}", size.0 / 1024));
        return Ok(());
    }
    if draft
        .members
        .iter()
        .all(|member| member.identity.size == size.0)
    {
        return Ok(());
    }
    Err(PlanError(format!(
        "md takes all of each member of {}: give members of {size}, or leave 'member-size' out",
        draft.setup.array.layout
    )))
}

/// Whether the members are taken to agree. Failed members are computed from the others: parity must be right then,
/// unless all is zero, where it is.
fn clean(draft: &Draft<'_>, level: &Level, words: &mut Vec<String>) {
    let unsynced = draft.setup.array.state.is_unsynced();
    if level.redundant && !synced(draft) && !unsynced {
        words.push("--assume-clean".to_owned());
    }
}

/// Whether the first sync is waited for: when the cell or the machine says so.
fn synced(draft: &Draft<'_>) -> bool {
    draft.setup.array.initial_sync || draft.options.initial_sync == InitialSync::Real
}

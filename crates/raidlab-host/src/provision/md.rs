//! Arrays of the kernel's md: mdadm's command lines.
use super::check::{self, Compared};
use super::plan::{Draft, InitialSync, PlanError};
use super::step::{Node, Step};
use raidlab_core::units::Sectors;
use raidlab_experiment::setup::{Array, ArrayLayout, ArrayState, Bitmap, Metadata};
use raidlab_layout::mirror::Raid10;
use raidlab_layout::parity::{Parity, ParityLevel};
use raidlab_layout::stripe::Raid0;
use raidlab_layout::{Geometry, Layout, Raid0Order};

/// What a level is called by mdadm, with the options that only it has.
struct Level {
    options: Vec<String>,
    /// It can lose members and be made whole again.
    redundant: bool,
    /// Members can be limited to a size.
    sized: bool,
    /// What a check of it compares.
    compared: Option<Compared>,
}

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

fn level(draft: &Draft<'_>, layout: &Layout) -> Result<Level, PlanError> {
    let (options, sized) = match layout {
        Layout::Linear(_) => (vec!["--level=linear".to_owned()], false),
        Layout::Raid0(raid0) => (raid0_options(draft, raid0)?, false),
        Layout::Raid1(_) => (vec!["--level=1".to_owned()], true),
        Layout::Parity(parity) => (parity_options(draft, parity)?, true),
        Layout::Raid10(raid10) => (raid10_options(raid10)?, true),
        _ => return Err(PlanError("mdadm cannot make this layout".to_owned())),
    };
    let compared = Compared::of(layout);
    Ok(Level {
        options,
        redundant: compared.is_some(),
        sized,
        compared,
    })
}

fn chunk_option(chunk: Sectors) -> Result<String, PlanError> {
    if !chunk.0.is_multiple_of(2) {
        let message = "mdadm takes chunks in KiB, and this one is no whole number of them";
        return Err(PlanError(message.to_owned()));
    }
    Ok(format!("--chunk={}", chunk.0 / 2))
}

fn raid0_options(draft: &Draft<'_>, raid0: &Raid0) -> Result<Vec<String>, PlanError> {
    let mut options = vec!["--level=0".to_owned(), chunk_option(raid0.chunk())?];
    let order = match raid0.order() {
        // There the volume has as much of each member, one zone, and mdadm refuses to be told an order.
        _ if is_container(draft) => None,
        Raid0Order::Original => Some("original"),
        // mdadm's own choice is the original one, whatever the kernel; with one zone they are the same.
        Raid0Order::Alternate if raid0.zone_starts().len() > 1 => Some("alternate"),
        Raid0Order::Alternate => None,
    };
    options.extend(order.map(|order| format!("--layout={order}")));
    Ok(options)
}

fn parity_options(draft: &Draft<'_>, parity: &Parity) -> Result<Vec<String>, PlanError> {
    let digit = match parity.level() {
        ParityLevel::Raid4 => 4,
        ParityLevel::Raid5 => 5,
        ParityLevel::Raid6 => 6,
    };
    let mut options = vec![format!("--level={digit}"), chunk_option(parity.chunk())?];
    if digit != 4 {
        options.push(format!("--layout={}", parity.algorithm().name()));
    }
    if digit == 5 && draft.setup.array.state == ArrayState::Resyncing {
        // Without it mdadm makes the last member a spare that is filled, which is a rebuild.
        options.push("--force".to_owned());
    }
    Ok(options)
}

fn raid10_options(raid10: &Raid10) -> Result<Vec<String>, PlanError> {
    let copies = raid10.copies();
    let variant = match (copies.near, copies.far, copies.offset) {
        (near, 1, _) => format!("n{near}"),
        (1, far, false) => format!("f{far}"),
        (1, far, true) => format!("o{far}"),
        _ => {
            let message = "mdadm makes near, far or offset copies, not two kinds at once";
            return Err(PlanError(message.to_owned()));
        }
    };
    let layout = format!("--layout={variant}");
    Ok(vec![
        "--level=10".to_owned(),
        layout,
        chunk_option(raid10.chunk())?,
    ])
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
    let resyncing = draft.setup.array.state == ArrayState::Resyncing;
    if level.redundant && !synced(draft) && !resyncing {
        words.push("--assume-clean".to_owned());
    }
}

/// Whether the first sync is waited for: when the cell or the machine says so.
fn synced(draft: &Draft<'_>) -> bool {
    draft.setup.array.initial_sync || draft.options.initial_sync == InitialSync::Real
}

/// Brings the arrays into the state that the cell asks for.
fn state(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    if array.state == ArrayState::Resyncing {
        return resyncing(draft, array, made);
    }
    if synced(draft) {
        for made in made.iter().filter(|made| made.redundant) {
            draft.steps.push(Step::Sync {
                number: made.number,
            });
        }
    }
    let rebuilding = matches!(array.state, ArrayState::Rebuilding(_));
    if array.metadata == Some(Metadata::Ddf) && rebuilding && !draft.options.adds_to_ddf {
        let message = "no replacement can be put into a DDF container here: mdadm 4.2 reads through a null pointer and \
                       dies when a disk is added to one (mended in 4.3); its degraded arrays can be measured";
        return Err(PlanError(message.to_owned()));
    }
    for (number, node) in fallen_out(array, made)? {
        let container = made.iter().find(|made| made.number == number);
        let container = container.and_then(|made| made.container);
        fail(draft, number, container, &node);
        if rebuilding {
            super::tune::sync_speeds(draft, number);
            replace(draft, number, container, node);
        }
    }
    Ok(())
}

/// The first sync is held back until the phases begin.
fn resyncing(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    if !made.iter().any(|made| made.redundant) {
        return Err(PlanError(format!("{} has nothing to resync", array.layout)));
    }
    for made in made.iter().filter(|made| made.redundant) {
        draft.steps.push(Step::Hold {
            number: made.number,
        });
        super::tune::sync_speeds(draft, made.number);
        draft.start.push(Step::Release {
            number: made.number,
        });
    }
    Ok(())
}

/// What is asked of the arrays after the phases: whether their copies and parity agree.
fn checks(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    let resyncing = array.state == ArrayState::Resyncing;
    // A rebuild has been waited for by then.
    let out = match array.state {
        ArrayState::Degraded(_) => fallen_out(array, made)?,
        _ => Vec::new(),
    };
    for made in made {
        let lost = out.iter().filter(|(number, _)| *number == made.number);
        let (number, lost) = (made.number, lost.count());
        check::array(draft, number, made.compared, lost, resyncing);
    }
    if !made.iter().any(|made| made.redundant) {
        check::nothing_to_compare(draft);
    }
    Ok(())
}

/// What falls out of which array when the members fail that the cell names, each once.
fn fallen_out(array: &Array, made: &[Made]) -> Result<Vec<(u32, Node)>, PlanError> {
    let mut failed: Vec<(u32, Node)> = Vec::new();
    for role in &array.failed {
        let out = fails(made, &Node::Member(usize::from(*role))).ok_or_else(|| {
            PlanError(format!(
                "{} does not survive the loss of member {role}",
                array.layout
            ))
        })?;
        if !failed.contains(&out) {
            failed.push(out);
        }
    }
    Ok(failed)
}

fn fail(draft: &mut Draft<'_>, number: u32, container: Option<u32>, node: &Node) {
    let device = draft.path(node);
    let of = format!("/dev/md{number}");
    let mut words = vec!["mdadm", &of, "--fail", &device];
    if container.is_none() {
        words.extend(["--remove", &device]);
    }
    draft.steps.push(Step::Fail {
        words: words.into_iter().map(str::to_owned).collect(),
        number,
        container,
        node: node.clone(),
    });
}

/// What failed comes back as a blank device when the phases begin.
fn replace(draft: &mut Draft<'_>, number: u32, container: Option<u32>, node: Node) {
    let device = draft.path(&node);
    let clear = ["mdadm", "--zero-superblock", &device];
    let into = format!("/dev/md{}", container.unwrap_or(number));
    let words = ["mdadm", &into, "--add", &device];
    draft.start.push(Step::Replace {
        clear: clear.map(str::to_owned).to_vec(),
        words: words.map(str::to_owned).to_vec(),
        number,
        container,
        node,
    });
}

/// What falls out of which array when a device fails: an inner array without redundancy falls out of the outer one as
/// a whole.
fn fails(made: &[Made], node: &Node) -> Option<(u32, Node)> {
    let owner = made.iter().find(|made| made.on.contains(node))?;
    if owner.redundant {
        return Some((owner.number, node.clone()));
    }
    fails(made, &Node::Array(owner.number))
}

//! The array of a cell: members, layout, chunk, engine, state.
use super::btrfs;
use super::engine::{engine, has_engine};
use super::form::form;
use super::members::{Chosen, choose};
use super::place::Hardware;
use super::sizes;
use super::state::{Redundancy, state};
use super::view::View;
use super::zfs;
use crate::diagnostic::{Diagnostic, Problems};
use crate::kernel::Kernel;
use crate::read::key::{Key, Value};
use crate::read::tree::At;
use crate::setup::{Array, ArrayLayout, ArrayState, Engine, SYNC_SPEED_MIN};
use raidlab_core::units::{Bytes, KIB, Sectors};
use raidlab_layout::btrfs::Takes;
use raidlab_layout::{BtrfsProfile, Dealt, Geometry, LayoutError, MemberSet, SpecError};

/// An array, and what is known of it beside.
pub(super) struct Built {
    pub(super) array: Array,
    /// Of a pool of ZFS, bytes of files that fit; where nobody knows how large the disks are, `None`.
    pub(super) room: Option<Bytes>,
}

/// The array, or nothing when something is wrong with it, which is told.
pub(super) fn array(
    problems: &Problems,
    hardware: &Hardware,
    view: &View<'_>,
    kernel: Kernel,
) -> Option<Built> {
    let layout = layout(problems, hardware, view)?;
    let chosen = choose(problems, hardware, view, &layout.value)?;
    let engine = engine(problems, hardware, view, &layout.value, &chosen)?;
    let there = has_engine(problems, view, kernel, (engine, &layout.value));
    let of_btrfs = (engine == Engine::Btrfs).then(|| layout.value.to_string());
    let members = chosen.disks.len();
    let stripes = of_btrfs.is_none_or(|of| btrfs::stripes(problems, view, kernel, (&of, members)));
    let (sizes, fit) = sizes::sizes(problems, hardware, view, &chosen, engine);
    let chunk = chunk(view, &layout, kernel, engine);
    let outer_chunk = layout.value.is_nested().then(|| view.size(Key::OuterChunk));
    let outer_chunk = outer_chunk.flatten();
    let is_zfs = engine == Engine::Zfs;
    let ashift = is_zfs.then(|| view.count(Key::Ashift));
    let ashift = ashift.map(|a| a.unwrap_or_else(|| At::new(12, layout.at.clone())));
    let has_units = zfs::has_units(problems, hardware, &chosen, ashift.as_ref());
    let parts = Parts {
        layout: &layout,
        sizes: &sizes,
        chunk: chunk.as_ref(),
        outer_chunk: outer_chunk.as_ref(),
        ashift: ashift.as_ref(),
        engine,
        degenerate: kernel >= Kernel::DEGENERATE_STRIPES,
    };
    let built = md_chunks(problems, &parts).and_then(|()| build(problems, view, &parts));
    let is_built = built.is_some();
    // Sizes that are wrong leave alone what else is: the same array with the sizes of its own has it, too.
    let (redundancy, capacity) = built.or_else(|| of_own_sizes(&parts))?;
    let of_state = state(problems, view, &layout, &redundancy);
    let state = of_state.as_ref().map_or(ArrayState::Clean, |of| of.0);
    let form = form(problems, view, &layout.value, (engine, kernel), state);
    let parity = layout.value.level().contains(['4', '5', '6']) && engine == Engine::Md;
    let stripe_cache = parity.then(|| view.count(Key::StripeCache)).flatten();
    let group_threads = match parity {
        true => group_threads(problems, view, kernel),
        false => Some(None),
    };
    let (slow, fast) = sync_speeds(problems, view, engine, state);
    let own = engine == Engine::Controller && state.syncs();
    let rebuild_rate = own.then(|| view.count(Key::RebuildRate)).flatten();
    let smallest = sizes.iter().map(|s| s.0).min().unwrap_or(1).max(1);
    let known = chosen
        .disks
        .iter()
        .all(|i| hardware.disks[*i].capacity.is_some())
        || view.bound(Key::MemberSize).is_some();
    let record_size = match is_zfs {
        true => zfs::record_size(problems, view).map(Some),
        false => Some(None),
    };
    let room = match (engine, state) {
        // A little goes to its metadata.
        (Engine::Btrfs, ArrayState::Rebuilding(_)) => Some(capacity),
        _ => zfs::room(&redundancy, record_size.flatten(), kernel),
    };
    let room = room.filter(|_| known && is_built);
    let allocated = zfs::allocated(problems, view, (engine, state), room);
    // Whatever was wrong has been told by now, all of it.
    there.filter(|()| fit && stripes && is_built && has_units)?;
    let ((state, failed), form) = (of_state?, form?);
    let array = Array {
        engine,
        members: names(hardware, &chosen),
        channels: chosen.channels,
        member_size: view.size(Key::MemberSize).map(|s| s.value),
        member_start: view.size(Key::MemberStart).map(|s| s.value),
        chunk: chunk.map(|c| c.value),
        outer_chunk: outer_chunk.map(|c| c.value),
        state,
        failed,
        capacity: known.then_some(capacity),
        capacity_disks: share(capacity.0, smallest),
        ashift: ashift.map(|a| a.value),
        record_size: record_size?,
        allocated: allocated?,
        metadata: form.metadata,
        bitmap: form.bitmap,
        bitmap_chunk: form.bitmap_chunk,
        initial_sync: initial_sync(view, &layout.value, engine, state),
        stripe_cache: stripe_cache.map(|s| s.value),
        group_threads: group_threads?,
        sync_speed_min: slow,
        sync_speed_max: fast,
        rebuild_rate: rebuild_rate.map(|rate| rate.value),
        layout: layout.value,
    };
    Some(Built { array, room })
}

/// What the rest of an array follows from.
pub(super) const NEEDED: [Key; 6] = [
    Key::Layout,
    Key::Members,
    Key::Channels,
    Key::Engine,
    Key::MemberSize,
    Key::MemberStart,
];

/// Tells chunks that no layout has, whatever else is wrong with the array.
pub(super) fn chunks(problems: &Problems, view: &View<'_>) {
    for key in [Key::Chunk, Key::OuterChunk] {
        let Some(bound) = view.bound(key) else {
            continue;
        };
        if bound.value == Some(Value::Size(Bytes(0))) {
            let message = format!("'{}' of 0 B holds nothing", key.name());
            problems.wrong(
                &bound.at,
                message,
                "write for instance \"512KiB\", md's own choice",
            );
        }
    }
}

/// Chunk of a striped layout: what is given, or what would be taken. That of btrfs is its own.
fn chunk(
    view: &View<'_>,
    layout: &At<ArrayLayout>,
    kernel: Kernel,
    engine: Engine,
) -> Option<At<Bytes>> {
    if !layout.value.uses_chunk() {
        return None;
    }
    let own = match engine {
        Engine::Controller | Engine::Btrfs => Bytes::kib(64),
        _ => kernel.default_chunk(),
    };
    let given = (engine != Engine::Btrfs).then(|| view.size(Key::Chunk));
    Some(
        given
            .flatten()
            .unwrap_or_else(|| At::new(own, layout.at.clone())),
    )
}

/// What mdadm refuses of the chunk of a raid0, which other layouts refuse by themselves (`mdadm.c`: `s.chunk < 8 || (s.chunk&1)`, in
/// sectors).
fn md_chunks(problems: &Problems, parts: &Parts<'_>) -> Option<()> {
    let striped = parts.layout.value.level().contains('0') && parts.engine == Engine::Md;
    let md = |size: Bytes| size >= Bytes::kib(4) && size.0.is_multiple_of(1024);
    for chunk in [parts.chunk, parts.outer_chunk].into_iter().flatten() {
        // What is no whole sectors no layout has.
        let sectors = chunk.value.0 > 0 && chunk.value.0.is_multiple_of(512);
        if striped && sectors && !md(chunk.value) {
            let message = format!(
                "md needs a chunk of at least 4 KiB, in whole KiB, for {}; {} is none",
                parts.layout.value, chunk.value
            );
            let kib = (chunk.value.0.div_ceil(1024)).max(4);
            problems.wrong(&chunk.at, message, &format!("write \"{kib}KiB\""));
            return None;
        }
    }
    Some(())
}

/// Threads beside the array's own; `None` where the kernel has no such, which is told.
fn group_threads(problems: &Problems, view: &View<'_>, kernel: Kernel) -> Option<Option<u32>> {
    let Some(given) = view.count(Key::GroupThreads) else {
        return Some(None);
    };
    if given.value == 0 || kernel >= Kernel::Linux(3, 12, 0) {
        return Some(Some(given.value));
    }
    let message = format!("Linux {kernel} has no 'group-threads': md got them with 3.12");
    problems.wrong(&given.at, message, "use a newer 'kernel', or drop it");
    None
}

/// Whether a new array has been synced; one that is still being synced has not.
fn initial_sync(view: &View<'_>, layout: &ArrayLayout, engine: Engine, state: ArrayState) -> bool {
    let asked = engine == Engine::Md && layout.is_redundant() && !state.is_unsynced();
    let given = asked.then(|| view.flag(Key::InitialSync)).flatten();
    given.is_some_and(|given| given.value)
}

/// Limits of resync and rebuild, where there is one.
fn sync_speeds(
    problems: &Problems,
    view: &View<'_>,
    engine: Engine,
    state: ArrayState,
) -> (Option<u64>, Option<u64>) {
    if engine != Engine::Md || !state.syncs() {
        return (None, None);
    }
    let (slow, fast) = (view.rate(Key::SyncSpeedMin), view.rate(Key::SyncSpeedMax));
    for limit in [&slow, &fast].into_iter().flatten() {
        if limit.value < KIB {
            let message = "md counts the speed of a resync in whole KiB a second";
            problems.wrong(&limit.at, message, "write 1KiB/s or more");
        }
    }
    if slow.is_none()
        && let Some(fast) = fast
            .as_ref()
            .filter(|fast| (KIB..SYNC_SPEED_MIN).contains(&fast.value))
    {
        let message = "'sync-speed-max' is below the 1000 KiB/s that md goes at in any case";
        let help = "give a lower 'sync-speed-min', too";
        problems.wrong(&fast.at, message, help);
    }
    if let (Some(slow), Some(fast)) = (&slow, &fast)
        && slow.value > fast.value
    {
        let message = "'sync-speed-min' is above 'sync-speed-max'";
        let problem = Diagnostic::new(slow.at.clone(), message).help("exchange them");
        problems.push(problem.also(fast.at.clone(), "the most"));
    }
    (slow.map(|s| s.value), fast.map(|s| s.value))
}

fn names(hardware: &Hardware, chosen: &Chosen) -> Vec<String> {
    let name = |i: &usize| hardware.disks[*i].name.clone();
    chosen.disks.iter().map(name).collect()
}

/// Two decimals at the most, the last ones that say something. Capacity lost to rounding down to
/// chunks is none.
pub(crate) fn share(all: u64, one: u64) -> String {
    let hundredths = (u128::from(all) * 100 + u128::from(one) / 2) / u128::from(one);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match rest {
        0 => whole.to_string(),
        rest if rest % 10 == 0 => format!("{whole}.{}", rest / 10),
        rest => format!("{whole}.{rest:02}"),
    }
}

fn layout(problems: &Problems, hardware: &Hardware, view: &View<'_>) -> Option<At<ArrayLayout>> {
    if let Some(layout) = view.layout(Key::Layout) {
        return Some(layout);
    }
    if hardware.disks.len() == 1 {
        return Some(At::new(ArrayLayout::Single, 0..0));
    }
    if problems.misspelt("layout") {
        return None;
    }
    let help = "vary it: layout = [\"raid5\", \"raid10\"] in [factors], or fix it in [array]";
    problems.wrong(
        &view.place(&[Key::Members, Key::Channels, Key::Chunk]),
        "a cell has no layout",
        help,
    );
    None
}

/// What a layout is built from, with the places of what may be wrong.
struct Parts<'p> {
    layout: &'p At<ArrayLayout>,
    sizes: &'p [Bytes],
    chunk: Option<&'p At<Bytes>>,
    outer_chunk: Option<&'p At<Bytes>>,
    ashift: Option<&'p At<u32>>,
    engine: Engine,
    /// Of btrfs: see [`btrfs::capacity`].
    degenerate: bool,
}

fn build(problems: &Problems, view: &View<'_>, parts: &Parts<'_>) -> Option<(Redundancy, Bytes)> {
    match try_build(parts) {
        Ok(built) => Some(built),
        // Told by itself.
        Err(SpecError::Layout(LayoutError::ZeroChunk { .. })) => None,
        Err(error) => {
            problems.push(told(view, parts, &error));
            None
        }
    }
}

/// The array with chunks and sectors as no file says them, on members that are large enough; nothing when it is wrong by itself.
fn of_own_sizes(parts: &Parts<'_>) -> Option<(Redundancy, Bytes)> {
    let sizes = vec![sizes::NOMINAL; parts.sizes.len()];
    try_build(&Parts {
        sizes: &sizes,
        chunk: None,
        outer_chunk: None,
        ashift: None,
        ..*parts
    })
    .ok()
}

fn try_build(parts: &Parts<'_>) -> Result<(Redundancy, Bytes), SpecError> {
    match &parts.layout.value {
        ArrayLayout::Single => {
            let size = parts.sizes.first().copied().unwrap_or(sizes::NOMINAL);
            Ok((Redundancy::None, size))
        }
        ArrayLayout::Zfs(pool) => {
            let ashift = parts.ashift.map_or(12, |a| a.value);
            pool.build(parts.sizes, ashift).map(|pool| {
                let capacity = pool.capacity();
                (Redundancy::Pool(Box::new(pool)), capacity)
            })
        }
        ArrayLayout::Fixed(spec, text) => {
            let members = parts.sizes.len();
            let layout = &parts.layout.value;
            let spare = layout.btrfs_spare();
            let spare = spare.filter(|_| parts.engine == Engine::Btrfs);
            // raid1 and raid10 want as many members as md's.
            let own = spare.filter(|_| layout.is_of_btrfs());
            if let Some(least) = own.map(|spare| spare + 1)
                && members < least
            {
                let instead = (members > 1).then_some("raid1");
                return Err(too_few(text, least, members, instead));
            }
            if let Some(takes) = parity_of_btrfs(parts, text) {
                if members < takes.least {
                    return Err(too_few(text, takes.least, members, None));
                }
                let capacity = btrfs::capacity(text, parts.sizes, parts.degenerate);
                let spare = takes.parities;
                let redundancy = of_chunks(parts, text, spare);
                return Ok((redundancy, capacity.unwrap_or_default()));
            }
            let by_chunks = match parts.engine {
                Engine::Btrfs => btrfs::capacity(text, parts.sizes, parts.degenerate),
                _ => None,
            };
            let sectors = parts.sizes.iter().map(|size| size.to_sectors()).collect();
            fixed(spec, sectors, parts).map(|layout| {
                let capacity = by_chunks.unwrap_or_else(|| layout.capacity().to_bytes());
                // Each chunk has members of its own, so that of more failures none is sure to be survived.
                let redundancy = match spare {
                    Some(spare) => of_chunks(parts, text, spare),
                    None => Redundancy::Layout(Box::new(layout)),
                };
                (redundancy, capacity)
            })
        }
    }
}

/// What btrfs survives.
fn of_chunks(parts: &Parts<'_>, text: &str, spare: usize) -> Redundancy {
    let sizes: Vec<Sectors> = parts.sizes.iter().map(|size| size.to_sectors()).collect();
    let profile = BtrfsProfile::of(text);
    let first = |profile| Dealt::with_first_files(profile, &sizes, parts.degenerate);
    Redundancy::Chunks {
        members: sizes.len(),
        spare,
        first: profile.map_or(MemberSet::EMPTY, first),
    }
}

fn too_few(level: &str, least: usize, given: usize, instead: Option<&'static str>) -> SpecError {
    SpecError::Layout(LayoutError::TooFewMembers {
        level: level.to_owned(),
        least,
        given,
        instead,
    })
}

/// How btrfs takes room for a layout with parity, which wants fewer members than md's; `None` of any other.
fn parity_of_btrfs(parts: &Parts<'_>, text: &str) -> Option<Takes> {
    let takes = Takes::of(text, parts.degenerate).filter(|takes| takes.parities > 0);
    takes.filter(|_| parts.engine == Engine::Btrfs)
}

/// What a layout without a chunk is built with, which asks for none.
pub(crate) const NO_CHUNK: Bytes = Bytes::kib(512);

fn fixed(
    spec: &raidlab_layout::Spec,
    sizes: Vec<Sectors>,
    parts: &Parts<'_>,
) -> Result<raidlab_layout::Layout, SpecError> {
    let chunk = parts.chunk.map_or(NO_CHUNK, |c| c.value);
    let outer_chunk = parts.outer_chunk.map(|c| c.value);
    for size in [Some(chunk), outer_chunk].into_iter().flatten() {
        if !size.0.is_multiple_of(512) {
            return Err(SpecError::OddChunk(size));
        }
    }
    spec.build(&Geometry {
        sizes,
        chunk: chunk.to_sectors(),
        outer_chunk: outer_chunk.map(Bytes::to_sectors),
    })
}

/// The error at the value that is to be changed, with the layout beside it.
fn told(view: &View<'_>, parts: &Parts<'_>, error: &SpecError) -> Diagnostic {
    let members = view.place(&[Key::Members, Key::Channels, Key::Layout]);
    let size = view.place(&[Key::MemberSize, Key::Chunk, Key::Layout]);
    let chunk = view.place(&[Key::Chunk, Key::OuterChunk, Key::Layout]);
    let at = match error {
        SpecError::OddChunk(_) | SpecError::Layout(LayoutError::Chunk { .. }) => {
            match (parts.outer_chunk, error) {
                // The outer chunk is the wrong one when the inner one is right.
                (Some(outer), SpecError::OddChunk(odd)) if outer.value == *odd => outer.at.clone(),
                (Some(outer), SpecError::Layout(LayoutError::Chunk { chunk, .. }))
                    if outer.value.to_sectors() == *chunk =>
                {
                    outer.at.clone()
                }
                _ => chunk,
            }
        }
        SpecError::Members { .. }
        | SpecError::Layout(
            LayoutError::TooFewMembers { .. }
            | LayoutError::TooManyMembers { .. }
            | LayoutError::TooManyCopies { .. },
        ) => members,
        SpecError::Layout(LayoutError::MemberTooSmall { .. }) => size,
        SpecError::Layout(LayoutError::Ashift(_)) => view.place(&[Key::Ashift, Key::Layout]),
        _ => parts.layout.at.clone(),
    };
    let layout = format!("layout '{}'", parts.layout.value);
    Diagnostic::from_error(at, &error.to_string()).also(parts.layout.at.clone(), layout)
}

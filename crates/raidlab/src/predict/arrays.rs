//! What the arrays of an experiment cost, hold and survive.
use raidlab_core::units::{Bytes, Sectors};
use raidlab_experiment::Experiment;
use raidlab_experiment::setup::{Array, ArrayLayout, Engine};
use raidlab_layout::spec::Geometry;
use raidlab_layout::{Layout, Pool, PoolSpec, VdevKind, describe};
use raidlab_results::report::experiment::ArrayFacts;
use raidlab_sim::array::SYNC_SPEED_MIN;
use std::collections::BTreeMap;

/// Size of members of unknown capacity: what is survived does not depend on it.
const ANY: Bytes = Bytes::gib(1);
/// Chunk where the layout has none.
const NO_CHUNK: Bytes = Bytes::kib(64);

/// The different arrays of an experiment in the order of its cells.
pub(super) fn facts(experiment: &Experiment) -> Vec<ArrayFacts> {
    let mut all: Vec<ArrayFacts> = Vec::new();
    for cell in &experiment.cells {
        let array = &cell.setup.array;
        let name = name(array);
        match all.iter_mut().find(|facts| facts.name == name) {
            Some(known) => known.cells.push(cell.label.clone()),
            None => all.push(of(experiment, array, name, &cell.label)),
        }
    }
    all
}

/// What md lets a resync or rebuild do at the least, bytes a second, by the labels of its cells.
pub(super) fn least_sync(experiment: &Experiment) -> BTreeMap<String, u64> {
    let of_md = experiment
        .cells
        .iter()
        .filter(|cell| cell.setup.array.engine == Engine::Md);
    let least = |array: &Array| array.sync_speed_min.unwrap_or(SYNC_SPEED_MIN);
    of_md
        .map(|cell| (cell.label.clone(), least(&cell.setup.array)))
        .collect()
}

/// What an array is, whatever its chunk and its state: `raid5 of 4 disks`.
fn name(array: &Array) -> String {
    let n = array.members.len();
    let plural = if n == 1 { "" } else { "s" };
    let capacity = array
        .capacity
        .map_or_else(String::new, |c| format!(", {c}"));
    match &array.layout {
        ArrayLayout::Single => format!("single disk{capacity}"),
        layout => format!("{layout} of {n} disk{plural}{capacity}"),
    }
}

fn of(experiment: &Experiment, array: &Array, name: String, label: &str) -> ArrayFacts {
    let n = array.members.len();
    let (survives, second, tolerance) = match &array.layout {
        ArrayLayout::Single => (0, None, vec!["survives no failure".to_owned()]),
        ArrayLayout::Zfs(spec) => {
            // What is survived depends neither on sizes nor on ashift.
            match spec.build(&vec![ANY; n], 12) {
                Ok(pool) => pool_facts(&pool, spec, n),
                Err(_) => (0, None, vec!["what it survives cannot be told".to_owned()]),
            }
        }
        // Two copies of everything, on however many disks.
        ArrayLayout::Fixed(_, text) if array.engine == Engine::Btrfs && text == "raid1" => (
            1,
            // Pieces are dealt to all pairs of disks, so that any two have some piece between them.
            Some(0.0),
            vec!["survives any 1 failure: btrfs keeps two copies".to_owned()],
        ),
        ArrayLayout::Fixed(..) => match layout(experiment, array) {
            Some(layout) => (
                layout.tolerance().guaranteed(),
                second(&layout),
                describe::tolerance(&layout),
            ),
            None => (0, None, vec!["what it survives cannot be told".to_owned()]),
        },
    };
    ArrayFacts {
        cells: vec![label.to_owned()],
        name,
        disks: n,
        price: experiment.price(array),
        capacity_disks: array.capacity_disks.clone(),
        capacity: array.capacity.map(|capacity| capacity.0),
        survives,
        second,
        tolerance,
    }
}

/// Failures of a pool that are survived in any case, the share of second ones, and both in words.
fn pool_facts(pool: &Pool, spec: &PoolSpec, members: usize) -> (usize, Option<f64>, Vec<String>) {
    let sure = pool.guaranteed();
    let why = match (spec.kind, spec.shape) {
        (VdevKind::Mirror, None) => "every disk has a copy".to_owned(),
        (VdevKind::Mirror, Some((_, each))) => {
            format!("every disk of a mirror of {each} has a copy")
        }
        (VdevKind::Raidz(parity), None) => {
            format!("each block has its data and {parity} of parity")
        }
        (VdevKind::Raidz(parity), Some((_, each))) => {
            format!("each block has {parity} of parity within its {each} disks")
        }
    };
    let words = format!("survives any {sure} of {members} failures: {why}");
    (sure, pool.second_failures(), vec![words])
}

/// Share of second failures that is survived, over all first ones; `None` when some first one is not.
fn second(layout: &Layout) -> Option<f64> {
    let tolerance = layout.tolerance();
    let all = tolerance.patterns(2);
    (tolerance.guaranteed() > 0 && all > 0).then(|| tolerance.survived(2) as f64 / all as f64)
}

/// The share of second failures that each cell's array survives, by the cell's label.
pub(crate) fn second_failures(experiment: &Experiment) -> BTreeMap<String, f64> {
    let of = |facts: ArrayFacts| {
        let share = facts.second;
        facts
            .cells
            .into_iter()
            .filter_map(move |cell| Some((cell, share?)))
    };
    facts(experiment).into_iter().flat_map(of).collect()
}

/// The layout of an array; `None` when it cannot be built, which checking the experiment has refused.
fn layout(experiment: &Experiment, array: &Array) -> Option<Layout> {
    let ArrayLayout::Fixed(spec, _) = &array.layout else {
        return None;
    };
    let size = |name: &String| -> Sectors {
        let disk = experiment.disk(name).and_then(|disk| disk.capacity);
        let whole = disk.unwrap_or(ANY);
        array
            .member_size
            .map_or(whole, |used| used.min(whole))
            .to_sectors()
    };
    let geometry = Geometry {
        sizes: array.members.iter().map(size).collect(),
        chunk: array.chunk.unwrap_or(NO_CHUNK).to_sectors(),
        outer_chunk: array.outer_chunk.map(Bytes::to_sectors),
    };
    spec.build(&geometry).ok()
}

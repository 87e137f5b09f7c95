//! What the arrays of an experiment cost, hold and survive.
use raidlab_core::units::{Bytes, Sectors};
use raidlab_core::words::count;
use raidlab_experiment::Experiment;
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::{Array, ArrayLayout, Engine, Setup};
use raidlab_layout::spec::Geometry;
use raidlab_layout::{Layout, Pool, PoolSpec, VdevKind, describe};
use raidlab_results::report::experiment::ArrayFacts;
use raidlab_results::report::{GivesWay, SyncFloor};
use raidlab_sim::array::SYNC_SPEED_MIN;
use raidlab_sim::fabric::ControllerSpec;
use std::collections::{BTreeMap, BTreeSet};

/// Size of members of unknown capacity: what is survived does not depend on it.
const ANY: Bytes = Bytes::gib(1);
/// Chunk where the layout has none.
const NO_CHUNK: Bytes = Bytes::kib(64);

/// Capacities within this share are the same: what is left over of a chunk makes no other array.
const SAME_CAPACITY: f64 = 1e-3;

/// The different arrays of an experiment in the order of its cells. Cells share one only where it costs and holds the
/// same: two mirrors of a terabyte may be of disks with different prices, or on a card and on the board.
pub(super) fn facts(experiment: &Experiment) -> Vec<ArrayFacts> {
    let mut all: Vec<(ArrayFacts, &Array)> = Vec::new();
    for cell in &experiment.cells {
        let array = &cell.setup.array;
        let (name, price) = (name(array, ""), experiment.price(array));
        let same = |(facts, other): &&mut (ArrayFacts, &Array)| {
            facts.name == name && facts.price == price && hold_the_same(other, array)
        };
        match all.iter_mut().find(same) {
            Some((known, _)) => known.cells.push(cell.label.clone()),
            None => all.push((of(experiment, array, name, &cell.label), array)),
        }
    }
    tell_apart(experiment, &mut all);
    all.into_iter().map(|(facts, _)| facts).collect()
}

fn hold_the_same(one: &Array, other: &Array) -> bool {
    // What btrfs survives is not what arrays of that name do.
    (one.engine == Engine::Btrfs) == (other.engine == Engine::Btrfs)
        && one.capacity_disks == other.capacity_disks
        && match (one.capacity, other.capacity) {
            (Some(one), Some(other)) => {
                let difference = one.0.abs_diff(other.0) as f64;
                difference <= SAME_CAPACITY * one.0.max(other.0) as f64
            }
            (one, other) => one == other,
        }
}

/// Gives arrays that look alike names by which they can be told apart: by their members, by what these sit on, by
/// both, and at last by the cell.
fn tell_apart(experiment: &Experiment, all: &mut [(ArrayFacts, &Array)]) {
    let names: BTreeSet<String> = all.iter().map(|(facts, _)| facts.name.clone()).collect();
    for shared in names {
        let alike = all.iter_mut().filter(|(facts, _)| facts.name == shared);
        let mut alike: Vec<_> = alike.collect();
        if alike.len() < 2 {
            continue;
        }
        let words = |of: &dyn Fn(&Array) -> String| -> Vec<String> {
            alike.iter().map(|(_, array)| of(array)).collect()
        };
        let members = words(&|array| members(experiment, array));
        let places = words(&|array| format!("on {}", places(experiment, array)));
        let both = members.iter().zip(&places);
        let both = both.map(|(members, place)| format!("{members} {place}"));
        let both = both.collect();
        let labels = alike.iter().map(|(facts, _)| facts.cells[0].clone());
        let labels: Vec<String> = labels.collect();
        let told = [members, places, both].into_iter().find(|words| {
            let distinct: BTreeSet<&String> = words.iter().collect();
            distinct.len() == words.len()
        });
        for ((facts, array), told) in alike.iter_mut().zip(told.unwrap_or(labels)) {
            facts.name = name(array, &format!(" ({told})"));
        }
    }
}

/// The groups of an array's members: `1 big + 1 ssd`.
fn members(experiment: &Experiment, array: &Array) -> String {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    let disks = array
        .members
        .iter()
        .filter_map(|name| experiment.disk(name));
    for disk in disks {
        match groups.iter_mut().find(|(name, _)| *name == disk.group) {
            Some((_, number)) => *number += 1,
            None => groups.push((&disk.group, 1)),
        }
    }
    let words = groups
        .iter()
        .map(|(name, number)| format!("{number} {name}"));
    words.collect::<Vec<_>>().join(" + ")
}

/// The controllers that an array's members sit on: `board and card`.
fn places(experiment: &Experiment, array: &Array) -> String {
    let disks = array
        .members
        .iter()
        .filter_map(|name| experiment.disk(name));
    let controllers: BTreeSet<&str> = disks.map(|disk| &disk.controller[..]).collect();
    controllers.into_iter().collect::<Vec<_>>().join(" and ")
}

/// What md lets a resync or rebuild do beside others, by the labels of its cells.
pub(super) fn sync_floors(experiment: &Experiment) -> BTreeMap<String, SyncFloor> {
    let of_md = experiment
        .cells
        .iter()
        .filter(|cell| cell.setup.array.engine == Engine::Md);
    let floor = |setup: &Setup| SyncFloor {
        least: setup.array.sync_speed_min.unwrap_or(SYNC_SPEED_MIN),
        way: match setup.host.kernel {
            kernel if kernel >= Kernel::Linux(6, 16, 0) => GivesWay::Queues,
            kernel if kernel >= Kernel::Linux(4, 1, 0) => GivesWay::Drains,
            _ => GivesWay::Sleeps,
        },
    };
    of_md
        .map(|cell| (cell.label.clone(), floor(&cell.setup)))
        .collect()
}

/// What a controller gives a resync or rebuild of its own array beside the host, in per cent of the time, where there is one.
pub(super) fn rebuild_rate(experiment: &Experiment, array: &Array) -> Option<u32> {
    if array.engine != Engine::Controller || !array.state.syncs() {
        return None;
    }
    let of_model = || {
        let disk = experiment.disk(array.members.first()?)?;
        let mut all = experiment.controllers.iter();
        let controller = all.find(|controller| controller.name == disk.controller)?;
        let spec = ControllerSpec::of(controller, None).ok()?;
        Some(spec.model.background.share)
    };
    array.rebuild_rate.or_else(of_model)
}

/// The same by the labels of the cells.
pub(super) fn rebuild_rates(experiment: &Experiment) -> BTreeMap<String, u32> {
    let cells = experiment.cells.iter();
    let rate = |cell: &raidlab_experiment::Cell| rebuild_rate(experiment, &cell.setup.array);
    cells
        .filter_map(|cell| Some((cell.label.clone(), rate(cell)?)))
        .collect()
}

/// The states of the arrays by the labels of their cells.
pub(super) fn states(experiment: &Experiment) -> BTreeMap<String, String> {
    let state =
        |cell: &raidlab_experiment::Cell| (cell.label.clone(), cell.setup.array.state.to_string());
    experiment.cells.iter().map(state).collect()
}

/// What an array is, whatever its chunk and its state: `raid5 of 4 disks`; what tells it apart from others is put
/// before its capacity.
fn name(array: &Array, apart: &str) -> String {
    let n = array.members.len();
    let plural = if n == 1 { "" } else { "s" };
    let capacity = array
        .capacity
        .map_or_else(String::new, |c| format!(", {c}"));
    match &array.layout {
        ArrayLayout::Single => format!("single disk{apart}{capacity}"),
        layout => format!("{layout} of {n} disk{plural}{apart}{capacity}"),
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
        layout if array.engine == Engine::Btrfs && layout.btrfs_spare().is_some() => {
            of_copies(layout)
        }
        layout if array.engine == Engine::Btrfs && layout.btrfs_parities() > 0 => of_parity(layout),
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

/// The same of btrfs, which keeps copies of each chunk on members of its own.
fn of_copies(layout: &ArrayLayout) -> (usize, Option<f64>, Vec<String>) {
    let spare = layout.btrfs_spare().unwrap_or_default();
    let copies = match spare {
        1 => "two",
        2 => "three",
        _ => "four",
    };
    let sure = format!(
        "survives any {}: btrfs keeps {copies} copies",
        count(spare, "failure")
    );
    match spare {
        // No one chose the pairs of a chunk to be those of the others: md's share of second failures is not promised.
        1 if layout.level() == "raid10" => {
            let when = "a second one only when no chunk has both of them on the two disks";
            (1, None, vec![format!("{sure}; {when}")])
        }
        // Pieces are dealt to all pairs of disks, so that any two have some piece between them.
        1 => (1, Some(0.0), vec![sure]),
        _ => (spare, Some(1.0), vec![sure]),
    }
}

/// The same where btrfs has parity, the chunks of which take as many members as have room.
fn of_parity(layout: &ArrayLayout) -> (usize, Option<f64>, Vec<String>) {
    let survives = layout.btrfs_parities();
    let told = match survives {
        1 => "survives any 1 failure: btrfs keeps a parity".to_owned(),
        more => format!("survives any {more} failures: btrfs keeps {more} parities"),
    };
    let second = if survives > 1 { 1.0 } else { 0.0 };
    (survives, Some(second), vec![told])
}

/// Failures of a pool that are survived in any case, the share of second ones, and both in words.
fn pool_facts(pool: &Pool, spec: &PoolSpec, members: usize) -> (usize, Option<f64>, Vec<String>) {
    let sure = pool.guaranteed();
    let why = match (spec.kind, spec.shape) {
        (VdevKind::Disk, _) => {
            let words = "survives no failure: each block is on one disk".to_owned();
            return (sure, None, vec![words]);
        }
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
        disk.map_or(ANY, |has| array.used_of(has)).to_sectors()
    };
    let geometry = Geometry {
        sizes: array.members.iter().map(size).collect(),
        chunk: array.chunk.unwrap_or(NO_CHUNK).to_sectors(),
        outer_chunk: array.outer_chunk.map(Bytes::to_sectors),
    };
    spec.build(&geometry).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_experiment::{Known, parse};

    fn known() -> Known<'static> {
        Known {
            disks: vec![raidlab_experiment::KnownDisk {
                name: "m",
                capacity: Some(Bytes::gib(100)),
                link: None,
            }],
            ..Known::default()
        }
    }

    /// Of parity: what md's arrays of that name survive, of three members, too.
    #[test]
    fn parity_of_btrfs_survives_as_many_as_it_has() {
        let text = "title = 't'\ndisks = { model = 'm', count = 3 }\nprofile = 'bonnie'\n[array]\nengine = 'btrfs'\n\
                    [factors]\nlayout = ['raid5', 'raid6']\n";
        let experiment = parse(text, "lab.toml", &known()).unwrap();
        let facts = facts(&experiment);
        let told = |facts: &ArrayFacts| (facts.survives, facts.second, facts.tolerance.join("; "));
        assert_eq!(
            facts.iter().map(told).collect::<Vec<_>>(),
            [
                (
                    1,
                    Some(0.0),
                    "survives any 1 failure: btrfs keeps a parity".to_owned()
                ),
                (
                    2,
                    Some(1.0),
                    "survives any 2 failures: btrfs keeps 2 parities".to_owned()
                ),
            ]
        );
    }

    /// `raid10` of btrfs was told to survive what md's does: two of three second failures.
    #[test]
    fn no_second_failure_is_promised_of_btrfs() {
        let text = "title = 't'\ndisks = { model = 'm', count = 4 }\nprofile = 'bonnie'\n[factors]\n\
                    array = [{ name = 'b', layout = 'raid10', engine = 'btrfs', filesystem = 'btrfs' },\n\
                    { name = 'one', layout = 'raid1', engine = 'btrfs', filesystem = 'btrfs' },\n\
                    { name = 'md', layout = 'raid10' }]\n";
        let experiment =
            parse(text, "lab.toml", &known()).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let told = facts(&experiment);
        let told: Vec<_> = told.iter().map(|of| (of.survives, of.second)).collect();
        assert_eq!(told, [(1, None), (1, Some(0.0)), (1, Some(2.0 / 3.0))]);
    }
}

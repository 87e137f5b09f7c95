//! What can be told of an experiment before anything has run: what makes its figures doubtful (files that a cache can hold, calls that are
//! not under way), and layouts that their makers advise against.
use crate::experiment::{Cell, Experiment};
use crate::kernel::{FilesystemKind, Kernel};
use crate::read::key::ALIASES;
use crate::setup::Engine;
use raidlab_core::flag::FlagKind;
use raidlab_core::profile::Plan;
use raidlab_core::units::{Bytes, MIB};
use std::fmt;

/// Something that figures of some cells will suffer from, or whoever chooses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// What, in a sentence.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// The labels of the cells.
    pub cells: Vec<String>,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.cells.first().map_or("", String::as_str);
        let more = match self.cells.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        write!(f, "{first}{more}: {}", self.message)
    }
}

/// What there is of the machine that an experiment runs on, where that is no modelled one and nobody's to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Memory that can cache files; `None`: as the experiment has it.
    pub memory: Option<Bytes>,
    /// Its kernel; `None`: not known.
    pub kernel: Option<Kernel>,
}

/// All that is to be told of an experiment's cells, each thing once. `own` is the machine where it is no modelled one.
#[must_use]
pub fn cautions(experiment: &Experiment, own: Option<Own>) -> Vec<Caution> {
    let mut all: Vec<Caution> = Vec::new();
    for cell in &experiment.cells {
        for caution in of_cell(cell, own) {
            let same = |c: &&mut Caution| c.message == caution.message && c.help == caution.help;
            match all.iter_mut().find(same) {
                Some(known) => known.cells.extend(caution.cells),
                None => all.push(caution),
            }
        }
    }
    all
}

fn of_cell(cell: &Cell, own: Option<Own>) -> Vec<Caution> {
    let advised = advised_against(cell).into_iter();
    advised.chain(of_figures(cell, own)).collect()
}

/// Parity of btrfs, of which a crash can leave rows that agree with nothing.
fn advised_against(cell: &Cell) -> Option<Caution> {
    let array = &cell.setup.array;
    let parity = array.layout.btrfs_parities() > 0;
    (parity && array.engine == Engine::Btrfs).then(|| Caution {
        message: "btrfs(5) says of its raid5 and raid6 that they \"should not be used in production, only for evaluation or \
                  testing\""
            .to_owned(),
        help: "use engine = \"md\" below the file system, or raid1, raid1c3 or raid10 of btrfs, for data that matter".to_owned(),
        cells: vec![cell.label.clone()],
    })
}

fn of_figures(cell: &Cell, own: Option<Own>) -> Vec<Caution> {
    let mut context = cell.setup.context(512);
    let memory = own.and_then(|own| own.memory);
    context.memory = memory.unwrap_or(context.memory);
    // What it cannot do here is told by whoever runs it.
    let Ok(plan) = cell.setup.profile.plan(&context) else {
        return Vec::new();
    };
    let held = in_memory(cell, &plan, (context.memory, own.is_none()));
    // The kernel of the machine is not the file's to say.
    let kernel = own.map_or(Some(cell.setup.host.kernel), |own| own.kernel);
    let deep = kernel.and_then(|kernel| one_at_a_time(cell, &plan, kernel));
    held.into_iter().chain(deep).collect()
}

/// A process that has several calls under way on ZFS waits within each.
fn one_at_a_time(cell: &Cell, plan: &Plan, kernel: Kernel) -> Option<Caution> {
    let setup = &cell.setup;
    let kind = setup.filesystem.as_ref().map(|made| made.kind);
    if kind != Some(FilesystemKind::Zfs) || kernel >= Kernel::ASKS_FILES {
        return None;
    }
    let jobs = plan.phases.iter().flat_map(|phase| &phase.jobs);
    let depth = jobs.map(|job| job.depth).max().filter(|depth| *depth > 1)?;
    Some(Caution {
        message: format!(
            "until Linux 6.4 a process waits within each call to ZFS: of the {depth} that a job has under way one is at the disks"
        ),
        help: "use several jobs with a depth of 1".to_owned(),
        cells: vec![cell.label.clone()],
    })
}

/// Files that a cache can hold; of how much memory, and whether that is the experiment's.
fn in_memory(cell: &Cell, plan: &Plan, (memory, modelled): (Bytes, bool)) -> Option<Caution> {
    let setup = &cell.setup;
    let kind = setup.filesystem.as_ref().map(|made| made.kind);
    let zfs = kind == Some(FilesystemKind::Zfs);
    let told = plan
        .flags
        .iter()
        .find(|flag| flag.kind == FlagKind::FitsInMemory);
    let size = data(plan);
    let message = match told {
        _ if zfs && size.0 > 0 && size < memory => format!(
            "the profile's {size} are little beside ZFS's cache, {} of the memory of {}, through which direct calls go, too: \
             figures that are served from there are flagged or kept out of the averages",
            Bytes(memory.0 / 2),
            memory
        ),
        Some(flag) => format!("{}, and the figures are flagged", flag.reason),
        None => return None,
    };
    Some(Caution {
        message,
        help: help(cell, memory, size, modelled),
        cells: vec![cell.label.clone()],
    })
}

/// Bytes of the data files, or of the part of a device, that the profile works on.
fn data(plan: &Plan) -> Bytes {
    let found = plan
        .phases
        .iter()
        .map(|phase| phase.needs.iter().map(|need| need.size.0).sum());
    plan.data_set
        .unwrap_or_else(|| Bytes(plan.space_needed.0.max(found.max().unwrap_or(0))))
}

/// A larger file, or less memory where that can be said.
fn help(cell: &Cell, memory: Bytes, size: Bytes, modelled: bool) -> String {
    let profile = cell.setup.profile.name();
    let names = ALIASES.iter().find(|(alias, _)| *alias == "file-size");
    let own = names.and_then(|(_, names)| names.iter().find(|(of, _)| *of == profile));
    let larger = match own {
        Some((_, own)) => format!(
            "larger files, {own} = \"{}\" in [profile]",
            written(2 * memory.0)
        ),
        None => format!(
            "twice the memory, {}, as what the profile works on",
            Bytes(2 * memory.0)
        ),
    };
    match size.0 / 2 / MIB {
        less if modelled && less >= 64 && less < memory.0 / MIB => {
            format!("use {larger}, or less memory, memory = \"{less}MiB\" in [host]")
        }
        _ => format!("use {larger}"),
    }
}

/// A size as a file has it.
fn written(bytes: u64) -> String {
    match bytes.div_ceil(MIB) {
        mib if mib.is_multiple_of(1024) => format!("{}GiB", mib / 1024),
        mib => format!("{mib}MiB"),
    }
}

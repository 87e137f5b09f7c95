//! What makes figures of an experiment doubtful and can be told before anything has run: files that a cache can hold.
use crate::experiment::{Cell, Experiment};
use crate::kernel::FilesystemKind;
use crate::read::key::ALIASES;
use raidlab_core::flag::FlagKind;
use raidlab_core::profile::Plan;
use raidlab_core::units::{Bytes, MIB};
use std::fmt;

/// Something that figures of some cells will suffer from.
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

/// All that is to be told of an experiment's cells, each thing once. `memory` is that of the machine where it is no modelled
/// one.
#[must_use]
pub fn cautions(experiment: &Experiment, memory: Option<Bytes>) -> Vec<Caution> {
    let mut all: Vec<Caution> = Vec::new();
    for cell in &experiment.cells {
        let Some(caution) = of_cell(cell, memory) else {
            continue;
        };
        let same = |c: &&mut Caution| c.message == caution.message && c.help == caution.help;
        match all.iter_mut().find(same) {
            Some(known) => known.cells.extend(caution.cells),
            None => all.push(caution),
        }
    }
    all
}

fn of_cell(cell: &Cell, memory: Option<Bytes>) -> Option<Caution> {
    let setup = &cell.setup;
    let mut context = setup.context(512);
    context.memory = memory.unwrap_or(context.memory);
    // What it cannot do here is told by whoever runs it.
    let plan = setup.profile.plan(&context).ok()?;
    let kind = setup.filesystem.as_ref().map(|made| made.kind);
    let zfs = kind == Some(FilesystemKind::Zfs);
    let told = plan
        .flags
        .iter()
        .find(|flag| flag.kind == FlagKind::FitsInMemory);
    let size = data(&plan);
    let message = match told {
        _ if zfs && size.0 > 0 && size < context.memory => format!(
            "the profile's {size} are little beside ZFS's cache, {} of the memory of {}, through which direct calls go, too: \
             figures that are served from there are flagged or kept out of the averages",
            Bytes(context.memory.0 / 2),
            context.memory
        ),
        Some(flag) => format!("{}, and the figures are flagged", flag.reason),
        None => return None,
    };
    Some(Caution {
        message,
        help: help(cell, context.memory, size, memory.is_none()),
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

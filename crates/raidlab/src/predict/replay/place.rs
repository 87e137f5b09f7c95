//! The array of an experiment's cell that a trace is replayed on.
use super::super::catalogue;
use super::on;
use crate::args::{DesignArgs, ReplayArgs};
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use raidlab_core::units::SECTOR;
use raidlab_experiment::setup::Engine;
use raidlab_experiment::{Cell, Experiment};
use raidlab_sim::machine::Machine;
use raidlab_sim::trace::{Format, ReplayOptions, grain};

/// On the array of an experiment's cell, past the host's cache.
pub(super) fn on_array(args: &ReplayArgs, format: Option<Format>) -> Result<Outcome, Failure> {
    let Some(file) = &args.experiment else {
        return Err(
            Failure::bad_request("a trace is replayed on something, and nothing is named")
                .remedy("name a modelled disk with --disk, or an array with --experiment"),
        );
    };
    let mut experiment = catalogue::experiment(file, &DesignArgs::default())?;
    let mut cell = cell_of(&experiment, args.cell.as_deref())?.clone();
    if cell.setup.array.engine == Engine::Zfs {
        return Err(no_device(&experiment, &cell));
    }
    // A trace has the addresses of a block device.
    cell.setup.filesystem = None;
    let logical = logical_sector(&experiment, &cell);
    experiment.cells.clear();
    let mut machine = Machine::build(&experiment, &cell, args.seed)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    machine.set_direct(true);
    let storage = machine.host().device();
    let physical = storage.disks().map(|disk| disk.model().physical()).max();
    let options = ReplayOptions {
        grain: grain(
            storage.sectors(),
            physical.unwrap_or(1),
            storage.stripe() / SECTOR,
        ),
        logical,
        ..ReplayOptions::default()
    };
    on(args, format, machine, &cell.label, options)
}

/// Sectors of 512 bytes in the largest logical sector of the members, which is the array's.
fn logical_sector(experiment: &Experiment, cell: &Cell) -> u32 {
    let members = &cell.setup.array.members;
    let disks = experiment.disks.iter();
    let sectors = disks
        .filter(|disk| members.contains(&disk.name))
        .map(|disk| disk.logical_sector().0 / SECTOR);
    u32::try_from(sectors.max().unwrap_or(1)).unwrap_or(1)
}

/// A pool of ZFS holds files: it has no sectors that a trace could name.
fn no_device(experiment: &Experiment, cell: &Cell) -> Failure {
    let is_device = |cell: &&Cell| cell.setup.array.engine != Engine::Zfs;
    let devices: Vec<&str> = experiment
        .cells
        .iter()
        .filter(is_device)
        .map(|cell| cell.label.as_str())
        .collect();
    let message = format!(
        "cell '{}' is a pool of ZFS, which is no block device: it holds files, and a trace has the addresses of a device",
        cell.label
    );
    Failure::bad_request(message).remedy(if devices.is_empty() {
        "replay on one disk with --disk, or on an experiment of md arrays".to_owned()
    } else {
        format!(
            "replay on one disk with --disk, or choose with --cell from: {}",
            devices.join("; ")
        )
    })
}

/// The cell that is meant; the only one when none is named.
fn cell_of<'e>(experiment: &'e Experiment, label: Option<&str>) -> Result<&'e Cell, Failure> {
    let labels = || {
        let all: Vec<&str> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
        format!("choose with --cell from: {}", all.join("; "))
    };
    match (label, &experiment.cells[..]) {
        (None, [only]) => Ok(only),
        (None, cells) => {
            let message = format!("the experiment has {} cells", cells.len());
            Err(Failure::bad_request(message).remedy(labels()))
        }
        (Some(label), cells) => cells.iter().find(|c| c.label == label).ok_or_else(|| {
            Failure::bad_request(format!("the experiment has no cell '{label}'")).remedy(labels())
        }),
    }
}

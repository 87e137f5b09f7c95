//! The array of an experiment's cell that a trace is replayed on.
use super::super::catalogue;
use super::on;
use crate::args::{DesignArgs, ReplayArgs};
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use raidlab_experiment::{Cell, Experiment};
use raidlab_sim::machine::Machine;
use raidlab_sim::trace::Format;

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
    // A trace has the addresses of a block device.
    cell.setup.filesystem = None;
    experiment.cells.clear();
    let mut machine = Machine::build(&experiment, &cell, args.seed)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    machine.set_direct(true);
    on(args, format, machine, &cell.label)
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

//! Machines of whole experiments.
mod collected;
mod first;
mod golden;
mod idle;
mod leaps;
mod pools;
mod refusals;
mod replace;
mod resilver;
mod states;
mod theory;
mod written_back;

use super::*;
use crate::catalogue;
use raidlab_experiment::parse;

/// The experiment of a text, with the catalogue's models. What is said of published figures is left out.
fn experiment(text: &str) -> Experiment {
    let text = text.split("[expected]").next().unwrap_or(text);
    let text = &text.replace(", \"published\"", "");
    parse(text, "test.toml", &catalogue::known()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn machine(experiment: &Experiment, cell: &Cell) -> Machine {
    Machine::build(experiment, cell, 1).unwrap_or_else(|e| panic!("{}: {e}", cell.label))
}

/// Runs all phases of a cell.
fn run(machine: &mut Machine) -> Vec<PhaseRun> {
    let plan = machine.plan().expect("the profile fits");
    let phases = plan.phases.iter();
    phases
        .map(|phase| {
            machine
                .run_phase(phase, &mut ())
                .unwrap_or_else(|e| panic!("{e}"))
        })
        .collect()
}

//! The simulator behind a trial.
use super::run::{Simulate, Simulated};
use raidlab_experiment::{Cell, Experiment};
use std::sync::atomic::AtomicBool;

/// Machines of an experiment's cells.
pub(super) struct Machines<'e> {
    experiment: &'e Experiment,
    fast_forward: bool,
}

impl<'e> Machines<'e> {
    pub(super) fn new(experiment: &'e Experiment, fast_forward: bool) -> Self {
        Self {
            experiment,
            fast_forward,
        }
    }
}

impl Simulate for Machines<'_> {
    fn trial(&self, cell: &Cell, seed: u64, stop: &AtomicBool) -> Option<Simulated> {
        let _ = (self.experiment, self.fast_forward, seed, stop);
        Some(Simulated {
            failed: Some(format!(
                "{}: this build has no simulated machine",
                cell.label
            )),
            ..Simulated::default()
        })
    }
}

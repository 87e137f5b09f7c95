//! What is doubtful about an experiment before it has run.
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_experiment::{Experiment, cautions};

/// Warns of each on standard error, with its remedy. `memory` is that of the machine where it is no modelled one.
pub(crate) fn warn(experiment: &Experiment, memory: Option<Bytes>) {
    for caution in cautions(experiment, memory) {
        talk::warn(&caution.to_string());
        talk::help(&caution.help);
    }
}

/// The same for `raidlab plan`, as lines.
pub(super) fn told(experiment: &Experiment, memory: Option<Bytes>) -> String {
    let cautions = cautions(experiment, memory);
    let told = cautions.iter().map(|caution| {
        let told = talk::one_line(&caution.to_string());
        format!("Warning: {told}.\n  {}\n", talk::one_line(&caution.help))
    });
    told.collect()
}

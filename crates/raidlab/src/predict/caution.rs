//! What is doubtful about an experiment before it has run.
use crate::talk;
use raidlab_experiment::{Experiment, Own, cautions};

/// Warns of each on standard error, with its remedy. `own` is the machine where it is no modelled one.
pub(crate) fn warn(experiment: &Experiment, own: Option<Own>) {
    for caution in cautions(experiment, own) {
        talk::warn(&caution.to_string());
        talk::help(&caution.help);
    }
}

/// The same for `raidlab plan`, as lines.
pub(super) fn told(experiment: &Experiment, own: Option<Own>) -> String {
    let cautions = cautions(experiment, own);
    let told = cautions.iter().map(|caution| {
        let told = talk::one_line(&caution.to_string());
        format!("Warning: {told}.\n  {}\n", talk::one_line(&caution.help))
    });
    told.collect()
}

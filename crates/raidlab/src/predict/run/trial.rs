//! From a simulated trial to its record.
use crate::commands::timestamp;
use raidlab_core::flag::Flag;
use raidlab_core::time::Span;
use raidlab_experiment::{Cell, Experiment, Plan, Trial};
use raidlab_results::id;
use raidlab_results::record::{self, PhaseRecord, Provenance, Status, TrialRecord};
use raidlab_results::store::environment_digest;
use raidlab_sim::catalogue::MODELS;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What came of simulating a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::predict) struct Simulated {
    /// The phases that ended.
    pub(in crate::predict) phases: Vec<PhaseRecord>,
    /// Parts of them: they stand behind them all.
    pub(in crate::predict) parts: Vec<PhaseRecord>,
    /// Virtual time of all of it.
    pub(in crate::predict) elapsed: Span,
    /// Doubts about the whole.
    pub(in crate::predict) flags: Vec<Flag>,
    /// Digest of the operation streams.
    pub(in crate::predict) digest: u64,
    /// Why it ended early.
    pub(in crate::predict) failed: Option<String>,
    /// How long that took on this machine: no part of a record.
    pub(in crate::predict) took: Duration,
}

/// What simulates: the machine, or a stand-in in tests.
pub(in crate::predict) trait Simulate: Sync {
    /// One trial of a cell; `None` when it was stopped.
    fn trial(&self, cell: &Cell, seed: u64, stop: &AtomicBool) -> Option<Simulated>;
}

/// What records of one session have in common.
pub(in crate::predict) struct Recorder<'p> {
    plan: &'p Plan<'p>,
    session: String,
    command: String,
    digests: Vec<String>,
    environment: Value,
    environment_digest: String,
}

impl<'p> Recorder<'p> {
    pub(in crate::predict) fn new(plan: &'p Plan<'p>, session: &str, command: &str) -> Self {
        let experiment = plan.experiment;
        let environment = environment(experiment);
        Self {
            plan,
            session: session.to_owned(),
            command: command.to_owned(),
            digests: digests(experiment),
            environment_digest: environment_digest(&environment),
            environment,
        }
    }

    /// What the machines of all cells have in common: models, their versions, what connects them.
    pub(in crate::predict) fn environment(&self) -> &Value {
        &self.environment
    }

    /// Digests of the cells, in their order.
    pub(in crate::predict) fn digests(&self) -> &[String] {
        &self.digests
    }

    /// The record of a trial.
    pub(in crate::predict) fn record(&self, trial: Trial, came: Simulated) -> TrialRecord {
        let cell = &self.plan.experiment.cells[trial.cell];
        let digest = &self.digests[trial.cell];
        let round = trial.round.to_string();
        // One that failed is run again when the session is gone on with, and both are kept.
        let attempt = came
            .failed
            .as_ref()
            .map_or_else(String::new, |_| timestamp());
        let identity = [self.session.as_str(), digest, &round, &attempt];
        TrialRecord {
            id: id::of_content("raidlab simulated trial", &identity),
            session: self.session.clone(),
            order: trial.order,
            round: trial.round,
            cell: record::Cell {
                label: cell.label.clone(),
                factors: cell.factors(),
            },
            cell_digest: Some(digest.clone()),
            profile: cell.setup.profile.name().to_owned(),
            settings: cell.setup.settings.clone(),
            provenance: Provenance::Simulated,
            // Virtual time has no date, and the order of the real times depends on the threads.
            started: None,
            elapsed_ns: Some(came.elapsed.0),
            seed: Some(trial.seed),
            digest: Some(came.digest),
            environment: Some(self.environment_digest.clone()),
            command: Some(self.command.clone()),
            phases: [came.phases, came.parts].concat(),
            checks: Vec::new(),
            status: match came.failed {
                None => Status::Complete,
                Some(reason) => Status::Failed { reason },
            },
            flags: came.flags,
        }
    }
}

/// Digests of an experiment's cells.
pub(in crate::predict) fn digests(experiment: &Experiment) -> Vec<String> {
    let cells = experiment.cells.iter();
    cells.map(|cell| experiment.cell_digest(cell)).collect()
}

fn environment(experiment: &Experiment) -> Value {
    let mut used: Vec<&str> = experiment.disks.iter().map(|d| d.model.as_str()).collect();
    used.sort_unstable();
    used.dedup();
    let models = MODELS.iter().filter(|(name, _)| used.contains(name));
    // The text of a model is its version: another text is another disk.
    let models = models.map(
        |(name, text)| json!({ "name": name, "digest": id::of_content("disk model", &[text]) }),
    );
    json!({
        "simulator": { "version": env!("CARGO_PKG_VERSION"), "models": models.collect::<Vec<_>>() },
        "disks": experiment.disks,
        "buses": experiment.buses,
        "controllers": experiment.controllers,
    })
}

/// One number for all that was found: the same for the same experiment and seed, on any machine and any
/// number of threads.
pub(in crate::predict) fn results_digest(trials: &[TrialRecord]) -> String {
    let mut trials: Vec<&TrialRecord> = trials.iter().collect();
    trials.sort_by_key(|trial| trial.order);
    let parts: Vec<String> = trials
        .iter()
        .map(|trial| {
            let figures = (
                &trial.cell_digest,
                trial.round,
                trial.elapsed_ns,
                &trial.phases,
            );
            serde_json::to_string(&figures).unwrap_or_default()
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    id::of_content("raidlab results", &parts)
}

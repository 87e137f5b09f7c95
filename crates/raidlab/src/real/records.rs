//! Records of guests' trials, as the host keeps them.
use super::job::Came;
use crate::commands::timestamp;
use raidlab_experiment::{Plan, Trial};
use raidlab_results::id;
use raidlab_results::record::{self, Place, Provenance, Status, TrialRecord};
use serde_json::{Value, json};

/// What records of one session have in common.
pub(super) struct Recorder<'p> {
    plan: &'p Plan<'p>,
    session: String,
    command: String,
    digests: Vec<String>,
}

impl<'p> Recorder<'p> {
    pub(super) fn new(plan: &'p Plan<'p>, session: &str, command: &str) -> Self {
        let cells = plan.experiment.cells.iter();
        Self {
            plan,
            session: session.to_owned(),
            command: command.to_owned(),
            digests: cells
                .map(|cell| plan.experiment.cell_digest(cell))
                .collect(),
        }
    }

    /// The command that repeats the run.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Digest of a cell.
    pub(super) fn digest(&self, cell: usize) -> &str {
        &self.digests[cell]
    }

    /// What came of a trial, as it is kept: the guest's word with what the host knows better. `began` is the
    /// host's time, for the guest's calendar is made up; `facts` are the machine's.
    pub(super) fn came(
        &self,
        trial: Trial,
        came: Came,
        began: &str,
        facts: &Value,
    ) -> (TrialRecord, Value) {
        match came {
            Came::Nothing { reason } => (self.failed(trial, reason), json!({ "vm": facts })),
            Came::Record {
                record,
                mut environment,
            } => {
                match environment.as_object_mut() {
                    Some(fields) => {
                        fields.insert("vm".to_owned(), facts.clone());
                    }
                    None => environment = json!({ "vm": facts }),
                }
                let same = self.failed(trial, String::new());
                let record = TrialRecord {
                    id: same.id,
                    session: same.session,
                    order: same.order,
                    round: same.round,
                    cell: same.cell,
                    cell_digest: same.cell_digest,
                    command: same.command,
                    started: Some(began.to_owned()),
                    environment: None,
                    ..*record
                };
                (record, environment)
            }
        }
    }

    /// A trial that came to nothing.
    pub(super) fn failed(&self, trial: Trial, reason: String) -> TrialRecord {
        let cell = &self.plan.experiment.cells[trial.cell];
        let now = timestamp();
        let parts = [
            self.session.as_str(),
            &self.digests[trial.cell],
            &trial.round.to_string(),
            &now,
        ];
        TrialRecord {
            id: id::of_content("raidlab trial in a guest", &parts),
            session: self.session.clone(),
            order: trial.order,
            round: trial.round,
            cell: record::Cell {
                label: cell.label.clone(),
                factors: cell.factors(),
            },
            cell_digest: Some(self.digests[trial.cell].clone()),
            profile: cell.setup.profile.name().to_owned(),
            settings: cell.setup.settings.clone(),
            provenance: Provenance::Measured { place: Place::Vm },
            started: Some(now),
            elapsed_ns: None,
            seed: Some(trial.seed),
            digest: None,
            environment: None,
            command: Some(self.command.clone()),
            phases: Vec::new(),
            checks: Vec::new(),
            status: Status::Failed { reason },
            flags: Vec::new(),
        }
    }
}

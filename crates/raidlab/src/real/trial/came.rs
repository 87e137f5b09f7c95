//! What was found while a trial ran, and the record of it.
use super::Turn;
use crate::exit::{Failure, MISSING};
use crate::real::driver::Driver;
use raidlab_core::flag::Flag;
use raidlab_core::profile::Plan as ProfilePlan;
use raidlab_host::facts::Facts;
use raidlab_host::kmsg::{Failing, KernelLog, KernelWords};
use raidlab_host::provision::ProvisionPlan;
use raidlab_results::id;
use raidlab_results::record::{self, PhaseRecord, Provenance, Status, TrialRecord};
use serde_json::{Value, json};

/// What was found while a trial ran.
#[derive(Default)]
pub(in crate::real) struct Came {
    pub(in crate::real) phases: Vec<PhaseRecord>,
    pub(in crate::real) planned: usize,
    pub(super) profile: Option<ProfilePlan>,
    pub(super) digest: u64,
    pub(in crate::real) flags: Vec<Flag>,
    pub(super) facts: Facts,
    pub(super) machine: Value,
    pub(super) synced_ns: Vec<(String, u64)>,
    /// Bytes that could be used of what was built.
    pub(super) usable: u64,
    pub(super) said: KernelWords,
    pub(super) driver: Driver,
    /// Where the phases came from, when a tool carried them out, and what it wrote.
    pub(super) tool: Option<(Provenance, String)>,
}

impl Came {
    /// Listens to what the kernel said since. While raidlab itself fails members, that they failed is no trouble.
    pub(super) fn hear(&mut self, log: Option<&mut KernelLog>, failing: Failing) {
        if let Some(log) = log {
            self.said.add(log.so_far(failing));
        }
    }

    pub(super) fn environment(&self, provision: &ProvisionPlan) -> Value {
        let mut machine = self.machine.clone();
        let members = provision.members.iter().map(|member| {
            json!({
                "path": member.path, "size": member.identity.size, "serial": member.identity.serial,
            })
        });
        if let Some(fields) = machine.as_object_mut() {
            fields.insert(
                "array".to_owned(),
                json!({
                    "members": members.collect::<Vec<_>>(), "facts": self.facts, "notes": provision.notes,
                    "tool_output": self.tool.as_ref().map(|(_, text)| text),
                    "initial_sync_ns": self.synced_ns, "usable_bytes": self.usable,
                    "kernel_log": self.said.lines,
                }),
            );
        }
        machine
    }
}

pub(super) fn record_of(turn: Turn<'_>, came: Came) -> Result<TrialRecord, Failure> {
    let cell = turn.cell;
    let settings = came
        .profile
        .map_or_else(|| cell.setup.settings.clone(), |profile| profile.settings);
    Ok(TrialRecord {
        id: id::random().map_err(|error| Failure::from_error(MISSING, &error))?,
        session: turn.session.to_owned(),
        order: turn.order,
        round: turn.round,
        cell: record::Cell {
            label: cell.label.clone(),
            factors: cell.factors(),
        },
        cell_digest: Some(turn.experiment.cell_digest(cell)),
        profile: cell.setup.profile.name().to_owned(),
        settings,
        provenance: came
            .tool
            .map_or(Provenance::Measured { place: turn.place }, |(tool, _)| tool),
        started: None,
        elapsed_ns: None,
        seed: Some(turn.seed),
        // A tool draws its own operations.
        digest: (came.driver == Driver::Raidlab).then_some(came.digest),
        environment: None,
        command: Some(turn.command.to_owned()),
        phases: came.phases,
        status: Status::Complete,
        flags: came.flags,
    })
}

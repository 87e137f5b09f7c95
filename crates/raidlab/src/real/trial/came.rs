//! What was found while a trial ran, and the record of it.
use super::Turn;
use crate::exit::{Failure, MISSING};
use crate::real::driver::Driver;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::profile::Plan as ProfilePlan;
use raidlab_host::facts::Facts;
use raidlab_host::kmsg::{Failing, KernelLog, KernelWords};
use raidlab_host::provision::ProvisionPlan;
use raidlab_results::id;
use raidlab_results::record::{self, Check, PhaseRecord, Provenance, Status, TrialRecord};
use serde_json::{Value, json};
use std::time::Instant;

/// Lines of the kernel's log that are told with what went wrong; all of them are kept.
const TOLD: usize = 8;

/// What was found while a trial ran.
#[derive(Default)]
pub(in crate::real) struct Came {
    pub(in crate::real) phases: Vec<PhaseRecord>,
    /// Parts of phases: they stand behind them all.
    pub(super) parts: Vec<PhaseRecord>,
    pub(in crate::real) planned: usize,
    pub(super) profile: Option<ProfilePlan>,
    pub(super) digest: u64,
    pub(in crate::real) flags: Vec<Flag>,
    pub(in crate::real) checks: Vec<Check>,
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

    /// Keeps what the kernel said of what a check found: it is known already, and no trouble of the phases.
    pub(in crate::real) fn hear_what_was_found(&mut self, log: Option<&mut KernelLog>) {
        if let Some(log) = log {
            let said = log.so_far(Failing::Nobody);
            self.said.add(KernelWords {
                trouble: None,
                ..said
            });
        }
    }

    /// Something was said that fails the trial.
    pub(in crate::real) const fn in_trouble(&self) -> bool {
        self.said.trouble.is_some()
    }

    /// All phases that were planned have run to their ends.
    pub(super) fn is_whole(&self) -> bool {
        let cut = |phase: &PhaseRecord| phase.flags.iter().any(|f| f.kind == FlagKind::Interrupted);
        let all = self.planned > 0 && self.phases.len() == self.planned;
        all && !self.phases.iter().any(cut)
    }

    /// The kernel's last words, behind what went wrong.
    pub(super) fn tell(&self, failure: &mut Failure) {
        let lines = &self.said.lines;
        if lines.is_empty() {
            return;
        }
        failure.message.push_str("; the kernel said meanwhile:");
        for line in &lines[lines.len().saturating_sub(TOLD)..] {
            failure.message.push_str("\n  ");
            failure.message.push_str(line);
        }
    }

    pub(super) fn environment(&self, provision: &ProvisionPlan) -> Value {
        // Until the machine has been looked at, there is nothing to put it beside.
        let mut machine = match &self.machine {
            Value::Object(_) => self.machine.clone(),
            _ => json!({}),
        };
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

/// The record of a trial that began then, as of one that came to its end.
pub(super) fn record_of(
    turn: Turn<'_>,
    came: Came,
    (begun, started): (Instant, String),
) -> Result<TrialRecord, Failure> {
    let cell = turn.cell;
    let settings = came
        .profile
        .map_or_else(|| cell.setup.settings.clone(), |profile| profile.settings);
    let mut record = TrialRecord {
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
        started: Some(started),
        elapsed_ns: Some(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        seed: Some(turn.seed),
        // A tool draws its own operations.
        digest: (came.driver == Driver::Raidlab).then_some(came.digest),
        environment: None,
        command: Some(turn.command.to_owned()),
        phases: [came.phases, came.parts].concat(),
        checks: came.checks,
        status: Status::Complete,
        flags: came.flags,
    };
    record.doubt_parts();
    Ok(record)
}

/// Lines of the kernel's log are lines of their own on a terminal; in tables and documents they are not.
pub(in crate::real) fn in_one_line(message: &str) -> String {
    let mut line = String::new();
    for part in message.lines().map(str::trim) {
        let between = match line.chars().last() {
            None => "",
            Some(':') => " ",
            Some(_) => "; ",
        };
        line.push_str(between);
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_said_fits_into_a_line() {
        assert_eq!(in_one_line("it failed"), "it failed");
        assert_eq!(
            in_one_line("mkfs failed; the kernel said meanwhile:\n  md119: one\n  md119: two"),
            "mkfs failed; the kernel said meanwhile: md119: one; md119: two"
        );
    }
}

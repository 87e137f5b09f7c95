//! Points run on their machines, each once.
#![allow(dead_code, reason = "the test and the benchmark each use a part of it")]
use crate::draw::{MODELS, Point};
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::{Counted, Phase};
use raidlab_core::units::SECTOR;
use raidlab_experiment::{Known, parse};
use raidlab_sim::block::ResourceKind;
use raidlab_sim::catalogue;
use raidlab_sim::machine::{Machine, Why};
use std::collections::HashMap;
use std::rc::Rc;

/// What came of a phase of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Came {
    pub(crate) phase: Phase,
    pub(crate) outcome: PhaseOutcome,
    pub(crate) why: Why,
    /// Busy time of each resource over the time of the phase and the number of them, as it is booked.
    pub(crate) raw: Vec<(String, ResourceKind, f64)>,
    /// Bytes read from and written to the disks, all together.
    pub(crate) disks: (u64, u64),
}

impl Came {
    /// Bytes a second.
    pub(crate) fn rate(&self) -> f64 {
        self.outcome.bytes as f64 / self.outcome.elapsed.as_secs_f64().max(1e-9)
    }

    /// What the phase counts, a second: bytes, or a million for each operation, so that both are told alike.
    pub(crate) fn figure(&self) -> f64 {
        match self.phase.counted {
            Counted::Bytes => self.rate(),
            Counted::Ops => {
                1e6 * self.outcome.ops as f64 / self.outcome.elapsed.as_secs_f64().max(1e-9)
            }
        }
    }
}

/// All phases of a point, or why it cannot be built.
type All = Result<Rc<[Came]>, String>;

/// Remembers what came of points.
#[derive(Default)]
pub(crate) struct Lab {
    known: HashMap<String, All>,
    /// Points that were run.
    pub(crate) runs: usize,
}

impl Lab {
    /// What comes of the first phase of a point, or why it cannot be built.
    pub(crate) fn run(&mut self, point: &Point) -> Result<Came, String> {
        let all = self.phases(point)?;
        all.first().cloned().ok_or_else(|| "no phase".to_owned())
    }

    /// What comes of all phases of a point, one after the other on one machine.
    pub(crate) fn phases(&mut self, point: &Point) -> All {
        let text = point.text();
        if let Some(known) = self.known.get(&text) {
            return known.clone();
        }
        self.runs += 1;
        let came: All = run(&text).map(Rc::from);
        self.known.insert(text, came.clone());
        came
    }

    /// Forgets all, before the next drawn point.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }
}

/// What an experiment may name, with the links of the disks.
fn known() -> Known<'static> {
    let mut known = catalogue::known();
    for disk in &mut known.disks {
        let model = MODELS.iter().find(|(name, _, _)| *name == disk.name);
        disk.link = model.map(|(_, kind, _)| kind.link());
    }
    known
}

/// Runs the phases of the only cell of an experiment.
pub(crate) fn run(text: &str) -> Result<Vec<Came>, String> {
    let experiment = parse(text, "drawn.toml", &known()).map_err(|e| e.render(false))?;
    let cell = &experiment.cells[0];
    let mut machine =
        Machine::build(&experiment, cell, experiment.design.seed).map_err(|e| e.to_string())?;
    let plan = machine.plan().map_err(|e| e.to_string())?;
    let phases = plan.phases.into_iter();
    phases.map(|phase| one(&mut machine, phase)).collect()
}

/// Bytes that the disks have read and written.
fn moved(machine: &Machine) -> (u64, u64) {
    let disks = machine.host().device().disks();
    disks.fold((0, 0), |(read, written), disk| {
        let c = disk.counters();
        (
            read + c.sectors_read * SECTOR,
            written + c.sectors_written * SECTOR,
        )
    })
}

fn one(machine: &mut Machine, phase: Phase) -> Result<Came, String> {
    let (before, account) = (moved(machine), machine.account());
    let run = machine
        .run_phase(&phase, &mut ())
        .map_err(|e| e.to_string())?;
    let (after, now) = (moved(machine), machine.account());
    let elapsed = now.at.since(account.at).0 as f64;
    let raw = now.busy.iter().map(|busy| {
        let same = |b: &&raidlab_sim::block::Busy| b.is_of(busy);
        let earlier = account.busy.iter().find(same).map_or(0, |b| b.busy.0);
        let spent = busy.busy.0 as f64 - earlier as f64;
        let of = elapsed.max(1.0) * f64::from(busy.units.max(1));
        (busy.name.clone(), busy.kind, spent / of)
    });
    Ok(Came {
        raw: raw.collect(),
        why: run.why,
        outcome: run.outcome,
        disks: (after.0 - before.0, after.1 - before.1),
        phase,
    })
}

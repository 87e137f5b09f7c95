//! The guest's disks: modelled here, or served from outside.
use super::super::fit;
use super::super::job::Disks;
use crate::exit::{Failure, MISSING};
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::inventory::inventory;
use raidlab_io::observe::Roots;
use raidlab_nbd::guest::{Served, options, serve};
use raidlab_nbd::store::Memory;
use raidlab_sim::disk::Fault;
use raidlab_sim::machine;
use raidlab_vm::guest::load;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Drivers find their disks within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where disks come from.
pub(super) enum Source {
    /// They are modelled here, anew for each trial; what they hold is in this memory.
    Modelled(Memory),
    /// They are there, with these serial numbers.
    Given(Vec<String>),
}

/// Disks of a cell at work.
pub(super) enum Members {
    /// Modelled here.
    Modelled(Box<Served>),
    /// They were there.
    Given(Vec<PathBuf>),
}

fn missing(what: &str) -> impl FnOnce(&dyn std::error::Error) -> Failure + '_ {
    move |error| Failure::new(MISSING, format!("{what}: {error}"))
}

impl Source {
    /// Loads what is needed for them.
    pub(super) fn open(disks: &Disks) -> Result<Self, Failure> {
        let mut modules: Vec<&str> = match disks {
            Disks::Modelled { .. } => vec!["nbd"],
            Disks::Given { modules, .. } => modules.iter().map(String::as_str).collect(),
        };
        // mdadm looks for md itself before it asks for anything; levels come as they are asked for.
        modules.push("md_mod");
        if let Some(said) = load(&modules).first() {
            return Err(Failure::new(MISSING, said.clone()));
        }
        match disks {
            Disks::Modelled { bytes } => Memory::of_guest(*bytes)
                .map(Self::Modelled)
                .map_err(|error| missing("no memory for the disks")(&error)),
            Disks::Given { serials, .. } => Ok(Self::Given(serials.clone())),
        }
    }

    /// The disks of a cell.
    pub(super) fn members(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        seed: u64,
    ) -> Result<Members, Failure> {
        match self {
            Self::Modelled(memory) => {
                let spec = machine::fabric(
                    experiment,
                    &cell.setup.array.members,
                    cell.setup.host.write_cache,
                );
                let spec = spec.map_err(|error| missing("the disks cannot be modelled")(&error))?;
                let shown = fit::shown(experiment, cell);
                serve(&spec, seed, &shown, memory, options())
                    .map(|served| Members::Modelled(Box::new(served)))
                    .map_err(|error| missing("the disks cannot be served")(&error))
            }
            Self::Given(serials) => with_serials(serials).map(Members::Given),
        }
    }
}

/// The disks with these serial numbers, in the same order.
pub(in crate::real) fn with_serials(serials: &[String]) -> Result<Vec<PathBuf>, Failure> {
    serials.iter().map(|serial| with_serial(serial)).collect()
}

/// The disk with a serial number, as soon as its driver has found it.
fn with_serial(serial: &str) -> Result<PathBuf, Failure> {
    let begun = Instant::now();
    loop {
        let devices = inventory(&Roots::system())
            .map_err(|error| missing("the disks cannot be listed")(&error))?;
        let same =
            |told: &Option<String>| told.as_deref().is_some_and(|t| t.trim().ends_with(serial));
        if let Some(device) = devices.into_iter().find(|d| same(&d.identity.serial)) {
            return Ok(device.path);
        }
        if begun.elapsed() > PATIENCE {
            let message = format!("no disk with the serial number {serial} came up");
            return Err(Failure::new(MISSING, message));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Members {
    /// The block devices, in the order of the members.
    pub(super) fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Modelled(served) => served.devices(),
            Self::Given(paths) => paths,
        }
    }

    /// Kills the disk of a member for good; whether that was possible.
    pub(super) fn kill(&self, member: usize) -> bool {
        let Self::Modelled(served) = self else {
            return false;
        };
        served.inject(member as u32, Fault::Dead);
        true
    }

    /// What the server of modelled disks says of a trial.
    pub(super) fn facts(&self) -> Option<Value> {
        let Self::Modelled(served) = self else {
            return None;
        };
        served.report().as_ref().map(super::super::served::facts)
    }
}

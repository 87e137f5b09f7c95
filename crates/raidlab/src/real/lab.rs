//! What all guests of a run are made of.
use super::fit;
use super::guests;
use super::job::Disks;
use super::served::{self, Served};
use super::zfs;
use crate::args::GuestTime;
use crate::exit::Failure;
use raidlab_core::units::Bytes;
use raidlab_experiment::Experiment;
use raidlab_vm::qemu::Time;
use raidlab_vm::rundir::{RunDir, Runs};
use raidlab_vm::vm::Boot;
use raidlab_vm::{Flavour, Image, Kernel, Machine, Vm, Zfs};
use serde_json::{Value, json};
use std::path::Path;

/// Kernel, image, and where runs have their directories.
pub(super) struct Lab {
    pub(super) runs: Runs,
    kernel: Kernel,
    zfs: Option<Zfs>,
    image: Image,
    qemu: String,
    time: GuestTime,
}

impl Lab {
    /// Finds what guests of an experiment need; `also` names further programs.
    pub(super) fn prepare(
        cache: Option<&Path>,
        experiment: &Experiment,
        time: GuestTime,
        also: &[&str],
    ) -> Result<Self, Failure> {
        let qemu = guests::qemu()?;
        let runs = guests::runs()?;
        let cache = guests::cache(cache)?;
        let flavour = match time {
            GuestTime::Virtual => Flavour::Cloud,
            GuestTime::Real => served::flavour(experiment),
        };
        let kernel = guests::kernel(&cache, flavour)?;
        let zfs = zfs::of_experiment(&cache, &kernel, flavour, experiment)?;
        let image = guests::image(&cache, &kernel, also, zfs.as_ref())?;
        fit::tools(experiment, &image)?;
        Ok(Self {
            runs,
            kernel,
            zfs,
            image,
            qemu,
            time,
        })
    }

    /// The machine whose system has so much memory for itself.
    pub(super) fn machine(
        &self,
        experiment: &Experiment,
        memory: Bytes,
        served: Option<&Served>,
    ) -> Machine {
        let memory = guests::memory(memory, &self.image);
        match served {
            None => Machine::virtual_time(memory, fit::store(experiment)),
            Some(served) => Machine::real_time(memory, served.disks.clone()),
        }
    }

    /// Whether the image has a program that nothing can be done without.
    pub(super) fn needs(&self, program: &str) -> Result<(), Failure> {
        guests::needs(&self.image, program)
    }

    /// Boots it.
    pub(super) fn boot(
        &self,
        machine: &Machine,
        directory: RunDir,
        person: bool,
    ) -> Result<Vm, Failure> {
        let boot = Boot {
            kernel: &self.kernel,
            image: &self.image,
            machine,
            person,
        };
        Vm::start_in(&boot, directory).map_err(|error| guests::failure(&error))
    }

    /// What every trial's environment says of it.
    pub(super) fn facts(&self) -> Value {
        json!({
            "time": match self.time { GuestTime::Virtual => Time::Virtual, GuestTime::Real => Time::Real },
            "qemu": self.qemu,
            "kernel": {
                "release": self.kernel.release, "sha256": self.kernel.sha256, "package": self.kernel.package,
            },
            "zfs": self.zfs.as_ref().map(|zfs| json!({ "version": zfs.version, "packages": zfs.packages })),
            "image": { "sha256": self.image.sha256, "bytes": self.image.bytes },
        })
    }
}

/// What a guest is told of its disks.
pub(super) fn disks(machine: &Machine) -> Disks {
    match machine.time {
        Time::Virtual => Disks::Modelled {
            bytes: machine.store.0,
        },
        Time::Real => Disks::Given {
            modules: machine.modules().into_iter().map(str::to_owned).collect(),
            serials: machine.disks.iter().map(|disk| disk.name.clone()).collect(),
        },
    }
}

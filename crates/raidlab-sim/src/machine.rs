//! A whole machine built from an experiment's cell, as a target; what limits it.
//!
//! [`Machine::build`] makes the disks, channels, queues, the array, the file system and the host of a
//! cell. [`Machine::plan`] resolves the cell's profile for it, and [`Machine::run_phase`] runs a phase
//! as the measuring side does: the files that it needs are there before, the cache is emptied when it
//! is to be cold, all jobs begin together, and what came of them is an outcome with its doubts and
//! with [what limited it](Why).
//!
//! Sequential stretches of hundreds of gibibytes at a steady pace are leapt over ([`raidlab_core::drive`]): the models run
//! on at another place, and the machine's clock is put forward, so that its own time is that of the
//! models and what was leapt over. So it is while random calls go on as they have, of which a million and more are to come.
//! [`Machine::set_fast_forward`] turns both off.
mod begins;
mod build;
mod edges;
mod error;
mod first;
mod leap;
mod models;
pub mod overrides;
mod place;
mod repeats;
mod resilver;
mod resync;
mod run;
mod totals;
mod why;

pub use begins::Split;
pub use error::{MachineError, RunError};
pub use models::Models;
pub use repeats::WORTH as PASSED_OVER_FROM;
pub use resync::Resynced;
pub use run::PhaseRun;
pub use why::{Account, Load, Share, Why};

#[cfg(test)]
mod tests;

use crate::array::{Array, ArrayKind};
use crate::disk::Fault;
use crate::fabric::FabricSpec;
use crate::host::fs::{FileSystem, FsSpec, Spread};
use crate::host::{Host, HostSpec};
use crate::storage::Storage;
use leap::Leaping;
use raidlab_core::op::Op;
use raidlab_core::profile::{Place, Plan, Profile, ProfileContext, ProfileError};
use raidlab_core::target::{Completion, Limits, Tag, Target, TargetError};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_core::workload::{Chance, Stretch};
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::{Cell, Experiment};
use totals::Totals;

/// The disks of an experiment that have these names, in this order, behind their controllers and buses:
/// for whoever serves them to a real kernel. Volumes of controllers are left out.
///
/// # Errors
/// A model, controller or bus that is not known; an override that makes no disk.
pub fn fabric(
    experiment: &Experiment,
    members: &[String],
    write_cache: bool,
) -> Result<FabricSpec, MachineError> {
    build::fabric(experiment, members, write_cache)
}

/// The first disk of a cell's array that is used from within a physical sector on; `None` where there is none, or the array cannot
/// be built.
#[must_use]
pub fn split(experiment: &Experiment, cell: &Cell) -> Option<Split> {
    begins::split(experiment, &cell.setup)
}

/// What a profile is resolved for.
const fn context(memory: Bytes, place: Place) -> ProfileContext {
    ProfileContext {
        memory,
        place,
        writable: true,
        alignment: SECTOR as u32,
    }
}

/// A computer with an array, in virtual time.
#[derive(Debug)]
pub struct Machine {
    host: Host<Storage>,
    /// What the cell does.
    profile: Profile,
    memory: Bytes,
    /// What its memory gives or takes at the most, bytes a second; 0: not known.
    memory_rate: u64,
    /// There is a file system, so that data files are made as needed.
    directory: bool,
    /// What is removed before a phase is off the device when it begins: raidlab's own way, which there is on Linux alone.
    settles: bool,
    seed: u64,
    leaping: Leaping,
    /// What [`Target::keep`] was told to keep.
    kept: Option<Box<(Host<Storage>, Leaping)>>,
    /// Where another zone of some member begins, in sectors as a resync counts them.
    sync_edges: Vec<u64>,
    /// md's `sync_speed_max`, bytes a second.
    sync_most: u64,
    /// A resync goes at most so fast, bytes a second: md looks at the most only above the least.
    sync_limit: u64,
    /// Bytes of files in a pool of ZFS or an array of btrfs when its new members come; `None`: those of the profile's own files.
    allocated: Option<Bytes>,
}

impl Machine {
    /// The machine of a cell; `seed` decides the angle of each disk at time zero, and the operations of
    /// the phases.
    ///
    /// # Errors
    /// [`MachineError`], with what is wrong and where: a model that is not known, an override that makes
    /// no disk, a layout that cannot be built.
    pub fn build(experiment: &Experiment, cell: &Cell, seed: u64) -> Result<Self, MachineError> {
        let members = &cell.setup.array.members;
        let disks = members.iter().filter_map(|name| experiment.disk(name));
        Self::build_of(experiment, &Models::of(disks), cell, seed)
    }

    /// The same with models that were built before.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn build_of(
        experiment: &Experiment,
        models: &Models,
        cell: &Cell,
        seed: u64,
    ) -> Result<Self, MachineError> {
        let setup = &cell.setup;
        let host = HostSpec::of(&setup.host);
        let mut plans = build::plans(experiment, models, cell, &host.cpu)?;
        // Whoever sets the size of the stripe cache does so afterwards, and md drops what is above.
        if setup.array.initial_sync && setup.array.stripe_cache.is_none() {
            plans.storage.array.grown_caches = first::grown_caches(&plans.storage, seed)?;
        }
        let storage = Storage::new(&plans.storage, seed)?;
        let mut spec = FsSpec::of(setup, storage.sectors());
        spec.stripe = storage.stripe();
        let physical = storage.disks().map(|disk| disk.model().physical()).max();
        spec.sector = physical.unwrap_or(1) * SECTOR as u32;
        match &plans.storage.array.kind {
            ArrayKind::Pool(pool) => spec.vdevs = pool.vdevs().cloned().collect(),
            ArrayKind::Btrfs(btrfs) => spec.spread = Some(Spread::of(btrfs)),
            _ => {}
        }
        let fs = FileSystem::new(&spec)?;
        let directory = !fs.is_raw();
        let kind = (plans.solid, plans.storage.array.bitmap.is_some());
        Ok(Self {
            leaping: Leaping::new(plans.edges, kind, storage.stripe()),
            sync_edges: plans.sync_edges,
            sync_most: plans.storage.array.sync_speed_max,
            sync_limit: plans.storage.array.sync_limit(),
            host: Host::new(&host, storage, fs),
            profile: setup.profile.clone(),
            memory: setup.host.memory,
            memory_rate: host.cpu.peak,
            allocated: setup.array.allocated,
            kept: None,
            directory,
            settles: setup.host.kernel != Kernel::Windows2000,
            seed,
        })
    }

    /// Turns leaping over steady stretches on (as it is at first) or off.
    pub const fn set_fast_forward(&mut self, on: bool) {
        self.leaping.on = on;
    }

    /// Leaps through phases from so many bytes on; 256 GiB at first. Fewer are run to their end sooner than
    /// anyone notices, and exactly. From 0 on operations by chance are passed over however few they are, too.
    pub const fn set_fast_forward_from(&mut self, bytes: Bytes) {
        self.leaping.least = bytes.0;
    }

    /// Whether block operations go past the page cache. Phases of a profile say so themselves.
    pub fn set_direct(&mut self, on: bool) {
        self.host.set_direct(on);
    }

    /// The cell's profile, resolved for this machine.
    ///
    /// # Errors
    /// When a setting has a value that it cannot have here, or the device is too small.
    pub fn plan(&self) -> Result<Plan, ProfileError> {
        let size = Bytes(self.host.device().sectors() * SECTOR);
        let place = if self.directory {
            Place::Directory { free: size }
        } else {
            Place::Device { size }
        };
        self.profile.plan(&context(self.memory, place))
    }

    /// The host, with all that is below it.
    #[must_use]
    pub const fn host(&self) -> &Host<Storage> {
        &self.host
    }

    /// Something breaks in the disk of a member now.
    pub fn inject(&mut self, member: u32, fault: Fault) {
        let now = self.host.now();
        self.host
            .with_device(|storage| storage.inject(now, member, fault));
    }

    /// Busy times of all that there is, up to now.
    #[must_use]
    pub fn account(&self) -> Account {
        let totals = self.totals();
        let array = self.host.device().array();
        Account {
            at: self.now(),
            busy: totals.busy,
            moved: totals.moved,
            refused: totals.refused,
            refilled: totals.refilled,
            refill: self.host.device().refilled().1,
            apart: match array.is_some_and(Array::reads_apart) {
                true => {
                    let disks = self.host.device().disks();
                    disks
                        .map(|disk| disk.counters().sectors_read * SECTOR)
                        .collect()
                }
                false => Vec::new(),
            },
            memory: self.memory_rate,
        }
    }

    /// What limits the machine under `load` between two accounts of it.
    #[must_use]
    pub fn why(before: &Account, after: &Account, load: Load) -> Why {
        Why::between(before, after, load)
    }

    /// All that is counted, with what was leapt over.
    fn totals(&self) -> Totals {
        let mut totals = Totals::of(&self.host);
        totals.add(&self.leaping.extra);
        totals
    }
}

impl Target for Machine {
    const LEAPS: bool = true;

    fn limits(&self) -> Limits {
        self.host.limits()
    }

    #[inline]
    fn now(&self) -> Instant {
        self.host.now() + self.leaping.forward
    }

    #[inline]
    fn asked_by(&mut self, workload: u32) {
        self.host.asked_by(workload);
    }

    #[inline]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        self.host.submit(tag, op)
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let forward = self.leaping.forward;
        if forward == Span::ZERO {
            return self.host.wait(until, done);
        }
        let from = done.len();
        let until = until.map(|until| Instant(until.0.saturating_sub(forward.0)));
        self.host.wait(until, done)?;
        done[from..].iter_mut().for_each(|end| end.at += forward);
        Ok(())
    }

    #[inline]
    fn may_leap(&self) -> bool {
        self.leaping.may_leap(&self.host)
    }

    fn alike(&mut self, stretch: &Stretch, first: bool) -> u64 {
        self.leaping.alike(&self.host, stretch, first)
    }

    fn is_level(&self) -> bool {
        self.leaping.is_level()
    }

    fn grain(&self) -> u64 {
        leap::grain(&self.host)
    }

    fn leap(&mut self, stretch: &Stretch, bytes: u64) {
        self.host.read_from(stretch.offset + bytes);
        self.leaping.leap();
    }

    fn pass(&mut self, time: Span) {
        self.leaping.pass(time);
    }

    fn stays(&mut self, chance: &Chance, first: bool) -> Option<Span> {
        self.leaping.stays(&self.host, chance, first)
    }

    fn pass_alike(&mut self, time: Span) {
        let taken = self.leaping.pass_alike(time);
        self.host.with_device(|storage| storage.fill(&taken));
    }

    fn keep(&mut self) -> bool {
        self.kept = Some(Box::new((self.host.clone(), self.leaping.clone())));
        true
    }

    fn back(&mut self) {
        if let Some(kept) = self.kept.take() {
            (self.host, self.leaping) = *kept;
        }
    }
}

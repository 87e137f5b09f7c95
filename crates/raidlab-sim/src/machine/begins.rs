//! Members that begin within a physical sector: what such a disk writes begins and ends within sectors that it reads first.
use super::build::Parts;
use super::models::Models;
use super::place::area;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::Experiment;
use raidlab_experiment::setup::{Engine, Setup};

/// A disk of sectors of 4 KiB whose partition begins within one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The disk's name in the experiment.
    pub disk: String,
    /// Where its partition begins.
    pub start: Bytes,
    /// Its physical sectors.
    pub sector: Bytes,
}

/// The first member of a cell that begins so. Members of a controller's own array begin where the partition on its volume does,
/// as its chunks are whole sectors.
pub(super) fn split(experiment: &Experiment, setup: &Setup) -> Option<Split> {
    let array = &setup.array;
    let start = array.member_start.map(|start| start.0 / SECTOR);
    // What md leaves before the data is whole sectors, and where a partition begins does not follow from the size of the disk.
    let engine = match array.engine {
        Engine::Md => Engine::None,
        other => other,
    };
    let begins = area(setup.host.kernel, engine, u64::MAX, start).offset;
    // Models are read only where there is something to be found.
    if begins.is_multiple_of(8) {
        return None;
    }
    let parts = Parts::of(experiment, &Models::default(), &array.members).ok()?;
    let within = |physical: u32| !begins.is_multiple_of(u64::from(physical.max(1)));
    let (disk, physical) = parts.first(within)?;
    Some(Split {
        disk: disk.to_owned(),
        start: Bytes(begins * SECTOR),
        sector: Bytes(u64::from(physical) * SECTOR),
    })
}

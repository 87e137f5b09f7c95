//! How a cell is built, planned before anything is touched.
use crate::exit::{BAD_REQUEST, Failure};
use crate::real::places;
use raidlab_experiment::Cell;
use raidlab_experiment::setup::{ArrayState, Metadata};
use raidlab_host::provision::{
    InitialSync, MemberDevice, Options, ProvisionPlan, adds_to_ddf, free_arrays, plan,
};
use raidlab_io::observe::Roots;

/// How a cell is built on these members, now, which may be modelled disks.
pub(crate) fn plan_of(
    cell: &Cell,
    members: &[MemberDevice],
    initial_sync: InitialSync,
    verify: bool,
    modelled: bool,
) -> Result<ProvisionPlan, Failure> {
    let options = Options {
        verify,
        mount: places::mount()?,
        arrays: free_arrays(&Roots::system()),
        initial_sync,
        modelled,
        adds_to_ddf: ddf_rebuilt(cell) && adds_to_ddf(),
    };
    plan_with(cell, members, &options)
}

/// How a cell is built in a guest to come, whose mdadm is this machine's.
pub(crate) fn plan_in_guest(
    cell: &Cell,
    members: &[MemberDevice],
    verify: bool,
) -> Result<ProvisionPlan, Failure> {
    let options = Options {
        verify,
        mount: places::mount_in_guest(),
        // As on any machine without an array.
        arrays: (60..120).rev().collect(),
        initial_sync: InitialSync::AssumeClean,
        modelled: true,
        adds_to_ddf: ddf_rebuilt(cell) && adds_to_ddf(),
    };
    plan_with(cell, members, &options)
}

fn plan_with(
    cell: &Cell,
    members: &[MemberDevice],
    options: &Options,
) -> Result<ProvisionPlan, Failure> {
    plan(&cell.setup, members, options)
        .map_err(|error| Failure::new(BAD_REQUEST, format!("cell '{}': {error}", cell.label)))
}

/// Whether members of a DDF array are replaced: only then mdadm is asked whether it can do that.
fn ddf_rebuilt(cell: &Cell) -> bool {
    let array = &cell.setup.array;
    array.metadata == Some(Metadata::Ddf) && matches!(array.state, ArrayState::Rebuilding(_))
}

//! Real arrays on a real kernel: on the disks of this machine, and, by the same code, in a virtual machine on modelled
//! disks.
pub(crate) mod agent;
pub(crate) mod agree;
mod busy;
mod disks;
pub(crate) mod driver;
mod guests;
pub(crate) mod host;
mod job;
pub(crate) mod members;
pub(crate) mod places;
mod probe;
mod setup;
pub(crate) mod trial;
mod view;

use crate::args::{VmAction, VmArgs};
use crate::exit::{
    BAD_REQUEST, Code, Failure, INTERRUPTED, MISSING, Outcome, REFUSED, TRIAL_FAILED,
};
use raidlab_host::{ErrorKind, HostError};

/// `raidlab vm`.
pub(crate) fn vm(args: &VmArgs) -> Result<Outcome, Failure> {
    match &args.action {
        VmAction::Setup(setup) => setup::run(args.cache.as_deref(), setup),
        VmAction::Disks(disks) => disks::run(args.cache.as_deref(), disks),
        VmAction::Probe { json } => probe::run(*json),
    }
}

/// What an error of devices means for the exit code.
pub(crate) fn host_failure(error: &HostError) -> Failure {
    let code: Code = match error.kind() {
        ErrorKind::BadRequest => BAD_REQUEST,
        ErrorKind::Refused => REFUSED,
        ErrorKind::Missing => MISSING,
        ErrorKind::Failed => TRIAL_FAILED,
        ErrorKind::Interrupted => INTERRUPTED,
    };
    match error {
        HostError::Missing { what, remedy } => {
            Failure::new(code, what.clone()).remedy(remedy.clone())
        }
        other => Failure::from_error(code, other),
    }
}

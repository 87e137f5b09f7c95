//! Real arrays on a real kernel: in a virtual machine on modelled disks.
pub(crate) mod agent;
mod guests;
mod job;
mod probe;
mod setup;
mod view;

use crate::args::{VmAction, VmArgs};
use crate::exit::{Failure, Outcome};

/// `raidlab vm`.
pub(crate) fn vm(args: &VmArgs) -> Result<Outcome, Failure> {
    match &args.action {
        VmAction::Setup(setup) => setup::run(args.cache.as_deref(), setup),
        VmAction::Probe { json } => probe::run(*json),
    }
}

//! Arrays and file systems: planned as data, then built, verified, and undone by the journal.
//!
//! A [`ProvisionPlan`] is made from a cell's setup and the members alone: it can be printed, compared and digested
//! before anything is touched. [`build()`] carries it out on claimed members, each step announced in the journal first.
mod build;
mod check;
mod filesystem;
mod forget;
mod md;
pub(crate) mod partition;
mod plan;
mod pool;
mod ready;
mod refill;
mod step;
mod stripe;
mod sync;
mod take;
mod tune;

pub use build::{Built, Context, Stage, build};
pub use check::{Check, Checked, Found, When};
pub use plan::{
    InitialSync, MemberDevice, Options, PlanError, ProvisionPlan, Target, digest, plan,
};
pub use ready::{adds_to_ddf, claimed_member, free_arrays, member, requirements};
pub use refill::Refilled;
pub use step::{Node, Step};
pub use stripe::Stripe;
pub use sync::SyncState;

/// Metadata of BIOS RAIDs is refused where the board's firmware does not offer it, unless mdadm is told not to ask;
/// and disks without serial numbers get their names in their place.
pub(crate) const CONTAINER_ENVIRONMENT: [(&str, &str); 2] =
    [("IMSM_NO_PLATFORM", "1"), ("IMSM_DEVNAME_AS_SERIAL", "1")];

//! Block devices: what is here, whose it is, and arrays built on what may be used.
//!
//! The only crate that writes to devices that raidlab did not create, and only with a claim.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@inventory`], [`identity`] | every device, and by what it is known again |
//! | [`ownership`] | whose it is, by two witnesses |
//! | [`allow`], [`volume`] | what the user allows to be overwritten, and which of it a controller made of several disks |
//! | [`claim`] | the right to write, held |
//! | [`journal`] | what was done, before it is done, and how to undo it |
//! | [`alone`] | one run at a time, where names on the machine are its own |
//! | [`loops`] | disks that raidlab makes itself |
//! | [`provision`] | arrays and file systems: planned as data, built, verified, undone |
//! | [`kmsg`], [`facts`] | what the kernel says meanwhile, and what was built |
//! | [`tool`] | other programs |

pub mod allow;
pub mod alone;
pub mod claim;
mod error;
pub mod facts;
pub mod identity;
pub mod inventory;
pub mod journal;
pub mod kmsg;
mod label;
pub mod loops;
pub mod ownership;
mod patience;
pub mod provision;
mod sysfs;
mod system;
pub mod tool;

pub mod volume;

pub use error::{ErrorKind, HostError, Result};

//! A small virtual machine: a kernel, a guest image written from this machine's programs, QEMU, and a
//! channel on which jobs go in and records come out.
//!
//! | module | holds |
//! |---|---|
//! | [`kernel`], [`image`], [`cache`] | what is booted, and where it is kept |
//! | [`qemu`] | the machine as data, its command line, its process |
//! | [`rundir`] | what a run has while it lasts, and what a dead one left |
//! | [`channel`] | messages between host and guest, without and with a socket |
//! | [`vm`] | a machine under way: messages out of it, or why there are none |
//! | [`zfs`] | ZFS built on this machine for guests |
//! | [`guest`] | the other side: the first process, modules, the end |
//! | [`kvm`] | whether hardware virtualisation really runs |
pub mod cache;
pub mod channel;
pub mod error;
pub mod guest;
pub mod image;
pub mod kernel;
pub mod kvm;
pub mod modules;
pub mod qemu;
mod removal;
pub mod rundir;
pub mod tools;
pub mod vm;
pub mod zfs;

pub use cache::Cache;
pub use error::VmError;
pub use image::{Image, Recipe};
pub use kernel::{Flavour, Kernel};
pub use qemu::Machine;
pub use vm::Vm;
pub use zfs::Zfs;

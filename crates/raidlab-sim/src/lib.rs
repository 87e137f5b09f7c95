//! Disks, and later channels, controllers and the kernel's block path, in virtual time.
//!
//! | module | holds |
//! |---|---|
//! | [`disk`] | hard disks and solid-state disks as state machines that are asked, not called back |
//! | [`catalogue`] | model files: data with the source of every value |
//! | [`trace`] | recorded requests: reading them, replaying them, how far the replay is from the record |
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod disk;
pub mod trace;

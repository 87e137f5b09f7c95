//! Disks, channels, controllers, the kernel's block path and file systems, in virtual time.
//!
//! | module | holds |
//! |---|---|
//! | [`disk`] | hard disks and solid-state disks as state machines that are asked, not called back |
//! | [`catalogue`] | model files: data with the source of every value |
//! | [`block`] | what passes between the layers above a disk, and their accounts |
//! | [`fabric`] | channels, links, buses, host adapters and hardware RAID controllers |
//! | [`queue`] | the kernel's request queue of one device: merging, plugging, I/O schedulers |
//! | [`mod@array`] | md arrays: splitting, read balancing, stripe cache, resync and rebuild |
//! | [`storage`] | array over queues over fabric, as one block device |
//! | [`host`] | processes, CPU, page cache, read-ahead, write-back and file systems |
//! | [`machine`] | a whole machine built from an experiment's cell, as a target; what limits it |
//! | [`trace`] | recorded requests: reading them, replaying them, how far the replay is from the record |
#![forbid(unsafe_code)]

pub mod array;
pub mod block;
pub mod catalogue;
pub mod disk;
pub mod fabric;
pub mod host;
pub mod machine;
pub mod queue;
pub mod storage;
pub mod trace;

//! The pure heart of raidlab: what a workload asks for, what a target answers, and how the two are
//! joined.
//!
//! Nothing here knows a clock, a file, a socket, a thread or the environment, so the same workload
//! runs in wall time against a disk and in virtual time against a model, and the same seed gives
//! the same operations everywhere. Time passes only inside [`target::Target::wait`].
//!
//! | module | answers |
//! |---|---|
//! | [`units`], [`time`] | how many bytes or sectors, how many nanoseconds, and what a user meant by `64K` |
//! | [`price`] | what something costs |
//! | [`rng`], [`data`] | which number comes i-th from a seed, which bytes belong at an offset |
//! | [`op`], [`target`] | what can be asked of a device or file system, and by which four calls |
//! | [`workload`], [`phase`], [`profile`] | what is asked, in which order, counted how |
//! | [`drive`] | the one loop that joins a workload to a target |
//! | [`histogram`], [`outcome`], [`flag`] | what came of it, and why a figure may not be believed |
#![forbid(unsafe_code)]

pub mod data;
pub mod drive;
pub mod flag;
pub mod histogram;
pub mod op;
pub mod outcome;
pub mod phase;
pub mod price;
pub mod profile;
pub mod rng;
pub mod suggest;
pub mod target;
pub mod time;
pub mod units;
pub mod words;
pub mod workload;

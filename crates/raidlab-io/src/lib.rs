//! The real machine: disks and files as targets, phases in wall time, and what the kernel says about
//! both.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | targets by io_uring and by blocking calls |
//! | [`run`] | phases in wall time, with their evidence |
//! | [`observe`] | counters, device stacks, caches, environment, fitness |
//! | [`words`] | names in sentences |

mod descriptor;
pub mod engine;
pub mod observe;
pub mod run;
pub mod words;

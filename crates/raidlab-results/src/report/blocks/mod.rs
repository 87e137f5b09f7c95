//! The parts of a report, each from the groups of one profile.
pub(crate) mod aggregate;
pub(crate) mod bars;
pub(crate) mod closing;
pub(crate) mod context;
pub(crate) mod distribution;
pub(crate) mod environment;
pub(crate) mod fastest;
pub(crate) mod limits;
pub(crate) mod many;
pub(crate) mod published;
pub(crate) mod ratios;
pub(crate) mod rebuild;
pub(crate) mod sweep;
pub(crate) mod tails;
pub(crate) mod tool_table;
pub(crate) mod wanted;
pub(crate) mod worth;

mod crash;
mod known;
mod open;
mod query;
mod round_trip;
pub(crate) mod samples;
mod version;
mod write;

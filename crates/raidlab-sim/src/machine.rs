//! A whole machine built from an experiment's cell, as a target; what limits it.
pub mod overrides;
mod why;

pub use why::{Account, Load, Share, Why};

//! Named workloads: what the tool of that name does, as phases, and the figures it prints.
//!
//! A [`Profile`] is settings. [`Profile::plan`] resolves them for one place (defaults that depend on
//! the memory, phases that cannot run there, what is said beforehand), and [`Profile::figures`] gives
//! the tool's own columns for an outcome. `docs/profiles/` says for each profile what is done step by
//! step, what is counted, and how it differs from the tool.
mod block;
mod bonnie;
mod dd;
mod error;
mod figures;
mod fio;
mod hdbench;
mod hdparm;
mod plan;
mod setting;
mod tiobench;

pub use block::{Arrivals, BlockIo};
pub use bonnie::{Bonnie, Characters};
pub use dd::{Conv, Dd};
pub use error::ProfileError;
pub use figures::{Figure, Quantity};
pub use fio::{Fio, FioError, FioJob, Rw};
pub use hdbench::Hdbench;
pub use hdparm::Hdparm;
pub use plan::{FILLER, Place, Plan, ProfileContext, Skipped};
pub use setting::Setting;
pub use tiobench::Tiobench;

use crate::outcome::PhaseOutcome;
use crate::phase::Phase;
use crate::workload::spec::Order;
use serde::{Deserialize, Serialize};
use setting::Settings;
use std::collections::BTreeMap;

/// A named workload with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "profile", rename_all = "kebab-case")]
pub enum Profile {
    /// A large file by character and by block, random seeks, many small files.
    Bonnie(Bonnie),
    /// Threads that each write and read a file, in order and at random.
    Tiobench(Tiobench),
    /// A file written, read and copied, at several sizes.
    Hdbench(Hdbench),
    /// Cached and buffered reads in fixed windows of time.
    Hdparm(Hdparm),
    /// Written and read by blocks, twice.
    Dd(Dd),
    /// Random block operations at a queue depth.
    Random(BlockIo),
    /// Sequential block operations at a queue depth.
    Sequential(BlockIo),
    /// The jobs of a fio job file.
    Fio(Fio),
}

/// Does the same with the settings of whichever profile it is.
macro_rules! each {
    ($profile:expr, $settings:ident => $body:expr) => {
        match $profile {
            Profile::Bonnie($settings) => $body,
            Profile::Tiobench($settings) => $body,
            Profile::Hdbench($settings) => $body,
            Profile::Hdparm($settings) => $body,
            Profile::Dd($settings) => $body,
            Profile::Random($settings) | Profile::Sequential($settings) => $body,
            Profile::Fio($settings) => $body,
        }
    };
}

impl Profile {
    /// The names of all profiles that need no more than settings. `fio` is read from a job file.
    pub const NAMES: [&'static str; 7] = [
        "bonnie",
        "tiobench",
        "hdbench",
        "hdparm",
        "dd",
        "random",
        "sequential",
    ];

    /// The names of all profiles, `fio` too.
    pub fn all_names() -> impl Iterator<Item = &'static str> + Clone {
        Self::NAMES.into_iter().chain(["fio"])
    }

    /// The profile of that name with its defaults.
    ///
    /// # Errors
    /// When there is none; the error offers the nearest name. `fio` comes from [`Fio::parse`].
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Ok(match name {
            "bonnie" => Self::Bonnie(Bonnie::default()),
            "tiobench" => Self::Tiobench(Tiobench::default()),
            "hdbench" => Self::Hdbench(Hdbench::default()),
            "hdparm" => Self::Hdparm(Hdparm::default()),
            "dd" => Self::Dd(Dd::default()),
            "random" => Self::Random(BlockIo::default()),
            "sequential" => Self::Sequential(BlockIo::default()),
            "fio" => return Err(ProfileError::NeedsJobFile),
            _ => return Err(ProfileError::unknown_profile(name, Self::all_names())),
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bonnie(_) => "bonnie",
            Self::Tiobench(_) => "tiobench",
            Self::Hdbench(_) => "hdbench",
            Self::Hdparm(_) => "hdparm",
            Self::Dd(_) => "dd",
            Self::Random(_) => "random",
            Self::Sequential(_) => "sequential",
            Self::Fio(_) => "fio",
        }
    }

    /// Its settings, for help and completion.
    #[must_use]
    pub fn about(&self) -> &'static [Setting] {
        fn of<S: Settings>(_: &S) -> &'static [Setting] {
            S::SETTINGS
        }
        each!(self, settings => of(settings))
    }

    /// Sets one setting from text, such as `chunk` to `64KiB`. `auto` leaves a setting to the profile
    /// where it can decide.
    ///
    /// # Errors
    /// When there is no such setting (the nearest is offered) or the value cannot be read.
    pub fn set(&mut self, setting: &str, value: &str) -> Result<(), ProfileError> {
        let name = self.name();
        let known = each!(self, settings => settings.set(setting, value))
            .map_err(|why| ProfileError::value(name, setting, why))?;
        if known {
            Ok(())
        } else {
            Err(ProfileError::unknown_setting(name, setting, self.about()))
        }
    }

    /// The settings as they stand, `auto` where the profile will decide. The resolved ones are in
    /// [`Plan::settings`].
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        each!(self, settings => settings.shown())
    }

    /// What it comes to in one place.
    ///
    /// # Errors
    /// When a setting has a value that it cannot have there, the place is not one the profile can run
    /// in, or there is too little space; each error names the setting and the remedy.
    pub fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        match self {
            Self::Bonnie(settings) => settings.plan(context),
            Self::Tiobench(settings) => settings.plan(context),
            Self::Hdbench(settings) => settings.plan(context),
            Self::Hdparm(settings) => settings.plan(context),
            Self::Dd(settings) => settings.plan(context),
            Self::Random(settings) => settings.plan("random", Order::Random, context),
            Self::Sequential(settings) => settings.plan("sequential", Order::Sequential, context),
            Self::Fio(settings) => settings.plan(context),
        }
    }

    /// The tool's own columns for the outcome of one of the plan's phases. The first one is the
    /// phase's rate, unless no time passed.
    #[must_use]
    pub fn figures(&self, phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
        match self {
            Self::Bonnie(_) => figures::bonnie(phase, outcome),
            Self::Tiobench(_) => figures::tiobench(phase, outcome),
            Self::Hdbench(_) => figures::hdbench(phase, outcome),
            Self::Hdparm(_) => figures::hdparm(phase, outcome),
            Self::Dd(_) => figures::dd(phase, outcome),
            Self::Random(_) | Self::Sequential(_) | Self::Fio(_) => figures::block(phase, outcome),
        }
    }
}

#[cfg(test)]
mod tests;

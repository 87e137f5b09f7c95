//! What can be wrong with a profile's settings or with where it is to run.
use crate::suggest::{meant, nearest};
use crate::units::Bytes;

/// Why a profile cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No profile of that name.
    #[error("there is no profile '{name}': choose from {known}{}", meant(*.nearest))]
    UnknownProfile {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// The fio profile without its jobs.
    #[error("profile fio is the jobs of a fio job file: give the file")]
    NeedsJobFile,
    /// No setting of that name.
    #[error("profile {profile} has no setting '{setting}'{}; it has {}", meant(*.nearest), or_none(known))]
    UnknownSetting {
        /// The profile.
        profile: &'static str,
        /// What was set.
        setting: String,
        /// All its settings.
        known: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// A setting has a value that it cannot have.
    #[error("profile {profile}, setting '{setting}': {why}")]
    Value {
        /// The profile.
        profile: &'static str,
        /// The setting.
        setting: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// The place is not one the profile can run in.
    #[error("profile {profile} cannot run here: {why}")]
    Place {
        /// The profile.
        profile: &'static str,
        /// Why, and what to do instead.
        why: String,
    },
    /// The file system has too little free space.
    #[error(
        "profile {profile} needs {needed} of free space and there are {free}: free some, or choose a smaller '{setting}'"
    )]
    Space {
        /// The profile.
        profile: &'static str,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        free: Bytes,
        /// The setting that makes it smaller.
        setting: &'static str,
    },
}

fn or_none(known: &str) -> &str {
    if known.is_empty() {
        "none, its job file says all"
    } else {
        known
    }
}

impl ProfileError {
    pub(super) fn value(
        profile: &'static str,
        setting: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self::Value {
            profile,
            setting: setting.into(),
            why: why.into(),
        }
    }

    pub(super) fn unknown_profile(
        name: &str,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> Self {
        let all: Vec<&str> = known.clone().collect();
        Self::UnknownProfile {
            name: name.to_owned(),
            known: all.join(", "),
            nearest: nearest(name, known),
        }
    }

    pub(super) fn unknown_setting(
        profile: &'static str,
        setting: &str,
        known: &[super::Setting],
    ) -> Self {
        let keys: Vec<&'static str> = known.iter().map(|s| s.key).collect();
        Self::UnknownSetting {
            profile,
            setting: setting.to_owned(),
            known: keys.join(", "),
            nearest: nearest(setting, keys),
        }
    }
}

//! Sessions, trials and environments on their way into or out of a store.
use super::{Store, StoreError, TrialFilter};
use crate::record::{Session, TrialRecord};
use serde_json::Value;
use std::collections::BTreeMap;

/// Trials with all that they refer to: what importers make, and what is exported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// The sessions of the trials.
    pub sessions: Vec<Session>,
    /// The environments that the trials refer to, by digest
    /// ([`environment_digest`](super::environment_digest)).
    pub environments: BTreeMap<String, Value>,
    /// The trials.
    pub trials: Vec<TrialRecord>,
}

/// What an import came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Sessions added.
    pub sessions: usize,
    /// Trials added.
    pub trials: usize,
    /// Trials that were in the store already.
    pub skipped: usize,
    /// Those of them that have another content here, by their ids: what is here stays.
    pub others: Vec<String>,
    /// Sessions that were unfinished here and came finished.
    pub finished: usize,
}

impl Store {
    /// The trials that pass `filter`, with their sessions and environments, in the order of
    /// [`Store::trials`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn bundle(&mut self, filter: &TrialFilter) -> Result<Bundle, StoreError> {
        // One transaction: a session that another process removes meanwhile is there whole or not.
        self.in_one_view(|store| {
            Ok(Bundle {
                trials: store.trials(filter)?,
                ..store.references(filter)?
            })
        })
    }

    /// What the trials that pass `filter` refer to, without the trials themselves.
    pub(crate) fn references(&self, filter: &TrialFilter) -> Result<Bundle, StoreError> {
        let (sessions, digests) = self.referred_to(filter)?;
        let mut bundle = Bundle::default();
        for session in sessions {
            bundle.sessions.push(self.session(&session)?);
        }
        for digest in digests {
            if let Some(environment) = self.environment(&digest)? {
                bundle.environments.insert(digest, environment);
            }
        }
        Ok(bundle)
    }
}

//! How long trials took, by the clock of the machine that carried them out, with all that belongs to them: guests that boot, arrays
//! that are built and taken apart. No real time enters the record of a simulated trial, and none of this one's that of a guest's: it
//! is kept with the plan of the session, and no result depends on it.
use super::StoredRun;
use crate::bench::{store_failure, unless_locked};
use crate::exit::{Failure, MISSING};
use raidlab_results::store::{SessionFilter, Store};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What trials of one cell took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Trials.
    pub(crate) trials: u32,
    /// Their time, each on one thread, in seconds.
    pub(crate) seconds: f64,
}

impl Spent {
    /// Mean seconds of a trial.
    pub(crate) fn mean(self) -> f64 {
        self.seconds / f64::from(self.trials.max(1))
    }

    fn add(&mut self, other: Self) {
        self.trials += other.trials;
        self.seconds += other.seconds;
    }
}

/// What trials took, by the digest of the cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Took(BTreeMap<String, Spent>);

impl Took {
    /// Adds a trial of a cell.
    pub(crate) fn add(&mut self, cell: &str, seconds: f64) {
        self.join(cell, Spent { trials: 1, seconds });
    }

    fn join(&mut self, cell: &str, spent: Spent) {
        self.0.entry(cell.to_owned()).or_default().add(spent);
    }

    /// What the trials of a cell took; `None` when there were none.
    pub(crate) fn of(&self, cell: &str) -> Option<Spent> {
        self.0.get(cell).copied().filter(|spent| spent.trials > 0)
    }

    /// Keeps it with the session of the trials, beside what trials before an interruption took; unless another process has the
    /// store locked, since only estimates need it.
    pub(crate) fn keep(&self, store: &mut Store, session: &str) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let Some(stored) = unless_locked(store, |store| store.session(session))? else {
            return Ok(());
        };
        let Some(mut run) = StoredRun::of(&stored) else {
            return Ok(());
        };
        for (cell, spent) in &self.0 {
            run.spent.entry(cell.clone()).or_default().add(*spent);
        }
        let plan = serde_json::to_value(&run);
        let plan = plan.map_err(|error| Failure::new(MISSING, error.to_string()))?;
        unless_locked(store, |store| store.replan(session, &plan)).map(drop)
    }

    /// What trials of these cells took that are in the store, carried out by this version, by where they were: `sim`, or `vm` or
    /// `host` with what made them other trials.
    pub(crate) fn stored(
        store: &Store,
        cells: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Self>, Failure> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        let sessions = store.sessions(&SessionFilter::default());
        for info in sessions.map_err(store_failure)? {
            let session = info.session;
            let run = StoredRun::of(&session).filter(|run| run.fast_forward);
            let Some(run) = run.filter(|_| session.raidlab == env!("CARGO_PKG_VERSION")) else {
                continue;
            };
            for (cell, spent) in run.spent.iter().filter(|(cell, _)| cells.contains(*cell)) {
                let took = all.entry(run.on.clone()).or_default();
                took.join(cell, *spent);
            }
        }
        Ok(all)
    }
}

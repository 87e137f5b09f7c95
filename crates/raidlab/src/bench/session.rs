//! The run loop: rounds of trials until it is enough, each in the store before the next begins.
use super::kept::kept;
use super::plan::{Plan, Prepared};
use super::precision::{self, Known};
use super::progress::View;
use super::schedule::{Enough, order_of_round, seed_of_round};
use crate::exit::{Failure, MISSING};
use crate::signals::Stop;
use crate::talk;
use raidlab_results::record::{Status, TrialRecord};
use raidlab_results::store::{Store, StoreError, TrialFilter};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Instant;

/// One trial to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn<'a> {
    /// The session it belongs to.
    pub(crate) session: &'a str,
    /// Number of the arm.
    pub(crate) arm: usize,
    /// Its round.
    pub(crate) round: u32,
    /// Its place in the order of execution.
    pub(crate) order: u32,
    /// Seed of its operations and data.
    pub(crate) seed: u64,
}

/// How a trial ended.
pub(crate) enum Ended {
    /// All phases ran.
    Complete(Box<TrialRecord>, Value),
    /// It failed; what there is of it is kept.
    Failed(Box<TrialRecord>, Value, Failure),
    /// The user stopped it; nothing is kept.
    Interrupted,
}

/// What measures: the machine, or a stand-in in tests.
pub(crate) trait Measure {
    /// Runs one trial.
    fn trial(
        &mut self,
        prepared: &Prepared,
        turn: Turn<'_>,
        view: &mut View,
    ) -> Result<Ended, Failure>;
}

/// How a session ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// It is enough.
    Finished,
    /// The user stopped it; it can be resumed.
    Interrupted,
}

/// A session under way.
pub(crate) struct Running<'a, M> {
    pub(crate) plan: &'a Plan,
    pub(crate) prepared: &'a [Prepared],
    pub(crate) store: &'a mut Store,
    pub(crate) session: &'a str,
    pub(crate) measure: &'a mut M,
    pub(crate) stop: &'a Stop,
}

impl<M: Measure> Running<'_, M> {
    /// Runs what is left to run. Trials that the store holds already are not run again.
    ///
    /// # Errors
    /// When a trial fails (it is kept with its reason) or the store cannot be written.
    pub(crate) fn run(&mut self) -> Result<SessionEnd, Failure> {
        let mut trials = self.stored()?;
        let complete = trials.iter().filter(|trial| is_complete(trial)).count();
        let mut view = View::new(self.plan.most_trials(), complete as u32);
        let ended = self.rounds(&mut trials, &mut view);
        view.finish();
        if matches!(ended, Ok(SessionEnd::Finished)) {
            self.store
                .finish_session(self.session)
                .map_err(store_failure)?;
        }
        ended
    }

    fn stored(&self) -> Result<Vec<TrialRecord>, Failure> {
        self.store
            .trials(&TrialFilter::of_session(self.session))
            .map_err(store_failure)
    }

    fn rounds(
        &mut self,
        trials: &mut Vec<TrialRecord>,
        view: &mut View,
    ) -> Result<SessionEnd, Failure> {
        let began = Instant::now();
        let mut order = trials.iter().map(|t| t.order + 1).max().unwrap_or(0);
        for round in 0..self.plan.enough.most() {
            let spent = self
                .plan
                .budget
                .is_some_and(|budget| began.elapsed() >= budget.to_std());
            if round > 0 && self.is_enough(trials, round, spent) {
                return Ok(SessionEnd::Finished);
            }
            // What failed stays on record, and is measured anew.
            let done: BTreeSet<usize> = trials
                .iter()
                .filter(|t| t.round == round && is_complete(t))
                .filter_map(|t| self.arm_of(t))
                .collect();
            for arm in order_of_round(self.plan.seed, round, self.prepared.len()) {
                if done.contains(&arm) {
                    continue;
                }
                let seed = seed_of_round(self.plan.seed, round);
                let turn = Turn {
                    session: self.session,
                    arm,
                    round,
                    order,
                    seed,
                };
                match self.measure.trial(&self.prepared[arm], turn, view)? {
                    Ended::Interrupted => return Ok(SessionEnd::Interrupted),
                    Ended::Failed(record, environment, failure) => {
                        self.keep(&record, &environment)?;
                        return Err(failure);
                    }
                    Ended::Complete(record, environment) => {
                        self.keep(&record, &environment)?;
                        view.trial_ends(&record);
                        trials.push(*record);
                    }
                }
                order += 1;
            }
        }
        let rounds = trials.iter().map(|t| t.round + 1).max().unwrap_or(0);
        if rounds == self.plan.enough.most()
            && let Some(remark) = precision::remark(&self.known(trials), self.plan.enough, rounds)
        {
            talk::warn(&remark);
        }
        Ok(SessionEnd::Finished)
    }

    fn keep(&mut self, record: &TrialRecord, environment: &Value) -> Result<(), Failure> {
        kept(self.stop, self.store, |store| {
            store.append_trial(record, Some(environment)).map(drop)
        })
    }

    fn arm_of(&self, trial: &TrialRecord) -> Option<usize> {
        self.plan
            .arms
            .iter()
            .position(|arm| arm.label == trial.cell.label && arm.profile.name() == trial.profile)
    }

    /// Whether `rounds` rounds are enough; says so when they had to be.
    fn is_enough(&self, trials: &[TrialRecord], rounds: u32, budget_spent: bool) -> bool {
        let known = self.known(trials);
        let settled = !known.is_empty() && known.iter().all(|figure| figure.settled);
        if settled || budget_spent {
            if let Some(remark) = precision::remark(&known, self.plan.enough, rounds) {
                talk::warn(&remark);
            }
            return true;
        }
        false
    }

    /// How well each figure is known, when that decides how often is enough.
    fn known(&self, trials: &[TrialRecord]) -> Vec<Known> {
        let Enough::Width { width, most } = self.plan.enough else {
            return Vec::new();
        };
        let groups = (0..self.plan.arms.len()).map(|arm| {
            let of = &self.plan.arms[arm];
            precision::Group {
                label: &of.label,
                profile: of.profile.name(),
                trials: trials
                    .iter()
                    .filter(move |t| self.arm_of(t) == Some(arm))
                    .collect(),
            }
        });
        precision::known(groups, width, most)
    }
}

fn is_complete(trial: &TrialRecord) -> bool {
    trial.status == Status::Complete
}

/// What a store's error means for the exit code.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    let code = match error {
        StoreError::NoSuchSession(_)
        | StoreError::NoSuchTrial(_)
        | StoreError::Ambiguous { .. }
        | StoreError::NotAnId(_)
        | StoreError::NotAFile { .. }
        | StoreError::Foreign { .. }
        | StoreError::NotSqlite { .. } => crate::exit::BAD_REQUEST,
        _ => MISSING,
    };
    Failure::from_error(code, &error)
}

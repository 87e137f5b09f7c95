//! The session of an experiment in the store: begun, or gone on with where it stopped.
use super::spent::Spent;
use super::trial::digests;
use crate::args::RunArgs;
use crate::bench::store_failure;
use crate::commands::{command_line, timestamp};
use crate::exit::{Failure, MISSING};
use crate::talk;
use raidlab_core::words::count;
use raidlab_experiment::{Experiment, Plan};
use raidlab_host::alone::told_of;
use raidlab_results::id;
use raidlab_results::record::{Session, Status, TrialRecord};
use raidlab_results::store::{Store, TrialFilter};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is kept of a run with its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct StoredRun {
    /// The experiment with all defaults filled.
    pub(crate) experiment: Experiment,
    /// Where it is carried out: `sim`, or `host` with its members.
    pub(crate) on: String,
    /// The seed of order, operations and models.
    pub(crate) seed: u64,
    /// Whether steady stretches are passed over in one step.
    pub(crate) fast_forward: bool,
    /// The file as it was named.
    pub(crate) file: String,
    /// How long trials took, by the digest of the cell: for `raidlab plan`, and for no result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) spent: BTreeMap<String, Spent>,
}

impl StoredRun {
    /// The run of a session; `None` when it is none of an experiment.
    pub(crate) fn of(session: &Session) -> Option<Self> {
        serde_json::from_value(session.plan.clone()?).ok()
    }

    /// Whether trials of `other` are trials of this: the same cells under the same names, as often,
    /// with the same seed. Words of the file and what the report shows may differ.
    fn same_trials(&self, other: &Self) -> bool {
        let cells = |run: &Self| -> Vec<(String, String)> {
            let labels = run.experiment.cells.iter().map(|c| c.label.clone());
            labels.zip(digests(&run.experiment)).collect()
        };
        let rounds = |run: &Self| (run.experiment.design.repeats, run.experiment.design.order);
        self.on == other.on
            && self.seed == other.seed
            && self.fast_forward == other.fast_forward
            && rounds(self) == rounds(other)
            && cells(self) == cells(other)
    }
}

/// A session to work on, and its trials that are complete already.
pub(crate) struct Open {
    pub(crate) session: String,
    pub(super) done: Vec<TrialRecord>,
}

impl Open {
    /// Cells (by digest) and rounds that need not be run.
    pub(crate) fn known(&self) -> BTreeSet<(&str, u32)> {
        let complete = self.done.iter().filter(|t| t.status == Status::Complete);
        complete
            .filter_map(|t| Some((t.cell_digest.as_deref()?, t.round)))
            .collect()
    }
}

/// The session of this run: the newest interrupted one that has the same trials, unless `--fresh`; else
/// a new one.
pub(crate) fn open(
    store: &mut Store,
    plan: &Plan<'_>,
    args: &RunArgs,
    on: &str,
) -> Result<Open, Failure> {
    let run = StoredRun {
        experiment: plan.experiment.clone(),
        on: on.to_owned(),
        seed: plan.seed,
        fast_forward: !args.no_fast_forward,
        file: args.file.display().to_string(),
        spent: BTreeMap::new(),
    };
    if !args.fresh {
        under_way(store, &run)?;
    }
    if !args.fresh
        && let Some(session) = interrupted(store, &run)?
    {
        store.resume_session(&session.id).map_err(store_failure)?;
        let mut done = store
            .trials(&TrialFilter::of_session(&session.id))
            .map_err(store_failure)?;
        done.retain(|trial| trial.status == Status::Complete);
        talk::note(&format!(
            "going on with session {}: {} of {} are there (--fresh begins anew)",
            id::short(&session.id),
            done.len(),
            count(plan.trials.len(), "trial")
        ));
        return Ok(Open {
            session: session.id,
            done,
        });
    }
    let session = begin(store, plan, &run)?;
    Ok(Open {
        session,
        done: Vec::new(),
    })
}

/// Refuses what another process is at work on.
fn under_way(store: &Store, run: &StoredRun) -> Result<(), Failure> {
    let unfinished = store.unfinished_sessions().map_err(store_failure)?;
    let same = unfinished.into_iter().find(|info| {
        info.running
            .is_some_and(|process| process != std::process::id())
            && StoredRun::of(&info.session).is_some_and(|stored| stored.same_trials(run))
    });
    let Some((process, info)) = same.and_then(|info| Some((info.running?, info))) else {
        return Ok(());
    };
    let planned = info.session.planned.unwrap_or_default();
    Err(Failure::new(
        MISSING,
        format!(
            "the same is being run already, by {}: session {}, {} of {} so far",
            told_of(process),
            id::short(&info.session.id),
            info.complete(),
            count(planned, "trial")
        ),
    )
    .remedy("wait for its end, or end it ('kill' ends it as Ctrl-C does) and go on with the same command; --fresh runs it once more, beside it"))
}

fn interrupted(store: &Store, run: &StoredRun) -> Result<Option<Session>, Failure> {
    let unfinished = store.unfinished_sessions().map_err(store_failure)?;
    let mut same = unfinished
        .into_iter()
        .filter(|info| info.running.is_none())
        .map(|info| info.session)
        // What another version made is another model's.
        .filter(|session| session.raidlab == env!("CARGO_PKG_VERSION"))
        .filter(|session| StoredRun::of(session).is_some_and(|stored| stored.same_trials(run)));
    Ok(same.next_back())
}

fn begin(store: &mut Store, plan: &Plan<'_>, run: &StoredRun) -> Result<String, Failure> {
    let session = Session {
        id: id::random().map_err(|error| Failure::from_error(MISSING, &error))?,
        title: plan.experiment.title.clone(),
        created: timestamp(),
        command: command_line(),
        raidlab: env!("CARGO_PKG_VERSION").to_owned(),
        plan: Some(
            serde_json::to_value(run).map_err(|error| Failure::new(MISSING, error.to_string()))?,
        ),
        planned: u32::try_from(plan.trials.len()).ok(),
        finished: false,
        notes: plan.experiment.question.clone().into_iter().collect(),
    };
    store.begin_session(&session).map_err(store_failure)?;
    Ok(session.id)
}

//! `raidlab run`: an experiment on modelled disks, from its file to the report.
mod pool;
mod progress;
mod resume;
mod spent;
mod trial;

pub(crate) use resume::{Open, StoredRun, open};
pub(super) use spent::Spent;
pub(crate) use spent::Took;
pub(super) use trial::{Recorder, Simulate, Simulated, results_digest};

use super::catalogue;
use super::caution;
use super::choose;
use super::estimate::{self, Works};
use super::machine::Machines;
use super::unheard;
use super::unmodelled;
use crate::args::{On, RunArgs};
use crate::bench::{kept, store_failure, unless_locked};
use crate::commands::{files, output, quoted, quoted_os};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::place;
use crate::real;
use crate::signals::Stop;
use crate::talk;
use progress::View;
use raidlab_experiment::{Plan, Trial, expand};
use raidlab_results::export::write_jsonl;
use raidlab_results::id;
use raidlab_results::record::{Status, TrialRecord};
use raidlab_results::report::document::Block;
use raidlab_results::store::{Store, TrialFilter};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

pub(crate) fn run(args: &RunArgs, place: &place::Store) -> Result<Outcome, Failure> {
    unheard::run(args)?;
    match args.on {
        On::Sim => {}
        On::Host => return real::host::run(args, place),
        On::Vm => return real::vm::run(args, place),
    }
    let mut experiment = catalogue::simulated(&args.file, &args.design)?;
    choose::only(&mut experiment, args.only.as_deref())?;
    // What the report cannot do is known before the work is done.
    output::check_run(&args.output, args.out.as_deref())?;
    let plan = expand(&experiment, experiment.design.seed);
    let machines = Machines::new(&experiment, !args.no_fast_forward);
    machines.check()?;
    for told in unmodelled::told(&experiment) {
        talk::warn(&told);
    }
    caution::warn(&experiment, None);
    if experiment.design.verify {
        talk::note("there is nothing to verify on the simulator: modelled arrays hold no data");
    }
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let mut store = Store::open(&place.to_write()?).map_err(store_failure)?;
    let open = open(&mut store, &plan, args, "sim")?;
    let session = Running {
        plan: &plan,
        open: &open,
        machines: &machines,
        jobs: args.jobs.unwrap_or_else(estimate::processors) as usize,
        command: &command(args, &plan),
        stop: &stop,
    };
    let came = session.run(&mut store);
    match came {
        Ok(()) if stop.asked() => interrupted(&mut store, &open),
        Ok(()) => finish(args, &mut store, &open.session, Vec::new()),
        Err(failure) => {
            // What it failed with is what counts.
            let _ = forget_if_empty(&mut store, &open.session);
            Err(failure)
        }
    }
}

/// The command that repeats the run: all that the results depend on, and nothing else.
fn command(args: &RunArgs, plan: &Plan<'_>) -> String {
    let mut words = again(args, plan, "sim");
    if args.no_fast_forward {
        words.push_str(" --no-fast-forward");
    }
    words
}

/// What commands that repeat a run have in common, wherever it is `on`.
pub(crate) fn again(args: &RunArgs, plan: &Plan<'_>, on: &str) -> String {
    let mut words = format!(
        "raidlab run {} --on {on} --seed {} --repeats {}",
        quoted_os(args.file.as_os_str()),
        plan.seed,
        plan.experiment.design.repeats
    );
    if let Some(only) = &args.only {
        let _ = write!(words, " --only {}", quoted(only));
    }
    if let Some(size) = args.design.member_size {
        let _ = write!(words, " --member-size {}B", size.0);
    }
    if args.design.verify {
        words.push_str(" --verify");
    }
    words
}

/// Says in which trial it was interrupted, and in what of it: of checks and resyncs, which take hours, nothing else tells.
pub(crate) fn broken_off(at: Option<&str>) {
    if let Some(at) = at {
        talk::note(&format!("interrupted in {at}"));
    }
}

/// What was done is kept; of nothing there is nothing to go on with.
pub(crate) fn interrupted(store: &mut Store, open: &Open) -> Result<Outcome, Failure> {
    talk::note(&if forget_if_empty(store, &open.session)? {
        "interrupted before the first trial ended; nothing was kept".to_owned()
    } else {
        format!(
            "interrupted; finished trials are kept, and the same command goes on with session {}",
            id::short(&open.session)
        )
    });
    Ok(Outcome::Interrupted)
}

/// Removes a session of which nothing was stored, unless another process has the store locked; tells whether it did.
pub(crate) fn forget_if_empty(store: &mut Store, session: &str) -> Result<bool, Failure> {
    let filter = TrialFilter::of_session(session);
    let forgotten = unless_locked(store, |store| {
        let is_empty = store.trials(&filter)?.is_empty();
        if is_empty {
            store.remove_session(session)?;
        }
        Ok(is_empty)
    })?;
    Ok(forgotten.unwrap_or(false))
}

/// The report and the files that were asked for, with blocks `beside` at its end. Trials that failed are
/// told last.
pub(crate) fn finish(
    args: &RunArgs,
    store: &mut Store,
    session: &str,
    beside: Vec<Block>,
) -> Result<Outcome, Failure> {
    let failure = told_failures(store, session)?;
    if failure.is_none() {
        store.finish_session(session).map_err(store_failure)?;
    }
    write_out(args, store, session)?;
    super::report::of_session_beside(store, session, beside, &args.output)?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Outcome::Done),
    }
}

/// What to say of the trials of a session that failed, if there are such.
pub(crate) fn told_failures(store: &mut Store, session: &str) -> Result<Option<Failure>, Failure> {
    let trials = store
        .trials(&TrialFilter::of_session(session))
        .map_err(store_failure)?;
    let failed: Vec<&TrialRecord> = trials
        .iter()
        .filter(|trial| trial.status != Status::Complete)
        .collect();
    Ok(failed.first().map(|first| {
        let Status::Failed { reason } = &first.status else {
            return Failure::new(TRIAL_FAILED, "a trial failed");
        };
        Failure::new(
            TRIAL_FAILED,
            format!(
                "{} of {} trials failed; the first: {}: {reason}",
                failed.len(),
                trials.len(),
                first.cell.label
            ),
        )
    }))
}

/// Writes the trials as JSON lines where that was asked for.
pub(crate) fn write_out(args: &RunArgs, store: &mut Store, session: &str) -> Result<(), Failure> {
    let Some(path) = &args.out else {
        return Ok(());
    };
    let bundle = store
        .bundle(&TrialFilter::of_session(session))
        .map_err(store_failure)?;
    let mut text = Vec::new();
    write_jsonl(&mut text, &bundle).map_err(|error| Failure::from_error(MISSING, &error))?;
    files::write(path, &text)?;
    output::wrote(path);
    Ok(())
}

/// A session under way.
struct Running<'a, M> {
    plan: &'a Plan<'a>,
    open: &'a Open,
    machines: &'a M,
    jobs: usize,
    command: &'a str,
    stop: &'a Stop,
}

impl<M: Simulate> Running<'_, M> {
    /// Runs what is left to run; finished trials are in the store before more are waited for.
    fn run(&self, store: &mut Store) -> Result<(), Failure> {
        let recorder = Recorder::new(self.plan, &self.open.session, self.command);
        let known = self.open.known();
        let digests = recorder.digests();
        let unknown = |trial: &&Trial| {
            let cell = digests[trial.cell].as_str();
            !known.contains(&(cell, trial.round))
        };
        let left: Vec<Trial> = self.plan.trials.iter().filter(unknown).copied().collect();
        let work = Simulation {
            plan: self.plan,
            trials: &left,
            machines: self.machines,
            recorder: &recorder,
            jobs: self.jobs,
            stop: self.stop,
        };
        let mut took = Took::default();
        let ended = work.run(self.plan.trials.len(), |records, times| {
            for (record, time) in records.iter().zip(times) {
                if let Some(cell) = &record.cell_digest {
                    took.add(cell, time.as_secs_f64());
                }
            }
            kept(self.stop, store, |store| {
                store.append_trials(records, recorder.environment())
            })
        });
        ended.and_then(|()| took.keep(store, &self.open.session))
    }
}

/// Trials to be simulated.
struct Simulation<'a, M> {
    plan: &'a Plan<'a>,
    trials: &'a [Trial],
    machines: &'a M,
    recorder: &'a Recorder<'a>,
    jobs: usize,
    stop: &'a Stop,
}

impl<M: Simulate> Simulation<'_, M> {
    /// Simulates on all threads, tells the progress out of `all` trials, and hands the records over as
    /// they come.
    fn run(
        &self,
        all: usize,
        mut keep: impl FnMut(&[TrialRecord], &[Duration]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let cells = &self.plan.experiment.cells;
        let works = Works::new(self.plan.experiment);
        let work: Vec<f64> = cells.iter().map(|cell| works.of(cell).seconds()).collect();
        let guessed = self.trials.iter().map(|trial| work[trial.cell]).sum();
        let mut view = View::new(all, all - self.trials.len(), guessed);
        let flag = self.stop.flag();
        let one = |item: usize| {
            let trial = self.trials[item];
            let begun = Instant::now();
            let came = self.machines.trial(&cells[trial.cell], trial.seed, &flag)?;
            Some(Simulated {
                took: begun.elapsed(),
                ..came
            })
        };
        let ended = pool::run(self.trials.len(), self.jobs, &flag, one, |batch| {
            let mut records = Vec::with_capacity(batch.len());
            let mut worked = Vec::with_capacity(batch.len());
            let mut times = Vec::with_capacity(batch.len());
            for (item, came) in batch {
                let came = match came {
                    Ok(None) => continue,
                    Ok(Some(came)) => came,
                    Err(panic) => Simulated {
                        failed: Some(format!("the model failed: {panic}")),
                        ..Simulated::default()
                    },
                };
                times.push(came.took);
                records.push(self.recorder.record(self.trials[item], came));
                worked.push(work[self.trials[item].cell]);
            }
            keep(&records, &times)?;
            for (record, work) in records.iter().zip(worked) {
                view.ended(record, work);
            }
            Ok(())
        });
        view.finish();
        ended
    }
}

/// Predicts trials for a report, without a store; those that fail are left out, and told.
pub(crate) fn predicted(
    plan: &Plan<'_>,
    session: &str,
    stop: &Stop,
) -> Result<Vec<TrialRecord>, Failure> {
    let machines = Machines::new(plan.experiment, true);
    let recorder = Recorder::new(plan, session, "");
    let jobs = estimate::processors() as usize;
    let (complete, failed) = simulate(plan, &plan.trials, &machines, &recorder, jobs, stop)?;
    for failed in failed {
        talk::warn(&format!(
            "not predicted: {}: {}",
            failed.cell, failed.reason
        ));
    }
    Ok(complete)
}

/// A trial that came to nothing.
pub(super) struct Failed {
    /// Label of its cell.
    pub(super) cell: String,
    /// Why.
    pub(super) reason: String,
}

/// Simulates trials without a store: the records of those that are complete, and what failed.
pub(super) fn simulate<M: Simulate>(
    plan: &Plan<'_>,
    trials: &[Trial],
    machines: &M,
    recorder: &Recorder<'_>,
    jobs: usize,
    stop: &Stop,
) -> Result<(Vec<TrialRecord>, Vec<Failed>), Failure> {
    let (mut complete, mut failed) = (Vec::new(), Vec::new());
    let work = Simulation {
        plan,
        trials,
        machines,
        recorder,
        jobs,
        stop,
    };
    work.run(trials.len(), |records, _| {
        for record in records {
            match &record.status {
                Status::Complete => complete.push(record.clone()),
                Status::Failed { reason } => failed.push(Failed {
                    cell: record.cell.label.clone(),
                    reason: reason.clone(),
                }),
            }
        }
        Ok(())
    })?;
    complete.sort_by_key(|record| record.order);
    Ok((complete, failed))
}

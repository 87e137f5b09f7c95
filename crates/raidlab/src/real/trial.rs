//! One trial on a real kernel: built on claimed members, measured, undone. Host and guest both run this.
mod came;
mod measure;
mod plans;

pub(super) use came::{Came, in_one_line};

pub(crate) use plans::{plan_in_guest, plan_of};

use super::driver::Driver;
use super::{host_failure, trouble};
use crate::commands::timestamp;
use crate::exit::Failure;
use crate::patience;
use came::record_of;
use measure::measure;
pub(super) use measure::{monitor, run_failure};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::time::Span;
use raidlab_experiment::setup::ArrayState;
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::claim::Claim;
use raidlab_host::journal::Journal;
use raidlab_host::kmsg::{Failing, KernelLog, Related};
use raidlab_host::provision::{Context, ProvisionPlan, Stage, build};
use raidlab_io::observe::Roots;
use raidlab_io::run::{RunOptions, RunProgress};
use raidlab_results::record::{Place as Where, Status, TrialRecord};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Which trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    /// The experiment.
    pub(crate) experiment: &'a Experiment,
    /// The cell.
    pub(crate) cell: &'a Cell,
    /// The session it belongs to.
    pub(crate) session: &'a str,
    /// Its place in the order of execution.
    pub(crate) order: u32,
    /// Its round.
    pub(crate) round: u32,
    /// Seed of its operations and data.
    pub(crate) seed: u64,
    /// The command that repeats the run.
    pub(crate) command: &'a str,
    /// Where it is measured.
    pub(crate) place: Where,
    /// What carries out the profile.
    pub(crate) driver: Driver,
}

/// What a trial is carried out with.
pub(crate) struct Lab<'a> {
    /// The members, claimed, in role order.
    pub(crate) claims: &'a mut [Claim],
    /// What is done is announced here.
    pub(crate) journal: &'a mut Journal,
    /// Set to end it.
    pub(crate) stop: Arc<AtomicBool>,
    /// How long nothing may end before a phase is called stalled.
    pub(crate) stall: Span,
}

impl Lab<'_> {
    /// How the phases of a trial are run.
    pub(super) fn options(&self, turn: Turn<'_>) -> RunOptions {
        RunOptions {
            stall: self.stall,
            cancel: Arc::clone(&self.stop),
            ..RunOptions::new(turn.seed)
        }
    }
}

/// Told how far a trial is.
pub(crate) trait Watch {
    /// Something is being built or undone.
    fn stage(&mut self, stage: &Stage);
    /// A phase begins: its number, how many there are, and its title.
    fn phase(&mut self, number: usize, of: usize, title: &str);
    /// It goes on.
    fn tick(&mut self, progress: &RunProgress);
    /// A tool that says nothing while it runs begins the work of a phase, or has ended it.
    fn at_work(&mut self) {}
    /// The last phase has ended.
    fn ended(&mut self) {}
}

/// What came of a trial.
pub(crate) enum Ended {
    /// All phases ran; with its environment.
    Complete(Box<TrialRecord>, Value),
    /// It failed; what there is of it is kept.
    Failed(Box<TrialRecord>, Value, Failure),
    /// It came to its end or failed, as its record says, and not all of it could be undone: nothing more can be run on these
    /// members.
    Stuck(Box<TrialRecord>, Value, Failure),
    /// It was stopped; nothing is kept.
    Interrupted,
}

/// Runs one trial by a plan, of [`plan_of`] mostly. Whatever comes of it, what was built is undone, and the members are held and empty again.
///
/// # Errors
/// When nothing can be built, or something could not be undone: no further trial can be run then.
pub(crate) fn run(
    turn: Turn<'_>,
    provision: &ProvisionPlan,
    lab: &mut Lab<'_>,
    watch: &mut dyn Watch,
) -> Result<Ended, Failure> {
    let began = (Instant::now(), timestamp());
    let roots = Roots::system();
    let related = Related::to(&roots, provision.members.iter().map(|member| &member.path));
    let mut log = KernelLog::from_now().ok().map(|log| log.about(related));
    let stop = Arc::clone(&lab.stop);
    let mut monitor = |stage: &Stage| {
        watch.stage(stage);
        ControlFlow::Continue(())
    };
    let mut context = Context {
        roots: &roots,
        cancel: &stop,
        monitor: &mut monitor,
    };
    let built = patience::stopping(&stop, || {
        build(provision, lab.claims, lab.journal, &mut context)
    });
    let mut built = match built {
        Ok(built) => built,
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Ended::Interrupted),
        Err(error) => return not_built(turn, provision, host_failure(&error), log, began),
    };
    let mut came = Came {
        driver: turn.driver,
        ..Came::default()
    };
    let measured = patience::stopping(&stop, || {
        measure(turn, lab, &mut built, watch, &mut came, log.as_mut())
    });
    let report = patience::stopping(&stop, || built.undo(lab.claims, lab.journal, &roots))
        .map_err(|error| host_failure(&error))?;
    // A rebuild by itself begins with failing the members anew.
    let own = match turn.cell.setup.array.state {
        ArrayState::Rebuilding(_) => Failing::Raidlab,
        _ => Failing::Nobody,
    };
    came.hear(log.as_mut(), own);
    // A member that died cannot be cleared: that is no reason to lose what is known of the trial.
    let stuck = trouble::not_undone(&report.left);
    if stop.load(Ordering::Relaxed) && !(measured.is_ok() && came.is_whole()) {
        return Ok(Ended::Interrupted);
    }
    let failed = match &came.said.trouble {
        Some(said) => Some(trouble::failure(
            said,
            turn.cell,
            provision,
            turn.place,
            measured.err(),
        )),
        None => measured.err(),
    };
    if let (None, Some(stuck)) = (&failed, &stuck) {
        let flag = Flag::new(FlagKind::Other, &stuck.message);
        came.flags.push(flag.remark());
    }
    let environment = came.environment(provision);
    let mut record = record_of(turn, came, began)?;
    if let Some(failure) = &failed {
        record.status = failed_for(failure);
    }
    let record = Box::new(record);
    Ok(match (failed, stuck) {
        (None, None) => Ended::Complete(record, environment),
        (Some(failure), None) => Ended::Failed(record, environment, failure),
        (None, Some(stuck)) => Ended::Stuck(record, environment, stuck),
        (Some(failure), Some(stuck)) => {
            let both = trouble::both(&failure, stuck);
            Ended::Stuck(record, environment, both)
        }
    })
}

/// A step of building failed: the trial is kept with what the kernel said meanwhile, for in a guest nobody can ask it
/// afterwards.
fn not_built(
    turn: Turn<'_>,
    provision: &ProvisionPlan,
    mut failure: Failure,
    mut log: Option<KernelLog>,
    began: (Instant, String),
) -> Result<Ended, Failure> {
    let mut came = Came {
        driver: turn.driver,
        ..Came::default()
    };
    let own = match turn.cell.setup.array.failed.is_empty() {
        true => Failing::Nobody,
        false => Failing::Raidlab,
    };
    came.hear(log.as_mut(), own);
    came.tell(&mut failure);
    // A disk that died while it was built on: which one, and what to do about it.
    if let Some(said) = &came.said.trouble {
        let (cell, place) = (turn.cell, turn.place);
        failure = trouble::before(said, cell, provision, place, failure);
    }
    let environment = came.environment(provision);
    let mut record = record_of(turn, came, began)?;
    record.status = failed_for(&failure);
    Ok(Ended::Failed(Box::new(record), environment, failure))
}

fn failed_for(failure: &Failure) -> Status {
    Status::Failed {
        reason: in_one_line(&failure.message),
    }
}

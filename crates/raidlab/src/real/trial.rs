//! One trial on a real kernel: built on claimed members, measured, undone. Host and guest both run this.
mod came;

pub(super) use came::Came;

use super::busy::{background, begin_background, expected_state, syncs};
use super::driver::{self, Driver, Ground};
use super::traffic::Traffic;
use super::verify::verify;
use super::{host_failure, places, trouble};
use crate::bench::of_phase;
use crate::commands::timestamp;
use crate::exit::{BAD_REQUEST, Failure, MISSING, TRIAL_FAILED};
use came::{in_one_line, record_of};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::phase::Phase;
use raidlab_core::profile::{Place as ProfilePlace, Plan as ProfilePlan, ProfileContext};
use raidlab_core::rng::mix;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_experiment::setup::{ArrayState, Metadata};
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::claim::{Claim, Own};
use raidlab_host::facts::facts;
use raidlab_host::journal::Journal;
use raidlab_host::kmsg::{Failing, KernelLog, Related};
use raidlab_host::provision::{
    Built, Context, InitialSync, MemberDevice, Options, ProvisionPlan, Stage, Target, When,
    adds_to_ddf, build, free_arrays, plan,
};
use raidlab_io::observe::Roots;
use raidlab_io::observe::environment::{Environment, memory, space_at};
use raidlab_io::run::{Place, RunError, RunOptions, RunProgress, run_phase};
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
    fn options(&self, turn: Turn<'_>) -> RunOptions {
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

/// How a cell is built on these members, now.
pub(crate) fn plan_of(
    cell: &Cell,
    members: &[MemberDevice],
    initial_sync: InitialSync,
    verify: bool,
) -> Result<ProvisionPlan, Failure> {
    let options = Options {
        verify,
        mount: places::mount()?,
        arrays: free_arrays(&Roots::system()),
        initial_sync,
        adds_to_ddf: ddf_rebuilt(cell) && adds_to_ddf(),
    };
    plan_with(cell, members, &options)
}

/// How a cell is built in a guest to come, whose mdadm is this machine's.
pub(crate) fn plan_in_guest(
    cell: &Cell,
    members: &[MemberDevice],
    verify: bool,
) -> Result<ProvisionPlan, Failure> {
    let options = Options {
        verify,
        mount: places::mount_in_guest(),
        // As on any machine without an array.
        arrays: (60..120).rev().collect(),
        initial_sync: InitialSync::AssumeClean,
        adds_to_ddf: ddf_rebuilt(cell) && adds_to_ddf(),
    };
    plan_with(cell, members, &options)
}

fn plan_with(
    cell: &Cell,
    members: &[MemberDevice],
    options: &Options,
) -> Result<ProvisionPlan, Failure> {
    plan(&cell.setup, members, options)
        .map_err(|error| Failure::new(BAD_REQUEST, format!("cell '{}': {error}", cell.label)))
}

/// Whether members of a DDF array are replaced: only then mdadm is asked whether it can do that.
fn ddf_rebuilt(cell: &Cell) -> bool {
    let array = &cell.setup.array;
    array.metadata == Some(Metadata::Ddf) && matches!(array.state, ArrayState::Rebuilding(_))
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
    let mut built = match build(provision, lab.claims, lab.journal, &mut context) {
        Ok(built) => built,
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Ended::Interrupted),
        Err(error) => return not_built(turn, provision, host_failure(&error), log, began),
    };
    let mut came = Came {
        driver: turn.driver,
        ..Came::default()
    };
    let measured = measure(turn, lab, &mut built, watch, &mut came, log.as_mut());
    let report = built
        .undo(lab.claims, lab.journal, &roots)
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
    came.hear(log.as_mut(), Failing::Raidlab);
    came.tell(&mut failure);
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

/// Runs the phases, and what goes on beside them.
fn measure(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    watch: &mut dyn Watch,
    came: &mut Came,
    mut log: Option<&mut KernelLog>,
) -> Result<(), Failure> {
    let roots = Roots::system();
    came.synced_ns = built
        .synced()
        .iter()
        .map(|(number, took)| (format!("md{number}"), took.as_nanos() as u64))
        .collect();
    let place = open(built, lab.claims)?;
    let context = profile_context(built, &place, &roots)?;
    came.usable = match context.place {
        ProfilePlace::Directory { free: bytes }
        | ProfilePlace::File { size: bytes }
        | ProfilePlace::Device { size: bytes } => bytes.0,
    };
    let profile = turn
        .cell
        .setup
        .profile
        .plan(&context)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    came.planned = profile.phases.len();
    came.flags.extend(profile.flags.iter().cloned());
    came.facts = facts(built);
    let captured = Environment::capture(&roots, Some(place.resolved()))
        .map_err(|error| Failure::from_error(MISSING, &error))?;
    came.machine = serde_json::to_value(captured).unwrap_or_default();
    let own = match turn.cell.setup.array.failed.is_empty() {
        true => Failing::Nobody,
        false => Failing::Raidlab,
    };
    came.hear(log.as_deref_mut(), own);
    begin_background(lab, built, watch)?;
    let before = syncs(&roots, built);
    let begun = Instant::now();
    let run = (&profile, &place);
    match came.driver {
        Driver::Tool => by_tool(turn, lab, built, run, watch, came)?,
        Driver::Raidlab => by_phases(turn, lab, built, run, watch, came, log.as_deref_mut())?,
    }
    came.hear(log.as_deref_mut(), Failing::Nobody);
    watch.ended();
    came.profile = Some(profile);
    let elapsed = begun.elapsed().as_secs_f64();
    let after = syncs(&roots, built);
    verify(When::WithData, lab, built, watch, came, log.as_deref_mut())?;
    place.close().map_err(|error| run_failure(&error))?;
    if came.said.trouble.is_none() && !lab.stop.load(Ordering::Relaxed) {
        background(turn, lab, built, watch, came, (&before, &after, elapsed))?;
    }
    verify(When::AtRest, lab, built, watch, came, log)
}

/// Runs the tool that the profile is named after.
fn by_tool(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    (profile, place): (&ProfilePlan, &Place),
    watch: &mut dyn Watch,
    came: &mut Came,
) -> Result<(), Failure> {
    let set = &turn.cell.setup.profile;
    let own = Own::in_guest(&Roots::system());
    let ground = Ground {
        plan: profile,
        place,
        options: &lab.options(turn),
        guest: own.is_some(),
    };
    let mut tool = || driver::run(set, &ground, watch);
    let said = match &own {
        // As the user of the tool has it: nobody else has the device open.
        Some(own) => built.without_hold(lab.claims, own, tool),
        None => Ok(tool()),
    };
    let said = said.map_err(|error| host_failure(&error))??;
    came.planned = said.phases.len();
    came.phases = said.phases;
    came.tool = Some((said.provenance, said.text));
    Ok(())
}

/// Runs raidlab's own phases, until one meets trouble.
fn by_phases(
    turn: Turn<'_>,
    lab: &Lab<'_>,
    built: &Built,
    (profile, place): (&ProfilePlan, &Place),
    watch: &mut dyn Watch,
    came: &mut Came,
    mut log: Option<&mut KernelLog>,
) -> Result<(), Failure> {
    let roots = Roots::system();
    let options = lab.options(turn);
    let total = profile.phases.len();
    for (number, phase) in profile.phases.iter().enumerate() {
        watch.phase(number, total, &phase.title);
        let traffic = Traffic::begin(&roots, built.plan());
        let outcome = one_phase(phase, place, &options, watch)?;
        came.digest = mix(came.digest.rotate_left(7) ^ outcome.digest);
        let mut record = of_phase(outcome, phase.counted);
        traffic.end(&roots, &mut record);
        expected_state(turn.cell.setup.array.state, &mut record);
        came.hear(log.as_deref_mut(), Failing::Nobody);
        if let Some(said) = came.said.trouble.as_ref() {
            record
                .flags
                .extend(trouble::flag(said, turn.cell, built.plan()));
        }
        came.phases.push(record);
        if came.said.trouble.is_some() {
            break;
        }
    }
    Ok(())
}

fn one_phase(
    phase: &Phase,
    place: &Place,
    options: &RunOptions,
    watch: &mut dyn Watch,
) -> Result<raidlab_core::outcome::PhaseOutcome, Failure> {
    let mut monitor = |progress: RunProgress| {
        watch.tick(&progress);
        if options.cancel.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    run_phase(phase, place, options, &mut monitor).map_err(|error| run_failure(&error))
}

fn run_failure(error: &RunError) -> Failure {
    Failure::from_error(TRIAL_FAILED, error)
}

/// The place that was built: the mounted directory, or the device that is held.
fn open(built: &Built, claims: &[Claim]) -> Result<Place, Failure> {
    let opened = match built.target() {
        Target::Directory(path) => Place::open(path),
        Target::Device(_) => {
            let claim = built.device(claims);
            let held = claim.and_then(|claim| Some((claim.path(), claim.held()?)));
            let (path, file) = held.ok_or_else(|| {
                Failure::new(TRIAL_FAILED, "the device that was built is no longer held")
            })?;
            Place::on_held_device(path, file)
        }
    };
    opened.map_err(|error| run_failure(&error))
}

fn profile_context(built: &Built, place: &Place, roots: &Roots) -> Result<ProfileContext, Failure> {
    let missing = |error: &dyn std::error::Error| Failure::from_error(MISSING, error);
    let memory = memory(roots).map_err(|error| missing(&error))?;
    let where_to = match built.target() {
        Target::Directory(path) => ProfilePlace::Directory {
            free: Bytes(space_at(path).map_err(|error| missing(&error))?.available),
        },
        Target::Device(_) => ProfilePlace::Device {
            size: Bytes(place.size().unwrap_or(0)),
        },
    };
    Ok(ProfileContext {
        memory: Bytes(memory.usable()),
        place: where_to,
        writable: true,
        alignment: 512,
    })
}

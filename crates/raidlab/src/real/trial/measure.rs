//! The phases of a trial, and what goes on beside them.
use super::{Came, Lab, Turn, Watch};
use crate::bench::{Recorded, of_phase};
use crate::exit::{BAD_REQUEST, Failure, MISSING, TRIAL_FAILED};
use crate::real::busy::{background, begin_background, begin_with_files, expected_state, syncs};
use crate::real::driver::{self, Driver, Ground};
use crate::real::traffic::Traffic;
use crate::real::verify::verify;
use crate::real::{host_failure, trouble};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::Phase;
use raidlab_core::profile::{Place as ProfilePlace, Plan as ProfilePlan, ProfileContext};
use raidlab_core::rng::mix;
use raidlab_core::units::Bytes;
use raidlab_host::claim::{Claim, Own};
use raidlab_host::facts::facts;
use raidlab_host::kmsg::{Failing, KernelLog};
use raidlab_host::provision::{Built, SyncState, Target, When};
use raidlab_io::observe::Roots;
use raidlab_io::observe::environment::{Environment, memory, space_at};
use raidlab_io::run::{Place, RunError, RunOptions, RunProgress, run_phase};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How far resyncs were before the phases and after them, and how many seconds these took.
type Resynced = (Vec<SyncState>, Vec<SyncState>, f64);

/// Runs the phases, and what goes on beside them.
pub(super) fn measure(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    watch: &mut dyn Watch,
    came: &mut Came,
    mut log: Option<&mut KernelLog>,
) -> Result<(), Failure> {
    came.synced_ns = built
        .synced()
        .iter()
        .map(|(number, took)| (format!("md{number}"), took.as_nanos() as u64))
        .collect();
    let mut place = open(built, lab.claims)?;
    let run = in_place(
        turn,
        lab,
        built,
        &mut place,
        watch,
        came,
        log.as_deref_mut(),
    );
    // Also of a trial that failed: what someone has put there goes with the file system else.
    let left = close(place, lab);
    if run.is_ok() {
        came.flags.extend(left);
    }
    let resynced = run?;
    if came.said.trouble.is_none() && !lab.stop.load(Ordering::Relaxed) {
        let (before, after, elapsed) = &resynced;
        background(turn, lab, built, watch, came, (before, after, *elapsed))?;
    }
    verify(When::AtRest, lab, built, watch, came, log)
}

/// Runs the phases in the place that was built.
fn in_place(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    place: &mut Place,
    watch: &mut dyn Watch,
    came: &mut Came,
    mut log: Option<&mut KernelLog>,
) -> Result<Resynced, Failure> {
    let roots = Roots::system();
    let context = profile_context(built, place, &roots)?;
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
    if built.awaits_files() {
        begin_with_files(turn, lab, built, (&profile, place), watch)?;
        came.hear(log.as_deref_mut(), own);
    } else {
        begin_background(lab, built, watch)?;
    }
    let place = &*place;
    let before = syncs(&roots, built)?;
    let begun = Instant::now();
    let run = (&profile, place);
    match came.driver {
        Driver::Tool => by_tool(turn, lab, built, run, watch, came)?,
        Driver::Raidlab => by_phases(turn, lab, built, run, watch, came, log.as_deref_mut())?,
    }
    came.hear(log.as_deref_mut(), Failing::Nobody);
    watch.ended();
    came.profile = Some(profile);
    let elapsed = begun.elapsed().as_secs_f64();
    let after = syncs(&roots, built)?;
    verify(When::WithData, lab, built, watch, came, log)?;
    Ok((before, after, elapsed))
}

/// Removes the working directory; a remark where that fails: what was measured is not less true for it.
fn close(place: Place, lab: &mut Lab<'_>) -> Option<Flag> {
    let error = place.close().err()?;
    // Its file system goes, too, unless that is looked into.
    if matches!(error, RunError::Stays { .. }) {
        lab.journal.doubt();
    }
    Some(Flag::new(FlagKind::Other, error.to_string()).remark())
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
        busy: !built.busy_arrays().is_empty() || built.awaits_files(),
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
        let Recorded {
            whole: mut record,
            parts,
        } = of_phase(outcome, phase);
        traffic.end(&roots, &mut record);
        expected_state(
            turn.cell.setup.array.state,
            built.awaits_files(),
            &mut record,
        );
        came.hear(log.as_deref_mut(), Failing::Nobody);
        if let Some(said) = came.said.trouble.as_ref() {
            record
                .flags
                .extend(trouble::flag(said, turn.cell, built.plan()));
        }
        came.phases.push(record);
        came.parts.extend(parts);
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
) -> Result<PhaseOutcome, Failure> {
    let mut monitor = monitor(options, watch);
    run_phase(phase, place, options, &mut monitor).map_err(|error| run_failure(&error))
}

/// Tells what a run of phases is at, and ends it when it is to end.
pub(in crate::real) fn monitor<'w>(
    options: &RunOptions,
    watch: &'w mut dyn Watch,
) -> impl FnMut(RunProgress) -> ControlFlow<()> + 'w {
    let cancel = Arc::clone(&options.cancel);
    move |progress| {
        watch.tick(&progress);
        match cancel.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

pub(in crate::real) fn run_failure(error: &RunError) -> Failure {
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

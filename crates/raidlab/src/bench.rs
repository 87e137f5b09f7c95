//! `raidlab bench`: measure places with profiles, in rounds, until it is enough.
mod again;
mod kept;
mod measure;
pub(crate) mod notes;
mod plan;
mod precision;
mod progress;
mod record;
mod resume;
mod schedule;
mod session;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use kept::{kept, unless_locked};
pub(crate) use progress::{View, summary};
pub(crate) use record::{Recorded, of_phase};
pub(crate) use resume::labels_of;
pub(crate) use session::store_failure;

use crate::args::BenchArgs;
use crate::commands::{command_line, timestamp};
use crate::commands::{output, report};
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::patience;
use crate::place;
use crate::predict::run::forget_if_empty;
use crate::real::places;
use crate::signals::Stop;
use crate::talk;
use measure::Machine;
use notes::Noted;
use plan::{Plan, Prepared};
use raidlab_core::profile::Skipped;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_io::observe::fitness::{Intent, audit, observe};
use raidlab_io::observe::{Roots, resolve};
use raidlab_results::id;
use raidlab_results::record::Session;
use raidlab_results::report::Selector;
use raidlab_results::store::{Store, StoreError};
use session::{Running, SessionEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

pub(crate) fn run(args: &BenchArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let resumed = resume::asked(args, store)?;
    let plan = match &resumed {
        Some(resumed) => resumed.plan.clone(),
        None => Plan::from_args(args)?,
    };
    let prepared = plan.prepare()?;
    // What the report cannot do is known before hours are spent on it.
    known_baseline(args, &plan)?;
    output::check_stdout(&args.output, args.output.json || args.csv)?;
    output::check(&args.output)?;
    // Whoever sees that it has begun may already want it to stop.
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    announce(&plan, &prepared);
    if args.plan {
        return Ok(Outcome::Done);
    }
    // A store is made only when something can be measured.
    let path = store.to_write()?;
    usable(&path)?;
    try_places(&prepared)?;
    let notes = unfitness(&prepared, &stop)?;
    if stop.asked() {
        talk::note("interrupted before anything was measured");
        return Ok(Outcome::Interrupted);
    }
    let mut store = Store::open(&path).map_err(store_failure)?;
    let resumed = match resumed {
        Some(resumed) => Some(resumed.session),
        None => resume::offered(&store, &plan, &stop)?,
    };
    if stop.asked() {
        talk::note("interrupted before anything was measured");
        return Ok(Outcome::Interrupted);
    }
    let is_new = resumed.is_none();
    let session = begin(&mut store, &plan, resumed, notes)?;
    let _noted = noted(&prepared);
    let mut machine = Machine {
        plan: &plan,
        stop: &stop,
        left: false,
    };
    let ended = Running {
        plan: &plan,
        prepared: &prepared,
        store: &mut store,
        session: &session,
        measure: &mut machine,
        stop: &stop,
    }
    .run();
    match ended {
        Ok(SessionEnd::Finished) => {
            report::of_session(&mut store, &session, args)?;
            unless_left(machine.left, Outcome::Done)
        }
        Ok(SessionEnd::Interrupted) => {
            talk::note(&if forget_if_empty(&mut store, &session)? {
                "interrupted before the first trial ended; nothing was kept".to_owned()
            } else {
                format!(
                    "interrupted; finished trials are kept, and 'raidlab bench --resume {}' goes on",
                    id::short(&session)
                )
            });
            unless_left(machine.left, Outcome::Interrupted)
        }
        Err(failure) => {
            if is_new {
                // What it failed with is what counts.
                let _ = forget_if_empty(&mut store, &session);
            }
            Err(failure)
        }
    }
}

/// The end of a bench, which is another one when a working directory stays: as of a run on real devices that left something.
fn unless_left(left: bool, outcome: Outcome) -> Result<Outcome, Failure> {
    match left {
        false => Ok(outcome),
        true => Err(Failure::new(TRIAL_FAILED, "something was left behind")
            .remedy("see to what is told above; what was measured is kept, and 'raidlab clean' tries again")),
    }
}

fn known_baseline(args: &BenchArgs, plan: &Plan) -> Result<(), Failure> {
    let Some(text) = &args.baseline else {
        return Ok(());
    };
    let labels = plan.arms.iter().map(|arm| &arm.label[..]);
    let selector =
        Selector::among(text, labels).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    if plan.arms.iter().any(|arm| selector.matches(&arm.cell())) {
        return Ok(());
    }
    let labels: BTreeSet<&str> = plan.arms.iter().map(|arm| arm.label.as_str()).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    Err(
        Failure::bad_request(format!("the baseline '{text}' is none of the places"))
            .remedy(format!("choose from: {}", labels.join("; "))),
    )
}

/// Whether a store that is there can be used; one that is not will be made.
fn usable(path: &Path) -> Result<(), Failure> {
    match Store::open_read_only(path) {
        Ok(_) | Err(StoreError::Missing { .. } | StoreError::Older { .. }) => Ok(()),
        Err(error) => Err(store_failure(error)),
    }
}

/// Opens each place once, so that one that cannot be used is known before anything is begun; and tells of those that are the same
/// under another name, as a link to a directory is.
fn try_places(prepared: &[Prepared]) -> Result<(), Failure> {
    let arms = prepared.iter().map(|p| &p.arm);
    let places: BTreeSet<(&str, &Path)> = arms
        .map(|arm| (arm.label.as_str(), arm.path.as_path()))
        .collect();
    let mut known: BTreeMap<(u64, u64), &str> = BTreeMap::new();
    for (label, path) in places {
        let identity = patience::asking(path, || {
            measure::close_place(measure::open_place(path)?)?;
            // Of a device its own number: it may have several nodes.
            let seen = std::fs::metadata(path).ok();
            Ok(seen.map(|of| match of.file_type().is_block_device() {
                true => (u64::MAX, of.rdev()),
                false => (of.dev(), of.ino()),
            }))
        })?;
        let Some(identity) = identity else { continue };
        match known.get(&identity) {
            Some(first) => talk::warn(&format!(
                "'{first}' and '{label}' are one place: what they differ by is chance"
            )),
            None => drop(known.insert(identity, label)),
        }
    }
    Ok(())
}

/// Notes the places for as long as there are trials in them, for `clean`.
fn noted(prepared: &[Prepared]) -> Vec<Noted> {
    let Ok(notes) = places::notes() else {
        return Vec::new();
    };
    let paths: BTreeSet<&Path> = prepared.iter().map(|p| p.arm.path.as_path()).collect();
    paths
        .into_iter()
        .filter_map(|path| Noted::write(&notes, path))
        .collect()
}

/// The store for reading.
pub(crate) fn open_store(store: &place::Store) -> Result<Store, Failure> {
    Store::open_read_only(&store.path()?).map_err(store_failure)
}

/// Says what will be done before it is done: how much data, how often, what is left out, what is
/// doubtful already.
fn announce(plan: &Plan, prepared: &[Prepared]) {
    let rounds = match plan.enough {
        schedule::Enough::Rounds { rounds } => count(rounds as usize, "round"),
        schedule::Enough::Width { width, most } => {
            format!(
                "rounds until ±{:.1} % is reached, at most {most}",
                100.0 * width
            )
        }
    };
    talk::note(&format!(
        "{} to measure, {rounds}, in an order drawn by seed {}",
        count(prepared.len(), "arm"),
        plan.seed
    ));
    // What several arms have in common is said once.
    let mut said = BTreeSet::new();
    for Prepared { arm, plan, .. } in prepared {
        let moved = match (plan.bytes_planned(), plan.time_planned()) {
            (Bytes(0), time) => format!("{time}"),
            (bytes, Span::ZERO) => format!("moves {bytes}"),
            (bytes, time) => format!("moves {bytes} or more, {time} by the clock"),
        };
        let name = arm.profile.name();
        talk::note(&format!(
            "  {} · {name}: {}, {moved} a round",
            arm.label,
            count(plan.phases.len(), "phase")
        ));
        for (why, phases) in left_out(&plan.skipped) {
            if said.insert(format!("{name} {why}")) {
                talk::note(&format!("    without {}: {why}", phases.join(", ")));
            }
        }
        for note in &plan.notes {
            if said.insert(format!("{name} {note}")) {
                talk::note(&format!("    {name}: {note}"));
            }
        }
        for flag in &plan.flags {
            if said.insert(flag.reason.clone()) {
                talk::warn(&flag.reason);
            }
        }
    }
}

/// Phases that are left out, by the reason.
fn left_out(skipped: &[Skipped]) -> BTreeMap<&str, Vec<&str>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in skipped {
        by_reason.entry(&one.why).or_default().push(&one.phase);
    }
    by_reason
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What makes this machine unfit to measure, said and returned for the session's notes.
fn unfitness(prepared: &[Prepared], stop: &Stop) -> Result<Vec<String>, Failure> {
    let roots = Roots::system();
    let mut said = BTreeSet::new();
    let mut places = BTreeSet::new();
    for Prepared { arm, plan, .. } in prepared {
        if stop.asked() || !places.insert(&arm.path) {
            continue;
        }
        let resolved =
            resolve(&roots, &arm.path).map_err(|error| Failure::from_error(MISSING, &error))?;
        let intent = Intent {
            writes: plan.space_needed > Bytes(0),
            ..Intent::writing(plan.space_needed.0)
        };
        let seen = patience::asking(&arm.path, || observe(&roots, &resolved, intent))
            .map_err(|error| Failure::from_error(MISSING, &error))?;
        for warning in audit(&seen).warnings {
            if warning.fatal {
                return Err(Failure::new(
                    MISSING,
                    format!("{}: {}", arm.path.display(), warning.text),
                )
                .remedy(warning.remedy));
            }
            if said.insert(warning.text.clone()) {
                talk::warn(&warning.to_string());
            }
        }
    }
    Ok(said.into_iter().collect())
}

/// Begins the session in the store, or takes up the one to be resumed; returns its id.
fn begin(
    store: &mut Store,
    plan: &Plan,
    resumed: Option<Session>,
    notes: Vec<String>,
) -> Result<String, Failure> {
    if let Some(session) = resumed {
        store.resume_session(&session.id).map_err(store_failure)?;
        talk::note(&format!("going on with session {}", id::short(&session.id)));
        return Ok(session.id);
    }
    let mut places: Vec<&str> = plan.arms.iter().map(|arm| arm.label.as_str()).collect();
    places.dedup();
    let mut profiles: Vec<&str> = plan.arms.iter().map(|arm| arm.profile.name()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    let session = Session {
        id: id::random().map_err(|error| Failure::from_error(MISSING, &error))?,
        title: format!("{} on {}", profiles.join(", "), places.join(", ")),
        created: timestamp(),
        command: command_line(),
        raidlab: env!("CARGO_PKG_VERSION").to_owned(),
        plan: Some(
            serde_json::to_value(plan).map_err(|error| Failure::new(MISSING, error.to_string()))?,
        ),
        planned: match plan.enough {
            schedule::Enough::Rounds { .. } => Some(plan.most_trials()),
            schedule::Enough::Width { .. } => None,
        },
        finished: false,
        notes,
    };
    store.begin_session(&session).map_err(store_failure)?;
    Ok(session.id)
}

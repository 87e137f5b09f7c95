//! `raidlab run FILE --on host`: an experiment on the disks of this machine, or on loop files.
mod shown;

use self::shown::Shown;
use super::agree;
use super::driver::{self, Driver};
use super::members::{self, Chosen, Part, Source};
use super::room::{Lack, lacks};
use super::trial::{self, Ended, Lab, Turn};
use super::{fit, host_failure, places, trouble, verify};
use crate::args::{RealArgs, RunArgs};
use crate::bench::{View, kept, store_failure};
use crate::commands::{command_line, output, quoted_os};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::patience;
use crate::place;
use crate::predict::run::{self as sessions, Open, Took};
use crate::predict::{catalogue, caution, choose, report};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::time::Span;
use raidlab_experiment::{Cell, Experiment, Plan, Trial, expand};
use raidlab_host::alone::{Alone, Once};
use raidlab_host::claim::Claim;
use raidlab_host::inventory::Device;
use raidlab_host::journal::{self, Journal, Report, Undone, leftovers};
use raidlab_host::provision::{InitialSync, MemberDevice, ProvisionPlan, member, requirements};
use raidlab_io::observe::Roots;
use raidlab_io::observe::safety::{in_container, unreadable};
use raidlab_results::record::{Place as Where, TrialRecord};
use raidlab_results::store::Store;
use std::fmt::Write as _;
use std::time::Instant;

/// So long nothing may end before a phase is called stalled: an array that rebuilds answers slowly.
const STALL: Span = Span::from_secs(300);

pub(crate) fn run(args: &RunArgs, place: &place::Store) -> Result<Outcome, Failure> {
    let mut experiment = catalogue::experiment(&args.file, &args.design)?;
    choose::only(&mut experiment, args.only.as_deref())?;
    output::check_run(&args.output, args.out.as_deref())?;
    caution::warn(&experiment, Some(super::own()));
    let roots = Roots::system();
    let parts = members::parts(&experiment);
    let source = source(&args.real);
    if source == Source::Allowed && in_container(&roots) {
        talk::warn(
            "this is a container with process numbers of its own: whether a process outside has a device open cannot be \
             seen from here; run raidlab outside, or with the machine's (--pid=host)",
        );
    }
    if source == Source::Allowed
        && let Some(hidden) = unreadable(&roots)
        && hidden.privileged
    {
        talk::warn(&format!(
            "a security module hides the open files of process {}: that it has none of the devices open is for you to know",
            hidden.pid
        ));
    }
    // Before anything is made: what this user and this machine cannot do at all.
    let before = planned_members(&roots, &source, &parts)?;
    let plans = plans(&experiment, &parts, &before, &args.real)?;
    for plan in &plans {
        requirements(&roots, plan).map_err(|error| host_failure(&error))?;
    }
    if args.real.driver == Driver::Tool {
        for cell in &experiment.cells {
            driver::check(&cell.setup.profile)?;
        }
    }
    let lacks = lacks(&experiment, &source, &parts, &before)?;
    if let Some(failure) = Lack::failure(&lacks) {
        return Err(failure);
    }
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let mut once = Vec::new();
    if plans.iter().any(|plan| !plan.arrays().is_empty()) {
        once.push(Once::Arrays);
    }
    if plans.iter().any(ProvisionPlan::sets_system) {
        once.push(Once::Settings);
    }
    let alone = Alone::take(&places::state()?, &once).map_err(|error| host_failure(&error))?;
    undo_leftovers(&roots, &alone)?;
    let mut journal = Journal::begin(&places::journals()?, &command_line())
        .map_err(|error| host_failure(&error))?;
    let came = with_journal(
        args,
        place,
        &experiment,
        &source,
        &parts,
        &mut journal,
        &stop,
    );
    let flag = stop.flag();
    let report = patience::stopping(&flag, || journal.finish(&roots))
        .map_err(|error| host_failure(&error))?;
    for left in trouble::untold(&report.left, came.as_ref().err()) {
        talk::warn(&format!("not undone: {left}"));
    }
    let came = came?;
    if report.left.is_empty() {
        return Ok(came);
    }
    let message = "something was left on the machine";
    Err(Failure::new(TRIAL_FAILED, message).remedy("'raidlab clean' tries again"))
}

pub(super) fn source(args: &RealArgs) -> Source {
    match &args.loop_dir {
        Some(directory) => Source::Loops {
            directory: directory.clone(),
            size: args.loop_size.0,
        },
        None => Source::Allowed,
    }
}

/// The devices, as far as they are known before loop files are made.
pub(super) fn planned_members(
    roots: &Roots,
    source: &Source,
    parts: &[Part],
) -> Result<Vec<MemberDevice>, Failure> {
    match source {
        Source::Loops { directory, size } => {
            members::only_disks(parts)?;
            members::check_place(directory)?;
            Ok(members::loops_to_come(roots, parts.len(), *size))
        }
        Source::Allowed => {
            let chosen = members::allowed(roots, parts)?;
            Ok(chosen
                .iter()
                .map(|chosen| member(roots, &chosen.device))
                .collect())
        }
    }
}

/// How each cell is built on these devices, on which its profile can run.
pub(super) fn plans(
    experiment: &Experiment,
    parts: &[Part],
    devices: &[MemberDevice],
    args: &RealArgs,
) -> Result<Vec<ProvisionPlan>, Failure> {
    let one = |cell: &Cell| {
        let chosen = members::roles(cell, parts).into_iter();
        let chosen: Vec<MemberDevice> = chosen.map(|role| devices[role].clone()).collect();
        members::begin_there(&Roots::system(), cell, &chosen)?;
        if args.driver == Driver::Raidlab {
            fit::direct_calls(cell, fit::largest_sector(&chosen))?;
        }
        fit::something_allocated(cell)?;
        let sync = initial_sync(args);
        let plan = trial::plan_of(cell, &chosen, sync, experiment.design.verify, false)?;
        verify::agreed_before(cell, &plan, args.assume_clean)?;
        Ok(plan)
    };
    experiment.cells.iter().map(one).collect()
}

fn initial_sync(args: &RealArgs) -> InitialSync {
    if args.assume_clean {
        InitialSync::AssumeClean
    } else {
        InitialSync::Real
    }
}

/// Undoes what runs that were killed left behind.
fn undo_leftovers(roots: &Roots, alone: &Alone) -> Result<(), Failure> {
    let (journals, wrong) =
        leftovers(&places::journals()?).map_err(|error| host_failure(&error))?;
    for text in wrong {
        talk::warn(&text);
    }
    let journals = journals.into_iter().map(|journal| journal.finish(roots));
    let mut reports = journals
        .collect::<Result<Vec<Report>, _>>()
        .map_err(|error| host_failure(&error))?;
    reports.push(forget_point(roots, alone)?);
    for report in reports {
        for undone in &report.undone {
            talk::note(&format!("left by a raidlab that was killed: {undone}"));
        }
        for left in &report.left {
            talk::warn(&format!(
                "left by a raidlab that was killed, and not undone: {left}"
            ));
        }
    }
    Ok(())
}

/// Removes a mount point that no journal tells of any more, and that would keep every run from beginning.
pub(crate) fn forget_point(roots: &Roots, alone: &Alone) -> Result<Report, Failure> {
    let (journals, point) = (places::journals()?, places::mount()?);
    let mut report = Report::default();
    match journal::forget_point(roots, &journals, &point, alone) {
        Ok(Undone::Nothing) => {}
        Ok(Undone::Done(what)) => report.undone.push(what),
        Ok(Undone::Left(why)) => report.left.push(why),
        Err(error) => return Err(host_failure(&error)),
    }
    Ok(report)
}

/// The run itself; what it made is undone by whoever has the journal.
fn with_journal(
    args: &RunArgs,
    place: &place::Store,
    experiment: &Experiment,
    source: &Source,
    parts: &[Part],
    journal: &mut Journal,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let roots = Roots::system();
    let chosen = match source {
        Source::Loops { directory, size } => {
            members::loops(&roots, directory, parts.len(), *size, journal)?
        }
        Source::Allowed => members::allowed(&roots, parts)?,
    };
    let devices: Vec<Device> = chosen.iter().map(|chosen| chosen.device.clone()).collect();
    let planned: Vec<MemberDevice> = devices
        .iter()
        .map(|device| member(&roots, device))
        .collect();
    let plans = plans(experiment, parts, &planned, &args.real)?;
    if *source == Source::Allowed {
        agree::confirm(args, &chosen, &plans, stop)?;
    }
    let mut notes: Vec<&String> = plans.iter().flat_map(|plan| &plan.notes).collect();
    notes.sort();
    notes.dedup();
    for note in notes {
        talk::warn(note);
    }
    let mut claims = claim_all(&roots, &chosen)?;
    let plan = expand(experiment, experiment.design.seed);
    let mut store = Store::open(&place.to_write()?).map_err(store_failure)?;
    let by = match args.real.driver {
        Driver::Raidlab => "",
        Driver::Tool => ", by the tools themselves",
    };
    let clean = match args.real.assume_clean {
        true => ", arrays taken to agree",
        false => "",
    };
    let where_on = format!(
        "host, {}{clean}{by}{}",
        source.told(&devices),
        verify::told(experiment)
    );
    let open = sessions::open(&mut store, &plan, args, &where_on)?;
    let mut session = Session {
        plan: &plan,
        plans: &plans,
        open: &open,
        parts,
        command: command(args, &plan),
        driver: args.real.driver,
        stop,
        broken_off: None,
    };
    let came = session.run(&mut store, &mut claims, journal);
    match came {
        Ok(()) if stop.asked() => {
            sessions::broken_off(session.broken_off.as_deref());
            sessions::interrupted(&mut store, &open)
        }
        Ok(()) => {
            store.finish_session(&open.session).map_err(store_failure)?;
            sessions::write_out(args, &mut store, &open.session)?;
            report::of_session(&mut store, &open.session, &args.output)?;
            Ok(Outcome::Done)
        }
        Err(failure) => {
            // What it failed with is what counts.
            let _ = sessions::forget_if_empty(&mut store, &open.session);
            Err(failure)
        }
    }
}

fn claim_all(roots: &Roots, chosen: &[Chosen]) -> Result<Vec<Option<Claim>>, Failure> {
    chosen
        .iter()
        .map(|chosen| chosen.claim(roots).map(Some))
        .collect()
}

/// The command that repeats the run.
fn command(args: &RunArgs, plan: &Plan<'_>) -> String {
    let mut words = sessions::again(args, plan, "host");
    if let Some(directory) = &args.real.loop_dir {
        let _ = write!(
            words,
            " --loop-dir {} --loop-size {}B",
            quoted_os(directory.as_os_str()),
            args.real.loop_size.0
        );
    }
    if args.real.driver == Driver::Tool {
        words.push_str(" --driver tool");
    }
    if args.real.assume_clean {
        words.push_str(" --assume-clean");
    }
    words
}

/// A session under way.
struct Session<'a> {
    plan: &'a Plan<'a>,
    plans: &'a [ProvisionPlan],
    open: &'a Open,
    parts: &'a [Part],
    command: String,
    driver: Driver,
    stop: &'a Stop,
    /// The trial that was interrupted, and in what.
    broken_off: Option<String>,
}

impl Session<'_> {
    /// Runs what is left to run, each trial in the store before the next begins.
    fn run(
        &mut self,
        store: &mut Store,
        claims: &mut [Option<Claim>],
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let experiment = self.plan.experiment;
        let digests: Vec<String> = experiment
            .cells
            .iter()
            .map(|cell| experiment.cell_digest(cell))
            .collect();
        let known = self.open.known();
        let all = self.plan.trials.len() as u32;
        let left: Vec<Trial> = self
            .plan
            .trials
            .iter()
            .copied()
            .filter(|trial| !known.contains(&(digests[trial.cell].as_str(), trial.round)))
            .collect();
        let mut view = View::new(all, all - left.len() as u32);
        let mut ended = Ok(());
        let mut took = Took::default();
        for trial in left {
            if self.stop.asked() {
                break;
            }
            let begun = Instant::now();
            match self.trial(trial, claims, journal, &mut view) {
                Ok(Ended::Interrupted) => break,
                Ok(Ended::Complete(record, environment)) => {
                    keep(self.stop, store, &record, &environment)?;
                    took.add(&digests[trial.cell], begun.elapsed().as_secs_f64());
                    view.trial_ends(&record);
                }
                Ok(
                    Ended::Failed(record, environment, failure)
                    | Ended::Stuck(record, environment, failure),
                ) => {
                    keep(self.stop, store, &record, &environment)?;
                    ended = Err(failure);
                    break;
                }
                Err(failure) => {
                    ended = Err(failure);
                    break;
                }
            }
        }
        view.finish();
        let kept = took.keep(store, &self.open.session);
        ended.and(kept)
    }

    fn trial(
        &mut self,
        trial: Trial,
        claims: &mut [Option<Claim>],
        journal: &mut Journal,
        view: &mut View,
    ) -> Result<Ended, Failure> {
        let experiment = self.plan.experiment;
        let cell = &experiment.cells[trial.cell];
        view.trial_begins(
            format!("{} round {}", cell.label, trial.round + 1),
            cell.setup.phases.len(),
        );
        let roles = members::roles(cell, self.parts);
        let mut members: Vec<Claim> = Vec::new();
        for role in &roles {
            let claim = claims[*role].take();
            members.push(
                claim.ok_or_else(|| {
                    Failure::new(TRIAL_FAILED, "a member is used twice in one cell")
                })?,
            );
        }
        let mut lab = Lab {
            claims: &mut members,
            journal,
            stop: self.stop.flag(),
            stall: STALL,
        };
        let turn = Turn {
            experiment,
            cell,
            session: &self.open.session,
            order: trial.order,
            round: trial.round,
            seed: trial.seed,
            command: &self.command,
            place: Where::Host,
            driver: self.driver,
        };
        let mut shown = Shown::new(view);
        let came = trial::run(turn, &self.plans[trial.cell], &mut lab, &mut shown);
        if let (Ok(Ended::Interrupted), false) = (&came, shown.at.is_empty()) {
            let (label, round, at) = (&cell.label, trial.round + 1, shown.at);
            self.broken_off = Some(format!("{label} round {round}: {at}"));
        }
        for (role, claim) in roles.into_iter().zip(members) {
            claims[role] = Some(claim);
        }
        came
    }
}

fn keep(
    stop: &Stop,
    store: &mut Store,
    record: &TrialRecord,
    environment: &serde_json::Value,
) -> Result<(), Failure> {
    kept(stop, store, |store| {
        store.append_trial(record, Some(environment)).map(drop)
    })
}

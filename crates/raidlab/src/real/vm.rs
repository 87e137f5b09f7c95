//! `raidlab run FILE --on vm`: from the file to the report, by way of guests.
mod heard;
mod words;

use super::driver::{self, Driver};
use super::early::{self, Early};
use super::fit;
use super::guests::{self, OFF};
use super::job::{Asked, Job, Trials};
use super::lab::{self, Lab};
use super::records::Recorder;
use super::served::{self, Served};
use super::view::View;
use crate::args::{GuestTime, RunArgs};
use crate::bench::store_failure;
use crate::commands::{output, quoted, quoted_os};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::place;
use crate::predict::run::{self as sessions, Took};
use crate::predict::{catalogue, caution, choose};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_experiment::{Experiment, Plan, Trial, expand};
use raidlab_results::report::document::Block;
use raidlab_results::store::Store;
use raidlab_vm::Machine;
use raidlab_vm::channel::Message;
use raidlab_vm::qemu::Slot;
use raidlab_vm::vm::Trouble;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

/// So many guests may die one after the other before it is no use to try another.
const DEATHS: u32 = 3;

pub(crate) fn run(args: &RunArgs, place: &place::Store) -> Result<Outcome, Failure> {
    let mut experiment = catalogue::experiment(&args.file, &args.design)?;
    choose::only(&mut experiment, args.only.as_deref())?;
    // What the report cannot do is known before the work is done.
    output::check_run(&args.output, args.out.as_deref())?;
    caution::warn(&experiment, None);
    let only = args.only.as_deref();
    let only = only.map_or_else(String::new, |only| format!(" --only {}", quoted(only)));
    let file = quoted_os(args.file.as_os_str());
    let head = Head(format!("run {file} --on vm{only}"));
    match carry_out(&experiment, args, &head, place)? {
        None => Ok(Outcome::Interrupted),
        Some(Carried {
            mut store,
            session,
            beside,
            ..
        }) => sessions::finish(args, &mut store, &session, beside),
    }
}

/// The words of a command line before those that say how guests are made.
pub(super) struct Head(pub(super) String);

/// All trials of a session have been run.
pub(super) struct Carried {
    pub(super) store: Store,
    pub(super) session: String,
    /// Where they were run, in words.
    pub(super) on: String,
    /// Measured beside predicted, if that was asked for.
    pub(super) beside: Vec<Block>,
}

/// Runs an experiment's trials in guests, each stored before the next begins; `None` when it was interrupted.
pub(super) fn carry_out(
    experiment: &Experiment,
    args: &RunArgs,
    head: &Head,
    place: &place::Store,
) -> Result<Option<Carried>, Failure> {
    // What no member-size would help is told first.
    fit::check(experiment, args.vm.time)?;
    fit::deaths(experiment, args)?;
    let mut tools = Vec::new();
    if args.real.driver == Driver::Tool {
        for cell in &experiment.cells {
            tools.push(driver::check(&cell.setup.profile)?);
        }
        tools.sort_unstable();
        tools.dedup();
    }
    let plan = expand(experiment, experiment.design.seed);
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let lab = Lab::prepare(args.vm.cache.as_deref(), experiment, args.vm.time, &tools)?;
    for tool in &tools {
        lab.needs(tool)?;
    }
    let mut store = Store::open(&place.to_write()?).map_err(store_failure)?;
    let on = words::on(args, experiment);
    let open = sessions::open(&mut store, &plan, args, &on)?;
    let command = words::command(args, head, &plan);
    let mut session = Session {
        plan: &plan,
        open: &open,
        lab: &lab,
        args,
        recorder: Recorder::new(&plan, &open.session, &command),
        stop: &stop,
        store: &mut store,
        told: RefCell::default(),
        early: Vec::new(),
        took: Took::default(),
        since: Instant::now(),
    };
    let came = session.run();
    let took = session.took;
    let came = came.and(took.keep(&mut store, &open.session));
    match came {
        Ok(()) if stop.asked() => {
            sessions::interrupted(&mut store, &open)?;
            Ok(None)
        }
        Ok(()) => {
            let beside = words::beside(args, &plan, &mut store, &open.session, &stop)?;
            if stop.asked() {
                return Ok(None);
            }
            Ok(Some(Carried {
                store,
                session: open.session,
                on,
                beside,
            }))
        }
        Err(failure) => {
            // What it failed with is what counts.
            let _ = sessions::forget_if_empty(&mut store, &open.session);
            Err(failure)
        }
    }
}

/// A session under way.
struct Session<'a> {
    plan: &'a Plan<'a>,
    open: &'a sessions::Open,
    lab: &'a Lab,
    args: &'a RunArgs,
    recorder: Recorder<'a>,
    stop: &'a Stop,
    store: &'a mut Store,
    /// What of the experiment is not as asked for, as far as it has been said.
    told: RefCell<BTreeSet<String>>,
    /// By how much replies leave early, for the places of the disks.
    early: Vec<(Vec<Slot>, Span)>,
    /// What trials took, with the boots of their guests.
    took: Took,
    /// Since when the trial at hand takes time.
    since: Instant,
}

/// A guest as the host knows it.
struct Guest<'g> {
    machine: &'g Machine,
    served: Option<&'g Served>,
}

/// How a guest's turn ended.
enum Turn {
    /// All its trials were run.
    Done,
    /// It died in the trial after so many that had come to an end.
    Died(usize, Trouble),
    /// The user wants to stop.
    Stopped,
}

impl Session<'_> {
    /// Runs what is left to run, in as few guests as may be.
    fn run(&mut self) -> Result<(), Failure> {
        let known = self.open.known();
        let unknown = |trial: &&Trial| {
            let digest = self.recorder.digest(trial.cell);
            !known.contains(&(digest, trial.round))
        };
        let left: Vec<Trial> = self.plan.trials.iter().filter(unknown).copied().collect();
        let all = self.plan.trials.len();
        let mut view = View::new(all, all - left.len());
        let came = self.guests(&left, &mut view);
        view.finish();
        if came.is_ok() && self.stop.asked() {
            sessions::broken_off(view.under_way().as_deref());
        }
        came
    }

    fn guests(&mut self, mut left: &[Trial], view: &mut View) -> Result<(), Failure> {
        let mut deaths = 0;
        while let Some(first) = left.first() {
            if self.stop.asked() {
                return Ok(());
            }
            let memory = self.memory(*first);
            let same = left
                .iter()
                .take_while(|trial| self.memory(**trial) == memory);
            // In real time a guest has the disks of one cell, and their models begin anew with each trial.
            let most = match self.args.vm.time {
                GuestTime::Virtual => usize::MAX,
                GuestTime::Real => 1,
            };
            let (turn, rest) = left.split_at(same.count().min(most));
            match self.guest(turn, memory, view)? {
                Turn::Stopped => return Ok(()),
                Turn::Done => {
                    deaths = 0;
                    left = rest;
                }
                Turn::Died(done, trouble) => {
                    deaths = if done == 0 { deaths + 1 } else { 1 };
                    let trial = turn[done];
                    let reason = trouble.to_string();
                    let record = self.recorder.failed(trial, reason.clone());
                    self.keep(&record, &json!({ "vm": self.lab.facts() }))?;
                    view.ended(&record);
                    if deaths >= DEATHS {
                        let message =
                            format!("{DEATHS} guests died one after the other; the last: {reason}");
                        return Err(Failure::new(TRIAL_FAILED, message));
                    }
                    left = &left[done + 1..];
                }
            }
        }
        Ok(())
    }

    fn memory(&self, trial: Trial) -> Bytes {
        self.plan.experiment.cells[trial.cell].setup.host.memory
    }

    /// By how much replies of a trial's disks are to leave early; `None` when the user wants to stop. What is measured of
    /// some disks on some controllers serves for all trials that have them so.
    fn early(
        &mut self,
        trial: Trial,
        memory: Bytes,
        view: &mut View,
    ) -> Result<Option<Span>, Failure> {
        if let Early::Given(span) = self.args.vm.early {
            return Ok(Some(span));
        }
        let experiment = self.plan.experiment;
        let cell = &experiment.cells[trial.cell];
        let slots = served::slots(experiment, cell);
        if let Some((_, early)) = self.early.iter().find(|(known, _)| *known == slots) {
            return Ok(Some(*early));
        }
        let directory = self.lab.runs.create();
        let directory = directory.map_err(|error| guests::failure(&error))?;
        let served = Served::start(experiment, cell, trial.seed, Span::ZERO, directory.path())?;
        let machine = self.lab.machine(experiment, memory, Some(&served));
        view.boots();
        let vm = self.lab.boot(&machine, directory, false)?;
        let sizes = fit::sizes(experiment, cell);
        let bytes = sizes.into_iter().min().unwrap_or_default();
        let early = early::measure(vm, &machine, bytes, served.server(), self.stop)?;
        self.early.extend(early.map(|early| (slots, early)));
        Ok(early)
    }

    /// Boots a guest for these trials and takes what comes of them.
    fn guest(&mut self, trials: &[Trial], memory: Bytes, view: &mut View) -> Result<Turn, Failure> {
        let experiment = self.plan.experiment;
        self.since = Instant::now();
        let directory = self
            .lab
            .runs
            .create()
            .map_err(|error| guests::failure(&error))?;
        let served = match self.args.vm.time {
            GuestTime::Virtual => None,
            GuestTime::Real => {
                let cell = &experiment.cells[trials[0].cell];
                let path = directory.path();
                let Some(early) = self.early(trials[0], memory, view)? else {
                    return Ok(Turn::Stopped);
                };
                Some(Served::start(
                    experiment,
                    cell,
                    trials[0].seed,
                    early,
                    path,
                )?)
            }
        };
        let machine = self.lab.machine(experiment, memory, served.as_ref());
        view.boots();
        let mut vm = self.lab.boot(&machine, directory, false)?;
        if guests::hello(&mut vm, self.stop)?.is_none() {
            return Ok(Turn::Stopped);
        }
        let job = Job::Trials(Box::new(Trials {
            experiment: experiment.clone(),
            disks: lab::disks(&machine),
            trials: trials.iter().copied().map(Asked::from).collect(),
            session: self.open.session.clone(),
            command: self.recorder.command().to_owned(),
            sync: self.args.vm.sync,
            tools: self.args.real.driver == Driver::Tool,
            deaths: self.args.vm.fail.clone(),
        }));
        let job = serde_json::to_string(&job)
            .map_err(|error| Failure::new(MISSING, error.to_string()))?;
        let mut done = 0;
        let guest = Guest {
            machine: &machine,
            served: served.as_ref(),
        };
        let heard = match vm.send(&Message::Job(job)) {
            Ok(()) => self.listen(&mut vm, trials, &mut done, &guest, view)?,
            Err(trouble) => Err(trouble),
        };
        match heard {
            Ok(true) => {
                // What comes after its last word is no trial's matter.
                if let Err(trouble) = vm.finish(OFF) {
                    talk::warn(&trouble.to_string());
                }
                Ok(Turn::Done)
            }
            Ok(false) => Ok(Turn::Stopped),
            Err(trouble) if done < trials.len() => Ok(Turn::Died(done, trouble)),
            Err(_) => Ok(Turn::Done),
        }
    }
}
